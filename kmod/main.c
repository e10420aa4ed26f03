// SPDX-License-Identifier: GPL-2.0-only
/* The device /dev/tshare: its commands, and what sysfs shows. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/dma-buf.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/uaccess.h>

#include "account.h"
#include "alloc.h"
#include "compat.h"
#include "counter.h"
#include "desc.h"
#include "dmabuf.h"
#include "names.h"
#include "ns.h"
#include "region.h"

/* Sizes of the structures' first versions, below which none is taken. */
#define QUERY_SIZE_V1	   64
#define CREATE_SIZE_V1	   184
#define OPEN_SIZE_V1	   176
#define UNLINK_SIZE_V1	   144
#define INFO_SIZE_V1	   208
#define LIST_SIZE_V1	   32
#define COUNTER_SIZE_V1	   16
#define DESC_SIZE_V1	   672
#define LIST_ENTRY_SIZE_V1 168

static int copy_out(void __user *to, size_t usize, const void *from, size_t ksize)
{
	size_t known = min(usize, ksize);

	if (copy_to_user(to, from, known) || clear_user(to + known, usize - known))
		return -EFAULT;
	return 0;
}

/* The size of one element of an array in user memory. */
static int check_element_size(u32 size, u32 min)
{
	if (size < min)
		return -EINVAL;
	return size > PAGE_SIZE ? -E2BIG : 0;
}

static struct tshare_desc *copy_descs_in(const struct tshare_create *req)
{
	void __user *from = u64_to_user_ptr(req->descs);
	struct tshare_desc *descs;
	int err;
	u32 i;

	if (!req->desc_count)
		return NULL;
	if (req->desc_count > TSHARE_DESC_MAX)
		return ERR_PTR(-E2BIG);
	err = check_element_size(req->desc_size, DESC_SIZE_V1);
	if (err)
		return ERR_PTR(err);

	descs = kvcalloc(req->desc_count, sizeof(*descs), GFP_KERNEL_ACCOUNT);
	if (!descs)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < req->desc_count && !err; i++) {
		err = copy_struct_from_user(&descs[i], sizeof(descs[i]),
					    from + (size_t)i * req->desc_size, req->desc_size);
		if (!err)
			err = tshare_desc_check(&descs[i], req->size, NULL);
		cond_resched();
	}
	if (err) {
		kvfree(descs);
		return ERR_PTR(err);
	}
	return descs;
}

static int copy_descs_out(const struct tshare_region *region, u64 to, u32 count, u32 size)
{
	void __user *uptr = u64_to_user_ptr(to);
	u32 i, nr = min(count, region->desc_count);
	int err = count ? check_element_size(size, DESC_SIZE_V1) : 0;

	for (i = 0; i < nr && !err; i++) {
		err = copy_out(uptr + (size_t)i * size, size, &region->descs[i],
			       sizeof(region->descs[i]));
		cond_resched();
	}
	return err;
}

static long ioctl_query(struct tshare_file *tf, void __user *arg, size_t usize)
{
	struct tshare_query query;
	int err;

	BUILD_BUG_ON(sizeof(query) != QUERY_SIZE_V1);
	err = copy_struct_from_user(&query, sizeof(query), arg, usize);
	if (err)
		return err;
	if (query.flags)
		return -EINVAL;

	query = (struct tshare_query){
		.version = TSHARE_ABI_VERSION,
		.features = TSHARE_CHUNK_ORDER ? TSHARE_FEATURE_HUGE_MAP : 0,
		.page_size = PAGE_SIZE,
		.huge_page_size = PAGE_SIZE << TSHARE_CHUNK_ORDER,
		.name_len = TSHARE_NAME_LEN,
		.ndim_max = TSHARE_NDIM_MAX,
		.desc_max = TSHARE_DESC_MAX,
		.bytes_limit = (u64)tshare_pages_limit() << PAGE_SHIFT,
		.bytes_used = (u64)tshare_pages_used() << PAGE_SHIFT,
		.region_bytes_max = (u64)tshare_pages_left(tf->ns) << PAGE_SHIFT,
	};
	return copy_out(arg, usize, &query, sizeof(query));
}

/*
 * A dma-buf of @region, and a descriptor that it is to be installed in. Until
 * then the descriptor is nobody's, and both go with discard_fd().
 */
static int prepare_fd(struct tshare_region *region, bool writable, bool cloexec,
		      struct dma_buf **dmabuf)
{
	int fd;

	*dmabuf = tshare_dmabuf_export(region, writable);
	if (IS_ERR(*dmabuf))
		return PTR_ERR(*dmabuf);
	fd = get_unused_fd_flags(cloexec ? O_CLOEXEC : 0);
	if (fd < 0)
		dma_buf_put(*dmabuf);
	return fd;
}

