// SPDX-License-Identifier: GPL-2.0-only
/* Limits, and what counts against them. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>

#include "account.h"
#include "alloc.h"
#include "ns.h"

static ulong max_mib;
module_param(max_mib, ulong, 0644);
MODULE_PARM_DESC(max_mib, "MiB that all regions together may have (0: half of the memory)");

static ulong user_max_mib;
module_param(user_max_mib, ulong, 0644);
MODULE_PARM_DESC(user_max_mib, "MiB that the regions of one user may have (0: no limit)");

static ulong ns_max_mib;
module_param(ns_max_mib, ulong, 0644);
MODULE_PARM_DESC(ns_max_mib, "MiB that the regions of one namespace may have (0: no limit)");

/**
 * struct tshare_account - one user's pages
 * @uid: the user
 * @nr_pages: pages charged to the user; the account is freed when it is zero
 * @node: in accounts, by user
 */
struct tshare_account {
	kuid_t uid;
	unsigned long nr_pages;
	struct rb_node node;
};

/*
 * Under tshare_lock. A tree, since a user with subordinate ids can have as many accounts, and
 * each CREATE of others would walk a list.
 */
static struct rb_root accounts = RB_ROOT;
static unsigned long pages_used; /* read without the lock, too */

/*
 * The charges that outlive their regions. The kernel doesn't report when the last
 * user of a page drops its reference, so the pages are checked before a charge is
 * refused, when the limits are queried, and periodically by this work.
 */
#define PINNED_INTERVAL HZ
static void pinned_work_fn(struct work_struct *work);
static DECLARE_DELAYED_WORK(pinned_work, pinned_work_fn);
static DEFINE_MUTEX(pinned_lock); /* protects pinned_charges, their lists, pinned_looks */
static LIST_HEAD(pinned_charges);
static unsigned long pinned_looks;

/* Larger limits than a number of bytes can express limit nothing. */
static unsigned long limit_to_pages(const ulong *param, unsigned long otherwise)
{
	/* The core stores root's value with a plain store, under a mutex of its own. */
	ulong mib = data_race(READ_ONCE(*param));

	return mib ? min(mib, ULONG_MAX >> 20) << (20 - PAGE_SHIFT) : otherwise;
}

unsigned long tshare_pages_limit(void)
{
	return limit_to_pages(&max_mib, totalram_pages() / 2);
}

unsigned long tshare_pages_used(void)
{
	return READ_ONCE(pages_used);
}

static unsigned long limit_left(unsigned long limit, unsigned long used)
{
	return used < limit ? limit - used : 0;
}

static int account_compare(const void *uid, const struct rb_node *node)
{
	kuid_t left = *(const kuid_t *)uid;
	kuid_t right = rb_entry(node, struct tshare_account, node)->uid;

	return uid_lt(left, right) ? -1 : uid_gt(left, right);
}

static bool account_is_before(struct rb_node *a, const struct rb_node *b)
{
	return account_compare(&rb_entry(a, struct tshare_account, node)->uid, b) < 0;
}

static struct tshare_account *account_find(kuid_t uid)
{
	struct rb_node *node = rb_find(&uid, &accounts, account_compare);

	return node ? rb_entry(node, struct tshare_account, node) : NULL;
}

/* Pages that a user in @ns may still have by the module's own limits; @used are in use. */
static unsigned long account_pages_left(const struct tshare_ns *ns,
					const struct tshare_account *account, unsigned long used)
{
	return min3(limit_left(tshare_pages_limit(), used),
		    limit_left(limit_to_pages(&ns_max_mib, ULONG_MAX), ns->usage->nr_pages),
		    limit_left(limit_to_pages(&user_max_mib, ULONG_MAX),
			       account ? account->nr_pages : 0));
}

/*
 * Pages that the caller may still have by RLIMIT_MEMLOCK. Memory that other subsystems have
 * locked for the same user counts. The module doesn't add its own to the user_struct: to
 * subtract it later it would have to keep the user_struct, and 6.1 doesn't let modules do
 * that.
 */
