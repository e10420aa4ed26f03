// SPDX-License-Identifier: GPL-2.0-only
/* The pool: what it has, what regions get of it, and what comes back. */
#include <sched.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>

#include "harness.h"
#include "module.h"
#include "pin.h"
#include "pool.h"
#include "proc.h"

/* TSHARE_TEST_STRESS may ask for a minute. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 120

#define SIZE	   POOL(0, "size")
#define PARAMETERS "/sys/module/tshare/parameters/"
#define BLOCK	   (2 * MIB)

static __u64 phys_addr(int dev, int fd)
{
	struct tshare_info info;

	return get_info(dev, fd, &info) ? 0 : info.phys_addr;
}

FIXTURE(pool)
{
	int dev;
	struct counters before;
};

FIXTURE_SETUP(pool)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->before = count_all();
	ASSERT_EQ(0, pool_size());
	ASSERT_EQ(0, resize(64 * MIB));
}

FIXTURE_TEARDOWN(pool)
{
	EXPECT_EQ(0, resize(0));
	EXPECT_TRUE(becomes(SIZE, 0));
	EXPECT_TRUE(counters_return_to(self->before));
	close(self->dev);
}

TEST_F(pool, has_the_size_asked_for)
{
	static const long sizes[] = { 64 * MIB, 8 * MIB, 128 * MIB, 0, 2 * MIB };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		EXPECT_EQ(0, resize(sizes[i]));
		EXPECT_EQ(sizes[i], pool_size());
		EXPECT_EQ(sizes[i], read_number(POOL(0, "target")));
		EXPECT_EQ(sizes[i], pool_free());
		EXPECT_TRUE(is_all_zeroed(sizes[i]));
	}
}

TEST_F(pool, size_is_rounded_up)
{
	EXPECT_EQ(0, resize(1));
	EXPECT_EQ(BLOCK, (__u64)pool_size());
	EXPECT_EQ(0, resize(BLOCK + 1));
	EXPECT_EQ(2 * BLOCK, (__u64)pool_size());
}

TEST_F(pool, size_that_is_no_number_is_einval)
{
	static const char *const texts[] = { "x", "-1", "4G", "1 2" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		errno = 0;
		EXPECT_FALSE(write_file(SIZE, "%s", texts[i]));
		EXPECT_EQ(EINVAL, errno);
	}
	EXPECT_EQ(64 * MIB, (__u64)pool_size());
}

TEST_F(pool, size_beyond_the_limit_of_regions_is_edquot)
{
	struct tshare_query query = {};

	ASSERT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_QUERY, &query));
	EXPECT_EQ(-EDQUOT, resize(query.bytes_limit + BLOCK));
	EXPECT_FALSE(write_file(SIZE, "%llu", ~0ULL));
	EXPECT_EQ(EDQUOT, errno);
	EXPECT_EQ(64 * MIB, (__u64)pool_size());
	EXPECT_EQ(64 * MIB, (__u64)read_number(POOL(0, "target")));
	ASSERT_TRUE(write_file(PARAMETERS "max_mib", "32"));
	EXPECT_EQ(0, resize(32 * MIB));
	EXPECT_EQ(-EDQUOT, resize(34 * MIB));
	EXPECT_TRUE(write_file(PARAMETERS "max_mib", "0"));
}

/* All but the target shows how much regions have, those of other namespaces included. */
TEST_F(pool, attributes_but_the_target_are_for_root)
{
	static const char *const files[] = { SIZE, POOL(0, "free"), POOL(0, "zeroed") };
	size_t i;

	ASSERT_TRUE(act_as_user(USER_A));
	for (i = 0; i < ARRAY_SIZE(files); i++) {
		EXPECT_EQ(-1, open(files[i], O_RDONLY | O_CLOEXEC));
		EXPECT_EQ(EACCES, errno);
	}
	EXPECT_EQ(-1, open(SIZE, O_WRONLY | O_CLOEXEC));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(64 * MIB, (__u64)read_number(POOL(0, "target")));
	ASSERT_TRUE(act_as_root());
}

