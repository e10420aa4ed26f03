/* SPDX-License-Identifier: MIT */
/* What waits of a thread and of a stream have in common. */
#ifndef TSHARE_WAIT_H
#define TSHARE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

struct counter;
struct tshare_waiter;

/* Of a wait that begins at @now, which is ignored if it only looks, or waits for ever. */
int64_t wait_deadline(int64_t timeout_ns, int64_t now);

int wait_fail_cancelled(void);

/* 0, or -ECANCELED after tshare_waiter_cancel(). */
int waiter_check(struct tshare_waiter *waiter);

/* Why a wait has to end now, or 0 and until when it may sleep. @woken: the counter was woken. */
int waiter_find_reason(struct tshare_waiter *waiter, struct counter *counter, int64_t deadline,
		       bool woken, int64_t *until);

#endif /* TSHARE_WAIT_H */
