/* SPDX-License-Identifier: MIT */
/* Shared by the verbs of the command tshare. */
#ifndef TSHARE_CLI_H
#define TSHARE_CLI_H

#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <tshare.h>

/* Exit statuses, as in tshare(1). */
#define EXIT_OK	     0
#define EXIT_FAILED  1
#define EXIT_USAGE   2
#define EXIT_MISSING 3 /* no such region */
#define EXIT_TIMEOUT 4
#define EXIT_DEAD    5 /* all publishers have exited */

struct verb {
	const char *name;
	const char *arguments;
	const char *summary;
	const char *help;	      /* lines of --help about the verb's own options */
	const struct option *options; /* besides --help; a letter as val is the short option */
	/* Takes one option; its value is optarg. Returns EXIT_OK to go on. */
	int (*take)(const struct verb *verb, int option, void *request);
	bool in_order; /* options end at the first argument */
	int (*run)(const struct verb *verb, int argc, char **argv);
	const struct verb *const *below; /* its own verbs, with NULL behind; their names have its */
};

extern const struct verb verb_help, verb_info, verb_create, verb_list, verb_show, verb_unlink,
	verb_save, verb_publish, verb_top, verb_wait, verb_exec, verb_pool, verb_load, verb_unload,
	verb_weights, verb_bench, verb_stream, verb_stream_list, verb_stream_show, verb_stream_hz,
	verb_stream_record, verb_stream_play;

/* From here on errors name this verb. */
void message_verb(const struct verb *verb);

/* Prints what is wrong with the command line, and returns EXIT_USAGE. */
int usage_error(const struct verb *verb, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Prints an error, and returns EXIT_FAILED. */
int failure(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Prints the library's last error in the words of the command line, such as --replace for
 * TSHARE_REPLACE. Returns the exit status for @err.
 */
int failure_of_library(int err);

/* As failure_of_library(), for a call that named a region: may suggest the name that was meant. */
int failure_of_name(struct tshare_ctx *ctx, const char *name, int err);

/* Values of options without a letter begin here. */
#define OPTION_LONG 256

/*
 * Parses the options, and lets the verb take each into @request. Then optind is the first argument.
 * At --help, an unknown option or a value that the verb refuses, prints the text and returns false:
 * the verb has to end with *@status.
 */
bool parse_options(const struct verb *verb, int argc, char **argv, void *request, int *status);

/* Prints --help and returns EXIT_OK. */
int print_help(const struct verb *verb);
void print_usage(FILE *stream);

/* Returns NULL after printing the error if there is no such verb. */
const struct verb *find_verb(const char *name);

/* The same for one of the verb's own. */
const struct verb *find_verb_below(const struct verb *verb, const char *name);

/* Opens the verb's context; returns NULL after printing the error. */
struct tshare_ctx *open_session(void);

/* As tshare_region_open(), for reading alone; prints nothing. */
int open_readonly(struct tshare_ctx *ctx, const char *name, struct tshare_region **region);

/*
 * Opens a context and, by @open, the named region, and returns the exit status of @use; or
 * EXIT_FAILED after printing the error.
 */
int use_region(const char *name,
	       int (*open)(struct tshare_ctx *ctx, const char *name, struct tshare_region **region),
	       int (*use)(struct tshare_region *region, void *request), void *request);

#define REPORTING_HELP(what) "  -j, --json             print a JSON " what "\n"
#endif /* TSHARE_CLI_H */
