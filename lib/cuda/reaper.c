// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "cuda/reaper.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/process.h"
#include "base/thread.h"

/* Under the process's lock. The thread stays until the process ends. */
static STAILQ_HEAD(queue, reaped) queue = STAILQ_HEAD_INITIALIZER(queue);
static pthread_cond_t added = PTHREAD_COND_INITIALIZER;
static bool started;
static bool stopped;

/*
 * The parent's thread drops what was queued. The child's queue keeps it, so that leak checkers
 * find it in use. A child whose parent has used CUDA adds nothing.
 */
static void after_fork_in_child(void)
{
	added = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	started = false;
}

static const struct process_hooks hooks = { .in_child = after_fork_in_child };

static void *reaper_run(void *data)
{
	struct reaped *reaped;

	(void)data;
	pthread_setname_np(pthread_self(), "tshare-reaper");
	for (;;) {
		process_lock();
		while (stopped || STAILQ_EMPTY(&queue))
			process_lock_wait(&added);
		reaped = STAILQ_FIRST(&queue);
		STAILQ_REMOVE_HEAD(&queue, entry);
		process_unlock();
		reaped->drop(reaped);
	}
	return NULL;
}

int reaper_start(void)
{
	int err;

	if (started)
		return 0;
	process_join(PROCESS_REAPER, &hooks);
	err = thread_start(reaper_run, NULL);
	if (err)
		return fail(err, "region: the thread that drops it: %s", strerror(-err));
	started = true;
	return 0;
}

void reaper_add(struct reaped *reaped)
{
	STAILQ_INSERT_TAIL(&queue, reaped, entry);
	pthread_cond_signal(&added);
}

void reaper_stop(void)
{
	stopped = true;
}
