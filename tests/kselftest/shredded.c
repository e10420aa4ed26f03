// SPDX-License-Identifier: GPL-2.0-only
/* A machine with unmovable pages everywhere, where a search finds nothing. */
#include "harness.h"
#include "held.h"
#include "pool.h"
#include "shred.h"

#define HUGE (2 * MIB)

/* As much as a quarter of the memory, but at most 1 GiB. */
static size_t large_size(void)
{
	struct sysinfo memory;
	size_t size;

	sysinfo(&memory);
	size = memory.totalram * memory.mem_unit / 4 / HUGE * HUGE;
	return size < GIB ? size : GIB;
}

static bool hold_shredded(size_t size)
{
	(void)size;
	return shred_memory();
}

TEST(pool_serves_runs_where_a_search_finds_none)
{
	const size_t size = large_size();
	int dev = open_device(), fd, other;
	pid_t pid;

	ASSERT_EQ(0, resize(size));
	pid = held_by_another(hold_shredded, 0);
	ASSERT_LT(0, pid);
	fd = create(dev, size, NULL);
	EXPECT_EQ(1, from_pool(dev, fd));
	other = create(dev, size, NULL);
	EXPECT_EQ(-ENOMEM, other);
	ksft_print_msg("%llu MiB from the pool\n", size / MIB);
	/* Growth gets less than it wants there. */
	EXPECT_EQ(-ENOMEM, resize(2 * size - HUGE));
	EXPECT_LE(size, (size_t)pool_size());
	EXPECT_GT(2 * size - HUGE, (size_t)pool_size());
	EXPECT_EQ(pool_size(), read_number(POOL(0, "target")));
	end(pid);
	close(fd);
	close(other);
	EXPECT_EQ(0, resize(0));
	close(dev);
}

TEST_HARNESS_MAIN
