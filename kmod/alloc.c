// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs of contiguous memory, whichever allocator they come from. A run consists of folios, of
 * which the last may extend beyond it.
 *
 * No allocator takes memory of a CMA area or of ZONE_MOVABLE: devices, io_uring and RDMA
 * couldn't pin it for long.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpuset.h>
#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>

#include "alloc.h"
#include "compat.h"

static const struct tshare_allocator *const allocators[] = {
	&tshare_allocator_buddy,
	&tshare_allocator_pool,
	&tshare_allocator_contig,
};

/* Drops the module's reference to a folio of a run, which nobody has mapped. */
static void folio_give_back(struct page *page)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(allocators); i++)
		if (allocators[i]->take_back && allocators[i]->take_back(page))
			return;
	put_page(page);
}

/*
 * Core mm maps a folio with one entry only if, by its index, it ends inside the file. The
 * dma-bufs over a run are files that begin at different pages of it, so no index fits all
 * files. With index 0 each file that has room for a folio passes. Core mm finds the folio's
 * place by the VMA, not by the index.
 */
static void run_reset_indexes(unsigned long pfn, unsigned long nr_pages)
{
	unsigned long i = 0;

	while (i < nr_pages) {
		struct folio *folio = page_folio(pfn_to_page(pfn + i));

		folio->index = 0;
		i += folio_nr_pages(folio);
		cond_resched();
	}
}

/**
 * tshare_request_nodes() - the nodes that a request may be served from
 * @req: the request
 * @allowed: where to store those that the caller's cpuset and memory policy allow
 *
 * A run lies on one node, so the nodes of a policy to interleave are merely preferred. As
 * in the page allocator, a policy to bind doesn't apply to memory of a lower zone.
 *
 * Return: the node to begin with.
 */
int tshare_request_nodes(const struct tshare_request *req, nodemask_t *allowed)
{
	int nid = numa_mem_id();

	*allowed = cpuset_current_mems_allowed;
	if (req->node != NUMA_NO_NODE) {
		nodemask_t only = nodemask_of_node(req->node);

		nodes_and(*allowed, *allowed, only);
		return req->node;
	}
#ifdef CONFIG_NUMA
	if (current->mempolicy && current->mempolicy->mode != MPOL_LOCAL) {
		nodemask_t wanted;

		nodes_and(wanted, *allowed, current->mempolicy->nodes);
		if (!nodes_empty(wanted)) {
			if (current->mempolicy->mode == MPOL_BIND && !req->dma32)
				*allowed = wanted;
			if (!node_isset(nid, wanted))
				nid = first_node(wanted);
		}
	}
#endif
	return nid;
}

/**
 * tshare_request_interrupted() - whether a signal ends the search for memory
 * @req: the request
 */
bool tshare_request_interrupted(const struct tshare_request *req)
{
	return req->interruptible ? signal_pending(current) : fatal_signal_pending(current);
}

/**
 * tshare_run_alloc() - allocate a run from the first allocator that has one
 * @req: what is wanted
 * @pfn: where to store the first page frame number
 * @rung: where to store the allocator's name
 *
 * Return: 0, -ENOMEM, -EINTR, -EDQUOT.
 */
int tshare_run_alloc(const struct tshare_request *req, unsigned long *pfn, const char **rung)
{
	int i, err = -ENOMEM;

	for (i = 0; i < ARRAY_SIZE(allocators); i++) {
		err = allocators[i]->alloc(req, pfn);
		pr_debug("%s: %lu pages, node %d: %d\n", allocators[i]->name, req->nr_pages,
			 req->node, err);
		*rung = allocators[i]->name;
		if (err != -ENOMEM)
			break;
	}
	if (!err)
		run_reset_indexes(*pfn, req->nr_pages);
	return err;
}

/**
 * tshare_run_free() - free a run that only the module has a reference to
 * @pfn: its first page frame number
 * @nr_pages: its pages
 */
void tshare_run_free(unsigned long pfn, unsigned long nr_pages)
{
	unsigned long i = 0;

	while (i < nr_pages) {
		struct page *page = pfn_to_page(pfn + i);

		i += compound_nr(page);
		folio_give_back(page);
		cond_resched();
	}
}

/**
 * tshare_run_release() - free the folios of a run that have no other user
 * @pfn: its first page frame number
 * @nr_pages: its pages
 * @pinned: where to add the folios that have other references; the module keeps
 *          its own to these
 *
 * The run is mapped nowhere. So a folio whose only reference is the module's can get another
 * one only for a moment, from a process that found it by its frame number.
 *
 * Return: pages of the folios in @pinned, which may be more than the run has: a pinned page
 * keeps its whole folio.
 */
unsigned long tshare_run_release(unsigned long pfn, unsigned long nr_pages,
				 struct list_head *pinned)
{
	unsigned long i, nr, kept = 0;

	for (i = 0; i < nr_pages; i += nr) {
		struct page *page = pfn_to_page(pfn + i);

		nr = compound_nr(page);
		if (page_count(page) == 1) {
			folio_give_back(page);
		} else {
			kept += nr;
			list_add_tail(&page->lru, pinned);
		}
		cond_resched();
	}
	return kept;
}

/**
 * tshare_pinned_free() - free folios that are no longer pinned
 * @pinned: from tshare_run_release()
 *
 * Return: pages freed.
 */
unsigned long tshare_pinned_free(struct list_head *pinned)
{
	unsigned long freed = 0;
	struct page *page, *next;

	list_for_each_entry_safe(page, next, pinned, lru) {
		if (page_count(page) == 1) {
			freed += compound_nr(page);
			list_del(&page->lru);
			folio_give_back(page);
		}
		cond_resched();
	}
	return freed;
}

/**
 * tshare_pinned_abandon() - drop the module's references to pinned folios
 * @pinned: from tshare_run_release(); the pools are closed, and keep none of these
 */
void tshare_pinned_abandon(struct list_head *pinned)
{
	struct page *page, *next;

	list_for_each_entry_safe(page, next, pinned, lru) {
		list_del(&page->lru);
		folio_give_back(page);
		cond_resched();
	}
}

#ifdef TSHARE_KUNIT
#include "tests/alloc.c"
#endif
