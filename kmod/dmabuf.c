// SPDX-License-Identifier: GPL-2.0-only
/*
 * The dma-bufs over a region, or over a range of its pages.
 *
 * Each opener gets a dma-buf of its own, whose file has the opener's access as its mode. The
 * core refuses writable mappings of a read-only dma-buf, mprotect() included. This file
 * refuses them through an importer's file, and refuses devices that would write and the
 * kernel's own mappings, which have no mode. A region's dma-bufs share its list of device
 * mappings, since a CPU access through one concerns the devices behind the others. Dma-bufs
 * over the same pages also share their range's dma_resv.
 *
 * A device may have a copy of the pages, in a bounce buffer or behind caches that it doesn't
 * snoop. Copying one over the other loses what was stored in the other, so the module copies
 * only as brackets allow: see Documentation/design/memory.rst, "CPU access".
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/personality.h>
#include <linux/rbtree.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <uapi/linux/dma-buf.h>

#include "compat.h"
#include "dmabuf.h"
#include "names.h"
#include "range.h"
#include "region.h"
#include "trace.h"

/* The most whole chunks that the 32-bit length of a scatterlist entry can express. */
#define SEGMENT_MAX 0xFFE00000U

atomic_long_t tshare_export_count;

/**
 * struct tshare_dmabuf - the private data of one dma-buf
 * @region: the region, a reference
 * @range: the pages of it, a reference
 * @writable: whether the opener may write
 * @brackets: open brackets: CPU accesses for writing that have begun and not ended; under the
 *            region's maps_lock
 * @writer_node: in the region's writers while @brackets isn't 0, likewise
 */
struct tshare_dmabuf {
	struct tshare_region *region;
	struct tshare_range *range;
	bool writable;
	unsigned long brackets;
	struct rb_node writer_node;
};

/**
 * struct tshare_map - a range of the region as mapped for a device
 * @start: bytes of the region before it
 * @sgt: its addresses; the importer unmaps it by this pointer
 * @dev: the device
 * @dir: the direction of transfers
 * @node: in the region's maps, under its maps_lock
 */
struct tshare_map {
	u64 start;
	struct sg_table sgt;
	struct device *dev;
	enum dma_data_direction dir;
	struct list_head node;
};

static unsigned long export_pfn(const struct tshare_dmabuf *export)
{
	return export->region->pfn + export->range->first;
}

/* In bytes of the region. */
static u64 range_start(const struct tshare_range *range)
{
	return (u64)range->first << PAGE_SHIFT;
}

static u64 range_bytes(const struct tshare_range *range)
{
	return (u64)range->nr_pages << PAGE_SHIFT;
}

static u64 range_end(const struct tshare_range *range)
{
	return range_start(range) + range_bytes(range);
}

/*
 * The length of the scatterlist entry for @dev at @offset of the dma-buf: at most @limit and
 * the device's segment size. The entry crosses no segment boundary, by physical addresses and
 * by offsets: an IOMMU maps the dma-buf to an address that is aligned for all of it.
 */
static u32 export_segment_length(struct device *dev, const struct tshare_dmabuf *export, u64 offset,
				 size_t limit)
{
	u64 max = max_t(u64, PAGE_SIZE, min_t(u64, dma_get_max_seg_size(dev), limit) & PAGE_MASK);
	u64 mask = dma_get_seg_boundary(dev) | ~PAGE_MASK;
	u64 phys = PFN_PHYS(export_pfn(export)) + offset;
	/* Less one, because a mask of all ones (no boundary) would overflow. */
	u64 last = min(range_bytes(export->range) - offset, max) - 1;

	return min3(last, mask - (phys & mask), mask - (offset & mask)) + 1;
}

static int export_fill_sgt(struct sg_table *sgt, struct device *dev,
			   const struct tshare_dmabuf *export, size_t limit)
{
	u64 size = range_bytes(export->range), offset;
	unsigned int nents = 0;
	struct scatterlist *sg;
	int err, i;

	for (offset = 0; offset < size; offset += export_segment_length(dev, export, offset, limit))
		nents++;
	err = sg_alloc_table(sgt, nents, GFP_KERNEL);
	if (err)
		return err;
	offset = 0;
	for_each_sgtable_sg(sgt, sg, i) {
		u32 len = export_segment_length(dev, export, offset, limit);

		sg_set_page(sg, pfn_to_page(export_pfn(export) + PFN_DOWN(offset)), len, 0);
		offset += len;
	}
	return 0;
}

