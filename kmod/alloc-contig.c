// SPDX-License-Identifier: GPL-2.0-only
/*
 * The last allocator: searches for a run of pages that are free or movable, and takes it with
 * alloc_contig_range(), which moves the used pages away.
 *
 * A run may begin at any block. Runs aligned to their own size are far fewer: a search for
 * these alone would miss large runs.
 */
#include <linux/freezer.h>
#include <linux/highmem.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/mutex.h>
#include <linux/sched.h>

#include "alloc.h"
#include "compat.h"
#include "movable.h"
#include "trace.h"
#include "zone.h"

#ifdef CONFIG_CONTIG_ALLOC

/* The alignment of a run, and the pages that are examined at once. */
#define STEP_PAGES TSHARE_BLOCK_PAGES

/*
 * The most pages that one call takes, with one drain of all CPUs' lists of pages. The core
 * zeroes them without rescheduling, and ignores signals if it moves none.
 */
#define TAKE_PAGES (TSHARE_CONTIG_WHOLE ? PHYS_PFN(SZ_256M) : STEP_PAGES)

/*
 * Failed tries after which a search leaves a zone. The first half are made wherever a run
 * looks movable, the second half are spread over the rest of the zone. So a large area that
 * only looks movable, such as a device's, doesn't use up all tries.
 */
#define TRIES 64

/*
 * A failed try has made all CPUs drain their lists of pages for nothing. After a burst of
 * failures only one try may fail per node and interval, in jiffies, for all processes
 * together.
 */
#define FAILURES_BURST	  256
#define FAILURES_INTERVAL (HZ / 50 + 1)

/**
 * struct contig_node - the tries on one node
 * @lock: held during a try, since two that isolate page blocks would both fail; protects
 *        @failures and @refilled
 * @reclaim: held while memory is reclaimed: two searches would count on the same page cache,
 *           and each holds as many pages as it wants, charged to nobody
 * @failures: tries that may fail now
 * @refilled: when @failures was brought up to date, in jiffies
 */
struct contig_node {
	struct mutex lock; /* see above */
	struct mutex reclaim;
	unsigned int failures;
	unsigned long refilled;
};

static struct contig_node contig_nodes[MAX_NUMNODES];

/**
 * struct contig_search - one search
 * @req: what is wanted
 * @allowed: the nodes that the run may be on
 * @class: the highest zone that it may be in
 * @lenient: whether to try pages that may have a reference too many
 * @reclaim: whether to have memory reclaimed for a run that a zone can't spare
 * @refused: whether there was such a run
 * @room: free pages for which memory was reclaimed in the current zone
 * @tries: runs that the search has tried to take
 * @moved: pages in use that were moved out of the run that it took
 */
struct contig_search {
	const struct tshare_request *req;
	nodemask_t allowed;
	enum zone_type class;
	bool lenient;
	bool reclaim;
	bool refused;
	unsigned long room;
	unsigned int tries;
	unsigned long moved;
};

/*
 * Waits while the process is frozen, as for suspend. The caller holds no lock. A search for a
 * pool that grows does; it is interruptible, so the freezer's signal ends it instead.
 */
static void contig_freeze(const struct tshare_request *req)
{
	if (!req->interruptible)
		try_to_freeze();
}

/*
 * Takes one of a node's locks. The freezer has to wait for tasks that wait for the lock. So a
 * task that gets the lock while the freezer waits drops it, freezes, and tries again.
 */
static int contig_lock(const struct tshare_request *req, struct mutex *lock)
{
	for (;;) {
		contig_freeze(req);
		if (tshare_request_interrupted(req) || mutex_lock_killable(lock))
			return -EINTR;
		if (!freezing(current))
			return 0;
		mutex_unlock(lock);
	}
}

/* The step that made a call fail: the last one with an immovable page, or else the middle. */
static unsigned long contig_blame(const struct tshare_request *req, struct zone *zone,
				  unsigned long start, unsigned long nr)
{
	unsigned long bad = start + nr / 2, free = 0, i;

	for (i = 0; i < nr && !tshare_request_interrupted(req); i += STEP_PAGES) {
		unsigned long max = min(nr - i, STEP_PAGES);

		if (tshare_movable_pages(zone, start + i, max, false, &free) < max)
			bad = start + i;
		cond_resched();
	}
	return bad;
}

static void contig_free_pages(unsigned long pfn, unsigned long nr)
{
	while (nr--) {
		put_page(pfn_to_page(pfn++));
		cond_resched();
	}
}

/* Makes chunks of a run of single pages, or frees it. */
static int contig_make_chunks(unsigned long pfn, unsigned long nr)
{
	unsigned long i;
	int tries;

	if (!TSHARE_CHUNK_ORDER)
		return 0;
	for (i = 0; i + TSHARE_CHUNK_PAGES <= nr; i += TSHARE_CHUNK_PAGES) {
		for (tries = 0; tshare_contig_make_chunk(pfn + i); tries++) {
			if (tries == 1000) {
				tshare_run_free(pfn, i);
				contig_free_pages(pfn + i, nr - i);
				return -EBUSY;
			}
			cpu_relax();
		}
		cond_resched();
	}
	return 0;
}

