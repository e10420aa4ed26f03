// SPDX-License-Identifier: GPL-2.0-only
/*
 * A region's counter: one page beside the memory, on which processes sleep.
 *
 * A futex in shared memory is known by its file's inode, which a region's own
 * pages don't have: futex() on them is EFAULT. So the page is shared memory of
 * the kernel's own making, a file without a name that the region keeps.
 */
#include <linux/cred.h>
#include <linux/dcache.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/memfd.h>
#include <linux/shmem_fs.h>

#include "compat.h"
#include "region.h"

/*
 * Nobody may open the file but through the region, with the access that the
 * region gives, nor change its size: who maps it would die of that. Its owner
 * is a user that nobody can be, since an owner could change the mode back, or,
 * without CAP_LEASE, hold up all openers with a lease.
 */
static struct file *counter_file_new(void)
{
	struct file *file = tshare_shmem_file_setup("tshare-counter", PAGE_SIZE);
	struct inode *inode;

	/* What some kernels say when there is no memory for an inode. */
	if (file == ERR_PTR(-ENOSPC))
		return ERR_PTR(-ENOMEM);
	if (IS_ERR(file))
		return file;
	inode = file_inode(file);
	inode->i_mode = S_IFREG;
	inode->i_uid = INVALID_UID;
	inode->i_gid = INVALID_GID;
	SHMEM_I(inode)->seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	return file;
}

/* The file, made by who asks first. */
static struct file *counter_file(struct tshare_region *region)
{
	struct file *file, *first;

	/* Pairs with the cmpxchg(): the file is complete. */
	file = smp_load_acquire(&region->counter);
	if (file)
		return file;
	file = counter_file_new();
	if (IS_ERR(file))
		return file;
	first = cmpxchg(&region->counter, NULL, file);
	if (!first)
		return file;
	fput(file);
	return first;
}

/**
 * tshare_counter_open() - open a region's counter
 * @region: the region
 * @writable: whether for writing too
 *
 * Return: a file of the caller's own, which doesn't hold the region, or an
 * ERR_PTR.
 */
struct file *tshare_counter_open(struct tshare_region *region, bool writable)
{
	struct file *file = counter_file(region);

	if (IS_ERR(file))
		return file;
	return dentry_open(&file->f_path, (writable ? O_RDWR : O_RDONLY) | O_LARGEFILE,
			   current_cred());
}

/**
 * tshare_counter_put() - let go of the counter of a region that goes
 * @region: the region
 *
 * Who has the counter open or mapped keeps it.
 */
void tshare_counter_put(struct tshare_region *region)
{
	if (region->counter)
		fput(region->counter);
}
