/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The differences between kernels: the only file with version conditions.
 *
 * Where Kbuild finds a feature in the kernel's headers, the version number is ignored, because
 * distributions backport.
 */
#ifndef TSHARE_COMPAT_H
#define TSHARE_COMPAT_H

#ifdef CONFIG_CGROUP_DMEM
#include <linux/cgroup_dmem.h>
#endif
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/ns_common.h>
#include <linux/refcount.h>
#include <linux/shmem_fs.h>
#include <linux/sizes.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "tshare needs Linux 6.1 or later"
#endif
#ifndef CONFIG_64BIT
#error "tshare needs a 64-bit kernel: regions are mapped whole and ids are 64 bits"
#endif

#ifndef CONFIG_DMA_SHARED_BUFFER
#error "tshare needs CONFIG_DMA_SHARED_BUFFER: regions are dma-bufs"
#endif

/* Without either, there is no IPC namespace: nsproxy->ipc_ns is NULL. */
#if !defined(CONFIG_SYSVIPC) && !defined(CONFIG_POSIX_MQUEUE)
#error "tshare needs CONFIG_SYSVIPC or CONFIG_POSIX_MQUEUE: names belong to IPC namespaces"
#endif

#ifndef CONFIG_SHMEM
#error "tshare needs CONFIG_SHMEM: the counters of regions are shared memory"
#endif

/* The namespace of dma-buf's symbols became a string in 6.13. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define TSHARE_IMPORT_DMA_BUF() MODULE_IMPORT_NS(DMA_BUF)
#else
#define TSHARE_IMPORT_DMA_BUF() MODULE_IMPORT_NS("DMA_BUF")
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/* Since 6.10 __assign_str() takes the string that __string() named. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
#define TSHARE_ASSIGN_STR(dst, src) __assign_str(dst, src)
#else
#define TSHARE_ASSIGN_STR(dst, src) __assign_str(dst)
#endif

/* An unlinked file of shared memory, accounted in full from the start. */
static inline struct file *tshare_shmem_file_setup(const char *name, loff_t size)
{
#ifdef TSHARE_HAVE_SHMEM_VMA_FLAGS
	return shmem_file_setup(name, size, (vma_flags_t){});
#else
	return shmem_file_setup(name, size, 0);
#endif
}

/* The number of references to a namespace of any kind. */
static inline unsigned int tshare_ns_refs(const struct ns_common *ns)
{
#ifdef TSHARE_HAVE_NS_REF_READ
	return __ns_ref_read(ns);
#else
	return refcount_read(&ns->count);
#endif
}

#ifdef CONFIG_CGROUP_DMEM
/* Registers @name with the dmem controller, for @size bytes; or an ERR_PTR. */
static inline struct dmem_cgroup_region *tshare_dmem_register(const char *name, u64 size)
{
#ifdef TSHARE_HAVE_DMEM_INIT
	return dmem_cgroup_register_region(&(struct dmem_cgroup_init){ .size = size }, "%s", name);
#else
	return dmem_cgroup_register_region(size, "%s", name);
#endif
}
#endif

/*
 * Chunks: the core maps 2 MiB at a time only for a folio of exactly that order, so a run
 * consists of such folios. Up to 6.1 the core's public helpers can make them of single pages,
 * from 6.12 on alloc_contig_range() makes them. Kernels in between can do neither: runs are
 * single pages.
 *
 * With pages of 16 or 64 KiB, on arm64, the core maps 32 or 512 MiB at a time. Few regions
 * would have such a chunk, a pinned page would keep all of it from being freed, and the core
 * maps a smaller folio page by page. So runs are single pages there, too.
 */
#if !defined(CONFIG_TRANSPARENT_HUGEPAGE) || defined(TSHARE_SINGLE_PAGES)
#define TSHARE_CHUNK_ORDER 0
#elif PMD_SHIFT != 21
#define TSHARE_CHUNK_ORDER 0
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0) && LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#define TSHARE_CHUNK_ORDER 0
#else
#define TSHARE_CHUNK_ORDER HPAGE_PMD_ORDER
#endif

#define TSHARE_CHUNK_PAGES (1UL << TSHARE_CHUNK_ORDER)

/* A block, of which pools consist and where runs may begin: a chunk, or 2 MiB of single pages. */
#define TSHARE_BLOCK_PAGES PHYS_PFN(SZ_2M)

#define TSHARE_CONTIG_GFP (GFP_USER | __GFP_NOWARN)

#ifdef CONFIG_CONTIG_ALLOC

/* Memory outside of CMA areas. As a flag MIGRATE_MOVABLE would mean a CMA area's. */
#ifdef TSHARE_HAVE_ACR_FLAGS
#define TSHARE_CONTIG_ORDINARY ACR_FLAGS_NONE
#else
#define TSHARE_CONTIG_ORDINARY MIGRATE_MOVABLE
#endif

