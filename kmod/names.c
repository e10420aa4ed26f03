// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names, permissions, and the list of regions.
 *
 * A region is found under tshare_lock, and its permissions are checked after it,
 * with a reference: a check of a capability may wait for the audit log. References
 * are dropped after it too, since the last one takes it again.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/string.h>

#include "names.h"
#include "ns.h"
#include "region.h"

static unsigned long name_count; /* under tshare_lock */

/**
 * tshare_name_count() - how many regions have a name
 *
 * Return: the number, for sysfs.
 */
unsigned long tshare_name_count(void)
{
	return READ_ONCE(name_count);
}

/* Permissions */

static bool region_is_owned(const struct tshare_region *region)
{
	return uid_eq(current_fsuid(), region->uid) ||
	       ns_capable(region->ns->user_ns, CAP_IPC_OWNER);
}

/* As for files, the first class that the caller is in decides. */
static bool region_mode_grants(const struct tshare_region *region, int access)
{
	umode_t granted = region->mode;

	if (uid_eq(current_fsuid(), region->uid))
		granted >>= 6;
	else if (in_group_p(region->gid))
		granted >>= 3;
	return !(access & ~granted);
}

static bool region_may_access(const struct tshare_region *region, int access)
{
	return region_mode_grants(region, access) || ns_capable(region->ns->user_ns, CAP_IPC_OWNER);
}

/* The same for a list, whose omissions are no refusals to audit. */
static bool region_may_access_noaudit(const struct tshare_region *region, int access)
{
	return region_mode_grants(region, access) ||
	       ns_capable_noaudit(region->ns->user_ns, CAP_IPC_OWNER);
}

/* Names */

static struct tshare_region *name_find(struct tshare_ns *ns, const char *name)
{
	struct rb_node *node = ns->names.rb_node;

	while (node) {
		struct tshare_region *region = rb_entry(node, struct tshare_region, name_node);
		int order = strcmp(name, region->name);

		if (!order)
			return region;
		node = order < 0 ? node->rb_left : node->rb_right;
	}
	return NULL;
}

static bool region_has_name(const struct tshare_region *region)
{
	return !RB_EMPTY_NODE(&region->name_node);
}

static void name_insert(struct tshare_file *tf, struct tshare_region *region)
{
	struct rb_node **link = &region->ns->names.rb_node, *parent = NULL;

	while (*link) {
		struct tshare_region *other = rb_entry(*link, struct tshare_region, name_node);

		parent = *link;
		link = strcmp(region->name, other->name) < 0 ? &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&region->name_node, parent, link);
	rb_insert_color(&region->name_node, &region->ns->names);
	name_count++;
	kref_get(&region->ref);
	if (region->flags & TSHARE_REGION_PERSIST) {
		__module_get(THIS_MODULE);
		tshare_ns_use(region->ns);
	} else {
		list_add(&region->name_owner, &tf->names);
	}
}

/* Removes the name. Its reference is the caller's now, to be dropped by name_release(). */
static void name_remove(struct tshare_region *region)
{
	rb_erase(&region->name_node, &region->ns->names);
	RB_CLEAR_NODE(&region->name_node);
	list_del_init(&region->name_owner);
	name_count--;
}

static void name_release(struct tshare_region *region)
{
	bool persist = region->flags & TSHARE_REGION_PERSIST;

	if (persist)
		tshare_ns_close(region->ns);
	tshare_region_put(region);
	if (persist)
		module_put(THIS_MODULE);
}

/**
 * tshare_name_taken() - whether a region has this name
 * @ns: the namespace
 * @name: the name
 *
 * Spares a search for memory that would be in vain. tshare_region_register()
 * checks again, under the lock.
 */
bool tshare_name_taken(struct tshare_ns *ns, const char *name)
{
	bool taken;

	mutex_lock(&tshare_lock);
	taken = name_find(ns, name);
	mutex_unlock(&tshare_lock);
	return taken;
}

/**
 * tshare_region_register() - let a region be found by its id and its name
 * @tf: the file that the name belongs to
 * @region: the region
 *
 * Return: 0, or -EEXIST if the name is taken.
 */
int tshare_region_register(struct tshare_file *tf, struct tshare_region *region)
{
	int err = 0;

	mutex_lock(&tshare_lock);
	if (region->name[0] && name_find(region->ns, region->name)) {
		err = -EEXIST;
	} else {
		tshare_region_add_id(region);
		if (region->name[0])
			name_insert(tf, region);
	}
	mutex_unlock(&tshare_lock);
	return err;
}

