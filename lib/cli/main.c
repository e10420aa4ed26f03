// SPDX-License-Identifier: MIT
/* The command tshare: finds the verb, and has the functions that all verbs share. */
#define _GNU_SOURCE 1
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "module.h"
#include "text.h"

static const struct verb *const verbs[] = {
	&verb_info, &verb_create, &verb_list,	&verb_show,  &verb_unlink,
	&verb_exec, &verb_load,	  &verb_unload, &verb_bench,
};

#define N_VERBS (sizeof(verbs) / sizeof(verbs[0]))

int help(const struct verb *verb)
{
	printf("Usage: tshare %s%s%s\n%s\n\n  -h, --help             print this help\n%s",
	       verb->name, verb->arguments[0] ? " " : "", verb->arguments, verb->summary,
	       verb->options);
	return EXIT_OK;
}

bool parse_reporting(const struct verb *verb, int argc, char **argv, bool *json, int *status)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int option;

	*json = false;
	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (option) {
		case 'j':
			*json = true;
			break;
		case 'h':
			*status = help(verb);
			return false;
		default:
			*status = EXIT_USAGE;
			return false;
		}
	}
	return true;
}

static void print_usage(FILE *stream)
{
	size_t i;

	fputs("Usage: tshare VERB [ARGUMENT...]\n"
	      "Create, list and remove named regions of shared memory that hold tensors.\n\n",
	      stream);
	for (i = 0; i < N_VERBS; i++)
		fprintf(stream, "  %-8s %s\n", verbs[i]->name, verbs[i]->summary);
	fputs("\n'tshare VERB --help' lists the verb's options; 'tshare --version' prints the version.\n"
	      "TSHARE_BACKEND=kmod (kernel module) or shm (POSIX shared memory) selects the backend;\n"
	      "by default kmod is used if it is available. See tshare(1).\n",
	      stream);
}

static const struct verb *find_verb(const char *name)
{
	size_t i;

	for (i = 0; i < N_VERBS; i++)
		if (!strcmp(verbs[i]->name, name))
			return verbs[i];
	return NULL;
}

/* Output that could not be written, as to a full disk, makes the command fail. */
static int flush_output(int status)
{
	if (fflush(stdout) || ferror(stdout))
		return failure("standard output: write error");
	return status;
}

/* The library's, and that of the module if it is loaded. */
static void print_version(void)
{
	FILE *file = fopen("/sys/module/" MODULE_NAME "/version", "re");
	char version[32];

	printf("tshare %s", tshare_version());
	if (file && fscanf(file, "%31s", version) == 1)
		printf(", module %s", version);
	printf("\n");
	if (file)
		fclose(file);
}

int main(int argc, char **argv)
{
	const struct verb *verb;

	if (argc < 2) {
		print_usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		print_usage(stdout);
		return flush_output(EXIT_OK);
	}
	if (!strcmp(argv[1], "--version")) {
		print_version();
		return flush_output(EXIT_OK);
	}
	verb = find_verb(argv[1]);
	if (!verb) {
		fputs("tshare: unknown verb '", stderr);
		text_put(stderr, argv[1]);
		fputs("'\nTry 'tshare --help'.\n", stderr);
		return EXIT_USAGE;
	}
	message_verb(verb);
	return flush_output(verb->run(verb, argc - 1, argv + 1));
}
