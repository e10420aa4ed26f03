/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pools: contiguous memory that is kept for regions, zeroed, a pool for each NUMA
 * node.
 *
 * alloc-pool.c lends memory to regions and takes it back, pool-size.c grows and shrinks
 * the pools and has the workers that zero, pool-sysfs.c is what the administrator sees.
 */
#ifndef TSHARE_POOL_H
#define TSHARE_POOL_H

#include <linux/bitmap.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include "compat.h"

struct attribute_group;
struct task_struct;

#define TSHARE_BLOCK_BYTES  (TSHARE_BLOCK_PAGES << PAGE_SHIFT)
#define TSHARE_BLOCK_FOLIOS (TSHARE_BLOCK_PAGES / TSHARE_CHUNK_PAGES)

/* A block is a chunk, or as large as one. */
static_assert(!TSHARE_CHUNK_ORDER || TSHARE_CHUNK_PAGES == TSHARE_BLOCK_PAGES);

/**
 * struct tshare_span - free blocks of a pool that lie side by side
 * @pfn: the first page frame number
 * @nr_blocks: how many they are
 * @size_node: among the spans of a kind, by size
 */
struct tshare_span {
	unsigned long pfn;
	unsigned long nr_blocks;
	struct rb_node size_node;
};

/**
 * struct tshare_block - a block of a pool, free or lent
 * @pfn: its first page frame number
 * @lent: its folios that belong to a region, or did and are pinned; those that are not
 *        lent have one reference, the pool's
 * @zeroed: while it is free, how many of its pages are zero, from the first on
 * @broken: while it is lent, whether memory of it is known to be broken
 * @extent: of an extent's first block, the extent. Its @nr_blocks stands in the last block, too,
 *          and is 0 in all others
 * @dirty_node: of an extent's first block, in the pool's dirty extents, if it is one
 * @stretch: of a stretch's first block, the stretch
 * @stretch_node: likewise, in the pool's stretches
 *
 * Each block of an extent is zero, or none is wholly. A stretch is all free blocks side by side.
 */
struct tshare_block {
	unsigned long pfn;
	DECLARE_BITMAP(lent, TSHARE_BLOCK_FOLIOS);
	unsigned long zeroed;
	bool broken;
	struct tshare_span extent;
	struct list_head dirty_node;
	struct tshare_span stretch;
	struct rb_node stretch_node;
};

/**
 * struct tshare_pool - the pool of a node
 * @node: the NUMA node
 * @lock: protects all below, and the blocks; held only for as long as it takes to find a
 *        run or to zero a page, and never by what sleeps
 * @blocks: all blocks, by their place in memory
 * @extents: the extents, the smallest first, and of equal ones the highest; those that are
 *           zeroed or not, and those below 4 GiB or not, have a tree each
 * @dirty: those of them that are to be zeroed
 * @stretches: the stretches, by their place
 * @stretch_sizes: the same, as the extents are; those below 4 GiB or not have a tree each
 * @size: blocks
 * @free: blocks that are free
 * @zeroed: blocks that are free and zeroed
 * @target: the size that it shall have; while @size is more, blocks that come back are
 *          freed
 * @wait: where the worker sleeps
 * @worker: zeroes; NULL until the pool gets memory for the first time
 */
struct tshare_pool {
	int node;
	spinlock_t lock; /* see above */
	struct xarray blocks;
	struct rb_root extents[2][2]; /* [zeroed][below 4 GiB] */
	struct list_head dirty;
	struct rb_root stretches;
	struct rb_root stretch_sizes[2]; /* [below 4 GiB] */
	unsigned long size;
	unsigned long free;
	unsigned long zeroed;
	unsigned long target;
	wait_queue_head_t wait;
	struct task_struct *worker;
};

/* alloc-pool.c */
extern struct tshare_pool *tshare_pools[MAX_NUMNODES];

void tshare_pool_setup(struct tshare_pool *pool, int node);
bool tshare_pool_has(unsigned long pfn);
bool tshare_pool_take_back(struct page *page);
int tshare_pool_add_block(struct tshare_pool *pool, unsigned long pfn);
bool tshare_pool_drop_block(struct tshare_pool *pool);
bool tshare_pool_zero_page(struct tshare_pool *pool);
void tshare_pool_abandon(struct tshare_pool *pool);

/* pool-size.c */
int tshare_pool_resize(struct tshare_pool *pool, u64 bytes);
int tshare_pool_init(void);
void tshare_pool_exit(void);

/* pool-sysfs.c */
int tshare_pool_sysfs_init(const struct attribute_group **groups);
void tshare_pool_sysfs_exit(void);

#endif /* TSHARE_POOL_H */