/* Keeps a list besides the core's, whose lock an importer may hold for long. */
static int tshare_dmabuf_attach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	struct tshare_dmabuf *export = dmabuf->priv;
	struct tshare_attachment *attachment;

	attachment = kzalloc(sizeof(*attachment), GFP_KERNEL);
	if (!attachment)
		return -ENOMEM;
	attachment->dev = attach->dev;
	attach->priv = attachment;
	mutex_lock(&export->region->maps_lock);
	list_add_tail(&attachment->node, &export->region->attachments);
	mutex_unlock(&export->region->maps_lock);
	return 0;
}

static void tshare_dmabuf_detach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	struct tshare_dmabuf *export = dmabuf->priv;
	struct tshare_attachment *attachment = attach->priv;

	mutex_lock(&export->region->maps_lock);
	list_del(&attachment->node);
	mutex_unlock(&export->region->maps_lock);
	kfree(attachment);
}

static int map_segments(struct tshare_map *map, const struct tshare_dmabuf *export, size_t limit,
			unsigned long attrs)
{
	int err = export_fill_sgt(&map->sgt, map->dev, export, limit);

	if (err)
		return err;
	err = dma_map_sgtable(map->dev, &map->sgt, map->dir, attrs);
	if (err)
		sg_free_table(&map->sgt);
	return err;
}

typedef void (*sync_fn)(struct device *dev, dma_addr_t addr, size_t size,
			enum dma_data_direction dir);

/*
 * Syncs the part of the region's bytes [begin, end) that @map covers, by DMA addresses: the
 * table belongs to the importer until it is unmapped, and CONFIG_DMABUF_DEBUG garbles the
 * pages in it. The direction is the mapping's, as the DMA API demands: nothing is copied to a
 * device that only writes, or from one that only reads.
 */
static void map_sync(struct tshare_map *map, u64 begin, u64 end, sync_fn sync)
{
	u64 start = map->start;
	struct scatterlist *sg;
	int i;

	for_each_sgtable_dma_sg(&map->sgt, sg, i) {
		u64 next = start + sg_dma_len(sg);
		u64 from = max(start, begin), to = min(next, end);

		if (from < to)
			sync(map->dev, sg_dma_address(sg) + (from - start), to - from, map->dir);
		start = next;
	}
}

static struct sg_table *tshare_dmabuf_map(struct dma_buf_attachment *attach,
					  enum dma_data_direction dir)
{
	struct tshare_dmabuf *export = attach->dmabuf->priv;
	struct tshare_region *region = export->region;
	size_t limit = dma_max_mapping_size(attach->dev);
	struct tshare_map *map;
	unsigned long ended;
	int err;

	if (!export->writable && dir != DMA_TO_DEVICE)
		return ERR_PTR(-EACCES);
	map = kzalloc(sizeof(*map), GFP_KERNEL);
	if (!map)
		return ERR_PTR(-ENOMEM);
	map->start = range_start(export->range);
	map->dev = attach->dev;
	map->dir = dir;
	mutex_lock(&region->maps_lock);
	ended = region->ended_brackets;
	mutex_unlock(&region->maps_lock);
	/*
	 * Bounced memory must be mapped in pieces of at most @limit. But @limit is the
	 * device's, and this range may not be bounced. Large segments come first, since some
	 * importers take only one segment.
	 */
	err = map_segments(map, export, SEGMENT_MAX,
			   limit < range_bytes(export->range) ? DMA_ATTR_NO_WARN : 0);
	if (err == -EIO && limit < range_bytes(export->range))
		err = map_segments(map, export, limit, 0);
	if (err)
		goto err_free;

	mutex_lock(&region->maps_lock);
	list_add(&map->node, &region->maps);
	/* A bracket that has ended meanwhile did not sync its stores to this map. */
	if (region->ended_brackets != ended)
		map_sync(map, range_start(export->range), range_end(export->range),
			 dma_sync_single_for_device);
	mutex_unlock(&region->maps_lock);
	return &map->sgt;

err_free:
	kfree(map);
	return ERR_PTR(err);
}

/*
 * Syncs a range for the CPU, except pages on which a bracket for writing is open: stores to
 * them would be lost. The caller holds maps_lock.
 */
static void map_sync_for_cpu(struct tshare_map *map, const struct tshare_region *region,
			     const struct tshare_range *range)
{
	u64 from = range_start(range), end = range_end(range);
	struct rb_node *node;

	for (node = rb_first(&region->writers); node && from < end; node = rb_next(node)) {
		range = rb_entry(node, struct tshare_dmabuf, writer_node)->range;
		if (from < range_start(range))
			map_sync(map, from, min(end, range_start(range)), dma_sync_single_for_cpu);
		from = max(from, range_end(range));
		/* A process may have as many dma-bufs with open brackets as descriptors. */
		cond_resched();
	}
	map_sync(map, from, end, dma_sync_single_for_cpu);
}