TEST_F(pool, large_regions_come_from_it)
{
	int fd = create(self->dev, 16 * MIB, NULL);

	EXPECT_EQ(1, from_pool(self->dev, fd));
	EXPECT_EQ(48 * MIB, (__u64)pool_free());
	EXPECT_EQ(64 * MIB, (__u64)pool_size());
	EXPECT_EQ(self->before.bytes + (long)(16 * MIB), read_number(SYSFS "bytes"));
	close(fd);
	EXPECT_EQ(64 * MIB, (__u64)pool_free());
}

/* The page allocator charges the memory cgroup for them. */
TEST_F(pool, regions_up_to_2_mib_do_not_come_from_it)
{
	static const size_t sizes[] = { 1, PAGE, MIB, 2 * MIB - PAGE, 2 * MIB };
	size_t i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		fd = create(self->dev, sizes[i], NULL);
		EXPECT_EQ(0, from_pool(self->dev, fd));
		close(fd);
	}
}

TEST_F(pool, what_it_lacks_is_searched_for)
{
	int fd = create(self->dev, 66 * MIB, NULL);

	EXPECT_EQ(0, from_pool(self->dev, fd));
	EXPECT_EQ(64 * MIB, (__u64)pool_free());
	close(fd);
}

TEST_F(pool, region_counts_as_long_as_it_is_and_takes_whole_blocks)
{
	const size_t size = 4 * MIB + PAGE;
	int fd = create(self->dev, size, NULL);

	EXPECT_EQ(1, from_pool(self->dev, fd));
	EXPECT_EQ(self->before.bytes + (long)size, read_number(SYSFS "bytes"));
	EXPECT_EQ(58 * MIB, (__u64)pool_free());
	EXPECT_TRUE(is_zero_and_filled(fd, size));
	close(fd);
	EXPECT_EQ(64 * MIB, (__u64)pool_free());
	EXPECT_EQ(self->before.bytes, read_number(SYSFS "bytes"));
}

TEST_F(pool, memory_is_zero_however_soon_it_is_used_again)
{
	static const size_t sizes[] = { 64 * MIB, 40 * MIB, 62 * MIB + PAGE, 64 * MIB };
	size_t i;
	int fd;

	for (i = 0; i < 3 * ARRAY_SIZE(sizes); i++) {
		size_t size = sizes[i % ARRAY_SIZE(sizes)];

		fd = create(self->dev, size, NULL);
		EXPECT_EQ(1, from_pool(self->dev, fd));
		EXPECT_TRUE(is_zero_and_filled(fd, size));
		close(fd);
		/* At different stages of the worker's. */
		usleep(i * 2000);
	}
}

/* The worker may have zeroed any part of a block before the region got it. */
TEST_F(pool, memory_that_is_lent_while_it_is_zeroed_is_zeroed_anew)
{
	int times = rounds(20), i, fd;
	__s64 start, all = 0;

	ASSERT_EQ(0, resize(16 * MIB));
	for (i = 0; i < 2 * times; i++) {
		fd = create(self->dev, 16 * MIB, NULL);
		EXPECT_EQ(1, from_pool(self->dev, fd));
		ASSERT_TRUE(is_zero_and_filled(fd, 16 * MIB));
		close(fd);
		/* Once in the middle of a block, at different places, and once when all is done. */
		start = deadline_in(0);
		if (i % 2) {
			ASSERT_TRUE(is_all_zeroed(16 * MIB));
			all = deadline_in(0) - start;
		} else {
			usleep(all / 1000 * (i / 2) / times);
		}
	}
}

TEST_F(pool, memory_that_comes_back_is_zeroed_in_the_background)
{
	int fd = create(self->dev, 64 * MIB, NULL);

	EXPECT_TRUE(is_zero_and_filled(fd, 64 * MIB));
	close(fd);
	EXPECT_TRUE(is_all_zeroed(64 * MIB));
	fd = create(self->dev, 64 * MIB, NULL);
	EXPECT_TRUE(is_zero_and_filled(fd, 64 * MIB));
	close(fd);
}

