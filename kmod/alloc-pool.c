// SPDX-License-Identifier: GPL-2.0-only
/*
 * The allocator for large regions that doesn't search the node's memory: lends blocks of the
 * pools, and takes them back.
 *
 * Bitmaps record the free and the dirty blocks. So this allocates nothing, and the release of
 * a region can't fail.
 */
#include <linux/bitmap.h>
#include <linux/gfp.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "alloc.h"
#include "pool.h"

/* By node; NULL for nodes that had no memory when the module was loaded. Constant. */
struct tshare_pool *tshare_pools[MAX_NUMNODES];

/* The index of a page's block; @pool->nr or more if the pool can't have the block. */
static unsigned long pool_index(const struct tshare_pool *pool, unsigned long pfn)
{
	return pfn / TSHARE_BLOCK_PAGES - pool->first;
}

static bool pool_owns(const struct tshare_pool *pool, unsigned long pfn)
{
	unsigned long i = pool_index(pool, pfn);

	return i < pool->nr && test_bit(i, pool->owned);
}

static unsigned long pool_pfn(const struct tshare_pool *pool, unsigned long index)
{
	return (pool->first + index) * TSHARE_BLOCK_PAGES;
}

/*
 * The end of the smallest run of at least @nr free blocks below index @end, zeroed if @zeroed;
 * or 0. So the largest runs remain. Of equal runs the highest, because devices with few
 * address bits need low memory.
 */
static unsigned long pool_find(const struct tshare_pool *pool, unsigned long nr, unsigned long end,
			       bool zeroed)
{
	unsigned long first, last, from, to, least = ULONG_MAX, found = 0;

	for_each_set_bitrange(first, last, pool->free, end) {
		for (from = first; from < last; from = to + 1) {
			to = zeroed ? find_next_bit(pool->dirty, last, from) : last;
			if (to - from >= nr && to - from <= least) {
				least = to - from;
				found = to;
			}
		}
	}
	return found;
}

/*
 * Takes the end of the smallest run that suffices. Returns the first page taken, or 0.
 *
 * @lock is not held while the bitmaps are searched. Other tasks may return and zero blocks
 * meanwhile, but @taking keeps them from taking any. So the blocks found are free, even if the
 * words read are old.
 */
static unsigned long pool_cut(struct tshare_pool *pool, unsigned long nr_pages, bool dma32,
			      bool zeroed)
{
	unsigned long nr = DIV_ROUND_UP(nr_pages, TSHARE_BLOCK_PAGES);
	unsigned long low = max(PHYS_PFN(SZ_4G) / TSHARE_BLOCK_PAGES, pool->first) - pool->first;
	unsigned long end, tail = nr_pages - (nr - 1) * TSHARE_BLOCK_PAGES;

	mutex_lock(&pool->taking);
	/* A block that comes back meanwhile may be missed. */
	end = data_race(pool_find(pool, nr, dma32 ? min(low, pool->nr) : pool->nr, zeroed));
	if (end) {
		spin_lock(&pool->lock);
		bitmap_clear(pool->free, end - nr, nr);
		memset16(pool->lent + end - nr, TSHARE_BLOCK_FOLIOS, nr);
		pool->lent[end - 1] = DIV_ROUND_UP(tail, TSHARE_CHUNK_PAGES);
		/* When the worker's block comes back, the worker starts over with it. */
		if (pool->zeroing >= end - nr && pool->zeroing < end)
			pool->zeroed_pages = 0;
		spin_unlock(&pool->lock);
	}
	mutex_unlock(&pool->taking);
	return end ? pool_pfn(pool, end - nr) : 0;
}

static void block_zero(unsigned long pfn)
{
	unsigned long i;

	for (i = 0; i < TSHARE_BLOCK_PAGES; i++) {
		clear_highpage(pfn_to_page(pfn + i));
		cond_resched();
	}
}

/* Checks each page: not every kernel marks a folio that has a broken page. */
static bool block_is_broken(unsigned long pfn)
{
	unsigned long i;

	for (i = 0; i < TSHARE_BLOCK_PAGES; i++)
		if (PageHWPoison(pfn_to_page(pfn + i)))
			return true;
	return false;
}

