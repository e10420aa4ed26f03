// SPDX-License-Identifier: MIT
#include "cuda/task.h"

#include "base/process.h"
#include "cuda/driver.h"
#include "cuda/wait.h"

/* Runs in a thread of the driver. task_put() has done what can fail. */
static void task_run(void *data)
{
	struct task *task = data;

	task->run(task);
	process_lock();
	reaper_add(&task->reaped);
	process_unlock();
}

int task_put(struct task *task, struct CUstream_st *stream)
{
	int err;

	stream_watch_exit();
	process_lock();
	err = reaper_start();
	process_unlock();
	if (err)
		return err;
	err = cuda_stream_call(stream, task_run, task);
	return err ? cuda_fail(err, "stream") : 0;
}
