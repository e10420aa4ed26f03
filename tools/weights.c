// SPDX-License-Identifier: MIT
/* tshare weights: runs the Python package, which parses the files' JSON headers. */
#include <string.h>

#include "cli.h"
#include "package.h"

static bool is_verb(const char *name)
{
	return !strcmp(name, "load") || !strcmp(name, "show") || !strcmp(name, "verify");
}

/* Python checks the arguments after load, show or verify. */
static int run(const struct verb *verb, int argc, char **argv)
{
	int status;

	if (!parse_options(verb, argc, argv, NULL, &status))
		return status;
	if (optind == argc)
		return usage_error(verb, "load, show or verify is missing");
	if (!is_verb(argv[optind]))
		return usage_error(verb, "unexpected argument '%s'", argv[optind]);
	return run_package("tshare._weights_command", argc, argv);
}

const struct verb verb_weights = {
	.name = "weights",
	.arguments = "load PATH | show NAME | verify NAME PATH [OPTION...]",
	.summary = "load model weights from the disk once for all processes",
	.help = REPORTING_HELP(
		"object") "      --name NAME        load: the name of the region\n"
			  "      --persist          load: leave the region, and end\n"
			  "      --replace          load: replace a region of other files\n",
	.in_order = true, /* as the arguments are passed on */
	.run = run,
};
