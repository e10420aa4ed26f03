// SPDX-License-Identifier: GPL-2.0-only
/*
 * Namespaces, names and ids.
 *
 * Everything here happens under tshare_lock. References that are dropped for a
 * name that goes are dropped after it, since the last one takes it again.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/ipc_namespace.h>
#include <linux/magic.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/proc_ns.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/xarray.h>

#include "names.h"

/* Protects what region.h says. */
DEFINE_MUTEX(tshare_lock);

static LIST_HEAD(namespaces);
static DEFINE_XARRAY(regions);
static u64 last_id;
static unsigned long name_count;

unsigned long tshare_name_count(void)
{
	return READ_ONCE(name_count);
}

/* Namespaces */

static struct tshare_ns *ns_find(unsigned int inum)
{
	struct tshare_ns *ns;

	list_for_each_entry(ns, &namespaces, node) {
		if (ns->inum == inum) {
			ns->refs++;
			return ns;
		}
	}
	return NULL;
}

/*
 * A file that keeps the caller's IPC namespace alive, so that its number isn't
 * given to another one: 6.1 doesn't let modules hold the namespace itself. It
 * comes through the caller's /proc, which may be anything; hence the checks.
 */
static struct file *ns_hold_current(unsigned int inum)
{
	struct file *file = filp_open("/proc/self/ns/ipc", O_RDONLY, 0);

	if (IS_ERR(file))
		return file;
	if (file_inode(file)->i_sb->s_magic != NSFS_MAGIC || file_inode(file)->i_ino != inum) {
		fput(file);
		return ERR_PTR(-ENOENT);
	}
	return file;
}

/**
 * tshare_ns_get_current() - the caller's namespace
 *
 * Return: a reference, or an ERR_PTR: -ENOENT in a namespace other than the
 * initial one where /proc isn't mounted, -ENOMEM, or what open() of it gave.
 */
struct tshare_ns *tshare_ns_get_current(void)
{
	struct ipc_namespace *ipc = current->nsproxy->ipc_ns;
	unsigned int inum = ipc->ns.inum;
	struct tshare_ns *ns, *fresh;

	mutex_lock(&tshare_lock);
	ns = ns_find(inum);
	mutex_unlock(&tshare_lock);
	if (ns)
		return ns;

	fresh = kzalloc(sizeof(*fresh), GFP_KERNEL);
	if (!fresh)
		return ERR_PTR(-ENOMEM);
	*fresh = (struct tshare_ns){
		.refs = 1,
		.inum = inum,
		.user_ns = ipc->user_ns,
		.names = RB_ROOT,
	};
	if (inum != PROC_IPC_INIT_INO) {
		fresh->file = ns_hold_current(inum);
		if (IS_ERR(fresh->file)) {
			ns = ERR_CAST(fresh->file);
			kfree(fresh);
			return ns;
		}
	}

	/* Opening a file may take for ever, so it was done without the lock. */
	mutex_lock(&tshare_lock);
	ns = ns_find(inum);
	if (!ns)
		list_add(&fresh->node, &namespaces);
	mutex_unlock(&tshare_lock);
	if (!ns)
		return fresh;
	if (fresh->file)
		fput(fresh->file);
	kfree(fresh);
	return ns;
}

void tshare_ns_get(struct tshare_ns *ns)
{
	mutex_lock(&tshare_lock);
	ns->refs++;
	mutex_unlock(&tshare_lock);
}

void tshare_ns_put(struct tshare_ns *ns)
{
	mutex_lock(&tshare_lock);
	if (--ns->refs)
		ns = NULL;
	else
		list_del(&ns->node);
	mutex_unlock(&tshare_lock);

	if (ns) {
		if (ns->file)
			fput(ns->file);
		kfree(ns);
	}
}

/* Permissions */

static bool owns(const struct tshare_region *region)
{
	return uid_eq(current_fsuid(), region->uid) ||
	       ns_capable(region->ns->user_ns, CAP_IPC_OWNER);
}

/**
 * tshare_may() - may the caller do this to a region?
 * @region: the region
 * @access: TSHARE_MAY_READ, TSHARE_MAY_WRITE or both
 *
 * As for files, the first class that the caller is in decides.
 */
bool tshare_may(const struct tshare_region *region, int access)
{
	umode_t granted = region->mode;

	if (uid_eq(current_fsuid(), region->uid))
		granted >>= 6;
	else if (in_group_p(region->gid))
		granted >>= 3;
	return !(access & ~granted) || ns_capable(region->ns->user_ns, CAP_IPC_OWNER);
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

static bool named(const struct tshare_region *region)
{
	return !RB_EMPTY_NODE(&region->name_node);
}

static void name_insert(struct tshare_file *tf, struct tshare_region *region)
{
	struct rb_node **link = &region->ns->names.rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		if (strcmp(region->name, rb_entry(parent, struct tshare_region, name_node)->name) <
		    0)
			link = &parent->rb_left;
		else
			link = &parent->rb_right;
	}
	rb_link_node(&region->name_node, parent, link);
	rb_insert_color(&region->name_node, &region->ns->names);
	name_count++;
	kref_get(&region->ref);
	if (region->flags & TSHARE_REGION_PERSIST)
		__module_get(THIS_MODULE);
	else
		list_add(&region->name_owner, &tf->names);
}

/* Takes the name away; its reference, now the caller's, goes to name_release(). */
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

	tshare_region_put(region);
	if (persist)
		module_put(THIS_MODULE);
}

