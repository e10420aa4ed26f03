// SPDX-License-Identifier: GPL-2.0-only
/* Limits of cgroups on regions, by the kernel's controller dmem. */
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>

#include "harness.h"
#include "pin.h"
#include "pool.h"
#include "record.h"

#define PARAMETERS "/sys/module/tshare/parameters/"
#define CGROUPS "/sys/fs/cgroup/"
#define JOB CGROUPS "tshare-dmem/"
#define FIRST JOB "first/"
#define SECOND JOB "second/"
#define OTHER CGROUPS "tshare-dmem-other/"

static void __attribute__((constructor)) gate_dmem(void)
{
	if (!write_file(CGROUPS "cgroup.subtree_control", "+dmem"))
		ksft_exit_skip("the kernel has no dmem cgroups\n");
}

/* The number in the module's line of a file of the controller's; -1 if there is no such line. */
static long dmem(const char *path)
{
	FILE *file = fopen(path, "re");
	char line[256];
	long value = -1;

	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file) && sscanf(line, "tshare %ld", &value) != 1)
		;
	fclose(file);
	return value;
}

static bool set_max(const char *path, long bytes)
{
	return write_file(path, "tshare %ld", bytes) && dmem(path) == bytes;
}

static bool join(const char *cgroup)
{
	char path[128];

	snprintf(path, sizeof(path), "%scgroup.procs", cgroup);
	return write_file(path, "0");
}

/* Leaves the groups, and removes them. */
static void remove_groups(void)
{
	join(CGROUPS);
	rmdir(FIRST);
	rmdir(SECOND);
	rmdir(JOB);
	rmdir(OTHER);
}

FIXTURE(dmem)
{
	int dev;
	struct counters before;
};

/* The test is in the group JOB. */
FIXTURE_SETUP(dmem)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	/* An earlier test that failed has left groups. */
	remove_groups();
	ASSERT_EQ(0, mkdir(JOB, 0755));
	ASSERT_TRUE(join(JOB));
	self->before = count_all();
}

FIXTURE_TEARDOWN(dmem)
{
	EXPECT_TRUE(write_file(PARAMETERS "max_mib", "0"));
	EXPECT_EQ(0, resize(0));
	remove_groups();
	close(self->dev);
}

/* Two groups in the job, in place of the job itself; the test is in the first. */
static bool divide_job(void)
{
	return !mkdir(FIRST, 0755) && !mkdir(SECOND, 0755) && join(FIRST) &&
	       write_file(JOB "cgroup.subtree_control", "+dmem");
}

TEST_F(dmem, capacity_is_the_machines_memory)
{
	struct sysinfo memory;

	ASSERT_EQ(0, sysinfo(&memory));
	EXPECT_EQ((long)(memory.totalram * memory.mem_unit), dmem(CGROUPS "dmem.capacity"));
}

TEST_F(dmem, regions_of_any_size_count)
{
	static const size_t sizes[] = { PAGE, 2 * MIB, 3 * MIB + PAGE, 16 * MIB };
	size_t i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		fd = create(self->dev, sizes[i], NULL);
		ASSERT_LE(0, fd);
		EXPECT_EQ((long)sizes[i], dmem(JOB "dmem.current"));
		close(fd);
		EXPECT_EQ(0, dmem(JOB "dmem.current"));
	}
}

TEST_F(dmem, descriptors_of_more_than_a_page_count)
{
	struct records records = many_records(1000);
	int fd = create_with_records(self->dev, PAGE, &records);

	ASSERT_LE(0, fd);
	EXPECT_EQ((long)(PAGE + whole_pages(records.size)), dmem(JOB "dmem.current"));
	close(fd);
	EXPECT_EQ(0, dmem(JOB "dmem.current"));
	free(records.data);
}

TEST_F(dmem, pool_counts_only_what_regions_have_of_it)
{
	int fd;

	ASSERT_EQ(0, resize(16 * MIB));
	EXPECT_EQ(0, dmem(JOB "dmem.current"));
	fd = create(self->dev, 4 * MIB, NULL);
	ASSERT_EQ(1, from_pool(self->dev, fd));
	EXPECT_EQ(4 * (long)MIB, dmem(JOB "dmem.current"));
	close(fd);
	EXPECT_EQ(0, dmem(JOB "dmem.current"));
}

TEST_F(dmem, limit_is_edquot_and_nothing_is_left)
{
	int fd;

	ASSERT_TRUE(set_max(JOB "dmem.max", 8 * MIB));
	EXPECT_EQ(-EDQUOT, create(self->dev, 8 * MIB + 1, "refused"));
	EXPECT_SAME_COUNTERS(self->before);
	EXPECT_EQ(0, dmem(JOB "dmem.current"));
	fd = create(self->dev, 8 * MIB, NULL);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EDQUOT, create(self->dev, 1, NULL));
	close(fd);
	EXPECT_LE(0, create(self->dev, 8 * MIB, NULL));
}

