// SPDX-License-Identifier: MIT
/* tshare list: the named regions, by name. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "report.h"
#include "table.h"

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

static int print_text(const struct regions *regions)
{
	static const struct table_column columns[] = {
		{ "BYTES", .right = true },
		{ "TENSORS", .right = true },
		{ "MODE" },
		{ "OWNER" },
		{ "FLAGS" },
		{ "NAME" },
	};
	char flags[REPORT_FLAGS_LEN], user[REPORT_USER_LEN];
	const struct tshare_region_info *info;
	struct table table;
	size_t i;

	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (i = 0; i < regions->count; i++) {
		info = &regions->infos[i];
		report_flags(info, flags);
		report_user(info->uid, user);
		table_row(&table);
		table_cell(&table, "%" PRIu64, info->region_size);
		table_cell(&table, "%" PRIu32, info->tensor_count);
		table_cell(&table, "%04o", info->mode);
		table_cell(&table, "%s", user);
		table_cell(&table, "%s", flags);
		table_cell(&table, "%s", info->name);
	}
	return table_print(&table);
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
	ret = tshare_ctx_list(ctx, collect, &regions);
	tshare_ctx_unref(ctx);
	if (ret < 0)
		ret = failure("%s", tshare_error_get());
	if (!ret) {
		qsort(regions.infos, regions.count, sizeof(*regions.infos), compare_names);
		if (json)
			print_json(&regions);
		else
			ret = print_text(&regions);
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
		return usage_error(verb, "unexpected argument '%s'", argv[optind]);
	return list(json);
}

const struct verb verb_list = {
	.name = "list",
	.arguments = "[--json]",
	.summary = "list the named regions that you may read",
	.options = "      --json             print a JSON array\n",
	.run = run,
};
