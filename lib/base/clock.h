/* SPDX-License-Identifier: MIT */
/* Times of the monotonic clock, in nanoseconds. */
#ifndef TSHARE_BASE_CLOCK_H
#define TSHARE_BASE_CLOCK_H

#include <stdint.h>

#define NSEC_PER_SEC INT64_C(1000000000)

/* CLOCK_MONOTONIC. */
int64_t clock_ns(void);

/* @now and @timeout_ns later. INT64_MAX, never, if that is negative or too late; INT64_MIN for 0. */
int64_t clock_deadline(int64_t timeout_ns, int64_t now);

/* The opposite: a timeout until @deadline, 0 if that is over, and -1 for never. Reads the clock. */
int64_t clock_left(int64_t deadline);

#endif /* TSHARE_BASE_CLOCK_H */
