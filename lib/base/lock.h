/* SPDX-License-Identifier: MIT */
/*
 * The process's lock: the library's global mutex.
 *
 * fork() takes it, so a child finds the lock free and every shared list complete.
 * Holders keep it briefly, and take no other lock of the library under it. A holder
 * can't be cancelled.
 */
#ifndef TSHARE_BASE_LOCK_H
#define TSHARE_BASE_LOCK_H

#include <pthread.h>

void process_lock(void);
void process_unlock(void);

/* Releases the lock until @condition is signalled under it. */
void process_lock_wait(pthread_cond_t *condition);

#endif /* TSHARE_BASE_LOCK_H */
