/* SPDX-License-Identifier: MIT */
/*
 * Tasks: what a stream does when it comes to it, by a host function, because a device's store
 * would wake no sleeper.
 */
#ifndef TSHARE_CUDA_TASK_H
#define TSHARE_CUDA_TASK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "cuda/gate.h"
#include "cuda/reaper.h"

struct CUstream_st;

struct task {
	/*
	 * In a thread of the driver, once the stream has ended its earlier work; later work waits
	 * meanwhile. It must not call CUDA, as a region's last unref does.
	 */
	void (*run)(struct task *task);
	struct reaped reaped; /* dropped after that, in the reaper's thread, which may call CUDA */

	/*
	 * For tasks_end_lost(), unless @lost is NULL: in place of @run and @reaped, in the thread
	 * of that call. The task's own memory stays, since the driver might still have it.
	 */
	void (*lost)(struct task *task);
	const void *owner;

	/* The wing's own, under the process's lock. */
	LIST_ENTRY(task) entry;
	struct gate_page *context; /* a mark; NULL for none */
	uint64_t asked;		   /* the last call of tasks_end_lost() that asked for it */
	bool over;		   /* it runs, or is lost */
};

/*
 * In the scope of a stream, and without a lock that @task->run takes: 0, or a negative errno with
 * a text, and then the task was not and will not be run. After an error that ends the stream's
 * context a task isn't run.
 */
int task_put(struct task *task, struct CUstream_st *stream);

/* Whether there ever was a task that may be lost. */
bool tasks_were_put(void);

/*
 * Without locks: gives up the owner's tasks whose context has ended, or runs nothing after an error.
 * Returns whether there were any.
 */
bool tasks_end_lost(const void *owner);

#endif /* TSHARE_CUDA_TASK_H */
