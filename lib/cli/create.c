// SPDX-License-Identifier: MIT
/* tshare create: makes a persistent region, since the command ends at once. */
#include "layout.h"

static int create(struct layout *layout)
{
	struct tshare_region *region;
	struct tshare_ctx *ctx;

	ctx = open_session();
	if (!ctx)
		return EXIT_FAILED;
	layout->options.lifetime = TSHARE_LIFETIME_PERSIST;
	region = layout_create(layout, ctx);
	tshare_ctx_unref(ctx);
	if (!region)
		return EXIT_FAILED;
	tshare_region_unref(region);
	return EXIT_OK;
}

static int parse_and_create(const struct verb *verb, int argc, char **argv, struct layout *layout)
{
	static const struct option options[] = {
		LAYOUT_OPTIONS,
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int option, status = EXIT_OK;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (option == 'h')
			return help(verb);
		status = layout_option(layout, verb, option, optarg);
		if (status)
			return status;
	}
	argc -= optind;
	argv += optind;
	if (argc != (layout_needs_shape(layout) ? 3 : 1) && argc != 3)
		return usage_error(verb, "needs NAME SHAPE DTYPE, or NAME with --size or --tensor");
	if (argc == 3)
		status = layout_shape(layout, verb, argv[1], argv[2]);
	if (status)
		return status;
	layout->name = argv[0];
	return create(layout);
}

static int run(const struct verb *verb, int argc, char **argv)
{
	struct layout layout;
	int status;

	layout_init(&layout);
	status = parse_and_create(verb, argc, argv, &layout);
	layout_release(&layout);
	return status;
}

const struct verb verb_create = {
	.name = "create",
	.arguments = "[OPTION...] NAME [SHAPE DTYPE]",
	.summary = "create a region that stays until it is unlinked",
	.options = LAYOUT_HELP,
	.run = run,
};
