// SPDX-License-Identifier: GPL-2.0-only
/* Limits, and what counts against them. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "account.h"
#include "names.h"
#include "region.h"

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
 * struct tshare_account - one user's regions
 * @cred: whose ->user it is, a reference: not every kernel lets modules put a
 *        user that they hold
 * @nr_pages: pages of the user's regions; the account goes when it is zero
 * @node: in accounts
 */
struct tshare_account {
	const struct cred *cred;
	unsigned long nr_pages;
	struct list_head node;
};

/* All under tshare_lock. */
static LIST_HEAD(accounts);
static unsigned long pages_used;

static unsigned long limit_pages(ulong mib, unsigned long otherwise)
{
	return mib && mib < ULONG_MAX >> (20 - PAGE_SHIFT) ? mib << (20 - PAGE_SHIFT) : otherwise;
}

unsigned long tshare_pages_limit(void)
{
	return limit_pages(max_mib, totalram_pages() / 2);
}

unsigned long tshare_pages_used(void)
{
	return READ_ONCE(pages_used);
}

static unsigned long left(unsigned long limit, unsigned long used)
{
	return used < limit ? limit - used : 0;
}

static unsigned long memlock_left(struct user_struct *user)
{
	if (ns_capable_noaudit(&init_user_ns, CAP_IPC_LOCK))
		return ULONG_MAX;
	return left(rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT, atomic_long_read(&user->locked_vm));
}

static struct tshare_account *account_find(struct user_struct *user)
{
	struct tshare_account *account;

	list_for_each_entry(account, &accounts, node)
		if (account->cred->user == user)
			return account;
	return NULL;
}

/* What @user in @ns may still have by the module's own limits, in pages. */
static unsigned long pages_left(struct tshare_ns *ns, const struct tshare_account *account)
{
	return min3(left(tshare_pages_limit(), pages_used),
		    left(limit_pages(ns_max_mib, ULONG_MAX), ns->usage->nr_pages),
		    left(limit_pages(user_max_mib, ULONG_MAX), account ? account->nr_pages : 0));
}

/**
 * tshare_pages_left() - the most that a new region of this caller may have
 * @ns: in this namespace
 *
 * Return: pages, by all limits.
 */
unsigned long tshare_pages_left(struct tshare_ns *ns)
{
	struct user_struct *user = current_user();
	unsigned long nr;

	mutex_lock(&tshare_lock);
	nr = pages_left(ns, account_find(user));
	mutex_unlock(&tshare_lock);
	return min(nr, memlock_left(user));
}

/* Counts @nr_pages as locked memory of @user, unless that is too much. */
static bool memlock_charge(struct user_struct *user, unsigned long nr_pages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	long used = atomic_long_read(&user->locked_vm);

	do {
		if (nr_pages > left(limit, used))
			return false;
	} while (!atomic_long_try_cmpxchg(&user->locked_vm, &used, used + nr_pages));
	return true;
}

/**
 * tshare_charge() - count a region to be against all limits
 * @charge: to fill, for tshare_uncharge()
 * @ns: its namespace; the charge doesn't hold it
 * @nr_pages: its pages
 *
 * Return: 0, -EDQUOT if a limit would be passed, -ENOMEM.
 */
int tshare_charge(struct tshare_charge *charge, struct tshare_ns *ns, unsigned long nr_pages)
{
	struct user_struct *user = current_user();
	struct tshare_account *account, *fresh;
	int err = 0;

	fresh = kzalloc(sizeof(*fresh), GFP_KERNEL);
	if (!fresh)
		return -ENOMEM;

	*charge = (struct tshare_charge){ .nr_pages = nr_pages, .ns = ns };
	if (!capable(CAP_IPC_LOCK)) {
		if (!memlock_charge(user, nr_pages)) {
			kfree(fresh);
			return -EDQUOT;
		}
		charge->memlock = get_current_cred();
	}

	mutex_lock(&tshare_lock);
	account = account_find(user);
	if (nr_pages > pages_left(ns, account)) {
		err = -EDQUOT;
	} else {
		if (!account) {
			account = fresh;
			fresh = NULL;
			account->cred = get_current_cred();
			list_add(&account->node, &accounts);
		}
		account->nr_pages += nr_pages;
		ns->usage->nr_pages += nr_pages;
		pages_used += nr_pages;
		charge->account = account;
	}
	mutex_unlock(&tshare_lock);

	kfree(fresh);
	if (err)
		tshare_uncharge(charge);
	return err;
}

/**
 * tshare_uncharge() - no longer count a region
 * @charge: from tshare_charge(), or from one that failed half way
 */
void tshare_uncharge(struct tshare_charge *charge)
{
	struct tshare_account *account = charge->account;

	if (charge->memlock) {
		atomic_long_sub(charge->nr_pages, &charge->memlock->user->locked_vm);
		put_cred(charge->memlock);
	}
	if (!account)
		return;

	mutex_lock(&tshare_lock);
	pages_used -= charge->nr_pages;
	charge->ns->usage->nr_pages -= charge->nr_pages;
	account->nr_pages -= charge->nr_pages;
	if (account->nr_pages)
		account = NULL;
	else
		list_del(&account->node);
	mutex_unlock(&tshare_lock);

	if (account) {
		put_cred(account->cred);
		kfree(account);
	}
}
