// SPDX-License-Identifier: GPL-2.0-only
/*
 * The second rung: look for a stretch of memory that is free or holds only what
 * can be moved away, and have alloc_contig_range() empty it.
 *
 * A stretch may begin at any chunk: those aligned to their own size are far
 * fewer, and a large run that exists would be missed. It is taken chunk by
 * chunk, so that the first that can't be emptied tells where to go on.
 */
#include <linux/cpuset.h>
#include <linux/highmem.h>
#include <linux/hugetlb.h>
#include <linux/memory_hotplug.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>

#include "alloc.h"
#include "compat.h"

#ifdef CONFIG_CONTIG_ALLOC

/* What is taken at a time, and where a stretch may begin. */
#define STEP_PAGES (TSHARE_CHUNK_ORDER ? TSHARE_CHUNK_PAGES : pageblock_nr_pages)

/* Isolation of page blocks by two at a time only makes both fail. */
static DEFINE_MUTEX(contig_lock);

/*
 * Runs that looked as if they could be had, but couldn't, before a search gives
 * up: each costs milliseconds in which all CPUs drain their lists of pages, and
 * memory that a device has pinned looks so from end to end.
 */
#define TRIES 256

/* Might alloc_contig_range() get this page? A guess; it tells for sure. */
static bool page_acceptable(struct zone *zone, unsigned long pfn)
{
	struct page *page = pfn_to_online_page(pfn);

	if (!page || page_zone(page) != zone || PageReserved(page) || PageHuge(page))
		return false;
	if (page_count(page) >= GUP_PIN_COUNTING_BIAS)
		return false;
	return PageBuddy(page) || PageLRU(compound_head(page)) ||
	       (!page_count(page) && !PageSlab(page));
}

/*
 * Finds in [start, end) a page that isn't acceptable: the last, so that a search
 * jumps as far as it can.
 */
static bool find_offender(struct zone *zone, unsigned long start, unsigned long end,
			  unsigned long *bad)
{
	unsigned long pfn = end;

	while (pfn > start) {
		if (!page_acceptable(zone, --pfn)) {
			*bad = pfn;
			return true;
		}
		if (!(pfn % STEP_PAGES))
			cond_resched();
	}
	return false;
}

/*
 * Takes the run at @pfn. On failure stores in @bad a page that could not be had,
 * and keeps nothing.
 */
static int take_run(unsigned long pfn, unsigned long nr, unsigned long *bad)
{
	unsigned long taken = 0;
	int err;

	while (taken < nr) {
		unsigned long step = min_t(unsigned long, nr - taken, STEP_PAGES);

		if (fatal_signal_pending(current))
			err = -EINTR;
		else if (TSHARE_CHUNK_ORDER && step == STEP_PAGES)
			err = tshare_contig_take_chunk(pfn + taken);
		else
			err = tshare_contig_take_pages(pfn + taken, step);
		if (err) {
			*bad = pfn + taken + step - 1;
			tshare_run_free(pfn, taken);
			return err;
		}
		taken += step;
		cond_resched();
	}
	return 0;
}

static int search_zone(struct zone *zone, const struct tshare_request *req, int *tries,
		       unsigned long *pfn)
{
	unsigned long end = zone_end_pfn(zone);
	unsigned long start, bad;

	if (req->dma32)
		end = min(end, PHYS_PFN(SZ_4G));

	start = round_up(zone->zone_start_pfn, STEP_PAGES);
	while (*tries && start < end && req->nr_pages <= end - start) {
		if (!find_offender(zone, start, start + req->nr_pages, &bad)) {
			if (!take_run(start, req->nr_pages, &bad)) {
				*pfn = start;
				return 0;
			}
			--*tries;
		}
		if (fatal_signal_pending(current))
			return -EINTR;
		start = round_up(bad + 1, STEP_PAGES);
	}
	return -ENOMEM;
}

static int search_node(int nid, const struct tshare_request *req, int *tries, unsigned long *pfn)
{
	int type, err = -ENOMEM;

	if (!node_isset(nid, cpuset_current_mems_allowed))
		return -ENOMEM;
	/* ZONE_MOVABLE lies above these: its pages can't be pinned for long. */
	for (type = ZONE_NORMAL; type >= 0 && err == -ENOMEM; type--) {
		struct zone *zone = &NODE_DATA(nid)->node_zones[type];

		if (populated_zone(zone))
			err = search_zone(zone, req, tries, pfn);
	}
	return err;
}

static int search(const struct tshare_request *req, unsigned long *pfn)
{
	int local = req->node == NUMA_NO_NODE ? numa_mem_id() : req->node;
	int tries = TRIES;
	int nid, err;

	err = search_node(local, req, &tries, pfn);
	if (req->node != NUMA_NO_NODE)
		return err;
	for_each_online_node(nid) {
		if (err != -ENOMEM)
			break;
		if (nid != local)
			err = search_node(nid, req, &tries, pfn);
	}
	return err;
}

static int zero_pages(unsigned long pfn, unsigned long nr)
{
	unsigned long i;

	/* What alloc_contig_range() gave is zeroed then already. */
	if (want_init_on_alloc(0))
		return 0;
	for (i = 0; i < nr; i++) {
		if (!(i % SZ_512) && fatal_signal_pending(current))
			return -EINTR;
		clear_highpage(pfn_to_page(pfn + i));
		cond_resched();
	}
	return 0;
}

static int contig_alloc(const struct tshare_request *req, unsigned long *pfn)
{
	int err;

	if (mutex_lock_killable(&contig_lock))
		return -EINTR;
	err = search(req, pfn);
	mutex_unlock(&contig_lock);
	if (err)
		return err;

	err = zero_pages(*pfn, req->nr_pages);
	if (err)
		tshare_run_free(*pfn, req->nr_pages);
	return err;
}

#else

static int contig_alloc(const struct tshare_request *req, unsigned long *pfn)
{
	return -ENOMEM;
}

#endif /* CONFIG_CONTIG_ALLOC */

const struct tshare_rung tshare_rung_contig = {
	.name = "contig",
	.alloc = contig_alloc,
};
