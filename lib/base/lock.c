// SPDX-License-Identifier: MIT
#include "base/lock.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int cancel_state; /* that the holder had before */

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

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(process_lock, process_unlock, process_unlock);
}