/**
 * tshare_name_taken() - would this name be refused?
 * @ns: the namespace
 * @name: the name
 *
 * Spares the search for memory; tshare_publish() is who decides.
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
 * tshare_publish() - give a region its id and its name, for others to find
 * @tf: the file that the name belongs to
 * @region: the region
 *
 * Return: 0, -EEXIST if the name is taken, -ENOMEM.
 */
int tshare_publish(struct tshare_file *tf, struct tshare_region *region)
{
	int err = -EEXIST;

	mutex_lock(&tshare_lock);
	if (region->name[0] && name_find(region->ns, region->name))
		goto out;
	err = xa_insert(&regions, last_id + 1, region, GFP_KERNEL);
	if (err)
		goto out;
	region->id = ++last_id;
	if (region->name[0])
		name_insert(tf, region);
out:
	mutex_unlock(&tshare_lock);
	return err;
}

/**
 * tshare_withdraw() - forget a region that nobody holds any more
 * @region: the region; the caller holds tshare_lock
 */
void tshare_withdraw(struct tshare_region *region)
{
	lockdep_assert_held(&tshare_lock);
	if (region->id)
		xa_erase(&regions, region->id);
}

/*
 * By name in the caller's namespace, or by id if there is none. Ids reach other
 * namespaces for whoever administers the machine: a persistent name in one
 * that nobody is in any more can be had back.
 */
static struct tshare_region *find(struct tshare_file *tf, const char *name, u64 id)
{
	struct tshare_region *region;

	if (name[0])
		return name_find(tf->ns, name);
	region = xa_load(&regions, id);
	if (region && region->ns != tf->ns && !capable(CAP_SYS_ADMIN))
		return NULL;
	return region;
}

/**
 * tshare_lookup() - find a region that the caller may use
 * @tf: the open device
 * @name: its name, or "" to go by @id
 * @id: its id
 * @access: TSHARE_MAY_*
 *
 * Return: a reference, or ERR_PTR(-ENOENT) or (-EACCES).
 */
struct tshare_region *tshare_lookup(struct tshare_file *tf, const char *name, u64 id, int access)
{
	struct tshare_region *region;

	mutex_lock(&tshare_lock);
	region = find(tf, name, id);
	if (!region)
		region = ERR_PTR(-ENOENT);
	else if (!tshare_may(region, access))
		region = ERR_PTR(-EACCES);
	else
		kref_get(&region->ref);
	mutex_unlock(&tshare_lock);
	return region;
}

/**
 * tshare_unname() - remove a name for a caller
 * @tf: the open device
 * @name: the name, or "" to go by @id
 * @id: the region's id
 *
 * Return: 0, -ENOENT, -EPERM.
 */
int tshare_unname(struct tshare_file *tf, const char *name, u64 id)
{
	struct tshare_region *region;
	int err = 0;

	mutex_lock(&tshare_lock);
	region = find(tf, name, id);
	if (!region || !named(region))
		err = -ENOENT;
	else if (!owns(region))
		err = -EPERM;
	else
		name_remove(region);
	mutex_unlock(&tshare_lock);
	if (!err)
		name_release(region);
	return err;
}

/**
 * tshare_unname_region() - take a name back that was just given
 * @region: the region, held by the caller; somebody may have been quicker
 */
void tshare_unname_region(struct tshare_region *region)
{
	bool had;

	mutex_lock(&tshare_lock);
	had = named(region);
	if (had)
		name_remove(region);
	mutex_unlock(&tshare_lock);
	if (had)
		name_release(region);
}

/**
 * tshare_file_drop_names() - the names that were made through a file go with it
 * @tf: the file
 */
void tshare_file_drop_names(struct tshare_file *tf)
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
 * tshare_current_name() - a region's name, if it still has it
 * @region: the region
 * @name: where to store it, TSHARE_NAME_LEN bytes
 */
void tshare_current_name(struct tshare_region *region, char *name)
{
	mutex_lock(&tshare_lock);
	if (named(region))
		memcpy(name, region->name, TSHARE_NAME_LEN);
	else
		memset(name, 0, TSHARE_NAME_LEN);
	mutex_unlock(&tshare_lock);
}

static void fill_entry(const struct tshare_region *region, struct tshare_list_entry *entry)
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
	if (tshare_may(region, TSHARE_MAY_WRITE))
		entry->region_flags |= TSHARE_REGION_WRITABLE;
	if (named(region))
		memcpy(entry->name, region->name, TSHARE_NAME_LEN);
}

/**
 * tshare_list_next() - the next region that the caller may read
 * @tf: the open device
 * @all: of any namespace, rather than the caller's
 * @cursor: id of the one before, 0 to begin; advanced
 * @entry: where to describe it
 *
 * Return: false if there is none.
 */
bool tshare_list_next(struct tshare_file *tf, bool all, u64 *cursor,
		      struct tshare_list_entry *entry)
{
	struct tshare_region *region;
	unsigned long id = *cursor;

	mutex_lock(&tshare_lock);
	while ((region = xa_find_after(&regions, &id, ULONG_MAX, XA_PRESENT))) {
		*cursor = id;
		if ((all || region->ns == tf->ns) && tshare_may(region, TSHARE_MAY_READ)) {
			fill_entry(region, entry);
			break;
		}
	}
	mutex_unlock(&tshare_lock);
	return region;
}
