// SPDX-License-Identifier: GPL-2.0-only
/* A disk writes into regions and reads from them: NVMe, by O_DIRECT and by io_uring. */
#include <linux/fs.h>

#include "harness.h"
#include "release.h"
#include "ring.h"

#define SIZE (8 * MIB + 5 * PAGE)

/* What the tests use of the disk: a region, and as much on each side of it. */
#define SPAN (10 * MIB)

static char node[64];

/* Only the disk of tests/vm/run, for it is overwritten: another one may have files. */
static bool find_disk(void)
{
	char path[64], serial[32];
	int i;

	for (i = 0; i < 8; i++) {
		FILE *file;
		bool ours;

		sprintf(path, "/sys/block/nvme%dn1/device/serial", i);
		file = fopen(path, "re");
		if (!file)
			continue;
		ours = fscanf(file, "%31s", serial) == 1 && !strcmp(serial, "tshare");
		fclose(file);
		sprintf(node, "/dev/nvme%dn1", i);
		if (ours && !access(node, R_OK | W_OK))
			return true;
	}
	return false;
}

static void __attribute__((constructor)) need_disk(void)
{
	int tries;

	if (access("/sys/module/nvme", F_OK))
		ksft_exit_skip("the kernel has no NVMe\n");
	/* The kernel looks for disks after the driver is loaded. */
	for (tries = 0; tries < 3000 && !find_disk(); tries++)
		usleep(10000);
	if (tries == 3000)
		ksft_exit_skip("no NVMe disk with the serial number 'tshare'\n");
}

/* Words that are those of one pattern, wherever one looks for them. */
static char *image(size_t size, __u64 seed)
{
	char *mem = mmap(NULL, size, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem != MAP_FAILED)
		fill(mem, size, seed);
	return mem;
}

/* Is [@at, @at + @size) of @mem that of @other, and all else of @whole bytes that of @rest? */
static bool replaced(const char *mem, size_t whole, const char *rest, size_t at, size_t size,
		     const char *other)
{
	return !memcmp(mem, rest, at) && !memcmp(mem + at, other, size) &&
	       !memcmp(mem + at + size, rest + at + size, whole - at - size);
}

FIXTURE(disk)
{
	int dev;
	int fd;
	int direct;
	int buffered;
	char *mem;
	/* What the region and the disk held before. */
	char *region_image;
	char *disk_image;
	char *seen;
};

/* @size bytes of the region from @at on, and of the disk from @position on. */
FIXTURE_VARIANT(disk)
{
	size_t at;
	size_t size;
	off_t position;
};

FIXTURE_VARIANT_ADD(disk, whole_region)
{
	.size = SIZE,
	.position = MIB,
};

FIXTURE_VARIANT_ADD(disk, page_of_a_large_entry)
{
	.at = 3 * MIB + PAGE,
	.size = PAGE,
	.position = 5 * PAGE,
};

FIXTURE_VARIANT_ADD(disk, across_large_entries)
{
	.at = 2 * MIB - 3 * PAGE,
	.size = 2 * MIB + 7 * PAGE,
	.position = 2 * MIB + 512,
};

FIXTURE_VARIANT_ADD(disk, into_the_tail)
{
	.at = 8 * MIB - 2 * PAGE,
	.size = 7 * PAGE,
	.position = 512,
};

FIXTURE_VARIANT_ADD(disk, sectors_inside_pages)
{
	.at = 4 * MIB + 3 * 512,
	.size = 21 * 512,
	.position = 5 * 512,
};

FIXTURE_SETUP(disk)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->fd = create(self->dev, SIZE, NULL);
	ASSERT_LE(0, self->fd);
	self->mem = map_aligned(self->fd, SIZE, RW);
	ASSERT_NE(MAP_FAILED, self->mem);
	self->region_image = image(SIZE, 1);
	self->disk_image = image(SPAN, 2);
	self->seen = image(SPAN, 3);
	ASSERT_NE(MAP_FAILED, self->seen);
	memcpy(self->mem, self->region_image, SIZE);
	self->buffered = open(node, O_RDWR | O_CLOEXEC);
	self->direct = open(node, O_RDWR | O_CLOEXEC | O_DIRECT);
	ASSERT_LE(0, self->direct);
	ASSERT_EQ(SPAN, pwrite(self->direct, self->disk_image, SPAN, 0));
}

