// SPDX-License-Identifier: MIT
#include "cuda/task.h"

#include <stdatomic.h>

#include "base/process.h"
#include "cuda/driver.h"
#include "cuda/wait.h"

/* Tasks that may be lost, and those that were: leak checkers find them in use. */
static LIST_HEAD(task_list, task) pending = LIST_HEAD_INITIALIZER(pending);
static struct task_list lost = LIST_HEAD_INITIALIZER(lost);

static atomic_bool were_put;

/* Calls of tasks_end_lost() so far. None asks for the context of a task that is newer than it. */
static uint64_t calls;

/* With the process's lock held: whether the caller is the one to end the task. */
static bool task_claim(struct task *task)
{
	if (task->over)
		return false;
	task->over = true;
	if (task->lost) {
		LIST_REMOVE(task, entry);
		context_mark_unref(task->context);
	}
	return true;
}

/* Runs in a thread of the driver. task_put() has done what can fail. */
static void task_run(void *data)
{
	struct task *task = data;
	bool claimed;

	process_lock();
	claimed = task_claim(task);
	process_unlock();
	if (!claimed)
		return;
	task->run(task);
	process_lock();
	reaper_add(&task->reaped);
	process_unlock();
}

int task_put(struct task *task, struct CUstream_st *stream)
{
	bool claimed;
	int err;

	if (task->lost) {
		task->context = context_mark();
		atomic_store_explicit(&were_put, true, memory_order_relaxed);
	}
	stream_watch_exit();
	process_lock();
	err = reaper_start();
	task->asked = calls;
	if (!err && task->lost)
		LIST_INSERT_HEAD(&pending, task, entry);
	else
		context_mark_unref(task->context);
	process_unlock();
	if (err)
		return err;
	err = cuda_stream_call(stream, task_run, task);
	if (!err)
		return 0;
	process_lock();
	claimed = task_claim(task);
	process_unlock();
	/* Else it was given up as lost meanwhile, with its context. */
	return claimed ? cuda_fail(err, "stream") : 0;
}

bool tasks_were_put(void)
{
	return atomic_load_explicit(&were_put, memory_order_relaxed);
}

/*
 * With the process's lock held: a reference to a mark that one of the owner's tasks has, and none
 * that this call of tasks_end_lost() has had; NULL for none.
 */
static struct gate_page *next_context(const void *owner, uint64_t call)
{
	struct gate_page *context = NULL;
	struct task *task;

	for (task = LIST_FIRST(&pending); task; task = LIST_NEXT(task, entry)) {
		if (task->owner != owner || !task->context || task->asked >= call)
			continue;
		if (!context) {
			context = task->context;
			context_mark_ref(context);
		}
		if (task->context == context)
			task->asked = call;
	}
	return context;
}

/* Ends one task of the owner's in the context. The next may go meanwhile, as the lock is free. */
static bool end_one(const void *owner, const struct gate_page *context)
{
	struct task *task;

	process_lock();
	for (task = LIST_FIRST(&pending); task; task = LIST_NEXT(task, entry))
		if (task->owner == owner && task->context == context && task_claim(task))
			break;
	if (task)
		LIST_INSERT_HEAD(&lost, task, entry);
	process_unlock();
	if (task)
		task->lost(task);
	return task;
}

bool tasks_end_lost(const void *owner)
{
	struct gate_page *context;
	uint64_t call = 0;
	bool any = false;

	for (;;) {
		process_lock();
		call = call ? call : ++calls;
		context = next_context(owner, call);
		process_unlock();
		if (!context)
			return any;
		if (!cuda_is_forked() && context_mark_is_lost(context))
			while (end_one(owner, context))
				any = true;
		process_lock();
		context_mark_unref(context);
		process_unlock();
	}
}