/* A reference to the region with a name in the caller's namespace. */
static struct tshare_region *name_get(struct tshare_ns *ns, const char *name)
{
	struct tshare_region *region;

	mutex_lock(&tshare_lock);
	region = name_find(ns, name);
	if (region)
		kref_get(&region->ref);
	mutex_unlock(&tshare_lock);
	return region;
}

/*
 * A reference to a region by its name in the caller's namespace, or if @name is
 * empty by its id. Ids reach other namespaces for the machine's administrator,
 * who can so unlink a persistent name in a namespace without processes.
 */
static struct tshare_region *region_find(struct tshare_file *tf, const char *name, u64 id)
{
	struct tshare_region *region = name[0] ? name_get(tf->ns, name) : tshare_region_find(id);

	/* ENOENT is no refusal, and so nothing to audit. */
	if (region && region->ns != tf->ns && !ns_capable_noaudit(&init_user_ns, CAP_SYS_ADMIN)) {
		tshare_region_put(region);
		return NULL;
	}
	return region;
}

/**
 * tshare_region_lookup() - find a region that the caller may use
 * @tf: the open device
 * @name: its name, or "" to go by @id
 * @id: its id
 * @access: TSHARE_MAY_*
 *
 * Return: a reference, or ERR_PTR(-ENOENT) or (-EACCES).
 */
struct tshare_region *tshare_region_lookup(struct tshare_file *tf, const char *name, u64 id,
					   int access)
{
	struct tshare_region *region = region_find(tf, name, id);

	if (!region)
		return ERR_PTR(-ENOENT);
	if (!region_may_access(region, access)) {
		tshare_region_put(region);
		return ERR_PTR(-EACCES);
	}
	return region;
}

/**
 * tshare_region_unlink() - remove a region's name
 * @region: the region, held by the caller
 *
 * Return: whether it had one.
 */
bool tshare_region_unlink(struct tshare_region *region)
{
	bool had;

	mutex_lock(&tshare_lock);
	had = region_has_name(region);
	if (had)
		name_remove(region);
	mutex_unlock(&tshare_lock);
	if (had)
		name_release(region);
	return had;
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
	struct tshare_region *region = region_find(tf, name, id);
	int err = 0;

	if (!region)
		return -ENOENT;
	if (!region_is_owned(region))
		err = -EPERM;
	else if (!tshare_region_unlink(region))
		err = -ENOENT;
	tshare_region_put(region);
	return err;
}

/**
 * tshare_file_unlink_names() - remove the names that were made through a file
 * @tf: the file, which is being closed
 */
void tshare_file_unlink_names(struct tshare_file *tf)
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
	} while (region);
}

/**
 * tshare_region_get_name() - the name that a region has now
 * @region: the region
 * @name: where to store it, TSHARE_NAME_LEN bytes; empty if it has none
 */
void tshare_region_get_name(struct tshare_region *region, char *name)
{
	mutex_lock(&tshare_lock);
	if (region_has_name(region))
		memcpy(name, region->name, TSHARE_NAME_LEN);
	else
		memset(name, 0, TSHARE_NAME_LEN);
	mutex_unlock(&tshare_lock);
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
		.node = pfn_to_nid(region->pfn),
		.region_flags = region->flags,
		.desc_count = region->desc_count,
	};
	if (region_may_access_noaudit(region, TSHARE_MAY_WRITE))
		entry->region_flags |= TSHARE_REGION_WRITABLE;
	tshare_region_get_name(region, entry->name);
}

/**
 * tshare_list_next() - the next region that the caller may read
 * @tf: the open device
 * @all: regions of all namespaces, rather than the caller's
 * @cursor: id of the one before, 0 to begin; advances
 * @entry: where to describe the region
 *
 * Return: 1, 0 if there is none, -EINTR for a fatal signal.
 */
int tshare_list_next(struct tshare_file *tf, bool all, u64 *cursor, struct tshare_list_entry *entry)
{
	struct tshare_region *region;
	bool found = false;

	while (!found && (region = tshare_region_next(cursor))) {
		found = (all || region->ns == tf->ns) &&
			region_may_access_noaudit(region, TSHARE_MAY_READ);
		if (found)
			region_fill_entry(region, entry);
		tshare_region_put(region);
		/* A million may come that the caller may not read. */
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return found;
}
