// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device with a DMA engine that imports regions; driver/ has its driver.
 *
 * With swiotlb=force the device works on copies of the pages, which the CPU
 * sees only where they are synced, as on machines without coherent DMA.
 */
#include "device.h"
#include "harness.h"
#include "proc.h"

#define SIZE (256 * KIB)

/* The kernel log, from now on. */
static int open_log(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	return fd < 0 || lseek(fd, 0, SEEK_END) < 0 ? -1 : fd;
}

/* Waits half a minute for the IOMMU to complain of a device that has written. */
static bool write_faulted(int log)
{
	char line[8192];
	int tries = 0;

	while (tries < 3000) {
		ssize_t len = read(log, line, sizeof(line) - 1);

		if (len < 0) {
			usleep(10000);
			tries++;
			continue;
		}
		line[len] = 0;
		if (strstr(line, "DMAR:") && strstr(line, "[DMA Write"))
			return true;
	}
	return false;
}

/* One region, open for both, and two devices, or one that imports it twice. */
FIXTURE(device)
{
	int dev;
	int rw;
	int ro;
	int importer;
	int other;
	char *mem;
	struct counters before;
};

FIXTURE_SETUP(device)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->rw = create(self->dev, SIZE, "imported");
	ASSERT_LE(0, self->rw);
	self->ro = open_name(self->dev, "imported", 0);
	ASSERT_LE(0, self->ro);
	self->mem = map(self->rw, SIZE, RW);
	ASSERT_NE(MAP_FAILED, self->mem);
	self->importer = open_importer();
	ASSERT_LE(0, self->importer);
	self->other = open_importer();
	ASSERT_LE(0, self->other);
	self->before = count_all();
}

FIXTURE_TEARDOWN(device)
{
	munmap(self->mem, SIZE);
	close(self->other);
	close(self->importer);
	close(self->ro);
	close(self->rw);
	close(self->dev);
}

/* Each place is in another segment. */
static const __u64 places[] = { 0, 64 * KIB, SIZE - CHUNK };

TEST_F(device, writes_are_seen_after_cpu_access_begins)
{
	size_t i;

	ASSERT_EQ(0, attach(self->importer, self->rw, IMPORTER_FROM_DEVICE));
	for (i = 0; i < ARRAY_SIZE(places); i++)
		ASSERT_EQ(0, device_writes(self->importer, places[i], i));
	ASSERT_EQ(0, cpu_access(self->rw, DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ));
	for (i = 0; i < ARRAY_SIZE(places); i++)
		EXPECT_TRUE(filled(self->mem + places[i], CHUNK, i));
}

TEST_F(device, writes_are_seen_through_another_dma_buf_of_the_region)
{
	char *mem = map(self->ro, SIZE, PROT_READ);

	ASSERT_NE(MAP_FAILED, mem);
	ASSERT_EQ(0, attach(self->importer, self->rw, IMPORTER_BOTH_WAYS));
	ASSERT_EQ(0, device_writes(self->importer, PAGE, 1));
	ASSERT_EQ(0, cpu_access(self->ro, DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ));
	EXPECT_TRUE(filled(mem + PAGE, CHUNK, 1));
}

TEST_F(device, reads_what_was_written_before_cpu_access_ended)
{
	size_t i;

	ASSERT_EQ(0, attach(self->importer, self->rw, IMPORTER_TO_DEVICE));
	ASSERT_EQ(0, cpu_access(self->rw, DMA_BUF_SYNC_START | DMA_BUF_SYNC_WRITE));
	for (i = 0; i < ARRAY_SIZE(places); i++)
		fill(self->mem + places[i], CHUNK, i);
	ASSERT_EQ(0, cpu_access(self->rw, DMA_BUF_SYNC_END | DMA_BUF_SYNC_WRITE));
	for (i = 0; i < ARRAY_SIZE(places); i++)
		EXPECT_TRUE(device_reads(self->importer, places[i], i));
}

