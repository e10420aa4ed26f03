// SPDX-License-Identifier: MIT
/*
 * Streams: work that is done in its order, each stream's by a thread.
 *
 * They are stricter than the driver's: a default stream has no order with others; work on a
 * context that has ended is dropped; and the process can't exit before all work is done,
 * which a driver may wait for.
 */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#define LEGACY	   ((struct stream *)1)
#define PER_THREAD ((struct stream *)2)

/* How long the process may take to end the work of its streams when it exits. */
#define EXIT_SECONDS 20

/* Never freed: a test may use a handle that is no stream any more. */
struct stream {
	LIST_ENTRY(stream) entry;
	STAILQ_HEAD(, work) queue; /* its first is being done */
	struct context *context;   /* NULL when it has ended */
	struct stream *handle;	   /* LEGACY, PER_THREAD, or itself */
	bool started;
	bool capturing;
};

static LIST_HEAD(, stream) streams = LIST_HEAD_INITIALIZER(streams);
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static _Thread_local bool calling;

/* Modes of capture, of which a thread has one */
enum { GLOBAL, THREAD_LOCAL, RELAXED };
static _Thread_local int capture_mode = GLOBAL;

bool in_host_function(void)
{
	return calling;
}

bool capture_forbids(void)
{
	const struct stream *stream;

	if (capture_mode == RELAXED)
		return false;
	LIST_FOREACH(stream, &streams, entry)
	if (stream->context && stream->capturing)
		return true;
	return false;
}

/* Control */

static void end_stream(struct stream *stream)
{
	stream->context = NULL;
	pthread_cond_broadcast(&changed);
}

void streams_end(const struct context *context)
{
	struct stream *stream;

	LIST_FOREACH(stream, &streams, entry)
	if (stream->context == context)
		end_stream(stream);
}

void streams_reset(void)
{
	struct stream *stream;

	LIST_FOREACH(stream, &streams, entry)
	end_stream(stream);
}

static unsigned int count_busy(void)
{
	unsigned int count = 0;
	struct stream *stream;

	LIST_FOREACH(stream, &streams, entry)
	count += stream->context && !STAILQ_EMPTY(&stream->queue);
	return count;
}

unsigned int stub_busy(void)
{
	unsigned int count;

	pthread_mutex_lock(&lock);
	count = count_busy();
	pthread_mutex_unlock(&lock);
	return count;
}

void streams_left(char *text, size_t size)
{
	unsigned int count = count_busy();

	if (count)
		snprintf(text, size, "work on %u streams", count);
}

static struct stream *find_stream(struct stream *handle, const struct context *context);

void stub_set_capturing(void *handle, bool capturing)
{
	pthread_mutex_lock(&lock);
	find_stream(handle, current())->capturing = capturing;
	pthread_mutex_unlock(&lock);
}

/* Doing the work */

static void pause_briefly(void)
{
	const struct timespec pause = { .tv_nsec = 50000 };

	pthread_mutex_unlock(&lock);
	nanosleep(&pause, NULL);
	pthread_mutex_lock(&lock);
}

static bool value_is_reached(const struct work *work)
{
	struct pointed pointed;
	const uint64_t *word;

	if (!registered_find(work->address, &pointed)) {
		complain("a stream waits for %#llx, which is not registered",
			 (unsigned long long)work->address);
		return true;
	}
	word = (const uint64_t *)pointed.host;
	return (int64_t)(__atomic_load_n(word, __ATOMIC_ACQUIRE) - work->value) >= 0;
}

static void call_function(const struct work *work)
{
	pthread_mutex_unlock(&lock);
	calling = true;
	work->function(work->data);
	calling = false;
	pthread_mutex_lock(&lock);
}

