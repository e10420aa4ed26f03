// SPDX-License-Identifier: MIT
/* The errors that the verbs print. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdlib.h>

#include "cli.h"
#include "text.h"

/* The verb that runs; NULL before one is found. */
static const struct verb *current;

void message_verb(const struct verb *verb)
{
	current = verb;
}

/* Prints a message; text_put() escapes the arguments and names in it. */
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

static int status_of(int err)
{
	switch (err) {
	case -ETIMEDOUT:
		return EXIT_TIMEOUT;
	case -EOWNERDEAD:
		return EXIT_DEAD;
	default:
		return EXIT_FAILED;
	}
}

int failure_of_library(int err)
{
	failure("%s", tshare_error_get());
	return status_of(err);
}

int failure(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "tshare%s%s: ", current ? " " : "", current ? current->name : "");
	va_start(args, format);
	put_message(format, args);
	va_end(args);
	fputc('\n', stderr);
	return EXIT_FAILED;
}
