// SPDX-License-Identifier: GPL-2.0-only
/*
 * A region's list of tensor descriptors: copied in, kept, copied out.
 *
 * A list of up to a page is kept in kernel memory. A model has tens of thousands of
 * descriptors, which take megabytes. Such a list is copied a page at a time into a file of
 * shared memory, so that the kernel can swap it and never needs that much memory at once. No
 * process can reach the file, so descriptors are checked only on the way in.
 */
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/path.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "desc.h"
#include "descs.h"
#include "shmem.h"

/*
 * One page of a list in shared memory, with a reference. If the system or the memory cgroup
 * has no memory, this fails and doesn't call the OOM killer.
 */
static struct page *descs_page(const struct tshare_descs *descs, u32 offset)
{
	struct address_space *mapping = d_inode(descs->file->dentry)->i_mapping;

	if (fatal_signal_pending(current))
		return ERR_PTR(-EINTR);
	cond_resched();
	return shmem_read_mapping_page_gfp(mapping, offset >> PAGE_SHIFT,
					   mapping_gfp_mask(mapping) | __GFP_RETRY_MAYFAIL |
						   __GFP_NOWARN);
}

/**
 * struct descs_check - the check of a list that comes in pieces
 * @records: bytes that are not checked yet
 * @have: the number of these bytes
 * @left: descriptors that are still to come
 * @region_size: bytes of the region
 */
struct descs_check {
	void *records;
	size_t have;
	u32 left;
	u64 region_size;
};

/*
 * Checks the descriptors in @check->records. If @more is to come, the last bytes, fewer than
 * the largest descriptor has, are left: they may be an incomplete descriptor.
 */
static int descs_check(struct descs_check *check, bool more)
{
	const struct tshare_desc *desc = check->records;
	const void *end = check->records + check->have;
	size_t keep = more ? TSHARE_DESC_SIZE_MAX : 1;
	int err;

	while (end - (const void *)desc >= keep) {
		if (!check->left)
			return -EINVAL;
		err = tshare_desc_check(desc, end - (const void *)desc, check->region_size, NULL);
		if (err)
			return err;
		check->left--;
		desc = tshare_desc_next(desc);
	}
	check->have = end - (const void *)desc;
	memmove(check->records, desc, check->have);
	return !more && check->left ? -EINVAL : 0;
}

static int descs_copy_in_small(struct tshare_descs *descs, const void __user *from,
			       struct descs_check *check)
{
	descs->records = kmalloc(descs->size, GFP_KERNEL_ACCOUNT);
	if (!descs->records)
		return -ENOMEM;
	if (copy_from_user(descs->records, from, descs->size))
		return -EFAULT;
	check->records = descs->records;
	check->have = descs->size;
	return descs_check(check, false);
}

/* Stores one piece, at most a page, where @offset is a multiple of a page. */
static int descs_store(const struct tshare_descs *descs, u32 offset, const void *piece, u32 size)
{
	struct page *page = descs_page(descs, offset);
	struct folio *folio;

	if (IS_ERR(page))
		return PTR_ERR(page);
	folio = page_folio(page);
	/* Dirty before the lock is dropped, so that reclaim writes the page to swap. */
	folio_lock(folio);
	folio_mark_dirty(folio);
	memcpy_to_page(page, 0, piece, size);
	folio_unlock(folio);
	folio_put(folio);
	return 0;
}

static int descs_copy_in_large(struct tshare_descs *descs, const void __user *from,
			       struct descs_check *check)
{
	u32 offset, size;
	int err = 0;

	descs->file = tshare_shmem_new("tshare-descs", descs->size);
	if (IS_ERR(descs->file)) {
		err = PTR_ERR(descs->file);
		descs->file = NULL;
		return err;
	}
	check->records = kmalloc(PAGE_SIZE + TSHARE_DESC_SIZE_MAX, GFP_KERNEL_ACCOUNT);
	if (!check->records)
		return -ENOMEM;
	for (offset = 0; offset < descs->size && !err; offset += size) {
		void *piece = check->records + check->have;

		size = min_t(u32, descs->size - offset, PAGE_SIZE);
		if (copy_from_user(piece, from + offset, size))
			err = -EFAULT;
		else
			err = descs_store(descs, offset, piece, size);
		if (err)
			break;
		check->have += size;
		err = descs_check(check, offset + size < descs->size);
	}
	kfree(check->records);
	return err;
}

/**
 * tshare_descs_nr_pages() - the pages of shared memory that a list takes
 * @size: bytes of the list
 *
 * Return: pages; 0 for a list in kernel memory.
 */
unsigned long tshare_descs_nr_pages(u32 size)
{
	return size > PAGE_SIZE ? DIV_ROUND_UP(size, PAGE_SIZE) : 0;
}

/**
 * tshare_descs_copy_in() - copy a list of descriptors from user memory, and check it
 * @descs: where to store it
 * @from: pointer to a buffer that the descriptors fill
 * @size: bytes of the buffer, at most TSHARE_DESCS_SIZE_MAX
 * @count: descriptors, at most TSHARE_DESC_MAX
 * @region_size: bytes of the region that they describe
 *
 * Return: 0, or
 * * -EINVAL, -ENAMETOOLONG, -ERANGE: see tshare_desc_check(); or there are not
 *   @count descriptors in @size bytes
 * * -EFAULT, -EINTR, -ENOMEM
 */
int tshare_descs_copy_in(struct tshare_descs *descs, u64 from, u32 size, u32 count, u64 region_size)
{
	struct descs_check check = { .left = count, .region_size = region_size };
	int err;

	*descs = (struct tshare_descs){ .count = count, .size = size };
	if (!size)
		return count ? -EINVAL : 0;
	if (tshare_descs_nr_pages(size))
		err = descs_copy_in_large(descs, u64_to_user_ptr(from), &check);
	else
		err = descs_copy_in_small(descs, u64_to_user_ptr(from), &check);
	if (err)
		tshare_descs_free(descs);
	return err;
}

static int descs_copy_out_large(const struct tshare_descs *descs, void __user *to)
{
	unsigned long missed;
	u32 offset, size;
	struct page *page;
	void *from;

	for (offset = 0; offset < descs->size; offset += size) {
		size = min_t(u32, descs->size - offset, PAGE_SIZE);
		page = descs_page(descs, offset);
		if (IS_ERR(page))
			return PTR_ERR(page);
		from = kmap_local_page(page);
		missed = copy_to_user(to + offset, from, size);
		kunmap_local(from);
		put_page(page);
		if (missed)
			return -EFAULT;
	}
	return 0;
}

/**
 * tshare_descs_copy_out() - copy a list of descriptors to user memory
 * @descs: the list
 * @to: pointer to a buffer
 * @room: bytes of it; if the list has more, nothing is stored
 *
 * Return: 0, -EFAULT, -EINTR, -ENOMEM, -EIO.
 */
int tshare_descs_copy_out(const struct tshare_descs *descs, u64 to, u32 room)
{
	void __user *uptr = u64_to_user_ptr(to);

	if (room < descs->size)
		return 0;
	if (descs->file)
		return descs_copy_out_large(descs, uptr);
	return copy_to_user(uptr, descs->records, descs->size) ? -EFAULT : 0;
}

/**
 * tshare_descs_free() - free a list's memory
 * @descs: the list
 */
void tshare_descs_free(struct tshare_descs *descs)
{
	kfree(descs->records);
	if (descs->file)
		tshare_shmem_free(descs->file);
}
