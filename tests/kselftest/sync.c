// SPDX-License-Identifier: GPL-2.0-only
/* Calls of a dma-buf besides mapping: CPU access, fences, poll, seek. */
#include <linux/dma-buf.h>
#include <linux/sync_file.h>
#include <poll.h>

#include "harness.h"

FIXTURE(sync)
{
	int dev;
	int rw;
	int ro;
};

FIXTURE_SETUP(sync)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->rw = create(self->dev, 3 * MIB, "synced");
	ASSERT_LE(0, self->rw);
	self->ro = open_name(self->dev, "synced", 0);
	ASSERT_LE(0, self->ro);
}

FIXTURE_TEARDOWN(sync)
{
	close(self->ro);
	close(self->rw);
	close(self->dev);
}

static int sync_access(int fd, __u64 flags)
{
	struct dma_buf_sync args = { .flags = flags };

	return xioctl(fd, DMA_BUF_IOCTL_SYNC, &args);
}

TEST_F(sync, cpu_access_begins_and_ends)
{
	static const __u64 ways[] = { DMA_BUF_SYNC_READ, DMA_BUF_SYNC_WRITE, DMA_BUF_SYNC_RW };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		EXPECT_EQ(0, sync_access(self->rw, ways[i] | DMA_BUF_SYNC_START));
		EXPECT_EQ(0, sync_access(self->rw, ways[i] | DMA_BUF_SYNC_END));
		EXPECT_EQ(0, sync_access(self->ro, ways[i] | DMA_BUF_SYNC_START));
		EXPECT_EQ(0, sync_access(self->ro, ways[i] | DMA_BUF_SYNC_END));
	}
}

TEST_F(sync, cpu_access_without_a_way_is_einval)
{
	EXPECT_EQ(-EINVAL, sync_access(self->rw, DMA_BUF_SYNC_START));
	EXPECT_EQ(-EINVAL, sync_access(self->rw, DMA_BUF_SYNC_END));
}

TEST_F(sync, unknown_cpu_access_flags_are_einval)
{
	int bit;

	for (bit = 0; bit < 64; bit++)
		if (!(DMA_BUF_SYNC_VALID_FLAGS_MASK & 1ULL << bit))
			EXPECT_EQ(-EINVAL,
				  sync_access(self->rw, DMA_BUF_SYNC_RW | 1ULL << bit));
}

TEST_F(sync, size_is_found_by_seeking)
{
	EXPECT_EQ(3 * MIB, lseek(self->ro, 0, SEEK_END));
	EXPECT_EQ(0, lseek(self->ro, 0, SEEK_SET));
	EXPECT_EQ(-1, lseek(self->ro, PAGE, SEEK_SET));
}

TEST_F(sync, idle_region_is_ready)
{
	struct pollfd polled = { .fd = self->ro, .events = POLLIN | POLLOUT };

	EXPECT_EQ(1, poll(&polled, 1, 0));
	EXPECT_EQ(POLLIN | POLLOUT, polled.revents);
}

TEST_F(sync, idle_region_gives_a_fence_that_is_signalled)
{
	struct dma_buf_export_sync_file export = { .flags = DMA_BUF_SYNC_RW };
	struct pollfd polled = { .events = POLLIN };

	ASSERT_EQ(0, xioctl(self->ro, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &export));
	polled.fd = export.fd;
	EXPECT_EQ(1, poll(&polled, 1, 0));
	EXPECT_EQ(POLLIN, polled.revents);
}

TEST_F(sync, fence_is_taken_back)
{
	struct dma_buf_export_sync_file export = { .flags = DMA_BUF_SYNC_RW };
	struct dma_buf_import_sync_file import = { .flags = DMA_BUF_SYNC_WRITE };

	ASSERT_EQ(0, xioctl(self->rw, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &export));
	import.fd = export.fd;
	EXPECT_EQ(0, xioctl(self->rw, DMA_BUF_IOCTL_IMPORT_SYNC_FILE, &import));
	import.fd = self->rw;
	EXPECT_EQ(-EINVAL, xioctl(self->rw, DMA_BUF_IOCTL_IMPORT_SYNC_FILE, &import));
}

/* The value of a field of the descriptor's fdinfo, or "" if it has none. */
static const char *fdinfo(int fd, const char *field)
{
	static char value[128];
	char path[64], line[128];
	size_t len = strlen(field);
	FILE *file;

	*value = 0;
	sprintf(path, "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, field, len) && !strncmp(line + len, ":\t", 2))
			sprintf(value, "%.*s", (int)strcspn(line + len + 2, "\n"), line + len + 2);
	if (file)
		fclose(file);
	return value;
}

TEST_F(sync, dma_buf_can_be_named)
{
	EXPECT_EQ(0, xioctl(self->rw, DMA_BUF_SET_NAME_B, "tshare-test"));
	EXPECT_STREQ("tshare-test", fdinfo(self->rw, "name"));
	/* Another opener's keeps its own. */
	EXPECT_STREQ("synced", fdinfo(self->ro, "name"));
}

TEST_F(sync, dma_bufs_name_is_the_regions)
{
	int part = export_range(self->dev, self->rw, PAGE, PAGE, 0);

	EXPECT_STREQ("synced", fdinfo(self->rw, "name"));
	EXPECT_STREQ("synced", fdinfo(self->ro, "name"));
	EXPECT_STREQ("synced", fdinfo(part, "name"));
	ASSERT_EQ(0, unlink_name(self->dev, "synced"));
	EXPECT_STREQ("synced", fdinfo(self->rw, "name"));
}

TEST_F(sync, dma_buf_of_a_region_without_a_name_has_none)
{
	EXPECT_STREQ("", fdinfo(create(self->dev, PAGE, NULL), "name"));
}

TEST_F(sync, dma_bufs_name_is_the_beginning_of_a_long_one)
{
	int fd = create(self->dev, PAGE, "0123456789012345678901234567890123456789");

	EXPECT_STREQ("0123456789012345678901234567890", fdinfo(fd, "name"));
}

/* It is another user's who chose the name. */
TEST_F(sync, name_makes_no_lines_in_fdinfo)
{
	int fd = create(self->dev, PAGE, "two\nsize:\t1");

	EXPECT_STREQ("two?size:?1", fdinfo(fd, "name"));
	EXPECT_STREQ("4096", fdinfo(fd, "size"));
}

TEST_F(sync, mapping_has_the_regions_name)
{
	char line[256], *mem = map(self->rw, PAGE, RW);
	FILE *file = fopen("/proc/self/maps", "re");
	unsigned long start;
	bool found = false;

	ASSERT_NE(MAP_FAILED, mem);
	ASSERT_NE(NULL, file);
	while (fgets(line, sizeof(line), file))
		found |= sscanf(line, "%lx-", &start) == 1 && start == (uintptr_t)mem &&
			 strstr(line, "/dmabuf:synced");
	fclose(file);
	EXPECT_TRUE(found);
}

#define BUFINFO "/sys/kernel/debug/dma_buf/bufinfo"

TEST_F(sync, dma_buf_is_in_bufinfo_by_its_name)
{
	FILE *file = fopen(BUFINFO, "re");
	char line[512];
	int found = 0;

	if (!file)
		SKIP(return, "the kernel has no debugfs");
	while (fgets(line, sizeof(line), file))
		found += strstr(line, "\ttshare\t") && strstr(line, "\tsynced\n");
	fclose(file);
	EXPECT_EQ(2, found);
}

TEST_F(sync, exporter_is_named_in_fdinfo)
{
	EXPECT_STREQ("tshare", fdinfo(self->ro, "exp_name"));
}

TEST_HARNESS_MAIN
