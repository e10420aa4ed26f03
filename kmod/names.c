// SPDX-License-Identifier: GPL-2.0-only
/*
 * Namespaces, names and ids.
 *
 * What is found here is found under tshare_lock, and looked at with a reference
 * after it: to ask for a capability may wait for the audit log. References are
 * dropped after it too, since the last one takes it again.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/ipc_namespace.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/proc_fs.h>
#include <linux/proc_ns.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "names.h"

/* Protects what region.h says. */
DEFINE_MUTEX(tshare_lock);

/* Namespaces that can be found: those in use, and the initial one. */
static LIST_HEAD(namespaces);
static LIST_HEAD(usages);
static DEFINE_XARRAY(regions);
static atomic64_t last_id;
static unsigned long name_count;

unsigned long tshare_name_count(void)
{
	return READ_ONCE(name_count);
}

/* Namespaces */

static void ns_use(struct tshare_ns *ns)
{
	ns->users++;
	ns->refs++;
}

/* A use of the namespace with that inode number, if it is known. */
static struct tshare_ns *ns_find(unsigned int inum)
{
	struct tshare_ns *ns;

	list_for_each_entry(ns, &namespaces, node) {
		if (ns->inum == inum) {
			ns_use(ns);
			return ns;
		}
	}
	return NULL;
}

static struct tshare_ns_usage *usage_find(const struct tshare_ns *ns)
{
	struct tshare_ns_usage *usage;

	list_for_each_entry(usage, &usages, node)
		if (usage->inum == ns->inum && usage->user_ns == ns->user_ns)
			return usage;
	return NULL;
}

static struct ns_common *ipc_ns_get(struct ns_common *ns)
{
	get_ipc_ns(container_of(ns, struct ipc_namespace, ns));
	return ns;
}

/**
 * struct ns_hold - a file to be had by a kernel thread
 * @work: does it
 * @ipc: of this namespace, which the waiting caller is in
 * @file: the result, or an ERR_PTR
 */
struct ns_hold {
	struct work_struct work;
	struct ipc_namespace *ipc;
	struct file *file;
};

static void ns_hold_work(struct work_struct *work)
{
	struct ns_hold *hold = container_of(work, struct ns_hold, work);
	int fd = open_related_ns(&hold->ipc->ns, ipc_ns_get);

	if (fd < 0) {
		hold->file = ERR_PTR(fd);
		return;
	}
	hold->file = fget(fd) ?: ERR_PTR(-EBADF);
	close_fd(fd);
}

/*
 * A file that keeps an IPC namespace alive, so that its number isn't given to
 * another one: 6.1 doesn't let modules put the namespace itself.
 *
 * The file comes with a descriptor for a moment, and this is done by a kernel
 * thread, whose descriptors no process can touch: open() of a misc device holds
 * up that of all others, and to close what a caller put in the descriptor's
 * place, or to walk a path through a caller's /proc, can take for ever.
 */
static struct file *ns_hold(struct ipc_namespace *ipc)
{
	struct ns_hold hold = { .ipc = ipc };

	INIT_WORK_ONSTACK(&hold.work, ns_hold_work);
	schedule_work(&hold.work);
	flush_work(&hold.work);
	destroy_work_on_stack(&hold.work);
	return hold.file;
}

static void ns_free(struct tshare_ns *ns)
{
	if (ns->file)
		fput(ns->file);
	put_user_ns(ns->user_ns);
	kfree(ns->usage);
	kfree(ns);
}

/* A first use of @ipc, which nobody can find yet. */
static struct tshare_ns *ns_alloc(struct ipc_namespace *ipc)
{
	struct tshare_ns *ns = kzalloc(sizeof(*ns), GFP_KERNEL);
	struct tshare_ns_usage *usage = kzalloc(sizeof(*usage), GFP_KERNEL);
	struct file *file = NULL;
	int err = -ENOMEM;

