// SPDX-License-Identifier: MIT
/* The command tshare: runs the verb. */
#include <string.h>

#include "cli.h"

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
