// SPDX-License-Identifier: GPL-2.0-only
/*
 * Callers that sleep until a name leads to another region.
 *
 * A waiter looks at the name and clears @woken in one critical section of
 * tshare_lock. A change to a name, and the wake-up of its waiters, are in one critical
 * section too. So a waiter either sees a change or is woken by it, and no wake-up is
 * lost.
 *
 * A waiter lives on its caller's stack and is removed, under tshare_lock, before
 * the caller returns. It refers to no region. It sleeps on a queue of its own, so
 * that only what is done to its name wakes it.
 */
#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/jhash.h>
#include <linux/lockdep.h>
#include <linux/string.h>

#include "ns.h"
#include "waiters.h"

/* By namespace and name; under tshare_lock. */
static DEFINE_HASHTABLE(waiters, 8);

static u32 waiters_hash(const struct tshare_ns *ns, const char *name)
{
	return jhash(name, strlen(name), (u32)(uintptr_t)ns);
}

/**
 * tshare_waiter_add() - have a caller woken by what is done to a name
 * @waiter: the waiter, which counts as woken
 * @ns: the namespace
 * @name: the name, which must not change before tshare_waiter_remove()
 */
void tshare_waiter_add(struct tshare_waiter *waiter, const struct tshare_ns *ns, const char *name)
{
	waiter->ns = ns;
	waiter->name = name;
	waiter->woken = true;
	init_waitqueue_head(&waiter->queue);
	mutex_lock(&tshare_lock);
	hash_add(waiters, &waiter->node, waiters_hash(ns, name));
	mutex_unlock(&tshare_lock);
}

/**
 * tshare_waiter_remove() - end tshare_waiter_add()
 * @waiter: the waiter
 */
void tshare_waiter_remove(struct tshare_waiter *waiter)
{
	mutex_lock(&tshare_lock);
	hash_del(&waiter->node);
	mutex_unlock(&tshare_lock);
}

/**
 * tshare_waiter_rearm() - forget what has been done to the name
 * @waiter: the waiter; the caller holds tshare_lock, and looks at the name before it
 *          unlocks
 */
void tshare_waiter_rearm(struct tshare_waiter *waiter)
{
	lockdep_assert_held(&tshare_lock);
	WRITE_ONCE(waiter->woken, false);
}

/**
 * tshare_waiter_sleep() - sleep until something is done to the name
 * @waiter: the waiter
 * @timeout: for how long at most; KTIME_MAX for ever
 *
 * Return: 0, -ETIME, or -ERESTARTSYS for a signal.
 */
int tshare_waiter_sleep(struct tshare_waiter *waiter, ktime_t timeout)
{
	return wait_event_interruptible_hrtimeout(waiter->queue, READ_ONCE(waiter->woken), timeout);
}

/**
 * tshare_waiters_wake() - wake the waiters for a name
 * @ns: the namespace; the caller holds tshare_lock
 * @name: the name
 */
void tshare_waiters_wake(const struct tshare_ns *ns, const char *name)
{
	struct tshare_waiter *waiter;

	lockdep_assert_held(&tshare_lock);
	hash_for_each_possible(waiters, waiter, node, waiters_hash(ns, name)) {
		if (waiter->ns != ns || strcmp(waiter->name, name))
			continue;
		WRITE_ONCE(waiter->woken, true);
		wake_up(&waiter->queue);
	}
}
