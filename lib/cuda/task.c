// SPDX-License-Identifier: MIT
#include "cuda/task.h"

#include "base/process.h"
#include "cuda/driver.h"
#include "cuda/wait.h"

/* Tasks that may be lost, and those that were: leak checkers find them in use. */
static LIST_HEAD(task_list, task) pending = LIST_HEAD_INITIALIZER(pending);
static struct task_list lost = LIST_HEAD_INITIALIZER(lost);

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

	if (task->lost)
		task->context = context_mark();
	stream_watch_exit();
	process_lock();
	err = reaper_start();
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

/*
 * With the process's lock held: a reference to the mark of one of the owner's tasks, if it is none
 * of @seen.
 */
static struct gate_page *find_context(const void *owner, struct gate_page *const *seen,
				      size_t count)
{
	struct task *task;
	size_t i;

	for (task = LIST_FIRST(&pending); task; task = LIST_NEXT(task, entry)) {
		if (task->owner != owner || !task->context)
			continue;
		for (i = 0; i < count && seen[i] != task->context; i++)
			;
		if (i < count)
			continue;
		context_mark_ref(task->context);
		return task->context;
	}
	return NULL;
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
	struct gate_page *seen[8];
	bool any = false;
	size_t i;

	for (i = 0; i < sizeof(seen) / sizeof(*seen); i++) {
		process_lock();
		seen[i] = find_context(owner, seen, i);
		process_unlock();
		if (!seen[i])
			break;
		if (!cuda_is_forked() && context_mark_is_lost(seen[i]))
			while (end_one(owner, seen[i]))
				any = true;
		process_lock();
		context_mark_unref(seen[i]);
		process_unlock();
	}
	return any;
}
