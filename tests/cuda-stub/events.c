// SPDX-License-Identifier: MIT
/* Events: places on streams that others wait for. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "internal.h"

#define DISABLE_TIMING 2U

/* Never freed: a test may use a handle that is no event any more. */
struct event {
	LIST_ENTRY(event) entry;
	struct context *context; /* NULL when it has ended */
	bool destroyed;		 /* streams that were told to wait for it still do */
	uint64_t recorded;	 /* how often it was put on a stream */
	uint64_t reached;	 /* the last of those that a stream has come to */
};

static LIST_HEAD(, event) events = LIST_HEAD_INITIALIZER(events);

/* Control */

void events_end(const struct context *context)
{
	struct event *event;

	LIST_FOREACH(event, &events, entry)
	if (event->context == context)
		event->context = NULL;
}

void events_reset(void)
{
	struct event *event;

	LIST_FOREACH(event, &events, entry)
	event->context = NULL;
}

void events_left(char *text, size_t size)
{
	struct event *event;

	LIST_FOREACH(event, &events, entry)
	if (event->context && !event->destroyed)
		snprintf(text, size, "an event");
}

/* Events */

/* As an error of the driver's, or what it would die of. */
static int check_event(const struct event *handle)
{
	const struct event *event;

	LIST_FOREACH(event, &events, entry)
	if (event == handle && event->context && !event->destroyed)
		return SUCCESS;
	complain("%p is no event", (const void *)handle);
	return INVALID_HANDLE;
}

EXPORT int cuEventCreate(struct event **result, unsigned int flags)
{
	struct event *event;

	BEGIN(cuEventCreate, CONTEXT);
	if (flags & ~DISABLE_TIMING)
		return end(INVALID_VALUE);
	event = calloc(1, sizeof(*event));
	if (!event)
		abort();
	event->context = current();
	LIST_INSERT_HEAD(&events, event, entry);
	*result = event;
	return end(SUCCESS);
}

EXPORT int cuEventDestroy_v2(struct event *event)
{
	int result;

	BEGIN(cuEventDestroy, CONTEXT);
	result = check_event(event);
	if (!result)
		event->destroyed = true;
	return end(result);
}

static bool reach(const struct work *work)
{
	((struct event *)work->data)->reached = work->value;
	return true;
}

EXPORT int cuEventRecord(struct event *event, struct stream *stream)
{
	int result;

	BEGIN(cuEventRecord, CONTEXT);
	result = check_event(event);
	if (result)
		return end(result);
	if (event->context != current())
		return end(INVALID_HANDLE);
	result = streams_put(stream, (struct work){
					     .done = reach,
					     .data = event,
					     .value = event->recorded + 1,
				     });
	event->recorded += !result;
	return end(result);
}

static bool is_reached(const struct work *work)
{
	const struct event *event = work->data;

	return !event->context || event->reached >= work->value;
}

EXPORT int cuStreamWaitEvent(struct stream *stream, struct event *event, unsigned int flags)
{
	int result;

	BEGIN(cuStreamWaitEvent, CONTEXT);
	if (flags)
		return end(INVALID_VALUE);
	result = check_event(event);
	if (!result)
		result = streams_put(stream, (struct work){
						     .done = is_reached,
						     .data = event,
						     .value = event->recorded,
					     });
	return end(result);
}

EXPORT int cuEventQuery(struct event *event)
{
	int result;

	BEGIN(cuEventQuery, CONTEXT);
	result = check_event(event);
	if (!result && event->reached < event->recorded)
		result = NOT_READY;
	return end(result);
}
