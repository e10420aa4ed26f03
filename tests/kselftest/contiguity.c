// SPDX-License-Identifier: GPL-2.0-only
/* Regions are one run of page frames, however large. */
#include <sys/sysinfo.h>

#include "harness.h"

#define PAGEMAP_PRESENT (1ULL << 63)
#define PAGEMAP_FRAME ((1ULL << 55) - 1)

/* The pages of [mem, mem + size) that don't follow @phys_addr one after the other; -1 on error. */
static long stray_pages(const char *mem, size_t size, __u64 phys_addr)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	static __u64 entries[4096];
	size_t page, pages = size / PAGE, i;
	long strays = 0;

	for (page = 0; page < pages; page += ARRAY_SIZE(entries)) {
		size_t count = pages - page < ARRAY_SIZE(entries) ?
			       pages - page : ARRAY_SIZE(entries);

		for (i = 0; i < count; i++)
			*(volatile const char *)(mem + (page + i) * PAGE);
		if (pread(pagemap, entries, count * sizeof(entries[0]),
			  ((uintptr_t)mem / PAGE + page) * sizeof(entries[0])) !=
		    (ssize_t)(count * sizeof(entries[0]))) {
			strays = -1;
			break;
		}
		for (i = 0; i < count; i++)
			strays += !(entries[i] & PAGEMAP_PRESENT) ||
				  (entries[i] & PAGEMAP_FRAME) != phys_addr / PAGE + page + i;
	}
	close(pagemap);
	return strays;
}

/* 0, or the errno of CREATE; -EXDEV if the region is not one run of pages. */
static int check(int dev, size_t size, __u32 flags)
{
	struct tshare_create args = create_args(size, NULL);
	struct tshare_info info;
	int fd, err = -EXDEV;
	char *mem;

	args.flags = flags;
	fd = do_create(dev, &args);
	if (fd < 0)
		return fd;
	mem = map_aligned(fd, size, RW);
	if (mem != MAP_FAILED && !get_info(dev, fd, &info) &&
	    info.phys_addr && !stray_pages(mem, size, info.phys_addr))
		err = 0;
	munmap(mem, size);
	close(fd);
	return err;
}

TEST(frames_follow_one_another)
{
	static const size_t sizes[] = {
		PAGE, 2 * PAGE, 3 * PAGE, 64 * KIB, 100 * PAGE, MIB, 2 * MIB - PAGE, 2 * MIB,
		2 * MIB + PAGE, 4 * MIB - PAGE, 4 * MIB, 5 * MIB, 32 * MIB, 64 * MIB + PAGE,
	};
	int dev = open_device();
	size_t i;

	ASSERT_LE(0, dev);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		EXPECT_EQ(0, check(dev, sizes[i], 0)) {
			TH_LOG("size %zu", sizes[i]);
		}
		EXPECT_EQ(0, check(dev, sizes[i], TSHARE_CREATE_DMA32)) {
			TH_LOG("size %zu below 4 GiB", sizes[i]);
		}
	}
}

TEST(runs_are_found_up_to_an_eighth_of_memory)
{
	struct sysinfo memory;
	__u64 size, wanted, largest = 0;
	int dev = open_device(), err;

	ASSERT_LE(0, dev);
	ASSERT_EQ(0, sysinfo(&memory));
	wanted = (__u64)memory.totalram * memory.mem_unit / 8;
	for (size = 64 * MIB; size <= 4 * GIB; size *= 2) {
		err = check(dev, size, 0);
		if (err == -EDQUOT || err == -ENOMEM)
			break;
		ASSERT_EQ(0, err);
		largest = size;
	}
	ksft_print_msg("largest contiguous region: %llu MiB\n", largest / MIB);
	/* A power of two may be up to twice too small. */
	EXPECT_LE((wanted < GIB ? wanted : GIB) / 2 + 1, largest);
}

TEST(fragmented_memory_still_gives_runs)
{
	const size_t total = 256 * MIB;
	int dev = open_device();
	size_t offset;
	char *mem;

	ASSERT_LE(0, dev);
	/* Keeps every second page of a large area, to fragment all of the memory. */
	mem = mmap(NULL, total, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, mem);
	madvise(mem, total, MADV_NOHUGEPAGE);
	memset(mem, 1, total);
	for (offset = 0; offset < total; offset += 2 * PAGE)
		ASSERT_EQ(0, madvise(mem + offset, PAGE, MADV_DONTNEED));
	for (offset = 0; offset < 4; offset++)
		EXPECT_EQ(0, check(dev, 64 * MIB, 0));
	for (offset = PAGE; offset < total; offset += 2 * PAGE)
		ASSERT_EQ(1, mem[offset]);
}

TEST_HARNESS_MAIN
