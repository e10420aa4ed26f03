// SPDX-License-Identifier: GPL-2.0-only
/*
 * The allocator of large regions that needs no search: lends memory of the pools, and
 * takes it back.
 *
 * Free blocks that lie side by side, and are all zeroed or all not, are one extent. An
 * extent is known by its first block and, so that a block which comes back finds it, by
 * its last. Extents side by side are one stretch, which is known by its first block. So
 * nothing here needs memory, and no region's release can fail.
 */
#include <linux/gfp.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "alloc.h"
#include "pool.h"

/* By node; NULL for nodes that had no memory when the module was loaded. Constant. */
struct tshare_pool *tshare_pools[MAX_NUMNODES];

static unsigned long block_index(unsigned long pfn)
{
	return pfn / TSHARE_BLOCK_PAGES;
}

static struct tshare_block *pool_load(struct tshare_pool *pool, unsigned long pfn)
{
	return xa_load(&pool->blocks, block_index(pfn));
}

static bool block_is_zeroed(const struct tshare_block *block)
{
	return block->zeroed == TSHARE_BLOCK_PAGES;
}

static unsigned long span_end(const struct tshare_span *span)
{
	return span->pfn + span->nr_blocks * TSHARE_BLOCK_PAGES;
}

/*
 * The block of @pfn, if it is free and a run may go across @border to or from it. No run
 * leaves its zone, as none of the search does. A span ends at 4 GiB, so that it is
 * either all within the reach of a device with 32 bits of address or not.
 */
static struct tshare_block *pool_load_beside(struct tshare_pool *pool, unsigned long pfn,
					     unsigned long border)
{
	struct tshare_block *block = pool_load(pool, pfn);

	if (!block || !block->extent.nr_blocks || border == PHYS_PFN(SZ_4G))
		return NULL;
	if (page_zone(pfn_to_page(border - 1)) != page_zone(pfn_to_page(border)))
		return NULL;
	return block;
}

static bool span_smaller(struct rb_node *a, const struct rb_node *b)
{
	const struct tshare_span *one = rb_entry(a, struct tshare_span, size_node);
	const struct tshare_span *other = rb_entry(b, struct tshare_span, size_node);

	if (one->nr_blocks != other->nr_blocks)
		return one->nr_blocks < other->nr_blocks;
	return one->pfn > other->pfn;
}

/* Of two spans, either of which may be NULL. */
static struct tshare_span *smaller_of(struct tshare_span *one, struct tshare_span *other)
{
	if (!one || !other)
		return one ?: other;
	return span_smaller(&one->size_node, &other->size_node) ? one : other;
}

/* The smallest span of a tree that has @nr blocks; or NULL. */
static struct tshare_span *tree_find(const struct rb_root *tree, unsigned long nr)
{
	struct rb_node *node = tree->rb_node;
	struct tshare_span *span, *found = NULL;

