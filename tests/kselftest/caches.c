// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device that doesn't see the processors' caches: for which addresses, and when, the kernel
 * writes cache lines back and forgets them. An emulated processor has no caches, so the calls
 * are counted. The driver is loaded with noncoherent=1.
 */
#include "device.h"
#include "harness.h"
#include "tracing.h"

#define SIZE (256 * KIB)
#define FOR_CPU "tshare_for_cpu"
#define FOR_DEVICE "tshare_for_device"

static void __attribute__((constructor)) need_caches(void)
{
	FILE *file = fopen("/sys/module/tshare_importer/parameters/noncoherent", "re");
	bool noncoherent = file && fgetc(file) == 'Y';

	if (file)
		fclose(file);
	if (!noncoherent)
		ksft_exit_skip("the device sees the caches\n");
	trace_mount();
}

static bool probe(const char *event, const char *function)
{
	char path[128];

	snprintf(path, sizeof(path), TRACING "events/kprobes/%s/enable", event);
	return write_file(TRACING "kprobe_events",
			  "p:%s %s start=$arg1:u64 size=$arg2:u64 dir=$arg3:s32", event,
			  function) &&
	       write_file(path, "1");
}

/*
 * Bytes of [start, start + size) that the calls of @event since trace_clear() are for;
 * -1 if one is for others, or for another direction.
 */
static long long calls_for(const char *event, __u64 start, __u64 size, int direction)
{
	FILE *file = fopen(TRACING "trace", "re");
	unsigned long long at, len;
	long long bytes = 0;
	char line[512], call[64];
	const char *found;
	int dir;

	snprintf(call, sizeof(call), " %s: ", event);
	while (file && bytes >= 0 && fgets(line, sizeof(line), file)) {
		found = strstr(line, call);
		if (!found)
			continue;
		found = strstr(found, "start=");
		if (!found || sscanf(found, "start=%llu size=%llu dir=%d", &at, &len, &dir) != 3 ||
		    at < start || at + len > start + size || dir != direction)
			bytes = -1;
		else
			bytes += len;
	}
	if (!file)
		return -1;
	fclose(file);
	return bytes;
}

/* Bytes of the longest call of @event since trace_clear(). */
static unsigned long long longest_call(const char *event)
{
	FILE *file = fopen(TRACING "trace", "re");
	unsigned long long len, longest = 0;
	char line[512], call[64];
	const char *found;

	snprintf(call, sizeof(call), " %s: ", event);
	while (file && fgets(line, sizeof(line), file)) {
		found = strstr(line, call);
		if (found)
			found = strstr(found, "size=");
		if (found && sscanf(found, "size=%llu", &len) == 1 && len > longest)
			longest = len;
	}
	if (file)
		fclose(file);
	return longest;
}

FIXTURE(caches)
{
	int dev;
	int fd;
	int importer;
	__u64 start;
};

FIXTURE_VARIANT(caches)
{
	int direction;
};

FIXTURE_VARIANT_ADD(caches, of_a_device_that_reads)
{
	.direction = IMPORTER_TO_DEVICE,
};

FIXTURE_VARIANT_ADD(caches, of_a_device_that_writes)
{
	.direction = IMPORTER_FROM_DEVICE,
};

FIXTURE_VARIANT_ADD(caches, of_a_device_that_does_both)
{
	.direction = IMPORTER_BOTH_WAYS,
};

FIXTURE_SETUP(caches)
{
	struct tshare_info info;

	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->fd = create(self->dev, SIZE, NULL);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, get_info(self->dev, self->fd, &info));
	self->start = info.phys_addr;
	self->importer = open_importer();
	ASSERT_LE(0, self->importer);
	ASSERT_TRUE(probe(FOR_CPU, "arch_sync_dma_for_cpu"));
	ASSERT_TRUE(probe(FOR_DEVICE, "arch_sync_dma_for_device"));
	ASSERT_TRUE(trace_clear());
}

FIXTURE_TEARDOWN(caches)
{
	EXPECT_TRUE(write_file(TRACING "events/kprobes/enable", "0"));
	EXPECT_TRUE(write_file(TRACING "kprobe_events", "-:" FOR_CPU));
	EXPECT_TRUE(write_file(TRACING "kprobe_events", "-:" FOR_DEVICE));
	close(self->importer);
	close(self->fd);
	close(self->dev);
}

TEST_F(caches, are_written_back_when_the_device_maps_the_region)
{
	ASSERT_EQ(0, attach(self->importer, self->fd, variant->direction));
	EXPECT_EQ((long long)SIZE, calls_for(FOR_DEVICE, self->start, SIZE, variant->direction));
	EXPECT_EQ(0, calls_for(FOR_CPU, self->start, SIZE, variant->direction));
}

TEST_F(caches, are_forgotten_when_cpu_access_begins)
{
	ASSERT_EQ(0, attach(self->importer, self->fd, variant->direction));
	ASSERT_TRUE(trace_clear());
	ASSERT_EQ(0, cpu_access(self->fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW));
	EXPECT_EQ((long long)SIZE, calls_for(FOR_CPU, self->start, SIZE, variant->direction));
	EXPECT_EQ(0, calls_for(FOR_DEVICE, self->start, SIZE, variant->direction));
}

