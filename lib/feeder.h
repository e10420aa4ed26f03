/* SPDX-License-Identifier: MIT */
/*
 * Feeders: threads that look at regions' counters whenever these change, on behalf of those
 * that can't sleep on them themselves, such as poll() and a GPU's streams.
 *
 * All of this is under the process's lock, also what a feeder calls.
 */
#ifndef TSHARE_FEEDER_H
#define TSHARE_FEEDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct counter;
struct feeder;
struct tshare_waiter;
struct watch;

struct watch_ops {
	/*
	 * Looks whether there is news, at the latest when it has said. @woken: the counter
	 * was woken, and no publisher was seen since. Returns until when the next look may
	 * wait, in CLOCK_MONOTONIC, or WATCH_OVER: then the watch is on no list any more.
	 */
	int64_t (*look)(struct watch *watch, uint64_t generation, bool woken);

	/* In a child of fork(), whose feeders are the parent's: the watch is on no list. */
	void (*forked)(struct watch *watch);
};

#define WATCH_OVER INT64_MIN

/* On the counter of @waiter's region. */
struct watch {
	LIST_ENTRY(watch) entry;
	struct feeder *feeder;
	struct tshare_waiter *waiter;
	const struct watch_ops *ops;
};

/* Maps the counter, and finds or starts a feeder. 0, or a negative errno. */
int watch_start(struct watch *watch);
void watch_end(struct watch *watch);

/* Between the two. */
struct counter *watch_counter(const struct watch *watch);

#endif /* TSHARE_FEEDER_H */
