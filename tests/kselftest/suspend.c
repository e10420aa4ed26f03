// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes are frozen while they use the module, as for suspend. The kernel's test mode
 * stops there; asleep.c goes on.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include "frozen.h"
#include "harness.h"
#include "held.h"
#include "pool.h"
#include "spliced.h"

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 900

#define PARAMETERS "/sys/module/tshare/parameters/"
#define POWER "/sys/power/"
#define DELAY "/sys/module/suspend/parameters/pm_test_delay"

static void __attribute__((constructor)) need_suspend(void)
{
	if (access(POWER "pm_test", W_OK))
		ksft_exit_skip("the kernel has no test mode of suspend\n");
}

/* Freezes all other processes for a second; -EBUSY if one can't be frozen for 20 s. */
static int freeze_all(void)
{
	int fd, ret;

	if (!write_file(DELAY, "1") || !write_file(POWER "pm_test", "freezer"))
		return -EIO;
	fd = open(POWER "state", O_WRONLY | O_CLOEXEC);
	ret = write(fd, "mem", 3) < 0 ? -errno : 0;
	close(fd);
	write_file(POWER "pm_test", "none");
	return ret;
}

FIXTURE(suspend)
{
	int dev;
	struct counters before;
};

FIXTURE_SETUP(suspend)
{
	self->before = count_all();
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
}

FIXTURE_TEARDOWN(suspend)
{
	close(self->dev);
}

TEST_F(suspend, region_is_as_it_was)
{
	int small = create(self->dev, PAGE, NULL), large = create(self->dev, 8 * MIB, "large");
	char *page = map(small, PAGE, RW), *pages = map(large, 8 * MIB, RW);

	ASSERT_NE(MAP_FAILED, page);
	ASSERT_NE(MAP_FAILED, pages);
	fill(page, PAGE, 1);
	fill(pages, 8 * MIB, 2);
	ASSERT_EQ(0, freeze_all());
	EXPECT_TRUE(filled(page, PAGE, 1));
	EXPECT_TRUE(filled(pages, 8 * MIB, 2));
	EXPECT_LE(0, open_name(self->dev, "large", TSHARE_OPEN_WRITE));
}

TEST_F(suspend, process_that_waits_for_a_name_goes_on_waiting)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(wait_for_name());
	ASSERT_TRUE(sleeps(pid));
	ASSERT_EQ(0, freeze_all());
	EXPECT_EQ(0, waitpid(pid, &status, WNOHANG));
	ASSERT_LE(0, create(self->dev, PAGE, "awaited"));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_F(suspend, search_keeps_no_process_from_freezing)
{
	int round, status;
	pid_t pid = fork();

	if (!pid)
		for (;;)
			close(create(self->dev, 64 * MIB, NULL));
	for (round = 0; round < 2; round++)
		EXPECT_EQ(0, freeze_all());
	EXPECT_EQ(0, waitpid(pid, &status, WNOHANG));
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(counters_return_to(self->before));
}

/* What is left when no such region can be created is enough for all that run. */
#define LARGE (128 * MIB)

/* Processes that search for ever, and find nothing. */
static bool search_in_vain(size_t count)
{
	int dev = open_device();

	while (count--) {
		pid_t pid = fork();

		if (pid < 0)
			return false;
		if (pid)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			close(create(dev, LARGE, NULL));
	}
	return true;
}

/* So many that each waits for its turn to try, and longer than the freezer waits for them all. */
TEST_F(suspend, search_that_waits_for_its_turn_freezes)
{
	pid_t holder, searches;
	int fd;

	ASSERT_TRUE(write_file(PARAMETERS "max_mib", "1000000"));
	holder = held_by_another(hold_spliced, most_of_memory(1050 * HUGE));
	ASSERT_LT(0, holder);
	do {
		fd = create(self->dev, LARGE, NULL);
	} while (fd >= 0);
	EXPECT_EQ(-ENOMEM, fd);
	searches = held_by_another(search_in_vain, 120);
	EXPECT_LT(0, searches);
	/* Until the failures of the burst are spent. */
	sleep(4);
	EXPECT_EQ(0, freeze_all());
	end(searches);
	end(holder);
	EXPECT_TRUE(write_file(PARAMETERS "max_mib", "0"));
}

/* Processes that leave no processor to a task that runs when no other wants to. */
static bool spin(size_t count)
{
	while (count--) {
		pid_t pid = fork();

		if (pid < 0)
			return false;
		if (pid)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			;
	}
	return true;
}

/*
 * Processes are frozen before the kernel's threads. So the worker waits for a processor until
 * these are frozen, too, and has nearly all of its work before it then.
 */
TEST_F(suspend, worker_of_the_pool_freezes_at_work)
{
	const long size = 256 * MIB;
	pid_t spinning;
	int fd;

	ASSERT_EQ(0, resize(size));
	/* Before the region is there, of which they would have a descriptor. */
	spinning = held_by_another(spin, sysconf(_SC_NPROCESSORS_ONLN));
	EXPECT_LT(0, spinning);
	fd = create(self->dev, size, NULL);
	EXPECT_TRUE(is_zero_and_filled(fd, size));
	close(fd);
	EXPECT_EQ(0, freeze_all());
	EXPECT_GT(size, read_number(POOL(0, "zeroed")));
	end(spinning);
	EXPECT_TRUE(is_all_zeroed(size));
	EXPECT_EQ(0, resize(0));
}

TEST_HARNESS_MAIN
