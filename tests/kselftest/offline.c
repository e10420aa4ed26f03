// SPDX-License-Identifier: GPL-2.0-only
/* Memory that a region has can't be taken offline, and says so at once. */
#include "harness.h"

#define MEMORY "/sys/devices/system/memory/"
#define PARAMETERS "/sys/module/tshare/parameters/"

static void __attribute__((constructor)) need_hotplug(void)
{
	if (access(MEMORY "memory0/state", W_OK))
		ksft_exit_skip("the kernel can't take memory offline\n");
}

/* Bytes of what is taken offline at a time; 0 if that is unknown. */
static __u64 block_size(void)
{
	FILE *file = fopen(MEMORY "block_size_bytes", "re");
	unsigned long long size = 0;

	if (file && fscanf(file, "%llx", &size) != 1)
		size = 0;
	if (file)
		fclose(file);
	return size;
}

/* 0, or the negative errno that it fails with. */
static int set_state(unsigned long long block, const char *state)
{
	char path[64];
	int fd, ret;

	snprintf(path, sizeof(path), MEMORY "memory%llu/state", block);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = write(fd, state, strlen(state)) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

/*
 * A region that ends @into bytes behind the start of a block, and has all of the block before.
 * Stores the block's number. Where a region lies is known once it is made, so it is made again
 * with the size that it has to have there. It takes more than a block, for which the memory is
 * searched for: the page allocator returns what is smaller from anywhere.
 */
static int create_into_block(int dev, __u64 block, __u64 into, unsigned long long *number)
{
	__u64 size = 2 * block + into, wanted;
	struct tshare_info info;
	int tries, fd;

	for (tries = 0; tries < 10; tries++) {
		fd = create(dev, size, NULL);
		if (fd < 0 || get_info(dev, fd, &info))
			return fd;
		*number = info.phys_addr / block + 2;
		wanted = *number * block + into - info.phys_addr;
		if (size == wanted)
			return fd;
		close(fd);
		size = wanted;
	}
	return -EAGAIN;
}

FIXTURE(offline)
{
	int dev;
	__u64 block;
	struct counters before;
};

FIXTURE_SETUP(offline)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->block = block_size();
	ASSERT_LT(0, self->block);
	ASSERT_TRUE(write_file(PARAMETERS "max_mib", "1000000"));
	self->before = count_all();
}

FIXTURE_TEARDOWN(offline)
{
	EXPECT_TRUE(write_file(PARAMETERS "max_mib", "0"));
	close(self->dev);
}

/* What the attempt to take a block offline returns that has @into bytes of a region. */
static int take_from_region(int dev, __u64 block, __u64 into)
{
	unsigned long long number = 0;
	int fd = create_into_block(dev, block, into, &number), err;
	__u64 size;
	char *mem;

	if (fd < 0)
		return fd;
	size = lseek(fd, 0, SEEK_END);
	mem = map(fd, size, RW);
	if (mem == MAP_FAILED)
		return -errno;
	fill(mem + size - into, into, 1);
	err = set_state(number, "offline");
	if (!filled(mem + size - into, into, 1))
		err = -EIO;
	munmap(mem, size);
	close(fd);
	return err;
}

TEST_F(offline, block_of_a_region_is_ebusy)
{
	EXPECT_EQ(-EBUSY, take_from_region(self->dev, self->block, self->block));
}

TEST_F(offline, block_with_a_single_page_of_a_region_is_ebusy)
{
	EXPECT_EQ(-EBUSY, take_from_region(self->dev, self->block, PAGE));
}

/* What was a region's from end to end has nothing else in it that can't be moved. */
TEST_F(offline, block_of_a_region_that_is_gone_goes)
{
	unsigned long long number = 0;
	int fd = create_into_block(self->dev, self->block, self->block, &number);
	int tries, err = -EBUSY;

	ASSERT_LE(0, fd);
	close(fd);
	EXPECT_SAME_COUNTERS(self->before);
	/* A page that is in use for a moment is in the way. */
	for (tries = 0; tries < 20 && err; tries++) {
		usleep(100000);
		err = set_state(number, "offline");
	}
	EXPECT_EQ(0, err);
	if (!err)
		EXPECT_EQ(0, set_state(number, "online"));
}

TEST_HARNESS_MAIN
