// SPDX-License-Identifier: GPL-2.0-only
/* Commands on the device: they take a name, an id or neither, and make or find a region. */
#include <linux/build_bug.h>
#include <linux/capability.h>
#include <linux/dma-buf.h>
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/nodemask.h>
#include <linux/nospec.h>

#include "account.h"
#include "compat.h"
#include "desc.h"
#include "descs.h"
#include "dmabuf.h"
#include "foreign.h"
#include "ioctl.h"
#include "lookup.h"
#include "names.h"
#include "region.h"
#include "watch.h"

/* The size of an entry's first version, the least accepted. */
#define LIST_ENTRY_SIZE_V1 168
static_assert(sizeof(struct tshare_list_entry) == LIST_ENTRY_SIZE_V1);

/* The flags of CREATE, and those that need a name. */
#define CREATE_FLAGS                                                                              \
	(TSHARE_CREATE_PERSIST | TSHARE_CREATE_DMA32 | TSHARE_CREATE_NO_CLOEXEC |                 \
	 TSHARE_CREATE_USERS | TSHARE_CREATE_DRAFT | TSHARE_CREATE_REPLACE | TSHARE_CREATE_NODE | \
	 TSHARE_CREATE_DMABUF)
#define CREATE_NAMED_FLAGS                                                   \
	(TSHARE_CREATE_PERSIST | TSHARE_CREATE_USERS | TSHARE_CREATE_DRAFT | \
	 TSHARE_CREATE_REPLACE | TSHARE_CREATE_DMABUF)
#define CREATE_LIFETIME_FLAGS (TSHARE_CREATE_PERSIST | TSHARE_CREATE_USERS)
/* Requirements on memory that CREATE allocates. */
#define CREATE_MEMORY_FLAGS (TSHARE_CREATE_DMA32 | TSHARE_CREATE_NODE)

/* Makes a dma-buf of @region the command's result: a new one, or the foreign one. */
static int ioctl_return_region(struct tshare_call *call, struct tshare_region *region,
			       bool writable, bool cloexec)
{
	struct dma_buf *dmabuf;

	if (region->foreign)
		dmabuf = tshare_foreign_open(region, writable);
	else
		dmabuf = tshare_dmabuf_export(region, writable);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	return tshare_call_return_file(call, dmabuf->file, cloexec);
}

int tshare_ioctl_query(struct tshare_call *call)
{
	struct tshare_query *query = call->arg;
	unsigned long used;
	u64 left;

	if (query->flags)
		return -EINVAL;

	/* First: this ends the charges of pages that are no longer pinned. */
	left = tshare_pages_query(call->tf->ns, &used);
	*query = (struct tshare_query){
		.version = TSHARE_ABI_VERSION,
		.features = TSHARE_CHUNK_ORDER ? TSHARE_FEATURE_HUGE_MAP : 0,
		.page_size = PAGE_SIZE,
		.huge_page_size = PAGE_SIZE << TSHARE_CHUNK_ORDER,
		.name_len = TSHARE_NAME_LEN,
		.ndim_max = TSHARE_NDIM_MAX,
		.desc_max = TSHARE_DESC_MAX,
		.tensor_name_max = TSHARE_TENSOR_NAME_MAX,
		.descs_size_max = TSHARE_DESCS_SIZE_MAX,
		.bytes_limit = (u64)tshare_pages_limit() << PAGE_SHIFT,
		.bytes_used = (u64)used << PAGE_SHIFT,
		.region_bytes_max = left << PAGE_SHIFT,
	};
	return 0;
}

static int ioctl_create_check_node(struct tshare_create *req)
{
	if (!(req->flags & TSHARE_CREATE_NODE))
		return req->node ? -EINVAL : 0;
	if (req->node < 0 || req->node >= MAX_NUMNODES)
		return -EINVAL;
	req->node = array_index_nospec(req->node, MAX_NUMNODES);
	return node_online(req->node) ? 0 : -EINVAL;
}

static int ioctl_create_check(struct tshare_create *req)
{
	int err = tshare_name_check(req->name, NULL);

	if (err)
		return err;
	if (req->flags & ~CREATE_FLAGS)
		return -EINVAL;
	if ((req->flags & CREATE_NAMED_FLAGS) && !req->name[0])
		return -EINVAL;
	if ((req->flags & CREATE_LIFETIME_FLAGS) == CREATE_LIFETIME_FLAGS)
		return -EINVAL;
	if (req->reserved || req->mode & ~0666)
		return -EINVAL;
	if (req->desc_count > TSHARE_DESC_MAX || req->descs_size > TSHARE_DESCS_SIZE_MAX)
		return -E2BIG;
	err = ioctl_create_check_node(req);
	if (err)
		return err;
	if (req->flags & TSHARE_CREATE_DMABUF && req->flags & CREATE_MEMORY_FLAGS)
		return -EINVAL;
	/* The kernel doesn't report a foreign dma-buf's last user. */
	if (req->flags & TSHARE_CREATE_DMABUF)
		return req->flags & TSHARE_CREATE_USERS ? -EOPNOTSUPP : 0;
	if (!req->size)
		return -EINVAL;
	if (req->size > (u64)totalram_pages() << PAGE_SHIFT)
		return -ENOMEM;
	req->size = PAGE_ALIGN(req->size);
	return 0;
}

/*
 * The dma-buf of another driver that a region is to consist of. @size: in: bytes that it must have
 * at least; out: bytes that it has.
 */
static struct dma_buf *ioctl_get_foreign(int fd, u64 *size)
{
	struct dma_buf *dmabuf = dma_buf_get(fd);
	int err = 0;

