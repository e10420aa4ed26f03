// SPDX-License-Identifier: MIT
/* Waiting for a generation, and what ends a wait. */
#include <errno.h>
#include <string.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/export.h"
#include "base/futex.h"
#include "base/refcount.h"
#include "base/thread.h"
#include "ctx.h"
#include "generation/counter.h"
#include "generation/event.h"
#include "generation/feeder.h"
#include "generation/publisher.h"
#include "generation/waiter.h"
#include "region/object.h"

/* How often a spin reads the counter between two reads of the clock. */
#define SPIN_LOOKS 64

static bool is_cancelled(struct tshare_waiter *waiter)
{
	return atomic_load_explicit(&waiter->cancelled, memory_order_relaxed);
}

static void waiter_spin(struct tshare_waiter *waiter, struct counter *counter, uint64_t seen,
			int64_t until)
{
	unsigned int looks = 0;

	while (newest(counter) <= seen) {
		if (++looks % SPIN_LOOKS == 0 && (clock_ns() >= until || is_cancelled(waiter)))
			return;
#if defined(__x86_64__) || defined(__i386__)
		__builtin_ia32_pause();
#elif defined(__aarch64__)
		__asm__ __volatile__("yield");
#endif
	}
}

int wait_fail_cancelled(void)
{
	return fail(-ECANCELED, "region: the wait was cancelled");
}

int waiter_check(struct tshare_waiter *waiter)
{
	return is_cancelled(waiter) ? wait_fail_cancelled() : 0;
}

int waiter_find_reason(struct tshare_waiter *waiter, struct counter *counter, int64_t deadline,
		       bool woken, int64_t *until)
{
	int64_t now = clock_ns();
	int err;

	err = waiter_check(waiter);
	if (err)
		return err;
	err = publisher_check(waiter->region, counter, now, woken, until);
	if (err)
		return err;
	if (now >= deadline)
		return fail(-ETIMEDOUT, "timeout: nothing was published in time");
	if (deadline < *until)
		*until = deadline;
	return 0;
}

/*
 * Waits until @deadline. A new generation takes precedence over each reason to give
 * up, as a publisher's last publish counts: the counter is read after a reason was
 * found. A wake without a new generation may mean that a publisher has ended.
 */
static int sleep_until(struct tshare_waiter *waiter, struct counter *counter, uint64_t seen,
		       int64_t deadline, uint64_t *generation)
{
	struct futex_word words[2];
	int slept = -EAGAIN, err = 0;
	int64_t until, due;

	no_cancellation();
	while ((*generation = newest(counter)) <= seen) {
		if (err)
			return err;
		err = waiter_find_reason(waiter, counter, deadline, slept >= 0, &until);
		due = ctx_sweep(waiter->region->ctx, err == -EOWNERDEAD);
		if (err)
			continue;
		if (due < until)
			until = due;
		words[0] = futex_shared(futex_half(counter), *generation);
		words[1] = futex_private(&waiter->cancelled, 0);
		slept = futex_sleep(words, 2, until);
		if (slept < 0 && slept != -EAGAIN && slept != -ETIMEDOUT)
			err = fail(slept, "region: waiting: %s", strerror(-slept));
	}
	return 0;
}

static int waiter_wait(struct tshare_waiter *waiter, uint64_t seen, int64_t timeout_ns,
		       int64_t spin_ns, uint64_t *generation)
{
	struct counter *counter;
	int64_t now, deadline;
	uint64_t found;
	int err;

	counter = counter_get(waiter->region, &err);
	if (!counter)
		return err;
	err = waiter_check(waiter);
	if (err)
		return err;
	found = newest(counter);
	if (found <= seen) {
		now = timeout_ns > 0 || spin_ns > 0 ? clock_ns() : 0;
		deadline = clock_deadline(timeout_ns, now);
		if (timeout_ns && spin_ns > 0)
			waiter_spin(waiter, counter, seen,
				    spin_ns < deadline - now ? now + spin_ns : deadline);
		err = sleep_until(waiter, counter, seen, deadline, &found);
		if (err)
			return err;
	}
	err = counter_check_version(counter);
	if (!err)
		*generation = found;
	return err;
}

static void waiter_cancel(struct tshare_waiter *waiter)
{
	atomic_store(&waiter->cancelled, 1);
	futex_wake_private(&waiter->cancelled);
	watches_cancel(waiter);
}

/* The region's own calls */

TSHARE_EXPORT
int tshare_region_wait(struct tshare_region *region, uint64_t seen, int64_t timeout_ns,
		       int64_t spin_ns, uint64_t *generation)
{
	return waiter_wait(&region->generation.waiter, seen, timeout_ns, spin_ns, generation);
}

TSHARE_EXPORT
void tshare_region_cancel(struct tshare_region *region)
{
	waiter_cancel(&region->generation.waiter);
}

TSHARE_EXPORT
int tshare_region_get_event_fd(struct tshare_region *region, int *fd)
{
	return event_get_fd(&region->generation.waiter, fd);
}

/* Waiters */

TSHARE_EXPORT
int tshare_waiter_new(struct tshare_region *region, struct tshare_waiter **waiter)
{
	struct tshare_waiter *new;

	new = calloc(1, sizeof(*new));
	if (!new)
		return fail(-ENOMEM, "waiter: out of memory");
	atomic_init(&new->refs, 1);
	new->region = tshare_region_ref(region);
	*waiter = new;
	return 0;
}

TSHARE_EXPORT
struct tshare_waiter *tshare_waiter_ref(struct tshare_waiter *waiter)
{
	refcount_get(&waiter->refs);
	return waiter;
}

TSHARE_EXPORT
struct tshare_waiter *tshare_waiter_unref(struct tshare_waiter *waiter)
{
	keep_errno();

	if (!waiter || !refcount_put(&waiter->refs))
		return NULL;
	event_end(waiter);
	tshare_region_unref(waiter->region);
	free(waiter);
	return NULL;
}

TSHARE_EXPORT
int tshare_waiter_wait(struct tshare_waiter *waiter, uint64_t seen, int64_t timeout_ns,
		       int64_t spin_ns, uint64_t *generation)
{
	return waiter_wait(waiter, seen, timeout_ns, spin_ns, generation);
}

TSHARE_EXPORT
void tshare_waiter_cancel(struct tshare_waiter *waiter)
{
	waiter_cancel(waiter);
}

TSHARE_EXPORT
int tshare_waiter_get_event_fd(struct tshare_waiter *waiter, int *fd)
{
	return event_get_fd(waiter, fd);
}