static void discard_fd(int fd, struct dma_buf *dmabuf)
{
	put_unused_fd(fd);
	dma_buf_put(dmabuf);
}

static int check_create(struct tshare_create *req)
{
	int err = tshare_name_check(req->name, NULL);

	if (err)
		return err;
	if (req->flags & ~(TSHARE_CREATE_PERSIST | TSHARE_CREATE_DMA32 | TSHARE_CREATE_NO_CLOEXEC))
		return -EINVAL;
	if ((req->flags & TSHARE_CREATE_PERSIST) && !req->name[0])
		return -EINVAL;
	if (!req->size || req->reserved || req->mode & ~0777)
		return -EINVAL;
	if (req->node != TSHARE_NODE_ANY) {
		if (req->node < 0 || req->node >= MAX_NUMNODES)
			return -EINVAL;
		req->node = array_index_nospec(req->node, MAX_NUMNODES);
		if (!node_online(req->node))
			return -EINVAL;
	}
	if (req->size > (u64)totalram_pages() << PAGE_SHIFT)
		return -ENOMEM;
	req->size = PAGE_ALIGN(req->size);
	return 0;
}

static long ioctl_create(struct tshare_file *tf, void __user *arg, size_t usize)
{
	struct tshare_region *region;
	struct tshare_desc *descs;
	struct tshare_create req;
	struct dma_buf *dmabuf;
	int fd, err;

	BUILD_BUG_ON(sizeof(req) != CREATE_SIZE_V1);
	BUILD_BUG_ON(sizeof(*descs) != DESC_SIZE_V1);
	err = copy_struct_from_user(&req, sizeof(req), arg, usize);
	if (err)
		return err;
	err = check_create(&req);
	if (err)
		return err;
	if (req.name[0] && tshare_name_taken(tf->ns, req.name))
		return -EEXIST;
	descs = copy_descs_in(&req);
	if (IS_ERR(descs))
		return PTR_ERR(descs);

	region = tshare_region_alloc(tf->ns, &req, descs);
	if (IS_ERR(region)) {
		kvfree(descs);
		return PTR_ERR(region);
	}
	fd = prepare_fd(region, true, !(req.flags & TSHARE_CREATE_NO_CLOEXEC), &dmabuf);
	if (fd < 0) {
		err = fd;
		goto err_put_region;
	}
	err = tshare_region_register(tf, region);
	if (err)
		goto err_discard_fd;

	req.fd = fd;
	req.id = region->id;
	err = copy_out(arg, usize, &req, sizeof(req));
	if (err)
		goto err_unname;
	fd_install(fd, dmabuf->file);
	tshare_region_put(region);
	return 0;

err_unname:
	tshare_region_unlink(region);
err_discard_fd:
	discard_fd(fd, dmabuf);
err_put_region:
	tshare_region_put(region);
	return err;
}

/* A name, or if there is none an id. */
static int check_name_or_id(const char *name, u64 id)
{
	int err = tshare_name_check(name, NULL);

	if (err)
		return err;
	return name[0] && id ? -EINVAL : 0;
}

static long ioctl_open(struct tshare_file *tf, void __user *arg, size_t usize)
{
	struct tshare_region *region;
	struct tshare_open req;
	struct dma_buf *dmabuf;
	bool write;
	int fd, err;

	BUILD_BUG_ON(sizeof(req) != OPEN_SIZE_V1);
	err = copy_struct_from_user(&req, sizeof(req), arg, usize);
	if (err)
		return err;
	if (req.flags & ~(TSHARE_OPEN_WRITE | TSHARE_OPEN_NO_CLOEXEC) || req.reserved)
		return -EINVAL;
	err = check_name_or_id(req.name, req.id);
	if (err)
		return err;

	write = req.flags & TSHARE_OPEN_WRITE;
	region = tshare_region_lookup(tf, req.name, req.id,
				      TSHARE_MAY_READ | (write ? TSHARE_MAY_WRITE : 0));
	if (IS_ERR(region))
		return PTR_ERR(region);
	fd = prepare_fd(region, write, !(req.flags & TSHARE_OPEN_NO_CLOEXEC), &dmabuf);
	if (fd < 0) {
		err = fd;
		goto err_put_region;
	}
	err = copy_descs_out(region, req.descs, req.desc_count, req.desc_size);
	if (err)
		goto err_discard_fd;

	req.fd = fd;
	req.id = region->id;
	req.size = tshare_region_bytes(region);
	req.desc_count = region->desc_count;
	err = copy_out(arg, usize, &req, sizeof(req));
	if (err)
		goto err_discard_fd;
	fd_install(fd, dmabuf->file);
	tshare_region_put(region);
	return 0;

err_discard_fd:
	discard_fd(fd, dmabuf);
err_put_region:
	tshare_region_put(region);
	return err;
}

