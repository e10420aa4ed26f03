// SPDX-License-Identifier: MIT
#include "base/process.h"

#include <signal.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int cancel_state; /* that the holder had before */

static const struct process_hooks *joined[PROCESS_PARTS];

/*
 * How often the thread has, takes or releases the lock: more than once if a signal handler forks
 * meanwhile. Set before the lock is taken, so that no handler finds it taken and this 0.
 */
static _Thread_local volatile sig_atomic_t depth;

/* A thread that is cancelled under the lock, as in open(), would never release it. */
void process_lock(void)
{
	int state;

	depth++;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&lock);
	cancel_state = state;
}

void process_unlock(void)
{
	int state = cancel_state;

	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(state, &state);
	depth--;
}

void process_lock_wait(pthread_cond_t *condition)
{
	int state = cancel_state;

	pthread_cond_wait(condition, &lock);
	cancel_state = state;
}

void process_join(enum process_part part, const struct process_hooks *hooks)
{
	joined[part] = hooks;
}

/*
 * In a signal handler the thread may have the lock, and would wait for itself. The child then finds
 * what a call was changing, and no part touches it: such a child only executes a program or ends.
 */
static void before_fork(void)
{
	if (depth)
		depth++;
	else
		process_lock();
}

static void after_fork(void)
{
	if (depth > 1)
		depth--;
	else
		process_unlock();
}

static void after_fork_in_child(void)
{
	int part;

	for (part = 0; depth == 1 && part < PROCESS_PARTS; part++)
		if (joined[part] && joined[part]->in_child)
			joined[part]->in_child();
	after_fork();
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

__attribute__((destructor)) static void exit_parts(void)
{
	int part;

	/* A handler that calls exit(): see before_fork(). Other processes remove what is left. */
	if (depth)
		return;
	process_lock();
	for (part = PROCESS_PARTS - 1; part >= 0; part--)
		if (joined[part] && joined[part]->at_exit)
			joined[part]->at_exit();
	process_unlock();
}
