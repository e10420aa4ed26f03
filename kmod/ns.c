// SPDX-License-Identifier: GPL-2.0-only
/* IPC namespaces in which the device is used. */
#include <linux/bits.h>
#include <linux/capability.h>
#include <linux/dcache.h>
#include <linux/err.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/ipc_namespace.h>
#include <linux/list.h>
#include <linux/nsproxy.h>
#include <linux/proc_fs.h>
#include <linux/proc_ns.h>
#include <linux/random.h>
#include <linux/rbtree.h>
#include <linux/siphash.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "compat.h"
#include "ns.h"

DEFINE_MUTEX(tshare_lock); /* protects what ns.h lists */

/*
 * Namespaces that open() can find: those in use, and the initial one. Trees, since a user may
 * make thousands of namespaces, and each open() of others would walk a list.
 */
static struct rb_root namespaces = RB_ROOT;
static struct rb_root usages = RB_ROOT;

/* Namespaces with names that belong to no file, and without open files. */
static LIST_HEAD(left_namespaces);

static int ns_compare(const void *inum, const struct rb_node *node)
{
	unsigned int left = *(const unsigned int *)inum;
	unsigned int right = rb_entry(node, struct tshare_ns, node)->inum;

	return left < right ? -1 : left > right;
}

static bool ns_is_before(struct rb_node *a, const struct rb_node *b)
{
	return ns_compare(&rb_entry(a, struct tshare_ns, node)->inum, b) < 0;
}

/* Finds the namespace with that inode number, and counts an open file of it. */
static struct tshare_ns *ns_find(unsigned int inum)
{
	struct rb_node *node = rb_find(&inum, &namespaces, ns_compare);
	struct tshare_ns *ns;

	if (!node)
		return NULL;
	ns = rb_entry(node, struct tshare_ns, node);
	ns->refs++;
	ns->files++;
	list_del_init(&ns->left);
	return ns;
}

static int usage_compare(const void *key, const struct rb_node *node)
{
	const struct tshare_ns_usage *left = key;
	const struct tshare_ns_usage *right = rb_entry(node, struct tshare_ns_usage, node);

	if (left->inum != right->inum)
		return left->inum < right->inum ? -1 : 1;
	return left->user_ns < right->user_ns ? -1 : left->user_ns > right->user_ns;
}

static bool usage_is_before(struct rb_node *a, const struct rb_node *b)
{
	return usage_compare(rb_entry(a, struct tshare_ns_usage, node), b) < 0;
}

/* The usage with the same key as @like, if there is one. */
static struct tshare_ns_usage *usage_find(const struct tshare_ns_usage *like)
{
	struct rb_node *node = rb_find(like, &usages, usage_compare);

	return node ? rb_entry(node, struct tshare_ns_usage, node) : NULL;
}

/*
 * Ids
 *
 * A namespace takes its ids in order from a block of 2^24 of its own, and from another one if
 * that is used up, so that ids reveal nothing of what other namespaces create. A Feistel
 * network, a permutation of 38 bits with a secret key, chooses the blocks: no two are the
 * same, and no block reveals how many there are. The initial namespace begins with block 0.
 */
#define ID_BITS	  24
#define HALF_BITS 19

static u64 initial_last_id; /* of the initial namespace while it is out of use */

static u64 ids_permute(u64 number, const siphash_key_t *key)
{
	u64 left = number >> HALF_BITS & GENMASK_ULL(HALF_BITS - 1, 0);
	u64 right = number & GENMASK_ULL(HALF_BITS - 1, 0);
	int round;

	for (round = 0; round < 4; round++) {
		u64 mixed = siphash_2u64(right, round, key) & GENMASK_ULL(HALF_BITS - 1, 0);

		mixed ^= left;
		left = right;
		right = mixed;
	}
	return left << HALF_BITS | right;
}

/* Draws a block. Returns the number before its first id. */
static u64 ids_draw(void)
{
	static siphash_key_t key;
	static u64 drawn;
	u64 block;

	lockdep_assert_held(&tshare_lock);
	if (!drawn)
		get_random_bytes(&key, sizeof(key));
	do {
		block = ids_permute(++drawn, &key);
	} while (!block);
	return block << ID_BITS;
}

/**
 * tshare_ns_new_id() - an id for a new region
 * @ns: its namespace
 *
 * Return: the id, which no other region has or had.
 */
