// SPDX-License-Identifier: MIT
/* tshare list: the named regions, by name. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "report.h"

struct regions {
	struct tshare_region_info *infos;
	size_t count;
	size_t room;
};

static int collect(const struct tshare_region_info *info, void *data)
{
	struct tshare_region_info *infos;
	struct regions *regions = data;

	if (regions->count == regions->room) {
		regions->room = 2 * regions->room + 16;
		infos = realloc(regions->infos, regions->room * sizeof(*infos));
		if (!infos)
			return failure("out of memory");
		regions->infos = infos;
	}
	regions->infos[regions->count++] = *info;
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	const struct tshare_region_info *left = a, *right = b;

	return strcmp(left->name, right->name);
}

static void print_text(const struct regions *regions)
{
	char flags[REPORT_FLAGS_LEN], user[REPORT_USER_LEN];
	const struct tshare_region_info *info;
	size_t i;

	printf("%14s %7s %4s %-12s %-20s %s\n", "BYTES", "TENSORS", "MODE", "OWNER", "FLAGS",
	       "NAME");
	for (i = 0; i < regions->count; i++) {
		info = &regions->infos[i];
		report_flags(info->flags, flags);
		report_user(info->uid, user);
		printf("%14" PRIu64 " %7" PRIu32 " %04o %-12s %-20s ", info->size,
		       info->tensor_count, info->mode, user, flags);
		print_name(info->name);
		putchar('\n');
	}
}

static void print_json(const struct regions *regions)
{
	size_t i;

	json_open(NULL, '[');
	for (i = 0; i < regions->count; i++) {
		json_open(NULL, '{');
		report_region_json(&regions->infos[i]);
		json_close('}');
	}
	json_close(']');
}

static int list(bool json)
{
	struct regions regions = { 0 };
	struct tshare_ctx *ctx;
	int ret;

	ctx = open_session();
	if (!ctx)
		return EXIT_FAILED;
	ret = tshare_list(ctx, collect, &regions);
	tshare_ctx_unref(ctx);
	if (ret < 0)
		ret = failure("%s", tshare_last_error());
	if (!ret) {
		qsort(regions.infos, regions.count, sizeof(*regions.infos), compare_names);
		if (json)
			print_json(&regions);
		else
			print_text(&regions);
	}
	free(regions.infos);
	return ret;
}

static int run(const struct verb *verb, int argc, char **argv)
{
	int status;
	bool json;

	if (!parse_reporting(verb, argc, argv, &json, &status))
		return status;
	if (optind < argc)
		return usage_error(verb, "unexpected '%s'", argv[optind]);
	return list(json);
}

const struct verb verb_list = {
	.name = "list",
	.arguments = "[--json]",
	.summary = "list the named regions that you may read",
	.options = "      --json             as a JSON array\n",
	.run = run,
};
