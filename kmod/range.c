// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ranges: the parts of a region that dma-bufs cover.
 *
 * Dma-bufs over exactly the same pages share a range, and so a dma_resv. Dma-bufs over
 * different pages don't, even if the pages overlap. So a fence holds up one frame of a ring
 * and not the whole ring. See Documentation/design/memory.rst, "Ranges".
 */
#include <linux/err.h>
#include <linux/slab.h>

#include "range.h"

/**
 * tshare_ranges_init() - set up a region's ranges: only the whole
 * @ranges: what to set up
 * @nr_pages: pages of the region
 */
void tshare_ranges_init(struct tshare_ranges *ranges, unsigned long nr_pages)
{
	ranges->whole.nr_pages = nr_pages;
	dma_resv_init(&ranges->whole.resv);
	spin_lock_init(&ranges->lock);
	ranges->tree = RB_ROOT;
}

/**
 * tshare_ranges_destroy() - free what tshare_ranges_init() set up
 * @ranges: the ranges of a region that no dma-buf is over any more
 */
void tshare_ranges_destroy(struct tshare_ranges *ranges)
{
	dma_resv_fini(&ranges->whole.resv);
}

static struct tshare_range *range_alloc(unsigned long first, unsigned long nr_pages)
{
	struct tshare_range *range = kzalloc(sizeof(*range), GFP_KERNEL_ACCOUNT);

	if (!range)
		return NULL;
	range->first = first;
	range->nr_pages = nr_pages;
	dma_resv_init(&range->resv);
	range->refs = 1;
	return range;
}

static void range_free(struct tshare_range *range)
{
	dma_resv_fini(&range->resv);
	kfree(range);
}

static int range_compare(struct rb_node *left, const struct rb_node *right)
{
	const struct tshare_range *a = rb_entry(left, struct tshare_range, node);
	const struct tshare_range *b = rb_entry(right, struct tshare_range, node);

	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	return a->nr_pages < b->nr_pages ? -1 : a->nr_pages > b->nr_pages;
}

/**
 * tshare_range_get() - the range of some pages of a region, made on first use
 * @ranges: the region's ranges
 * @first: the first page, counted from the region's
 * @nr_pages: pages, from 1; they lie inside the region
 *
 * Return: a reference, for tshare_range_put(), or ERR_PTR(-ENOMEM).
 */
struct tshare_range *tshare_range_get(struct tshare_ranges *ranges, unsigned long first,
				      unsigned long nr_pages)
{
	struct tshare_range *fresh, *range;
	struct rb_node *found;

	if (nr_pages == ranges->whole.nr_pages)
		return &ranges->whole;
	fresh = range_alloc(first, nr_pages);
	if (!fresh)
		return ERR_PTR(-ENOMEM);
	spin_lock(&ranges->lock);
	found = rb_find_add(&fresh->node, &ranges->tree, range_compare);
	range = found ? rb_entry(found, struct tshare_range, node) : fresh;
	if (found)
		range->refs++;
	spin_unlock(&ranges->lock);
	if (found)
		range_free(fresh);
	return range;
}

/**
 * tshare_range_put() - drop a reference
 * @ranges: the region's ranges
 * @range: the range, which is freed with the last reference; the whole stays
 */
void tshare_range_put(struct tshare_ranges *ranges, struct tshare_range *range)
{
	bool last;

	if (range == &ranges->whole)
		return;
	spin_lock(&ranges->lock);
	last = !--range->refs;
	if (last)
		rb_erase(&range->node, &ranges->tree);
	spin_unlock(&ranges->lock);
	if (last)
		range_free(range);
}
