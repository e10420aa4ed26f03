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
 * Protects the namespaces, the names, the ids and what the limits count. Of the module's other
 * locks a caller may hold only account.c's pinned_lock when it takes this one. Code under it
 * doesn't touch user memory, allocate memory or sleep.
 */
extern struct mutex tshare_lock;

/**
 * struct tshare_ns_usage - the pages that a namespace's regions have together
 * @refs: of struct tshare_ns
 * @node: in usages, by @inum and @user_ns
 * @inum: inode number of the namespace
 * @user_ns: its user namespace; each struct tshare_ns that shares the usage has a
 *           reference
 * @nr_pages: pages
 *
 * Successive struct tshare_ns of a namespace share it, so that closing the device doesn't
 * reset the count. The key is only probably unique: if the inode number is reused in one user
 * namespace, the successor is charged for regions that its predecessor has left.
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
 * @refs: open files, regions and charges; this and all below under tshare_lock
 * @files: open files
 * @names: names that belong to no file
 * @watches: watches of names
 * @node: in namespaces, by @inum; cleared once it can't be found any more
 * @left: in left_namespaces, while it has such names and no open file
 * @inum: its inode number, which is unique while @file holds it
 * @file: keeps the namespace alive while it has open files or @names; NULL otherwise, and for
 *        the initial namespace, which is never freed. Without it this struct only tells the
 *        regions that are left from those of other namespaces, which may reuse the inode
 *        number
 * @user_ns: the user namespace that owns it, a reference
 * @usage: what its regions have together, a reference
 * @last_id: id of its newest region
 * @finished: finished regions by their names
 * @drafts: drafts by their names
 * @waiters: waiters for a name, by that name
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
bool tshare_ns_is_owned(const struct tshare_ns *ns);

#endif /* TSHARE_NS_H */
