// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device's commands.
 *
 * tshare_fops_ioctl() copies a command's struct in and out and checks its size; the commands
 * see a struct of the kernel's own. A command's results take effect once its struct has been
 * copied out: see struct ioctl_call.
 */
#include <linux/build_bug.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/dma-buf.h>
#include <linux/err.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "account.h"
#include "compat.h"
#include "counter.h"
#include "desc.h"
#include "descs.h"
#include "device.h"
#include "dmabuf.h"
#include "foreign.h"
#include "lookup.h"
#include "names.h"
#include "region.h"
#include "trace.h"
#include "watch.h"

/* Sizes of the structures' first versions, the least accepted. */
#define QUERY_SIZE_V1	   72
#define CREATE_SIZE_V1	   184
#define OPEN_SIZE_V1	   192
#define UNLINK_SIZE_V1	   144
#define INFO_SIZE_V1	   216
#define LIST_SIZE_V1	   32
#define COUNTER_SIZE_V1	   24
#define FINISH_SIZE_V1	   16
#define EXPORT_SIZE_V1	   32
#define WATCH_SIZE_V1	   136
#define LIST_ENTRY_SIZE_V1 168

static_assert(sizeof(struct tshare_query) == QUERY_SIZE_V1);
static_assert(sizeof(struct tshare_create) == CREATE_SIZE_V1);
static_assert(sizeof(struct tshare_open) == OPEN_SIZE_V1);
static_assert(sizeof(struct tshare_unlink) == UNLINK_SIZE_V1);
static_assert(sizeof(struct tshare_info) == INFO_SIZE_V1);
static_assert(sizeof(struct tshare_list) == LIST_SIZE_V1);
static_assert(sizeof(struct tshare_counter) == COUNTER_SIZE_V1);
static_assert(sizeof(struct tshare_finish) == FINISH_SIZE_V1);
static_assert(sizeof(struct tshare_export) == EXPORT_SIZE_V1);
static_assert(sizeof(struct tshare_watch) == WATCH_SIZE_V1);
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

/* Room for the struct of any command. */
union ioctl_arg {
	struct tshare_query query;
	struct tshare_create create;
	struct tshare_open open;
	struct tshare_unlink unlink;
	struct tshare_info info;
	struct tshare_list list;
	struct tshare_counter counter;
	struct tshare_finish finish;
	struct tshare_export export;
	struct tshare_watch watch;
};

/**
 * struct ioctl_call - one call of a command
 * @tf: the open device
 * @arg: the command's struct, copied in, and copied out if the command succeeds
 * @file: a file that the command returns, or NULL
 * @fd: the descriptor reserved for @file
 * @created: a region that the command makes, a reference; or NULL
 * @replace: whether @created may take its name from another region
 *
 * A command that fails, or whose struct can't be copied out, leaves nothing behind:
 * ioctl_call_end() then releases @file, @fd and @created. So a command just returns an error
 * after it has set these. @created is registered last, since a name that it takes from another
 * region can't be given back.
 */
struct ioctl_call {
	struct tshare_file *tf;
	void *arg;
	struct file *file;
	int fd;
	struct tshare_region *created;
	bool replace;
};

static void ioctl_call_end(struct ioctl_call *call, int err)
{
	if (call->created)
		tshare_region_put(call->created);
	if (!call->file)
		return;
	if (err) {
		put_unused_fd(call->fd);
		fput(call->file);
	} else {
		fd_install(call->fd, call->file);
	}
}

/* Makes @file the command's result; releases it on failure. */
static int ioctl_return_file(struct ioctl_call *call, struct file *file, bool cloexec)
{
	int fd = get_unused_fd_flags(cloexec ? O_CLOEXEC : 0);

	if (fd < 0) {
		fput(file);
		return fd;
	}
	call->file = file;
	call->fd = fd;
	return 0;
}

