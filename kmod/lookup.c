// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lookup: finds the regions that a caller may use or list, and sleeps until a name leads to
 * one. Changes no name; names.c does.
 *
 * A region is looked up under tshare_lock. Its permissions are checked without the lock, with
 * a reference, since a capability check may wait for the audit log.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>
#include <linux/time_namespace.h>
#include <linux/timekeeping.h>

#include "foreign.h"
#include "lookup.h"
#include "names.h"
#include "ns.h"
#include "region.h"
#include "waiters.h"

/* As for files, the first class that the caller is in decides. */
static bool region_mode_grants(const struct tshare_region *region, int access)
{
	umode_t granted = region->mode;

	if (tshare_foreign_is_writable(region))
		access |= TSHARE_MAY_WRITE;
	if (uid_eq(current_fsuid(), region->uid))
		granted >>= 6;
	else if (in_group_p(region->gid))
		granted >>= 3;
	return !(access & ~granted);
}

static bool region_may_access(const struct tshare_region *region, int access)
{
	return region_mode_grants(region, access) || tshare_ns_is_owned(region->ns);
}

/* As region_may_access(), for a list: to omit a region is no refusal, so it isn't audited. */
static bool region_may_access_noaudit(const struct tshare_region *region, int access)
{
	return region_mode_grants(region, access) ||
	       ns_capable_noaudit(region->ns->user_ns, CAP_IPC_OWNER);
}

/* The owner of a region may unlink it, and so sees it even if the mode lets nobody read. */
static bool region_is_listed(const struct tshare_region *region)
{
	return uid_eq(current_fsuid(), region->uid) ||
	       region_may_access_noaudit(region, TSHARE_MAY_READ);
}

/* A draft without a name will never be finished. */
static int region_check_finished(struct tshare_region *region)
{
	int err = 0;

	mutex_lock(&tshare_lock);
	if (tshare_region_is_draft(region))
		err = tshare_region_has_name(region) ? -EINPROGRESS : -ENOENT;
	mutex_unlock(&tshare_lock);
	return err;
}

static struct tshare_region *region_lookup_id(struct tshare_file *tf, u64 id)
{
	struct tshare_region *region = tshare_region_find_visible(tf->ns, id);
	int err;

	if (!region)
		return ERR_PTR(-ENOENT);
	err = region_check_finished(region);
	if (err) {
		tshare_region_put(region);
		return ERR_PTR(err);
	}
	/* If it has lost its name with its last user, it is now used without a name. */
	tshare_region_use(region);
	tshare_region_put(region);
	return region;
}

/* The region that @req->name leads to, or why it can't be opened: see name_is_awaited(). */
static struct tshare_region *name_resolve(const struct tshare_ns *ns, struct tshare_open *req)
{
	struct tshare_region *region = tshare_name_find(&ns->finished, req->name);

	if (region) {
		req->draft = 0;
		return region->id == req->other_than ? ERR_PTR(-EAGAIN) : region;
	}
	region = tshare_name_find(&ns->drafts, req->name);
	if (!region || (req->draft && region->id != req->draft))
		return ERR_PTR(-ENOENT);
	req->draft = region->id;
	return ERR_PTR(-EINPROGRESS);
}

/* Whether name_resolve() may return something else later. An ended draft won't come back. */
static bool name_is_awaited(const struct tshare_region *region, const struct tshare_open *req)
{
	return IS_ERR(region) && !(region == ERR_PTR(-ENOENT) && req->draft);
}

/*
 * Resumes a wait for a draft that a signal or its deadline has interrupted. If the draft was
 * finished meanwhile, no waiter recorded that, but the region shows it for as long as it exists.
 */
static void name_wait_resume(struct tshare_ns *ns, struct tshare_waiter *waiter)
{
	struct tshare_region *region = tshare_region_find(waiter->draft);

	if (!region)
		return;
	mutex_lock(&tshare_lock);
	if (region->ns == ns && !tshare_region_is_draft(region))
		waiter->draft = 0;
	mutex_unlock(&tshare_lock);
	tshare_region_put(region);
}

/* As name_resolve(), and adds a user. Re-arms @waiter, if it isn't NULL. */
static struct tshare_region *name_get(struct tshare_ns *ns, struct tshare_open *req,
				      struct tshare_waiter *waiter)
{
	struct tshare_region *region;

	mutex_lock(&tshare_lock);
	if (waiter) {
		tshare_waiter_rearm(waiter);
		req->draft = waiter->draft;
	}
	region = name_resolve(ns, req);
	if (waiter)
		waiter->draft = req->draft;
	if (!IS_ERR(region))
		tshare_region_use_locked(region);
	mutex_unlock(&tshare_lock);
	return region;
}

/* The time left until @deadline, which is of the caller's time namespace. */
static ktime_t time_left(ktime_t deadline)
{
	struct timespec64 now;

	if (deadline == KTIME_MAX)
		return KTIME_MAX;
	ktime_get_ts64(&now);
	timens_add_monotonic(&now);
	return ktime_sub(deadline, timespec64_to_ktime(now));
}