static unsigned long account_memlock_left(const struct tshare_account *account)
{
	unsigned long used = atomic_long_read(&current_user()->locked_vm);

	return limit_left(rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT,
			  used + (account ? account->nr_pages : 0));
}

/* The caller alone uses the charge, or holds pinned_lock. */
static void charge_set_pages(struct tshare_charge *charge, unsigned long nr_pages)
{
	struct tshare_account *account = charge->account;

	mutex_lock(&tshare_lock);
	WRITE_ONCE(pages_used, pages_used + nr_pages - charge->nr_pages);
	charge->ns->usage->nr_pages += nr_pages - charge->nr_pages;
	account->nr_pages += nr_pages - charge->nr_pages;
	charge->nr_pages = nr_pages;
	if (account->nr_pages)
		account = NULL;
	else
		rb_erase(&account->node, &accounts);
	mutex_unlock(&tshare_lock);
	kfree(account);
	if (!nr_pages)
		tshare_cgroup_uncharge(&charge->cgroup);
}

/*
 * Frees folios that are no longer pinned, and ends charges that have no others.
 *
 * The list may be long, so callers that wait for the lock share a pass: one that began after
 * they came did their work.
 */
static void pinned_release(void)
{
	unsigned long looks = READ_ONCE(pinned_looks);
	struct tshare_charge *charge, *next;
	LIST_HEAD(done);

	mutex_lock(&pinned_lock);
	if (pinned_looks != looks) {
		mutex_unlock(&pinned_lock);
		return;
	}
	WRITE_ONCE(pinned_looks, looks + 1);
	list_for_each_entry_safe(charge, next, &pinned_charges, node) {
		unsigned long freed = tshare_pinned_free(&charge->pinned);

		if (freed)
			charge_set_pages(charge, charge->nr_pages - freed);
		if (list_empty(&charge->pinned))
			list_move(&charge->node, &done);
	}
	mutex_unlock(&pinned_lock);

	list_for_each_entry_safe(charge, next, &done, node) {
		tshare_ns_put(charge->ns);
		kfree(charge);
	}
}

static void pinned_work_fn(struct work_struct *work)
{
	bool again;

	pinned_release();
	mutex_lock(&pinned_lock);
	again = !list_empty(&pinned_charges);
	mutex_unlock(&pinned_lock);
	if (again)
		schedule_delayed_work(&pinned_work, PINNED_INTERVAL);
}

/**
 * tshare_pages_query() - pages in use, and the most that a new region of this caller may have
 * @ns: the caller's namespace
 * @used: where to store the pages of all regions, or of the namespace's alone if the caller
 *        may not see others
 *
 * Return: pages, by all limits; for the limit on all regions as if only @used were in use.
 */
unsigned long tshare_pages_query(struct tshare_ns *ns, unsigned long *used)
{
	const bool all = ns_capable_noaudit(&init_user_ns, CAP_SYS_ADMIN);
	struct tshare_account *account;
	unsigned long nr, memlock;

	pinned_release();
	mutex_lock(&tshare_lock);
	account = account_find(current_uid());
	*used = all ? pages_used : ns->usage->nr_pages;
	nr = account_pages_left(ns, account, *used);
	memlock = account_memlock_left(account);
	mutex_unlock(&tshare_lock);
	if (memlock >= nr || ns_capable_noaudit(&init_user_ns, CAP_IPC_LOCK))
		return nr;
	return memlock;
}

/* Charges the caller; -EPERM if that takes CAP_IPC_LOCK. */
static int charge_add_pages(struct tshare_charge *charge, unsigned long nr_pages,
			    struct tshare_account **fresh, bool exempt)
{
	struct tshare_account *account;
	int err = 0;

