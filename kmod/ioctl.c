// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls of the device's commands, which are in ioctl-device.c and ioctl-dmabuf.c.
 *
 * tshare_fops_ioctl() copies a command's struct in and out and checks its size; the commands
 * see a struct of the kernel's own. A command's results take effect once its struct has been
 * copied out: see struct tshare_call.
 */
#include <linux/build_bug.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/minmax.h>
#include <linux/nospec.h>
#include <linux/tshare.h>
#include <linux/uaccess.h>

#include "device.h"
#include "ioctl.h"
#include "names.h"
#include "region.h"
#include "trace.h"

/* Sizes of the structures' first versions, the least accepted. */
#define QUERY_SIZE_V1	72
#define CREATE_SIZE_V1	184
#define OPEN_SIZE_V1	192
#define UNLINK_SIZE_V1	144
#define INFO_SIZE_V1	216
#define LIST_SIZE_V1	32
#define COUNTER_SIZE_V1 24
#define FINISH_SIZE_V1	16
#define EXPORT_SIZE_V1	32
#define WATCH_SIZE_V1	136

static_assert(sizeof(struct tshare_query) == QUERY_SIZE_V1);
static_assert(sizeof(struct tshare_create) == CREATE_SIZE_V1);
static_assert(sizeof(struct tshare_open) == OPEN_SIZE_V1);
static_assert(sizeof(struct tshare_unlink) == UNLINK_SIZE_V1);
static_assert(sizeof(struct tshare_info) == INFO_SIZE_V1);
static_assert(sizeof(struct tshare_list) == LIST_SIZE_V1);
static_assert(sizeof(struct tshare_counter) == COUNTER_SIZE_V1);
static_assert(sizeof(struct tshare_finish) == FINISH_SIZE_V1);
static_assert(sizeof(struct tshare_export) == EXPORT_SIZE_V1);
static_assert(sizeof(struct tshare_watch) == WATCH_SIZE_V1);

/* Room for the struct of any command. */
union ioctl_arg {
	struct tshare_query query;
	struct tshare_create create;
	struct tshare_open open;
	struct tshare_unlink unlink;
	struct tshare_info info;
	struct tshare_list list;
	struct tshare_counter counter;
	struct tshare_finish finish;
	struct tshare_export export;
	struct tshare_watch watch;
};

static void ioctl_call_end(struct tshare_call *call, int err)
{
	if (call->created)
		tshare_region_put(call->created);
	if (!call->file)
		return;
	if (err) {
		put_unused_fd(call->fd);
		fput(call->file);
	} else {
		fd_install(call->fd, call->file);
	}
}

/**
 * tshare_call_return_file() - make a file a command's result
 * @call: the call
 * @file: the file, a reference that the call takes over; released on failure
 * @cloexec: whether exec() closes its descriptor
 *
 * Return: 0, -EMFILE.
 */
int tshare_call_return_file(struct tshare_call *call, struct file *file, bool cloexec)
{
	int fd = get_unused_fd_flags(cloexec ? O_CLOEXEC : 0);

	if (fd < 0) {
		fput(file);
		return fd;
	}
	call->file = file;
	call->fd = fd;
	return 0;
}

/**
 * tshare_user_copy_out() - copy an extensible struct to user memory
 * @to: the caller's struct
 * @usize: the size that the caller knows; what the kernel doesn't know of it is cleared
 * @from: the kernel's struct
 * @ksize: its size
 *
 * Return: 0, -EFAULT.
 */
int tshare_user_copy_out(void __user *to, size_t usize, const void *from, size_t ksize)
{
	size_t known = min(usize, ksize);

	if (copy_to_user(to, from, known) || clear_user(to + known, usize - known))
		return -EFAULT;
	return 0;
}

/**
 * struct ioctl_command - a command
 * @handle: carries it out; see struct tshare_call. Returns -ERESTARTNOHAND if a signal
 *          interrupted it, or -ETIMEDOUT, with the state to resume from in the struct
 * @size: bytes of its struct
 * @size_v1: bytes of its struct's first version
 * @copies_out: whether its struct has members that are "out"
 */
struct ioctl_command {
	int (*handle)(struct tshare_call *call);
	size_t size;
	size_t size_v1;
	bool copies_out;
};

#define COMMAND(handler, type, first_size, out)                                     \
	{                                                                           \
		.handle = (handler), .size = sizeof(type), .size_v1 = (first_size), \
		.copies_out = (out)                                                 \
	}

