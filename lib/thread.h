/* SPDX-License-Identifier: MIT */
/* Threads of the library's own. */
#ifndef TSHARE_THREAD_H
#define TSHARE_THREAD_H

#include <pthread.h>

/*
 * Starts a thread that nobody joins. All signals are blocked in it: they are for the
 * program's own threads. 0, or a negative errno.
 */
int thread_start(void *(*run)(void *data), void *data);

/*
 * Starts up to @wanted such threads, which the caller joins, and stores them in @threads. Returns
 * how many there are: fewer, or none, where the system has no room for more.
 */
unsigned int threads_start(pthread_t *threads, unsigned int wanted, void *(*run)(void *data),
			   void *data);

#endif /* TSHARE_THREAD_H */
