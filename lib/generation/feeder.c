// SPDX-License-Identifier: MIT
/*
 * The first watch starts a feeder, which ends some time after the last watch has ended. It
 * sleeps on the counters of up to 127 watches, and on a word of its own, which changes with
 * the list. More watches get another feeder. If the kernel can only sleep on one word, all
 * watches of a feeder are on one counter, which it sleeps on.
 *
 * It reads counters only under the process's lock, but sleeps without it. So the counter may
 * be unmapped meanwhile, and another mapping take its place. The feeder's own word has then
 * changed, too, which ends the sleep.
 */
#define _GNU_SOURCE 1
#include "generation/feeder.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/futex.h"
#include "base/process.h"
#include "base/thread.h"
#include "generation/counter.h"
#include "generation/publisher.h"
#include "region/object.h"

/*
 * How long a feeder without watches stays. A stream's waits often follow one another, and
 * starting a thread takes as long as the rest of a wait.
 */
#define IDLE_NS (NSEC_PER_SEC / 10)

struct feeder {
	LIST_ENTRY(feeder) entry;
	LIST_HEAD(, watch) watches;
	unsigned int count;
	int64_t idle_since;	   /* when the last watch ended */
	_Atomic(uint32_t) changes; /* to the list */
};

static LIST_HEAD(, feeder) feeders = LIST_HEAD_INITIALIZER(feeders);

/* The child lacks the feeders' threads. */
static void after_fork_in_child(void)
{
	struct feeder *feeder;
	struct watch *watch;

	while ((feeder = LIST_FIRST(&feeders))) {
		while ((watch = LIST_FIRST(&feeder->watches))) {
			LIST_REMOVE(watch, entry);
			LIST_REMOVE(watch, of_waiter);
			watch->ops->forked(watch);
		}
		LIST_REMOVE(feeder, entry);
		free(feeder);
	}
}

static const struct process_hooks hooks = { .in_child = after_fork_in_child };

struct counter *watch_counter(const struct watch *watch)
{
	return atomic_load(&watch->waiter->region->generation.counter);
}

static void take_off(struct watch *watch)
{
	LIST_REMOVE(watch, entry);
	LIST_REMOVE(watch, of_waiter);
	if (!--watch->feeder->count)
		watch->feeder->idle_since = clock_ns();
}

/* Looks at all watches, and lists the words to sleep on. Returns the deadline, or WATCH_OVER. */
static int64_t feeder_look(struct feeder *feeder, uint64_t woken, struct futex_word *words,
			   unsigned int *count)
{
	int64_t due, earliest = INT64_MAX, begin = clock_ns();
	struct watch *watch, *next;
	struct futex_word word;
	uint64_t generation;

	*count = 0;
	for (watch = LIST_FIRST(&feeder->watches); watch; watch = next) {
		next = LIST_NEXT(watch, entry);
		generation = newest(watch_counter(watch));
		word = futex_shared(futex_half(watch_counter(watch)), generation);
		due = watch->ops->look(
			watch, generation,
			word.address == woken && !publisher_was_seen(watch->waiter->region, begin) ?
				WATCH_WOKEN :
				WATCH_DUE);
		if (due == WATCH_OVER) {
			take_off(watch);
			continue;
		}
		words[(*count)++] = word;
		if (due < earliest)
			earliest = due;
	}
	words[(*count)++] = futex_private(&feeder->changes, atomic_load(&feeder->changes));
	if (feeder->count)
		return earliest;
	earliest = feeder->idle_since + IDLE_NS;
	return clock_ns() < earliest ? earliest : WATCH_OVER;
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
		process_lock();
		deadline = feeder_look(feeder, woken, words, &count);
		if (deadline == WATCH_OVER)
			break;
		process_unlock();
		index = futex_sleep(words, count, deadline);
		woken = index < 0 ? 0 : words[index].address;
	}
	LIST_REMOVE(feeder, entry);
	process_unlock();
	free(feeder);
	return NULL;
}

static int feeder_new(struct feeder **feeder)
{
	struct feeder *new = calloc(1, sizeof(*new));
	int err;

	if (!new)
		return fail(-ENOMEM, "region: out of memory");
	process_join(PROCESS_FEEDERS, &hooks);
	LIST_INIT(&new->watches);
	LIST_INSERT_HEAD(&feeders, new, entry);
	err = thread_start(feeder_run, new);
	if (err) {
		LIST_REMOVE(new, entry);
		free(new);
		return fail(err, "region: the thread that watches it: %s", strerror(-err));
	}
	*feeder = new;
	return 0;
}

static int feeder_find(struct watch *watch)
{
	bool several = futex_sleeps_on_several();
	struct feeder *feeder;
	struct watch *first;

	for (feeder = LIST_FIRST(&feeders); feeder; feeder = LIST_NEXT(feeder, entry)) {
		first = LIST_FIRST(&feeder->watches);
		if (first && !several && watch_counter(first) != watch_counter(watch))
			continue;
		if (feeder->count == FUTEX_WORDS_MAX - 1)
			continue;
		watch->feeder = feeder;
		return 0;
	}
	return feeder_new(&watch->feeder);
}

static void feeder_wake(const struct watch *watch)
{
	atomic_fetch_add(&watch->feeder->changes, 1);
	futex_wake_private(&watch->feeder->changes);
	if (!futex_sleeps_on_several())
		futex_wake_shared(futex_half(watch_counter(watch)));
}

int watch_start(struct watch *watch)
{
	struct tshare_region *region = watch->waiter->region;
	int err;

	err = counter_map(region);
	if (!err)
		err = counter_prepare_to_ask(region);
	if (!err)
		err = feeder_find(watch);
	if (err)
		return err;
	LIST_INSERT_HEAD(&watch->feeder->watches, watch, entry);
	LIST_INSERT_HEAD(&watch->waiter->watches, watch, of_waiter);
	watch->feeder->count++;
	feeder_wake(watch);
	return 0;
}

void watch_end(struct watch *watch)
{
	take_off(watch);
	feeder_wake(watch);
}

void watches_cancel(struct tshare_waiter *waiter)
{
	struct watch *watch, *next;

	process_lock();
	for (watch = LIST_FIRST(&waiter->watches); watch; watch = next) {
		next = LIST_NEXT(watch, of_waiter);
		if (watch->ops->look(watch, newest(watch_counter(watch)), WATCH_CANCELLED) ==
		    WATCH_OVER)
			watch_end(watch);
	}
	process_unlock();
}
