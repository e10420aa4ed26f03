/* SPDX-License-Identifier: MIT */
/* Threads of the library's own. */
#ifndef TSHARE_BASE_THREAD_H
#define TSHARE_BASE_THREAD_H

#include <pthread.h>

static inline void thread_restore_cancel_state(const int *state)
{
	pthread_setcancelstate(*state, NULL);
}

static inline int thread_disable_cancellation(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

/* Declares that the thread can't be cancelled from here to the end of the scope. */
#define no_cancellation()                                             \
	__attribute__((cleanup(thread_restore_cancel_state), unused)) \
	const int cancel_state_ = thread_disable_cancellation()

/*
 * Starts a thread that nobody joins. All signals are blocked in it: they are for the
 * program's own threads. 0, or a negative errno.
 */
int thread_start(void *(*run)(void *data), void *data);

/*
 * Starts up to @wanted such threads, which the caller joins, and stores them in @threads. Returns
 * how many: fewer, or none, if the system has no room for more.
 */
unsigned int threads_start(pthread_t *threads, unsigned int wanted, void *(*run)(void *data),
			   void *data);

#endif /* TSHARE_BASE_THREAD_H */
