// SPDX-License-Identifier: MIT
/*
 * Frames and entries that a CUDA stream publishes, finishes or releases when it comes to that.
 *
 * It does so in a host function, which must not call CUDA. The last unref of a stream of frames, or
 * of a pool, does, since that unmaps the region. So each task has a reference of its own to that,
 * which the reaper drops: the references that the host function drops are never the last.
 *
 * A CUDA stream whose context has ended, or has had an error, calls no host functions. A call that
 * then finds no room, or may hold no more frames, gives up what was put on such streams.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/container.h"
#include "base/error.h"
#include "base/export.h"
#include "cuda/scope.h"
#include "cuda/task.h"
#include "lease/entry.h"
#include "lease/producer.h"
#include "lease/role.h"

/* Both @run and @lose drop a reference to the object, too. */
struct action {
	void (*run)(void *object);
	void (*lose)(void *object); /* as if CUDA had refused the call */
	void (*unref_home)(void *home);
};

struct action_task {
	struct task task;
	const struct action *action;
	void *object; /* a frame or an entry */
	void *home;   /* its stream or pool */
};

static void drop_task(struct reaped *reaped)
{
	struct action_task *task = container_of(reaped, struct action_task, task.reaped);

	task->action->unref_home(task->home);
	free(task);
}

static void run_task(struct task *task)
{
	const struct action_task *own = container_of(task, struct action_task, task);

	own->action->run(own->object);
}

static void lose_task(struct task *task)
{
	const struct action_task *own = container_of(task, struct action_task, task);

	own->action->lose(own->object);
	own->action->unref_home(own->home);
}

/* Takes over a reference to @home, also if it fails, and on success one to @object. */
static int put(const struct action *action, void *object, void *home, const void *owner,
	       const struct tshare_cuda_options *options, struct CUstream_st *stream)
{
	_cleanup_free_ struct action_task *task = malloc(sizeof(*task));
	struct cuda_scope scope;
	int err;

	err = task ? stream_enter(&scope, options, stream) : fail(-ENOMEM, "stream: out of memory");
	if (!err) {
		*task = (struct action_task){
			.task = {
				.run = run_task,
				.reaped.drop = drop_task,
				.lost = lose_task,
				.owner = owner,
			},
			.action = action,
			.object = object,
			.home = home,
		};
		err = task_put(&task->task, stream);
		cuda_leave(&scope);
	}
	if (err)
		action->unref_home(home);
	else
		(void)no_cleanup(task); /* now the CUDA stream's */
	return err;
}

/* Frames */

static void unref_stream(void *home)
{
	tshare_stream_unref(home);
}

static void publish_frame(void *object)
{
	producer_publish_queued(object);
	tshare_frame_unref(object);
}

static void release_frame(void *object)
{
	tshare_frame_unref(object);
}

static void lose_frame(void *object)
{
	producer_unqueue(object);
	tshare_frame_unref(object);
}

static const struct action publishing_frame = { publish_frame, lose_frame, unref_stream };
static const struct action releasing_frame = { release_frame, release_frame, unref_stream };

/* A consumer's frames count in all streams that it has followed. */
static const void *owner_of(const struct tshare_stream *stream)
{
	return stream->held ? (const void *)stream->held : stream;
}

static int put_frame(const struct action *action, struct tshare_frame *frame,
		     const struct tshare_cuda_options *options, struct CUstream_st *stream)
{
	struct tshare_stream *home = frame->stream;

	return put(action, frame, tshare_stream_ref(home), owner_of(home), options, stream);
}

TSHARE_EXPORT
int tshare_frame_publish_on(struct tshare_frame *frame, const struct tshare_cuda_options *options,
			    struct CUstream_st *stream)
{
	int err;

	err = producer_queue(frame);
	if (err)
		return err;
	err = put_frame(&publishing_frame, tshare_frame_ref(frame), options, stream);
	if (err)
		lose_frame(frame);
	return err;
}

TSHARE_EXPORT
int tshare_frame_release_on(struct tshare_frame *frame, const struct tshare_cuda_options *options,
			    struct CUstream_st *stream)
{
	if (seats_is_child(&frame->stream->seats))
		return role_fail_child();
	return put_frame(&releasing_frame, frame, options, stream);
}

/* Entries */

static void unref_pool(void *home)
{
	tshare_pool_unref(home);
}

static void finish_entry(void *object)
{
	entry_finish_queued(object);
	tshare_entry_unref(object);
}

static void release_entry(void *object)
{
	tshare_entry_unref(object);
}

static void lose_entry(void *object)
{
	entry_unqueue(object);
	tshare_entry_unref(object);
}

static const struct action finishing_entry = { finish_entry, lose_entry, unref_pool };
static const struct action releasing_entry = { release_entry, release_entry, unref_pool };

static int put_entry(const struct action *action, struct tshare_entry *entry,
		     const struct tshare_cuda_options *options, struct CUstream_st *stream)
{
	struct tshare_pool *home = entry->pool;

	return put(action, entry, tshare_pool_ref(home), home, options, stream);
}

TSHARE_EXPORT
int tshare_entry_finish_on(struct tshare_entry *entry, const struct tshare_cuda_options *options,
			   struct CUstream_st *stream)
{
	int err;

	err = entry_queue(entry);
	if (err)
		return err;
	err = put_entry(&finishing_entry, tshare_entry_ref(entry), options, stream);
	if (err)
		lose_entry(entry);
	return err;
}

TSHARE_EXPORT
int tshare_entry_release_on(struct tshare_entry *entry, const struct tshare_cuda_options *options,
			    struct CUstream_st *stream)
{
	int err = pool_check(entry->pool);

	return err ? err : put_entry(&releasing_entry, entry, options, stream);
}