TEST_F(caches, are_written_back_when_cpu_access_ends)
{
	ASSERT_EQ(0, attach(self->importer, self->fd, variant->direction));
	ASSERT_EQ(0, cpu_access(self->fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW));
	ASSERT_TRUE(trace_clear());
	ASSERT_EQ(0, cpu_access(self->fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW));
	EXPECT_EQ((long long)SIZE, calls_for(FOR_DEVICE, self->start, SIZE, variant->direction));
	EXPECT_EQ(0, calls_for(FOR_CPU, self->start, SIZE, variant->direction));
}

/* Between two calls the kernel can run other tasks. */
TEST_F(caches, are_synced_2_mib_at_a_time_for_a_device_with_large_segments)
{
	const __u64 size = 5 * MIB;
	int fd = create(self->dev, size, NULL);
	struct importer_attach args = attach_args(fd, variant->direction);
	struct tshare_info info;

	args.segment_max = 64 * MIB;
	ASSERT_EQ(0, get_info(self->dev, fd, &info));
	ASSERT_EQ(0, xioctl(self->importer, IMPORTER_IOCTL_ATTACH, &args));
	EXPECT_EQ(1, args.entries);
	ASSERT_TRUE(trace_clear());
	ASSERT_EQ(0, cpu_access(fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW));
	ASSERT_EQ(0, cpu_access(fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW));
	EXPECT_EQ((long long)size, calls_for(FOR_CPU, info.phys_addr, size, variant->direction));
	EXPECT_EQ((long long)size, calls_for(FOR_DEVICE, info.phys_addr, size, variant->direction));
	EXPECT_EQ(2 * MIB, longest_call(FOR_CPU));
	EXPECT_EQ(2 * MIB, longest_call(FOR_DEVICE));
	close(fd);
}

TEST_F(caches, are_kept_where_a_bracket_for_writing_is_open)
{
	ASSERT_EQ(0, attach(self->importer, self->fd, variant->direction));
	ASSERT_EQ(0, cpu_access(self->fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_WRITE));
	ASSERT_TRUE(trace_clear());
	ASSERT_EQ(0, cpu_access(self->fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ));
	EXPECT_EQ(0, calls_for(FOR_CPU, self->start, SIZE, variant->direction));
}

TEST_F(caches, are_kept_when_an_access_for_reading_ends)
{
	ASSERT_EQ(0, attach(self->importer, self->fd, variant->direction));
	ASSERT_EQ(0, cpu_access(self->fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ));
	ASSERT_TRUE(trace_clear());
	ASSERT_EQ(0, cpu_access(self->fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_READ));
	EXPECT_EQ(0, calls_for(FOR_DEVICE, self->start, SIZE, variant->direction));
}

TEST_F(caches, are_forgotten_when_the_device_unmaps_the_region)
{
	ASSERT_EQ(0, attach(self->importer, self->fd, variant->direction));
	ASSERT_TRUE(trace_clear());
	ASSERT_EQ(0, xioctl(self->importer, IMPORTER_IOCTL_DETACH, NULL));
	EXPECT_EQ((long long)SIZE, calls_for(FOR_CPU, self->start, SIZE, variant->direction));
}

TEST_F(caches, are_kept_for_a_device_that_has_unmapped_the_region)
{
	ASSERT_EQ(0, attach(self->importer, self->fd, variant->direction));
	ASSERT_EQ(0, xioctl(self->importer, IMPORTER_IOCTL_DETACH, NULL));
	ASSERT_TRUE(trace_clear());
	ASSERT_EQ(0, cpu_access(self->fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW));
	ASSERT_EQ(0, cpu_access(self->fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW));
	EXPECT_EQ(0, calls_for(FOR_CPU, self->start, SIZE, variant->direction));
	EXPECT_EQ(0, calls_for(FOR_DEVICE, self->start, SIZE, variant->direction));
}

/* Across two of the device's segments. */
TEST_F(caches, of_the_part_alone_when_a_part_is_accessed)
{
	const __u64 offset = 60 * KIB, size = 8 * KIB;
	int part = export_range(self->dev, self->fd, offset, size, TSHARE_EXPORT_WRITE);

	ASSERT_LE(0, part);
	ASSERT_EQ(0, attach(self->importer, self->fd, variant->direction));
	ASSERT_TRUE(trace_clear());
	ASSERT_EQ(0, cpu_access(part, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW));
	ASSERT_EQ(0, cpu_access(part, DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW));
	EXPECT_EQ((long long)size,
		  calls_for(FOR_CPU, self->start + offset, size, variant->direction));
	EXPECT_EQ((long long)size,
		  calls_for(FOR_DEVICE, self->start + offset, size, variant->direction));
	close(part);
}

TEST_HARNESS_MAIN
