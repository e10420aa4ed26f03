/* SPDX-License-Identifier: MIT */
/*
 * Tasks: what a stream does when it comes to it, by a host function, because a device's store
 * would wake no sleeper.
 */
#ifndef TSHARE_CUDA_TASK_H
#define TSHARE_CUDA_TASK_H

#include "cuda/reaper.h"

struct CUstream_st;

struct task {
	/*
	 * In a thread of the driver, once the stream has ended its earlier work; later work waits
	 * meanwhile. It must not call CUDA, as a region's last unref does.
	 */
	void (*run)(struct task *task);
	struct reaped reaped; /* dropped after that, in the reaper's thread, which may call CUDA */
};

/*
 * In the scope of a stream, and without a lock that @task->run takes: 0, or a negative errno with
 * a text, and then the task was not and will not be run. After an error that ends the stream's
 * context a task is neither run nor dropped.
 */
int task_put(struct task *task, struct CUstream_st *stream);

#endif /* TSHARE_CUDA_TASK_H */
