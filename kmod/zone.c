// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory that a zone can spare for a run, and its reclaim. Knows nothing of runs or
 * of the search for them, except what a request says about signals.
 */
#include <linux/cpumask.h>
#include <linux/freezer.h>
#include <linux/gfp.h>
#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/percpu.h>
#include <linux/vmstat.h>

#include "alloc.h"
#include "zone.h"

/* Pages of @zone that are kept for callers that can't use a higher zone. */
static unsigned long zone_reserve(struct zone *zone, enum zone_type class)
{
	/* The core's store, when a sysctl or a zone's size changes, is plain. */
	return data_race(READ_ONCE(zone->lowmem_reserve[class]));
}

/* Pages that @zone has to keep free, or leave to others. */
static unsigned long zone_kept(struct zone *zone, enum zone_type class)
{
	/* The core's store of the watermarks is plain, too. */
	return data_race(min_wmark_pages(zone)) + zone_reserve(zone, class);
}

/**
 * tshare_zone_can_spare() - whether a zone can spare free pages
 * @zone: the zone
 * @class: the highest zone that the pages may be in
 * @free: the free pages of a run
 *
 * Pages of the run that are in use don't matter: they move to pages that the page allocator
 * returns within the same limits. A try drains the CPUs' lists, so their pages count as free.
 */
bool tshare_zone_can_spare(struct zone *zone, enum zone_type class, unsigned long free)
{
	unsigned long has = zone_page_state(zone, NR_FREE_PAGES);
	unsigned long cma = zone_page_state(zone, NR_FREE_CMA_PAGES);
	int cpu;

	for_each_online_cpu(cpu)
		/* The core stores it plainly, under a lock of that CPU's. */
		has += data_race(READ_ONCE(per_cpu_ptr(zone->per_cpu_pageset, cpu)->count));
	return has >= cma + free + zone_kept(zone, class);
}

/**
 * tshare_zone_room() - how many pages must be free at once so that a zone can spare some
 * @zone: the zone
 * @class: the highest zone that the pages may be in
 * @nr: the pages to spare
 *
 * Return: their number; 0 if the zone can't have so many.
 */
unsigned long tshare_zone_room(struct zone *zone, enum zone_type class, unsigned long nr)
{
	if (nr + zone_kept(zone, class) > zone_managed_pages(zone))
		return 0;
	return nr + zone_reserve(zone, class);
}

/*
 * Whether @zone has page cache to reclaim @nr pages from, by the rule of
 * MemAvailable: its low watermark, or half of the cache, is in use.
 */
static bool zone_has_cache(struct zone *zone, unsigned long nr)
{
	unsigned long cache = zone_page_state(zone, NR_ZONE_INACTIVE_FILE) +
			      zone_page_state(zone, NR_ZONE_ACTIVE_FILE);

	/* As in zone_kept(). */
	return cache - min(cache / 2, data_race(low_wmark_pages(zone))) >= nr;
}

/*
 * The flags to allocate @nr pages of @zone by reclaim. With enough page cache the allocator
 * may retry as long as reclaim makes progress. With less, reclaim would take programs' own
 * pages, which they read again at once, until the OOM killer kills one.
 */
static gfp_t zone_reclaim_gfp(struct zone *zone, unsigned long nr)
{
	gfp_t gfp = GFP_USER | __GFP_THISNODE | __GFP_NOWARN;

	gfp |= zone_has_cache(zone, nr) ? __GFP_RETRY_MAYFAIL : __GFP_NORETRY;
	/* No higher zone's pages: they would be allocated first, and be of no use. */
	if (zone_idx(zone) == gfp_zone(GFP_DMA))
		gfp |= GFP_DMA;
	else if (zone_idx(zone) == gfp_zone(GFP_DMA32))
		gfp |= GFP_DMA32;
	return gfp;
}

/**
 * tshare_zone_reclaim() - make the page allocator reclaim memory
 * @req: what is wanted; its signals end this
 * @zone: the zone
 * @nr: pages of it that shall be free at once
 *
 * Allocates as many pages and frees them. Ends early for the freezer, which also waits for
 * tasks that wait for these pages.
 */
void tshare_zone_reclaim(const struct tshare_request *req, struct zone *zone, unsigned long nr)
{
	gfp_t gfp = zone_reclaim_gfp(zone, nr);
	struct page *page, *next;
	LIST_HEAD(pages);

	while (nr && !tshare_request_interrupted(req) && !freezing(current)) {
		page = alloc_pages_node(zone_to_nid(zone), gfp, 0);
		if (!page)
			break;
		list_add(&page->lru, &pages);
		/* The allocator may fall back to a lower zone. */
		if (page_zone(page) == zone)
			nr--;
		cond_resched();
	}
	list_for_each_entry_safe(page, next, &pages, lru) {
		list_del(&page->lru);
		__free_page(page);
		cond_resched();
	}
}

#ifdef TSHARE_KUNIT
#include "tests/zone.c"
#endif