	if (!ns || !usage)
		goto err_free;
	if (ipc->ns.inum != PROC_IPC_INIT_INO) {
		file = ns_hold(ipc);
		if (IS_ERR(file)) {
			err = PTR_ERR(file);
			goto err_free;
		}
	}
	*ns = (struct tshare_ns){
		.refs = 1,
		.users = 1,
		.inum = ipc->ns.inum,
		.file = file,
		.user_ns = get_user_ns(ipc->user_ns),
		.names = RB_ROOT,
		.usage = usage,
	};
	*usage = (struct tshare_ns_usage){ .inum = ns->inum, .user_ns = ns->user_ns };
	return ns;

err_free:
	kfree(usage);
	kfree(ns);
	return ERR_PTR(err);
}

/**
 * tshare_ns_open() - use the caller's namespace
 *
 * Return: a use, to be ended by tshare_ns_close(), or an ERR_PTR: -ENOMEM, -ENFILE.
 */
struct tshare_ns *tshare_ns_open(void)
{
	struct ipc_namespace *ipc = current->nsproxy->ipc_ns;
	struct tshare_ns_usage *usage = NULL;
	struct tshare_ns *ns, *fresh;

	mutex_lock(&tshare_lock);
	ns = ns_find(ipc->ns.inum);
	mutex_unlock(&tshare_lock);
	if (ns)
		return ns;

	fresh = ns_alloc(ipc);
	if (IS_ERR(fresh))
		return fresh;
	mutex_lock(&tshare_lock);
	ns = ns_find(fresh->inum);
	if (!ns) {
		usage = usage_find(fresh);
		if (usage)
			swap(usage, fresh->usage);
		else
			list_add(&fresh->usage->node, &usages);
		fresh->usage->refs++;
		list_add(&fresh->node, &namespaces);
	}
	mutex_unlock(&tshare_lock);
	if (ns) {
		ns_free(fresh);
		return ns;
	}
	/* The one that fresh came with, if it shares another. */
	kfree(usage);
	return fresh;
}

/**
 * tshare_ns_close() - end a use
 * @ns: the namespace, which nothing of the module keeps after the last use
 *
 * Whatever opens the device in it later gets another struct tshare_ns: without
 * a use nobody can tell whether the inode number still means the same namespace.
 */
void tshare_ns_close(struct tshare_ns *ns)
{
	struct file *file = NULL;

	mutex_lock(&tshare_lock);
	if (!--ns->users && ns->file) {
		list_del_init(&ns->node);
		swap(file, ns->file);
	}
	mutex_unlock(&tshare_lock);
	if (file)
		fput(file);
	tshare_ns_put(ns);
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
	if (--ns->refs) {
		ns = NULL;
	} else {
		list_del(&ns->node);
		if (--ns->usage->refs)
			ns->usage = NULL;
		else
			list_del(&ns->usage->node);
	}
	mutex_unlock(&tshare_lock);
	if (ns)
		ns_free(ns);
}

/* Permissions */

static bool owns(const struct tshare_region *region)
{
	return uid_eq(current_fsuid(), region->uid) ||
	       ns_capable(region->ns->user_ns, CAP_IPC_OWNER);
}

/* As for files, the first class that the caller is in decides. */
static bool mode_grants(const struct tshare_region *region, int access)
{
	umode_t granted = region->mode;

	if (uid_eq(current_fsuid(), region->uid))
		granted >>= 6;
	else if (in_group_p(region->gid))
		granted >>= 3;
	return !(access & ~granted);
}

static bool may(const struct tshare_region *region, int access)
{
	return mode_grants(region, access) || ns_capable(region->ns->user_ns, CAP_IPC_OWNER);
}

