// SPDX-License-Identifier: MIT
#include "base/thread.h"

#include <signal.h>

int thread_start(void *(*run)(void *data), void *data)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	sigfillset(&all);
	err = pthread_attr_init(&attr);
	if (err)
		return -err;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, &attr, run, data);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}

unsigned int threads_start(pthread_t *threads, unsigned int wanted, void *(*run)(void *data),
			   void *data)
{
	unsigned int started = 0;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (started < wanted && !pthread_create(&threads[started], NULL, run, data))
		started++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}
