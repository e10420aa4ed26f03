/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pools: contiguous memory that is kept for regions, zeroed, a pool for each NUMA
 * node. A pool consists of blocks, each of which is free or lent to a region.
 *
 * alloc-pool.c lends blocks and takes them back, pool-size.c resizes the pools and runs the
 * workers that zero, pool-sysfs.c has the administrator's files.
 */
#ifndef TSHARE_POOL_H
#define TSHARE_POOL_H

#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "compat.h"

struct attribute_group;
struct task_struct;

#define TSHARE_BLOCK_BYTES  (TSHARE_BLOCK_PAGES << PAGE_SHIFT)
#define TSHARE_BLOCK_FOLIOS (TSHARE_BLOCK_PAGES / TSHARE_CHUNK_PAGES)

/* A block is a chunk, or as large as one. */
static_assert(!TSHARE_CHUNK_ORDER || TSHARE_CHUNK_PAGES == TSHARE_BLOCK_PAGES);

/**
 * struct tshare_pool - the pool of a node
 * @node: the NUMA node
 * @first: the first 2 MiB of physical memory that may be a block, index 0
 * @nr: how many may be: the node's memory when the module was loaded
 * @taking: held to take free blocks; never by the worker, which may wait long for a processor
 * @lock: protects what follows, up to @work; held only to change bits or to zero a page
 * @owned: bits by index: the pool's blocks
 * @free: those of them that no region has
 * @dirty: those of the pool's that must be zeroed before a region gets them
 * @lent: by index, the folios of a block that a region has, or that outlive it because they
 *        are pinned
 * @size: blocks that the pool has
 * @target: the @size to reach; while @size is more, blocks that come back are freed
 * @zeroing: index of the block that the worker zeroes
 * @zeroed_pages: how many of that block's pages it has zeroed
 * @work: whether the worker may find something to do
 * @wait: where the worker sleeps
 * @worker: zeroes blocks; NULL until the pool gets memory for the first time
 */
struct tshare_pool {
	int node;
	unsigned long first;
	unsigned long nr;
	struct mutex taking; /* see above */
	spinlock_t lock;     /* see above */
	unsigned long *owned;
	unsigned long *free;
	unsigned long *dirty;
	u16 *lent;
	unsigned long size;
	unsigned long target;
	unsigned long zeroing;
	unsigned long zeroed_pages;
	bool work;
	wait_queue_head_t wait;
	struct task_struct *worker;
};

/* alloc-pool.c */
extern struct tshare_pool *tshare_pools[MAX_NUMNODES];

struct tshare_pool *tshare_pool_new(int node, unsigned long first, unsigned long nr);
void tshare_pool_free(struct tshare_pool *pool);
bool tshare_pool_take_back(struct page *page);
bool tshare_pool_add_block(struct tshare_pool *pool, unsigned long pfn);
bool tshare_pool_drop_block(struct tshare_pool *pool);
bool tshare_pool_zero_page(struct tshare_pool *pool);
unsigned long tshare_pool_count_free(const struct tshare_pool *pool, bool zeroed);

/* pool-size.c */
int tshare_pool_resize(struct tshare_pool *pool, u64 bytes);
int tshare_pool_init(void);
void tshare_pool_close(void);
void tshare_pool_exit(void);

/* pool-sysfs.c */
int tshare_pool_sysfs_init(const struct attribute_group **groups);
void tshare_pool_sysfs_exit(void);

#endif /* TSHARE_POOL_H */
