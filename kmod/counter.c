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
#include "shmem.h"

/* The counter's path, made by the first caller. */
static struct path *counter_path_get(struct path **counter)
{
	struct path *path, *first;

	/* Pairs with the cmpxchg(): the file is complete. */
	path = smp_load_acquire(counter);
	if (path)
		return path;
	path = tshare_shmem_new("tshare-counter", PAGE_SIZE);
	if (IS_ERR(path))
		return path;
	first = cmpxchg(counter, NULL, path);
	if (!first)
		return path;
	tshare_shmem_free(path);
	return first;
}

/**
 * tshare_counter_open() - open a region's counter
 * @counter: where the region keeps the path of its counter, which the first call makes
 * @writable: whether for writing too
 *
 * Return: a file of the caller's own, which doesn't hold the region, or an
 * ERR_PTR.
 */
struct file *tshare_counter_open(struct path **counter, bool writable)
{
	struct path *path = counter_path_get(counter);

	if (IS_ERR(path))
		return ERR_CAST(path);
	return dentry_open(path, (writable ? O_RDWR : O_RDONLY) | O_LARGEFILE, current_cred());
}

/**
 * tshare_counter_put() - drop a region's reference to its counter
 * @counter: the path that the region has kept, or NULL; the region is being released
 *
 * The counter lives on while a process has it open or mapped.
 */
void tshare_counter_put(struct path *counter)
{
	if (counter)
		tshare_shmem_free(counter);
}