	while (node) {
		span = rb_entry(node, struct tshare_span, size_node);
		if (span->nr_blocks >= nr) {
			found = span;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

/* The same of the trees of those below 4 GiB or not. */
static struct tshare_span *trees_find(const struct rb_root trees[2], unsigned long nr, bool dma32)
{
	return smaller_of(tree_find(&trees[true], nr), dma32 ? NULL : tree_find(&trees[false], nr));
}

static bool span_is_low(const struct tshare_span *span)
{
	return span->pfn < PHYS_PFN(SZ_4G);
}

static struct rb_root *extent_tree(struct tshare_pool *pool, const struct tshare_block *first)
{
	return &pool->extents[block_is_zeroed(first)][span_is_low(&first->extent)];
}

static void extent_insert(struct tshare_pool *pool, struct tshare_block *first, unsigned long nr)
{
	first->extent.pfn = first->pfn;
	first->extent.nr_blocks = nr;
	pool_load(pool, span_end(&first->extent) - 1)->extent.nr_blocks = nr;
	rb_add(&first->extent.size_node, extent_tree(pool, first), span_smaller);
	if (!block_is_zeroed(first))
		list_add_tail(&first->dirty_node, &pool->dirty);
}

static void extent_remove(struct tshare_pool *pool, struct tshare_block *first)
{
	if (!block_is_zeroed(first))
		list_del(&first->dirty_node);
	rb_erase(&first->extent.size_node, extent_tree(pool, first));
	pool_load(pool, span_end(&first->extent) - 1)->extent.nr_blocks = 0;
	first->extent.nr_blocks = 0;
}

/* The first block of the extent that ends at @end. */
static struct tshare_block *extent_below(struct tshare_pool *pool, unsigned long end)
{
	unsigned long nr = pool_load(pool, end - 1)->extent.nr_blocks;

	return pool_load(pool, end - nr * TSHARE_BLOCK_PAGES);
}

static bool stretch_is_before(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct tshare_block, stretch_node)->pfn <
	       rb_entry(b, struct tshare_block, stretch_node)->pfn;
}

static void stretch_insert(struct tshare_pool *pool, struct tshare_block *first, unsigned long nr)
{
	first->stretch.pfn = first->pfn;
	first->stretch.nr_blocks = nr;
	rb_add(&first->stretch_node, &pool->stretches, stretch_is_before);
	rb_add(&first->stretch.size_node, &pool->stretch_sizes[span_is_low(&first->stretch)],
	       span_smaller);
}

static void stretch_remove(struct tshare_pool *pool, struct tshare_block *first)
{
	rb_erase(&first->stretch.size_node, &pool->stretch_sizes[span_is_low(&first->stretch)]);
	rb_erase(&first->stretch_node, &pool->stretches);
}

/* The first block of the stretch that a free page is in. */
static struct tshare_block *stretch_of(struct tshare_pool *pool, unsigned long pfn)
{
	struct rb_node *node = pool->stretches.rb_node;
	struct tshare_block *first, *found = NULL;

	while (node) {
		first = rb_entry(node, struct tshare_block, stretch_node);
		if (first->pfn <= pfn) {
			found = first;
			node = node->rb_right;
		} else {
			node = node->rb_left;
		}
	}
	return found;
}

/* Makes a block one stretch with those beside it, which are NULL if a run ends there. */
static void stretch_add(struct tshare_pool *pool, struct tshare_block *block,
			struct tshare_block *below, struct tshare_block *above)
{
	struct tshare_block *first = block;
	unsigned long nr = 1;

	if (below) {
		first = stretch_of(pool, below->pfn);
		nr += first->stretch.nr_blocks;
		stretch_remove(pool, first);
	}
	if (above) {
		nr += above->stretch.nr_blocks;
		stretch_remove(pool, above);
	}
	stretch_insert(pool, first, nr);
}

/* Takes @nr blocks from @pfn on out of their stretch, of which both ends stay. */
static void stretch_cut(struct tshare_pool *pool, unsigned long pfn, unsigned long nr)
{
	struct tshare_block *first = stretch_of(pool, pfn);
	unsigned long below = (pfn - first->pfn) / TSHARE_BLOCK_PAGES;
	unsigned long above = first->stretch.nr_blocks - below - nr;

	stretch_remove(pool, first);
	if (below)
		stretch_insert(pool, first, below);
	if (above)
		stretch_insert(pool, pool_load(pool, pfn + nr * TSHARE_BLOCK_PAGES), above);
}

/* Makes a block free, and one extent and one stretch with those beside it. */
static void pool_insert(struct tshare_pool *pool, struct tshare_block *block)
{
	unsigned long end = block->pfn + TSHARE_BLOCK_PAGES, nr = 1;
	struct tshare_block *below = pool_load_beside(pool, block->pfn - 1, block->pfn);
	struct tshare_block *above = pool_load_beside(pool, end, end);
	struct tshare_block *first = block;

	pool->free++;
	pool->zeroed += block_is_zeroed(block);
	stretch_add(pool, block, below, above);
	if (below && block_is_zeroed(below) == block_is_zeroed(block)) {
		nr += below->extent.nr_blocks;
		first = extent_below(pool, block->pfn);
		extent_remove(pool, first);
	}
	if (above && block_is_zeroed(above) == block_is_zeroed(block)) {
		nr += above->extent.nr_blocks;
		extent_remove(pool, above);
	}
	extent_insert(pool, first, nr);
}

/* Takes the last @nr blocks of an extent out of the free ones; returns their first page. */
static unsigned long extent_cut(struct tshare_pool *pool, struct tshare_block *extent,
				unsigned long nr)
{
	unsigned long left = extent->extent.nr_blocks - nr;
	unsigned long pfn = extent->pfn + left * TSHARE_BLOCK_PAGES;

	pool->free -= nr;
	if (block_is_zeroed(extent))
		pool->zeroed -= nr;
	extent_remove(pool, extent);
	if (left)
		extent_insert(pool, extent, left);
	stretch_cut(pool, pfn, nr);
	return pfn;
}

/*
 * Where a run of @nr blocks ends; or 0. That is the end of the smallest extent that is zeroed
 * and suffices; else of the smallest stretch, part of which is then to be zeroed: to search for
 * memory takes longer.
 *
 * Among equal ones the highest, of which the end is taken, because devices with few
 * bits of address need what lies low.
 */
static unsigned long pool_find(struct tshare_pool *pool, unsigned long nr, bool dma32)
{
	struct tshare_span *span = trees_find(pool->extents[true], nr, dma32) ?:
					   trees_find(pool->stretch_sizes, nr, dma32);

	return span ? span_end(span) : 0;
}

/* Takes a run of @nr blocks out of the free ones; returns its first page, or 0. */
static unsigned long pool_cut(struct tshare_pool *pool, unsigned long nr, bool dma32)
{
	unsigned long pfn, part;

	spin_lock(&pool->lock);
	for (pfn = pool_find(pool, nr, dma32); pfn && nr; nr -= part) {
		struct tshare_block *extent = extent_below(pool, pfn);

		part = min(nr, extent->extent.nr_blocks);
		pfn = extent_cut(pool, extent, part);
	}
	spin_unlock(&pool->lock);
	return pfn;
}

static void block_lend(struct tshare_block *block, unsigned long nr_pages)
{
	bitmap_set(block->lent, 0, DIV_ROUND_UP(nr_pages, TSHARE_CHUNK_PAGES));
}

/* What the worker has left of a block that is no longer free; -EINTR. */
static int block_zero(struct tshare_block *block)
{
	while (!block_is_zeroed(block)) {
		if (!(block->zeroed % SZ_512) && fatal_signal_pending(current))
			return -EINTR;
		clear_highpage(pfn_to_page(block->pfn + block->zeroed++));
		cond_resched();
	}
	return 0;
}

/* Not every kernel marks a folio of which a page is broken. */
static bool has_broken_page(struct page *page, unsigned long nr)
{
	unsigned long i;

	for (i = 0; i < nr; i++)
		if (PageHWPoison(page + i))
			return true;
	return false;
}

/* -EINTR; -EHWPOISON for a run with blocks that broke while they were free. */
static int pool_lend_run(struct tshare_pool *pool, unsigned long pfn, unsigned long nr)
{
	unsigned long i;
	int err = 0;

	for (i = 0; i < nr; i += TSHARE_BLOCK_PAGES) {
		struct tshare_block *block = pool_load(pool, pfn + i);

		block_lend(block, min(nr - i, TSHARE_BLOCK_PAGES));
		block->broken = has_broken_page(pfn_to_page(block->pfn), TSHARE_BLOCK_PAGES);
		if (block->broken)
			err = -EHWPOISON;
		err = err ?: block_zero(block);
		cond_resched();
	}
	return err;
}

static int pool_lend(struct tshare_pool *pool, const struct tshare_request *req, unsigned long *pfn)
{
	unsigned long nr_blocks = DIV_ROUND_UP(req->nr_pages, TSHARE_BLOCK_PAGES);
	int err;

	do {
		*pfn = pool_cut(pool, nr_blocks, req->dma32);
		if (!*pfn)
			return -ENOMEM;
		err = pool_lend_run(pool, *pfn, req->nr_pages);
		/* What is broken leaves the pool, so that this ends. */
		if (err)
			tshare_run_free(*pfn, req->nr_pages);
	} while (err == -EHWPOISON);
	return err;
}

/*
 * Less than a block is left to the page allocator, which would lend it a block's part. So
 * is a block as long as that has one: it charges memory cgroups.
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
		/* It has a zone for each kind of memory. */
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

/* The block of a page that the caller has: it stays what it is meanwhile. */
static struct tshare_block *pool_block_of(struct page *page)
{
	struct tshare_pool *pool = tshare_pools[page_to_nid(page)];

	return pool ? pool_load(pool, page_to_pfn(page)) : NULL;
}

/**
 * tshare_pool_setup() - make an empty pool
 * @pool: the pool, all zero
 * @node: its NUMA node
 */
void tshare_pool_setup(struct tshare_pool *pool, int node)
{
	pool->node = node;
	spin_lock_init(&pool->lock);
	xa_init(&pool->blocks);
	pool->stretches = RB_ROOT;
	INIT_LIST_HEAD(&pool->dirty);
	init_waitqueue_head(&pool->wait);
}

/**
 * tshare_pool_has() - does a region's memory come from a pool?
 * @pfn: its first page frame number
 */
bool tshare_pool_has(unsigned long pfn)
{
	return pool_block_of(pfn_to_page(pfn));
}

/* Frees a block that is in no pool any more. */
static void block_free(struct tshare_block *block)
{
	unsigned long i;

	for (i = 0; i < TSHARE_BLOCK_FOLIOS; i++)
		if (!test_bit(i, block->lent))
			put_page(pfn_to_page(block->pfn + i * TSHARE_CHUNK_PAGES));
	kfree(block);
}

static void pool_erase(struct tshare_pool *pool, struct tshare_block *block)
{
	xa_erase(&pool->blocks, block_index(block->pfn));
	pool->size--;
}

/**
 * tshare_pool_take_back() - take a folio back that was lent
 * @page: the folio, to which the caller has the only reference
 *
 * A block with broken memory leaves the pool: each region of it would kill its users.
 *
 * Return: whether the folio is a pool's, which then has the reference.
 */
bool tshare_pool_take_back(struct page *page)
{
	struct tshare_pool *pool = tshare_pools[page_to_nid(page)];
	struct tshare_block *block = pool_block_of(page);
	bool wake = false, broken;

	if (!block)
		return false;
	broken = has_broken_page(page, compound_nr(page));
	spin_lock(&pool->lock);
	block->broken |= broken;
	__clear_bit((page_to_pfn(page) - block->pfn) / TSHARE_CHUNK_PAGES, block->lent);
	if (!bitmap_empty(block->lent, TSHARE_BLOCK_FOLIOS)) {
		block = NULL;
	} else if (pool->size > pool->target || block->broken) {
		pool_erase(pool, block);
	} else {
		wake = list_empty(&pool->dirty);
		block->zeroed = 0;
		pool_insert(pool, block);
		block = NULL;
	}
	spin_unlock(&pool->lock);
	if (wake)
		wake_up(&pool->wait);
	if (block)
		block_free(block);
	return true;
}

/**
 * tshare_pool_add_block() - make a pool larger
 * @pool: the pool
 * @pfn: first page frame number of a zeroed block, which is the pool's on success
 *
 * Return: 0, -ENOMEM.
 */
int tshare_pool_add_block(struct tshare_pool *pool, unsigned long pfn)
{
	struct tshare_block *block = kzalloc(sizeof(*block), GFP_KERNEL);
	int err;

	if (!block)
		return -ENOMEM;
	block->pfn = pfn;
	block->zeroed = TSHARE_BLOCK_PAGES;
	err = xa_insert(&pool->blocks, block_index(pfn), block, GFP_KERNEL);
	if (err) {
		kfree(block);
		return err;
	}
	spin_lock(&pool->lock);
	pool->size++;
	pool_insert(pool, block);
	spin_unlock(&pool->lock);
	return 0;
}

/**
 * tshare_pool_drop_block() - free a block of a pool that is larger than its target
 * @pool: the pool
 *
 * Return: whether there was such a block.
 */
bool tshare_pool_drop_block(struct tshare_pool *pool)
{
	struct tshare_block *block = NULL;
	struct tshare_span *smallest = NULL;

	spin_lock(&pool->lock);
	/* The smallest extent, so that the large ones stay. */
	if (pool->size > pool->target)
		smallest = smaller_of(trees_find(pool->extents[true], 1, false),
				      trees_find(pool->extents[false], 1, false));
	if (smallest) {
		block = extent_below(pool, span_end(smallest));
		block = pool_load(pool, extent_cut(pool, block, 1));
		pool_erase(pool, block);
	}
	spin_unlock(&pool->lock);
	if (block)
		block_free(block);
	return block;
}

/**
 * tshare_pool_zero_page() - zero a page of the pool that needs it
 * @pool: the pool
 *
 * The block stays free, and is lent or freed from under the caller's hands if somebody
 * wants it. So nobody ever waits until a block is zeroed by a worker that sleeps while
 * others run.
 *
 * Return: whether there was such a page.
 */
bool tshare_pool_zero_page(struct tshare_pool *pool)
{
	struct tshare_block *extent, *block = NULL;

	spin_lock(&pool->lock);
	extent = list_first_entry_or_null(&pool->dirty, struct tshare_block, dirty_node);
	if (extent) {
		block = pool_load(pool, span_end(&extent->extent) - 1);
		clear_highpage(pfn_to_page(block->pfn + block->zeroed));
		if (block->zeroed + 1 < TSHARE_BLOCK_PAGES) {
			block->zeroed++;
		} else {
			extent_cut(pool, extent, 1);
			block->zeroed = TSHARE_BLOCK_PAGES;
			pool_insert(pool, block);
		}
	}
	spin_unlock(&pool->lock);
	return block;
}

/**
 * tshare_pool_abandon() - free all of a pool, at the end of the module
 * @pool: the pool; what is lent still is pinned, and the module's references to that are
 *        dropped already
 */
void tshare_pool_abandon(struct tshare_pool *pool)
{
	struct tshare_block *block;
	unsigned long index;

	xa_for_each(&pool->blocks, index, block) {
		block_free(block);
		cond_resched();
	}
	xa_destroy(&pool->blocks);
}

#ifdef TSHARE_KUNIT
#include "tests/alloc-pool.c"
#endif