/* Whether a bracket for writing is open on some page of a range. The caller holds maps_lock. */
static bool range_is_written(const struct tshare_region *region, const struct tshare_range *range)
{
	const struct tshare_range *written;
	struct rb_node *node;

	for (node = rb_first(&region->writers); node; node = rb_next(node)) {
		written = rb_entry(node, struct tshare_dmabuf, writer_node)->range;
		if (range_start(written) >= range_end(range))
			break;
		if (range_end(written) > range_start(range))
			return true;
		cond_resched();
	}
	return false;
}

/*
 * Without an open bracket dma_unmap_sgtable() makes the copy. With a sync before it
 * CONFIG_DMA_API_DEBUG complains about memory that a device has mapped twice.
 */
static void tshare_dmabuf_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
				enum dma_data_direction dir)
{
	struct tshare_dmabuf *export = attach->dmabuf->priv;
	struct tshare_map *map = container_of(sgt, struct tshare_map, sgt);
	unsigned long attrs = 0;

	mutex_lock(&export->region->maps_lock);
	list_del(&map->node);
	if (range_is_written(export->region, export->range)) {
		map_sync_for_cpu(map, export->region, export->range);
		attrs = DMA_ATTR_SKIP_CPU_SYNC;
	}
	dma_unmap_sgtable(map->dev, sgt, map->dir, attrs);
	mutex_unlock(&export->region->maps_lock);
	sg_free_table(sgt);
	kfree(map);
}

static bool writer_is_before(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct tshare_dmabuf, writer_node)->range->first <
	       rb_entry(b, struct tshare_dmabuf, writer_node)->range->first;
}

/*
 * Syncs the dma-buf's pages from devices that have mapped them through any dma-buf. A bracket
 * for writing alone needs that, too: it may store a part of the bytes, and its end copies all
 * of them to the devices.
 */
static int tshare_dmabuf_begin_cpu_access(struct dma_buf *dmabuf, enum dma_data_direction dir)
{
	struct tshare_dmabuf *export = dmabuf->priv;
	struct tshare_region *region = export->region;
	bool writes = dir != DMA_FROM_DEVICE;
	struct tshare_map *map;
	long err;

	/*
	 * The core waits, too, but after this call has made the copies. A signal there would
	 * restart the ioctl, which would open a second bracket, and nobody would end the
	 * first.
	 */
	err = dma_resv_wait_timeout(dmabuf->resv, dma_resv_usage_rw(writes), true,
				    MAX_SCHEDULE_TIMEOUT);
	if (err < 0)
		return err;
	mutex_lock(&region->maps_lock);
	list_for_each_entry(map, &region->maps, node)
		map_sync_for_cpu(map, region, export->range);
	if (writes && export->writable && !export->brackets++)
		rb_add(&export->writer_node, &region->writers, writer_is_before);
	mutex_unlock(&region->maps_lock);
	return 0;
}

/* Ends @nr brackets for writing, and syncs the stores to devices. */
static void export_end_brackets(struct tshare_dmabuf *export, unsigned long nr)
{
	const struct tshare_range *range = export->range;
	struct tshare_map *map;

	list_for_each_entry(map, &export->region->maps, node)
		map_sync(map, range_start(range), range_end(range), dma_sync_single_for_device);
	export->region->ended_brackets += nr;
	export->brackets -= nr;
	if (!export->brackets)
		rb_erase(&export->writer_node, &export->region->writers);
}

static int tshare_dmabuf_end_cpu_access(struct dma_buf *dmabuf, enum dma_data_direction dir)
{
	struct tshare_dmabuf *export = dmabuf->priv;

	mutex_lock(&export->region->maps_lock);
	if (dir != DMA_FROM_DEVICE && export->brackets)
		export_end_brackets(export, 1);
	mutex_unlock(&export->region->maps_lock);
	return 0;
}

/*
 * A plain mapping, without VM_MIXEDMAP or VM_PFNMAP: core mm then maps a whole chunk where it
 * fits and counts it, and get_user_pages() works.
 */
