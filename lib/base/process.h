/* SPDX-License-Identifier: MIT */
/* The process: the library's lock, and what the library does when the process forks or exits. */
#ifndef TSHARE_BASE_PROCESS_H
#define TSHARE_BASE_PROCESS_H

#include <pthread.h>

/*
 * The process's lock: the library's global mutex.
 *
 * fork() takes it, so a child finds the lock free and every shared list complete. In a signal
 * handler that has interrupted the holder, fork() and exit() leave the lock and the parts alone.
 * Holders keep it briefly, and take no other lock of the library under it. A holder
 * can't be cancelled.
 */
void process_lock(void);
void process_unlock(void);

/* Releases the lock until @condition is signalled under it. */
void process_lock_wait(pthread_cond_t *condition);

/*
 * The parts of the library that have state of the process's, from the bottom up. In a child of
 * fork() their hooks run in this order, so a part finds those below it in a state that it can
 * use. At exit() they run in the opposite order, so a part still has those below it: publishers
 * end, and wake waiters, before the names of their regions go.
 */
enum process_part {
	PROCESS_SHM_WATCHES,
	PROCESS_SHM_USERS,
	PROCESS_SHM_SESSIONS,
	PROCESS_LOG,
	PROCESS_PUBLISHERS,
	PROCESS_FEEDERS,
	PROCESS_SEATS,
	PROCESS_CUDA,
	PROCESS_CUDA_MEMORY,
	PROCESS_REGISTRATIONS,
	PROCESS_REAPER,
	PROCESS_PARTS
};

/* Called with the lock held; NULL for nothing. */
struct process_hooks {
	void (*in_child)(void);
	void (*at_exit)(void);
};

/* With the lock held, before @part has any such state; again without effect. */
void process_join(enum process_part part, const struct process_hooks *hooks);

#endif /* TSHARE_BASE_PROCESS_H */