/* Makes a dma-buf of @region the command's result: a new one, or the foreign one. */
static int ioctl_return_region(struct ioctl_call *call, struct tshare_region *region, bool writable,
			       bool cloexec)
{
	struct dma_buf *dmabuf;

	if (region->foreign)
		dmabuf = tshare_foreign_open(region, writable);
	else
		dmabuf = tshare_dmabuf_export(region, writable);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	return ioctl_return_file(call, dmabuf->file, cloexec);
}

/*
 * The region behind a dma-buf of ours, whose id may be given, too. Several regions may consist of
 * another driver's dma-buf, so that needs an id.
 */
static struct tshare_region *ioctl_find_region(struct ioctl_call *call,
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
static int ioctl_get_region(struct ioctl_call *call, int fd, u64 id, struct dma_buf **dmabuf,
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

/* User memory */

static int user_copy_out(void __user *to, size_t usize, const void *from, size_t ksize)
{
	size_t known = min(usize, ksize);

	if (copy_to_user(to, from, known) || clear_user(to + known, usize - known))
		return -EFAULT;
	return 0;
}

/* Checks the size of one element of an array in user memory. */
static int user_check_element_size(u32 size, u32 min)
{
	if (size < min)
		return -EINVAL;
	return size > PAGE_SIZE ? -E2BIG : 0;
}

/* Commands */

static int ioctl_query(struct ioctl_call *call)
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

static int ioctl_create(struct ioctl_call *call)
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

static int ioctl_open(struct ioctl_call *call)
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

static int ioctl_unlink(struct ioctl_call *call)
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

static int ioctl_info(struct ioctl_call *call)
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

static int ioctl_list(struct ioctl_call *call)
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
		err = user_copy_out(to + (size_t)stored * req->entry_size, req->entry_size, &entry,
				    sizeof(entry));
		if (err)
			return err;
		stored++;
	}
	req->count = stored;
	return 0;
}

static struct file *ioctl_counter_open(struct ioctl_call *call, int fd, u64 *id)
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

static int ioctl_counter(struct ioctl_call *call)
{
	struct tshare_counter *req = call->arg;
	struct file *file;
	int err;

	if (req->flags & ~TSHARE_COUNTER_NO_CLOEXEC || req->reserved)
		return -EINVAL;

	file = ioctl_counter_open(call, req->fd, &req->id);
	if (IS_ERR(file))
		return PTR_ERR(file);
	err = ioctl_return_file(call, file, !(req->flags & TSHARE_COUNTER_NO_CLOEXEC));
	if (err)
		return err;
	req->counter_fd = call->fd;
	return 0;
}

static int ioctl_finish(struct ioctl_call *call)
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

static int ioctl_export(struct ioctl_call *call)
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
	err = ioctl_return_file(call, part->file, !(req->flags & TSHARE_EXPORT_NO_CLOEXEC));
	if (err)
		return err;
	req->export_fd = call->fd;
	return 0;
}

static int ioctl_watch(struct ioctl_call *call)
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
	err = ioctl_return_file(call, file, !(req->flags & TSHARE_WATCH_NO_CLOEXEC));
	if (err)
		return err;
	req->fd = call->fd;
	return 0;
}

/**
 * struct ioctl_command - a command
 * @handle: carries it out; see struct ioctl_call. Returns -ERESTARTNOHAND if a signal
 *          interrupted it, with the state to resume from in the struct
 * @size: bytes of its struct
 * @size_v1: bytes of its struct's first version
 * @copies_out: whether its struct has members that are "out"
 */
struct ioctl_command {
	int (*handle)(struct ioctl_call *call);
	size_t size;
	size_t size_v1;
	bool copies_out;
};

#define COMMAND(handler, type, first_size, out)                                     \
	{                                                                           \
		.handle = (handler), .size = sizeof(type), .size_v1 = (first_size), \
		.copies_out = (out)                                                 \
	}