/* Zeroes dirty blocks. Returns 0, -EINTR, or -EHWPOISON if a block broke while it was free. */
static int pool_prepare(struct tshare_pool *pool, unsigned long pfn, unsigned long nr_pages)
{
	unsigned long end = pfn + nr_pages;

	for (; pfn < end; pfn += TSHARE_BLOCK_PAGES) {
		if (fatal_signal_pending(current))
			return -EINTR;
		if (block_is_broken(pfn))
			return -EHWPOISON;
		/* The block is lent, so no other task changes its bit. */
		if (data_race(test_bit(pool_index(pool, pfn), pool->dirty)))
			block_zero(pfn);
		cond_resched();
	}
	return 0;
}

static int pool_lend(struct tshare_pool *pool, const struct tshare_request *req, unsigned long *pfn)
{
	int err;

	do {
		/* Zeroing dirty blocks takes less time than a search for memory. */
		*pfn = pool_cut(pool, req->nr_pages, req->dma32, true) ?:
			       pool_cut(pool, req->nr_pages, req->dma32, false);
		if (!*pfn)
			return -ENOMEM;
		err = pool_prepare(pool, *pfn, req->nr_pages);
		/* Broken blocks leave the pool, so that the loop ends. */
		if (err)
			tshare_run_free(*pfn, req->nr_pages);
	} while (err == -EHWPOISON);
	return err;
}

/*
 * Pools serve no run smaller than a block. For one block the page allocator is tried first,
 * since it charges memory cgroups.
 */
static int pool_alloc(const struct tshare_request *req, unsigned long *pfn)
{
	nodemask_t nodes;
	int first = tshare_request_nodes(req, &nodes), err = -ENOMEM;
	struct zoneref *ref = node_zonelist(first, GFP_USER)->_zonerefs;

	if (req->nr_pages < TSHARE_BLOCK_PAGES)
		return -ENOMEM;
	/* The nodes in the order in which the page allocator would fall back to them. */
	for (; ref->zone && err == -ENOMEM; ref++) {
		int node = zonelist_node_idx(ref);

		if (!node_isset(node, nodes) || !tshare_pools[node])
			continue;
		/* A node has several zones: its pool is tried once. */
		node_clear(node, nodes);
		err = pool_lend(tshare_pools[node], req, pfn);
	}
	return err;
}

const struct tshare_allocator tshare_allocator_pool = {
	.name = "pool",
	.alloc = pool_alloc,
	.take_back = tshare_pool_take_back,
};

/**
 * tshare_pool_new() - make an empty pool
 * @node: the NUMA node
 * @first: the first 2 MiB of physical memory that may be a block
 * @nr: how many may be blocks
 *
 * Return: the pool, for tshare_pool_free(), or NULL.
 */
struct tshare_pool *tshare_pool_new(int node, unsigned long first, unsigned long nr)
{
	struct tshare_pool *pool = kzalloc_node(sizeof(*pool), GFP_KERNEL, node);

	if (!pool)
		return NULL;
	pool->node = node;
	pool->first = first;
	pool->nr = nr;
	mutex_init(&pool->taking);
	spin_lock_init(&pool->lock);
	init_waitqueue_head(&pool->wait);
	pool->owned = kvcalloc(BITS_TO_LONGS(nr), sizeof(long), GFP_KERNEL);
	pool->free = kvcalloc(BITS_TO_LONGS(nr), sizeof(long), GFP_KERNEL);
	pool->dirty = kvcalloc(BITS_TO_LONGS(nr), sizeof(long), GFP_KERNEL);
	pool->lent = kvcalloc(nr, sizeof(*pool->lent), GFP_KERNEL);
	if (pool->owned && pool->free && pool->dirty && pool->lent)
		return pool;
	tshare_pool_free(pool);
	return NULL;
}

/**
 * tshare_pool_free() - free a pool that has no blocks any more
 * @pool: the pool
 */
void tshare_pool_free(struct tshare_pool *pool)
{
	kvfree(pool->owned);
	kvfree(pool->free);
	kvfree(pool->dirty);
	kvfree(pool->lent);
	kfree(pool);
}

