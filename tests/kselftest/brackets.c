// SPDX-License-Identifier: GPL-2.0-only
/*
 * Brackets: CPU access from DMA_BUF_SYNC_START to DMA_BUF_SYNC_END, while others use the same
 * pages. What is copied between memory and a device's copy of it, and what is kept.
 *
 * With swiotlb=force there are two copies. Elsewhere there is one, and no byte of it may be
 * lost either.
 */
#include <sys/prctl.h>

#include "device.h"
#include "fence.h"
#include "harness.h"
#include "proc.h"

#define SIZE (256 * KIB)
#define HALF (SIZE / 2)

static int start(int fd, __u64 way)
{
	return cpu_access(fd, DMA_BUF_SYNC_START | way);
}

static int end(int fd, __u64 way)
{
	return cpu_access(fd, DMA_BUF_SYNC_END | way);
}

/* A region, a device that imports it, and descriptors of two writers and a reader. */
struct shared {
	int dev;
	int rw;
	int rw2;
	int ro;
	int importer;
	char *mem;
};

static bool set_up(struct shared *shared)
{
	shared->dev = open_device();
	shared->rw = create(shared->dev, SIZE, "bracketed");
	shared->rw2 = open_name(shared->dev, "bracketed", TSHARE_OPEN_WRITE);
	shared->ro = open_name(shared->dev, "bracketed", 0);
	shared->mem = map(shared->rw, SIZE, RW);
	shared->importer = open_importer();
	return shared->rw2 >= 0 && shared->ro >= 0 && shared->mem != MAP_FAILED &&
	       shared->importer >= 0;
}

static void tear_down(struct shared *shared)
{
	close(shared->importer);
	munmap(shared->mem, SIZE);
	close(shared->ro);
	close(shared->rw2);
	close(shared->rw);
	close(shared->dev);
}

/* One access, of any direction through either kind of descriptor. */
FIXTURE(access)
{
	struct shared on;
	int fd;
	bool stores; /* the access may store */
};

FIXTURE_VARIANT(access)
{
	__u64 way;
	bool writable;
};

FIXTURE_VARIANT_ADD(access, of_a_reader_that_reads)
{
	.way = DMA_BUF_SYNC_READ,
};

FIXTURE_VARIANT_ADD(access, of_a_reader_that_writes)
{
	.way = DMA_BUF_SYNC_WRITE,
};

FIXTURE_VARIANT_ADD(access, of_a_reader_that_does_both)
{
	.way = DMA_BUF_SYNC_RW,
};

FIXTURE_VARIANT_ADD(access, of_a_writer_that_reads)
{
	.way = DMA_BUF_SYNC_READ,
	.writable = true,
};

FIXTURE_VARIANT_ADD(access, of_a_writer_that_writes)
{
	.way = DMA_BUF_SYNC_WRITE,
	.writable = true,
};

FIXTURE_VARIANT_ADD(access, of_a_writer_that_does_both)
{
	.way = DMA_BUF_SYNC_RW,
	.writable = true,
};

FIXTURE_SETUP(access)
{
	ASSERT_TRUE(set_up(&self->on));
	self->fd = variant->writable ? self->on.rw2 : self->on.ro;
	self->stores = variant->writable && variant->way & DMA_BUF_SYNC_WRITE;
	ASSERT_EQ(0, attach(self->on.importer, self->on.rw, IMPORTER_BOTH_WAYS));
}

FIXTURE_TEARDOWN(access)
{
	tear_down(&self->on);
}

TEST_F(access, shows_what_the_device_wrote)
{
	ASSERT_EQ(0, device_writes(self->on.importer, 0, 1));
	ASSERT_EQ(0, start(self->fd, variant->way));
	EXPECT_TRUE(filled(self->on.mem, CHUNK, 1));
}

