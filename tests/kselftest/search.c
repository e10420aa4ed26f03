// SPDX-License-Identifier: GPL-2.0-only
/* The search for a contiguous run finds free and movable memory, and spares the rest. */
#include <linux/io_uring.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>

#include "harness.h"
#include "held.h"
#include "probe.h"
#include "spliced.h"

#define PARAMETERS "/sys/module/tshare/parameters/"

FIXTURE(search)
{
	int dev;
};

FIXTURE_SETUP(search)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	ASSERT_TRUE(write_file(PARAMETERS "max_mib", "1000000"));
}

FIXTURE_TEARDOWN(search)
{
	EXPECT_TRUE(write_file(PARAMETERS "max_mib", "0"));
	close(self->dev);
}

/* 0, or the negative errno of CREATE. */
static int try_create(int dev, __u64 size, __u32 flags)
{
	struct tshare_create args = create_args(size, NULL);
	int fd;

	args.flags = flags;
	fd = do_create(dev, &args);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* Pins pages as a device's driver would, without a time limit. */
static bool hold_pinned(size_t size)
{
	struct io_uring_params params = {};
	char *mem = huge_pages(size);
	struct iovec iov = { .iov_base = mem, .iov_len = size };
	int ring = syscall(SYS_io_uring_setup, 4, &params);

	return mem != MAP_FAILED && ring >= 0 &&
	       !syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &iov, 1);
}

TEST_F(search, pages_in_pipes_do_not_end_it)
{
	pid_t pid = held_by_another(hold_spliced, most_of_memory(1050 * HUGE));
	int i;

	ASSERT_LT(0, pid);
	for (i = 0; i < 4; i++)
		EXPECT_EQ(0, try_create(self->dev, 64 * MIB, 0));
	end(pid);
}

TEST_F(search, memory_of_a_device_does_not_end_it)
{
	/* One buffer has at most 1 GiB. */
	pid_t pid = held_by_another(hold_pinned, most_of_memory(GIB));
	int i;

	ASSERT_LT(0, pid);
	for (i = 0; i < 4; i++)
		EXPECT_EQ(0, try_create(self->dev, 64 * MIB, 0));
	end(pid);
}

struct zone {
	long free, min, protection[3];
};

/* Values of a zone in /proc/zoneinfo; all -1 if there is no such zone. */
static struct zone zone_state(const char *name)
{
	struct zone zone = { .free = -1, .min = -1, .protection = { -1, -1, -1 } };
	long *at = zone.protection, value;
	FILE *file = fopen("/proc/zoneinfo", "re");
	char line[256], word[32], current[32] = "";

	while (file && at[0] < 0 && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Node %*d, zone %31s", word) == 1)
			strcpy(current, word);
		if (strcmp(current, name))
			continue;
		if (sscanf(line, " pages free %ld", &value) == 1)
			zone.free = value;
		else if (sscanf(line, " min %ld", &value) == 1)
			zone.min = value;
		else if (sscanf(line, " protection: (%ld, %ld, %ld", &at[0], &at[1], &at[2]) == 3)
			break;
	}
	if (file)
		fclose(file);
	return zone;
}

TEST_F(search, zones_keep_their_reserves)
{
	struct tshare_create args = create_args(4 * MIB, NULL);
	struct zone dma, dma32, zone;
	int fd;

	args.flags = TSHARE_CREATE_DMA32;
	do {
		fd = do_create(self->dev, &args);
	} while (fd >= 0);
	EXPECT_EQ(-ENOMEM, fd);
	dma = zone_state("DMA");
	dma32 = zone_state("DMA32");
	/* On arm64 all memory below 4 GiB is in ZONE_DMA, unless a device sees less. */
	zone = dma32.min > 0 ? dma32 : dma;
	ASSERT_LT(0, zone.min);
	/* What is wanted of ZONE_DMA32 may fall back to ZONE_DMA, if there is one, but for this. */
	if (dma.min > 0)
		EXPECT_LE(dma.min + dma.protection[1], dma.free);
	/* The emergency reserve is only for allocations that can't wait. */
	EXPECT_LE(zone.min / 2, zone.free);
}

#define MIN_FREE "/proc/sys/vm/min_free_kbytes"

/* Fills memory with pages that the kernel may reclaim without writing them anywhere. */
static bool hold_reclaimable(size_t size)
{
	char *mem = mmap(NULL, size, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; mem != MAP_FAILED && i < size; i += PAGE)
		mem[i] = 1;
	return mem != MAP_FAILED && !madvise(mem, size, MADV_FREE);
}