/* Takes a part of a run, as folios and single pages. */
static int contig_take_part(unsigned long pfn, unsigned long nr)
{
	int err;

	if (TSHARE_CONTIG_WHOLE) {
		err = tshare_contig_take_pages(pfn, nr);
		return err ?: contig_make_chunks(pfn, nr);
	}
	if (TSHARE_CHUNK_ORDER && nr == TAKE_PAGES)
		return tshare_contig_take_chunk(pfn);
	return tshare_contig_take_pages(pfn, nr);
}

/*
 * Takes the run at @pfn. On failure keeps nothing, and stores in @bad the step after which the
 * search goes on.
 */
static int contig_take_run(const struct tshare_request *req, struct zone *zone, unsigned long pfn,
			   unsigned long *bad)
{
	unsigned long nr = req->nr_pages, taken = 0;
	int err;

	while (taken < nr) {
		unsigned long part = min_t(unsigned long, nr - taken, TAKE_PAGES);

		err = tshare_request_interrupted(req) ? -EINTR :
							contig_take_part(pfn + taken, part);
		if (err) {
			*bad = contig_blame(req, zone, pfn + taken, part);
			tshare_run_free(pfn, taken);
			return err;
		}
		taken += part;
		cond_resched();
	}
	return 0;
}

/* Waits for this caller's turn to try on a node, and locks it. */
static int contig_node_lock(const struct tshare_request *req, struct contig_node *node)
{
	unsigned long ticks;

	while (!contig_lock(req, &node->lock)) {
		ticks = (jiffies - node->refilled) / FAILURES_INTERVAL;
		node->refilled += ticks * FAILURES_INTERVAL;
		node->failures = min(node->failures + ticks, (unsigned long)FAILURES_BURST);
		if (node->failures)
			return 0;
		mutex_unlock(&node->lock);
		schedule_timeout_killable(FAILURES_INTERVAL);
	}
	return -EINTR;
}

/*
 * How many pages of @zone must be free at once so that it can spare the @free free pages of a
 * run; 0 if reclaim can't help. Reclaimed pages may lie in the run itself and add to @free. So
 * if the first reclaim didn't suffice, the second is for all pages of the run.
 */
static unsigned long contig_room(struct contig_search *search, struct zone *zone,
				 unsigned long free)
{
	unsigned long nr = search->room ? search->req->nr_pages : max(free, 1UL), room;

	if (nr <= search->room)
		return 0;
	room = tshare_zone_room(zone, search->class, nr);
	if (room)
		search->room = nr;
	return room;
}

/*
 * Makes room in @zone, of @node, for a run that has @free free pages. Returns -EAGAIN if the run
 * is worth another look: memory was reclaimed, perhaps by another search.
 */
static int contig_make_room(struct contig_search *search, struct contig_node *node,
			    struct zone *zone, unsigned long free)
{
	unsigned long room = search->room, nr = 1;
	int err;

	err = contig_lock(search->req, &node->reclaim);
	if (err)
		return err;
	if (!tshare_zone_can_spare(zone, search->class, free)) {
		nr = contig_room(search, zone, free);
		if (nr)
			tshare_zone_reclaim(search->req, zone, nr);
		/* A reclaim that a freeze cut short is repeated. */
		if (freezing(current))
			search->room = room;
	}
	mutex_unlock(&node->reclaim);
	return nr ? -EAGAIN : -ENOMEM;
}

/*
 * Takes the run at @pfn, which has @free free pages, if its zone can spare them. Fails with
 * -EAGAIN if memory was reclaimed, and the run must be examined again.
 */
static int contig_try_run(struct contig_search *search, struct zone *zone, unsigned long pfn,
			  unsigned long free, unsigned long *bad)
{
	struct contig_node *node = &contig_nodes[zone_to_nid(zone)];
	unsigned long nr = search->req->nr_pages;
	int err;

	*bad = pfn;
	if (!tshare_zone_can_spare(zone, search->class, free)) {
		search->refused = true;
		return search->reclaim ? contig_make_room(search, node, zone, free) : -ENOMEM;
	}

	err = contig_node_lock(search->req, node);
	if (err)
		return err;
	err = tshare_fence_lock();
	if (!err) {
		/* The run may have begun to go offline since the search examined it. */
		search->tries++;
		if (tshare_fence_covers(pfn, nr))
			err = -EBUSY;
		else
			err = contig_take_run(search->req, zone, pfn, bad);
		tshare_fence_unlock();
	}
	if (!err)
		search->moved = nr - free;
	/* A failed try has drained all CPUs' lists of pages for nothing. */
	if (err)
		node->failures--;
	mutex_unlock(&node->lock);
	return tshare_request_interrupted(search->req) && err ? -EINTR : err;
}