TEST_F(access, keeps_what_a_writer_stores_in_its_bracket)
{
	ASSERT_EQ(0, start(self->on.rw, DMA_BUF_SYNC_WRITE));
	fill(self->on.mem, CHUNK, 1);
	ASSERT_EQ(0, start(self->fd, variant->way));
	EXPECT_TRUE(filled(self->on.mem, CHUNK, 1));
	if (self->stores)
		fill(self->on.mem + HALF, CHUNK, 2);
	ASSERT_EQ(0, end(self->fd, variant->way));
	ASSERT_EQ(0, end(self->on.rw, DMA_BUF_SYNC_WRITE));
	EXPECT_TRUE(device_reads(self->on.importer, 0, 1));
	if (self->stores)
		EXPECT_TRUE(device_reads(self->on.importer, HALF, 2));
}

/* It stores in one half, and the device wrote in the other. */
TEST_F(access, keeps_what_the_device_wrote_before_it)
{
	ASSERT_EQ(0, device_writes(self->on.importer, 0, 1));
	ASSERT_EQ(0, start(self->fd, variant->way));
	if (self->stores)
		fill(self->on.mem + HALF, CHUNK, 2);
	ASSERT_EQ(0, end(self->fd, variant->way));
	EXPECT_TRUE(device_reads(self->on.importer, 0, 1));
	ASSERT_EQ(0, start(self->on.ro, DMA_BUF_SYNC_READ));
	EXPECT_TRUE(filled(self->on.mem, CHUNK, 1));
	if (self->stores)
		EXPECT_TRUE(filled(self->on.mem + HALF, CHUNK, 2));
}

TEST_F(access, gives_the_device_what_a_writer_stored_and_nothing_else)
{
	ASSERT_EQ(0, start(self->fd, variant->way));
	ASSERT_EQ(0, device_writes(self->on.importer, 0, 1));
	if (self->stores)
		fill(self->on.mem, CHUNK, 2);
	ASSERT_EQ(0, end(self->fd, variant->way));
	EXPECT_TRUE(device_reads(self->on.importer, 0, self->stores ? 2 : 1));
}

TEST_F(access, that_only_ends_keeps_what_the_device_wrote)
{
	ASSERT_EQ(0, device_writes(self->on.importer, 0, 1));
	ASSERT_EQ(0, end(self->fd, variant->way));
	ASSERT_EQ(0, start(self->on.rw, DMA_BUF_SYNC_READ));
	EXPECT_TRUE(filled(self->on.mem, CHUNK, 1));
}

TEST_F(access, that_ends_twice_keeps_what_the_device_wrote)
{
	ASSERT_EQ(0, start(self->fd, variant->way));
	ASSERT_EQ(0, end(self->fd, variant->way));
	ASSERT_EQ(0, device_writes(self->on.importer, 0, 1));
	ASSERT_EQ(0, end(self->fd, variant->way));
	ASSERT_EQ(0, start(self->on.rw, DMA_BUF_SYNC_READ));
	EXPECT_TRUE(filled(self->on.mem, CHUNK, 1));
}

/* An access that stores nothing opens none, so it needs no end. */
TEST_F(access, leaves_no_bracket_open)
{
	ASSERT_EQ(0, start(self->fd, variant->way));
	if (self->stores)
		ASSERT_EQ(0, end(self->fd, variant->way));
	ASSERT_EQ(0, device_writes(self->on.importer, 0, 1));
	ASSERT_EQ(0, start(self->on.ro, DMA_BUF_SYNC_READ));
	EXPECT_TRUE(filled(self->on.mem, CHUNK, 1));
}

/* A writer's brackets. */
FIXTURE(writers)
{
	struct shared on;
};

FIXTURE_SETUP(writers)
{
	ASSERT_TRUE(set_up(&self->on));
}

FIXTURE_TEARDOWN(writers)
{
	tear_down(&self->on);
}

TEST_F(writers, bracket_is_open_until_its_last_end)
{
	ASSERT_EQ(0, attach(self->on.importer, self->on.rw, IMPORTER_BOTH_WAYS));
	ASSERT_EQ(0, start(self->on.rw, DMA_BUF_SYNC_WRITE));
	ASSERT_EQ(0, start(self->on.rw, DMA_BUF_SYNC_RW));
	ASSERT_EQ(0, end(self->on.rw, DMA_BUF_SYNC_RW));
	fill(self->on.mem, CHUNK, 1);
	ASSERT_EQ(0, start(self->on.ro, DMA_BUF_SYNC_READ));
	EXPECT_TRUE(filled(self->on.mem, CHUNK, 1));
	ASSERT_EQ(0, end(self->on.rw, DMA_BUF_SYNC_WRITE));
	ASSERT_EQ(0, device_writes(self->on.importer, 0, 2));
	ASSERT_EQ(0, start(self->on.ro, DMA_BUF_SYNC_READ));
	EXPECT_TRUE(filled(self->on.mem, CHUNK, 2));
}

