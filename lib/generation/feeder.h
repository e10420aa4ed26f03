/* SPDX-License-Identifier: MIT */
/*
 * Feeders: threads that look at regions' counters whenever these change, for waiters that
 * can't sleep on a counter, such as poll() and a GPU's streams.
 *
 * Everything here is called with the process's lock held, watch_ops included.
 */
#ifndef TSHARE_GENERATION_FEEDER_H
#define TSHARE_GENERATION_FEEDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct counter;
struct feeder;
struct tshare_waiter;
struct watch;

struct watch_ops {
	/*
	 * Checks for news. The feeder calls it again no later than the time it returned, of
	 * the monotonic clock. WATCH_OVER takes the watch off its list. @woken: the counter
	 * was woken, and no publisher was seen since.
	 */
	int64_t (*look)(struct watch *watch, uint64_t generation, bool woken);

	/* Called in a child of fork(), which lacks the feeders. The watch is on no list. */
	void (*forked)(struct watch *watch);
};

#define WATCH_OVER INT64_MIN

/* Watches the counter of @waiter's region. */
struct watch {
	LIST_ENTRY(watch) entry;
	struct feeder *feeder;
	struct tshare_waiter *waiter;
	const struct watch_ops *ops;
};

/* Maps the counter, and finds or starts a feeder. 0, or a negative errno. */
int watch_start(struct watch *watch);
void watch_end(struct watch *watch);

/* The counter, between the two. */
struct counter *watch_counter(const struct watch *watch);

#endif /* TSHARE_GENERATION_FEEDER_H */