static void *run_stream(void *data)
{
	struct stream *stream = data;
	struct work *work;

	pthread_mutex_lock(&lock);
	while (stream->context) {
		work = STAILQ_FIRST(&stream->queue);
		if (!work) {
			pthread_cond_wait(&changed, &lock);
			continue;
		}
		if (work->function)
			call_function(work);
		while (!work->function && stream->context && !work->done(work))
			pause_briefly();
		STAILQ_REMOVE_HEAD(&stream->queue, entry);
		free(work);
		pthread_cond_broadcast(&changed);
	}
	while ((work = STAILQ_FIRST(&stream->queue))) {
		STAILQ_REMOVE_HEAD(&stream->queue, entry);
		free(work);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* Installed by cuInit(), as the driver installs handlers of its own. */
void streams_await_exit(void)
{
	time_t until = time(NULL) + EXIT_SECONDS;

	if (getpid() != atomic_load(&initialised_by))
		return;
	pthread_mutex_lock(&lock);
	while (count_busy()) {
		if (time(NULL) >= until) {
			fprintf(stderr, "stub: streams wait for ever at exit\n");
			_exit(99);
		}
		pause_briefly();
	}
	pthread_mutex_unlock(&lock);
}

/* Streams */

static struct stream *new_stream(struct stream *handle, struct context *context)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		abort();
	STAILQ_INIT(&stream->queue);
	stream->context = context;
	stream->handle = handle ? handle : stream;
	LIST_INSERT_HEAD(&streams, stream, entry);
	return stream;
}

/* NULL for what is no stream. Each context has its own default streams. */
static struct stream *find_stream(struct stream *handle, const struct context *context)
{
	bool is_default = handle == LEGACY || handle == PER_THREAD;
	struct stream *stream;

	LIST_FOREACH(stream, &streams, entry)
	if (stream->handle == handle && stream->context &&
	    (!is_default || stream->context == context))
		return stream;
	if (is_default && context)
		return new_stream(handle, (struct context *)context);
	return NULL;
}

/* As an error of the driver's, or what it would die of. */
static int take_stream(struct stream *handle, struct stream **stream)
{
	*stream = find_stream(handle, current());
	if (*stream)
		return SUCCESS;
	complain("%p is no stream", (void *)handle);
	return INVALID_HANDLE;
}

/* The same for what is put on it, which takes the stream's own context. */
static int take_stream_for_work(struct stream *handle, struct stream **stream)
{
	int result = take_stream(handle, stream);

	if (result)
		return result;
	if ((*stream)->context != current()) {
		complain("work for a stream of another context");
		return INVALID_HANDLE;
	}
	if ((*stream)->capturing)
		complain("work for a stream that is captured");
	return SUCCESS;
}

static int put_work(struct stream *stream, struct work work)
{
	struct work *copy = malloc(sizeof(*copy));
	pthread_t thread;

	if (!copy)
		abort();
	*copy = work;
	STAILQ_INSERT_TAIL(&stream->queue, copy, entry);
	if (!stream->started) {
		if (pthread_create(&thread, NULL, run_stream, stream))
			abort();
		pthread_detach(thread);
		stream->started = true;
	}
	pthread_cond_broadcast(&changed);
	return SUCCESS;
}

int streams_put(struct stream *handle, struct work work)
{
	struct stream *stream;
	int result = take_stream_for_work(handle, &stream);

	return result ? result : put_work(stream, work);
}

bool streams_use(uint64_t start, size_t bytes)
{
	struct stream *stream;
	struct work *work;

	LIST_FOREACH(stream, &streams, entry)
	STAILQ_FOREACH(work, &stream->queue, entry)
	if (stream->context && work->bytes &&
	    ((work->address < start + bytes && start < work->address + work->bytes) ||
	     (work->source < start + bytes && start < work->source + work->bytes)))
		return true;
	return false;
}

EXPORT int cuStreamCreate(struct stream **stream, unsigned int flags)
{
	BEGIN(cuStreamCreate, CONTEXT);
	if (flags > 1)
		return end(INVALID_VALUE);
	*stream = new_stream(NULL, current());
	return end(SUCCESS);
}

EXPORT int cuStreamDestroy_v2(struct stream *handle)
{
	struct stream *stream;
	int result;

	BEGIN(cuStreamDestroy, CONTEXT);
	result = take_stream(handle, &stream);
	if (result || handle != stream)
		return end(INVALID_HANDLE);
	while (stream->context && !STAILQ_EMPTY(&stream->queue))
		pthread_cond_wait(&changed, &lock);
	end_stream(stream);
	return end(SUCCESS);
}

EXPORT int cuStreamSynchronize(struct stream *handle)
{
	struct stream *stream;
	int result;

	BEGIN(cuStreamSynchronize, CONTEXT);
	result = take_stream(handle, &stream);
	if (result)
		return end(result);
	while (stream->context && !STAILQ_EMPTY(&stream->queue))
		pthread_cond_wait(&changed, &lock);
	return end(stream->context ? SUCCESS : CONTEXT_IS_DESTROYED);
}

EXPORT int cuStreamQuery(struct stream *handle)
{
	struct stream *stream;
	int result;

	BEGIN(cuStreamQuery, CONTEXT);
	result = take_stream(handle, &stream);
	if (result)
		return end(result);
	return end(STAILQ_EMPTY(&stream->queue) ? SUCCESS : NOT_READY);
}

EXPORT int cuStreamGetCtx(struct stream *handle, struct context **context)
{
	struct stream *stream;
	int result;

	BEGIN(cuStreamGetCtx, INIT);
	result = take_stream(handle, &stream);
	if (!result)
		*context = stream->context;
	return end(result);
}

EXPORT int cuStreamIsCapturing(struct stream *handle, int *status)
{
	struct stream *stream;
	int result;

	BEGIN(cuStreamIsCapturing, CONTEXT);
	result = take_stream(handle, &stream);
	if (!result)
		*status = stream->capturing;
	return end(result);
}

EXPORT int cuThreadExchangeStreamCaptureMode(int *mode)
{
	int before = capture_mode;

	BEGIN(cuThreadExchangeStreamCaptureMode, INIT);
	if (*mode < GLOBAL || *mode > RELAXED)
		return end(INVALID_VALUE);
	capture_mode = *mode;
	*mode = before;
	return end(SUCCESS);
}

EXPORT int cuLaunchHostFunc(struct stream *handle, void (*function)(void *data), void *data)
{
	BEGIN(cuLaunchHostFunc, CONTEXT);
	return end(streams_put(handle, (struct work){ .function = function, .data = data }));
}

EXPORT int cuStreamWaitValue64_v2(struct stream *handle, unsigned long long address, uint64_t value,
				  unsigned int flags)
{
	struct pointed pointed;
	struct stream *stream;
	int result;

	BEGIN(cuStreamWaitValue64, CONTEXT);
	result = take_stream_for_work(handle, &stream);
	if (result)
		return end(result);
	if (!device_attribute(current()->device, ATTRIBUTE_STREAM_VALUES))
		return end(NOT_SUPPORTED);
	if (flags || address % sizeof(uint64_t) || !registered_find(address, &pointed) ||
	    address != pointed.address)
		return end(INVALID_VALUE);
	return end(put_work(stream, (struct work){
					    .done = value_is_reached,
					    .address = address,
					    .value = value,
				    }));
}