/* Takes back a block with all its folios. Frees it if it is broken or the pool is too large. */
static void pool_put(struct tshare_pool *pool, unsigned long pfn)
{
	unsigned long i = pool_index(pool, pfn);
	bool keep = !block_is_broken(pfn);

	spin_lock(&pool->lock);
	keep = keep && pool->size <= pool->target;
	if (keep) {
		__set_bit(i, pool->dirty);
		__set_bit(i, pool->free);
		WRITE_ONCE(pool->work, true);
	} else {
		__clear_bit(i, pool->owned);
		pool->size--;
	}
	spin_unlock(&pool->lock);
	if (keep)
		wake_up(&pool->wait);
	for (i = 0; !keep && i < TSHARE_BLOCK_PAGES; i += TSHARE_CHUNK_PAGES)
		put_page(pfn_to_page(pfn + i));
}

/**
 * tshare_pool_take_back() - take a folio back that was lent
 * @page: the folio, to which the caller has the only reference, unless the pools are closed
 *
 * A block with broken memory leaves the pool: processes that used it would be killed.
 *
 * Return: whether the folio is a pool's, which then has the reference.
 */
bool tshare_pool_take_back(struct page *page)
{
	struct tshare_pool *pool = tshare_pools[page_to_nid(page)];
	unsigned long pfn = ALIGN_DOWN(page_to_pfn(page), TSHARE_BLOCK_PAGES);
	bool owned, last;

	if (!pool)
		return false;
	spin_lock(&pool->lock);
	owned = pool_owns(pool, pfn);
	last = owned && !--pool->lent[pool_index(pool, pfn)];
	spin_unlock(&pool->lock);
	if (last)
		pool_put(pool, pfn);
	return owned;
}

/**
 * tshare_pool_add_block() - make a pool larger
 * @pool: the pool
 * @pfn: first page frame number of a zeroed block, which is the pool's on success
 *
 * Return: whether the pool can have the block: not if it is memory added since the module was
 * loaded.
 */
bool tshare_pool_add_block(struct tshare_pool *pool, unsigned long pfn)
{
	unsigned long i = pool_index(pool, pfn);

	if (i >= pool->nr)
		return false;
	spin_lock(&pool->lock);
	__set_bit(i, pool->owned);
	__clear_bit(i, pool->dirty);
	__set_bit(i, pool->free);
	pool->size++;
	spin_unlock(&pool->lock);
	return true;
}

/**
 * tshare_pool_drop_block() - take a block out of a pool that is larger than its target
 * @pool: the pool
 *
 * The block comes from the smallest run, so that large runs stay. It is freed as a region's
 * are.
 *
 * Return: whether there was a free block.
 */
bool tshare_pool_drop_block(struct tshare_pool *pool)
{
	unsigned long pfn = pool_cut(pool, TSHARE_BLOCK_PAGES, false, false);

	if (pfn)
		tshare_run_free(pfn, TSHARE_BLOCK_PAGES);
	return pfn;
}

/**
 * tshare_pool_zero_page() - zero a page of the pool that needs it
 * @pool: the pool
 *
 * Between two calls other tasks may take or free the block. So nobody ever waits for a worker
 * that gets no processor.
 *
 * Return: whether there was such a page.
 */
bool tshare_pool_zero_page(struct tshare_pool *pool)
{
	unsigned long i;
	bool found;

	spin_lock(&pool->lock);
	i = find_next_and_bit(pool->free, pool->dirty, pool->nr, pool->zeroing);
	if (i >= pool->nr)
		i = find_next_and_bit(pool->free, pool->dirty, pool->nr, 0);
	if (i != pool->zeroing)
		pool->zeroed_pages = 0;
	pool->zeroing = i;
	found = i < pool->nr;
	if (found) {
		clear_highpage(pfn_to_page(pool_pfn(pool, i) + pool->zeroed_pages++));
		if (pool->zeroed_pages == TSHARE_BLOCK_PAGES)
			__clear_bit(i, pool->dirty);
	}
	WRITE_ONCE(pool->work, found);
	spin_unlock(&pool->lock);
	return found;
}

/**
 * tshare_pool_count_free() - how many blocks of a pool are free
 * @pool: the pool
 * @zeroed: whether to count only those that are zeroed
 */
unsigned long tshare_pool_count_free(const struct tshare_pool *pool, bool zeroed)
{
	unsigned long i, nr = 0;

	for (i = 0; i < BITS_TO_LONGS(pool->nr); i++)
		/* The count may be out of date when the caller has it. */
		nr += hweight_long(data_race(pool->free[i] & ~(zeroed ? pool->dirty[i] : 0)));
	return nr;
}

#ifdef TSHARE_KUNIT
#include "tests/alloc-pool.c"
#endif