/* What comes back while the worker wakes up, and while other memory grows by it. */
TEST_F(pool, worker_misses_nothing_that_comes_back)
{
	const time_t until = time(NULL) + stress_seconds(rounds(8));

	do {
		close(create(self->dev, 64 * MIB, NULL));
		ASSERT_TRUE(is_all_zeroed(64 * MIB));
	} while (time(NULL) < until);
}

TEST_F(pool, neighbours_become_one_run_in_any_order)
{
	static const int order[] = { 5, 0, 7, 2, 1, 6, 3, 4 };
	int fds[8], fd, round;
	size_t i;

	for (round = 0; round < 2; round++) {
		/* Else what is zeroed in the middle goes first, and leaves gaps. */
		EXPECT_TRUE(is_all_zeroed(64 * MIB));
		for (i = 0; i < 8; i++) {
			fds[i] = create(self->dev, 8 * MIB, NULL);
			EXPECT_EQ(1, from_pool(self->dev, fds[i]));
		}
		for (i = 0; i < 8; i++) {
			close(fds[order[i]]);
			/* Zeroed ones among those that are not yet. */
			if (round && i == 3)
				EXPECT_TRUE(is_all_zeroed(32 * MIB));
		}
		fd = create(self->dev, 64 * MIB, NULL);
		EXPECT_EQ(1, from_pool(self->dev, fd));
		close(fd);
	}
}

TEST_F(pool, smallest_gap_that_suffices_is_used)
{
	int low = create(self->dev, 4 * MIB, NULL), gap = create(self->dev, 6 * MIB, NULL);
	int high = create(self->dev, 4 * MIB, NULL), fd;
	__u64 addr = phys_addr(self->dev, gap);

	ASSERT_NE(0, addr);
	close(gap);
	EXPECT_TRUE(is_all_zeroed(56 * MIB));
	fd = create(self->dev, 6 * MIB, NULL);
	EXPECT_EQ(addr, phys_addr(self->dev, fd));
	close(fd);
	close(low);
	close(high);
}

TEST_F(pool, smallest_gap_goes_first_when_it_shrinks)
{
	int low = create(self->dev, 4 * MIB, NULL), gap = create(self->dev, 6 * MIB, NULL);
	int high = create(self->dev, 4 * MIB, NULL), fd;

	close(gap);
	EXPECT_EQ(0, resize(58 * MIB));
	fd = create(self->dev, 50 * MIB, NULL);
	EXPECT_EQ(1, from_pool(self->dev, fd));
	close(fd);
	close(low);
	close(high);
}

TEST_F(pool, shrinks_as_regions_go)
{
	int first = create(self->dev, 16 * MIB, NULL), second = create(self->dev, 8 * MIB, NULL);

	EXPECT_EQ(0, resize(8 * MIB));
	EXPECT_EQ(24 * MIB, (__u64)pool_size());
	EXPECT_EQ(8 * MIB, (__u64)read_number(POOL(0, "target")));
	EXPECT_EQ(0, pool_free());
	close(first);
	EXPECT_EQ(8 * MIB, (__u64)pool_size());
	EXPECT_EQ(0, pool_free());
	close(second);
	EXPECT_EQ(8 * MIB, (__u64)pool_size());
	EXPECT_EQ(8 * MIB, (__u64)pool_free());
}

TEST_F(pool, chunk_returns_with_its_last_pin)
{
	int pipes[2], fd;

	if (!maps_huge_pages(self->dev))
		SKIP(return, "the kernel has no folios of 2 MiB");
	fd = create(self->dev, 64 * MIB, NULL);
	EXPECT_TRUE(is_zero_and_filled(fd, 64 * MIB));
	ASSERT_EQ(0, pin_region(fd, 64 * MIB, 5 * MIB, pipes));
	EXPECT_EQ(62 * MIB, (__u64)pool_free());
	EXPECT_EQ(self->before.bytes + (long)BLOCK, read_number(SYSFS "bytes"));
	/* What is left is in two pieces. */
	fd = create(self->dev, 62 * MIB, NULL);
	EXPECT_EQ(0, from_pool(self->dev, fd));
	close(fd);
	unpin(pipes);
	EXPECT_TRUE(becomes(POOL(0, "free"), 64 * MIB));
	fd = create(self->dev, 64 * MIB, NULL);
	EXPECT_EQ(1, from_pool(self->dev, fd));
	EXPECT_TRUE(is_zero_and_filled(fd, 64 * MIB));
	close(fd);
}

