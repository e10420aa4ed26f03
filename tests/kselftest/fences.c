// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two devices and the processors wait for one another, by the fences of a region.
 *
 * The devices are two open files of vgem, which adds a fence when it is told to, and signals it
 * when it is told to, or after ten seconds.
 */
#include <linux/sync_file.h>

#include "fence.h"
#include "harness.h"
#include "proc.h"

#define SIZE (2 * MIB)

FIXTURE(fences)
{
	int dev;
	int rw;
	int ro;
	int drm;
	int other;
	char *mem;
};

/* What each of two uses of the region does. */
FIXTURE_VARIANT(fences)
{
	bool first_writes;
	bool second_writes;
};

FIXTURE_VARIANT_ADD(fences, write_after_write)
{
	.first_writes = true,
	.second_writes = true,
};

FIXTURE_VARIANT_ADD(fences, read_after_write)
{
	.first_writes = true,
};

FIXTURE_VARIANT_ADD(fences, write_after_read)
{
	.second_writes = true,
};

FIXTURE_VARIANT_ADD(fences, read_after_read)
{
};

FIXTURE_SETUP(fences)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->rw = create(self->dev, SIZE, "shown");
	ASSERT_LE(0, self->rw);
	self->ro = open_name(self->dev, "shown", 0);
	ASSERT_LE(0, self->ro);
	self->mem = map(self->rw, SIZE, RW);
	ASSERT_NE(MAP_FAILED, self->mem);
	self->drm = open_drm("vgem");
	self->other = open_drm("vgem");
	ASSERT_LE(0, self->other);
}

FIXTURE_TEARDOWN(fences)
{
	close(self->other);
	close(self->drm);
	munmap(self->mem, SIZE);
	close(self->ro);
	close(self->rw);
	close(self->dev);
}

/* Has the second to wait for the first? */
static bool in_order(bool first_writes, bool second_writes)
{
	return first_writes || second_writes;
}

static int use(int drm, int fd, bool writes, struct drm_vgem_fence_attach *attach)
{
	*attach = (struct drm_vgem_fence_attach){ .flags = writes ? VGEM_FENCE_WRITE : 0 };
	return attach_fence(drm, fd, attach);
}

/* vgem doesn't wait for another device: it refuses. */
TEST_F(fences, of_one_device_are_seen_by_another)
{
	struct drm_vgem_fence_attach first, second;
	int again = open_name(self->dev, "shown", TSHARE_OPEN_WRITE);

	/* vgem is one device, also for it. */
	if (!access("/sys/kernel/debug/dma-api", F_OK))
		SKIP(return, "CONFIG_DMA_API_DEBUG takes what is mapped twice for a mistake");
	ASSERT_EQ(0, use(self->drm, self->rw, variant->first_writes, &first));
	ASSERT_EQ(in_order(variant->first_writes, variant->second_writes) ? -EBUSY : 0,
		  use(self->other, again, variant->second_writes, &second));
	ASSERT_EQ(0, signal_fence(self->drm, &first));
	ASSERT_EQ(0, use(self->other, again, variant->second_writes, &second));
	EXPECT_EQ(0, signal_fence(self->other, &second));
}

/* A child that waits for its turn by @wait, and ends with whether it then sees the pattern. */
static pid_t start_user(int (*wait)(int fd, bool writes), int fd, bool writes, const char *mem)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		_exit(wait(fd, writes) || !filled(mem, SIZE, 1));
	return pid;
}

static int wait_by_cpu_access(int fd, bool writes)
{
	struct dma_buf_sync args = {
		.flags = DMA_BUF_SYNC_START | (writes ? DMA_BUF_SYNC_WRITE : DMA_BUF_SYNC_READ),
	};

	return xioctl(fd, DMA_BUF_IOCTL_SYNC, &args);
}

static int wait_by_poll(int fd, bool writes)
{
	struct pollfd polled = { .fd = fd, .events = writes ? POLLOUT : POLLIN };

	return poll(&polled, 1, -1) != 1;
}

static int wait_by_sync_file(int fd, bool writes)
{
	return wait_by_poll(export_fences(fd, writes ? DMA_BUF_SYNC_WRITE : DMA_BUF_SYNC_READ),
			    false);
}

static int (*const waits[])(int fd, bool writes) = {
	wait_by_cpu_access,
	wait_by_poll,
	wait_by_sync_file,
};

