// SPDX-License-Identifier: MIT
/* tshare unlink: removes names. */
#include "cli.h"

static int run(const struct verb *verb, int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct tshare_ctx *ctx;
	int option, status = EXIT_OK;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1)
		return option == 'h' ? help(verb) : EXIT_USAGE;
	if (optind == argc)
		return usage_error(verb, "needs a NAME");
	ctx = open_session();
	if (!ctx)
		return EXIT_FAILED;
	for (; optind < argc; optind++)
		if (tshare_ctx_unlink(ctx, argv[optind]))
			status = failure("%s", tshare_error_get());
	tshare_ctx_unref(ctx);
	return status;
}

const struct verb verb_unlink = {
	.name = "unlink",
	.arguments = "NAME...",
	.summary = "remove names; the memory stays until its last user closes it",
	.options = "",
	.run = run,
};