/* Else one page in a pipe would withhold 2 MiB at the price of 4 KiB. */
TEST_F(pool, pinned_tail_counts_as_what_it_withholds)
{
	const size_t size = 4 * MIB + 3 * PAGE;
	int pipes[2];

	if (!maps_huge_pages(self->dev))
		SKIP(return, "the kernel has no folios of 2 MiB");
	ASSERT_EQ(0, pin(self->dev, size, 4 * MIB + PAGE, pipes));
	EXPECT_EQ(self->before.bytes + (long)BLOCK, read_number(SYSFS "bytes"));
	EXPECT_EQ(62 * MIB, (__u64)pool_free());
	unpin(pipes);
	EXPECT_TRUE(becomes(SYSFS "bytes", self->before.bytes));
	EXPECT_EQ(64 * MIB, (__u64)pool_free());
}

/* All that the pins withhold, though the region had but a page more than 2 MiB. */
TEST_F(pool, pins_may_count_for_more_than_their_region_had)
{
	const size_t size = 2 * MIB + PAGE;
	int fd = create(self->dev, size, NULL), head[2], tail[2];

	if (!maps_huge_pages(self->dev))
		SKIP(return, "the kernel has no folios of 2 MiB");
	ASSERT_EQ(0, pin_region(dup(fd), size, 0, head));
	ASSERT_EQ(0, pin_region(fd, size, 2 * MIB, tail));
	EXPECT_EQ(self->before.bytes + (long)(2 * BLOCK), read_number(SYSFS "bytes"));
	unpin(head);
	unpin(tail);
	EXPECT_TRUE(becomes(SYSFS "bytes", self->before.bytes));
}

TEST_F(pool, pinned_tails_meet_the_users_limit)
{
	int pipes[8][2], pinned, i;

	if (!maps_huge_pages(self->dev))
		SKIP(return, "the kernel has no folios of 2 MiB");
	ASSERT_TRUE(write_file(PARAMETERS "user_max_mib", "8"));
	for (pinned = 0; pinned < 8; pinned++)
		if (pin(self->dev, 2 * MIB + PAGE, 2 * MIB, pipes[pinned]))
			break;
	EXPECT_EQ(3, pinned);
	EXPECT_EQ(58 * MIB, (__u64)pool_free());
	for (i = 0; i < pinned; i++)
		unpin(pipes[i]);
	EXPECT_TRUE(write_file(PARAMETERS "user_max_mib", "0"));
	EXPECT_TRUE(becomes(POOL(0, "free"), 64 * MIB));
}

#define HWPOISON "/sys/kernel/debug/hwpoison/"

/* As a machine reports it. In a process of its own, which that may kill. */
static int break_page(void *arg)
{
	char *mem = map_aligned(*(int *)arg, 8 * MIB, RW);

	if (mem == MAP_FAILED)
		return 1;
	memset(mem, 1, 8 * MIB);
	/* Always an error, as the kernel can't replace the memory: which one depends on it. */
	return !madvise(mem + 3 * MIB, PAGE, MADV_HWPOISON) || errno == EPERM || errno == EINVAL;
}

/* Why no memory of a region can break here, or NULL. */
static const char *cannot_break(int dev)
{
	if (!maps_huge_pages(dev))
		return "the kernel keeps a single page that broke";
	if (system("modprobe -q hwpoison-inject") || access(HWPOISON, F_OK))
		return "the kernel can't act as if memory broke";
	return NULL;
}

TEST_F(pool, broken_memory_leaves_it)
{
	__u64 addr;
	int fd;

	if (cannot_break(self->dev))
		SKIP(return, "%s", cannot_break(self->dev));
	fd = create(self->dev, 8 * MIB, NULL);
	EXPECT_EQ(1, from_pool(self->dev, fd));
	addr = phys_addr(self->dev, fd) + 3 * MIB;
	EXPECT_EQ(0, in_child(break_page, &fd));
	close(fd);
	EXPECT_EQ(62 * MIB, (__u64)pool_size());
	EXPECT_EQ(62 * MIB, (__u64)pool_free());
	EXPECT_TRUE(write_file(HWPOISON "unpoison-pfn", "%llu", addr / PAGE));
}

