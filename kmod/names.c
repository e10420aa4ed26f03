// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names and users of regions: names are given, taken over and removed here, and nowhere else.
 *
 * A name changes under tshare_lock. A capability is asked for without the lock, since that may
 * wait for the audit log; the change is then tried again. References are dropped without the
 * lock, too, since the last put takes it.
 */
#include <linux/cred.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/module.h>
#include <linux/rbtree.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "names.h"
#include "ns.h"
#include "region.h"
#include "waiters.h"

static unsigned long name_count; /* under tshare_lock; read without it, too */

/**
 * tshare_name_count() - how many regions have a name
 *
 * Return: the number, for sysfs.
 */
unsigned long tshare_name_count(void)
{
	return READ_ONCE(name_count);
}

/*
 * Each namespace has trees of its own, so that the time of a lookup reveals nothing of other
 * namespaces. A draft may have the name of a finished region, so drafts are in a second tree.
 * A draft's name belongs to its maker's file. Once the region is finished, its lifetime
 * decides whether the name still does.
 */

static int name_compare(const void *name, const struct rb_node *node)
{
	return strcmp(name, rb_entry(node, struct tshare_region, name_node)->name);
}

static bool name_is_before(struct rb_node *a, const struct rb_node *b)
{
	return name_compare(rb_entry(a, struct tshare_region, name_node)->name, b) < 0;
}

/**
 * tshare_name_find() - the region that has a name
 * @names: the finished regions of a namespace, or its drafts; the caller holds tshare_lock
 * @name: the name
 *
 * Return: the region, or NULL.
 */
struct tshare_region *tshare_name_find(const struct rb_root *names, const char *name)
{
	struct rb_node *node = rb_find(name, names, name_compare);

	return node ? rb_entry(node, struct tshare_region, name_node) : NULL;
}

static struct rb_root *region_name_tree(const struct tshare_region *region)
{
	return tshare_region_is_draft(region) ? &region->ns->drafts : &region->ns->finished;
}

static void name_unlink(struct tshare_region *region)
{
	rb_erase(&region->name_node, region_name_tree(region));
	RB_CLEAR_NODE(&region->name_node);
}

/* Whether the name belongs to no file. Such a name holds the module. */
static bool name_outlives_maker(const struct tshare_region *region)
{
	return region->flags & (TSHARE_REGION_PERSIST | TSHARE_REGION_USERS) &&
	       !tshare_region_is_draft(region);
}

/*
 * Tells the waiters for the region's name that the region has got or lost it. They wait for a
 * finished region to get the name, or for the end of a draft that they know of.
 */
static void name_tell_given(const struct tshare_region *region)
{
	if (!tshare_region_is_draft(region))
		tshare_waiters_wake(region->ns, region->name, 0);
	else if (!tshare_name_find(&region->ns->finished, region->name))
		tshare_waiters_follow(region->ns, region->name, region->id);
}

static void name_tell_removed(const struct tshare_region *region)
{
	const struct tshare_region *draft;

	if (tshare_region_is_draft(region)) {
		tshare_waiters_wake(region->ns, region->name, region->id);
		return;
	}
	tshare_waiters_wake_watches(region->ns, region->name);
	draft = tshare_name_find(&region->ns->drafts, region->name);
	if (draft)
		tshare_waiters_follow(region->ns, region->name, draft->id);
}

/* Gives the region its name. The name takes over a reference of the caller's. */
static void name_insert(struct tshare_file *tf, struct tshare_region *region)
{
	rb_add(&region->name_node, region_name_tree(region), name_is_before);
	name_tell_given(region);
	WRITE_ONCE(name_count, name_count + 1);
	if (name_outlives_maker(region)) {
		__module_get(THIS_MODULE);
		tshare_ns_add_name(region->ns);
	} else {
		list_add(&region->name_owner, &tf->names);
		region->maker = tf;
	}
}

/* Removes the name. The caller gets its reference, for name_insert() or name_release(). */
static void name_remove(struct tshare_region *region)
{
	name_unlink(region);
	name_tell_removed(region);
	list_del_init(&region->name_owner);
	region->maker = NULL;
	WRITE_ONCE(name_count, name_count - 1);
}

