// SPDX-License-Identifier: GPL-2.0-only
/*
 * SIGKILL ends a CREATE at any point of its work, and a LIST.
 *
 * Nothing here measures time. The next region's id shows whether the call went
 * on to its end: a complete region takes an id, even if its maker is dead by
 * then. A signal may come too late, or so early that other code checks for it,
 * so each test tries several times.
 */
#include <poll.h>
#include <signal.h>

#include "harness.h"
#include "probe.h"
#include "proc.h"

#define ROUNDS 8
#define LARGE (512 * MIB)
#define SMALL (128 * MIB)
#define QUEUE 4

/* A child that makes a region of @size, writes a byte to @done, and waits. */
static pid_t start_maker(size_t size, int done)
{
	pid_t pid = fork();

	if (!pid) {
		struct tshare_create args = create_args(size, NULL);

		set_node(&args, 0);
		if (do_create(open_device(), &args) < 0)
			_exit(1);
		if (write(done, "", 1) == 1)
			pause();
		_exit(1);
	}
	return pid;
}

static bool end_maker(pid_t pid)
{
	return !kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid;
}

static bool readable(int fd)
{
	struct pollfd polled = { .fd = fd, .events = POLLIN };

	return poll(&polled, 1, 0) == 1;
}

/* The number of bytes that can be read. */
static int count_done(int fd)
{
	int available;

	return ioctl(fd, FIONREAD, &available) ? -1 : available;
}

FIXTURE(killed)
{
	int dev;
	int done[2];
	struct counters before;
};

FIXTURE_SETUP(killed)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	ASSERT_EQ(0, pipe(self->done));
	self->before = count_all();
}

FIXTURE_TEARDOWN(killed)
{
	close(self->done[0]);
	close(self->done[1]);
	close(self->dev);
}

static __u64 next_id(int dev)
{
	int fd = create(dev, PAGE, NULL);
	__u64 id = id_of(dev, fd);

	close(fd);
	return id;
}

/* Waits until free memory has stopped shrinking. */
static void wait_until_taken(void)
{
	__u64 before = free_memory(), now;
	int still = 0;

	while (still < 5) {
		usleep(5000);
		now = free_memory();
		still = now < before ? 0 : still + 1;
		before = now;
	}
}

/*
 * Kills a CREATE that has a part of its memory, or all of it; false if the
 * region was made all the same.
 */
static bool killed_in_time(int dev, int done[2], bool taken)
{
	__u64 id = next_id(dev), memory;
	pid_t maker;
	char byte;

	/* If no page has to be moved, only the module checks for signals. */
	write_file("/proc/sys/vm/drop_caches", "3");
	memory = free_memory();
	maker = start_maker(LARGE, done[1]);
	while (!readable(done[0]) && memory < free_memory() + LARGE / 8)
		;
	if (taken)
		wait_until_taken();
	if (!end_maker(maker) || !id)
		return false;
	if (readable(done[0]))
		return read(done[0], &byte, 1) < 0;
	return next_id(dev) == id + 1;
}

TEST_F(killed, while_memory_is_taken_makes_no_region)
{
	int round, in_time = 0;

	for (round = 0; round < ROUNDS; round++) {
		in_time += killed_in_time(self->dev, self->done, false);
		ASSERT_TRUE(counters_return_to(self->before));
	}
	EXPECT_LT(ROUNDS / 2, in_time);
}

/* The core fails for the signal, too; the search must not take that for memory in use. */
TEST_F(killed, while_memory_is_taken_tries_no_further)
{
	int round, tries;

	if (!probe_begin("ret == -4"))
		SKIP(return, "the kernel has no kprobes");
	for (round = 0; round < ROUNDS; round++) {
		killed_in_time(self->dev, self->done, false);
		ASSERT_TRUE(counters_return_to(self->before));
	}
	tries = probe_count();
	EXPECT_TRUE(probe_end());
	ksft_print_msg("%d tries after %d signals\n", tries, ROUNDS);
	EXPECT_LE(0, tries);
	EXPECT_GE(ROUNDS, tries);
}

TEST_F(killed, while_memory_is_zeroed_makes_no_region)
{
	int round, in_time = 0;

	if (!booted_with("init_on_alloc=0"))
		SKIP(return, "the kernel zeroes memory when it is taken");
	for (round = 0; round < ROUNDS; round++) {
		in_time += killed_in_time(self->dev, self->done, true);
		ASSERT_TRUE(counters_return_to(self->before));
	}
	EXPECT_LT(ROUNDS / 2, in_time);
}

/* Queues up behind others that each keep the search to themselves for long, and is killed. */
static int done_before_the_last_was_killed(int done[2])
{
	long before = read_number(SYSFS "bytes");
	pid_t makers[QUEUE + 1];
	int i, count;

	for (i = 0; i <= QUEUE; i++) {
		makers[i] = start_maker(SMALL, done[1]);
		while (read_number(SYSFS "bytes") < before + (i + 1) * (long)SMALL)
			if (waitpid(makers[i], NULL, WNOHANG))
				return -1;
	}
	if (!end_maker(makers[QUEUE]))
		return -1;
	count = count_done(done[0]);
	for (i = 0; i < QUEUE; i++)
		if (!end_maker(makers[i]))
			return -1;
	return count;
}

TEST_F(killed, while_others_search_waits_for_none_of_them)
{
	int round, count, least = QUEUE + 1;
	char bytes[QUEUE + 1];

	if (booted_with("init_on_alloc=0"))
		SKIP(return, "the search doesn't zero memory, and is over too soon");
	for (round = 0; round < ROUNDS; round++) {
		count = done_before_the_last_was_killed(self->done);
		ASSERT_LE(0, count);
		least = count < least ? count : least;
		while (readable(self->done[0]))
			ASSERT_LT(0, read(self->done[0], bytes, sizeof(bytes)));
		ASSERT_TRUE(counters_return_to(self->before));
	}
	EXPECT_GT(QUEUE / 2, least);
}

#define REGIONS 4000

/* Has a child list all regions, kills it when it has some, and counts what it has. */
static int listed_when_killed(int dev)
{
	size_t size = REGIONS * sizeof(struct tshare_list_entry);
	struct tshare_list_entry *entries;
	int count = 0;
	pid_t pid;

	entries = mmap(NULL, size, RW, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (entries == MAP_FAILED)
		return -1;
	pid = fork();
	if (!pid) {
		do_list(dev, 0, entries, REGIONS);
		pause();
	}
	while (!*(volatile __u64 *)&entries[1].id)
		;
	if (!end_maker(pid))
		return -1;
	while (count < REGIONS && entries[count].id)
		count++;
	munmap(entries, size);
	return count;
}

TEST_F(killed, while_regions_are_listed_lists_no_more)
{
	int i, round, count, least = REGIONS;
	char name[16];

	for (i = 0; i < REGIONS; i++) {
		sprintf(name, "%d", i);
		ASSERT_EQ(0, close(create(self->dev, PAGE, name)));
	}
	for (round = 0; round < ROUNDS; round++) {
		count = listed_when_killed(self->dev);
		ASSERT_LE(0, count);
		least = count < least ? count : least;
	}
	EXPECT_GT(REGIONS, least);
}

TEST_HARNESS_MAIN