static long ioctl_unlink(struct tshare_file *tf, void __user *arg, size_t usize)
{
	struct tshare_unlink req;
	int err;

	BUILD_BUG_ON(sizeof(req) != UNLINK_SIZE_V1);
	err = copy_struct_from_user(&req, sizeof(req), arg, usize);
	if (err)
		return err;
	if (req.flags || req.reserved)
		return -EINVAL;
	err = check_name_or_id(req.name, req.id);
	if (err)
		return err;
	return tshare_name_unlink(tf, req.name, req.id);
}

static void fill_info(struct tshare_info *info, struct tshare_region *region, bool writable)
{
	struct user_namespace *user_ns = current_user_ns();

	info->id = region->id;
	info->size = tshare_region_bytes(region);
	info->uid = from_kuid_munged(user_ns, region->uid);
	info->gid = from_kgid_munged(user_ns, region->gid);
	info->mode = region->mode;
	info->node = pfn_to_nid(region->pfn);
	info->region_flags = region->flags | (writable ? TSHARE_REGION_WRITABLE : 0);
	/* A region is one run of pages: no rung gives anything else. */
	info->segments = 1;
	info->phys_addr = 0;
	if (ns_capable_noaudit(&init_user_ns, CAP_SYS_RAWIO)) {
		info->region_flags |= TSHARE_REGION_PHYS;
		info->phys_addr = PFN_PHYS(region->pfn);
	}
	info->desc_count = region->desc_count;
	tshare_region_get_name(region, info->name);
}

static long ioctl_info(struct tshare_file *tf, void __user *arg, size_t usize)
{
	struct tshare_region *region;
	struct tshare_info req;
	struct dma_buf *dmabuf;
	int err;

	BUILD_BUG_ON(sizeof(req) != INFO_SIZE_V1);
	err = copy_struct_from_user(&req, sizeof(req), arg, usize);
	if (err)
		return err;
	if (req.flags || req.reserved)
		return -EINVAL;

	dmabuf = dma_buf_get(req.fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	region = tshare_dmabuf_region(dmabuf);
	err = region ? copy_descs_out(region, req.descs, req.desc_count, req.desc_size) : -EINVAL;
	if (!err) {
		fill_info(&req, region, tshare_dmabuf_writable(dmabuf));
		err = copy_out(arg, usize, &req, sizeof(req));
	}
	dma_buf_put(dmabuf);
	return err;
}

static long ioctl_list(struct tshare_file *tf, void __user *arg, size_t usize)
{
	struct tshare_list_entry entry;
	struct tshare_list req;
	void __user *to;
	u32 stored = 0;
	int err;

	BUILD_BUG_ON(sizeof(req) != LIST_SIZE_V1);
	BUILD_BUG_ON(sizeof(entry) != LIST_ENTRY_SIZE_V1);
	err = copy_struct_from_user(&req, sizeof(req), arg, usize);
	if (err)
		return err;
	if (req.flags & ~TSHARE_LIST_ALL || req.reserved || !req.count)
		return -EINVAL;
	err = check_element_size(req.entry_size, LIST_ENTRY_SIZE_V1);
	if (err)
		return err;
	if ((req.flags & TSHARE_LIST_ALL) && !capable(CAP_SYS_ADMIN))
		return -EPERM;

	to = u64_to_user_ptr(req.entries);
	while (stored < req.count) {
		err = tshare_list_next(tf, req.flags & TSHARE_LIST_ALL, &req.cursor, &entry);
		if (err < 0)
			return err;
		if (!err)
			break;
		err = copy_out(to + (size_t)stored * req.entry_size, req.entry_size, &entry,
			       sizeof(entry));
		if (err)
			return err;
		stored++;
	}
	req.count = stored;
	return copy_out(arg, usize, &req, sizeof(req));
}

static struct file *open_counter(int fd)
{
	struct tshare_region *region;
	struct dma_buf *dmabuf;
	struct file *file;

	dmabuf = dma_buf_get(fd);
	if (IS_ERR(dmabuf))
		return ERR_CAST(dmabuf);
	region = tshare_dmabuf_region(dmabuf);
	file = region ? tshare_counter_open(region, tshare_dmabuf_writable(dmabuf)) :
			ERR_PTR(-EINVAL);
	dma_buf_put(dmabuf);
	return file;
}

static long ioctl_counter(struct tshare_file *tf, void __user *arg, size_t usize)
{
	struct tshare_counter req;
	struct file *file;
	int fd, err;

	BUILD_BUG_ON(sizeof(req) != COUNTER_SIZE_V1);
	err = copy_struct_from_user(&req, sizeof(req), arg, usize);
	if (err)
		return err;
	if (req.flags & ~TSHARE_COUNTER_NO_CLOEXEC || req.reserved)
		return -EINVAL;

	file = open_counter(req.fd);
	if (IS_ERR(file))
		return PTR_ERR(file);
	fd = get_unused_fd_flags(req.flags & TSHARE_COUNTER_NO_CLOEXEC ? 0 : O_CLOEXEC);
	if (fd < 0) {
		err = fd;
		goto err_put_file;
	}
	req.counter_fd = fd;
	err = copy_out(arg, usize, &req, sizeof(req));
	if (err)
		goto err_put_fd;
	fd_install(fd, file);
	return 0;

err_put_fd:
	put_unused_fd(fd);
err_put_file:
	fput(file);
	return err;
}

static const struct {
	long (*handle)(struct tshare_file *tf, void __user *arg, size_t usize);
	size_t size_v1;
} commands[] = {
	[_IOC_NR(TSHARE_IOCTL_QUERY)] = { ioctl_query, QUERY_SIZE_V1 },
	[_IOC_NR(TSHARE_IOCTL_CREATE)] = { ioctl_create, CREATE_SIZE_V1 },
	[_IOC_NR(TSHARE_IOCTL_OPEN)] = { ioctl_open, OPEN_SIZE_V1 },
	[_IOC_NR(TSHARE_IOCTL_UNLINK)] = { ioctl_unlink, UNLINK_SIZE_V1 },
	[_IOC_NR(TSHARE_IOCTL_INFO)] = { ioctl_info, INFO_SIZE_V1 },
	[_IOC_NR(TSHARE_IOCTL_LIST)] = { ioctl_list, LIST_SIZE_V1 },
	[_IOC_NR(TSHARE_IOCTL_COUNTER)] = { ioctl_counter, COUNTER_SIZE_V1 },
};

static long tshare_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	unsigned int nr = _IOC_NR(cmd);

	if (_IOC_TYPE(cmd) != TSHARE_IOCTL_MAGIC || _IOC_DIR(cmd) != (_IOC_READ | _IOC_WRITE) ||
	    nr >= ARRAY_SIZE(commands))
		return -ENOTTY;
	nr = array_index_nospec(nr, ARRAY_SIZE(commands));
	if (_IOC_SIZE(cmd) < commands[nr].size_v1)
		return -EINVAL;
	return commands[nr].handle(file->private_data, (void __user *)arg, _IOC_SIZE(cmd));
}

