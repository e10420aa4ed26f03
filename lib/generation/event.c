// SPDX-License-Identifier: MIT
/*
 * Event descriptors: eventfds for poll(), which a feeder makes readable. The process's lock,
 * which fork() takes, protects them all.
 */
#include "generation/event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/process.h"
#include "generation/counter.h"
#include "generation/feeder.h"
#include "generation/publisher.h"
#include "region/object.h"

struct event {
	struct watch watch;
	int fd;
	uint64_t reported; /* the newest generation that it was made readable for */
	bool gone;	   /* it was made readable because all publishers had exited */
};

static struct event *event_of(struct watch *watch)
{
	return container_of(watch, struct event, watch);
}

/* Can't fail: the eventfd's count never reaches 64 bits. */
static void make_readable(const struct event *event)
{
	eventfd_write(event->fd, 1);
}

/* Makes the event readable if there is news. Returns the latest time of the next look. */
static int64_t event_look(struct watch *watch, uint64_t generation, enum watch_cause cause)
{
	struct event *event = event_of(watch);
	bool gone, news = generation > event->reported;
	int64_t due;

	if (cause == WATCH_CANCELLED) {
		make_readable(event);
		return INT64_MAX;
	}
	gone = publisher_check(watch->waiter->region, watch_counter(watch), clock_ns(),
			       cause == WATCH_WOKEN && !news, &due);
	if (news || (gone && !event->gone))
		make_readable(event);
	event->reported = generation;
	event->gone = gone;
	return due;
}

/* The eventfd is the parent's: what the child read from it would be lost to the parent. */
static void event_forked(struct watch *watch)
{
	struct event *event = event_of(watch);

	watch->waiter->event = NULL;
	close(event->fd);
	free(event);
}

static const struct watch_ops event_ops = { event_look, event_forked };

static void event_release(struct tshare_region *region)
{
	event_end(&region->generation.waiter);
}

static int event_new(struct tshare_waiter *waiter)
{
	struct event *event = calloc(1, sizeof(*event));
	int err;

	if (!event)
		return fail(-ENOMEM, "region: out of memory");
	event->watch.waiter = waiter;
	event->watch.ops = &event_ops;
	event->fd = fd_move_up(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	err = event->fd < 0 ? fail(-errno, "region: eventfd: %s", strerror(errno)) :
			      watch_start(&event->watch);
	if (err) {
		if (event->fd >= 0)
			close(event->fd);
		free(event);
		return err;
	}
	waiter->event = event;
	waiter->region->release[REGION_EVENT] = event_release;
	if (atomic_load(&waiter->cancelled))
		make_readable(event);
	event_look(&event->watch, newest(watch_counter(&event->watch)), WATCH_WOKEN);
	return 0;
}

int event_get_fd(struct tshare_waiter *waiter, int *fd)
{
	int err = 0;

	process_lock();
	if (!waiter->event)
		err = event_new(waiter);
	if (!err)
		*fd = waiter->event->fd;
	process_unlock();
	return err;
}

void event_end(struct tshare_waiter *waiter)
{
	struct event *event;

	process_lock();
	event = waiter->event;
	if (event) {
		watch_end(&event->watch);
		close(event->fd);
		waiter->event = NULL;
	}
	process_unlock();
	free(event);
}
