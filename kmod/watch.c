// SPDX-License-Identifier: GPL-2.0-only
/* Watches: files readable when a name has changed, for callers that can't sleep in OPEN. */
#include <linux/anon_inodes.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "lookup.h"
#include "names.h"
#include "ns.h"
#include "waiters.h"
#include "watch.h"

/**
 * struct watch - the private data of a watch
 * @tf: an open device without names, which keeps the namespace alive
 * @waiter: woken by changes of @name
 * @name: the name
 */
struct watch {
	struct tshare_file tf;
	struct tshare_waiter waiter;
	char name[TSHARE_NAME_LEN];
};

static ssize_t watch_read(struct file *file, char __user *to, size_t size, loff_t *pos)
{
	struct watch *watch = file->private_data;
	u64 id;
	int err;

	if (size < sizeof(id))
		return -EINVAL;
	while (!tshare_name_read(&watch->tf, watch->name, &watch->waiter, &id)) {
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		err = tshare_waiter_sleep(&watch->waiter, KTIME_MAX);
		if (err)
			return err;
	}
	if (copy_to_user(to, &id, sizeof(id))) {
		mutex_lock(&tshare_lock);
		tshare_waiter_wake(&watch->waiter);
		mutex_unlock(&tshare_lock);
		return -EFAULT;
	}
	return sizeof(id);
}

static __poll_t watch_poll(struct file *file, struct poll_table_struct *wait)
{
	struct watch *watch = file->private_data;

	poll_wait(file, &watch->waiter.queue, wait);
	return READ_ONCE(watch->waiter.woken) ? EPOLLIN | EPOLLRDNORM : 0;
}

static void watch_free(struct watch *watch)
{
	tshare_waiter_remove(&watch->waiter);
	tshare_ns_remove_watch(watch->tf.ns);
	tshare_file_close(&watch->tf);
	kfree(watch);
}

static int watch_release(struct inode *inode, struct file *file)
{
	watch_free(file->private_data);
	return 0;
}

static const struct file_operations watch_fops = {
	.owner = THIS_MODULE,
	.read = watch_read,
	.poll = watch_poll,
	.release = watch_release,
	.llseek = noop_llseek,
};

/**
 * tshare_watch_open() - open a watch of a name
 * @ns: the namespace, in which the caller has the device open
 * @name: the name, checked
 *
 * Return: the file, or an ERR_PTR: -EDQUOT, -ENFILE, -ENOMEM.
 */
struct file *tshare_watch_open(struct tshare_ns *ns, const char *name)
{
	struct watch *watch = kzalloc(sizeof(*watch), GFP_KERNEL_ACCOUNT);
	struct file *file;
	int err;

	if (!watch)
		return ERR_PTR(-ENOMEM);
	err = tshare_ns_add_watch(ns, TSHARE_WATCH_MAX);
	if (err) {
		kfree(watch);
		return ERR_PTR(err);
	}
	strscpy(watch->name, name, sizeof(watch->name));
	watch->tf.ns = ns;
	INIT_LIST_HEAD(&watch->tf.names);
	watch->waiter.watches = true;
	tshare_waiter_add(&watch->waiter, ns, watch->name, 0);
	file = anon_inode_getfile("[tshare-watch]", &watch_fops, watch, O_RDONLY);
	if (IS_ERR(file))
		watch_free(watch);
	return file;
}
