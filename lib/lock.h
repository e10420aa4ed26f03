/* SPDX-License-Identifier: MIT */
/*
 * The process's lock: for what its threads share, and fork() has to find whole.
 *
 * fork() takes it, so that a child finds neither a lock that no thread of its
 * own holds nor half a change. It is held for short, and no other lock of the
 * library is taken under it. The holder can't be cancelled.
 */
#ifndef TSHARE_LOCK_H
#define TSHARE_LOCK_H

#include <pthread.h>

void tshare_lock(void);
void tshare_unlock(void);

/* Gives the lock up until @condition is signalled under it. */
void tshare_lock_wait(pthread_cond_t *condition);

#endif /* TSHARE_LOCK_H */
