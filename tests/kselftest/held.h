/* SPDX-License-Identifier: GPL-2.0-only */
/* Processes that hold something while a test runs. */
#ifndef TSHARE_KSELFTEST_HELD_H
#define TSHARE_KSELFTEST_HELD_H

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "util.h"

/* A process that holds what @hold sets up until it is ended. */
static inline pid_t held_by_another(bool (*hold)(size_t size), size_t size)
{
	int ready[2], parent = getpid();
	char byte = 0;
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC))
		return -1;
	fflush(NULL);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent || !hold(size))
			_exit(1);
		if (write(ready[1], &byte, 1) == 1)
			pause();
		_exit(0);
	}
	close(ready[1]);
	if (pid > 0 && read(ready[0], &byte, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	close(ready[0]);
	return pid;
}

static inline void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#endif /* TSHARE_KSELFTEST_HELD_H */