	if (IS_ERR(dmabuf))
		return dmabuf;
	if (tshare_dmabuf_region(dmabuf) || !dmabuf->size)
		err = -EINVAL;
	else if (*size > dmabuf->size)
		err = -ERANGE;
	if (err) {
		dma_buf_put(dmabuf);
		return ERR_PTR(err);
	}
	*size = dmabuf->size;
	return dmabuf;
}

int tshare_ioctl_create(struct tshare_call *call)
{
	struct tshare_create *req = call->arg;
	struct dma_buf *foreign = NULL;
	struct tshare_region *region;
	int err;

	err = ioctl_create_check(req);
	if (err)
		return err;
	call->replace = req->flags & TSHARE_CREATE_REPLACE;
	if (req->name[0]) {
		err = tshare_name_check_free(call->tf->ns, req->name, call->replace);
		if (err)
			return err;
	}
	if (req->flags & TSHARE_CREATE_DMABUF) {
		foreign = ioctl_get_foreign(req->fd, &req->size);
		if (IS_ERR(foreign))
			return PTR_ERR(foreign);
	}
	region = tshare_region_alloc(call->tf->ns, req, foreign);
	if (IS_ERR(region)) {
		if (foreign)
			dma_buf_put(foreign);
		return PTR_ERR(region);
	}
	call->created = region;
	err = ioctl_return_region(call, region, !foreign, !(req->flags & TSHARE_CREATE_NO_CLOEXEC));
	if (err)
		return err;
	req->fd = call->fd;
	req->id = region->id;
	return 0;
}

/* A name, or if that is empty an id. */
static int ioctl_check_name_or_id(const char *name, u64 id)
{
	int err = tshare_name_check(name, NULL);

	if (err)
		return err;
	return name[0] && id ? -EINVAL : 0;
}

int tshare_ioctl_open(struct tshare_call *call)
{
	struct tshare_open *req = call->arg;
	bool write = req->flags & TSHARE_OPEN_WRITE;
	struct tshare_region *region;
	int err;

	if (req->flags & ~(TSHARE_OPEN_WRITE | TSHARE_OPEN_NO_CLOEXEC))
		return -EINVAL;
	if (req->deadline_ns < 0 || (!req->name[0] && (req->deadline_ns || req->other_than)))
		return -EINVAL;
	if (req->draft && !req->deadline_ns)
		return -EINVAL;
	err = ioctl_check_name_or_id(req->name, req->id);
	if (err)
		return err;

	region = tshare_region_lookup(call->tf, req,
				      TSHARE_MAY_READ | (write ? TSHARE_MAY_WRITE : 0));
	if (IS_ERR(region))
		return PTR_ERR(region);
	err = ioctl_return_region(call, region, write, !(req->flags & TSHARE_OPEN_NO_CLOEXEC));
	if (err)
		goto out;
	err = tshare_descs_copy_out(&region->descs, req->descs, req->descs_size);
	if (err)
		goto out;

	req->fd = call->fd;
	req->id = region->id;
	req->size = tshare_region_bytes(region);
	req->descs_size = region->descs.size;
	req->desc_count = region->descs.count;
out:
	tshare_region_unuse(region);
	return err;
}

int tshare_ioctl_unlink(struct tshare_call *call)
{
	struct tshare_unlink *req = call->arg;
	int err;

	if (req->flags || req->reserved)
		return -EINVAL;
	err = ioctl_check_name_or_id(req->name, req->id);
	if (err)
		return err;
	return tshare_name_unlink(call->tf, req->name, req->id);
}

/* Checks the size of one element of an array in user memory. */
static int user_check_element_size(u32 size, u32 min)
{
	if (size < min)
		return -EINVAL;
	return size > PAGE_SIZE ? -E2BIG : 0;
}

int tshare_ioctl_list(struct tshare_call *call)
{
	struct tshare_list *req = call->arg;
	bool all = req->flags & TSHARE_LIST_ALL;
	struct tshare_list_entry entry;
	void __user *to;
	u32 stored = 0;
	int err;

	if (req->flags & ~TSHARE_LIST_ALL || req->reserved || !req->count)
		return -EINVAL;
	err = user_check_element_size(req->entry_size, LIST_ENTRY_SIZE_V1);
	if (err)
		return err;
	if (all && !capable(CAP_SYS_ADMIN))
		return -EPERM;

	to = u64_to_user_ptr(req->entries);
	while (stored < req->count) {
		err = tshare_list_next(call->tf, all, &req->cursor, &entry);
		if (err < 0)
			return err;
		if (!err)
			break;
		err = tshare_user_copy_out(to + (size_t)stored * req->entry_size, req->entry_size,
					   &entry, sizeof(entry));
		if (err)
			return err;
		stored++;
	}
	req->count = stored;
	return 0;
}

int tshare_ioctl_watch(struct tshare_call *call)
{
	struct tshare_watch *req = call->arg;
	struct file *file;
	int err;

	if (req->flags & ~TSHARE_WATCH_NO_CLOEXEC)
		return -EINVAL;
	err = tshare_name_check(req->name, NULL);
	if (err)
		return err;
	if (!req->name[0])
		return -EINVAL;

	file = tshare_watch_open(call->tf->ns, req->name);
	if (IS_ERR(file))
		return PTR_ERR(file);
	err = tshare_call_return_file(call, file, !(req->flags & TSHARE_WATCH_NO_CLOEXEC));
	if (err)
		return err;
	req->fd = call->fd;
	return 0;
}
