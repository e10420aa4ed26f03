// SPDX-License-Identifier: GPL-2.0-only
/*
 * A region's counter: one page beside the memory, on which processes sleep.
 *
 * A futex in shared memory is known by its file's inode, which a region's own
 * pages don't have: futex() on them is EFAULT. So the page is shared memory of
 * the kernel's own making, a file without a name. The region keeps its path: an
 * open file would keep the credentials, and so the user namespace, of the first
 * caller.
 */
#include <linux/cred.h>
#include <linux/dcache.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/memfd.h>
#include <linux/path.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>

#include "compat.h"
#include "counter.h"
#include "region.h"

/*
 * The file can be opened only through the region, with the access that the
 * region gives. Its size is sealed: a process that maps a page that has been
 * truncated is killed by SIGBUS. Its owner is no valid user, because an owner
 * could change the mode back, or block all openers with a lease, which takes
 * CAP_LEASE of anybody else.
 */
static struct file *counter_file_new(void)
{
	struct file *file = tshare_shmem_file_setup("tshare-counter", PAGE_SIZE);
	struct inode *inode;

	/* Some kernels return this when there is no memory for an inode. */
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

/* The path of a new file, which is not open; released by counter_path_free(). */
static struct path *counter_path_new(void)
{
	struct path *path = kmalloc(sizeof(*path), GFP_KERNEL_ACCOUNT);
	struct file *file;

	if (!path)
		return ERR_PTR(-ENOMEM);
	file = counter_file_new();
	if (IS_ERR(file)) {
		kfree(path);
		return ERR_CAST(file);
	}
	*path = file->f_path;
	path_get(path);
	fput(file);
	return path;
}

static void counter_path_free(struct path *path)
{
	path_put(path);
	kfree(path);
}

/* The counter's path, made by the first caller. */
static struct path *counter_path_get(struct tshare_region *region)
{
	struct path *path, *first;

	/* Pairs with the cmpxchg(): the file is complete. */
	path = smp_load_acquire(&region->counter);
	if (path)
		return path;
	path = counter_path_new();
	if (IS_ERR(path))
		return path;
	first = cmpxchg(&region->counter, NULL, path);
	if (!first)
		return path;
	counter_path_free(path);
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
	struct path *path = counter_path_get(region);

	if (IS_ERR(path))
		return ERR_CAST(path);
	return dentry_open(path, (writable ? O_RDWR : O_RDONLY) | O_LARGEFILE, current_cred());
}

/**
 * tshare_counter_put() - drop a region's reference to its counter
 * @region: the region, which is being released
 *
 * The counter lives on while a process has it open or mapped.
 */
void tshare_counter_put(struct tshare_region *region)
{
	if (region->counter)
		counter_path_free(region->counter);
}
