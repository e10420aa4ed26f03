/* SPDX-License-Identifier: MIT */
/* Helpers for tests that publish to, and wait for, another process. */
#ifndef TSHARE_TESTS_PARTNER_H
#define TSHARE_TESTS_PARTNER_H

#include <stdint.h>
#include <sys/types.h>

#include "util.h"

#define MS INT64_C(1000000)

/* Longer than any wait takes that something ends. */
#define LONG (HANG_SECONDS * 1000 * MS)

int64_t now_ns(void);
void sleep_ns(int64_t ns);

uint64_t generation_of(struct tshare_region *region);
void publish(struct tshare_region *region);

/*
 * Waits, without spinning, for a generation greater than @seen. Returns 0 if it is
 * @expected, -EBADMSG if it is another one, and else the error of the wait.
 */
int wait_beyond(struct tshare_region *region, uint64_t seen, int64_t timeout_ns, uint64_t expected);

/* Makes futex_waitv() fail with @err in this process from now on; false if that is impossible. */
bool forbid_waitv(int err);

/* Makes a second object of the region, as another process would. */
struct tshare_region *another(struct tshare_region *region, uint32_t flags);

/* A child process that uses a region, in step with the test or not. */
struct partner {
	struct tshare_region *region;
	const char *name; /* opened by it if not NULL */
	uint32_t flags;
	uint64_t seen;
	uint64_t rounds;
	int64_t delay_ns;
	struct steps steps;
};

/* The region that the child works on; for the child. */
struct tshare_region *open_as_partner(const struct partner *partner);

/* Calls @fn in a child process, whose exit status is what @fn returns. */
pid_t start_partner(int (*fn)(struct partner *partner), struct partner *partner);

/* For start_partner(): writes "published" after the delay, and publishes it. */
int publish_later(struct partner *partner);

/*
 * Starts a child, with steps of its own, that has published when this returns. For
 * each byte sent it goes on: drops the region, answers with a byte, exits.
 */
pid_t start_publisher(struct partner *partner);

/* Waits for a child; its exit status, or -1 if a signal ended it. */
int end_of(pid_t pid);

void kill_and_reap(pid_t pid);

#endif /* TSHARE_TESTS_PARTNER_H */