static const struct ioctl_command commands[] = {
	[_IOC_NR(TSHARE_IOCTL_QUERY)] =
		COMMAND(ioctl_query, struct tshare_query, QUERY_SIZE_V1, true),
	[_IOC_NR(TSHARE_IOCTL_CREATE)] =
		COMMAND(ioctl_create, struct tshare_create, CREATE_SIZE_V1, true),
	[_IOC_NR(TSHARE_IOCTL_OPEN)] = COMMAND(ioctl_open, struct tshare_open, OPEN_SIZE_V1, true),
	[_IOC_NR(TSHARE_IOCTL_UNLINK)] =
		COMMAND(ioctl_unlink, struct tshare_unlink, UNLINK_SIZE_V1, false),
	[_IOC_NR(TSHARE_IOCTL_INFO)] = COMMAND(ioctl_info, struct tshare_info, INFO_SIZE_V1, true),
	[_IOC_NR(TSHARE_IOCTL_LIST)] = COMMAND(ioctl_list, struct tshare_list, LIST_SIZE_V1, true),
	[_IOC_NR(TSHARE_IOCTL_COUNTER)] =
		COMMAND(ioctl_counter, struct tshare_counter, COUNTER_SIZE_V1, true),
	[_IOC_NR(TSHARE_IOCTL_FINISH)] =
		COMMAND(ioctl_finish, struct tshare_finish, FINISH_SIZE_V1, false),
	[_IOC_NR(TSHARE_IOCTL_EXPORT)] =
		COMMAND(ioctl_export, struct tshare_export, EXPORT_SIZE_V1, true),
	[_IOC_NR(TSHARE_IOCTL_WATCH)] =
		COMMAND(ioctl_watch, struct tshare_watch, WATCH_SIZE_V1, true),
};

static void ioctl_trace(unsigned int cmd, const struct ioctl_call *call, int err)
{
	if (_IOC_NR(cmd) == _IOC_NR(TSHARE_IOCTL_CREATE))
		trace_tshare_create(call->arg, call->created, err);
	else if (_IOC_NR(cmd) == _IOC_NR(TSHARE_IOCTL_OPEN))
		/* The caller sees EINTR, unless the kernel restarts the call after the signal. */
		trace_tshare_open(call->arg, err == -ERESTARTNOHAND ? -EINTR : err);
}

/**
 * tshare_fops_ioctl() - carry out a command of the device
 * @file: the open device
 * @cmd: TSHARE_IOCTL_*, with any size from that of its struct's first version on
 * @uarg: the caller's struct
 *
 * Return: 0, or one of the errors in the ABI header.
 */
long tshare_fops_ioctl(struct file *file, unsigned int cmd, unsigned long uarg)
{
	void __user *to = (void __user *)uarg;
	size_t usize = _IOC_SIZE(cmd);
	unsigned int nr = _IOC_NR(cmd);
	const struct ioctl_command *command;
	union ioctl_arg arg;
	struct ioctl_call call = { .tf = file->private_data, .arg = &arg };
	int err;

	if (_IOC_TYPE(cmd) != TSHARE_IOCTL_MAGIC || _IOC_DIR(cmd) != (_IOC_READ | _IOC_WRITE) ||
	    nr >= ARRAY_SIZE(commands))
		return -ENOTTY;
	command = &commands[array_index_nospec(nr, ARRAY_SIZE(commands))];
	if (usize < command->size_v1)
		return -EINVAL;
	err = copy_struct_from_user(&arg, command->size, to, usize);
	if (err)
		return err;

	err = command->handle(&call);
	/* A restarted call waits for the same draft. */
	if (err == -ERESTARTNOHAND && user_copy_out(to, usize, &arg, command->size))
		err = -EFAULT;
	if (!err && command->copies_out)
		err = user_copy_out(to, usize, &arg, command->size);
	/* Last: a name that this takes from another region can't be given back. */
	if (!err && call.created)
		err = tshare_region_register(call.tf, call.created, call.replace);
	ioctl_trace(cmd, &call, err);
	ioctl_call_end(&call, err);
	return err;
}