FIXTURE_TEARDOWN(disk)
{
	close(self->direct);
	close(self->buffered);
	munmap(self->mem, SIZE);
	close(self->fd);
	close(self->dev);
}

/* Reads the disk through the page cache, which holds nothing of it. */
static bool read_disk(int buffered, char *seen)
{
	return !ioctl(buffered, BLKFLSBUF, 0) && pread(buffered, seen, SPAN, 0) == SPAN;
}

TEST_F(disk, reads_into_a_region)
{
	ASSERT_EQ((ssize_t)variant->size,
		  pread(self->direct, self->mem + variant->at, variant->size, variant->position));
	EXPECT_TRUE(replaced(self->mem, SIZE, self->region_image, variant->at, variant->size,
			     self->disk_image + variant->position));
}

TEST_F(disk, writes_from_a_region)
{
	ASSERT_EQ((ssize_t)variant->size,
		  pwrite(self->direct, self->mem + variant->at, variant->size, variant->position));
	ASSERT_TRUE(read_disk(self->buffered, self->seen));
	EXPECT_TRUE(replaced(self->seen, SPAN, self->disk_image, variant->position, variant->size,
			     self->region_image + variant->at));
}

TEST_F(disk, writes_from_a_read_only_region_and_does_not_read_into_it)
{
	int ro = open_id(self->dev, id_of(self->dev, self->fd), 0);
	char *mem = map_aligned(ro, SIZE, PROT_READ);

	ASSERT_NE(MAP_FAILED, mem);
	EXPECT_EQ(-1, pread(self->direct, mem + variant->at, variant->size, variant->position));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(0, memcmp(self->mem, self->region_image, SIZE));
	ASSERT_EQ((ssize_t)variant->size,
		  pwrite(self->direct, mem + variant->at, variant->size, variant->position));
	ASSERT_TRUE(read_disk(self->buffered, self->seen));
	EXPECT_TRUE(replaced(self->seen, SPAN, self->disk_image, variant->position, variant->size,
			     self->region_image + variant->at));
}

