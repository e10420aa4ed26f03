// SPDX-License-Identifier: MIT
/*
 * Streams that wait.
 *
 * A stream waits for a gate, a word of page-locked memory that a feeder of this process writes to
 * when something was published, or when there is a reason to give up.
 *
 * A stream must never be left waiting: nobody could synchronise its device. So the code that
 * ends a wait records why, and then releases the gate.
 *
 * At exit() the library's handler runs before the driver's own, which was installed earlier,
 * and which may wait for streams.
 */
#include "cuda/wait.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/container.h"
#include "base/error.h"
#include "base/export.h"
#include "base/process.h"
#include "base/refcount.h"
#include "cuda/driver.h"
#include "cuda/reaper.h"
#include "cuda/scope.h"
#include "cuda/gate.h"
#include "generation/counter.h"
#include "generation/feeder.h"
#include "generation/waiter.h"
#include "region/object.h"

struct tshare_cuda_wait {
	atomic_uint refs; /* one of them its own, while it waits */

	/* Used until it ends, under the process's lock: */
	LIST_ENTRY(tshare_cuda_wait) entry;
	struct watch watch;
	struct tshare_region *region;
	struct tshare_waiter *waiter; /* NULL if it is the region's own */
	uint64_t seen;
	int64_t deadline;
	struct gate gate;
	struct reaped reaped;

	/* Written before @result is: */
	uint64_t generation;
	char reason[128];
	atomic_int result; /* -EINPROGRESS while it waits */
};

/* Under the process's lock. */
static LIST_HEAD(wait_list, tshare_cuda_wait) waits = LIST_HEAD_INITIALIZER(waits);
/* In a child: its parent's waits, so that leak checkers find them in use. */
static struct wait_list inherited = LIST_HEAD_INITIALIZER(inherited);
static bool exiting;

static int fail_exiting(void)
{
	return fail(-ECANCELED, "wait: the process exits");
}

static struct tshare_cuda_wait *wait_of(struct watch *watch)
{
	return container_of(watch, struct tshare_cuda_wait, watch);
}

static void drop_wait(struct reaped *reaped)
{
	struct tshare_cuda_wait *wait = container_of(reaped, struct tshare_cuda_wait, reaped);

	tshare_waiter_unref(wait->waiter);
	tshare_region_unref(wait->region);
	tshare_cuda_wait_unref(wait);
}

/*
 * With the process's lock held; the thread's error has the text of @reason. A new generation
 * takes precedence: the counter is read after @reason was found.
 */
static void wait_end(struct tshare_cuda_wait *wait, int reason)
{
	int result;

	wait->generation = newest(watch_counter(&wait->watch));
	result = wait->generation > wait->seen ? 0 : reason;
	if (result)
		snprintf(wait->reason, sizeof(wait->reason), "%s", tshare_error_get());
	/* Before the gate, so that the result is there when the stream goes on. */
	atomic_store(&wait->result, result);
	gate_release(&wait->gate);
	LIST_REMOVE(wait, entry);
	reaper_add(&wait->reaped);
}

static void wait_end_early(struct tshare_cuda_wait *wait, int reason)
{
	watch_end(&wait->watch);
	wait_end(wait, reason);
}

static int64_t wait_look(struct watch *watch, uint64_t generation, enum watch_cause cause)
{
	struct tshare_cuda_wait *wait = wait_of(watch);
	int64_t until;
	int reason = 0;

	if (generation <= wait->seen) {
		reason = waiter_find_reason(watch->waiter, watch_counter(watch), wait->deadline,
					    cause == WATCH_WOKEN, &until);
		if (!reason)
			return until;
	}
	wait_end(wait, reason);
	return WATCH_OVER;
}

/* The stream and the gate are the parent's. The child keeps the wait's references. */
static void wait_forked(struct watch *watch)
{
	struct tshare_cuda_wait *wait = wait_of(watch);

	LIST_REMOVE(wait, entry);
	LIST_INSERT_HEAD(&inherited, wait, entry);
	snprintf(wait->reason, sizeof(wait->reason), "wait: the stream is the parent's");
	atomic_store(&wait->result, -EOPNOTSUPP);
}

static const struct watch_ops wait_ops = { wait_look, wait_forked };

/* In the scope of the stream: begins the wait, which may be over on return. */
static int begin_wait(struct tshare_cuda_wait *wait, const struct cuda_scope *scope)
{
	struct watch *watch = &wait->watch;
	int err;

	if (!cuda_streams_wait_for_values(scope->device))
		return fail(-EOPNOTSUPP,
			    "stream: device %d, or its driver, can't have a stream wait for "
			    "memory",
			    scope->device);
	err = gate_take(&wait->gate);
	if (err)
		return cuda_fail(err, "stream: the memory that it waits for");
	stream_watch_exit();
	process_lock();
	err = exiting ? fail_exiting() : reaper_start();
	if (!err)
		err = watch_start(watch);
	if (err) {
		gate_release(&wait->gate);
		process_unlock();
		return err;
	}
	LIST_INSERT_HEAD(&waits, wait, entry);
	refcount_get(&wait->refs);
	tshare_region_ref(wait->region);
	if (wait->waiter)
		tshare_waiter_ref(wait->waiter);
	if (wait_look(watch, newest(watch_counter(watch)), WATCH_WOKEN) == WATCH_OVER)
		watch_end(watch);
	process_unlock();
	return 0;
}

