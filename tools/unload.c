// SPDX-License-Identifier: MIT
/* tshare unload: unloads the kernel module. */
#include "cli.h"
#include "module.h"

static int run(const struct verb *verb, int argc, char **argv)
{
	int status;

	if (!parse_options(verb, argc, argv, NULL, &status))
		return status;
	if (optind < argc)
		return usage_error(verb, "unexpected argument '%s'", argv[optind]);
	return module_unload();
}

const struct verb verb_unload = {
	.name = "unload",
	.arguments = "",
	.summary = "unload the kernel module",
	.help = "",
	.run = run,
};
