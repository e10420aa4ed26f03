// SPDX-License-Identifier: MIT
/* tshare unload: unloads the kernel module. */
#include "cli.h"
#include "module.h"

static int run(const struct verb *verb, int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1)
		return option == 'h' ? help(verb) : EXIT_USAGE;
	if (optind < argc)
		return usage_error(verb, "unexpected argument '%s'", argv[optind]);
	return module_unload();
}

const struct verb verb_unload = {
	.name = "unload",
	.arguments = "",
	.summary = "unload the kernel module",
	.options = "",
	.run = run,
};