TEST_F(device, is_synced_with_other_mappings_of_the_region)
{
	/* It looks mappings up by address, and takes two of one device for an error. */
	if (!access("/sys/kernel/debug/dma-api", F_OK))
		SKIP(return, "CONFIG_DMA_API_DEBUG takes what is mapped twice for a mistake");
	ASSERT_EQ(0, attach(self->importer, self->rw, IMPORTER_TO_DEVICE));
	ASSERT_EQ(0, attach(self->other, self->ro, IMPORTER_TO_DEVICE));
	ASSERT_EQ(0, cpu_access(self->rw, DMA_BUF_SYNC_START | DMA_BUF_SYNC_WRITE));
	fill(self->mem, CHUNK, 1);
	ASSERT_EQ(0, cpu_access(self->rw, DMA_BUF_SYNC_END | DMA_BUF_SYNC_WRITE));
	EXPECT_TRUE(device_reads(self->importer, 0, 1));
	EXPECT_TRUE(device_reads(self->other, 0, 1));
}

/* Only one of the two writes: CONFIG_DMA_API_DEBUG reports two writers as an error. */
TEST_F(device, that_has_detached_is_not_synced)
{
	ASSERT_EQ(0, attach(self->importer, self->rw, IMPORTER_TO_DEVICE));
	ASSERT_EQ(0, attach(self->other, self->rw, IMPORTER_BOTH_WAYS));
	ASSERT_EQ(0, xioctl(self->importer, IMPORTER_IOCTL_DETACH, NULL));
	ASSERT_EQ(0, device_writes(self->other, 0, 1));
	ASSERT_EQ(0, cpu_access(self->rw, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW));
	EXPECT_TRUE(filled(self->mem, CHUNK, 1));
	fill(self->mem, CHUNK, 2);
	ASSERT_EQ(0, cpu_access(self->rw, DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW));
	EXPECT_TRUE(device_reads(self->other, 0, 2));
}

/* The condition of the tests above: here the device has copies of its own. */
TEST_F(device, without_coherent_memory_needs_cpu_access)
{
	if (!booted_with("swiotlb=force"))
		SKIP(return, "the device's memory is not bounced");
	ASSERT_EQ(0, attach(self->importer, self->rw, IMPORTER_BOTH_WAYS));
	ASSERT_EQ(0, device_writes(self->importer, 0, 1));
	EXPECT_TRUE(zeroed(self->mem, CHUNK));
	ASSERT_EQ(0, cpu_access(self->rw, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW));
	EXPECT_TRUE(filled(self->mem, CHUNK, 1));
	fill(self->mem, CHUNK, 2);
	EXPECT_TRUE(device_reads(self->importer, 0, 1));
	ASSERT_EQ(0, cpu_access(self->rw, DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW));
	EXPECT_TRUE(device_reads(self->importer, 0, 2));
}

TEST_F(device, sees_one_segment_behind_an_iommu)
{
	struct importer_attach args = attach_args(self->rw, IMPORTER_BOTH_WAYS);
	struct importer_entry entry = {};

	if (!booted_with("intel_iommu=on"))
		SKIP(return, "the device is not behind an IOMMU");
	args.segment_max = 2 * MIB;
	ASSERT_EQ(0, xioctl(self->importer, IMPORTER_IOCTL_ATTACH, &args));
	EXPECT_EQ(1, args.dma_entries);
	ASSERT_EQ(0, xioctl(self->importer, IMPORTER_IOCTL_ENTRY, &entry));
	EXPECT_EQ(SIZE, entry.dma_length);
	ASSERT_EQ(0, device_writes(self->importer, SIZE - CHUNK, 1));
	EXPECT_TRUE(filled(self->mem + SIZE - CHUNK, CHUNK, 1));
}