/* A draft without a name can't be finished, so name_outlives_maker() is constant here. */
static void name_release(struct tshare_region *region)
{
	bool persist = name_outlives_maker(region);

	if (persist)
		tshare_ns_remove_name(region->ns);
	tshare_region_put(region);
	if (persist)
		module_put(THIS_MODULE);
}

/*
 * Whether the caller may take the name from the finished region that has it, if any: 0,
 * -EEXIST without @replace, or 1 if that takes CAP_IPC_OWNER, which the caller checks outside
 * the lock.
 */
static int name_check_replace(const struct tshare_ns *ns, const char *name, bool replace,
			      bool privileged)
{
	const struct tshare_region *region = tshare_name_find(&ns->finished, name);

	if (!region)
		return 0;
	if (!replace)
		return -EEXIST;
	return !privileged && !uid_eq(current_fsuid(), region->uid);
}

/* As name_check_replace(), and no draft may hold the name. */
static int name_check_new(const struct tshare_ns *ns, const char *name, bool replace,
			  bool privileged)
{
	if (tshare_name_find(&ns->drafts, name))
		return -EEXIST;
	return name_check_replace(ns, name, replace, privileged);
}

static int name_check_new_locked(struct tshare_ns *ns, const char *name, bool replace,
				 bool privileged)
{
	int ret;

	mutex_lock(&tshare_lock);
	ret = name_check_new(ns, name, replace, privileged);
	mutex_unlock(&tshare_lock);
	return ret;
}

/**
 * tshare_name_check_free() - whether a new region may have a name
 * @ns: the namespace
 * @name: the name
 * @replace: whether it may be that of a finished region
 *
 * Saves a search for memory that would be in vain. tshare_region_register() checks again, in
 * the step that gives the name.
 *
 * Return: 0, -EEXIST, -EPERM.
 */
int tshare_name_check_free(struct tshare_ns *ns, const char *name, bool replace)
{
	int ret = name_check_new_locked(ns, name, replace, false);

	if (ret > 0)
		ret = tshare_ns_is_owned(ns) ? name_check_new_locked(ns, name, replace, true) :
					       -EPERM;
	return ret;
}

/*
 * Gives the region its name, as name_insert() does. Unless @region is a draft, this takes the
 * name from the finished region that has it, and returns that region for name_release().
 */
static struct tshare_region *name_take(struct tshare_file *tf, struct tshare_region *region)
{
	struct tshare_region *old = NULL;

	if (!tshare_region_is_draft(region))
		old = tshare_name_find(&region->ns->finished, region->name);
	if (old)
		name_remove(old);
	name_insert(tf, region);
	return old;
}

static int region_register(struct tshare_file *tf, struct tshare_region *region, bool replace,
			   bool privileged)
{
	struct tshare_region *old = NULL;
	int ret = 0;

	mutex_lock(&tshare_lock);
	if (region->name[0])
		ret = name_check_new(region->ns, region->name, replace, privileged);
	if (!ret)
		tshare_region_add_id(region);
	if (!ret && region->name[0]) {
		kref_get(&region->ref); /* the name's */
		old = name_take(tf, region);
	}
	mutex_unlock(&tshare_lock);
	if (old)
		name_release(old);
	return ret;
}

/**
 * tshare_region_register() - let a region be found by its id and its name
 * @tf: the file that it is made through, in the region's namespace
 * @region: the region
 * @replace: whether it may take the name from a finished region
 *
 * Return: 0, -EEXIST if the name is taken, -EPERM if the caller may not take it.
 */
int tshare_region_register(struct tshare_file *tf, struct tshare_region *region, bool replace)
{
	int ret = region_register(tf, region, replace, false);

	/* The capability is checked outside the lock, and all else again under it. */
	if (ret > 0)
		ret = tshare_ns_is_owned(region->ns) ? region_register(tf, region, replace, true) :
						       -EPERM;
	return ret;
}

