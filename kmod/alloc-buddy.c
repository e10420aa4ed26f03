// SPDX-License-Identifier: GPL-2.0-only
/* The first allocator: the kernel's page allocator, up to one chunk. */
#include <linux/gfp.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>

#include "alloc.h"
#include "compat.h"

/* On @req->node, or on the caller's nodes in the order of its memory policy. */
static struct page *buddy_alloc_block(const struct tshare_request *req, gfp_t gfp,
				      unsigned int order)
{
	if (req->node == NUMA_NO_NODE)
		return alloc_pages(gfp, order);
	return alloc_pages_node(req->node, gfp | __GFP_THISNODE, order);
}

static int buddy_alloc(const struct tshare_request *req, unsigned long *pfn)
{
	unsigned int order = get_order(req->nr_pages << PAGE_SHIFT);
	gfp_t gfp = GFP_USER | __GFP_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;
	bool chunk = TSHARE_CHUNK_ORDER && req->nr_pages == TSHARE_CHUNK_PAGES;
	struct page *page;
	unsigned long i;

	/*
	 * A larger run must consist of several folios, and the kernel exports no function that
	 * splits a larger block into these.
	 */
	if (req->nr_pages > TSHARE_BLOCK_PAGES)
		return -ENOMEM;

	/* The next allocator works harder on large sizes. */
	gfp |= order > PAGE_ALLOC_COSTLY_ORDER ? __GFP_NORETRY : __GFP_RETRY_MAYFAIL;
	if (req->dma32)
		gfp |= GFP_DMA32;
	if (chunk)
		gfp |= __GFP_COMP;

	page = buddy_alloc_block(req, gfp, order);
	if (!page) {
		if (mem_cgroup_disabled())
			return -ENOMEM;
		/*
		 * If the memory cgroup had no room, there is a free block. The next allocator,
		 * which can't charge the cgroup, must not return it. If there is no free
		 * block, the cause is unknown, and the next allocator is tried.
		 */
		gfp &= ~__GFP_DIRECT_RECLAIM;
		page = buddy_alloc_block(req, gfp & ~__GFP_ACCOUNT, order);
		if (!page)
			return -ENOMEM;
		__free_pages(page, order);
		/* But it may be free only since the first call, and the cgroup have room. */
		page = buddy_alloc_block(req, gfp, order);
		if (!page)
			return -EDQUOT;
	}
	/* Not every machine has a zone that ends at 4 GiB. */
	if (req->dma32 && page_to_pfn(page) + req->nr_pages > PHYS_PFN(SZ_4G)) {
		__free_pages(page, order);
		return -ENOMEM;
	}
	if (!chunk) {
		split_page(page, order);
		for (i = req->nr_pages; i < 1UL << order; i++)
			__free_page(page + i);
	}
	*pfn = page_to_pfn(page);
	return 0;
}

const struct tshare_allocator tshare_allocator_buddy = {
	.name = "buddy",
	.alloc = buddy_alloc,
};