/* It was told that it may only read, and writes all the same: by mistake, or hacked. */
TEST_F(device, that_writes_a_read_only_dma_buf_behind_an_iommu_faults_and_changes_nothing)
{
	int log = open_log();

	if (!booted_with("intel_iommu=on"))
		SKIP(return, "the device is not behind an IOMMU");
	ASSERT_LE(0, log);
	fill(self->mem, SIZE, 1);
	ASSERT_EQ(0, attach(self->importer, self->ro, IMPORTER_TO_DEVICE));
	ASSERT_EQ(0, device_writes(self->importer, PAGE, 2));
	EXPECT_TRUE(write_faulted(log));
	EXPECT_TRUE(filled(self->mem, SIZE, 1));
	ASSERT_EQ(0, xioctl(self->importer, IMPORTER_IOCTL_DETACH, NULL));
	EXPECT_TRUE(filled(self->mem, SIZE, 1));
	EXPECT_EQ(-EACCES, attach(self->importer, self->ro, IMPORTER_BOTH_WAYS));
}

/* What it writes goes into its own copy, which is never copied back. */
TEST_F(device, that_writes_a_bounced_read_only_dma_buf_changes_nothing)
{
	if (!booted_with("swiotlb=force"))
		SKIP(return, "the device's memory is not bounced");
	fill(self->mem, SIZE, 1);
	ASSERT_EQ(0, attach(self->importer, self->ro, IMPORTER_TO_DEVICE));
	ASSERT_EQ(0, device_writes(self->importer, PAGE, 2));
	ASSERT_EQ(0, cpu_access(self->rw, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW));
	EXPECT_TRUE(filled(self->mem, SIZE, 1));
	ASSERT_EQ(0, xioctl(self->importer, IMPORTER_IOCTL_DETACH, NULL));
	EXPECT_TRUE(filled(self->mem, SIZE, 1));
}

TEST_F(device, that_goes_on_after_it_has_detached_faults_and_changes_nothing)
{
	__u64 data[CHUNK / 8];
	struct importer_transfer late = {
		.data = (uintptr_t)data,
		.size = CHUNK,
		.write = true,
	};
	int log = open_log();

	if (!booted_with("iommu.strict=1"))
		SKIP(return, "the device is not behind a strict IOMMU");
	ASSERT_LE(0, log);
	ASSERT_EQ(0, attach(self->importer, self->rw, IMPORTER_BOTH_WAYS));
	ASSERT_EQ(0, device_writes(self->importer, PAGE, 1));
	EXPECT_TRUE(filled(self->mem + PAGE, CHUNK, 1));
	fill(data, CHUNK, 2);
	ASSERT_EQ(0, xioctl(self->importer, IMPORTER_IOCTL_LATE, &late));
	EXPECT_TRUE(filled(self->mem + PAGE, CHUNK, 2));

	ASSERT_EQ(0, xioctl(self->importer, IMPORTER_IOCTL_DETACH, NULL));
	fill(data, CHUNK, 3);
	ASSERT_EQ(0, xioctl(self->importer, IMPORTER_IOCTL_LATE, &late));
	EXPECT_TRUE(write_faulted(log));
	EXPECT_TRUE(filled(self->mem + PAGE, CHUNK, 2));
}

/* A device with addresses of 32 bits, and a region that is below 4 GiB or not. */
static int attach_32(int importer, int fd, struct importer_attach *args)
{
	*args = attach_args(fd, IMPORTER_BOTH_WAYS);
	args->address_bits = 32;
	return xioctl(importer, IMPORTER_IOCTL_ATTACH, args);
}

static bool addresses_are_below_4_gib(int importer, const struct importer_attach *args)
{
	__u32 i;

	for (i = 0; i < args->dma_entries; i++) {
		struct importer_entry entry = { .index = i };

		if (xioctl(importer, IMPORTER_IOCTL_ENTRY, &entry) || !entry.dma_length ||
		    entry.dma_address + entry.dma_length > 4 * GIB)
			return false;
	}
	return args->dma_entries;
}