TEST_F(pool, memory_that_breaks_while_it_is_free_is_not_lent)
{
	__u64 addr;
	int fd;

	if (cannot_break(self->dev))
		SKIP(return, "%s", cannot_break(self->dev));
	fd = create(self->dev, 64 * MIB, NULL);
	EXPECT_EQ(1, from_pool(self->dev, fd));
	addr = phys_addr(self->dev, fd) + 13 * MIB;
	close(fd);
	EXPECT_TRUE(is_all_zeroed(64 * MIB));
	/* The kernel can't take the page away, which is an error. It is known to be broken then. */
	EXPECT_FALSE(write_file(HWPOISON "corrupt-pfn", "%llu", addr / PAGE));
	fd = create(self->dev, 64 * MIB, NULL);
	EXPECT_EQ(0, from_pool(self->dev, fd));
	EXPECT_EQ(62 * MIB, (__u64)pool_size());
	EXPECT_TRUE(is_all_zeroed(62 * MIB));
	close(fd);
	/* All the rest of it is there. */
	fd = create(self->dev, 50 * MIB, NULL);
	EXPECT_EQ(1, from_pool(self->dev, fd));
	close(fd);
	EXPECT_EQ(62 * MIB, (__u64)pool_free());
	EXPECT_TRUE(write_file(HWPOISON "unpoison-pfn", "%llu", addr / PAGE));
}

TEST_F(pool, pinned_memory_is_given_up_when_it_shrinks)
{
	int pipes[2];

	ASSERT_EQ(0, pin(self->dev, 4 * MIB, MIB, pipes));
	EXPECT_EQ(0, resize(0));
	EXPECT_LT(0, pool_size());
	EXPECT_GE(BLOCK, (__u64)pool_size());
	unpin(pipes);
	EXPECT_TRUE(becomes(SIZE, 0));
}

TEST_F(pool, region_below_4_gib_is_there)
{
	struct tshare_create args = create_args(16 * MIB, NULL);
	struct tshare_info info;
	int fd;

	args.flags = TSHARE_CREATE_DMA32;
	fd = do_create(self->dev, &args);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, get_info(self->dev, fd, &info));
	EXPECT_GE(4 * GIB, info.phys_addr + info.size);
	close(fd);
}

TEST_F(pool, regions_count_against_the_users_limit)
{
	ASSERT_TRUE(write_file(PARAMETERS "user_max_mib", "16"));
	EXPECT_EQ(-EDQUOT, create(self->dev, 18 * MIB, NULL));
	EXPECT_EQ(64 * MIB, (__u64)pool_free());
	EXPECT_TRUE(write_file(PARAMETERS "user_max_mib", "0"));
}

static void ignore(int sig)
{
	(void)sig;
}

/* A handler that others may have for it, which is no reason to die. */
TEST_F(pool, signal_ends_growth)
{
	const struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = {};
	const struct sigaction action = { .sa_handler = ignore };
	int err;

	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &often, NULL));
	err = resize(512 * MIB);
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &never, NULL));
	EXPECT_EQ(-EINTR, err);
	EXPECT_GT(512 * MIB, (__u64)pool_size());
	EXPECT_EQ(pool_size(), read_number(POOL(0, "target")));
}

/* Scheduling policy of the pool's worker, or -1. */
static int worker_policy(void)
{
	FILE *found = popen("grep -lx tshare_pool/0 /proc/[0-9]*/comm", "re");
	int pid = 0;

	if (found) {
		if (fscanf(found, "/proc/%d/comm", &pid) != 1)
			pid = 0;
		pclose(found);
	}
	return pid ? sched_getscheduler(pid) : -1;
}

TEST_F(pool, worker_runs_only_when_nobody_else_does)
{
	EXPECT_EQ(SCHED_IDLE, worker_policy());
}

