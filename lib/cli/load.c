// SPDX-License-Identifier: MIT
/* tshare load: loads the kernel module. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "module.h"

/* Joins the arguments by blanks; returns NULL when out of memory. */
static char *join(int count, char **words)
{
	size_t size = 1;
	char *joined;
	int i;

	for (i = 0; i < count; i++)
		size += strlen(words[i]) + 1;
	joined = calloc(1, size);
	for (i = 0; joined && i < count; i++) {
		if (i)
			strcat(joined, " ");
		strcat(joined, words[i]);
	}
	return joined;
}

static int run(const struct verb *verb, int argc, char **argv)
{
	char *parameters;
	int status, i;

	if (!parse_options(verb, argc, argv, NULL, &status))
		return status;
	for (i = optind; i < argc; i++)
		if (!strchr(argv[i], '='))
			return usage_error(verb, "'%s' is not PARAMETER=VALUE", argv[i]);
	parameters = join(argc - optind, argv + optind);
	if (!parameters)
		return failure("out of memory");
	status = module_load(parameters);
	free(parameters);
	return status;
}

const struct verb verb_load = {
	.name = "load",
	.arguments = "[PARAMETER=VALUE...]",
	.summary = "load the kernel module and the modules it depends on",
	.help = "",
	.run = run,
};
