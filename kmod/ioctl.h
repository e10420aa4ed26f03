/* SPDX-License-Identifier: GPL-2.0-only */
/* The device's commands, and the call that each is given. */
#ifndef TSHARE_IOCTL_H
#define TSHARE_IOCTL_H

#include <linux/types.h>

struct file;
struct tshare_file;
struct tshare_region;

/**
 * struct tshare_call - one call of a command
 * @tf: the open device
 * @arg: the command's struct, copied in, and copied out if the command succeeds
 * @file: a file that the command returns, or NULL
 * @fd: the descriptor reserved for @file
 * @created: a region that the command makes, a reference; or NULL
 * @replace: whether @created may take its name from another region
 *
 * A command that fails, or whose struct can't be copied out, leaves nothing behind:
 * tshare_fops_ioctl() then releases @file, @fd and @created. So a command just returns an error
 * after it has set these. @created is registered last, since a name that it takes from another
 * region can't be given back.
 */
struct tshare_call {
	struct tshare_file *tf;
	void *arg;
	struct file *file;
	int fd;
	struct tshare_region *created;
	bool replace;
};

/* ioctl.c */
int tshare_call_return_file(struct tshare_call *call, struct file *file, bool cloexec);
int tshare_user_copy_out(void __user *to, size_t usize, const void *from, size_t ksize);

/* ioctl-device.c */
int tshare_ioctl_query(struct tshare_call *call);
int tshare_ioctl_create(struct tshare_call *call);
int tshare_ioctl_open(struct tshare_call *call);
int tshare_ioctl_unlink(struct tshare_call *call);
int tshare_ioctl_list(struct tshare_call *call);
int tshare_ioctl_watch(struct tshare_call *call);

/* ioctl-dmabuf.c */
int tshare_ioctl_info(struct tshare_call *call);
int tshare_ioctl_counter(struct tshare_call *call);
int tshare_ioctl_finish(struct tshare_call *call);
int tshare_ioctl_export(struct tshare_call *call);

#endif /* TSHARE_IOCTL_H */