static vm_fault_t tshare_vm_fault(struct vm_fault *vmf)
{
	struct tshare_dmabuf *export = vmf->vma->vm_private_data;
	const struct tshare_range *range = export->range;

	if (vmf->pgoff < range->first || vmf->pgoff - range->first >= range->nr_pages)
		return VM_FAULT_SIGBUS;
	vmf->page = pfn_to_page(export->region->pfn + vmf->pgoff);
	get_page(vmf->page);
	return 0;
}

/* Called for mmap(), and by the core for each VMA that it makes of another. */
static void tshare_vm_open(struct vm_area_struct *vma)
{
	struct tshare_dmabuf *export = vma->vm_private_data;

	atomic_inc(&export->region->mappings);
	trace_tshare_map(export->region, vma);
}

static void tshare_vm_close(struct vm_area_struct *vma)
{
	struct tshare_dmabuf *export = vma->vm_private_data;

	atomic_dec(&export->region->mappings);
	trace_tshare_unmap(export->region, vma);
}

/* The core doesn't merge VMAs that have close(), nor those with VM_DONTEXPAND, as these are. */
static const struct vm_operations_struct tshare_vm_ops = {
	.open = tshare_vm_open,
	.close = tshare_vm_close,
	.fault = tshare_vm_fault,
};

static int tshare_dmabuf_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct tshare_dmabuf *export = dmabuf->priv;

	/* A private copy would not be shared. Read-only mappings lack VM_SHARED. */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	/* An importer that set these before it forwarded mmap() maps device memory. */
	if (vma->vm_flags & (VM_IO | VM_PFNMAP | VM_MIXEDMAP))
		return -EINVAL;
	/* READ_IMPLIES_EXEC adds VM_EXEC to all mappings: the caller did not ask for it. */
	if (vma->vm_flags & VM_EXEC && !(current->personality & READ_IMPLIES_EXEC))
		return -EPERM;
	vm_flags_clear(vma, VM_EXEC | VM_MAYEXEC);
	/* Of an importer's file, such as a GEM object, the core checked that file's mode alone. */
	if (!export->writable) {
		if (vma->vm_flags & VM_WRITE)
			return -EACCES;
		vm_flags_clear(vma, VM_MAYWRITE);
	}
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	/*
	 * The VMA counts pages from the region's first one, as the folios do. Core mm maps a
	 * folio whole where address and vm_pgoff are congruent; if each range counted from its
	 * own start, it would take one folio for another.
	 */
	vma->vm_pgoff += export->range->first;
	vma->vm_ops = &tshare_vm_ops;
	/* The mapping holds the dma-buf's file, which holds @export. */
	vma->vm_private_data = export;
	tshare_vm_open(vma);
	return 0;
}

static int tshare_dmabuf_vmap(struct dma_buf *dmabuf, struct iosys_map *map)
{
	iosys_map_set_vaddr(map, page_address(pfn_to_page(export_pfn(dmabuf->priv))));
	return 0;
}

static void tshare_dmabuf_release(struct dma_buf *dmabuf)
{
	struct tshare_dmabuf *export = dmabuf->priv;

	/* A killed process leaves its brackets open. */
	mutex_lock(&export->region->maps_lock);
	if (export->brackets)
		export_end_brackets(export, export->brackets);
	mutex_unlock(&export->region->maps_lock);
	tshare_range_put(&export->region->ranges, export->range);
	tshare_region_unuse(export->region);
	kfree(export);
	atomic_long_dec(&tshare_export_count);
}

#define COMMON_OPS                                                                  \
	.attach = tshare_dmabuf_attach, .detach = tshare_dmabuf_detach,             \
	.map_dma_buf = tshare_dmabuf_map, .unmap_dma_buf = tshare_dmabuf_unmap,     \
	.begin_cpu_access = tshare_dmabuf_begin_cpu_access,                         \
	.end_cpu_access = tshare_dmabuf_end_cpu_access, .mmap = tshare_dmabuf_mmap, \
	.release = tshare_dmabuf_release

static const struct dma_buf_ops tshare_dmabuf_ops = {
	COMMON_OPS,
	.vmap = tshare_dmabuf_vmap,
};

/*
 * No vmap(): drivers that copy with the CPU give no direction with it, and would oops when
 * they write to a read-only mapping.
 */
static const struct dma_buf_ops tshare_dmabuf_readonly_ops = {
	COMMON_OPS,
};

/* The name of the region's dma-bufs: as much of the region's as they have room for. */
static char *region_copy_name(const struct tshare_region *region)
{
	char *name = kstrndup(region->name, DMA_BUF_NAME_LEN - 1, GFP_KERNEL_ACCOUNT);

	if (name)
		tshare_name_mask(name);
	return name;
}

