// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which pages could be moved out of a run's way, by a look at their struct pages; and the fence,
 * which keeps the search from looking at, and taking, memory that goes offline.
 */
#include <linux/hugetlb.h>
#include <linux/log2.h>
#include <linux/memory.h>
#include <linux/memory_hotplug.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/rwsem.h>

#include "compat.h"
#include "movable.h"

/*
 * Struct pages of memory that goes offline may vanish. So a search examines and takes pages
 * only with this lock (no DMA fence) held for reading, and never those from fence_start to
 * fence_end. The core takes one range offline at a time: it is fenced from the core's
 * announcement until the core has given up, or pfn_to_online_page() no longer finds the
 * memory.
 */
static DECLARE_RWSEM(fence);
static unsigned long fence_start, fence_end;

/**
 * tshare_fence_lock() - keep struct pages from vanishing
 *
 * Return: 0, -EINTR for a fatal signal.
 */
int tshare_fence_lock(void)
{
	return down_read_killable(&fence);
}

/**
 * tshare_fence_unlock() - end tshare_fence_lock()
 */
void tshare_fence_unlock(void)
{
	up_read(&fence);
}

/**
 * tshare_fence_covers() - whether some of these pages go offline
 * @pfn: the first page
 * @nr: pages
 *
 * The caller holds the fence.
 */
bool tshare_fence_covers(unsigned long pfn, unsigned long nr)
{
	return pfn < fence_end && fence_start < pfn + nr;
}

/*
 * Pages from @page to the end of its folio, or 0 if the folio can't be moved away.
 *
 * Migration expects the references of the folio's mappings and its file. An extra reference is
 * a pin, by pin_user_pages(), vmsplice() or the like, or that of a CPU's list of pages on
 * their way to the LRU, which alloc_contig_range() drains. A lenient search assumes the
 * latter. The reference taken here keeps the folio from being freed or split meanwhile.
 */
static unsigned long folio_movable_pages(struct page *page, bool lenient)
{
	struct page *head = compound_head(page);
	struct folio *folio = (struct folio *)head;
	unsigned long nr = 0;
	int extra;

	/* The module's own folios must get no other reference, not even for a moment. */
	if (!PageLRU(head) && (!lenient || PageSlab(head) || !READ_ONCE(head->mapping)))
		return 0;
	if (!folio_try_get(folio))
		return 0;
	if (compound_head(page) != head || folio_test_hugetlb(folio) || !READ_ONCE(folio->mapping))
		goto out;
	extra = folio_ref_count(folio) - 1 - tshare_folio_mapcount(folio);
	if (folio_test_swapcache(folio))
		extra -= folio_nr_pages(folio);
	if (!folio_test_anon(folio))
		extra -= folio_nr_pages(folio) + folio_test_private(folio) +
			 folio_test_private_2(folio);
	if (extra <= (lenient ? 1 : 0) && !folio_maybe_dma_pinned(folio))
		nr = folio_nr_pages(folio) - (page - head);
out:
	folio_put(folio);
	return nr;
}

/* As tshare_movable_pages(), for pages that are not going offline. */
static unsigned long movable_look_at_pages(struct zone *zone, unsigned long pfn, unsigned long max,
					   bool lenient, unsigned long *free)
{
	unsigned long i = 0, nr;

	while (i < max) {
		struct page *page = pfn_to_online_page(pfn + i);

		if (!page || page_zone(page) != zone || PageReserved(page) || PageHWPoison(page))
			break;
		/* Memory of a CMA area looks free, but is never available. */
		if (!i && !lenient && tshare_block_is_cma(pfn))
			break;
		if (PageBuddy(page)) {
			unsigned long order = READ_ONCE(page->private);

			nr = order < ilog2(TSHARE_BLOCK_PAGES) ? 1UL << order : TSHARE_BLOCK_PAGES;
			*free += min(nr, max - i);
		} else if (!page_count(page)) {
			/* On its way to the free lists, or the tail of a free block. */
			if (PageSlab(page))
				break;
			nr = 1;
			++*free;
		} else {
			nr = folio_movable_pages(page, lenient);
			if (!nr)
				break;
		}
		i += nr;
	}
	return min(i, max);
}

/**
 * tshare_movable_pages() - how many pages look free or movable, up to the first that doesn't
 * @zone: the zone that they must lie in
 * @pfn: the first page, where a block begins if the zone's CMA areas are to be left out
 * @max: pages to look at
 * @lenient: whether a page may have a reference too many, and may be a CMA area's
 * @free: where to add those that are free now
 *
 * A guess, without the zone's lock; alloc_contig_range() decides. The caller holds the fence.
 *
 * Return: their number, up to @max.
 */
unsigned long tshare_movable_pages(struct zone *zone, unsigned long pfn, unsigned long max,
				   bool lenient, unsigned long *free)
{
	if (tshare_fence_covers(pfn, max))
		return 0;
	/* Others free and use the pages meanwhile, with plain stores to flags and mappings. */
	return data_race(movable_look_at_pages(zone, pfn, max, lenient, free));
}

static int fence_memory_notify(struct notifier_block *nb, unsigned long action, void *data)
{
	struct memory_notify *memory = data;

	if (action != MEM_GOING_OFFLINE && action != MEM_CANCEL_OFFLINE && action != MEM_OFFLINE)
		return NOTIFY_DONE;
	down_write(&fence);
	fence_start = memory->start_pfn;
	fence_end = fence_start;
	if (action == MEM_GOING_OFFLINE)
		fence_end += memory->nr_pages;
	up_write(&fence);
	return NOTIFY_OK;
}

static struct notifier_block memory_notifier = { .notifier_call = fence_memory_notify };

/**
 * tshare_fence_init() - learn from now on which memory goes offline
 *
 * Return: 0, or an error of the core's.
 */
int __init tshare_fence_init(void)
{
	return register_memory_notifier(&memory_notifier);
}

/**
 * tshare_fence_exit() - end tshare_fence_init()
 */
void tshare_fence_exit(void)
{
	unregister_memory_notifier(&memory_notifier);
}

#ifdef TSHARE_KUNIT
#include "tests/movable.c"
#endif