static const struct ioctl_command commands[] = {
	[_IOC_NR(TSHARE_IOCTL_QUERY)] =
		COMMAND(tshare_ioctl_query, struct tshare_query, QUERY_SIZE_V1, true),
	[_IOC_NR(TSHARE_IOCTL_CREATE)] =
		COMMAND(tshare_ioctl_create, struct tshare_create, CREATE_SIZE_V1, true),
	[_IOC_NR(TSHARE_IOCTL_OPEN)] =
		COMMAND(tshare_ioctl_open, struct tshare_open, OPEN_SIZE_V1, true),
	[_IOC_NR(TSHARE_IOCTL_UNLINK)] =
		COMMAND(tshare_ioctl_unlink, struct tshare_unlink, UNLINK_SIZE_V1, false),
	[_IOC_NR(TSHARE_IOCTL_INFO)] =
		COMMAND(tshare_ioctl_info, struct tshare_info, INFO_SIZE_V1, true),
	[_IOC_NR(TSHARE_IOCTL_LIST)] =
		COMMAND(tshare_ioctl_list, struct tshare_list, LIST_SIZE_V1, true),
	[_IOC_NR(TSHARE_IOCTL_COUNTER)] =
		COMMAND(tshare_ioctl_counter, struct tshare_counter, COUNTER_SIZE_V1, true),
	[_IOC_NR(TSHARE_IOCTL_FINISH)] =
		COMMAND(tshare_ioctl_finish, struct tshare_finish, FINISH_SIZE_V1, false),
	[_IOC_NR(TSHARE_IOCTL_EXPORT)] =
		COMMAND(tshare_ioctl_export, struct tshare_export, EXPORT_SIZE_V1, true),
	[_IOC_NR(TSHARE_IOCTL_WATCH)] =
		COMMAND(tshare_ioctl_watch, struct tshare_watch, WATCH_SIZE_V1, true),
};

static void ioctl_trace(unsigned int cmd, const struct tshare_call *call, int err)
{
	if (_IOC_NR(cmd) == _IOC_NR(TSHARE_IOCTL_CREATE))
		trace_tshare_create(call->arg, call->created, err);
	else if (_IOC_NR(cmd) == _IOC_NR(TSHARE_IOCTL_OPEN))
		/* The caller sees EINTR, unless the kernel restarts the call after the signal. */
		trace_tshare_open(call->arg, err == -ERESTARTNOHAND ? -EINTR : err);
}

/**
 * tshare_fops_ioctl() - carry out a command of the device
 * @file: the open device
 * @cmd: TSHARE_IOCTL_*, with any size from that of its struct's first version on
 * @uarg: the caller's struct
 *
 * Return: 0, or one of the errors in the ABI header.
 */
long tshare_fops_ioctl(struct file *file, unsigned int cmd, unsigned long uarg)
{
	void __user *to = (void __user *)uarg;
	size_t usize = _IOC_SIZE(cmd);
	unsigned int nr = _IOC_NR(cmd);
	const struct ioctl_command *command;
	union ioctl_arg arg;
	struct tshare_call call = { .tf = file->private_data, .arg = &arg };
	int err;

	if (_IOC_TYPE(cmd) != TSHARE_IOCTL_MAGIC || _IOC_DIR(cmd) != (_IOC_READ | _IOC_WRITE) ||
	    nr >= ARRAY_SIZE(commands))
		return -ENOTTY;
	command = &commands[array_index_nospec(nr, ARRAY_SIZE(commands))];
	if (usize < command->size_v1)
		return -EINVAL;
	err = copy_struct_from_user(&arg, command->size, to, usize);
	if (err)
		return err;

	err = command->handle(&call);
	/* A call that goes on waits for the same draft. */
	if ((err == -ERESTARTNOHAND || err == -ETIMEDOUT) &&
	    tshare_user_copy_out(to, usize, &arg, command->size))
		err = -EFAULT;
	if (!err && command->copies_out)
		err = tshare_user_copy_out(to, usize, &arg, command->size);
	/* Last: a name that this takes from another region can't be given back. */
	if (!err && call.created)
		err = tshare_region_register(call.tf, call.created, call.replace);
	ioctl_trace(cmd, &call, err);
	ioctl_call_end(&call, err);
	return err;
}
