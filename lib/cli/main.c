// SPDX-License-Identifier: MIT
/* The command tshare: finds the verb, and what all verbs need. */
#define _GNU_SOURCE 1
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "text.h"

static const struct verb *const verbs[] = {
	&verb_info, &verb_create, &verb_list,	&verb_show,  &verb_unlink,
	&verb_exec, &verb_load,	  &verb_unload, &verb_bench,
};

#define N_VERBS (sizeof(verbs) / sizeof(verbs[0]))

/* A message with arguments or names in it. */
__attribute__((format(printf, 1, 0))) static void put_message(const char *format, va_list args)
{
	char *text;

	if (vasprintf(&text, format, args) < 0)
		return;
	text_put(stderr, text);
	free(text);
}

int usage_error(const struct verb *verb, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "tshare %s: ", verb->name);
	va_start(args, format);
	put_message(format, args);
	va_end(args);
	fprintf(stderr, "\nTry 'tshare %s --help'.\n", verb->name);
	return EXIT_USAGE;
}

int failure(const char *format, ...)
{
	va_list args;

	fputs("tshare: ", stderr);
	va_start(args, format);
	put_message(format, args);
	va_end(args);
	fputc('\n', stderr);
	return EXIT_FAILED;
}

int help(const struct verb *verb)
{
	printf("Usage: tshare %s %s\n%s\n\n%s  -h, --help             this text\n", verb->name,
	       verb->arguments, verb->summary, verb->options);
	return EXIT_OK;
}

struct tshare_ctx *open_session(void)
{
	struct tshare_ctx *ctx;

	if (!tshare_ctx_new(NULL, &ctx))
		return ctx;
	failure("%s", tshare_error_get());
	return NULL;
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
	      "Shared memory for tensors.\n\n",
	      stream);
	for (i = 0; i < N_VERBS; i++)
		fprintf(stream, "  %-8s %s\n", verbs[i]->name, verbs[i]->summary);
	fputs("\n'tshare VERB --help' tells more. TSHARE_BACKEND=kmod or shm forces a backend.\n",
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

/* What could not be written, to a full disk for one, has failed. */
static int flush_output(int status)
{
	if (fflush(stdout) || ferror(stdout))
		return failure("standard output: write error");
	return status;
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
		printf("tshare %d.%d\n", TSHARE_VERSION_MAJOR, TSHARE_VERSION_MINOR);
		return flush_output(EXIT_OK);
	}
	verb = find_verb(argv[1]);
	if (!verb) {
		fputs("tshare: no verb '", stderr);
		text_put(stderr, argv[1]);
		fputs("'\nTry 'tshare --help'.\n", stderr);
		return EXIT_USAGE;
	}
	return flush_output(verb->run(verb, argc - 1, argv + 1));
}
