// SPDX-License-Identifier: MIT
/* Parses a verb's options, prints their help, and reports mistakes in them. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "nearest.h"

/* The most options of a verb, and room for all their letters. */
#define N_OPTIONS   32
#define LETTERS_LEN (2 * N_OPTIONS + 2)

static const struct option common[] = {
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

/* The verb's own options, and the common ones. */
static void gather(const struct verb *verb, struct option all[N_OPTIONS])
{
	const struct option *option;
	size_t count = 0;

	for (option = verb->options; option && option->name && count < N_OPTIONS - 2; option++)
		all[count++] = *option;
	memcpy(&all[count], common, sizeof(common));
}

/* The optstring for getopt_long(); the colon keeps it from printing errors. */
static void gather_letters(const struct verb *verb, const struct option *all,
			   char letters[LETTERS_LEN])
{
	char *end = letters;

	if (verb->in_order)
		*end++ = '+';
	*end++ = ':';
	for (; all->name; all++) {
		if (all->val >= OPTION_LONG)
			continue;
		*end++ = (char)all->val;
		if (all->has_arg)
			*end++ = ':';
	}
	*end = '\0';
}

static const struct option *find_option(const struct option *all, int val)
{
	for (; all->name; all++)
		if (all->val == val)
			return all;
	return NULL;
}

static int fail_long(const struct verb *verb, const struct option *all, const char *text)
{
	char *name = strndup(text, strcspn(text, "="));
	struct nearest nearest;
	int matches = 0;
	size_t length;

	if (!name)
		return failure("out of memory");
	length = strlen(name + 2);
	nearest_init(&nearest, name + 2);
	for (; all->name; all++) {
		matches += !strncmp(all->name, name + 2, length);
		nearest_try(&nearest, all->name);
	}
	if (matches > 1) {
		usage_error(verb, "option '%s' is ambiguous", name);
	} else {
		usage_error(verb, "unknown option '%s'", name);
		nearest_suggest(&nearest, "--");
	}
	free(name);
	return EXIT_USAGE;
}

/* @option: what getopt_long() has returned, '?' or ':' */
static int fail_option(const struct verb *verb, const struct option *all, int option,
		       const char *text)
{
	const struct option *known = find_option(all, optopt);

	if (option == ':')
		return usage_error(verb, "option '--%s' needs a value", known->name);
	if (known)
		return usage_error(verb, "option '--%s' takes no value", known->name);
	if (optopt)
		return usage_error(verb, "unknown option '-%c'", optopt);
	return fail_long(verb, all, text);
}

int print_help(const struct verb *verb)
{
	printf("Usage: tshare %s%s%s\n%s\n\n  -h, --help             print this help\n%s",
	       verb->name, verb->arguments[0] ? " " : "", verb->arguments, verb->summary,
	       verb->help);
	return EXIT_OK;
}

bool parse_options(const struct verb *verb, int argc, char **argv, void *request, int *status)
{
	struct option all[N_OPTIONS];
	char letters[LETTERS_LEN];
	int option;

	gather(verb, all);
	gather_letters(verb, all, letters);
	while ((option = getopt_long(argc, argv, letters, all, NULL)) != -1) {
		if (option == 'h') {
			*status = print_help(verb);
			return false;
		}
		if (option == '?' || option == ':')
			*status = fail_option(verb, all, option, argv[optind - 1]);
		else
			*status = verb->take(verb, option, request);
		if (*status)
			return false;
	}
	return true;
}
