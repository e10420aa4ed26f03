/* SPDX-License-Identifier: GPL-2.0-only */
/* The device with a DMA engine that imports regions; driver/ has its driver. */
#ifndef TSHARE_KSELFTEST_DEVICE_H
#define TSHARE_KSELFTEST_DEVICE_H

#include <linux/dma-buf.h>

#include "driver/importer.h"
#include "util.h"

#define CHUNK 1024 /* bytes that the device moves at a time */

static void __attribute__((constructor)) need_importer(void)
{
	if (access(IMPORTER, R_OK | W_OK))
		ksft_exit_skip("no %s: %m\n", IMPORTER);
}

static inline int open_importer(void)
{
	int fd = open(IMPORTER, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static inline struct importer_attach attach_args(int fd, __u32 direction)
{
	return (struct importer_attach){
		.fd = fd,
		.direction = direction,
		.segment_max = 64 * KIB,
		.boundary = ~0U,
	};
}

static inline int attach(int importer, int fd, __u32 direction)
{
	struct importer_attach args = attach_args(fd, direction);

	return xioctl(importer, IMPORTER_IOCTL_ATTACH, &args);
}

static inline int transfer(int importer, __u64 offset, void *data, bool write)
{
	struct importer_transfer args = {
		.offset = offset,
		.data = (uintptr_t)data,
		.size = CHUNK,
		.write = write,
	};

	return xioctl(importer, IMPORTER_IOCTL_TRANSFER, &args);
}

/* Has the device write CHUNK bytes of a pattern. */
static inline int device_writes(int importer, __u64 offset, __u64 seed)
{
	__u64 data[CHUNK / 8];

	fill(data, CHUNK, seed);
	return transfer(importer, offset, data, true);
}

/* Does the device find CHUNK bytes of a pattern? */
static inline bool device_reads(int importer, __u64 offset, __u64 seed)
{
	__u64 data[CHUNK / 8] = {};

	return !transfer(importer, offset, data, false) && filled(data, CHUNK, seed);
}

static inline int cpu_access(int fd, __u64 flags)
{
	struct dma_buf_sync args = { .flags = flags };

	return xioctl(fd, DMA_BUF_IOCTL_SYNC, &args);
}

#endif /* TSHARE_KSELFTEST_DEVICE_H */
