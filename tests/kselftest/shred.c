// SPDX-License-Identifier: GPL-2.0-only
/*
 * usage: shred COMMAND [ARGUMENT...]
 *
 * Not a test, but a tool: runs COMMAND on a machine without any large stretch of memory
 * that is free or could be freed. The shortage ends with COMMAND.
 */
#include <sys/wait.h>

#include "shred.h"

int main(int argc, char **argv)
{
	pid_t pid;
	int status;

	if (argc < 2) {
		fprintf(stderr, "usage: %s COMMAND [ARGUMENT...]\n", argv[0]);
		return 2;
	}
	if (!shred_memory()) {
		perror("shred");
		return 1;
	}
	pid = fork();
	if (!pid) {
		execvp(argv[1], argv + 1);
		perror(argv[1]);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		perror("shred");
		return 1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
