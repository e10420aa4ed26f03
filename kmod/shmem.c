// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files of shared memory that the module makes and keeps: a region's counter, and
 * its descriptors if they take more than a page.
 *
 * Their pages can be swapped, and are charged to the memory cgroup of the process that
 * touches them first, as those of all shared memory. A region keeps the file's path
 * rather than an open file, which would keep its creator's credentials and so the
 * creator's user namespace.
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
#include "shmem.h"

/*
 * The file can be opened only through the module. Its size is sealed: a process
 * that maps a page that has been truncated is killed by SIGBUS. Its owner is no
 * valid user, because an owner could change the mode back, or block all openers
 * with a lease, for which other users need CAP_LEASE.
 */
static struct file *shmem_file_new(const char *name, loff_t size)
{
	struct file *file = tshare_shmem_file_setup(name, size);
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

/**
 * tshare_shmem_new() - make a file of shared memory that is open nowhere
 * @name: what it is called in /proc
 * @size: bytes, zero at first; the file never has more or fewer
 *
 * Return: its path, for tshare_shmem_free(), or an ERR_PTR.
 */
struct path *tshare_shmem_new(const char *name, loff_t size)
{
	struct path *path = kmalloc(sizeof(*path), GFP_KERNEL_ACCOUNT);
	struct file *file;

	if (!path)
		return ERR_PTR(-ENOMEM);
	file = shmem_file_new(name, size);
	if (IS_ERR(file)) {
		kfree(path);
		return ERR_CAST(file);
	}
	*path = file->f_path;
	path_get(path);
	fput(file);
	return path;
}

/**
 * tshare_shmem_free() - drop the module's reference to a file
 * @path: from tshare_shmem_new()
 *
 * A process that has the file open or mapped keeps it.
 */
void tshare_shmem_free(struct path *path)
{
	path_put(path);
	kfree(path);
}