/* Exit status of a child that uses the region while a device does, which then is done. */
static int use_after_device(int drm, int rw, bool device_writes, int (*wait)(int fd, bool writes),
			    int fd, bool writes, char *mem)
{
	struct drm_vgem_fence_attach first;
	int status;
	pid_t pid;

	memset(mem, 0, SIZE);
	if (use(drm, rw, device_writes, &first))
		return -1;
	pid = start_user(wait, fd, writes, mem);
	wait_for_sleep(pid);
	/* What the device does last. */
	fill(mem, SIZE, 1);
	if (signal_fence(drm, &first) || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(fences, of_a_device_hold_up_a_process_until_it_is_done)
{
	size_t i;

	if (!in_order(variant->first_writes, variant->second_writes))
		return;
	for (i = 0; i < ARRAY_SIZE(waits); i++)
		EXPECT_EQ(0, use_after_device(self->drm, self->rw, variant->first_writes, waits[i],
					      self->ro, variant->second_writes, self->mem)) {
			TH_LOG("way %zu", i);
		}
}

TEST_F(fences, of_readers_do_not_hold_up_readers)
{
	struct drm_vgem_fence_attach first;
	size_t i;

	if (in_order(variant->first_writes, variant->second_writes))
		return;
	ASSERT_EQ(0, use(self->drm, self->rw, false, &first));
	for (i = 0; i < ARRAY_SIZE(waits); i++)
		EXPECT_EQ(0, waits[i](self->ro, false));
	/* It is there still. */
	EXPECT_EQ(0, ready(self->ro, POLLOUT));
	EXPECT_EQ(0, signal_fence(self->drm, &first));
}

/* The driver signals what its file leaves, so that nobody waits for a process that is gone. */
TEST_F(fences, of_a_device_that_is_closed_hold_up_nobody)
{
	struct drm_vgem_fence_attach first;

	ASSERT_EQ(0, use(self->drm, self->rw, variant->first_writes, &first));
	EXPECT_EQ(0, ready(self->ro, POLLOUT));
	close(self->drm);
	EXPECT_EQ(POLLIN | POLLOUT, ready(self->ro, POLLIN | POLLOUT));
	self->drm = -1;
}

/* 0 as long as it is pending, 1 when it is signalled; the number of fences is stored. */
static int sync_file_status(int fd, __u32 *count)
{
	struct sync_file_info info = {};
	int err = xioctl(fd, SYNC_IOC_FILE_INFO, &info);

	*count = info.num_fences;
	return err ? err : info.status;
}

static int merge_sync_files(int one, int two)
{
	struct sync_merge_data args = { .name = "both", .fd2 = two };
	int err = xioctl(one, SYNC_IOC_MERGE, &args);

	return err ? err : args.fence;
}

TEST_F(fences, of_two_ranges_are_merged_in_a_sync_file)
{
	struct drm_vgem_fence_attach first, second;
	int one, two, both;
	__u32 count;

	one = export_range(self->dev, self->rw, 0, MIB, TSHARE_EXPORT_WRITE);
	two = export_range(self->dev, self->rw, MIB, MIB, TSHARE_EXPORT_WRITE);
	ASSERT_LE(0, two);
	ASSERT_EQ(0, use(self->drm, one, variant->first_writes, &first));
	ASSERT_EQ(0, use(self->other, two, variant->second_writes, &second));
	both = merge_sync_files(export_fences(one, DMA_BUF_SYNC_WRITE),
				export_fences(two, DMA_BUF_SYNC_WRITE));
	ASSERT_LE(0, both);
	EXPECT_EQ(0, sync_file_status(both, &count));
	EXPECT_EQ(2, count);
	ASSERT_EQ(0, signal_fence(self->other, &second));
	EXPECT_EQ(0, sync_file_status(both, &count));
	EXPECT_EQ(0, ready(both, POLLIN));
	ASSERT_EQ(0, signal_fence(self->drm, &first));
	EXPECT_EQ(1, sync_file_status(both, &count));
	EXPECT_EQ(POLLIN, ready(both, POLLIN));
}

/* What one device has to wait for comes to another region by a sync_file, with its fence. */
TEST_F(fences, of_one_region_hold_up_a_device_of_another)
{
	struct drm_vgem_fence_attach first, second;
	struct dma_buf_import_sync_file import = {
		.flags = variant->first_writes ? DMA_BUF_SYNC_WRITE : DMA_BUF_SYNC_READ,
	};
	int fd = create(self->dev, SIZE, NULL);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, use(self->drm, self->rw, variant->first_writes, &first));
	import.fd = export_fences(self->rw, DMA_BUF_SYNC_WRITE);
	ASSERT_LE(0, import.fd);
	ASSERT_EQ(0, xioctl(fd, DMA_BUF_IOCTL_IMPORT_SYNC_FILE, &import));
	ASSERT_EQ(in_order(variant->first_writes, variant->second_writes) ? -EBUSY : 0,
		  use(self->other, fd, variant->second_writes, &second));
	ASSERT_EQ(0, signal_fence(self->drm, &first));
	ASSERT_EQ(0, use(self->other, fd, variant->second_writes, &second));
	EXPECT_EQ(0, signal_fence(self->other, &second));
}

TEST_HARNESS_MAIN
