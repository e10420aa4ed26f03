/* SPDX-License-Identifier: GPL-2.0-only */
/* Who is called what, per namespace; who may see whom. */
#ifndef TSHARE_NAMES_H
#define TSHARE_NAMES_H

#include <linux/fs.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/user_namespace.h>

#include "region.h"

/**
 * struct tshare_ns_usage - what the regions of a namespace have together
 * @refs: of struct tshare_ns
 * @node: in the list of usages
 * @inum: inode number of the namespace
 * @user_ns: its user namespace, which those who share the usage keep
 * @nr_pages: pages
 *
 * Outlives a struct tshare_ns, so that closing the device doesn't empty the
 * count. For a count it is enough if the namespace is probably the same: if the
 * number is reused in one user namespace, the successor is charged for regions
 * that its predecessor has left.
 */
struct tshare_ns_usage {
	unsigned int refs;
	struct list_head node;
	unsigned int inum;
	struct user_namespace *user_ns;
	unsigned long nr_pages;
};

/**
 * struct tshare_ns - an IPC namespace, for as long as the device is in use there
 * @refs: uses, regions, and what is charged for; this and all below under
 *        tshare_lock
 * @users: open files and persistent names. They keep the namespace itself.
 *         Without any, this is no more than a key, for regions that are left:
 *         equal to no other namespace's, whatever inode number that has
 * @node: in the list of namespaces that can be found, or in none
 * @inum: its inode number, which is unique while @file holds it
 * @file: keeps the namespace; NULL without users, and for the initial one, which
 *        never goes
 * @user_ns: whose capabilities count in it, a reference
 * @names: regions by name
 * @usage: what its regions have together, a reference
 */
struct tshare_ns {
	unsigned int refs;
	unsigned int users;
	struct list_head node;
	unsigned int inum;
	struct file *file;
	struct user_namespace *user_ns;
	struct rb_root names;
	struct tshare_ns_usage *usage;
};

/* Access to a region, as in the mode's bits. */
#define TSHARE_MAY_WRITE 2
#define TSHARE_MAY_READ	 4

struct tshare_ns *tshare_ns_open(void);
void tshare_ns_close(struct tshare_ns *ns);
void tshare_ns_get(struct tshare_ns *ns);
void tshare_ns_put(struct tshare_ns *ns);

bool tshare_name_taken(struct tshare_ns *ns, const char *name);
int tshare_publish(struct tshare_file *tf, struct tshare_region *region);
struct tshare_region *tshare_lookup(struct tshare_file *tf, const char *name, u64 id, int access);
int tshare_unname(struct tshare_file *tf, const char *name, u64 id);
bool tshare_unname_region(struct tshare_region *region);
void tshare_file_drop_names(struct tshare_file *tf);
int tshare_list_next(struct tshare_file *tf, bool all, u64 *cursor,
		     struct tshare_list_entry *entry);
void tshare_current_name(struct tshare_region *region, char *name);
void tshare_withdraw(struct tshare_region *region);
unsigned long tshare_name_count(void);

#endif /* TSHARE_NAMES_H */