/* As name_get(), but sleeps until @req->deadline_ns for the region. */
static struct tshare_region *name_wait(struct tshare_ns *ns, struct tshare_open *req)
{
	struct tshare_waiter waiter = { .watches = false };
	struct tshare_region *region;
	ktime_t left;
	int err;

	tshare_waiter_add(&waiter, ns, req->name, req->draft);
	if (req->draft)
		name_wait_resume(ns, &waiter);
	do {
		region = name_get(ns, req, &waiter);
		left = time_left(req->deadline_ns);
		if (!name_is_awaited(region, req))
			break;
		err = left > 0 ? tshare_waiter_sleep(&waiter, left) : -ETIME;
	} while (!err);
	tshare_waiter_remove(&waiter);

	if (!name_is_awaited(region, req))
		return region;
	req->draft = waiter.draft;
	return ERR_PTR(err == -ETIME ? -ETIMEDOUT : -ERESTARTNOHAND);
}

/**
 * tshare_region_lookup() - find a region that the caller may use
 * @tf: the open device
 * @req: its name, or its id if the name is empty; and whether to wait. Checked
 * @access: TSHARE_MAY_*
 *
 * Return: the region, for tshare_region_unuse(), or an ERR_PTR: -ENOENT,
 * -EINPROGRESS, -EAGAIN, -EACCES, or, with the draft that it has waited for in @req,
 * -ETIMEDOUT or -ERESTARTNOHAND.
 */
struct tshare_region *tshare_region_lookup(struct tshare_file *tf, struct tshare_open *req,
					   int access)
{
	struct tshare_region *region;

	if (!req->name[0])
		region = region_lookup_id(tf, req->id);
	else if (req->deadline_ns)
		region = name_wait(tf->ns, req);
	else
		region = name_get(tf->ns, req, NULL);
	if (!IS_ERR(region) && !region_may_access(region, access)) {
		tshare_region_unuse(region);
		return ERR_PTR(-EACCES);
	}
	return region;
}

/**
 * tshare_name_read() - the id of the region that a name leads to
 * @tf: the open device
 * @name: the name
 * @waiter: of a watch of the name, re-armed
 * @id: where to store the id: 0 for no region, also while a draft has the name
 *
 * Needs no permission: CREATE and OPEN also show the namespace that a name is taken.
 *
 * Return: false if nothing was done to the name since the last call; @id is undefined then.
 */
bool tshare_name_read(const struct tshare_file *tf, const char *name, struct tshare_waiter *waiter,
		      u64 *id)
{
	const struct tshare_region *region;
	bool woken;

	mutex_lock(&tshare_lock);
	woken = waiter->woken;
	tshare_waiter_rearm(waiter);
	region = tshare_name_find(&tf->ns->finished, name);
	*id = region ? region->id : 0;
	mutex_unlock(&tshare_lock);
	return woken;
}

static void region_fill_entry(struct tshare_region *region, struct tshare_list_entry *entry)
{
	struct user_namespace *user_ns = current_user_ns();

	*entry = (struct tshare_list_entry){
		.id = region->id,
		.size = tshare_region_bytes(region),
		.uid = from_kuid_munged(user_ns, region->uid),
		.gid = from_kgid_munged(user_ns, region->gid),
		.mode = region->mode,
		.node = tshare_region_node(region),
		.desc_count = region->descs.count,
	};
	entry->region_flags = tshare_region_get_state(region, entry->name);
	if (!tshare_foreign_is_readonly(region) &&
	    region_may_access_noaudit(region, TSHARE_MAY_READ | TSHARE_MAY_WRITE))
		entry->region_flags |= TSHARE_REGION_WRITABLE;
}

/**
 * tshare_list_next() - the next region that the caller may read, or owns
 * @tf: the open device
 * @all: regions of all namespaces, rather than the caller's
 * @cursor: id of the region before, 0 to begin; advances to that of the region found, and
 *          shows no id of one that is not listed
 * @entry: where to describe the region
 *
 * Return: 1, 0 if there is none, -EINTR for a fatal signal.
 */
int tshare_list_next(struct tshare_file *tf, bool all, u64 *cursor, struct tshare_list_entry *entry)
{
	struct tshare_region *region;
	bool found = false;
	u64 id = *cursor;

	while (!found && (region = tshare_region_next(&id))) {
		bool belongs = all || region->ns == tf->ns;

		found = belongs && region_is_listed(region);
		if (found) {
			region_fill_entry(region, entry);
			*cursor = id;
		}
		/* Regions of other namespaces cost the caller one step per block of ids. */
		if (!belongs)
			id = tshare_ns_last_of_block(id);
		tshare_region_put(region);
		/* There may be a million regions that the caller may not see. */
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return found;
}
