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
 * struct tshare_ns - an IPC namespace, as far as it knows of tshare
 * @refs: open files and regions; this and all below under tshare_lock
 * @node: in the list of namespaces
 * @inum: its inode number, which is unique while @file holds it
 * @file: keeps the namespace; NULL for the initial one, which never goes
 * @user_ns: whose capabilities count in it, kept by it
 * @names: regions by name
 * @nr_pages: pages of its regions
 */
struct tshare_ns {
	unsigned int refs;
	struct list_head node;
	unsigned int inum;
	struct file *file;
	struct user_namespace *user_ns;
	struct rb_root names;
	unsigned long nr_pages;
};

/* Access to a region, as in the mode's bits. */
#define TSHARE_MAY_WRITE 2
#define TSHARE_MAY_READ	 4

struct tshare_ns *tshare_ns_get_current(void);
void tshare_ns_get(struct tshare_ns *ns);
void tshare_ns_put(struct tshare_ns *ns);

bool tshare_name_taken(struct tshare_ns *ns, const char *name);
int tshare_publish(struct tshare_file *tf, struct tshare_region *region);
struct tshare_region *tshare_lookup(struct tshare_file *tf, const char *name, u64 id, int access);
int tshare_unname(struct tshare_file *tf, const char *name, u64 id);
bool tshare_unname_region(struct tshare_region *region);
void tshare_file_drop_names(struct tshare_file *tf);
bool tshare_list_next(struct tshare_file *tf, bool all, u64 *cursor,
		      struct tshare_list_entry *entry);
void tshare_current_name(struct tshare_region *region, char *name);
void tshare_withdraw(struct tshare_region *region);
unsigned long tshare_name_count(void);

#endif /* TSHARE_NAMES_H */
