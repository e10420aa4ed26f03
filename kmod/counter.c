// SPDX-License-Identifier: GPL-2.0-only
/*
 * A region's counter: one page beside the memory, on which processes sleep.
 *
 * The key of a futex in shared memory is its file's inode, which a region's own pages don't
 * have: futex() on them fails with EFAULT. So the counter is a page of an unlinked file of
 * shared memory.
 */
#include <linux/cred.h>
#include <linux/dcache.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/path.h>

#include "counter.h"
#include "region.h"
#include "shmem.h"

/* The counter's path, made by the first caller. */
static struct path *counter_path_get(struct tshare_region *region)
{
	struct path *path, *first;

	/* Pairs with the cmpxchg(): the file is complete. */
	path = smp_load_acquire(&region->counter);
	if (path)
		return path;
	path = tshare_shmem_new("tshare-counter", PAGE_SIZE);
	if (IS_ERR(path))
		return path;
	first = cmpxchg(&region->counter, NULL, path);
	if (!first)
		return path;
	tshare_shmem_free(path);
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
		tshare_shmem_free(region->counter);
}