/* The same for who only looks around, which is nothing to audit. */
static bool might(const struct tshare_region *region, int access)
{
	return mode_grants(region, access) ||
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

static bool named(const struct tshare_region *region)
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
		ns_use(region->ns);
	} else {
		list_add(&region->name_owner, &tf->names);
	}
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

	if (persist)
		tshare_ns_close(region->ns);
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
	u64 id = atomic64_inc_return(&last_id);
	int err;

	/* What needs memory is done before the lock is taken. */
	err = xa_reserve(&regions, id, GFP_KERNEL);
	if (err)
		return err;

	mutex_lock(&tshare_lock);
	if (region->name[0] && name_find(region->ns, region->name)) {
		xa_release(&regions, id);
		err = -EEXIST;
	} else {
		xa_store(&regions, id, region, 0);
		region->id = id;
		if (region->name[0])
			name_insert(tf, region);
	}
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
 * A reference on a region by its name in the caller's namespace, or by its id
 * if there is none. Ids reach other namespaces for whoever administers the
 * machine: a persistent name in one that nobody is in any more can be had back.
 */
static struct tshare_region *find(struct tshare_file *tf, const char *name, u64 id)
{
	struct tshare_region *region;

	mutex_lock(&tshare_lock);
	region = name[0] ? name_find(tf->ns, name) : xa_load(&regions, id);
	if (region)
		kref_get(&region->ref);
	mutex_unlock(&tshare_lock);

	/* A caller who lacks it isn't refused, but finds nothing: no matter for audit. */
	if (region && region->ns != tf->ns && !ns_capable_noaudit(&init_user_ns, CAP_SYS_ADMIN)) {
		tshare_region_put(region);
		return NULL;
	}
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
	struct tshare_region *region = find(tf, name, id);

	if (!region)
		return ERR_PTR(-ENOENT);
	if (!may(region, access)) {
		tshare_region_put(region);
		return ERR_PTR(-EACCES);
	}
	return region;
}

/**
 * tshare_unname_region() - remove a region's name
 * @region: the region, held by the caller
 *
 * Return: false if somebody was quicker, or it never had one.
 */
bool tshare_unname_region(struct tshare_region *region)
{
	bool had;

	mutex_lock(&tshare_lock);
	had = named(region);
	if (had)
		name_remove(region);
	mutex_unlock(&tshare_lock);
	if (had)
		name_release(region);
	return had;
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
	struct tshare_region *region = find(tf, name, id);
	int err = 0;

	if (!region)
		return -ENOENT;
	if (!owns(region))
		err = -EPERM;
	else if (!tshare_unname_region(region))
		err = -ENOENT;
	tshare_region_put(region);
	return err;
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

static void fill_entry(struct tshare_region *region, struct tshare_list_entry *entry)
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
	if (might(region, TSHARE_MAY_WRITE))
		entry->region_flags |= TSHARE_REGION_WRITABLE;
	tshare_current_name(region, entry->name);
}

/* A reference on the region with the least id behind @cursor, which advances. */
static struct tshare_region *next_region(u64 *cursor)
{
	unsigned long id = *cursor;
	struct tshare_region *region;

	mutex_lock(&tshare_lock);
	region = xa_find_after(&regions, &id, ULONG_MAX, XA_PRESENT);
	if (region)
		kref_get(&region->ref);
	mutex_unlock(&tshare_lock);
	*cursor = id;
	return region;
}

/**
 * tshare_list_next() - the next region that the caller may read
 * @tf: the open device
 * @all: of any namespace, rather than the caller's
 * @cursor: id of the one before, 0 to begin; advanced
 * @entry: where to describe it
 *
 * Return: 1, 0 if there is none, -EINTR for a fatal signal.
 */
int tshare_list_next(struct tshare_file *tf, bool all, u64 *cursor, struct tshare_list_entry *entry)
{
	struct tshare_region *region;
	bool found = false;

	while (!found && (region = next_region(cursor))) {
		found = (all || region->ns == tf->ns) && might(region, TSHARE_MAY_READ);
		if (found)
			fill_entry(region, entry);
		tshare_region_put(region);
		/* There may be a million that the caller may not read. */
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return found;
}
