/* SPDX-License-Identifier: MIT */
/*
 * Feeders: threads that look at regions' counters whenever these change, for waiters that
 * can't sleep on a counter, such as poll() and a GPU's streams.
 *
 * A function is called with the process's lock held, watch_ops included, unless it takes the lock
 * itself.
 */
#ifndef TSHARE_GENERATION_FEEDER_H
#define TSHARE_GENERATION_FEEDER_H

#include <stdint.h>
#include <sys/queue.h>

struct counter;
struct feeder;
struct tshare_waiter;
struct watch;

enum watch_cause {
	WATCH_DUE,
	WATCH_WOKEN, /* the counter was woken, and no publisher was seen since */
	WATCH_CANCELLED
};

struct watch_ops {
	/*
	 * Checks for news. The feeder calls it again no later than the time it returned, of
	 * the monotonic clock. WATCH_OVER ends the watch.
	 */
	int64_t (*look)(struct watch *watch, uint64_t generation, enum watch_cause cause);

	/* Called in a child of fork(), which lacks the feeders. The watch is on no list. */
	void (*forked)(struct watch *watch);
};

#define WATCH_OVER INT64_MIN

/* Watches the counter of @waiter's region. */
struct watch {
	LIST_ENTRY(watch) entry;     /* of the feeder's */
	LIST_ENTRY(watch) of_waiter; /* of the waiter's */
	struct feeder *feeder;
	struct tshare_waiter *waiter;
	const struct watch_ops *ops;
};

/* Maps the counter, and finds or starts a feeder. 0, or a negative errno. */
int watch_start(struct watch *watch);
void watch_end(struct watch *watch);

/* Looks at the watches of @waiter, which is cancelled. Takes the process's lock. */
void watches_cancel(struct tshare_waiter *waiter);

/* The counter, between the two. */
struct counter *watch_counter(const struct watch *watch);

#endif /* TSHARE_GENERATION_FEEDER_H */