/* The region is mapped where no large entry can be. */
TEST_F(disk, reads_into_a_region_that_is_mapped_by_pages)
{
	char *area = mmap(NULL, SIZE + 4 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *mem = (char *)(((uintptr_t)area + 2 * MIB) & ~(2 * MIB - 1)) + PAGE;

	mem = mmap(mem, SIZE, RW, MAP_SHARED | MAP_FIXED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, mem);
	ASSERT_EQ((ssize_t)variant->size,
		  pread(self->direct, mem + variant->at, variant->size, variant->position));
	EXPECT_TRUE(replaced(self->mem, SIZE, self->region_image, variant->at, variant->size,
			     self->disk_image + variant->position));
}

/* Registers the part of the region that the variant is about, and some around it. */
static int register_part(struct ring *ring, char *mem, bool alone, size_t at, size_t size)
{
	struct iovec iov = { .iov_base = mem, .iov_len = SIZE };

	if (alone)
		iov = (struct iovec){ .iov_base = mem + at, .iov_len = size };
	return ring_register(ring, &iov, 1);
}

/* Up to 6.4 of files only those of shmem and hugetlbfs are taken. */
TEST_F(disk, fixed_buffers_are_refused_up_to_6_4_alone)
{
	struct ring ring;

	ASSERT_EQ(0, ring_open(&ring));
	EXPECT_EQ(kernel_is_before(6, 5) ? -EOPNOTSUPP : 0,
		  register_part(&ring, self->mem, true, variant->at, variant->size));
	ring_close(&ring);
}

TEST_F(disk, reads_into_fixed_buffers)
{
	struct ring ring;
	int alone;

	if (kernel_is_before(6, 5))
		SKIP(return, "the kernel's io_uring takes no buffers of files");
	for (alone = 0; alone < 2; alone++) {
		memcpy(self->mem, self->region_image, SIZE);
		ASSERT_EQ(0, ring_open(&ring));
		ASSERT_EQ(0, register_part(&ring, self->mem, alone, variant->at, variant->size));
		ASSERT_EQ((int)variant->size,
			  ring_do(&ring, IORING_OP_READ_FIXED, self->direct,
				  self->mem + variant->at, variant->size, variant->position));
		EXPECT_TRUE(replaced(self->mem, SIZE, self->region_image, variant->at,
				     variant->size, self->disk_image + variant->position));
		ring_close(&ring);
	}
}

TEST_F(disk, writes_from_fixed_buffers)
{
	struct ring ring;
	int alone;

	if (kernel_is_before(6, 5))
		SKIP(return, "the kernel's io_uring takes no buffers of files");
	for (alone = 0; alone < 2; alone++) {
		ASSERT_EQ(SPAN, pwrite(self->direct, self->disk_image, SPAN, 0));
		ASSERT_EQ(0, ring_open(&ring));
		ASSERT_EQ(0, register_part(&ring, self->mem, alone, variant->at, variant->size));
		ASSERT_EQ((int)variant->size,
			  ring_do(&ring, IORING_OP_WRITE_FIXED, self->direct,
				  self->mem + variant->at, variant->size, variant->position));
		ASSERT_TRUE(read_disk(self->buffered, self->seen));
		EXPECT_TRUE(replaced(self->seen, SPAN, self->disk_image, variant->position,
				     variant->size, self->region_image + variant->at));
		ring_close(&ring);
	}
}

TEST_F(disk, fixed_buffers_of_a_read_only_region_are_refused)
{
	int ro = open_id(self->dev, id_of(self->dev, self->fd), 0);
	char *mem = map_aligned(ro, SIZE, PROT_READ);
	struct ring ring;

	ASSERT_NE(MAP_FAILED, mem);
	ASSERT_EQ(0, ring_open(&ring));
	/* Every fixed buffer may be read into, so that all are pinned for writing. */
	EXPECT_EQ(-EFAULT, register_part(&ring, mem, true, variant->at, variant->size));
	ring_close(&ring);
}

TEST_F(disk, reads_by_io_uring_without_fixed_buffers)
{
	struct ring ring;

	ASSERT_EQ(0, ring_open(&ring));
	ASSERT_EQ((int)variant->size,
		  ring_do(&ring, IORING_OP_READ, self->direct, self->mem + variant->at,
			  variant->size, variant->position));
	EXPECT_TRUE(replaced(self->mem, SIZE, self->region_image, variant->at, variant->size,
			     self->disk_image + variant->position));
	ring_close(&ring);
}

/* The pages stay the device's until it is done, and come to nobody else. */
TEST_F(disk, read_in_flight_writes_into_no_other_region)
{
	long regions = read_number(SYSFS "regions");
	char *others[8];
	struct ring ring;
	int result;
	size_t i;

	ASSERT_EQ(0, ring_open(&ring));
	ASSERT_EQ(0, ring_submit(&ring, IORING_OP_READ, self->direct, self->mem + variant->at,
				 variant->size, variant->position));
	munmap(self->mem, SIZE);
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(regions - 1, read_number(SYSFS "regions"));
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		int fd = create(self->dev, SIZE, NULL);

		others[i] = map_aligned(fd, SIZE, RW);
		ASSERT_NE(MAP_FAILED, others[i]);
		close(fd);
		memcpy(others[i], self->region_image, SIZE);
	}
	result = ring_wait(&ring);
	/* The kernel takes the pages of a long read little by little, and here some are gone. */
	EXPECT_TRUE(result == (int)variant->size || result == -EIO || result == -EFAULT);
	for (i = 0; i < ARRAY_SIZE(others); i++)
		EXPECT_EQ(0, memcmp(others[i], self->region_image, SIZE));
	ring_close(&ring);
}

TEST_HARNESS_MAIN
