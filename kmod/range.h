/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts of a region that dma-bufs cover, and their DMA fences. */
#ifndef TSHARE_RANGE_H
#define TSHARE_RANGE_H

#include <linux/dma-resv.h>
#include <linux/mm.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/types.h>

/**
 * struct tshare_range - consecutive pages of a region that dma-bufs cover
 * @first: the first page, counted from the region's
 * @nr_pages: pages
 * @resv: fences, shared by all dma-bufs over exactly these pages
 * @refs: the dma-bufs, under the lock of the region's ranges; unused in the range
 *        of the whole region
 * @node: in the region's ranges, likewise
 */
struct tshare_range {
	unsigned long first;
	unsigned long nr_pages;
	struct dma_resv resv;
	unsigned int refs;
	struct rb_node node;
};

/**
 * struct tshare_ranges - the ranges of a region
 * @whole: all its pages; lives as long as the region
 * @lock: protects @tree and what is in it; no other lock is taken under it
 * @tree: the others, by their first page and their number of pages
 */
struct tshare_ranges {
	struct tshare_range whole;
	spinlock_t lock; /* protects tree and its ranges */
	struct rb_root tree;
};

/* In bytes of the region. */
static inline u64 tshare_range_start(const struct tshare_range *range)
{
	return (u64)range->first << PAGE_SHIFT;
}

static inline u64 tshare_range_bytes(const struct tshare_range *range)
{
	return (u64)range->nr_pages << PAGE_SHIFT;
}

static inline u64 tshare_range_end(const struct tshare_range *range)
{
	return tshare_range_start(range) + tshare_range_bytes(range);
}

void tshare_ranges_init(struct tshare_ranges *ranges, unsigned long nr_pages);
void tshare_ranges_destroy(struct tshare_ranges *ranges);
struct tshare_range *tshare_range_get(struct tshare_ranges *ranges, unsigned long first,
				      unsigned long nr_pages);
void tshare_range_put(struct tshare_ranges *ranges, struct tshare_range *range);

#endif /* TSHARE_RANGE_H */
