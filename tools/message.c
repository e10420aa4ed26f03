// SPDX-License-Identifier: MIT
/* The errors that the verbs print. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* The verb's option of that name in any case of letters, or NULL. */
static const struct option *find_option(const char *name, size_t length)
{
	const struct option *option = current ? current->options : NULL;

	for (; option && option->name; option++)
		if (strlen(option->name) == length && !strncasecmp(option->name, name, length))
			return option;
	return NULL;
}

/* The option for the library's flag, the word of @length bytes at @text; or NULL. */
static const struct option *option_of_flag(const char *text, size_t length)
{
	static const char prefix[] = "TSHARE_";
	size_t skipped = strlen(prefix);

	if (strncmp(text, prefix, skipped))
		return NULL;
	return find_option(text + skipped, length - skipped);
}

/*
 * Writes an error of the library. The verbs' options have the names of the library's flags and
 * members: "options.flags: TSHARE_DMA32" and "options.node:" are --dma32 and --node: here.
 */
static void put_words(FILE *stream, const char *text)
{
	static const char flags[] = "options.flags: ", member[] = "options.", ends[] = " ():;,";
	const struct option *option;
	size_t length;

	if (!strncmp(text, flags, strlen(flags))) {
		text += strlen(flags);
	} else if (!strncmp(text, member, strlen(member)) &&
		   find_option(text + strlen(member), strcspn(text + strlen(member), ":"))) {
		fputs("--", stream);
		text += strlen(member);
	}
	for (; *text; text += length) {
		length = strcspn(text, ends);
		option = option_of_flag(text, length);
		if (option)
			fprintf(stream, "--%s", option->name);
		else
			fwrite(text, 1, length, stream);
		text += length;
		length = strspn(text, ends);
		fwrite(text, 1, length, stream);
	}
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
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	if (stream) {
		put_words(stream, tshare_error_get());
		fclose(stream);
	}
	failure("%s", text ? text : tshare_error_get());
	free(text);
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
