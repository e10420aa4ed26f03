/* SPDX-License-Identifier: MIT */
/* Common to the waits of threads and of streams. */
#ifndef TSHARE_GENERATION_WAITER_H
#define TSHARE_GENERATION_WAITER_H

#include <stdbool.h>
#include <stdint.h>

struct counter;
struct tshare_waiter;

int wait_fail_cancelled(void);

/* 0, or -ECANCELED after tshare_waiter_cancel(). */
int waiter_check(struct tshare_waiter *waiter);

/* Why a wait must end now; or 0, and @until when it may sleep. @woken: the counter was woken. */
int waiter_find_reason(struct tshare_waiter *waiter, struct counter *counter, int64_t deadline,
		       bool woken, int64_t *until);

#endif /* TSHARE_GENERATION_WAITER_H */