TEST_F(device, of_32_bits_reaches_a_region_below_4_gib_itself)
{
	int fd = create_flags(self->dev, SIZE, NULL, TSHARE_CREATE_DMA32);
	char *mem = map(fd, SIZE, RW);
	struct importer_attach args;

	ASSERT_NE(MAP_FAILED, mem);
	ASSERT_EQ(0, attach_32(self->importer, fd, &args));
	EXPECT_TRUE(addresses_are_below_4_gib(self->importer, &args));
	ASSERT_EQ(0, device_writes(self->importer, 64 * KIB, 1));
	EXPECT_EQ(!booted_with("swiotlb=force"), filled(mem + 64 * KIB, CHUNK, 1));
}

/* A region on the first node that has memory above 4 GiB. */
static int create_above_4_gib(int dev)
{
	__s32 node;

	for (node = 0; node < 2; node++) {
		struct tshare_create args = create_args(SIZE, NULL);
		struct tshare_info info;
		int fd;

		set_node(&args, node);
		fd = do_create(dev, &args);
		if (fd >= 0 && !get_info(dev, fd, &info) && info.phys_addr >= 4 * GIB)
			return fd;
		close(fd);
	}
	return -1;
}

TEST_F(device, of_32_bits_reaches_a_region_above_4_gib_through_the_iommu_or_a_copy)
{
	int fd = create_above_4_gib(self->dev);
	char *mem = map(fd, SIZE, RW);
	struct importer_attach args;

	ASSERT_NE(MAP_FAILED, mem);
	ASSERT_EQ(0, attach_32(self->importer, fd, &args));
	EXPECT_TRUE(addresses_are_below_4_gib(self->importer, &args));
	ASSERT_EQ(0, device_writes(self->importer, 64 * KIB, 1));
	EXPECT_EQ(booted_with("intel_iommu=on"), filled(mem + 64 * KIB, CHUNK, 1));
	ASSERT_EQ(0, cpu_access(fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW));
	EXPECT_TRUE(filled(mem + 64 * KIB, CHUNK, 1));
	fill(mem + 128 * KIB, CHUNK, 2);
	ASSERT_EQ(0, cpu_access(fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW));
	EXPECT_TRUE(device_reads(self->importer, 128 * KIB, 2));
}

TEST_F(device, that_would_write_is_refused_a_read_only_dma_buf)
{
	EXPECT_EQ(-EACCES, attach(self->importer, self->ro, IMPORTER_FROM_DEVICE));
	EXPECT_EQ(-EACCES, attach(self->importer, self->ro, IMPORTER_BOTH_WAYS));
	EXPECT_EQ(0, attach(self->importer, self->ro, IMPORTER_TO_DEVICE));
}

TEST_F(device, keeps_the_region)
{
	ASSERT_EQ(0, attach(self->importer, self->rw, IMPORTER_BOTH_WAYS));
	munmap(self->mem, SIZE);
	ASSERT_EQ(0, unlink_name(self->dev, "imported"));
	close(self->rw);
	close(self->ro);
	EXPECT_EQ(self->before.regions, read_number(SYSFS "regions"));
	EXPECT_EQ(0, device_writes(self->importer, 0, 1));
	ASSERT_EQ(0, xioctl(self->importer, IMPORTER_IOCTL_DETACH, NULL));
	EXPECT_EQ(self->before.regions - 1, read_number(SYSFS "regions"));
}

/* The kernel's own mapping has no mode, so that a driver would write through it. */
TEST_F(device, may_vmap_only_a_writable_dma_buf)
{
	struct importer_vmap args = { .offset = SIZE - 8 };

	*(__u64 *)(self->mem + SIZE - 8) = 42;
	ASSERT_EQ(0, attach(self->importer, self->rw, IMPORTER_BOTH_WAYS));
	ASSERT_EQ(0, xioctl(self->importer, IMPORTER_IOCTL_VMAP, &args));
	EXPECT_EQ(42, args.word);
	ASSERT_EQ(0, attach(self->other, self->ro, IMPORTER_TO_DEVICE));
	EXPECT_EQ(-EINVAL, xioctl(self->other, IMPORTER_IOCTL_VMAP, &args));
}

