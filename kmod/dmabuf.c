// SPDX-License-Identifier: GPL-2.0-only
/*
 * The dma-bufs over a region, or over a range of its pages.
 *
 * Each opener gets a dma-buf of its own, whose file has the opener's access as its mode. The
 * core refuses writable mappings of a read-only dma-buf, mprotect() included. This file
 * refuses them through an importer's file, and refuses devices that would write and the
 * kernel's own mappings, which have no mode. Dma-bufs over the same pages share their range's
 * dma_resv.
 */
#include <linux/dma-buf.h>
#include <linux/dma-direction.h>
#include <linux/dma-resv.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/personality.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <uapi/linux/dma-buf.h>

#include "compat.h"
#include "dmabuf.h"
#include "maps.h"
#include "names.h"
#include "range.h"
#include "region.h"
#include "trace.h"

atomic_long_t tshare_export_count;

/**
 * struct tshare_dmabuf - the private data of one dma-buf
 * @region: the region, a reference
 * @range: the pages of it, a reference
 * @writable: whether the opener may write
 * @access: CPU accesses through it
 */
struct tshare_dmabuf {
	struct tshare_region *region;
	struct tshare_range *range;
	bool writable;
	struct tshare_access access;
};

static unsigned long export_pfn(const struct tshare_dmabuf *export)
{
	return export->region->pfn + export->range->first;
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
	mutex_lock(&export->region->maps.lock);
	list_add_tail(&attachment->node, &export->region->maps.attachments);
	mutex_unlock(&export->region->maps.lock);
	return 0;
}

static void tshare_dmabuf_detach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	struct tshare_dmabuf *export = dmabuf->priv;
	struct tshare_attachment *attachment = attach->priv;

	mutex_lock(&export->region->maps.lock);
	list_del(&attachment->node);
	mutex_unlock(&export->region->maps.lock);
	kfree(attachment);
}

static struct sg_table *tshare_dmabuf_map(struct dma_buf_attachment *attach,
					  enum dma_data_direction dir)
{
	struct tshare_dmabuf *export = attach->dmabuf->priv;

	if (!export->writable && dir != DMA_TO_DEVICE)
		return ERR_PTR(-EACCES);
	return tshare_map_create(&export->region->maps, export->range, export_pfn(export),
				 attach->dev, dir);
}

static void tshare_dmabuf_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
				enum dma_data_direction dir)
{
	struct tshare_dmabuf *export = attach->dmabuf->priv;

	tshare_map_destroy(&export->region->maps, sgt);
}

static int tshare_dmabuf_begin_cpu_access(struct dma_buf *dmabuf, enum dma_data_direction dir)
{
	struct tshare_dmabuf *export = dmabuf->priv;
	bool writes = dir != DMA_FROM_DEVICE;
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
	tshare_access_begin(&export->region->maps, &export->access, writes && export->writable);
	return 0;
}

static int tshare_dmabuf_end_cpu_access(struct dma_buf *dmabuf, enum dma_data_direction dir)
{
	struct tshare_dmabuf *export = dmabuf->priv;

	tshare_access_end(&export->region->maps, &export->access, dir != DMA_FROM_DEVICE);
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
	tshare_access_end_all(&export->region->maps, &export->access);
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
	export->access.range = range;
	export->writable = writable;

	info.ops = writable ? &tshare_dmabuf_ops : &tshare_dmabuf_readonly_ops;
	info.size = tshare_range_bytes(range);
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

	return tshare_dmabuf_region(dmabuf) ? tshare_range_start(export->range) : 0;
}