TEST_F(dmem, regions_refused_by_another_limit_leave_no_charge)
{
	ASSERT_TRUE(write_file(PARAMETERS "max_mib", "4"));
	EXPECT_EQ(-EDQUOT, create(self->dev, 8 * MIB, NULL));
	EXPECT_EQ(0, dmem(JOB "dmem.current"));
}

TEST_F(dmem, regions_that_fail_leave_no_charge)
{
	struct records records = many_records(1000);

	records.count++;
	EXPECT_EQ(-EINVAL, create_with_records(self->dev, PAGE, &records));
	EXPECT_EQ(0, dmem(JOB "dmem.current"));
	free(records.data);
}

TEST_F(dmem, charge_is_whole_until_the_last_pin_is_gone)
{
	int pipes[2];

	ASSERT_TRUE(set_max(JOB "dmem.max", 6 * MIB));
	ASSERT_EQ(0, pin(self->dev, 6 * MIB, MIB, pipes));
	EXPECT_GT(6 * (long)MIB, read_number(SYSFS "bytes"));
	EXPECT_EQ(6 * (long)MIB, dmem(JOB "dmem.current"));
	EXPECT_EQ(-EDQUOT, create(self->dev, 1, NULL));
	unpin(pipes);
	/* The module looks before it refuses. */
	EXPECT_LE(0, create(self->dev, 6 * MIB, NULL));
}

TEST_F(dmem, charge_ends_by_itself_after_the_last_pin)
{
	int pipes[2], tries;

	ASSERT_EQ(0, pin(self->dev, 2 * MIB, 0, pipes));
	unpin(pipes);
	for (tries = 0; tries < 3000 && dmem(JOB "dmem.current"); tries++)
		usleep(10000);
	EXPECT_EQ(0, dmem(JOB "dmem.current"));
}

TEST_F(dmem, other_cgroups_are_not_hindered)
{
	ASSERT_EQ(0, mkdir(OTHER, 0755));
	ASSERT_TRUE(set_max(JOB "dmem.max", 4 * MIB));
	ASSERT_LE(0, create(self->dev, 4 * MIB, NULL));
	ASSERT_TRUE(join(OTHER));
	EXPECT_LE(0, create(self->dev, 8 * MIB, NULL));
	EXPECT_EQ(4 * (long)MIB, dmem(JOB "dmem.current"));
	EXPECT_EQ(8 * (long)MIB, dmem(OTHER "dmem.current"));
}

TEST_F(dmem, creators_cgroup_is_charged_whoever_has_the_region)
{
	int fd = create(self->dev, 4 * MIB, "shared"), second;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, mkdir(OTHER, 0755));
	ASSERT_TRUE(join(OTHER));
	second = open_name(self->dev, "shared", TSHARE_OPEN_WRITE);
	ASSERT_LE(0, second);
	close(fd);
	EXPECT_EQ(0, unlink_name(self->dev, "shared"));
	EXPECT_EQ(4 * (long)MIB, dmem(JOB "dmem.current"));
	EXPECT_EQ(0, dmem(OTHER "dmem.current"));
	close(second);
	EXPECT_EQ(0, dmem(JOB "dmem.current"));
	EXPECT_EQ(0, dmem(OTHER "dmem.current"));
}

TEST_F(dmem, parents_limit_their_children_together)
{
	ASSERT_TRUE(divide_job());
	ASSERT_TRUE(set_max(JOB "dmem.max", 8 * MIB));
	ASSERT_LE(0, create(self->dev, 6 * MIB, NULL));
	ASSERT_TRUE(join(SECOND));
	EXPECT_EQ(-EDQUOT, create(self->dev, 4 * MIB, NULL));
	EXPECT_EQ(0, dmem(SECOND "dmem.current"));
	EXPECT_LE(0, create(self->dev, 2 * MIB, NULL));
	EXPECT_EQ(6 * (long)MIB, dmem(FIRST "dmem.current"));
	EXPECT_EQ(2 * (long)MIB, dmem(SECOND "dmem.current"));
	EXPECT_EQ(8 * (long)MIB, dmem(JOB "dmem.current"));
}