TEST_F(device, sees_only_the_pages_of_a_range)
{
	int fd = export_range(self->dev, self->rw, PAGE, 5 * PAGE, TSHARE_EXPORT_WRITE);
	struct importer_attach args = attach_args(fd, IMPORTER_BOTH_WAYS);
	__u64 data[CHUNK / 8], total = 0;
	__u32 i;

	fill(self->mem + PAGE, CHUNK, 1);
	fill(self->mem + 6 * PAGE - CHUNK, CHUNK, 2);
	args.segment_max = 2 * PAGE;
	ASSERT_EQ(0, xioctl(self->importer, IMPORTER_IOCTL_ATTACH, &args));
	EXPECT_EQ(3, args.entries);
	for (i = 0; i < args.dma_entries; i++) {
		struct importer_entry entry = { .index = i };

		ASSERT_EQ(0, xioctl(self->importer, IMPORTER_IOCTL_ENTRY, &entry));
		total += entry.dma_length;
	}
	EXPECT_EQ(5 * PAGE, total);
	EXPECT_TRUE(device_reads(self->importer, 0, 1));
	EXPECT_TRUE(device_reads(self->importer, 5 * PAGE - CHUNK, 2));
	EXPECT_EQ(-ERANGE, transfer(self->importer, 5 * PAGE, data, false));
}

TEST_F(device, that_would_write_is_refused_a_read_only_range)
{
	int fd = export_range(self->dev, self->rw, PAGE, PAGE, 0);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-EACCES, attach(self->importer, fd, IMPORTER_FROM_DEVICE));
	EXPECT_EQ(-EACCES, attach(self->importer, fd, IMPORTER_BOTH_WAYS));
	EXPECT_EQ(0, attach(self->importer, fd, IMPORTER_TO_DEVICE));
}

TEST_F(device, vmaps_a_range_from_its_first_page_on)
{
	int fd = export_range(self->dev, self->rw, PAGE, 2 * PAGE, TSHARE_EXPORT_WRITE);
	struct importer_vmap args = { .offset = PAGE };

	*(__u64 *)(self->mem + 2 * PAGE) = 42;
	ASSERT_EQ(0, attach(self->importer, fd, IMPORTER_BOTH_WAYS));
	ASSERT_EQ(0, xioctl(self->importer, IMPORTER_IOCTL_VMAP, &args));
	EXPECT_EQ(42, args.word);
	fd = export_range(self->dev, self->rw, PAGE, 2 * PAGE, 0);
	ASSERT_EQ(0, attach(self->other, fd, IMPORTER_TO_DEVICE));
	EXPECT_EQ(-EINVAL, xioctl(self->other, IMPORTER_IOCTL_VMAP, &args));
}

TEST_F(device, forwards_mmap_of_a_range_and_of_nothing_beside_it)
{
	int fd = export_range(self->dev, self->rw, 2 * PAGE, 3 * PAGE, TSHARE_EXPORT_WRITE);
	char *mem;

	fill(self->mem, SIZE, 1);
	ASSERT_EQ(0, attach(self->importer, fd, IMPORTER_BOTH_WAYS));
	EXPECT_EQ(MAP_FAILED, map(self->importer, 4 * PAGE, RW));
	mem = mmap(NULL, 2 * PAGE, RW, MAP_SHARED, self->importer, PAGE);
	ASSERT_NE(MAP_FAILED, mem);
	EXPECT_EQ(0, memcmp(mem, self->mem + 3 * PAGE, 2 * PAGE));
}

/*
 * A device has one range of a region, and the CPU's access goes through another
 * one: what both have is synced. The device writes CHUNK bytes at the start of a
 * page.
 */
FIXTURE(ranges)
{
	int dev;
	int rw;
	int importer;
	char *mem;
};

/* All in pages of the region, nr_pages 0 for its end. */
FIXTURE_VARIANT(ranges)
{
	__u64 device_first, device_pages;
	__u64 cpu_first, cpu_pages;
	__u64 written;
	bool synced;
};

