// SPDX-License-Identifier: MIT
/*
 * tshare bench: runs the benchmark, which is written in Python because it times
 * Python libraries.
 */
#include "cli.h"
#include "package.h"

static const struct option options[] = {
	{ "quick", no_argument, NULL, OPTION_LONG },
	{ "max-size", required_argument, NULL, OPTION_LONG + 1 },
	{ "time", required_argument, NULL, OPTION_LONG + 2 },
	{ "csv", required_argument, NULL, OPTION_LONG + 3 },
	{ "plot", required_argument, NULL, OPTION_LONG + 4 },
	{ "progress", no_argument, NULL, OPTION_LONG + 5 },
	{ 0 },
};

/* Python checks the values. */
static int take(const struct verb *verb, int option, void *unused)
{
	(void)verb;
	(void)option;
	(void)unused;
	return EXIT_OK;
}

static int run(const struct verb *verb, int argc, char **argv)
{
	int status;

	if (!parse_options(verb, argc, argv, NULL, &status))
		return status;
	if (optind < argc)
		return usage_error(verb, "unexpected argument '%s'", argv[optind]);
	return run_package("tshare.bench", argc, argv);
}

const struct verb verb_bench = {
	.name = "bench",
	.arguments = "[OPTION...]",
	.summary = "time how arrays pass between libraries and processes",
	.help = "      --quick            few sizes, up to 16M, in 20 seconds\n"
		"      --max-size SIZE    the largest array (default: 1G)\n"
		"      --time SECONDS     how long to measure (default: 160)\n"
		"      --csv FILE         write all results as CSV\n"
		"      --plot FILE        draw a figure, .png or .svg; needs matplotlib\n"
		"      --progress         show progress even if stderr is not a terminal\n",
	.options = options,
	.take = take,
	.in_order = true, /* as the arguments are passed on */
	.run = run,
};
