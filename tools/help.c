// SPDX-License-Identifier: MIT
/* tshare help: the list of verbs, and each one's help. */
#include <string.h>

#include "cli.h"
#include "nearest.h"

static const struct verb *const verbs[] = {
	&verb_help,   &verb_info,   &verb_create,  &verb_list,	&verb_show,   &verb_top,
	&verb_unlink, &verb_save,   &verb_publish, &verb_wait,	&verb_exec,   &verb_pool,
	&verb_load,   &verb_unload, &verb_weights, &verb_bench, &verb_stream,
};

#define N_VERBS (sizeof(verbs) / sizeof(verbs[0]))

const struct verb *find_verb(const char *name)
{
	struct nearest nearest;
	size_t i;

	nearest_init(&nearest, name);
	for (i = 0; i < N_VERBS; i++) {
		if (!strcmp(verbs[i]->name, name))
			return verbs[i];
		nearest_try(&nearest, verbs[i]->name);
	}
	failure("unknown verb '%s'", name);
	fputs("Try 'tshare --help'.\n", stderr);
	nearest_suggest(&nearest, "");
	return NULL;
}

const struct verb *find_verb_below(const struct verb *verb, const char *name)
{
	const size_t own = strlen(verb->name) + 1;
	const struct verb *const *below;
	struct nearest nearest;

	nearest_init(&nearest, name);
	for (below = verb->below; *below; below++) {
		if (!strcmp((*below)->name + own, name))
			return *below;
		nearest_try(&nearest, (*below)->name + own);
	}
	usage_error(verb, "unknown verb '%s'", name);
	nearest_suggest(&nearest, "");
	return NULL;
}

void print_usage(FILE *stream)
{
	size_t i;

	fputs("Usage: tshare VERB [ARGUMENT...]\n"
	      "Create, list and remove named regions of shared memory that hold tensors.\n\n",
	      stream);
	for (i = 0; i < N_VERBS; i++)
		fprintf(stream, "  %-8s %s\n", verbs[i]->name, verbs[i]->summary);
	fputs("\n'tshare help VERB' lists the verb's options, 'tshare --version' the versions.\n"
	      "TSHARE_BACKEND=kmod (kernel module) or shm (POSIX shared memory) selects the\n"
	      "backend; by default kmod is used if it is available. See tshare(1).\n",
	      stream);
}

static int run(const struct verb *verb, int argc, char **argv)
{
	const struct verb *asked;
	int status;

	if (!parse_options(verb, argc, argv, NULL, &status))
		return status;
	if (optind == argc) {
		print_usage(stdout);
		return EXIT_OK;
	}
	asked = find_verb(argv[optind++]);
	if (asked && asked->below && optind < argc)
		asked = find_verb_below(asked, argv[optind++]);
	if (asked && optind < argc)
		return usage_error(verb, "unexpected argument '%s'", argv[optind]);
	return asked ? print_help(asked) : EXIT_USAGE;
}

const struct verb verb_help = {
	.name = "help",
	.arguments = "[VERB]",
	.summary = "list the verbs, or describe one and its options",
	.help = "",
	.run = run,
};