/* A stream passes a wait that is over already. */
static int make_stream_wait(struct tshare_cuda_wait *wait, struct CUstream_st *stream)
{
	int err;

	err = cuda_stream_wait(stream, wait->gate.address, wait->gate.value);
	if (!err)
		return 0;
	err = cuda_fail(err, "stream");
	process_lock();
	if (atomic_load(&wait->result) == -EINPROGRESS)
		wait_end_early(wait, err);
	process_unlock();
	return err;
}

/* @own is NULL if @waiter is the region's. */
static int wait_on(struct tshare_waiter *waiter, struct tshare_waiter *own,
		   const struct tshare_cuda_options *options, struct CUstream_st *stream,
		   uint64_t seen, int64_t timeout_ns, struct tshare_cuda_wait **result)
{
	const int64_t deadline = clock_deadline(timeout_ns, clock_ns());
	struct tshare_cuda_wait *wait;
	struct cuda_scope scope;
	int err;

	err = waiter_check(waiter);
	if (!err)
		err = stream_enter(&scope, options, stream);
	if (err)
		return err;
	wait = malloc(sizeof(*wait));
	if (wait) {
		*wait = (struct tshare_cuda_wait){
			.watch = { .waiter = waiter, .ops = &wait_ops },
			.region = waiter->region,
			.waiter = own,
			.seen = seen,
			.deadline = deadline,
			.reaped.drop = drop_wait,
		};
		atomic_init(&wait->refs, 1);
		atomic_init(&wait->result, -EINPROGRESS);
		err = begin_wait(wait, &scope);
	} else {
		err = fail(-ENOMEM, "wait: out of memory");
	}
	if (!err)
		err = make_stream_wait(wait, stream);
	cuda_leave(&scope);
	if (err || !result)
		tshare_cuda_wait_unref(wait);
	else
		*result = wait;
	return err;
}

TSHARE_EXPORT
int tshare_region_wait_on(struct tshare_region *region, const struct tshare_cuda_options *options,
			  struct CUstream_st *stream, uint64_t seen, int64_t timeout_ns,
			  struct tshare_cuda_wait **wait)
{
	return wait_on(&region->generation.waiter, NULL, options, stream, seen, timeout_ns, wait);
}

TSHARE_EXPORT
int tshare_waiter_wait_on(struct tshare_waiter *waiter, const struct tshare_cuda_options *options,
			  struct CUstream_st *stream, uint64_t seen, int64_t timeout_ns,
			  struct tshare_cuda_wait **wait)
{
	return wait_on(waiter, waiter, options, stream, seen, timeout_ns, wait);
}

TSHARE_EXPORT
struct tshare_cuda_wait *tshare_cuda_wait_ref(struct tshare_cuda_wait *wait)
{
	refcount_get(&wait->refs);
	return wait;
}

TSHARE_EXPORT
struct tshare_cuda_wait *tshare_cuda_wait_unref(struct tshare_cuda_wait *wait)
{
	keep_errno();

	if (wait && refcount_put(&wait->refs))
		free(wait);
	return NULL;
}

TSHARE_EXPORT
void tshare_cuda_wait_cancel(struct tshare_cuda_wait *wait)
{
	process_lock();
	if (atomic_load(&wait->result) == -EINPROGRESS)
		wait_end_early(wait, wait_fail_cancelled());
	process_unlock();
}

TSHARE_EXPORT
int tshare_cuda_wait_get_result(const struct tshare_cuda_wait *wait, uint64_t *generation)
{
	int result = atomic_load(&wait->result);

	if (result == -EINPROGRESS)
		return fail(result, "wait: nothing was published yet");
	if (result)
		return fail(result, "%s", wait->reason);
	*generation = wait->generation;
	return 0;
}

/* Exit */

/* With the process's lock held. */
static void end_all_waits(void)
{
	struct tshare_cuda_wait *wait;

	exiting = true;
	while ((wait = LIST_FIRST(&waits)))
		wait_end_early(wait, fail_exiting());
}

TSHARE_EXPORT
void tshare_cuda_wait_shutdown(void)
{
	process_lock();
	end_all_waits();
	process_unlock();
}

/* Other threads may still begin waits, and streams publish. */
static void handle_exit(void)
{
	process_lock();
	reaper_stop();
	end_all_waits();
	process_unlock();
}

static pthread_once_t exit_handler = PTHREAD_ONCE_INIT;

static void install_exit_handler(void)
{
	atexit(handle_exit);
}

void stream_watch_exit(void)
{
	pthread_once(&exit_handler, install_exit_handler);
}
