/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The allocators, one file each, tried in order until one returns a run: physically contiguous
 * pages.
 */
#ifndef TSHARE_ALLOC_H
#define TSHARE_ALLOC_H

#include <linux/list.h>
#include <linux/nodemask.h>
#include <linux/types.h>

struct page;

/**
 * struct tshare_request - the memory that is wanted
 * @nr_pages: pages, from 1
 * @node: NUMA node, or NUMA_NO_NODE for any, the caller's first
 * @dma32: physical addresses below 4 GiB
 * @interruptible: whether any signal ends the search, and not only a fatal one
 */
struct tshare_request {
	unsigned long nr_pages;
	int node;
	bool dma32;
	bool interruptible;
};

/**
 * struct tshare_allocator - one source of contiguous memory
 * @name: for messages, events and debugfs
 * @alloc: stores the first page frame number of a run of zeroed pages that can be pinned. The
 *         run consists of folios of TSHARE_CHUNK_ORDER, then of single pages or the beginning
 *         of such a folio, with one reference each. Or fails with -ENOMEM (the next allocator
 *         is tried), -EINTR (a signal) or -EDQUOT (there is memory, but the caller's memory
 *         cgroup has no room); these two end the search.
 * @take_back: takes a folio of such a run back, with the reference, and returns true;
 *             or returns false if the folio is not this allocator's. NULL for those
 *             whose folios are freed when their last reference is dropped.
 */
struct tshare_allocator {
	const char *name;
	int (*alloc)(const struct tshare_request *req, unsigned long *pfn);
	bool (*take_back)(struct page *page);
};

extern const struct tshare_allocator tshare_allocator_buddy;
extern const struct tshare_allocator tshare_allocator_pool;
extern const struct tshare_allocator tshare_allocator_contig;

int tshare_contig_init(void);
void tshare_contig_exit(void);

bool tshare_request_interrupted(const struct tshare_request *req);
int tshare_request_nodes(const struct tshare_request *req, nodemask_t *allowed);
int tshare_run_alloc(const struct tshare_request *req, unsigned long *pfn, const char **rung);
void tshare_run_free(unsigned long pfn, unsigned long nr_pages);
unsigned long tshare_run_release(unsigned long pfn, unsigned long nr_pages,
				 struct list_head *pinned);
unsigned long tshare_pinned_free(struct list_head *pinned);
void tshare_pinned_abandon(struct list_head *pinned);

#endif /* TSHARE_ALLOC_H */