TEST_F(writers, bracket_stays_open_when_an_access_for_reading_ends)
{
	ASSERT_EQ(0, attach(self->on.importer, self->on.rw, IMPORTER_BOTH_WAYS));
	ASSERT_EQ(0, start(self->on.rw, DMA_BUF_SYNC_WRITE));
	ASSERT_EQ(0, end(self->on.rw, DMA_BUF_SYNC_READ));
	fill(self->on.mem, CHUNK, 1);
	ASSERT_EQ(0, start(self->on.ro, DMA_BUF_SYNC_READ));
	EXPECT_TRUE(filled(self->on.mem, CHUNK, 1));
}

/* As when the process is killed. */
TEST_F(writers, bracket_ends_with_its_dma_buf)
{
	ASSERT_EQ(0, attach(self->on.importer, self->on.rw, IMPORTER_BOTH_WAYS));
	ASSERT_EQ(0, start(self->on.rw2, DMA_BUF_SYNC_WRITE));
	fill(self->on.mem, CHUNK, 1);
	close(self->on.rw2);
	EXPECT_TRUE(device_reads(self->on.importer, 0, 1));
	ASSERT_EQ(0, device_writes(self->on.importer, HALF, 2));
	ASSERT_EQ(0, start(self->on.ro, DMA_BUF_SYNC_READ));
	EXPECT_TRUE(filled(self->on.mem, CHUNK, 1));
	EXPECT_TRUE(filled(self->on.mem + HALF, CHUNK, 2));
}

TEST_F(writers, stores_are_kept_beside_a_device_that_only_writes)
{
	ASSERT_EQ(0, attach(self->on.importer, self->on.rw, IMPORTER_FROM_DEVICE));
	ASSERT_EQ(0, start(self->on.rw, DMA_BUF_SYNC_WRITE));
	fill(self->on.mem, CHUNK, 1);
	ASSERT_EQ(0, start(self->on.ro, DMA_BUF_SYNC_READ));
	EXPECT_TRUE(filled(self->on.mem, CHUNK, 1));
}

TEST_F(writers, stores_are_kept_when_a_device_detaches)
{
	ASSERT_EQ(0, attach(self->on.importer, self->on.rw, IMPORTER_BOTH_WAYS));
	ASSERT_EQ(0, start(self->on.rw, DMA_BUF_SYNC_WRITE));
	fill(self->on.mem, CHUNK, 1);
	ASSERT_EQ(0, xioctl(self->on.importer, IMPORTER_IOCTL_DETACH, NULL));
	EXPECT_TRUE(filled(self->on.mem, CHUNK, 1));
}

TEST_F(writers, bracket_that_is_closed_keeps_nothing_from_a_device_that_detaches)
{
	ASSERT_EQ(0, attach(self->on.importer, self->on.rw, IMPORTER_BOTH_WAYS));
	ASSERT_EQ(0, start(self->on.rw, DMA_BUF_SYNC_WRITE));
	ASSERT_EQ(0, end(self->on.rw, DMA_BUF_SYNC_WRITE));
	ASSERT_EQ(0, device_writes(self->on.importer, 0, 1));
	ASSERT_EQ(0, xioctl(self->on.importer, IMPORTER_IOCTL_DETACH, NULL));
	EXPECT_TRUE(filled(self->on.mem, CHUNK, 1));
}

