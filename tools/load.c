// SPDX-License-Identifier: MIT
/* tshare load: loads the kernel module. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "module.h"
#include "nearest.h"

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

struct search {
	const char *name;
	size_t length;
	struct nearest nearest;
	bool found;
};

/* The kernel reads a dash in a parameter's name as an underscore. */
static bool is_same_name(const char *name, const char *given, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++)
		if (name[i] != (given[i] == '-' ? '_' : given[i]))
			return false;
	return !name[length];
}

static void try_parameter(const char *name, void *data)
{
	struct search *search = data;

	search->found |= is_same_name(name, search->name, search->length);
	nearest_try(&search->nearest, name);
}

/* The kernel ignores an unknown parameter, but for a line in its log. */
static int check_parameter(const struct verb *verb, const char *argument)
{
	char *name = strndup(argument, strcspn(argument, "="));
	struct search search = { .name = name };
	int status = EXIT_OK;

	if (!name)
		return failure("out of memory");
	search.length = strlen(name);
	nearest_init(&search.nearest, name);
	/* The kernel has these for every module. */
	try_parameter("async_probe", &search);
	try_parameter("dyndbg", &search);
	if (module_each_parameter(try_parameter, &search) && !search.found) {
		status = usage_error(verb, "the module has no parameter '%s'", name);
		nearest_suggest(&search.nearest, "");
	}
	free(name);
	return status;
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
	for (i = optind; i < argc; i++) {
		status = check_parameter(verb, argv[i]);
		if (status)
			return status;
	}
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
