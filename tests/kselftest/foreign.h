/* SPDX-License-Identifier: GPL-2.0-only */
/* Names for the dma-bufs of other drivers, and one of them: udmabuf. */
#ifndef TSHARE_KSELFTEST_FOREIGN_H
#define TSHARE_KSELFTEST_FOREIGN_H

#include <linux/udmabuf.h>

#include "util.h"

#define UDMABUF "/dev/udmabuf"

/* A dma-buf of @size bytes. */
static inline int create_udmabuf(size_t size)
{
	int device = open(UDMABUF, O_RDWR | O_CLOEXEC), fd;
	struct udmabuf_create args = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = size };

	if (device < 0)
		return -errno;
	args.memfd = memfd_create("tshare", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (ftruncate(args.memfd, size) || fcntl(args.memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		return -errno;
	fd = xioctl(device, UDMABUF_CREATE, &args);
	close(args.memfd);
	close(device);
	return fd;
}

static inline struct tshare_create foreign_args(int fd, const char *name)
{
	struct tshare_create args = create_args(0, name);

	args.flags = TSHARE_CREATE_DMABUF;
	args.fd = fd;
	return args;
}

/* Gives the dma-buf @fd a name; returns another descriptor of it. */
static inline int name_foreign(int dev, int fd, const char *name, __u32 flags)
{
	struct tshare_create args = foreign_args(fd, name);

	args.flags |= flags;
	return do_create(dev, &args);
}

/* The id of the region that has a name, or 0. */
static inline __u64 id_named(int dev, const char *name)
{
	struct tshare_open args = {};

	snprintf(args.name, sizeof(args.name), "%s", name);
	if (xioctl(dev, TSHARE_IOCTL_OPEN, &args))
		return 0;
	close(args.fd);
	return args.id;
}

#endif /* TSHARE_KSELFTEST_FOREIGN_H */
