/* SPDX-License-Identifier: GPL-2.0-only */
/* The pools' attributes, and the regions that come from them. */
#ifndef TSHARE_KSELFTEST_POOL_H
#define TSHARE_KSELFTEST_POOL_H

#include "util.h"

#define POOL(node, name) SYSFS "pool_node" #node "/" name

static inline long pool_size(void)
{
	return read_number(POOL(0, "size"));
}

static inline long pool_free(void)
{
	return read_number(POOL(0, "free"));
}

/* 0, or a negative errno. */
static inline int write_number(const char *path, long value)
{
	errno = 0;
	return write_file(path, "%ld", value) ? 0 : -errno;
}

static inline int resize(long bytes)
{
	return write_number(POOL(0, "size"), bytes);
}

/* Waits for another process or the worker to have changed a number. */
static inline bool becomes(const char *path, long value)
{
	int tries;

	for (tries = 0; tries < 3000; tries++) {
		if (read_number(path) == value)
			return true;
		usleep(10000);
	}
	ksft_print_msg("%s is %ld, not %ld\n", path, read_number(path), value);
	return false;
}

static inline bool is_all_zeroed(long bytes)
{
	return becomes(POOL(0, "zeroed"), bytes);
}

/* Whether the memory of @fd is the pool's; a negative errno. */
static inline int from_pool(int dev, int fd)
{
	struct tshare_info info;
	int err = fd < 0 ? fd : get_info(dev, fd, &info);

	return err ? err : !!(info.region_flags & TSHARE_REGION_POOL);
}

/* Whether all of a region is zero. Fills it for those to come, and leaves it open. */
static inline bool is_zero_and_filled(int fd, size_t size)
{
	char *mem = map_aligned(fd, size, RW);
	bool zero = mem != MAP_FAILED && zeroed(mem, size);

	if (mem == MAP_FAILED)
		return false;
	memset(mem, 0xa5, size);
	munmap(mem, size);
	return zero;
}

#endif /* TSHARE_KSELFTEST_POOL_H */
