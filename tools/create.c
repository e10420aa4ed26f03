// SPDX-License-Identifier: MIT
/* tshare create: makes a persistent region, since the command ends at once. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "from.h"
#include "layout.h"
#include "number.h"
#include "text.h"

struct request {
	struct layout layout;
	const char *from; /* a .npy file, or NULL */
	bool quiet;
};

/* Prints the region's file: it had no name yet when its maker opened it. */
static void print_file(struct tshare_ctx *ctx, const char *name)
{
	char link[64], file[4096];
	struct tshare_region *region;
	ssize_t length;

	if (open_readonly(ctx, name, &region))
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", tshare_region_get_fd(region));
	length = readlink(link, file, sizeof(file) - 1);
	tshare_region_unref(region);
	if (length <= 0)
		return;
	file[length] = '\0';
	fputs(", ", stdout);
	text_put(stdout, file);
}

/* Prints where the memory is: the file on shm; on kmod the node, and whether it is the pool's. */
static void print_place(struct tshare_ctx *ctx, const struct tshare_region *region,
			const struct tshare_region_info *info)
{
	if (!strcmp(tshare_region_get_backend(region), "shm"))
		print_file(ctx, tshare_region_get_name(region));
	if (info->flags & TSHARE_POOL)
		fputs(", of the pool", stdout);
	if (info->node != TSHARE_ANY_NODE)
		printf(", node %" PRId32, info->node);
	if (info->segments)
		printf(", %" PRIu32 " segment%s", info->segments, info->segments == 1 ? "" : "s");
}

static int print_region(struct tshare_ctx *ctx, struct tshare_region *region)
{
	struct tshare_region_info info = { .size = sizeof(info) };
	char bytes[BYTES_LEN];
	int err;

	err = tshare_region_get_info(region, &info);
	if (err)
		return failure_of_library(err);
	format_bytes(bytes, info.region_size, false);
	text_put(stdout, tshare_region_get_name(region));
	printf(": %s, %" PRIu32 " tensor%s, on %s", bytes, info.tensor_count,
	       info.tensor_count == 1 ? "" : "s", tshare_region_get_backend(region));
	print_place(ctx, region, &info);
	putchar('\n');
	return EXIT_OK;
}

static int create(struct request *request)
{
	struct layout *layout = &request->layout;
	int status = EXIT_OK;
	struct tshare_region *region;
	struct tshare_ctx *ctx;

	ctx = open_session();
	if (!ctx)
		return EXIT_FAILED;
	layout->options.lifetime = TSHARE_LIFETIME_PERSIST;
	if (request->from)
		region = from_file(layout, ctx, request->from);
	else
		region = layout_create(layout, ctx);
	if (!region)
		status = EXIT_FAILED;
	else if (!request->quiet)
		status = print_region(ctx, region);
	tshare_region_unref(region);
	tshare_ctx_unref(ctx);
	return status;
}

static const struct option options[] = {
	LAYOUT_OPTIONS,
	{ "from", required_argument, NULL, 'f' },
	{ "quiet", no_argument, NULL, 'q' },
	{ 0 },
};

static int take(const struct verb *verb, int option, void *data)
{
	struct request *request = data;

	switch (option) {
	case 'f':
		request->from = optarg;
		return EXIT_OK;
	case 'q':
		request->quiet = true;
		return EXIT_OK;
	default:
		return layout_option(&request->layout, verb, option, optarg);
	}
}

static int parse_and_create(const struct verb *verb, int argc, char **argv, struct request *request)
{
	struct layout *layout = &request->layout;
	int status = EXIT_OK;

	if (!parse_options(verb, argc, argv, request, &status))
		return status;
	argc -= optind;
	argv += optind;
	if (request->from) {
		if (argc != 1 || layout->count)
			return usage_error(verb, "--from needs NAME alone");
		layout->name = argv[0];
		return create(request);
	}
	if (argc != (layout_needs_shape(layout) ? 3 : 1) && argc != 3)
		return usage_error(
			verb, "needs NAME SHAPE DTYPE, or NAME with --size, --tensor or --from");
	if (argc == 3)
		status = layout_shape(layout, verb, argv[1], argv[2]);
	if (status)
		return status;
	layout->name = argv[0];
	return create(request);
}

static int run(const struct verb *verb, int argc, char **argv)
{
	struct request request = { 0 };
	int status;

	layout_init(&request.layout);
	status = parse_and_create(verb, argc, argv, &request);
	layout_release(&request.layout);
	return status;
}

const struct verb verb_create = {
	.name = "create",
	.arguments = "[OPTION...] NAME [SHAPE DTYPE]",
	.summary = "create a region that stays until it is unlinked",
	.help = LAYOUT_HELP
	"  -f, --from FILE        the array of a .npy file; - for standard input\n"
	"  -q, --quiet            do not print what was made\n",
	.options = options,
	.take = take,
	.run = run,
};