static int region_finish(struct tshare_file *tf, struct tshare_region *region, bool replace,
			 bool privileged)
{
	struct tshare_region *old = NULL;
	int ret;

	mutex_lock(&tshare_lock);
	if (!tshare_region_is_draft(region))
		ret = -EINVAL;
	else if (!tshare_region_has_name(region))
		ret = -ENOENT;
	else if (region->maker != tf)
		ret = -EPERM;
	else
		ret = name_check_replace(region->ns, region->name, replace, privileged);
	if (!ret) {
		name_remove(region);
		region->flags &= ~TSHARE_REGION_DRAFT;
		old = name_take(tf, region);
	}
	mutex_unlock(&tshare_lock);
	if (old)
		name_release(old);
	return ret;
}

/**
 * tshare_region_finish() - let a draft be opened
 * @tf: the open device
 * @region: the region, held by the caller
 * @replace: whether it may take the name from another region
 *
 * Return: 0, or
 * * -EEXIST: another region has the name
 * * -EINVAL: it is no draft
 * * -ENOENT: it has lost its name
 * * -EPERM: it was made through another file, or the caller may not take the name
 */
int tshare_region_finish(struct tshare_file *tf, struct tshare_region *region, bool replace)
{
	int ret = region_finish(tf, region, replace, false);

	if (ret > 0)
		ret = tshare_ns_is_owned(region->ns) ? region_finish(tf, region, replace, true) :
						       -EPERM;
	return ret;
}

/*
 * Users
 *
 * A user is a dma-buf of the region, or a call that is about to make one. Mappings,
 * attachments and descriptors, also in transit, hold a dma-buf. A lookup by name adds its user
 * in the same critical section. So it either counts before the last other user goes, or finds
 * no name.
 */

/**
 * tshare_region_use_locked() - add a user, in the step that finds the region
 * @region: the region; the caller holds tshare_lock
 */
void tshare_region_use_locked(struct tshare_region *region)
{
	lockdep_assert_held(&tshare_lock);
	kref_get(&region->ref);
	WRITE_ONCE(region->users, region->users + 1);
}

/**
 * tshare_region_use() - add a user
 * @region: the region, held by the caller
 */
void tshare_region_use(struct tshare_region *region)
{
	mutex_lock(&tshare_lock);
	tshare_region_use_locked(region);
	mutex_unlock(&tshare_lock);
}

/**
 * tshare_region_unuse() - remove a user
 * @region: the region, in use
 *
 * The last user removes a name with TSHARE_REGION_USERS, and a draft's, since no descriptor is
 * left to finish it through.
 */
void tshare_region_unuse(struct tshare_region *region)
{
	bool unlinked;

	mutex_lock(&tshare_lock);
	WRITE_ONCE(region->users, region->users - 1);
	unlinked = !region->users && tshare_region_has_name(region) &&
		   region->flags & (TSHARE_REGION_USERS | TSHARE_REGION_DRAFT);
	if (unlinked)
		name_remove(region);
	mutex_unlock(&tshare_lock);
	if (unlinked)
		name_release(region);
	tshare_region_put(region);
}

/*
 * Removes the name of @region; or, if that is NULL, @name from the finished region that has
 * it, or else from the draft. Returns 0, -ENOENT, or 1 if that takes CAP_IPC_OWNER, which the
 * caller checks outside the lock.
 */
static int region_unlink(struct tshare_ns *ns, const char *name, struct tshare_region *region,
			 bool privileged)
{
	int ret = 0;

	mutex_lock(&tshare_lock);
	if (!region)
		region = tshare_name_find(&ns->finished, name);
	if (!region)
		region = tshare_name_find(&ns->drafts, name);
	if (!region || !tshare_region_has_name(region))
		ret = -ENOENT;
	else if (!privileged && !uid_eq(current_fsuid(), region->uid))
		ret = 1;
	else
		name_remove(region);
	mutex_unlock(&tshare_lock);
	if (!ret)
		name_release(region);
	return ret;
}