FIXTURE_VARIANT_ADD(ranges, device_has_the_whole)
{
	.cpu_first = 2,
	.cpu_pages = 3,
	.written = 4,
	.synced = true,
};

FIXTURE_VARIANT_ADD(ranges, device_has_the_whole_and_writes_before)
{
	.cpu_first = 2,
	.cpu_pages = 3,
	.written = 1,
};

FIXTURE_VARIANT_ADD(ranges, device_has_the_whole_and_writes_behind)
{
	.cpu_first = 2,
	.cpu_pages = 3,
	.written = 5,
};

FIXTURE_VARIANT_ADD(ranges, device_has_the_whole_in_segments)
{
	.cpu_first = 15,
	.cpu_pages = 3,
	.written = 17,
	.synced = true,
};

FIXTURE_VARIANT_ADD(ranges, cpu_has_the_whole)
{
	.device_first = 2,
	.device_pages = 3,
	.written = 4,
	.synced = true,
};

FIXTURE_VARIANT_ADD(ranges, overlap)
{
	.device_first = 2,
	.device_pages = 3,
	.cpu_first = 4,
	.cpu_pages = 3,
	.written = 4,
	.synced = true,
};

FIXTURE_VARIANT_ADD(ranges, overlap_elsewhere)
{
	.device_first = 2,
	.device_pages = 3,
	.cpu_first = 4,
	.cpu_pages = 3,
	.written = 3,
};

FIXTURE_VARIANT_ADD(ranges, are_neighbours)
{
	.device_first = 2,
	.device_pages = 3,
	.cpu_first = 5,
	.cpu_pages = 3,
	.written = 4,
};

FIXTURE_SETUP(ranges)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->rw = create(self->dev, SIZE, NULL);
	ASSERT_LE(0, self->rw);
	self->mem = map(self->rw, SIZE, RW);
	ASSERT_NE(MAP_FAILED, self->mem);
	self->importer = open_importer();
	ASSERT_LE(0, self->importer);
}

FIXTURE_TEARDOWN(ranges)
{
	close(self->importer);
	munmap(self->mem, SIZE);
	close(self->rw);
	close(self->dev);
}

TEST_F(ranges, are_synced_where_they_overlap)
{
	char *written = self->mem + variant->written * PAGE;
	int device, cpu;

	if (!variant->synced && !booted_with("swiotlb=force"))
		SKIP(return, "the device's memory is not bounced");
	device = export_range(self->dev, self->rw, variant->device_first * PAGE,
			      variant->device_pages * PAGE, TSHARE_EXPORT_WRITE);
	cpu = export_range(self->dev, self->rw, variant->cpu_first * PAGE,
			   variant->cpu_pages * PAGE, TSHARE_EXPORT_WRITE);
	ASSERT_LE(0, cpu);
	ASSERT_EQ(0, attach(self->importer, device, IMPORTER_BOTH_WAYS));
	ASSERT_EQ(0, device_writes(self->importer,
				   (variant->written - variant->device_first) * PAGE, 1));
	ASSERT_EQ(0, cpu_access(cpu, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW));
	EXPECT_EQ(variant->synced, filled(written, CHUNK, 1));
	fill(written, CHUNK, 2);
	ASSERT_EQ(0, cpu_access(cpu, DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW));
	EXPECT_TRUE(device_reads(self->importer,
				 (variant->written - variant->device_first) * PAGE,
				 variant->synced ? 2 : 1));
}

