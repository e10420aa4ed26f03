/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Objects of the module, who owns whom, and the one lock.
 *
 *	open file --> tshare_file --> tshare_ns
 *	                  |
 *	                  v names (unless they persist)
 *	dma-buf ----> tshare_region --> tshare_ns
 *	                  |
 *	                  v counter, once somebody asked for it
 *	                file of shared memory
 *
 * Arrows are references. A name is a reference on its region, held by the file
 * it was made through, or by nobody (and then by the module's use count). Files
 * and persistent names are uses of their tshare_ns, which then keeps the IPC
 * namespace; regions don't.
 *
 * tshare_lock protects the namespaces, the names, the ids and what the limits
 * count. It is taken with no other lock of the module held but account.c's
 * pinned_lock, and nothing under it touches user memory, allocates regions or
 * waits for anybody.
 */
#ifndef TSHARE_REGION_H
#define TSHARE_REGION_H

#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/tshare.h>
#include <linux/uidgid.h>

#include "account.h"

struct path;
struct tshare_ns;

extern struct mutex tshare_lock;

/**
 * struct tshare_region - contiguous memory and what is known of it
 * @ref: dma-bufs, the name, and callers at work
 * @id: unique; 0 until published
 * @pfn: first page frame number
 * @nr_pages: pages
 * @uid: owner
 * @gid: group
 * @mode: permission bits
 * @flags: TSHARE_REGION_PERSIST and _DMA32
 * @ns: the namespace it was made in, a reference that doesn't keep the namespace itself
 * @descs: tensor descriptors, immutable
 * @desc_count: how many
 * @charge: what it counts against
 * @resv: fences, shared by all its dma-bufs
 * @maps_lock: protects @maps; no other lock of the module is taken under it
 * @maps: what devices have mapped, through any of its dma-bufs
 * @counter: the path of its counter; NULL until somebody asks for it, and the
 *           same from then on
 * @name: its name, "" if it never had one
 * @name_node: in @ns's names while the name is there; under tshare_lock
 * @name_owner: in the names of the file that it was made through, likewise
 */
struct tshare_region {
	struct kref ref;
	u64 id;
	unsigned long pfn;
	unsigned long nr_pages;
	kuid_t uid;
	kgid_t gid;
	umode_t mode;
	u32 flags;
	struct tshare_ns *ns;
	struct tshare_desc *descs;
	u32 desc_count;
	struct tshare_charge *charge;
	struct dma_resv resv;
	struct mutex maps_lock; /* protects maps */
	struct list_head maps;
	struct path *counter;
	char name[TSHARE_NAME_LEN];
	struct rb_node name_node;
	struct list_head name_owner;
};

/**
 * struct tshare_file - an open /dev/tshare
 * @ns: the namespace it was opened in, a use
 * @names: regions whose names go when it does; under tshare_lock
 */
struct tshare_file {
	struct tshare_ns *ns;
	struct list_head names;
};

static inline u64 tshare_region_bytes(const struct tshare_region *region)
{
	return (u64)region->nr_pages << PAGE_SHIFT;
}

struct tshare_region *tshare_region_alloc(struct tshare_ns *ns, const struct tshare_create *req,
					  struct tshare_desc *descs);
void tshare_region_put(struct tshare_region *region);

/* The regions there are, shown in sysfs. */
extern atomic_long_t tshare_region_count;

#endif /* TSHARE_REGION_H */