/**
 * tshare_name_unlink() - remove a name, if the caller may
 * @tf: the open device
 * @name: the name, or "" to go by @id
 * @id: the region's id
 *
 * Return: 0, -ENOENT, -EPERM.
 */
int tshare_name_unlink(struct tshare_file *tf, const char *name, u64 id)
{
	struct tshare_region *region = NULL;
	struct tshare_ns *ns = tf->ns;
	int ret;

	if (!name[0]) {
		region = tshare_region_find_visible(tf->ns, id);
		if (!region)
			return -ENOENT;
		ns = region->ns;
	}
	ret = region_unlink(ns, name, region, false);
	if (ret > 0)
		ret = tshare_ns_is_owned(ns) ? region_unlink(ns, name, region, true) : -EPERM;
	if (region)
		tshare_region_put(region);
	return ret;
}

/*
 * Names of namespaces that have ended
 *
 * A name that belongs to no file is removed when no process can look for it any more, as
 * System V shared memory is. Until then the module keeps the namespace, with its System V
 * memory. So the first checks come soon after the device is closed there. The module keeps a
 * namespace that has ended for no longer than it has been without an open file, and for a
 * second at most.
 */
static void names_work_fn(struct work_struct *work);
static DECLARE_DELAYED_WORK(names_work, names_work_fn);
static unsigned long names_delay; /* in jiffies; a race makes a check early or late */

/* Schedules a check, unless one is due sooner: closing the device again must not put it off. */
static void names_watch(unsigned long delay)
{
	delay = min_t(unsigned long, delay, HZ);
	if (delay < READ_ONCE(names_delay))
		mod_delayed_work(system_long_wq, &names_work, delay);
	else if (!queue_delayed_work(system_long_wq, &names_work, delay))
		return;
	WRITE_ONCE(names_delay, delay);
}

/* Removes a name of @ns that belongs to no file. Returns the region, for name_release(). */
static struct tshare_region *name_remove_first(struct tshare_ns *ns)
{
	struct tshare_region *region = NULL;
	struct rb_node *node;

	mutex_lock(&tshare_lock);
	node = rb_first(&ns->finished);
	if (node) {
		region = rb_entry(node, struct tshare_region, name_node);
		name_remove(region);
	}
	mutex_unlock(&tshare_lock);
	return region;
}

static void names_work_fn(struct work_struct *work)
{
	struct tshare_region *region;
	struct tshare_ns *ns;

	while ((ns = tshare_ns_next_dead())) {
		while ((region = name_remove_first(ns))) {
			name_release(region);
			cond_resched();
		}
		tshare_ns_put(ns);
	}
	if (tshare_ns_any_left())
		names_watch(2 * READ_ONCE(names_delay));
}

/**
 * tshare_names_exit() - stop looking for namespaces that have ended
 */
void tshare_names_exit(void)
{
	cancel_delayed_work_sync(&names_work);
}

/**
 * tshare_file_close() - remove the names that were made through a file, and leave its namespace
 * @tf: the file, which is being closed
 */
void tshare_file_close(struct tshare_file *tf)
{
	struct tshare_region *region;

	do {
		mutex_lock(&tshare_lock);
		region = list_first_entry_or_null(&tf->names, struct tshare_region, name_owner);
		if (region)
			name_remove(region);
		mutex_unlock(&tshare_lock);
		if (region)
			name_release(region);
		/* A file may have a million names of one foreign dma-buf. */
		cond_resched();
	} while (region);
	if (tshare_ns_close(tf->ns))
		names_watch(1);
}

/**
 * tshare_region_get_state() - the properties of a region that can change
 * @region: the region
 * @name: where to store its name, TSHARE_NAME_LEN bytes; empty if it has none
 *
 * Return: the region's flags.
 */
u32 tshare_region_get_state(struct tshare_region *region, char *name)
{
	u32 flags;

	mutex_lock(&tshare_lock);
	if (tshare_region_has_name(region))
		memcpy(name, region->name, TSHARE_NAME_LEN);
	else
		memset(name, 0, TSHARE_NAME_LEN);
	flags = region->flags;
	mutex_unlock(&tshare_lock);
	return flags;
}
