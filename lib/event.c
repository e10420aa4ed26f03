// SPDX-License-Identifier: MIT
/*
 * Event descriptors: eventfds that poll() can wait for, fed by threads that sleep
 * on counters.
 *
 * A thread, the feeder, is started with the first descriptor and ends by itself
 * after the last one. It sleeps on the counters of up to 127 of them, and on a word
 * of its own that is changed with the list; for more there is another thread.
 *
 * All is under the process's lock, which fork() takes. The feeder reads counters
 * under it alone. It sleeps without: on a counter that was unmapped meanwhile, or
 * on what another mapping has there, until its own word, which has changed by
 * then, ends that.
 */
#define _GNU_SOURCE 1
#include "event.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "error.h"
#include "futex.h"
#include "lock.h"
#include "publisher.h"
#include "region.h"

struct feeder {
	LIST_ENTRY(feeder) entry;
	LIST_HEAD(, event) events;
	unsigned int count;
	_Atomic(uint32_t) changes; /* to the list */
};

struct event {
	LIST_ENTRY(event) entry;
	struct feeder *feeder;
	struct tshare_waiter *waiter;
	int fd;
	uint64_t reported; /* the newest generation that it was made readable for */
	bool gone;	   /* it was made readable since all publishers had exited */
};

static LIST_HEAD(, feeder) feeders = LIST_HEAD_INITIALIZER(feeders);

/*
 * The parent's threads aren't the child's, and its eventfds are the same objects: what
 * the child reads would be lost to the parent.
 */
static void after_fork_in_child(void)
{
	struct feeder *feeder;
	struct event *event;

	while ((feeder = LIST_FIRST(&feeders))) {
		while ((event = LIST_FIRST(&feeder->events))) {
			LIST_REMOVE(event, entry);
			event->waiter->event = NULL;
			close(event->fd);
			free(event);
		}
		LIST_REMOVE(feeder, entry);
		free(feeder);
	}
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork_in_child);
}

/* Can't fail: the eventfd's number is read long before it reaches 64 bits. */
static void make_readable(const struct event *event)
{
	eventfd_write(event->fd, 1);
}

static struct counter *counter_of(const struct event *event)
{
	return atomic_load(&event->waiter->region->generation.counter);
}

/* Makes it readable if there is news; returns the latest time of the next look. */
static int64_t event_update(struct event *event, uint64_t generation, bool woken)
{
	bool gone, news = generation > event->reported;
	int64_t due;

	gone = publisher_check(event->waiter->region, counter_of(event), clock_ns(), woken && !news,
			       &due);
	if (news || (gone && !event->gone))
		make_readable(event);
	event->reported = generation;
	event->gone = gone;
	return due;
}

/* Updates all, and lists what to sleep on; the deadline of that. */
static int64_t feeder_update(struct feeder *feeder, uint64_t woken, struct futex_word *words,
			     unsigned int *count)
{
	int64_t due, earliest = INT64_MAX;
	struct event *event;
	uint64_t generation;

	*count = 0;
	for (event = LIST_FIRST(&feeder->events); event; event = LIST_NEXT(event, entry)) {
		struct futex_word *word = &words[(*count)++];

		generation = newest(counter_of(event));
		*word = futex_shared(futex_half(counter_of(event)), generation);
		due = event_update(event, generation, word->address == woken);
		if (due < earliest)
			earliest = due;
	}
	words[(*count)++] = futex_private(&feeder->changes, atomic_load(&feeder->changes));
	return earliest;
}

static void *feeder_run(void *data)
{
	struct futex_word words[FUTEX_WORDS_MAX];
	struct feeder *feeder = data;
	unsigned int count;
	int64_t deadline;
	uint64_t woken = 0;
	int index;

	pthread_setname_np(pthread_self(), "tshare-events");
	for (;;) {
		tshare_lock();
		if (LIST_EMPTY(&feeder->events))
			break;
		deadline = feeder_update(feeder, woken, words, &count);
		tshare_unlock();
		index = futex_sleep(words, count, deadline);
		woken = index < 0 ? 0 : words[index].address;
	}
	LIST_REMOVE(feeder, entry);
	tshare_unlock();
	free(feeder);
	return NULL;
}

/* With all signals blocked: they are for the program's own threads. */
static int feeder_start(struct feeder *feeder)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	sigfillset(&all);
	err = pthread_attr_init(&attr);
	if (err)
		return -err;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, &attr, feeder_run, feeder);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}

/* Where a sleep is on one word alone, each counter takes a thread. */
static unsigned int feeder_capacity(void)
{
	return futex_sleeps_on_several() ? FUTEX_WORDS_MAX - 1 : 1;
}

static int feeder_new(struct feeder **feeder)
{
	struct feeder *new = calloc(1, sizeof(*new));
	int err;

	if (!new)
		return tshare_fail(-ENOMEM, "region: out of memory");
	LIST_INIT(&new->events);
	LIST_INSERT_HEAD(&feeders, new, entry);
	err = feeder_start(new);
	if (err) {
		LIST_REMOVE(new, entry);
		free(new);
		return tshare_fail(err, "region: the thread behind its descriptor: %s",
				   strerror(-err));
	}
	*feeder = new;
	return 0;
}

static int feeder_find(struct feeder **feeder)
{
	unsigned int capacity = feeder_capacity();

	for (*feeder = LIST_FIRST(&feeders); *feeder; *feeder = LIST_NEXT(*feeder, entry))
		if ((*feeder)->count < capacity)
			return 0;
	return feeder_new(feeder);
}

static void feeder_wake(struct feeder *feeder)
{
	atomic_fetch_add(&feeder->changes, 1);
	futex_wake_private(&feeder->changes);
}

static int event_new(struct tshare_waiter *waiter)
{
	struct event *event = calloc(1, sizeof(*event));
	int err;

	if (!event)
		return tshare_fail(-ENOMEM, "region: out of memory");
	event->waiter = waiter;
	event->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = event->fd < 0 ? tshare_fail(-errno, "region: eventfd: %s", strerror(errno)) :
			      feeder_find(&event->feeder);
	if (err) {
		if (event->fd >= 0)
			close(event->fd);
		free(event);
		return err;
	}
	LIST_INSERT_HEAD(&event->feeder->events, event, entry);
	event->feeder->count++;
	feeder_wake(event->feeder);
	waiter->event = event;
	if (atomic_load(&waiter->cancelled))
		make_readable(event);
	event_update(event, newest(counter_of(event)), true);
	return 0;
}

int event_get_fd(struct tshare_waiter *waiter, int *fd)
{
	int err = 0;

	tshare_lock();
	if (!waiter->event) {
		err = generation_map(waiter->region);
		if (!err)
			err = generation_prepare_to_ask(waiter->region);
		if (!err)
			err = event_new(waiter);
	}
	if (!err)
		*fd = waiter->event->fd;
	tshare_unlock();
	return err;
}

void event_signal(struct tshare_waiter *waiter)
{
	tshare_lock();
	if (waiter->event)
		make_readable(waiter->event);
	tshare_unlock();
}

void event_end(struct tshare_waiter *waiter)
{
	struct event *event;

	tshare_lock();
	event = waiter->event;
	if (event) {
		LIST_REMOVE(event, entry);
		event->feeder->count--;
		feeder_wake(event->feeder);
		close(event->fd);
		waiter->event = NULL;
	}
	tshare_unlock();
	free(event);
}
