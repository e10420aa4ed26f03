/* SPDX-License-Identifier: GPL-2.0-only */
/* Callers that sleep until a name leads to another region, and watches of names. */
#ifndef TSHARE_WAITERS_H
#define TSHARE_WAITERS_H

#include <linux/ktime.h>
#include <linux/rbtree.h>
#include <linux/types.h>
#include <linux/wait.h>

struct tshare_ns;

/**
 * struct tshare_waiter - a caller that waits for a name
 * @node: among the waiters of the namespace, by @name; under tshare_lock
 * @ns: the namespace, which the caller's open file uses
 * @name: the name
 * @draft: id of the draft that the caller waits for; 0 for none yet; under tshare_lock
 * @watches: whether it is a watch's: woken also when the name is removed, and waits for no
 *           draft. Constant
 * @queue: where the caller sleeps
 * @woken: whether something has happened to the name since the caller looked;
 *         written under tshare_lock
 */
struct tshare_waiter {
	struct rb_node node;
	struct tshare_ns *ns;
	const char *name;
	u64 draft;
	bool watches;
	wait_queue_head_t queue;
	bool woken;
};

void tshare_waiter_add(struct tshare_waiter *waiter, struct tshare_ns *ns, const char *name,
		       u64 draft);
void tshare_waiter_remove(struct tshare_waiter *waiter);
void tshare_waiter_rearm(struct tshare_waiter *waiter);
int tshare_waiter_sleep(struct tshare_waiter *waiter, ktime_t timeout);
void tshare_waiter_wake(struct tshare_waiter *waiter);
void tshare_waiters_wake(const struct tshare_ns *ns, const char *name, u64 draft);
void tshare_waiters_wake_watches(const struct tshare_ns *ns, const char *name);
void tshare_waiters_follow(const struct tshare_ns *ns, const char *name, u64 draft);

#endif /* TSHARE_WAITERS_H */