static int tshare_open(struct inode *inode, struct file *file)
{
	struct tshare_file *tf;

	tf = kzalloc(sizeof(*tf), GFP_KERNEL_ACCOUNT);
	if (!tf)
		return -ENOMEM;
	tf->ns = tshare_ns_open();
	if (IS_ERR(tf->ns)) {
		int err = PTR_ERR(tf->ns);

		kfree(tf);
		return err;
	}
	INIT_LIST_HEAD(&tf->names);
	file->private_data = tf;
	return nonseekable_open(inode, file);
}

static int tshare_close(struct inode *inode, struct file *file)
{
	struct tshare_file *tf = file->private_data;

	tshare_file_unlink_names(tf);
	tshare_ns_close(tf->ns);
	kfree(tf);
	return 0;
}

static const struct file_operations tshare_fops = {
	.owner = THIS_MODULE,
	.open = tshare_open,
	.release = tshare_close,
	.unlocked_ioctl = tshare_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static ssize_t regions_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%ld\n", atomic_long_read(&tshare_region_count));
}
static DEVICE_ATTR_RO(regions);

static ssize_t exports_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%ld\n", atomic_long_read(&tshare_export_count));
}
static DEVICE_ATTR_RO(exports);

static ssize_t names_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", tshare_name_count());
}
static DEVICE_ATTR_RO(names);

static ssize_t bytes_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", (u64)tshare_pages_used() << PAGE_SHIFT);
}
static DEVICE_ATTR_RO(bytes);

static struct attribute *tshare_attrs[] = { &dev_attr_regions.attr, &dev_attr_exports.attr,
					    &dev_attr_names.attr, &dev_attr_bytes.attr, NULL };
ATTRIBUTE_GROUPS(tshare);

static struct miscdevice tshare_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "tshare",
	.fops = &tshare_fops,
	.groups = tshare_groups,
	.mode = 0660,
};

static int __init tshare_init(void)
{
	int err = tshare_contig_init();

	if (err)
		return err;
	err = misc_register(&tshare_device);
	if (err)
		tshare_contig_exit();
	return err;
}
module_init(tshare_init);

static void __exit tshare_exit(void)
{
	misc_deregister(&tshare_device);
	tshare_account_exit();
	tshare_contig_exit();
}
module_exit(tshare_exit);

MODULE_DESCRIPTION("Shared memory that tensors live in");
MODULE_AUTHOR("The tshare developers");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
TSHARE_IMPORT_DMA_BUF();
