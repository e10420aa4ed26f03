/* SPDX-License-Identifier: GPL-2.0-only */
/* Pins pages of regions, as a device does or anybody with a pipe. */
#ifndef TSHARE_KSELFTEST_PIN_H
#define TSHARE_KSELFTEST_PIN_H

#include <sys/uio.h>

#include "util.h"

/* A pipe that holds the page at @offset of a region; closes the region. */
static inline int pin_region(int fd, size_t size, size_t offset, int *pipes)
{
	struct iovec iov;
	char *mem;
	int err;

	if (fd < 0)
		return fd;
	mem = map(fd, size, RW);
	close(fd);
	if (mem == MAP_FAILED || pipe2(pipes, O_CLOEXEC))
		return -errno;
	iov = (struct iovec){ .iov_base = mem + offset, .iov_len = PAGE };
	err = vmsplice(pipes[1], &iov, 1, 0) == (ssize_t)PAGE ? 0 : -errno;
	munmap(mem, size);
	return err;
}

/* A pipe that holds the page at @offset of a region that is gone. */
static inline int pin(int dev, size_t size, size_t offset, int *pipes)
{
	return pin_region(create(dev, size, NULL), size, offset, pipes);
}

static inline void unpin(int *pipes)
{
	close(pipes[0]);
	close(pipes[1]);
}

#endif /* TSHARE_KSELFTEST_PIN_H */