static struct dma_buf *range_export(struct tshare_region *region, struct tshare_range *range,
				    bool writable)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct tshare_dmabuf *export;
	struct dma_buf *dmabuf;
	char *name = NULL;

	export = kzalloc(sizeof(*export), GFP_KERNEL_ACCOUNT);
	if (region->name[0])
		name = region_copy_name(region);
	if (!export || (region->name[0] && !name)) {
		dmabuf = ERR_PTR(-ENOMEM);
		goto err_free;
	}
	export->region = region;
	export->range = range;
	export->writable = writable;

	info.ops = writable ? &tshare_dmabuf_ops : &tshare_dmabuf_readonly_ops;
	info.size = range_bytes(range);
	info.flags = writable ? O_RDWR : O_RDONLY;
	info.resv = &range->resv;
	info.priv = export;
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf))
		goto err_free;
	/* As DMA_BUF_SET_NAME does it. The core frees the name. */
	spin_lock(&dmabuf->name_lock);
	dmabuf->name = name;
	spin_unlock(&dmabuf->name_lock);
	/* The dma-buf's release() undoes these, and frees @export. */
	tshare_region_use(region);
	atomic_long_inc(&tshare_export_count);
	return dmabuf;

err_free:
	kfree(name);
	kfree(export);
	return dmabuf;
}

static struct dma_buf *pages_export(struct tshare_region *region, unsigned long first,
				    unsigned long nr_pages, bool writable)
{
	struct tshare_range *range = tshare_range_get(&region->ranges, first, nr_pages);
	struct dma_buf *dmabuf;

	if (IS_ERR(range))
		return ERR_CAST(range);
	dmabuf = range_export(region, range, writable);
	if (IS_ERR(dmabuf))
		tshare_range_put(&region->ranges, range);
	return dmabuf;
}

/**
 * tshare_dmabuf_export() - make a dma-buf over a region
 * @region: the region; the dma-buf takes a reference of its own
 * @writable: whether it is for writing too
 *
 * Return: the dma-buf, or an ERR_PTR.
 */
struct dma_buf *tshare_dmabuf_export(struct tshare_region *region, bool writable)
{
	return pages_export(region, 0, region->nr_pages, writable);
}

/**
 * tshare_dmabuf_export_part() - make a dma-buf over a part of another one
 * @dmabuf: any dma-buf
 * @offset: bytes of it before the part
 * @size: bytes of the part; 0 for all from @offset on
 * @writable: whether it is for writing too
 *
 * Return: the dma-buf, or ERR_PTR(-EINVAL) if @dmabuf is not one of ours or the
 * part not made of whole pages, (-ERANGE) if it is not inside @dmabuf, (-EACCES)
 * for writing to a read-only one, (-ENOMEM).
 */
struct dma_buf *tshare_dmabuf_export_part(struct dma_buf *dmabuf, u64 offset, u64 size,
					  bool writable)
{
	struct tshare_region *region = tshare_dmabuf_region(dmabuf);
	struct tshare_dmabuf *export = dmabuf->priv;

	if (!region || !PAGE_ALIGNED(offset) || !PAGE_ALIGNED(size))
		return ERR_PTR(-EINVAL);
	if (offset >= dmabuf->size || size > dmabuf->size - offset)
		return ERR_PTR(-ERANGE);
	if (writable && !export->writable)
		return ERR_PTR(-EACCES);
	return pages_export(region, export->range->first + PFN_DOWN(offset),
			    PFN_DOWN(size ?: dmabuf->size - offset), writable);
}

/**
 * tshare_dmabuf_region() - the region behind a dma-buf
 * @dmabuf: any dma-buf
 *
 * Return: the region, for as long as the dma-buf is held; NULL if it is not
 * one of ours.
 */
struct tshare_region *tshare_dmabuf_region(const struct dma_buf *dmabuf)
{
	const struct tshare_dmabuf *export = dmabuf->priv;

	if (dmabuf->ops != &tshare_dmabuf_ops && dmabuf->ops != &tshare_dmabuf_readonly_ops)
		return NULL;
	return export->region;
}

/**
 * tshare_dmabuf_offset() - where in its region does this dma-buf begin?
 * @dmabuf: any dma-buf
 *
 * Return: bytes of the region before it.
 */
u64 tshare_dmabuf_offset(const struct dma_buf *dmabuf)
{
	const struct tshare_dmabuf *export = dmabuf->priv;

	return tshare_dmabuf_region(dmabuf) ? range_start(export->range) : 0;
}
