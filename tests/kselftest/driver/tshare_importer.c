// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device that imports regions, for the tests: QEMU's "edu", a PCI device with
 * a DMA engine and a buffer of 4 KiB. It never syncs on its own, so that what
 * DMA_BUF_IOCTL_SYNC does can be seen.
 */
#include <linux/delay.h>
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/iommu.h>
#include <linux/iopoll.h>
#include <linux/iosys-map.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#include "importer.h"

/* From 6.2 on the plain functions want the dma_resv locked. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define dma_buf_map_attachment_unlocked dma_buf_map_attachment
#define dma_buf_unmap_attachment_unlocked dma_buf_unmap_attachment
#define dma_buf_vmap_unlocked dma_buf_vmap
#define dma_buf_vunmap_unlocked dma_buf_vunmap
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}
#endif

static bool noncoherent;
module_param(noncoherent, bool, 0444);
MODULE_PARM_DESC(noncoherent, "the device doesn't see the processors' caches (arm64)");

/* Registers, and where the device's buffer is in its own address space. */
#define EDU_DMA_SOURCE 0x80
#define EDU_DMA_TARGET 0x88
#define EDU_DMA_COUNT 0x90
#define EDU_DMA_COMMAND 0x98
#define EDU_DMA_START 1
#define EDU_DMA_TO_MEMORY 2
#define EDU_BUFFER 0x40000

/* The one device, under its lock. */
static struct {
	struct mutex lock; /* protects the device, and its limits on addresses and segments */
	struct pci_dev *pdev;
	void __iomem *regs;
	void *staging;
	dma_addr_t staging_addr;
} edu = { .lock = __MUTEX_INITIALIZER(edu.lock) };

/* The import of one open file, under its lock. */
struct import {
	struct mutex lock; /* protects all below */
	struct dma_buf *dmabuf;
	struct dma_buf_attachment *attach;
	struct sg_table *sgt;
	enum dma_data_direction dir;
	dma_addr_t last;
	unsigned long area;
};

static const vm_flags_t area_flags[] = {
	[IMPORTER_AREA_PLAIN] = 0,
	[IMPORTER_AREA_IO] = VM_IO,
	[IMPORTER_AREA_PFNMAP] = VM_PFNMAP,
	[IMPORTER_AREA_MIXEDMAP] = VM_MIXEDMAP,
};

static int edu_dma(u64 source, u64 target, u32 size, u32 command)
{
	u32 busy;

	writeq(source, edu.regs + EDU_DMA_SOURCE);
	writeq(target, edu.regs + EDU_DMA_TARGET);
	writeq(size, edu.regs + EDU_DMA_COUNT);
	writeq(command | EDU_DMA_START, edu.regs + EDU_DMA_COMMAND);
	return readl_poll_timeout(edu.regs + EDU_DMA_COMMAND, busy, !(busy & EDU_DMA_START), 1000,
				  60 * USEC_PER_SEC);
}

/* Copies between the staging memory and @addr, by the device's buffer. */
static int edu_transfer(dma_addr_t addr, u32 size, bool write)
{
	int err;

	err = edu_dma(write ? edu.staging_addr : addr, EDU_BUFFER, size, 0);
	if (err)
		return err;
	return edu_dma(EDU_BUFFER, write ? addr : edu.staging_addr, size, EDU_DMA_TO_MEMORY);
}

static void detach(struct import *import)
{
	if (!import->dmabuf)
		return;
	if (import->sgt)
		dma_buf_unmap_attachment_unlocked(import->attach, import->sgt, import->dir);
	if (import->attach)
		dma_buf_detach(import->dmabuf, import->attach);
	dma_buf_put(import->dmabuf);
	import->dmabuf = NULL;
	import->attach = NULL;
	import->sgt = NULL;
}

/*
 * The mask stays when the buffer is mapped: from 6.10 on dma_set_mask() makes the kernel
 * forget that a buffer has been bounced and needs to be synced.
 */
static int set_mask(struct device *dev, u64 mask)
{
	return dma_get_mask(dev) == mask ? 0 : dma_set_mask(dev, mask);
}