u64 tshare_ns_new_id(struct tshare_ns *ns)
{
	u64 id;

	mutex_lock(&tshare_lock);
	if (!(++ns->last_id & GENMASK_ULL(ID_BITS - 1, 0)))
		ns->last_id = ids_draw() + 1;
	id = ns->last_id;
	mutex_unlock(&tshare_lock);
	return id;
}

/**
 * tshare_ns_last_of_block() - the end of a block of ids, which are all of one namespace
 * @id: any id of the block
 *
 * Return: the last id that the block may have.
 */
u64 tshare_ns_last_of_block(u64 id)
{
	return id | GENMASK_ULL(ID_BITS - 1, 0);
}

static struct ns_common *ipc_ns_get(struct ns_common *ns)
{
	get_ipc_ns(container_of(ns, struct ipc_namespace, ns));
	return ns;
}

/**
 * struct ns_hold - a request to a kernel thread for a namespace's file
 * @work: the thread's work
 * @ipc: the namespace, which the waiting caller is in
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
 * A file that keeps an IPC namespace alive, so that its inode number isn't reused: 6.1 doesn't
 * let modules put the namespace itself.
 *
 * The file comes with a descriptor for a moment. A kernel thread gets it, because no process
 * can touch that thread's descriptors. Closing what another thread of the caller put in the
 * descriptor's place, or walking a path through the caller's /proc, could take for ever, and
 * open() of a misc device blocks all others.
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

/* Allocates the struct of @ipc, with one open file; not yet in namespaces. */
static struct tshare_ns *ns_alloc(struct ipc_namespace *ipc)
{
	struct tshare_ns *ns = kzalloc(sizeof(*ns), GFP_KERNEL_ACCOUNT);
	struct tshare_ns_usage *usage = kzalloc(sizeof(*usage), GFP_KERNEL_ACCOUNT);
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
		.files = 1,
		.inum = ipc->ns.inum,
		.file = file,
		.user_ns = get_user_ns(ipc->user_ns),
		.usage = usage,
	};
	INIT_LIST_HEAD(&ns->left);
	*usage = (struct tshare_ns_usage){ .inum = ns->inum, .user_ns = ns->user_ns };
	return ns;

err_free:
	kfree(usage);
	kfree(ns);
	return ERR_PTR(err);
}

/**
 * tshare_ns_open() - count an open file of the caller's namespace
 *
 * Return: the namespace, for tshare_ns_close(), or an ERR_PTR: -ENOMEM, -ENFILE.
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
		usage = usage_find(fresh->usage);
		if (usage)
			swap(usage, fresh->usage);
		else
			rb_add(&fresh->usage->node, &usages, usage_is_before);
		fresh->usage->refs++;
		fresh->last_id = fresh->file ? ids_draw() : initial_last_id;
		rb_add(&fresh->node, &namespaces, ns_is_before);
	}
	mutex_unlock(&tshare_lock);
	if (ns) {
		ns_free(fresh);
		return ns;
	}
	/* The usage that @fresh came with, if @fresh shares another. */
	kfree(usage);
	return fresh;
}

/**
 * tshare_ns_add_watch() - count a watch, which is another open file
 * @ns: the namespace, with an open file
 * @max: how many the namespace may have: a change of a name wakes its watches under
 *       tshare_lock, for which all namespaces wait
 *
 * Return: 0, or -EDQUOT.
 */
int tshare_ns_add_watch(struct tshare_ns *ns, unsigned int max)
{
	int err = 0;

	mutex_lock(&tshare_lock);
	if (ns->watches < max) {
		ns->watches++;
		ns->refs++;
		ns->files++;
	} else {
		err = -EDQUOT;
	}
	mutex_unlock(&tshare_lock);
	return err;
}

/**
 * tshare_ns_remove_watch() - undo tshare_ns_add_watch(), but for the open file
 * @ns: the namespace
 */
void tshare_ns_remove_watch(struct tshare_ns *ns)
{
	mutex_lock(&tshare_lock);
	ns->watches--;
	mutex_unlock(&tshare_lock);
}

/*
 * If no open files or names are left, open() no longer finds the namespace. Returns its file,
 * for the caller to put outside the lock. A later open() there gets another struct tshare_ns,
 * since without the file the inode number may be reused.
 */