/*
 * Whether one call can take a whole run: as single pages, which stay single or are made into
 * chunks afterwards. Otherwise a call makes one folio of all that it takes, and a run needs a
 * call for each chunk.
 */
#define TSHARE_CONTIG_WHOLE (LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0) || !TSHARE_CHUNK_ORDER)

/* Takes [pfn, pfn + nr) as single pages, each with one reference. */
static inline int tshare_contig_take_pages(unsigned long pfn, unsigned long nr)
{
	return alloc_contig_range(pfn, pfn + nr, TSHARE_CONTIG_ORDINARY, TSHARE_CONTIG_GFP);
}

/* Takes the chunk at @pfn as one folio with one reference. */
static inline int tshare_contig_take_chunk(unsigned long pfn)
{
#if defined(TSHARE_HAVE_FROZEN_RANGE)
	int err = alloc_contig_frozen_range(pfn, pfn + TSHARE_CHUNK_PAGES, TSHARE_CONTIG_ORDINARY,
					    TSHARE_CONTIG_GFP | __GFP_COMP);

	if (!err)
		set_page_count(pfn_to_page(pfn), 1);
	return err;
#else
	return alloc_contig_range(pfn, pfn + TSHARE_CHUNK_PAGES, TSHARE_CONTIG_ORDINARY,
				  TSHARE_CONTIG_GFP | __GFP_COMP);
#endif
}

/*
 * Makes the single pages of the chunk at @pfn one folio with one reference.
 * Fails with -EBUSY if one of them has another reference: a process that looked
 * a page up just before it was moved out of the way may still have one for a
 * moment.
 */
static inline int tshare_contig_make_chunk(unsigned long pfn)
{
#if TSHARE_CONTIG_WHOLE && TSHARE_CHUNK_ORDER
	struct page *head = pfn_to_page(pfn);
	unsigned long i;

	/*
	 * Each single page has a reference, in a folio only the head has one. The future tails
	 * lose theirs first, so that no process takes another one meanwhile.
	 */
	for (i = 1; i < TSHARE_CHUNK_PAGES; i++) {
		if (page_ref_freeze(head + i, 1))
			continue;
		while (--i)
			page_ref_unfreeze(head + i, 1);
		return -EBUSY;
	}
	__SetPageHead(head);
	for (i = 1; i < TSHARE_CHUNK_PAGES; i++) {
		head[i].mapping = TAIL_MAPPING;
		set_compound_head(head + i, head);
		set_page_private(head + i, 0);
	}
	set_compound_page_dtor(head, COMPOUND_PAGE_DTOR);
	set_compound_order(head, TSHARE_CHUNK_ORDER);
	atomic_set(compound_mapcount_ptr(head), -1);
	atomic_set(compound_pincount_ptr(head), 0);
#endif
	return 0;
}

/* Page table entries that map parts of @folio; before 6.10 the core's count isn't exported. */
static inline int tshare_folio_mapcount(struct folio *folio)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
	return folio_mapcount(folio);
#else
	int whole, count;
	long i;

	if (!folio_test_large(folio))
		return atomic_read(&folio->_mapcount) + 1;
	whole = folio_entire_mapcount(folio);
	count = whole;
	for (i = 0; i < folio_nr_pages(folio); i++)
		count += atomic_read(&folio_page(folio, i)->_mapcount) + 1;
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
	/* Entries for the whole folio are counted in each of its pages too. */
	if (!folio_test_anon(folio))
		count -= whole * folio_nr_pages(folio);
	else if (PageDoubleMap(&folio->page))
		count -= folio_nr_pages(folio);
#endif
	return count;
#endif
}

/* Newer headers have it under another name. */
#ifndef MIGRATETYPE_MASK
#define MIGRATETYPE_MASK PAGEBLOCK_MIGRATETYPE_MASK
#endif

/*
 * Whether the page block at @pfn belongs to a CMA area. A hint: the core's own
 * function isn't exported, but the array that it reads is.
 */
static inline bool tshare_block_is_cma(unsigned long pfn)
{
#if defined(CONFIG_CMA) && defined(CONFIG_SPARSEMEM)
	unsigned long block = (pfn & (PAGES_PER_SECTION - 1)) >> pageblock_order;
	unsigned long bit = block * NR_PAGEBLOCK_BITS;
	unsigned long word = section_to_usemap(__pfn_to_section(pfn))[bit / BITS_PER_LONG];

	return ((word >> (bit % BITS_PER_LONG)) & MIGRATETYPE_MASK) == MIGRATE_CMA;
#else
	return false;
#endif
}

#endif /* CONFIG_CONTIG_ALLOC */

#endif /* TSHARE_COMPAT_H */
