/* SPDX-License-Identifier: MIT */
/*
 * Watches of names. A thread that waits for a name sleeps on its watch. One thread of the library
 * wakes all watches of a process, with one instance of inotify(7).
 */
#ifndef TSHARE_BACKEND_SHM_WATCH_H
#define TSHARE_BACKEND_SHM_WATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "backend/shm/home.h"

struct shm_watch {
	LIST_ENTRY(shm_watch) entry;
	bool listed;   /* whether the waker finds it: not in a child of fork(), at first */
	int directory; /* inotify's watch descriptor, or -1: changes aren't reported */
	int maker;     /* the pipe of the draft that is waited for, see shm_watch_maker() */
	bool maker_watched;
	int64_t pause;		      /* until the next look, where changes aren't reported */
	_Atomic(uint32_t) changes;    /* the futex that the thread sleeps on */
	char file[SHM_HOME_NAME_LEN]; /* the name's home */
	int event;		      /* an eventfd that each change makes readable, or -1 */
	pthread_t thread;	      /* that began it */
};

void shm_watch_begin(struct shm_watch *watch, const char *name, int event);
void shm_watch_end(struct shm_watch *watch);

/*
 * Call this before each look, so that no change is missed between the look and the sleep. Returns
 * the number of changes so far, for shm_watch_sleep().
 */
uint32_t shm_watch_prepare(struct shm_watch *watch, int dir);

/*
 * Also wakes the watch when @maker, the pipe of a draft's maker, has lost its reader. The watch
 * owns the pipe. @maker is -ENOENT if there is no draft, or the error of opening the pipe.
 */
void shm_watch_maker(struct shm_watch *watch, int maker);

/* Whether changes wake the watch, and so does the end of the draft's maker, if there is a draft. */
bool shm_watch_is_woken(const struct shm_watch *watch);

/* Sleeps until another look may find something else: 0, -ETIMEDOUT or -EINTR. */
int shm_watch_sleep(struct shm_watch *watch, uint32_t changes, int64_t deadline);

#endif /* TSHARE_BACKEND_SHM_WATCH_H */