TEST_F(search, memory_is_reclaimed_for_it)
{
	long reserve = read_number(MIN_FREE);
	pid_t pid;

	if (free_memory() > 4608 * MIB)
		SKIP(return, "the machine has too much memory to fill");
	ASSERT_LT(0, reserve);
	pid = held_by_another(hold_reclaimable, free_memory() / 8 * 7);
	ASSERT_LT(0, pid);
	/* No zone of the region's size can spare a page then; each has enough to reclaim. */
	EXPECT_TRUE(write_file(MIN_FREE, "%llu", free_memory() * 3 / KIB));
	EXPECT_EQ(0, try_create(self->dev, 64 * MIB, 0));
	EXPECT_TRUE(write_file(MIN_FREE, "%ld", reserve));
	end(pid);
}

#define MEMORY "/sys/devices/system/memory/"

/* Takes one block of memory after the other offline and back, for ever. */
static bool toggle_memory(size_t count)
{
	char path[64];
	size_t i;

	if (fork())
		return true;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (i = 0;; i = (i + 1) % count) {
		snprintf(path, sizeof(path), MEMORY "memory%zu/state", i);
		if (write_file(path, "offline"))
			while (!write_file(path, "online"))
				usleep(1000);
	}
}

TEST_F(search, memory_may_go_offline_meanwhile)
{
	pid_t pid;
	int i;

	if (access(MEMORY "memory0/state", W_OK))
		SKIP(return, "the kernel can't take memory offline");
	pid = held_by_another(toggle_memory, 32);
	ASSERT_LT(0, pid);
	for (i = 0; i < 100; i++) {
		int err = try_create(self->dev, (i % 8 + 1) * 4 * MIB, 0);

		EXPECT_TRUE(!err || err == -ENOMEM);
	}
	end(pid);
	/* Brings blocks online that were offline when their toggler ended. */
	for (i = 0; i < 32; i++) {
		char path[64];

		snprintf(path, sizeof(path), MEMORY "memory%d/state", i);
		write_file(path, "online");
	}
	EXPECT_EQ(0, try_create(self->dev, 64 * MIB, 0));
}

/* Each call has all CPUs drain their lists of free pages. */
TEST_F(search, run_is_taken_at_once)
{
	struct utsname kernel;
	int tries;

	ASSERT_EQ(0, uname(&kernel));
	if (strncmp(kernel.release, "6.1.", 4))
		SKIP(return, "from 6.12 on a run takes a call for each 2 MiB");
	if (!probe_begin("ret == 0"))
		SKIP(return, "the kernel has no kprobes");
	EXPECT_EQ(0, try_create(self->dev, 256 * MIB, 0));
	tries = probe_count();
	EXPECT_TRUE(probe_end());
	EXPECT_EQ(1, tries);
}

TEST_F(search, pinned_memory_is_not_tried)
{
	int tries;
	pid_t pid;

	if (!probe_begin("ret != 0"))
		SKIP(return, "the kernel has no kprobes");
	pid = held_by_another(hold_spliced, most_of_memory(1050 * HUGE));
	ASSERT_LT(0, pid);
	EXPECT_EQ(0, try_create(self->dev, 64 * MIB, 0));
	tries = probe_count();
	EXPECT_TRUE(probe_end());
	end(pid);
	ksft_print_msg("%d tries failed\n", tries);
	EXPECT_LE(0, tries);
	EXPECT_GT(8, tries);
}

static __u64 milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ULL + now.tv_nsec / 1000000;
}

#define BURST 256
#define FAILURES_PER_SECOND 50
#define SECONDS 12

/* Each useless try has all CPUs drain their lists of free pages. */
TEST_F(search, tries_that_fail_are_limited)
{
	__u64 start, passed;
	int tries;
	pid_t pid;

	if (!probe_begin("ret != 0"))
		SKIP(return, "the kernel has no kprobes");
	pid = held_by_another(hold_spliced, most_of_memory(1050 * HUGE));
	ASSERT_LT(0, pid);
	/* The memory that is left then looks as if it were on its way to the LRU. */
	while (create(self->dev, 64 * MIB, NULL) >= 0)
		;
	start = milliseconds();
	do {
		EXPECT_EQ(-ENOMEM, try_create(self->dev, 64 * MIB, 0));
		passed = milliseconds() - start;
		tries = probe_count();
	} while (passed < SECONDS * 1000);
	EXPECT_TRUE(probe_end());
	end(pid);
	ksft_print_msg("%d tries failed in %llu ms\n", tries, passed);
	EXPECT_LT(BURST, tries);
	EXPECT_GE(BURST + (passed + 1000) * FAILURES_PER_SECOND / 1000, (__u64)tries);
}

TEST_HARNESS_MAIN
