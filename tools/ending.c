// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "ending.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

#define NSEC_PER_SEC 1000000000

static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };

#define N_NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static volatile sig_atomic_t arrived;

/* The signals that may arrive while ending_wait() waits. */
static sigset_t waiting;

static void note(int number)
{
	arrived = number;
}

void ending_begin(void)
{
	struct sigaction action;
	sigset_t blocked;
	size_t i;

	sigemptyset(&blocked);
	for (i = 0; i < N_NUMBERS; i++) {
		if (sigaction(numbers[i], NULL, &action) || action.sa_handler == SIG_IGN)
			continue;
		action = (struct sigaction){ .sa_handler = note };
		sigaction(numbers[i], &action, NULL);
		sigaddset(&blocked, numbers[i]);
	}
	sigprocmask(SIG_BLOCK, &blocked, &waiting);
	for (i = 0; i < N_NUMBERS; i++)
		if (sigismember(&blocked, numbers[i]))
			sigdelset(&waiting, numbers[i]);
}

int ending_wait(int fd, int64_t timeout_ns)
{
	const struct timespec time = {
		.tv_sec = timeout_ns / NSEC_PER_SEC,
		.tv_nsec = timeout_ns % NSEC_PER_SEC,
	};
	struct pollfd news = { .fd = fd, .events = POLLIN };

	if (!arrived)
		ppoll(&news, 1, timeout_ns < 0 ? NULL : &time, &waiting);
	return arrived;
}

void ending_raise(int number)
{
	sigset_t one;

	signal(number, SIG_DFL);
	sigemptyset(&one);
	sigaddset(&one, number);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	raise(number);
}

int64_t ending_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}
