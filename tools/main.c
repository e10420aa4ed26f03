// SPDX-License-Identifier: MIT
/* The command tshare: runs the verb. */
#include <string.h>

#include "cli.h"
#include "kernel.h"

/* Output that can't be written, as to a full disk, makes the command fail. */
static int flush_output(int status)
{
	if (fflush(stdout) || ferror(stdout))
		return failure("standard output: write error");
	return status;
}

/* The command, the library and the module may come from different packages. */
static void print_version(void)
{
	char module[32];

	if (!kernel_read_module("version", module, sizeof(module)))
		strcpy(module, "not loaded");
	printf("tshare %s, library %s, module %s\n", TSHARE_VERSION, tshare_version(), module);
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
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		print_version();
		return flush_output(EXIT_OK);
	}
	verb = find_verb(argv[1]);
	if (!verb)
		return EXIT_USAGE;
	message_verb(verb);
	return flush_output(verb->run(verb, argc - 1, argv + 1));
}