static int attach(struct import *import, struct importer_attach *args)
{
	struct device *dev = &edu.pdev->dev;
	struct dma_buf *dmabuf = dma_buf_get(args->fd);
	unsigned long boundary;
	unsigned int segment_max;
	int err = 0;

	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	import->dmabuf = dmabuf;
	import->dir = args->direction;
	import->attach = dma_buf_attach(dmabuf, dev);
	if (IS_ERR(import->attach)) {
		err = PTR_ERR(import->attach);
		import->attach = NULL;
		goto out;
	}
	mutex_lock(&edu.lock);
	boundary = dma_get_seg_boundary(dev);
	segment_max = dma_get_max_seg_size(dev);
	err = set_mask(dev, DMA_BIT_MASK(args->address_bits ?: 64));
	if (!err) {
		dma_set_max_seg_size(dev, args->segment_max);
		dma_set_seg_boundary(dev, args->boundary);
		import->sgt = dma_buf_map_attachment_unlocked(import->attach, import->dir);
		dma_set_seg_boundary(dev, boundary);
		dma_set_max_seg_size(dev, segment_max);
	}
	mutex_unlock(&edu.lock);
	if (err)
		goto out;
	if (IS_ERR(import->sgt)) {
		err = PTR_ERR(import->sgt);
		import->sgt = NULL;
		goto out;
	}
	args->entries = import->sgt->orig_nents;
	args->dma_entries = import->sgt->nents;
out:
	if (err)
		detach(import);
	return err;
}

static long ioctl_attach(struct import *import, void __user *arg)
{
	struct importer_attach args;
	int err;

	if (copy_from_user(&args, arg, sizeof(args)))
		return -EFAULT;
	if (import->dmabuf)
		return -EBUSY;
	if (args.direction > DMA_FROM_DEVICE || args.address_bits > 64)
		return -EINVAL;
	err = attach(import, &args);
	if (err)
		return err;
	return copy_to_user(arg, &args, sizeof(args)) ? -EFAULT : 0;
}

static long ioctl_entry(struct import *import, void __user *arg)
{
	struct importer_entry args;
	struct scatterlist *sg;
	int i;

	if (copy_from_user(&args, arg, sizeof(args)))
		return -EFAULT;
	if (!import->sgt || args.index >= import->sgt->orig_nents)
		return -EINVAL;
	for_each_sgtable_sg(import->sgt, sg, i) {
		if (i != args.index)
			continue;
		args.length = sg->length;
		args.dma_address = i < import->sgt->nents ? sg_dma_address(sg) : 0;
		args.dma_length = i < import->sgt->nents ? sg_dma_len(sg) : 0;
	}
	return copy_to_user(arg, &args, sizeof(args)) ? -EFAULT : 0;
}

/* Bus address of [offset, offset + size); 0 if that isn't in one segment. */
static dma_addr_t find_address(const struct import *import, u64 offset, u32 size)
{
	struct scatterlist *sg;
	int i;

	for_each_sgtable_dma_sg(import->sgt, sg, i) {
		if (offset < sg_dma_len(sg))
			return size <= sg_dma_len(sg) - offset ? sg_dma_address(sg) + offset : 0;
		offset -= sg_dma_len(sg);
	}
	return 0;
}

static long transfer(dma_addr_t addr, const struct importer_transfer *args)
{
	long err = 0;

	mutex_lock(&edu.lock);
	if (args->write && copy_from_user(edu.staging, u64_to_user_ptr(args->data), args->size))
		err = -EFAULT;
	if (!err)
		err = edu_transfer(addr, args->size, args->write);
	if (!err && !args->write &&
	    copy_to_user(u64_to_user_ptr(args->data), edu.staging, args->size))
		err = -EFAULT;
	mutex_unlock(&edu.lock);
	return err;
}

static long ioctl_transfer(struct import *import, void __user *arg)
{
	struct importer_transfer args;
	dma_addr_t addr;

	if (copy_from_user(&args, arg, sizeof(args)))
		return -EFAULT;
	if (!import->sgt || !args.size || args.size > IMPORTER_TRANSFER_MAX)
		return -EINVAL;
	addr = find_address(import, args.offset, args.size);
	if (!addr)
		return -ERANGE;
	import->last = addr;
	return transfer(addr, &args);
}

static bool iommu_is_strict(void)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(&edu.pdev->dev);

	return domain && domain->type == IOMMU_DOMAIN_DMA;
}

static long ioctl_late(struct import *import, void __user *arg)
{
	struct importer_transfer args;

	if (copy_from_user(&args, arg, sizeof(args)))
		return -EFAULT;
	if (!import->last || !args.size || args.size > IMPORTER_TRANSFER_MAX)
		return -EINVAL;
	if (!iommu_is_strict())
		return -EOPNOTSUPP;
	return transfer(import->last, &args);
}

static long ioctl_vmap(struct import *import, void __user *arg)
{
	struct importer_vmap args;
	struct iosys_map map;
	int err;

	if (copy_from_user(&args, arg, sizeof(args)))
		return -EFAULT;
	if (!import->dmabuf || args.offset > import->dmabuf->size - sizeof(args.word))
		return -EINVAL;
	err = dma_buf_vmap_unlocked(import->dmabuf, &map);
	if (err)
		return err;
	iosys_map_memcpy_from(&args.word, &map, args.offset, sizeof(args.word));
	dma_buf_vunmap_unlocked(import->dmabuf, &map);
	return copy_to_user(arg, &args, sizeof(args)) ? -EFAULT : 0;
}