static struct file *ns_forget(struct tshare_ns *ns)
{
	struct file *file = ns->file;

	if (ns->files || ns->names || !file)
		return NULL;
	list_del_init(&ns->left);
	rb_erase(&ns->node, &namespaces);
	RB_CLEAR_NODE(&ns->node);
	ns->file = NULL;
	return file;
}

/**
 * tshare_ns_close() - end tshare_ns_open()
 * @ns: the namespace; after its last open file only names keep it alive
 *
 * Return: whether names are left for which tshare_ns_next_dead() must be called now and then.
 */
bool tshare_ns_close(struct tshare_ns *ns)
{
	struct file *file;
	bool left;

	mutex_lock(&tshare_lock);
	ns->files--;
	file = ns_forget(ns);
	left = ns->file && !ns->files;
	if (left)
		list_add(&ns->left, &left_namespaces);
	mutex_unlock(&tshare_lock);
	if (file)
		fput(file);
	tshare_ns_put(ns);
	return left;
}

/**
 * tshare_ns_add_name() - count a name that belongs to no file
 * @ns: the namespace, with an open file; the caller holds tshare_lock
 */
void tshare_ns_add_name(struct tshare_ns *ns)
{
	lockdep_assert_held(&tshare_lock);
	ns->names++;
}

/**
 * tshare_ns_remove_name() - end tshare_ns_add_name()
 * @ns: the namespace, to which the caller has a reference
 */
void tshare_ns_remove_name(struct tshare_ns *ns)
{
	struct file *file;

	mutex_lock(&tshare_lock);
	ns->names--;
	file = ns_forget(ns);
	mutex_unlock(&tshare_lock);
	if (file)
		fput(file);
}

/*
 * Whether no process is in the namespace or can enter it: only its inode refers to it, and
 * only our file to the inode. The lock keeps references to the dentry from being taken or
 * dropped meanwhile: a process could enter through one and drop it.
 */
static bool ns_is_dead(const struct tshare_ns *ns)
{
	struct dentry *dentry = ns->file->f_path.dentry;
	bool dead;

	spin_lock(&dentry->d_lock);
	dead = d_count(dentry) == 1 && tshare_ns_refs(get_proc_ns(d_inode(dentry))) == 1;
	spin_unlock(&dentry->d_lock);
	return dead;
}

/**
 * tshare_ns_next_dead() - a namespace whose names no process can look for any more
 *
 * The kernel doesn't report when the last process leaves a namespace.
 *
 * Return: a reference, or NULL. A namespace is returned once.
 */
struct tshare_ns *tshare_ns_next_dead(void)
{
	struct tshare_ns *ns;

	mutex_lock(&tshare_lock);
	list_for_each_entry(ns, &left_namespaces, left) {
		if (!ns_is_dead(ns))
			continue;
		/* The next call continues here, and checks the namespaces before this one last. */
		list_rotate_to_front(&ns->left, &left_namespaces);
		list_del_init(&ns->left);
		ns->refs++;
		mutex_unlock(&tshare_lock);
		return ns;
	}
	mutex_unlock(&tshare_lock);
	return NULL;
}

/**
 * tshare_ns_any_left() - whether any namespace has names, and no open files
 *
 * Return: whether tshare_ns_next_dead() has something to look at.
 */
bool tshare_ns_any_left(void)
{
	bool any;

	mutex_lock(&tshare_lock);
	any = !list_empty(&left_namespaces);
	mutex_unlock(&tshare_lock);
	return any;
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
		if (!RB_EMPTY_NODE(&ns->node)) {
			rb_erase(&ns->node, &namespaces);
			if (ns->inum == PROC_IPC_INIT_INO)
				initial_last_id = ns->last_id;
		}
		if (--ns->usage->refs)
			ns->usage = NULL;
		else
			rb_erase(&ns->usage->node, &usages);
	}
	mutex_unlock(&tshare_lock);
	if (ns)
		ns_free(ns);
}

/**
 * tshare_ns_is_owned() - whether the caller counts as the owner of all regions in a namespace
 * @ns: the namespace
 *
 * Called without tshare_lock: it may wait for the audit log.
 */
bool tshare_ns_is_owned(const struct tshare_ns *ns)
{
	return ns_capable(ns->user_ns, CAP_IPC_OWNER);
}
