/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The module's objects and the references between them.
 *
 *	open file --> tshare_file --> tshare_ns
 *	                  |
 *	                  v names (drafts', and those that go with it)
 *	dma-buf ----> tshare_region --> tshare_ns
 *	                  |
 *	                  v counter, from its first use on
 *	                file of shared memory
 *
 * Arrows are references. A name is a reference to its region, and is removed with the file
 * through which it was made. The name of a finished region with TSHARE_REGION_PERSIST or
 * _USERS belongs to no file, and holds the module. A tshare_ns keeps the IPC namespace alive
 * for open files and such names, not for drafts and regions.
 *
 * Of dmabuf.c, lookup.c, names.c, region.c and ns.c, each uses only those after it.
 */
#ifndef TSHARE_REGION_H
#define TSHARE_REGION_H

#include <linux/atomic.h>
#include <linux/dma-buf.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/rbtree.h>
#include <linux/tshare.h>
#include <linux/uidgid.h>

#include "descs.h"
#include "maps.h"
#include "range.h"

struct path;
struct tshare_charge;
struct tshare_file;
struct tshare_ns;

/**
 * struct tshare_region - memory and its properties
 * @ref: the module's own dma-bufs, the name, and callers at work
 * @id: unique; the region is found by it once it is registered
 * @foreign: another driver's dma-buf that the region consists of, a reference; or
 *           NULL if it is a run of the module's pages
 * @pfn: first page frame number; 0 if it is foreign
 * @nr_pages: pages; 0 if it is foreign
 * @rung: the name of the allocator that its pages come from; "dmabuf" if it is foreign
 * @creator: the process that made it, by its number in the initial PID namespace: it may have
 *           ended, and the number may be another's
 * @creator_started: when that process started, which with the number identifies it
 * @uid: owner
 * @gid: group
 * @mode: permission bits
 * @flags: TSHARE_REGION_PERSIST, _USERS, _DMA32, _FOREIGN and _POOL, constant; and
 *         _DRAFT, under tshare_lock
 * @ns: the namespace it was made in, a reference that doesn't keep the namespace itself
 * @descs: tensor descriptors
 * @charge: what its pages and descriptors count against
 * @ranges: its pages, whole and in parts, as dma-bufs are over them
 * @maps: the devices of its dma-bufs, and the CPU accesses beside them
 * @mappings: VMAs that map a part of it
 * @counter: the path of its counter; NULL until its first use, then constant
 * @users: the module's dma-bufs, and calls about to make one; under tshare_lock, and read
 *         without it by debugfs
 * @name: its name, "" if it never had one
 * @name_node: in @ns's finished or drafts, while it has the name; under tshare_lock
 * @name_owner: in @maker's names, likewise
 * @maker: the file that it was made through, while the name belongs to that; likewise
 */
struct tshare_region {
	struct kref ref;
	u64 id;
	struct dma_buf *foreign;
	unsigned long pfn;
	unsigned long nr_pages;
	const char *rung;
	pid_t creator;
	u64 creator_started;
	kuid_t uid;
	kgid_t gid;
	umode_t mode;
	u32 flags;
	struct tshare_ns *ns;
	struct tshare_descs descs;
	struct tshare_charge *charge;
	struct tshare_ranges ranges;
	struct tshare_maps maps;
	atomic_t mappings;
	struct path *counter;
	unsigned long users;
	char name[TSHARE_NAME_LEN];
	struct rb_node name_node;
	struct list_head name_owner;
	struct tshare_file *maker;
};

static inline u64 tshare_region_bytes(const struct tshare_region *region)
{
	return region->foreign ? region->foreign->size : (u64)region->nr_pages << PAGE_SHIFT;
}

/* -1 if it is unknown. */
static inline int tshare_region_node(const struct tshare_region *region)
{
	return region->foreign ? -1 : pfn_to_nid(region->pfn);
}

static inline bool tshare_region_is_draft(const struct tshare_region *region)
{
	return region->flags & TSHARE_REGION_DRAFT;
}

static inline bool tshare_region_has_name(const struct tshare_region *region)
{
	return !RB_EMPTY_NODE(&region->name_node);
}

struct tshare_region *tshare_region_alloc(struct tshare_ns *ns, const struct tshare_create *req,
					  struct dma_buf *foreign);
void tshare_name_mask(char *name);
void tshare_region_add_id(struct tshare_region *region);
struct tshare_region *tshare_region_find(u64 id);
struct tshare_region *tshare_region_find_visible(const struct tshare_ns *ns, u64 id);
struct tshare_region *tshare_region_next(u64 *cursor);
void tshare_region_put(struct tshare_region *region);

/* The number of regions, shown in sysfs. */
extern atomic_long_t tshare_region_count;

#endif /* TSHARE_REGION_H */