/* A driver's file has a mode of its own, which differs from the dma-buf's. */
TEST_F(device, forwards_mmap_with_the_access_of_the_dma_buf)
{
	char *mem;

	ASSERT_EQ(0, attach(self->importer, self->rw, IMPORTER_BOTH_WAYS));
	ASSERT_EQ(0, attach(self->other, self->ro, IMPORTER_TO_DEVICE));
	mem = map(self->importer, SIZE, RW);
	ASSERT_NE(MAP_FAILED, mem);
	fill(mem, SIZE, 1);
	EXPECT_TRUE(filled(self->mem, SIZE, 1));
	EXPECT_EQ(MAP_FAILED, map(self->other, SIZE, RW));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(MAP_FAILED, map(self->other, SIZE, PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	mem = map(self->other, SIZE, PROT_READ);
	ASSERT_NE(MAP_FAILED, mem);
	EXPECT_TRUE(filled(mem, SIZE, 1));
	EXPECT_EQ(-1, mprotect(mem, SIZE, RW));
	EXPECT_EQ(EACCES, errno);
}

TEST_F(device, that_maps_device_memory_is_refused_with_einval)
{
	static const unsigned long areas[] = {
		IMPORTER_AREA_IO, IMPORTER_AREA_PFNMAP, IMPORTER_AREA_MIXEDMAP,
	};
	size_t i;

	ASSERT_EQ(0, attach(self->importer, self->rw, IMPORTER_BOTH_WAYS));
	for (i = 0; i < ARRAY_SIZE(areas); i++) {
		ASSERT_EQ(0, ioctl(self->importer, IMPORTER_IOCTL_AREA, areas[i]));
		EXPECT_EQ(MAP_FAILED, map(self->importer, SIZE, RW));
		EXPECT_EQ(EINVAL, errno);
	}
	ASSERT_EQ(0, ioctl(self->importer, IMPORTER_IOCTL_AREA, IMPORTER_AREA_PLAIN));
	EXPECT_NE(MAP_FAILED, map(self->importer, SIZE, RW));
}

/* A region is cut into segments within the device's limits. */
FIXTURE(segments)
{
	int dev;
	int fd;
	int importer;
};

FIXTURE_VARIANT(segments)
{
	size_t size;
	__u32 max;
};

FIXTURE_VARIANT_ADD(segments, of_a_page)
{
	.size = 37 * PAGE,
	.max = PAGE,
};

FIXTURE_VARIANT_ADD(segments, of_some_pages)
{
	.size = 37 * PAGE,
	.max = 5 * PAGE,
};

FIXTURE_VARIANT_ADD(segments, of_no_whole_pages)
{
	.size = 37 * PAGE,
	.max = 3 * PAGE + 511,
};

FIXTURE_VARIANT_ADD(segments, of_what_pci_takes)
{
	.size = 5 * MIB + PAGE,
	.max = 64 * KIB,
};

FIXTURE_VARIANT_ADD(segments, of_the_region)
{
	.size = 128 * KIB,
	.max = 128 * KIB,
};

FIXTURE_VARIANT_ADD(segments, larger_than_the_region)
{
	.size = 128 * KIB,
	.max = ~0U,
};

FIXTURE_SETUP(segments)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->fd = create(self->dev, variant->size, NULL);
	ASSERT_LE(0, self->fd);
	self->importer = open_importer();
	ASSERT_LE(0, self->importer);
}

FIXTURE_TEARDOWN(segments)
{
	close(self->importer);
	close(self->fd);
	close(self->dev);
}

TEST_F(segments, are_no_longer_than_the_device_takes)
{
	struct importer_attach args = attach_args(self->fd, IMPORTER_BOTH_WAYS);
	__u64 total = 0, dma_total = 0;
	__u32 whole = variant->max & ~(PAGE - 1);

	args.segment_max = variant->max;
	ASSERT_EQ(0, xioctl(self->importer, IMPORTER_IOCTL_ATTACH, &args));
	EXPECT_EQ((variant->size + whole - 1) / whole, args.entries);
	for (__u32 i = 0; i < args.entries; i++) {
		struct importer_entry entry = { .index = i };

		ASSERT_EQ(0, xioctl(self->importer, IMPORTER_IOCTL_ENTRY, &entry));
		EXPECT_GE(variant->max, entry.length);
		EXPECT_GE(variant->max, entry.dma_length);
		total += entry.length;
		dma_total += entry.dma_length;
	}
	/* With CONFIG_DMABUF_DEBUG newer kernels show importers the lengths for devices alone. */
	if (total)
		EXPECT_EQ(variant->size, total);
	EXPECT_EQ(variant->size, dma_total);
}

TEST_F(segments, cross_no_boundary)
{
	struct importer_attach args = attach_args(self->fd, IMPORTER_BOTH_WAYS);
	__u64 total = 0;

	args.segment_max = variant->max;
	args.boundary = 64 * KIB - 1;
	ASSERT_EQ(0, xioctl(self->importer, IMPORTER_IOCTL_ATTACH, &args));
	for (__u32 i = 0; i < args.dma_entries; i++) {
		struct importer_entry entry = { .index = i };

		ASSERT_EQ(0, xioctl(self->importer, IMPORTER_IOCTL_ENTRY, &entry));
		EXPECT_EQ(entry.dma_address / (64 * KIB),
			  (entry.dma_address + entry.dma_length - 1) / (64 * KIB));
		EXPECT_GE(variant->max, entry.dma_length);
		total += entry.dma_length;
	}
	EXPECT_EQ(variant->size, total);
}

TEST_F(segments, have_no_boundary_if_the_device_has_none)
{
	struct importer_attach args = attach_args(self->fd, IMPORTER_BOTH_WAYS);
	__u32 whole = variant->max & ~(PAGE - 1);

	args.segment_max = variant->max;
	args.boundary = ~0ULL;
	ASSERT_EQ(0, xioctl(self->importer, IMPORTER_IOCTL_ATTACH, &args));
	EXPECT_EQ((variant->size + whole - 1) / whole, args.entries);
}

/* Is the region one piece for a device behind an IOMMU, with any number of segments? */
static bool in_one_piece(int fd, __u64 boundary)
{
	struct importer_attach args = attach_args(fd, IMPORTER_BOTH_WAYS);
	int importer = open_importer();
	__u64 end = 0;
	__u32 i;

	args.segment_max = ~0U;
	args.boundary = boundary;
	if (xioctl(importer, IMPORTER_IOCTL_ATTACH, &args))
		return false;
	for (i = 0; i < args.dma_entries; i++) {
		struct importer_entry entry = { .index = i };

		if (xioctl(importer, IMPORTER_IOCTL_ENTRY, &entry))
			return false;
		if (i && entry.dma_address != end)
			return false;
		end = entry.dma_address + entry.dma_length;
	}
	return !close(importer);
}

/* The buffer for what is bounced has room for 256 KiB in one piece. */
TEST_F(device, with_large_segments_gets_small_ones_only_where_they_are_bounced)
{
	int fd = create(self->dev, 4 * MIB, NULL);
	struct importer_attach args = attach_args(fd, IMPORTER_BOTH_WAYS);
	char *mem = map(fd, 4 * MIB, RW);

	ASSERT_NE(MAP_FAILED, mem);
	args.segment_max = ~0U;
	ASSERT_EQ(0, xioctl(self->importer, IMPORTER_IOCTL_ATTACH, &args));
	EXPECT_EQ(booted_with("swiotlb=force"), args.entries > 1);
	ASSERT_EQ(0, device_writes(self->importer, 3 * MIB, 1));
	ASSERT_EQ(0, cpu_access(fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW));
	EXPECT_TRUE(filled(mem + 3 * MIB, CHUNK, 1));
	munmap(mem, 4 * MIB);
	close(fd);
}

/* Regions of 10 MiB lie side by side, so that some begin at a boundary and some don't. */
TEST_F(device, behind_an_iommu_has_no_gap_at_a_boundary)
{
	int i, fd;

	if (!booted_with("intel_iommu=on"))
		SKIP(return, "the device is not behind an IOMMU");
	for (i = 0; i < 8; i++) {
		fd = create(self->dev, 10 * MIB, NULL);
		ASSERT_LE(0, fd);
		EXPECT_TRUE(in_one_piece(fd, 4 * MIB - 1));
	}
}

TEST_HARNESS_MAIN