static int contig_search_zone(struct contig_search *search, struct zone *zone, unsigned long *pfn)
{
	unsigned long nr = search->req->nr_pages, end = zone_end_pfn(zone);
	unsigned long start, pos, bad, free = 0;
	int tries = TRIES;

	if (search->req->dma32)
		end = min(end, PHYS_PFN(SZ_4G));

	search->room = 0;
	start = round_up(zone->zone_start_pfn, STEP_PAGES);
	pos = start;
	while (tries && start < end && nr <= end - start) {
		unsigned long max = min(start + nr - pos, STEP_PAGES), usable;
		int err;

		cond_resched();
		contig_freeze(search->req);
		if (tshare_request_interrupted(search->req) || tshare_fence_lock())
			return -EINTR;
		usable = tshare_movable_pages(zone, pos, max, search->lenient, &free);
		tshare_fence_unlock();
		if (usable < max) {
			start = pos + STEP_PAGES;
		} else {
			/* [start, pos) is usable: the run is complete, or grows. */
			pos += max;
			if (pos < start + nr)
				continue;
			err = contig_try_run(search, zone, start, free, &bad);
			*pfn = start;
			if (!err || err == -EINTR)
				return err;
			if (err != -EAGAIN) {
				start = round_up(bad + 1, STEP_PAGES);
				if (--tries < TRIES / 2 && start < end)
					start += round_up((end - start) / (tries + 1), STEP_PAGES);
			}
		}
		pos = start;
		free = 0;
	}
	return -ENOMEM;
}

/* Zones in the order in which the page allocator would fall back to them. */
static int contig_search_zones(struct contig_search *search, int nid, unsigned long *pfn)
{
	struct zoneref *ref = node_zonelist(nid, GFP_USER)->_zonerefs;
	int err = -ENOMEM;

	/* ZONE_MOVABLE lies above the class: its pages can't be pinned for long. */
	for (; ref->zone && err == -ENOMEM; ref++)
		if (zonelist_zone_idx(ref) <= search->class &&
		    node_isset(zonelist_node_idx(ref), search->allowed))
			err = contig_search_zone(search, ref->zone, pfn);
	return err;
}

static int contig_zero_pages(const struct tshare_request *req, unsigned long pfn)
{
	unsigned long i;

	/* alloc_contig_range() has zeroed the pages then. */
	if (want_init_on_alloc(0))
		return 0;
	for (i = 0; i < req->nr_pages; i++) {
		if (!(i % SZ_512)) {
			contig_freeze(req);
			if (tshare_request_interrupted(req))
				return -EINTR;
		}
		clear_highpage(pfn_to_page(pfn + i));
		cond_resched();
	}
	return 0;
}

/* Finds and takes a run, without zeroing it. */
static int contig_search_run(const struct tshare_request *req, unsigned long *pfn)
{
	struct contig_search search = {
		.req = req,
		.class = gfp_zone(GFP_USER | (req->dma32 ? GFP_DMA32 : 0)),
	};
	int nid = tshare_request_nodes(req, &search.allowed);
	u64 start = ktime_get_ns();
	int err;

	err = contig_search_zones(&search, nid, pfn);
	/* As in the page allocator, all zones come before memory is reclaimed in one. */
	search.reclaim = true;
	if (err == -ENOMEM && search.refused)
		err = contig_search_zones(&search, nid, pfn);
	if (err == -ENOMEM) {
		search.lenient = true;
		err = contig_search_zones(&search, nid, pfn);
	}
	trace_tshare_search(req, search.tries, search.moved, ktime_get_ns() - start, err);
	return err;
}

static int contig_alloc(const struct tshare_request *req, unsigned long *pfn)
{
	int err = contig_search_run(req, pfn);

	if (err)
		return err;

	err = contig_zero_pages(req, *pfn);
	if (err)
		tshare_run_free(*pfn, req->nr_pages);
	return err;
}

/* Called before the device is registered, and so before any search. */
int __init tshare_contig_init(void)
{
	int i;

	for (i = 0; i < MAX_NUMNODES; i++) {
		mutex_init(&contig_nodes[i].lock);
		mutex_init(&contig_nodes[i].reclaim);
		contig_nodes[i].failures = FAILURES_BURST;
		contig_nodes[i].refilled = jiffies;
	}
	return tshare_fence_init();
}

void tshare_contig_exit(void)
{
	tshare_fence_exit();
}

#ifdef TSHARE_KUNIT
#include "tests/alloc-contig.c"
#endif

#else

static int contig_alloc(const struct tshare_request *req, unsigned long *pfn)
{
	return -ENOMEM;
}

int __init tshare_contig_init(void)
{
	return 0;
}

void tshare_contig_exit(void)
{
}

#endif /* CONFIG_CONTIG_ALLOC */

const struct tshare_allocator tshare_allocator_contig = {
	.name = "contig",
	.alloc = contig_alloc,
};
