// SPDX-License-Identifier: GPL-2.0-only
/* Commands on a dma-buf: they take its descriptor, and may need the region behind it. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/dma-buf.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/kref.h>
#include <linux/mm.h>

#include "counter.h"
#include "descs.h"
#include "dmabuf.h"
#include "foreign.h"
#include "ioctl.h"
#include "names.h"
#include "region.h"

/*
 * The region behind a dma-buf of ours, whose id may be given, too. Several regions may consist of
 * another driver's dma-buf, so that needs an id.
 */
static struct tshare_region *ioctl_find_region(struct tshare_call *call,
					       const struct dma_buf *dmabuf, u64 id)
{
	struct tshare_region *region = tshare_dmabuf_region(dmabuf);

	if (region) {
		if (id && id != region->id)
			return ERR_PTR(-ENOENT);
		kref_get(&region->ref);
		return region;
	}
	if (!id)
		return ERR_PTR(-EINVAL);
	region = tshare_region_find_visible(call->tf->ns, id);
	if (!region)
		return ERR_PTR(-ENOENT);
	if (region->foreign == dmabuf)
		return region;
	tshare_region_put(region);
	return ERR_PTR(-ENOENT);
}

/* The dma-buf @fd and the region behind it; a reference to each. */
static int ioctl_get_region(struct tshare_call *call, int fd, u64 id, struct dma_buf **dmabuf,
			    struct tshare_region **region)
{
	*dmabuf = dma_buf_get(fd);
	if (IS_ERR(*dmabuf))
		return PTR_ERR(*dmabuf);
	*region = ioctl_find_region(call, *dmabuf, id);
	if (!IS_ERR(*region))
		return 0;
	dma_buf_put(*dmabuf);
	return PTR_ERR(*region);
}

static void ioctl_put_region(struct dma_buf *dmabuf, struct tshare_region *region)
{
	tshare_region_put(region);
	dma_buf_put(dmabuf);
}

static void ioctl_info_fill(struct tshare_info *info, const struct dma_buf *dmabuf,
			    struct tshare_region *region)
{
	struct user_namespace *user_ns = current_user_ns();

	info->id = region->id;
	info->size = tshare_region_bytes(region);
	info->uid = from_kuid_munged(user_ns, region->uid);
	info->gid = from_kgid_munged(user_ns, region->gid);
	info->mode = region->mode;
	info->node = tshare_region_node(region);
	info->region_flags = tshare_region_get_state(region, info->name);
	if (tshare_dmabuf_writable(dmabuf))
		info->region_flags |= TSHARE_REGION_WRITABLE;
	info->phys_addr = 0;
	if (!region->foreign && ns_capable_noaudit(&init_user_ns, CAP_SYS_RAWIO)) {
		info->region_flags |= TSHARE_REGION_PHYS;
		info->phys_addr = PFN_PHYS(region->pfn);
	}
	info->offset = tshare_dmabuf_offset(dmabuf);
	info->length = dmabuf->size;
}

/*
 * The descriptors, if the buffer has room. A dma-buf of a range has none: they count
 * bytes from the region's start.
 */
static int ioctl_info_copy_descs(struct tshare_info *info, const struct dma_buf *dmabuf,
				 const struct tshare_region *region)
{
	u32 room = info->descs_size;

	info->descs_size = 0;
	info->desc_count = 0;
	if (dmabuf->size != tshare_region_bytes(region))
		return 0;
	info->descs_size = region->descs.size;
	info->desc_count = region->descs.count;
	return tshare_descs_copy_out(&region->descs, info->descs, room);
}

int tshare_ioctl_info(struct tshare_call *call)
{
	struct tshare_info *req = call->arg;
	struct tshare_region *region;
	struct dma_buf *dmabuf;
	int err;

	if (req->flags || req->reserved)
		return -EINVAL;

	err = ioctl_get_region(call, req->fd, req->id, &dmabuf, &region);
	if (err)
		return err;
	err = ioctl_info_copy_descs(req, dmabuf, region);
	if (!err)
		ioctl_info_fill(req, dmabuf, region);
	ioctl_put_region(dmabuf, region);
	return err;
}

static struct file *ioctl_counter_open(struct tshare_call *call, int fd, u64 *id)
{
	struct tshare_region *region;
	struct dma_buf *dmabuf;
	struct file *file;
	int err;

	err = ioctl_get_region(call, fd, *id, &dmabuf, &region);
	if (err)
		return ERR_PTR(err);
	file = tshare_counter_open(&region->counter, tshare_dmabuf_writable(dmabuf));
	*id = region->id;
	ioctl_put_region(dmabuf, region);
	return file;
}

int tshare_ioctl_counter(struct tshare_call *call)
{
	struct tshare_counter *req = call->arg;
	struct file *file;
	int err;

	if (req->flags & ~TSHARE_COUNTER_NO_CLOEXEC || req->reserved)
		return -EINVAL;

	file = ioctl_counter_open(call, req->fd, &req->id);
	if (IS_ERR(file))
		return PTR_ERR(file);
	err = tshare_call_return_file(call, file, !(req->flags & TSHARE_COUNTER_NO_CLOEXEC));
	if (err)
		return err;
	req->counter_fd = call->fd;
	return 0;
}

int tshare_ioctl_finish(struct tshare_call *call)
{
	struct tshare_finish *req = call->arg;
	struct tshare_region *region;
	struct dma_buf *dmabuf;
	int err;

	if (req->flags & ~TSHARE_FINISH_REPLACE)
		return -EINVAL;

	err = ioctl_get_region(call, req->fd, req->id, &dmabuf, &region);
	if (err)
		return err;
	err = tshare_region_finish(call->tf, region, req->flags & TSHARE_FINISH_REPLACE);
	ioctl_put_region(dmabuf, region);
	return err;
}

int tshare_ioctl_export(struct tshare_call *call)
{
	struct tshare_export *req = call->arg;
	struct dma_buf *dmabuf, *part = ERR_PTR(-EOPNOTSUPP);
	int err;

	if (req->flags & ~(TSHARE_EXPORT_WRITE | TSHARE_EXPORT_NO_CLOEXEC) || req->reserved)
		return -EINVAL;

	dmabuf = dma_buf_get(req->fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	if (tshare_dmabuf_region(dmabuf))
		part = tshare_dmabuf_export_part(dmabuf, req->offset, req->size,
						 req->flags & TSHARE_EXPORT_WRITE);
	dma_buf_put(dmabuf);
	if (IS_ERR(part))
		return PTR_ERR(part);
	req->size = part->size;
	err = tshare_call_return_file(call, part->file, !(req->flags & TSHARE_EXPORT_NO_CLOEXEC));
	if (err)
		return err;
	req->export_fd = call->fd;
	return 0;
}