TEST_F(pool, of_a_node_serves_that_node)
{
	struct tshare_create args = create_args(8 * MIB, NULL);
	int fd;

	if (access(POOL(1, "size"), W_OK))
		SKIP(return, "the machine has one NUMA node");
	set_node(&args, 1);
	fd = do_create(self->dev, &args);
	EXPECT_EQ(0, from_pool(self->dev, fd));
	close(fd);
	set_node(&args, 0);
	fd = do_create(self->dev, &args);
	EXPECT_EQ(1, from_pool(self->dev, fd));
	close(fd);
	ASSERT_EQ(0, write_number(POOL(1, "size"), 16 * MIB));
	EXPECT_EQ(64 * MIB, (__u64)pool_size());
	set_node(&args, 1);
	fd = do_create(self->dev, &args);
	EXPECT_EQ(1, from_pool(self->dev, fd));
	EXPECT_EQ(8 * MIB, (__u64)read_number(POOL(1, "free")));
	EXPECT_EQ(64 * MIB, (__u64)pool_free());
	close(fd);
	EXPECT_EQ(0, write_number(POOL(1, "size"), 0));
}

TEST_F(pool, sizes_of_all_nodes_share_the_limit)
{
	if (access(POOL(1, "size"), W_OK))
		SKIP(return, "the machine has one NUMA node");
	ASSERT_TRUE(write_file(PARAMETERS "max_mib", "96"));
	EXPECT_EQ(-EDQUOT, write_number(POOL(1, "size"), 34 * MIB));
	EXPECT_EQ(0, read_number(POOL(1, "target")));
	EXPECT_EQ(0, write_number(POOL(1, "size"), 32 * MIB));
	EXPECT_EQ(-EDQUOT, resize(66 * MIB));
	EXPECT_EQ(0, resize(32 * MIB));
	EXPECT_EQ(0, write_number(POOL(1, "size"), 64 * MIB));
	EXPECT_EQ(0, write_number(POOL(1, "size"), 0));
	EXPECT_TRUE(write_file(PARAMETERS "max_mib", "0"));
}

FIXTURE(module)
{
	struct stat node;
};

FIXTURE_SETUP(module)
{
	if (!module_is_found())
		SKIP(return, "modprobe doesn't find the module");
	ASSERT_EQ(0, stat(DEVICE, &self->node));
	ASSERT_EQ(0, remove_module());
}

FIXTURE_TEARDOWN(module)
{
	remove_module();
	EXPECT_TRUE(restore_module(&self->node));
}

TEST_F(module, reserves_memory_when_loaded_and_frees_it_when_removed)
{
	long size = 256 * MIB, before, during;

	before = free_memory();
	ASSERT_EQ(0, load_module("pool_mib=256"));
	EXPECT_EQ(size, pool_size());
	during = free_memory();
	EXPECT_EQ(0, remove_module());
	EXPECT_LT(size / 2, before - during);
	EXPECT_LT(size / 2, (long)free_memory() - during);
}

TEST_F(module, refuses_more_than_regions_may_have)
{
	EXPECT_NE(0, load_module("pool_mib=64 max_mib=32"));
	EXPECT_NE(0, access(DEVICE, F_OK));
}

TEST_F(module, refuses_a_pool_on_a_node_without_memory)
{
	EXPECT_NE(0, load_module("pool_mib=8,8,8,8"));
	EXPECT_NE(0, access(DEVICE, F_OK));
}

TEST_F(module, can_be_removed_while_memory_of_the_pool_is_pinned)
{
	char seen[PAGE];
	int dev, pipes[2];

	ASSERT_EQ(0, load_module("pool_mib=16"));
	dev = open_device();
	ASSERT_EQ(0, pin(dev, 4 * MIB + PAGE, 4 * MIB, pipes));
	close(dev);
	EXPECT_EQ(0, remove_module());
	EXPECT_EQ((ssize_t)PAGE, read(pipes[0], seen, PAGE));
	EXPECT_TRUE(zeroed(seen, PAGE));
	unpin(pipes);
}

TEST_HARNESS_MAIN
