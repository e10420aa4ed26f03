// SPDX-License-Identifier: GPL-2.0-only
/*
 * Regions that consist of another driver's dma-buf: a name, a mode and tensors for memory that
 * the module doesn't own or touch.
 *
 * The kernel doesn't report when the last descriptor of a foreign dma-buf is closed.
 * So the region exists as long as its name, and holds the dma-buf until then.
 */
#include <linux/dma-buf.h>
#include <linux/err.h>
#include <linux/fs.h>

#include "foreign.h"
#include "region.h"

/**
 * tshare_foreign_open() - the dma-buf of a foreign region
 * @region: the region
 * @write: whether it must be writable
 *
 * Return: a reference, or ERR_PTR(-EACCES).
 */
struct dma_buf *tshare_foreign_open(const struct tshare_region *region, bool write)
{
	if (write && tshare_foreign_is_readonly(region))
		return ERR_PTR(-EACCES);
	get_dma_buf(region->foreign);
	return region->foreign;
}

/**
 * tshare_dmabuf_writable() - is this dma-buf for writing?
 * @dmabuf: any dma-buf, also one of ours
 *
 * A dma-buf has one file, and so one mode for all openers.
 */
bool tshare_dmabuf_writable(const struct dma_buf *dmabuf)
{
	return dmabuf->file->f_mode & FMODE_WRITE;
}

/**
 * tshare_foreign_is_writable() - whether every opener of a region can write it
 * @region: any region
 */
bool tshare_foreign_is_writable(const struct tshare_region *region)
{
	return region->foreign && tshare_dmabuf_writable(region->foreign);
}

/**
 * tshare_foreign_is_readonly() - whether no opener can write a region
 * @region: any region
 */
bool tshare_foreign_is_readonly(const struct tshare_region *region)
{
	return region->foreign && !tshare_dmabuf_writable(region->foreign);
}
