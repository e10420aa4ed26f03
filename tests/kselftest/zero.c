// SPDX-License-Identifier: GPL-2.0-only
/*
 * No process ever reads the previous contents of its memory.
 *
 * A kernel that is booted with init_on_alloc=1, as Debian's are by default,
 * hides what the module forgets; the debug kernel is not.
 */
#include "harness.h"

#define SPREAD (64 * MIB)

/* Fills a region of @size and frees it; false if it wasn't zeroed before. */
static bool check_and_dirty(int dev, size_t size, __u32 flags)
{
	struct tshare_create args = create_args(size, NULL);
	bool was_zeroed;
	char *mem;
	int fd;

	args.flags = flags;
	fd = do_create(dev, &args);
	mem = map_aligned(fd, size, RW);
	if (fd < 0 || mem == MAP_FAILED)
		return false;
	was_zeroed = zeroed(mem, size);
	memset(mem, 0xa5, size);
	munmap(mem, size);
	close(fd);
	return was_zeroed;
}

TEST(every_size_is_zeroed_again_and_again)
{
	static const size_t sizes[] = {
		PAGE, 3 * PAGE, 2 * MIB - PAGE, 2 * MIB, 2 * MIB + PAGE, 4 * MIB,
		7 * MIB - PAGE, 16 * MIB,
	};
	int dev = open_device();
	size_t i, round;

	ASSERT_LE(0, dev);
	for (round = 0; round < 6; round++)
		for (i = 0; i < ARRAY_SIZE(sizes); i++)
			ASSERT_TRUE(check_and_dirty(dev, sizes[i], 0)) {
				TH_LOG("size %zu, round %zu", sizes[i], round);
			}
}

TEST(below_4_gib_is_zeroed)
{
	int dev = open_device(), round;

	ASSERT_LE(0, dev);
	for (round = 0; round < 4; round++) {
		EXPECT_TRUE(check_and_dirty(dev, 3 * PAGE, TSHARE_CREATE_DMA32));
		EXPECT_TRUE(check_and_dirty(dev, 2 * MIB, TSHARE_CREATE_DMA32));
		EXPECT_TRUE(check_and_dirty(dev, 9 * MIB, TSHARE_CREATE_DMA32));
	}
}

TEST(what_small_regions_held_is_not_in_large_ones)
{
	int dev = open_device(), fds[64];
	size_t i;

	ASSERT_LE(0, dev);
	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		size_t size = SPREAD / ARRAY_SIZE(fds);
		char *mem;

		fds[i] = create(dev, size, NULL);
		mem = map(fds[i], size, RW);
		ASSERT_NE(MAP_FAILED, mem);
		memset(mem, 0xa5, size);
		munmap(mem, size);
	}
	for (i = 0; i < ARRAY_SIZE(fds); i++)
		close(fds[i]);
	EXPECT_TRUE(check_and_dirty(dev, SPREAD, 0));
}

TEST(what_processes_held_is_not_in_regions)
{
	int dev = open_device(), round;
	char *mem;

	ASSERT_LE(0, dev);
	for (round = 0; round < 3; round++) {
		mem = mmap(NULL, SPREAD, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(MAP_FAILED, mem);
		memset(mem, 0xa5, SPREAD);
		munmap(mem, SPREAD);
		EXPECT_TRUE(check_and_dirty(dev, SPREAD, 0));
		EXPECT_TRUE(check_and_dirty(dev, 2 * MIB, 0));
		EXPECT_TRUE(check_and_dirty(dev, PAGE, 0));
	}
}

TEST(what_file_caches_held_is_not_in_regions)
{
	const char *scratch = getenv("TSHARE_SCRATCH");
	static char block[MIB];
	int dev = open_device(), file, i;
	char path[256];

	if (!scratch)
		SKIP(return, "TSHARE_SCRATCH is not set");
	ASSERT_LE(0, dev);
	snprintf(path, sizeof(path), "%s/cached", scratch);
	file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	ASSERT_LE(0, file);
	memset(block, 0xa5, sizeof(block));
	for (i = 0; i < 64; i++)
		ASSERT_EQ(sizeof(block), write(file, block, sizeof(block)));
	for (i = 0; i < 3; i++)
		EXPECT_TRUE(check_and_dirty(dev, SPREAD, 0));
	/* The file is undamaged, too, by moving its pages. */
	ASSERT_EQ(0, lseek(file, 0, SEEK_SET));
	for (i = 0; i < 64; i++) {
		ASSERT_EQ(sizeof(block), read(file, block, sizeof(block)));
		EXPECT_EQ(0xa5a5a5a5a5a5a5a5ULL, *(__u64 *)(block + i * PAGE));
	}
	close(file);
	unlink(path);
}

TEST_HARNESS_MAIN
