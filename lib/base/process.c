// SPDX-License-Identifier: MIT
#include "base/process.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int cancel_state; /* that the holder had before */

static const struct process_hooks *joined[PROCESS_PARTS];

/* A thread that is cancelled under the lock, as in open(), would never release it. */
void process_lock(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&lock);
	cancel_state = state;
}

void process_unlock(void)
{
	int state = cancel_state;

	pthread_mutex_unlock(&lock);
	pthread_setcancelstate(state, &state);
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

static void after_fork_in_child(void)
{
	int part;

	for (part = 0; part < PROCESS_PARTS; part++)
		if (joined[part] && joined[part]->in_child)
			joined[part]->in_child();
	process_unlock();
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(process_lock, process_unlock, after_fork_in_child);
}

__attribute__((destructor)) static void exit_parts(void)
{
	int part;

	process_lock();
	for (part = PROCESS_PARTS - 1; part >= 0; part--)
		if (joined[part] && joined[part]->at_exit)
			joined[part]->at_exit();
	process_unlock();
}