static long importer_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct import *import = file->private_data;
	void __user *uptr = (void __user *)arg;
	long ret = 0;

	mutex_lock(&import->lock);
	switch (cmd) {
	case IMPORTER_IOCTL_ATTACH:
		ret = ioctl_attach(import, uptr);
		break;
	case IMPORTER_IOCTL_ENTRY:
		ret = ioctl_entry(import, uptr);
		break;
	case IMPORTER_IOCTL_TRANSFER:
		ret = ioctl_transfer(import, uptr);
		break;
	case IMPORTER_IOCTL_LATE:
		ret = ioctl_late(import, uptr);
		break;
	case IMPORTER_IOCTL_VMAP:
		ret = ioctl_vmap(import, uptr);
		break;
	case IMPORTER_IOCTL_DETACH:
		detach(import);
		break;
	case IMPORTER_IOCTL_AREA:
		if (arg < ARRAY_SIZE(area_flags))
			import->area = arg;
		else
			ret = -EINVAL;
		break;
	default:
		ret = -ENOTTY;
	}
	mutex_unlock(&import->lock);
	return ret;
}

/* Without the lock: other paths take mmap_lock, which the caller holds, under it. */
static int importer_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct import *import = file->private_data;

	if (!import->dmabuf)
		return -ENODEV;
	vm_flags_set(vma, area_flags[import->area]);
	return dma_buf_mmap(import->dmabuf, vma, vma->vm_pgoff);
}

static int importer_open(struct inode *inode, struct file *file)
{
	struct import *import = kzalloc(sizeof(*import), GFP_KERNEL);

	if (!import)
		return -ENOMEM;
	mutex_init(&import->lock);
	file->private_data = import;
	return nonseekable_open(inode, file);
}

static int importer_release(struct inode *inode, struct file *file)
{
	struct import *import = file->private_data;

	detach(import);
	mutex_destroy(&import->lock);
	kfree(import);
	return 0;
}

static const struct file_operations importer_fops = {
	.owner = THIS_MODULE,
	.open = importer_open,
	.release = importer_release,
	.unlocked_ioctl = importer_ioctl,
	.mmap = importer_mmap,
};

static struct miscdevice importer_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "tshare-importer",
	.fops = &importer_fops,
	.mode = 0600,
};

/*
 * Has the kernel do for the device what it does for one that its device tree doesn't call
 * dma-coherent. Before anything is mapped or allocated for it.
 */
static int forget_coherence(struct device *dev)
{
#ifdef CONFIG_ARCH_HAS_SYNC_DMA_FOR_DEVICE
	dev->dma_coherent = false;
	return 0;
#else
	return -EOPNOTSUPP;
#endif
}

static int importer_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	int err;

	if (edu.pdev)
		return -EBUSY;
	if (noncoherent) {
		err = forget_coherence(&pdev->dev);
		if (err)
			return err;
	}
	err = pcim_enable_device(pdev);
	if (err)
		return err;
	err = pcim_iomap_regions(pdev, BIT(0), KBUILD_MODNAME);
	if (err)
		return err;
	edu.regs = pcim_iomap_table(pdev)[0];
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (err)
		return err;
	pci_set_master(pdev);
	edu.staging = dmam_alloc_coherent(&pdev->dev, PAGE_SIZE, &edu.staging_addr, GFP_KERNEL);
	if (!edu.staging)
		return -ENOMEM;
	edu.pdev = pdev;
	err = misc_register(&importer_device);
	if (err)
		edu.pdev = NULL;
	return err;
}

static void importer_remove(struct pci_dev *pdev)
{
	misc_deregister(&importer_device);
	edu.pdev = NULL;
}

static const struct pci_device_id importer_ids[] = {
	{ PCI_DEVICE(0x1234, 0x11e8) },
	{}
};
MODULE_DEVICE_TABLE(pci, importer_ids);

static struct pci_driver importer_driver = {
	.name = KBUILD_MODNAME,
	.id_table = importer_ids,
	.probe = importer_probe,
	.remove = importer_remove,
};
module_pci_driver(importer_driver);

MODULE_DESCRIPTION("Imports the regions of tshare, for its tests");
MODULE_AUTHOR("The tshare developers");
MODULE_LICENSE("GPL");
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
MODULE_IMPORT_NS(DMA_BUF);
#else
MODULE_IMPORT_NS("DMA_BUF");
#endif
