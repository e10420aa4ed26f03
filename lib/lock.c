// SPDX-License-Identifier: MIT
#include "lock.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void tshare_lock(void)
{
	pthread_mutex_lock(&lock);
}

void tshare_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(tshare_lock, tshare_unlock, tshare_unlock);
}
