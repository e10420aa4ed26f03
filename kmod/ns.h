/* SPDX-License-Identifier: GPL-2.0-only */
/* IPC namespaces in which the device is used, and the lock of what belongs to them. */
#ifndef TSHARE_NS_H
#define TSHARE_NS_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/types.h>
#include <linux/user_namespace.h>

/*
 * Protects the namespaces, the names, the ids and what the limits count. It is
 * taken with no other lock of the module held but account.c's pinned_lock, and
 * nothing under it touches user memory, allocates memory or sleeps.
 */
extern struct mutex tshare_lock;

/**
 * struct tshare_ns_usage - what the regions of a namespace have together
 * @refs: of struct tshare_ns
 * @node: among all usages, by the next two
 * @inum: inode number of the namespace
 * @user_ns: its user namespace; each struct tshare_ns that shares the usage has a
 *           reference
 * @nr_pages: pages
 *
 * Outlives a struct tshare_ns, so that closing the device doesn't empty the
 * count. For a count it is enough if the namespace is probably the same: if the
 * number is reused in one user namespace, the successor is charged for regions
 * that its predecessor has left.
 */
struct tshare_ns_usage {
	unsigned int refs;
	struct rb_node node;
	unsigned int inum;
	struct user_namespace *user_ns;
	unsigned long nr_pages;
};

/**
 * struct tshare_ns - an IPC namespace, for as long as the device is in use there
 * @refs: open files, regions, and what is charged for; this and all below under
 *        tshare_lock
 * @files: open files
 * @names: names that belong to no file
 * @watches: watches of names
 * @node: among the namespaces that can be found, by @inum; cleared when it no longer can
 * @left: among those that have such names and no open file
 * @inum: its inode number, which is unique while @file holds it
 * @file: keeps the namespace while there are open files, or somebody may still look for such
 *        a name; NULL otherwise, and for the initial namespace, which is never freed. Without
 *        it, this is no more than a key, for regions that are left: equal to no other
 *        namespace's, whatever inode number that has
 * @user_ns: the user namespace that owns it, a reference
 * @usage: what its regions have together, a reference
 * @last_id: id of its newest region
 * @finished: finished regions by their names
 * @drafts: drafts by their names
 * @waiters: callers that wait for a name, by that
 */
struct tshare_ns {
	unsigned int refs;
	unsigned int files;
	unsigned int names;
	unsigned int watches;
	struct rb_node node;
	struct list_head left;
	unsigned int inum;
	struct file *file;
	struct user_namespace *user_ns;
	struct tshare_ns_usage *usage;
	u64 last_id;
	struct rb_root finished;
	struct rb_root drafts;
	struct rb_root waiters;
};

struct tshare_ns *tshare_ns_open(void);
int tshare_ns_add_watch(struct tshare_ns *ns, unsigned int max);
void tshare_ns_remove_watch(struct tshare_ns *ns);
bool tshare_ns_close(struct tshare_ns *ns);
void tshare_ns_add_name(struct tshare_ns *ns);
void tshare_ns_remove_name(struct tshare_ns *ns);
struct tshare_ns *tshare_ns_next_dead(void);
bool tshare_ns_any_left(void);
u64 tshare_ns_new_id(struct tshare_ns *ns);
u64 tshare_ns_last_of_block(u64 id);
void tshare_ns_get(struct tshare_ns *ns);
void tshare_ns_put(struct tshare_ns *ns);

#endif /* TSHARE_NS_H */