	mutex_lock(&tshare_lock);
	account = account_find(current_uid());
	if (nr_pages > account_pages_left(charge->ns, account, pages_used)) {
		err = -EDQUOT;
	} else if (!exempt && nr_pages > account_memlock_left(account)) {
		err = -EPERM;
	} else {
		if (!account) {
			account = *fresh;
			*fresh = NULL;
			account->uid = current_uid();
			rb_add(&account->node, &accounts, account_is_before);
		}
		account->nr_pages += nr_pages;
		charge->ns->usage->nr_pages += nr_pages;
		WRITE_ONCE(pages_used, pages_used + nr_pages);
		charge->nr_pages = nr_pages;
		charge->account = account;
	}
	mutex_unlock(&tshare_lock);
	return err;
}

/**
 * tshare_charge_create() - charge a new region against all limits
 * @ns: its namespace
 * @nr_pages: pages that it counts for, from 1
 *
 * The pages count as the creator's locked memory, as with mlock(). CAP_IPC_LOCK is checked
 * only where that limit would be exceeded, after the limits that it doesn't lift.
 *
 * Return: the charge, or an ERR_PTR: -EDQUOT if a limit would be passed, -ENOMEM.
 */
struct tshare_charge *tshare_charge_create(struct tshare_ns *ns, unsigned long nr_pages)
{
	struct tshare_account *fresh;
	struct tshare_charge *charge;
	int err;

	charge = kzalloc(sizeof(*charge), GFP_KERNEL_ACCOUNT);
	fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	if (!charge || !fresh) {
		err = -ENOMEM;
		goto err_free;
	}
	charge->ns = ns;
	INIT_LIST_HEAD(&charge->pinned);

	/* Memory that is no longer pinned may still be charged. */
	err = tshare_cgroup_charge(&charge->cgroup, nr_pages);
	if (err == -EDQUOT) {
		pinned_release();
		err = tshare_cgroup_charge(&charge->cgroup, nr_pages);
	}
	if (err)
		goto err_free;
	err = charge_add_pages(charge, nr_pages, &fresh, false);
	if (err) {
		pinned_release();
		err = charge_add_pages(charge, nr_pages, &fresh, false);
	}
	if (err == -EPERM && capable(CAP_IPC_LOCK))
		err = charge_add_pages(charge, nr_pages, &fresh, true);
	if (err) {
		err = -EDQUOT;
		goto err_uncharge;
	}
	tshare_ns_get(ns);
	kfree(fresh);
	return charge;

err_uncharge:
	tshare_cgroup_uncharge(&charge->cgroup);
err_free:
	kfree(fresh);
	kfree(charge);
	return ERR_PTR(err);
}

static void charge_destroy(struct tshare_charge *charge)
{
	charge_set_pages(charge, 0);
	tshare_ns_put(charge->ns);
	kfree(charge);
}

/**
 * tshare_charge_release() - free a region's memory, and end its charge with it
 * @charge: from tshare_charge_create(); its descriptors are already freed
 * @pfn: the region's first page frame number
 * @nr_pages: its pages, from 0
 *
 * A folio to which a pipe, a device or the like has a reference can't be freed
 * yet. The module keeps its own reference, and the charge, until it can:
 * otherwise a page in a pipe would be a way past every limit.
 */
void tshare_charge_release(struct tshare_charge *charge, unsigned long pfn, unsigned long nr_pages)
{
	unsigned long pinned = tshare_run_release(pfn, nr_pages, &charge->pinned);

	if (!pinned) {
		charge_destroy(charge);
		return;
	}
	charge_set_pages(charge, pinned);
	mutex_lock(&pinned_lock);
	list_add_tail(&charge->node, &pinned_charges);
	mutex_unlock(&pinned_lock);
	schedule_delayed_work(&pinned_work, PINNED_INTERVAL);
}

/**
 * tshare_account_exit() - drop the module's references to pinned memory
 *
 * Called when the module is unloaded and has no regions any more. The last user of a pinned
 * folio then frees it, and no limit counts it.
 */
void tshare_account_exit(void)
{
	struct tshare_charge *charge, *next;

	cancel_delayed_work_sync(&pinned_work);
	list_for_each_entry_safe(charge, next, &pinned_charges, node) {
		tshare_pinned_abandon(&charge->pinned);
		charge_destroy(charge);
	}
}