TEST_F(dmem, parents_are_charged_for_regions_of_cgroups_that_are_gone)
{
	char *mem;
	int fd;

	ASSERT_TRUE(divide_job());
	fd = create(self->dev, 4 * MIB, NULL);
	mem = map(fd, 4 * MIB, RW);
	ASSERT_NE(MAP_FAILED, mem);
	ASSERT_TRUE(join(SECOND));
	ASSERT_EQ(0, rmdir(FIRST));
	EXPECT_EQ(4 * (long)MIB, dmem(JOB "dmem.current"));
	fill(mem, 4 * MIB, 1);
	EXPECT_TRUE(filled(mem, 4 * MIB, 1));
	close(fd);
	EXPECT_EQ(4 * (long)MIB, dmem(JOB "dmem.current"));
	munmap(mem, 4 * MIB);
	EXPECT_EQ(0, dmem(JOB "dmem.current"));
}

/* A thread that closes a region while its group goes. */
struct closer {
	pthread_barrier_t begin;
	pthread_barrier_t end;
	int fd;
};

static void *close_meanwhile(void *arg)
{
	struct closer *closer = arg;

	for (;;) {
		pthread_barrier_wait(&closer->begin);
		close(closer->fd);
		pthread_barrier_wait(&closer->end);
	}
	return NULL;
}

TEST_F(dmem, regions_and_their_cgroups_may_go_at_once)
{
	struct closer closer;
	pthread_t thread;
	int i;

	ASSERT_TRUE(divide_job());
	pthread_barrier_init(&closer.begin, NULL, 2);
	pthread_barrier_init(&closer.end, NULL, 2);
	ASSERT_EQ(0, pthread_create(&thread, NULL, close_meanwhile, &closer));
	for (i = 0; i < rounds(400); i++) {
		closer.fd = create(self->dev, (1 + i % 3) * MIB, NULL);
		ASSERT_LE(0, closer.fd);
		ASSERT_TRUE(join(SECOND));
		pthread_barrier_wait(&closer.begin);
		ASSERT_EQ(0, rmdir(FIRST));
		pthread_barrier_wait(&closer.end);
		ASSERT_EQ(0, dmem(JOB "dmem.current"));
		ASSERT_EQ(0, mkdir(FIRST, 0755));
		ASSERT_TRUE(join(FIRST));
	}
	EXPECT_EQ(self->before.bytes, read_number(SYSFS "bytes"));
}

static int create_and_close(void *arg)
{
	int dev = *(int *)arg, i;

	for (i = 0; i < rounds(400); i++) {
		int fd = create(dev, (1 + i % 3) * MIB, NULL);

		if (fd < 0 && fd != -EDQUOT)
			return 1;
		/* Not dmem.current, to which the kernel also adds for a moment what it refuses. */
		if (read_number(SYSFS "bytes") > 4 * (long)MIB)
			return 2;
		if (fd >= 0)
			close(fd);
	}
	return 0;
}

TEST_F(dmem, limit_holds_while_processes_create_and_close)
{
	pid_t pids[4];
	int status;
	size_t i;

	ASSERT_TRUE(set_max(JOB "dmem.max", 4 * MIB));
	for (i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = fork();
		if (!pids[i])
			_exit(create_and_close(&self->dev));
	}
	for (i = 0; i < ARRAY_SIZE(pids); i++) {
		ASSERT_EQ(pids[i], waitpid(pids[i], &status, 0));
		EXPECT_EQ(0, status);
	}
	EXPECT_EQ(0, dmem(JOB "dmem.current"));
}

TEST_F(dmem, module_can_be_removed_while_a_charge_is_left)
{
	struct stat node;
	int pipes[2];

	if (system("modinfo tshare > /dev/null 2>&1"))
		SKIP(return, "modprobe doesn't find the module");
	ASSERT_EQ(0, stat(DEVICE, &node));
	ASSERT_TRUE(set_max(JOB "dmem.max", 4 * MIB));
	ASSERT_EQ(0, pin(self->dev, 4 * MIB, 0, pipes));
	close(self->dev);
	EXPECT_EQ(0, syscall(SYS_delete_module, "tshare", O_NONBLOCK));
	EXPECT_EQ(-1, dmem(CGROUPS "dmem.capacity"));
	EXPECT_EQ(-1, dmem(JOB "dmem.current"));
	unpin(pipes);
	ASSERT_EQ(0, system("modprobe tshare"));
	ASSERT_EQ(0, chown(DEVICE, node.st_uid, node.st_gid));
	ASSERT_EQ(0, chmod(DEVICE, node.st_mode & 0777));
	EXPECT_EQ(0, dmem(JOB "dmem.current"));
	/* The limit has gone, too. */
	self->dev = open_device();
	EXPECT_EQ(0, close(create(self->dev, 8 * MIB, NULL)));
}

TEST_HARNESS_MAIN
