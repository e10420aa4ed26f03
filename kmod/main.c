// SPDX-License-Identifier: GPL-2.0-only
/* The module, and the device /dev/tshare that it registers. */
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "account.h"
#include "alloc.h"
#include "cgroup.h"
#include "compat.h"
#include "device.h"
#include "names.h"
#include "ns.h"
#include "pool.h"

static int tshare_fops_open(struct inode *inode, struct file *file)
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

static int tshare_fops_release(struct inode *inode, struct file *file)
{
	struct tshare_file *tf = file->private_data;

	tshare_file_close(tf);
	kfree(tf);
	return 0;
}

static const struct file_operations tshare_fops = {
	.owner = THIS_MODULE,
	.open = tshare_fops_open,
	.release = tshare_fops_release,
	.unlocked_ioctl = tshare_fops_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice tshare_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "tshare",
	.fops = &tshare_fops,
	.groups = tshare_sysfs_groups,
	.mode = 0660,
};

static int __init tshare_init(void)
{
	int err = tshare_contig_init();

	if (err)
		return err;
	err = tshare_pool_init();
	if (err)
		goto err_contig;
	err = tshare_pool_sysfs_init(tshare_sysfs_groups + TSHARE_SYSFS_POOLS);
	if (err)
		goto err_pool;
	err = tshare_cgroup_init();
	if (err)
		goto err_pool_sysfs;
	err = misc_register(&tshare_device);
	if (err)
		goto err_cgroup;
	tshare_debugfs_init();
	return 0;

err_cgroup:
	tshare_cgroup_exit();
err_pool_sysfs:
	tshare_pool_sysfs_exit();
err_pool:
	tshare_pool_close();
	tshare_pool_exit();
err_contig:
	tshare_contig_exit();
	return err;
}
module_init(tshare_init);

static void __exit tshare_exit(void)
{
	tshare_debugfs_exit();
	misc_deregister(&tshare_device);
	tshare_names_exit();
	tshare_pool_sysfs_exit();
	tshare_pool_close();
	tshare_account_exit();
	tshare_cgroup_exit();
	tshare_pool_exit();
	tshare_contig_exit();
}
module_exit(tshare_exit);

MODULE_DESCRIPTION("Shared memory for tensors");
MODULE_AUTHOR("The tshare developers");
MODULE_LICENSE("GPL");
MODULE_VERSION(TSHARE_VERSION);
TSHARE_IMPORT_DMA_BUF();
