// SPDX-License-Identifier: GPL-2.0-only
/*
 * Callers that sleep until a name leads to another region, and watches of names.
 *
 * A waiter looks at the name and clears @woken in one critical section of
 * tshare_lock. A change to a name, and the wake-up of its waiters, are in one critical
 * section too. So a waiter either sees a change or is woken by it, and no wake-up is
 * lost.
 *
 * A waiter lives on its caller's stack, or in a watch, and is removed, under tshare_lock,
 * before that ends. It refers to no region. It sleeps on a queue of its own, and only changes
 * of its name that may end its wait wake it. A new draft doesn't wake it, but is recorded as
 * the draft that it waits for.
 */
#include <linux/hrtimer.h>
#include <linux/lockdep.h>
#include <linux/rbtree.h>
#include <linux/string.h>

#include "ns.h"
#include "waiters.h"

static int waiter_compare(const void *name, const struct rb_node *node)
{
	return strcmp(name, rb_entry(node, struct tshare_waiter, node)->name);
}

static bool waiter_is_before(struct rb_node *a, const struct rb_node *b)
{
	return waiter_compare(rb_entry(a, struct tshare_waiter, node)->name, b) < 0;
}

/**
 * tshare_waiter_add() - have a caller woken by changes of a name
 * @waiter: the waiter, with @watches set by the caller. It starts as woken
 * @ns: the namespace
 * @name: the name, which must not change before tshare_waiter_remove()
 * @draft: id of the draft that the caller waits for, or 0
 */
void tshare_waiter_add(struct tshare_waiter *waiter, struct tshare_ns *ns, const char *name,
		       u64 draft)
{
	waiter->ns = ns;
	waiter->name = name;
	waiter->draft = draft;
	waiter->woken = true;
	init_waitqueue_head(&waiter->queue);
	mutex_lock(&tshare_lock);
	rb_add(&waiter->node, &ns->waiters, waiter_is_before);
	mutex_unlock(&tshare_lock);
}

/**
 * tshare_waiter_remove() - end tshare_waiter_add()
 * @waiter: the waiter
 */
void tshare_waiter_remove(struct tshare_waiter *waiter)
{
	mutex_lock(&tshare_lock);
	rb_erase(&waiter->node, &waiter->ns->waiters);
	mutex_unlock(&tshare_lock);
}

/**
 * tshare_waiter_rearm() - forget earlier changes of the name
 * @waiter: the waiter; the caller holds tshare_lock, and looks at the name before it
 *          unlocks
 */
void tshare_waiter_rearm(struct tshare_waiter *waiter)
{
	lockdep_assert_held(&tshare_lock);
	WRITE_ONCE(waiter->woken, false);
}

/**
 * tshare_waiter_sleep() - sleep until the waiter is woken
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
 * tshare_waiter_wake() - wake a waiter, so that it looks at the name
 * @waiter: the waiter; the caller holds tshare_lock, so that no process that shares the waiter
 *          re-arms it after it has looked, and misses this
 */
void tshare_waiter_wake(struct tshare_waiter *waiter)
{
	lockdep_assert_held(&tshare_lock);
	WRITE_ONCE(waiter->woken, true);
	wake_up(&waiter->queue);
}

/**
 * tshare_waiters_wake() - wake the waiters for a name
 * @ns: the namespace; the caller holds tshare_lock
 * @name: the name
 * @draft: id of the draft that has ended unfinished, to wake only its waiters; or 0 to wake
 *         all, because the name leads to a finished region. They then wait for no draft, even
 *         if the region is gone when they look
 */
void tshare_waiters_wake(const struct tshare_ns *ns, const char *name, u64 draft)
{
	struct tshare_waiter *waiter;
	struct rb_node *node;

	lockdep_assert_held(&tshare_lock);
	rb_for_each(node, name, &ns->waiters, waiter_compare) {
		waiter = rb_entry(node, struct tshare_waiter, node);
		if (draft && waiter->draft != draft)
			continue;
		if (!draft)
			waiter->draft = 0;
		tshare_waiter_wake(waiter);
	}
}

/**
 * tshare_waiters_wake_watches() - wake the watches of a name
 * @ns: the namespace; the caller holds tshare_lock
 * @name: the name, which leads to no region any more
 */
void tshare_waiters_wake_watches(const struct tshare_ns *ns, const char *name)
{
	struct tshare_waiter *waiter;
	struct rb_node *node;

	lockdep_assert_held(&tshare_lock);
	rb_for_each(node, name, &ns->waiters, waiter_compare) {
		waiter = rb_entry(node, struct tshare_waiter, node);
		if (waiter->watches)
			tshare_waiter_wake(waiter);
	}
}

/**
 * tshare_waiters_follow() - have the waiters for a name wait for a draft
 * @ns: the namespace; the caller holds tshare_lock
 * @name: the name, which leads to no region
 * @draft: id of the draft; waiters for another draft keep that
 *
 * The waiters sleep on. Waking many waiters for a draft that is made over and over would keep
 * others from tshare_lock.
 */
void tshare_waiters_follow(const struct tshare_ns *ns, const char *name, u64 draft)
{
	struct tshare_waiter *waiter;
	struct rb_node *node;

	lockdep_assert_held(&tshare_lock);
	rb_for_each(node, name, &ns->waiters, waiter_compare) {
		waiter = rb_entry(node, struct tshare_waiter, node);
		if (!waiter->draft && !waiter->watches)
			waiter->draft = draft;
	}
}