TEST_F(writers, bracket_of_a_range_keeps_no_other_pages_from_a_device_that_detaches)
{
	int fd = export_range(self->on.dev, self->on.rw, 14 * PAGE, PAGE, TSHARE_EXPORT_WRITE);

	ASSERT_EQ(0, attach(self->on.importer, self->on.rw, IMPORTER_BOTH_WAYS));
	ASSERT_EQ(0, device_writes(self->on.importer, 12 * PAGE, 1));
	ASSERT_EQ(0, start(fd, DMA_BUF_SYNC_WRITE));
	fill(self->on.mem + 14 * PAGE, CHUNK, 2);
	ASSERT_EQ(0, xioctl(self->on.importer, IMPORTER_IOCTL_DETACH, NULL));
	EXPECT_TRUE(filled(self->on.mem + 12 * PAGE, CHUNK, 1));
	EXPECT_TRUE(filled(self->on.mem + 14 * PAGE, CHUNK, 2));
	close(fd);
}

/* Brackets of three ranges, of which two overlap; their order is not that of their places. */
TEST_F(writers, brackets_of_ranges_keep_their_pages_and_no_others)
{
	static const struct {
		int first, pages;
	} brackets[] = { { 18, 2 }, { 14, 3 }, { 15, 1 } };
	size_t i;
	int page;

	ASSERT_EQ(0, attach(self->on.importer, self->on.rw, IMPORTER_BOTH_WAYS));
	for (page = 12; page < 24; page++)
		ASSERT_EQ(0, device_writes(self->on.importer, page * PAGE, page));
	for (i = 0; i < ARRAY_SIZE(brackets); i++) {
		int fd = export_range(self->on.dev, self->on.rw, brackets[i].first * PAGE,
				      brackets[i].pages * PAGE, TSHARE_EXPORT_WRITE);

		ASSERT_EQ(0, start(fd, DMA_BUF_SYNC_WRITE));
		for (page = 0; page < brackets[i].pages; page++)
			fill(self->on.mem + (brackets[i].first + page) * PAGE, CHUNK, 1);
	}
	ASSERT_EQ(0, start(self->on.ro, DMA_BUF_SYNC_READ));
	for (page = 12; page < 24; page++) {
		bool kept = (page >= 14 && page < 17) || page == 18 || page == 19;

		EXPECT_TRUE(filled(self->on.mem + page * PAGE, CHUNK, kept ? 1 : page));
	}
}

/* A device's copy of the memory is made before others know of it. */
TEST_F(writers, store_is_kept_that_ends_while_a_device_maps)
{
	char value = 0;
	int i, status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!pid) {
		if (attach(self->on.importer, self->on.rw2, IMPORTER_BOTH_WAYS) ||
		    xioctl(self->on.importer, IMPORTER_IOCTL_DETACH, NULL))
			_exit(1);
	}
	for (i = 0; i < rounds(20000); i++) {
		ASSERT_EQ(0, start(self->on.rw, DMA_BUF_SYNC_RW));
		ASSERT_EQ(value, *self->on.mem) TH_LOG("of store %d", i);
		*self->on.mem = ++value;
		ASSERT_EQ(0, end(self->on.rw, DMA_BUF_SYNC_RW));
	}
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
}

/* The core waits for fences only after it has called the exporter. */
TEST_F(writers, access_shows_what_the_device_wrote_before_its_fence)
{
	struct drm_vgem_fence_attach attached = { .flags = VGEM_FENCE_WRITE };
	int drm = open_drm("vgem"), other = create(self->on.dev, PAGE, NULL);
	int status;
	pid_t pid;

	ASSERT_LE(0, drm);
	ASSERT_EQ(0, attach(self->on.importer, self->on.rw, IMPORTER_BOTH_WAYS));
	/* Another region's, since vgem's own copy of this one would be a second device's. */
	ASSERT_EQ(0, attach_fence(drm, other, &attached));
	ASSERT_EQ(0, import_fences(self->on.rw, export_fences(other, DMA_BUF_SYNC_RW),
				   DMA_BUF_SYNC_WRITE));
	fflush(NULL);
	pid = fork();
	if (!pid)
		_exit(start(self->on.ro, DMA_BUF_SYNC_READ) || !filled(self->on.mem, CHUNK, 1));
	wait_for_sleep(pid);
	EXPECT_EQ(0, device_writes(self->on.importer, 0, 1));
	EXPECT_EQ(0, signal_fence(drm, &attached));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_HARNESS_MAIN
