// SPDX-License-Identifier: GPL-2.0-only
/* Descriptors, locked memory, and the module's own limits. */
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/sysinfo.h>

#include "harness.h"
#include "record.h"
#include "ring.h"

#define PARAMETERS "/sys/module/tshare/parameters/"

enum parameter { MAX_MIB, USER_MAX_MIB, NS_MAX_MIB, PARAMETER_COUNT };

static const char *const parameters[] = {
	[MAX_MIB] = PARAMETERS "max_mib",
	[USER_MAX_MIB] = PARAMETERS "user_max_mib",
	[NS_MAX_MIB] = PARAMETERS "ns_max_mib",
};

static bool set_limit(int resource, __u64 limit)
{
	struct rlimit rlimit = { .rlim_cur = limit, .rlim_max = limit };

	return !setrlimit(resource, &rlimit);
}

static bool set_parameter(int fd, const char *value)
{
	return pwrite(fd, value, strlen(value), 0) == (ssize_t)strlen(value);
}

static __u64 region_bytes_max(int dev)
{
	struct tshare_query query = {};

	return xioctl(dev, TSHARE_IOCTL_QUERY, &query) ? 0 : query.region_bytes_max;
}

FIXTURE(limits)
{
	int dev;
	/* Opened as root, so that a test can restore them under any user. */
	int parameters[PARAMETER_COUNT];
	struct counters before;
};

FIXTURE_SETUP(limits)
{
	int i;

	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	for (i = 0; i < PARAMETER_COUNT; i++) {
		self->parameters[i] = open(parameters[i], O_WRONLY | O_CLOEXEC);
		ASSERT_LE(0, self->parameters[i]);
	}
	self->before = count_all();
}

FIXTURE_TEARDOWN(limits)
{
	int i;

	for (i = 0; i < PARAMETER_COUNT; i++)
		EXPECT_TRUE(set_parameter(self->parameters[i], "0"));
	close(self->dev);
}

TEST_F(limits, no_descriptor_left_is_emfile)
{
	struct tshare_create args = create_args(PAGE, "new");
	struct counters before;

	ASSERT_LE(0, create(self->dev, PAGE, "there"));
	before = count_all();
	ASSERT_TRUE(set_limit(RLIMIT_NOFILE, before.fds));
	EXPECT_EQ(-EMFILE, do_create(self->dev, &args));
	args = create_args(PAGE, "new");
	args.flags = TSHARE_CREATE_PERSIST;
	EXPECT_EQ(-EMFILE, do_create(self->dev, &args));
	EXPECT_EQ(-EMFILE, open_name(self->dev, "there", 0));
	ASSERT_TRUE(set_limit(RLIMIT_NOFILE, 1024));
	EXPECT_SAME_COUNTERS(before);
	EXPECT_EQ(-ENOENT, unlink_name(self->dev, "new"));
}

TEST_F(limits, locked_memory_is_limited)
{
	int first;

	ASSERT_TRUE(set_limit(RLIMIT_MEMLOCK, 4 * MIB));
	ASSERT_TRUE(become(USER_A));
	EXPECT_EQ(4 * MIB, region_bytes_max(self->dev));
	EXPECT_EQ(-EDQUOT, create(self->dev, 4 * MIB + 1, NULL));
	EXPECT_EQ(4 * MIB, region_bytes_max(self->dev));
	first = create(self->dev, 3 * MIB, NULL);
	ASSERT_LE(0, first);
	EXPECT_EQ(1 * MIB, region_bytes_max(self->dev));
	EXPECT_EQ(-EDQUOT, create(self->dev, 2 * MIB, NULL));
	EXPECT_LE(0, create(self->dev, 1 * MIB, NULL));
	EXPECT_EQ(0, region_bytes_max(self->dev));
	EXPECT_EQ(-EDQUOT, create(self->dev, 1, NULL));
	close(first);
	EXPECT_EQ(3 * MIB, region_bytes_max(self->dev));
	EXPECT_LE(0, create(self->dev, 3 * MIB, NULL));
}

TEST_F(limits, locked_memory_is_counted_until_the_last_user_is_gone)
{
	int fd, second;
	char *mem;

	ASSERT_TRUE(set_limit(RLIMIT_MEMLOCK, 4 * MIB));
	ASSERT_TRUE(become(USER_A));
	fd = create(self->dev, 4 * MIB, "counted");
	ASSERT_LE(0, fd);
	second = open_name(self->dev, "counted", 0);
	mem = map(fd, 4 * MIB, RW);
	ASSERT_NE(MAP_FAILED, mem);
	close(fd);
	EXPECT_EQ(0, region_bytes_max(self->dev));
	munmap(mem, 4 * MIB);
	EXPECT_EQ(0, region_bytes_max(self->dev));
	close(second);
	EXPECT_EQ(0, region_bytes_max(self->dev));
	ASSERT_EQ(0, unlink_name(self->dev, "counted"));
	EXPECT_EQ(4 * MIB, region_bytes_max(self->dev));
}

TEST_F(limits, locked_memory_is_its_creators_wherever_it_ends)
{
	int fd;

	ASSERT_EQ(0, prctl(PR_SET_KEEPCAPS, 1));
	ASSERT_TRUE(set_limit(RLIMIT_MEMLOCK, 4 * MIB));
	ASSERT_TRUE(become(USER_A));
	fd = create(self->dev, 4 * MIB, NULL);
	ASSERT_LE(0, fd);
	ASSERT_TRUE(keep_only_capability(CAP_SETUID));
	ASSERT_EQ(0, setresuid(USER_B, USER_B, USER_A));
	EXPECT_EQ(4 * MIB, region_bytes_max(self->dev));
	close(fd);
	ASSERT_EQ(0, setresuid(USER_A, USER_A, USER_A));
	EXPECT_EQ(4 * MIB, region_bytes_max(self->dev));
}

TEST_F(limits, cap_ipc_lock_exempts_from_locked_memory)
{
	ASSERT_TRUE(set_limit(RLIMIT_MEMLOCK, 0));
	ASSERT_EQ(0, prctl(PR_SET_KEEPCAPS, 1));
	ASSERT_TRUE(become(USER_A));
	EXPECT_EQ(-EDQUOT, create(self->dev, PAGE, NULL));
	ASSERT_TRUE(keep_only_capability(CAP_IPC_LOCK));
	EXPECT_LE(0, create(self->dev, 4 * MIB, NULL));
}

/* Root of a container has all capabilities, and none of them on the machine. */
TEST_F(limits, cap_ipc_lock_in_a_user_namespace_exempts_from_nothing)
{
	ASSERT_TRUE(set_limit(RLIMIT_MEMLOCK, 4 * MIB));
	ASSERT_EQ(0, unshare(CLONE_NEWUSER));
	EXPECT_EQ(4 * MIB, region_bytes_max(self->dev));
	EXPECT_EQ(-EDQUOT, create(self->dev, 4 * MIB + 1, NULL));
	EXPECT_LE(0, create(self->dev, 4 * MIB, NULL));
}

TEST_F(limits, memory_that_the_kernel_has_locked_for_the_user_counts)
{
	struct iovec buffer = { .iov_len = 1 * MIB };
	struct ring ring;

	buffer.iov_base = mmap(NULL, buffer.iov_len, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, buffer.iov_base);
	ASSERT_TRUE(set_limit(RLIMIT_MEMLOCK, 4 * MIB));
	ASSERT_TRUE(become(USER_A));
	ASSERT_EQ(0, ring_open(&ring));
	ASSERT_EQ(0, ring_register(&ring, &buffer, 1));
	EXPECT_EQ(3 * MIB, region_bytes_max(self->dev));
	EXPECT_EQ(-EDQUOT, create(self->dev, 3 * MIB + 1, NULL));
	EXPECT_LE(0, create(self->dev, 3 * MIB, NULL));
	ring_close(&ring);
}

/* Whether this process has used a capability since it was forked. */
static bool used_privilege(void)
{
	FILE *stat = fopen("/proc/self/stat", "re");
	unsigned int flags = 0;

	if (!stat || fscanf(stat, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %u", &flags) != 1)
		abort();
	fclose(stat);
	return flags & 0x100; /* PF_SUPERPRIV */
}

static int create_within_the_limit(void *arg)
{
	return create(*(int *)arg, 4 * MIB, NULL) < 0 || used_privilege();
}

static int create_beyond_the_limit(void *arg)
{
	return create(*(int *)arg, 4 * MIB + 1, NULL) < 0 || !used_privilege();
}

TEST_F(limits, capability_is_asked_for_only_beyond_the_limit)
{
	ASSERT_TRUE(set_limit(RLIMIT_MEMLOCK, 4 * MIB));
	EXPECT_EQ(0, in_child(create_within_the_limit, &self->dev));
	EXPECT_EQ(0, in_child(create_beyond_the_limit, &self->dev));
}

TEST_F(limits, opening_costs_nothing)
{
	ASSERT_LE(0, create_mode(self->dev, 4 * MIB, "free", 0644));
	ASSERT_TRUE(set_limit(RLIMIT_MEMLOCK, 0));
	ASSERT_TRUE(become(USER_A));
	EXPECT_LE(0, open_name(self->dev, "free", 0));
}

TEST_F(limits, module_is_limited)
{
	struct tshare_query query = {};
	int fd;

	ASSERT_TRUE(set_parameter(self->parameters[MAX_MIB], "8"));
	ASSERT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_QUERY, &query));
	EXPECT_EQ(8 * MIB, query.bytes_limit);
	EXPECT_EQ(8 * MIB, query.region_bytes_max);
	EXPECT_EQ(-EDQUOT, create(self->dev, 8 * MIB + 1, NULL));
	EXPECT_SAME_COUNTERS(self->before);
	fd = create(self->dev, 8 * MIB, NULL);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EDQUOT, create(self->dev, 1, NULL));
	close(fd);
	EXPECT_LE(0, create(self->dev, 8 * MIB, NULL));
}

TEST_F(limits, module_limit_lowered_below_use_takes_nothing_away)
{
	struct tshare_query query = {};
	int fd = create(self->dev, 8 * MIB, NULL);
	char *mem = map(fd, 8 * MIB, RW);

	ASSERT_NE(MAP_FAILED, mem);
	ASSERT_TRUE(set_parameter(self->parameters[MAX_MIB], "4"));
	ASSERT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_QUERY, &query));
	EXPECT_EQ(0, query.region_bytes_max);
	EXPECT_EQ(8 * MIB, query.bytes_used);
	EXPECT_EQ(-EDQUOT, create(self->dev, 1, NULL));
	fill(mem, 8 * MIB, 1);
	EXPECT_TRUE(filled(mem, 8 * MIB, 1));
}

TEST_F(limits, module_limit_may_be_more_than_there_is)
{
	/* MiB whose bytes no 64 bits hold, and the largest number. */
	static const char *const limits[] = { "17592186044415", "17592186044416",
					      "18446744073709551615" };
	struct tshare_query query = {};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		ASSERT_TRUE(set_parameter(self->parameters[MAX_MIB], limits[i]));
		ASSERT_TRUE(set_parameter(self->parameters[USER_MAX_MIB], limits[i]));
		ASSERT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_QUERY, &query));
		EXPECT_EQ(-MIB, query.bytes_limit);
		EXPECT_EQ(query.bytes_limit - query.bytes_used, query.region_bytes_max);
		EXPECT_EQ(0, close(create(self->dev, MIB, NULL)));
	}
}

TEST_F(limits, module_limit_is_half_of_the_memory_by_default)
{
	struct tshare_query query = {};
	struct sysinfo memory;

	ASSERT_EQ(0, sysinfo(&memory));
	ASSERT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_QUERY, &query));
	EXPECT_LE(memory.totalram * memory.mem_unit / 2 - PAGE, query.bytes_limit);
	EXPECT_GE(memory.totalram * memory.mem_unit / 2, query.bytes_limit);
	EXPECT_EQ(-EDQUOT, create(self->dev, query.region_bytes_max + 1, NULL));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(limits, module_limits_that_overflow_are_no_limits)
{
	ASSERT_TRUE(set_parameter(self->parameters[MAX_MIB], "18446744073709551615"));
	ASSERT_TRUE(set_parameter(self->parameters[USER_MAX_MIB], "17592186044416"));
	EXPECT_LE(0, create(self->dev, 4 * MIB, NULL));
}

TEST_F(limits, users_are_limited_each)
{
	ASSERT_TRUE(set_parameter(self->parameters[USER_MAX_MIB], "4"));
	ASSERT_LE(0, create(self->dev, 3 * MIB, NULL));
	EXPECT_EQ(-EDQUOT, create(self->dev, 2 * MIB, NULL));
	EXPECT_EQ(1 * MIB, region_bytes_max(self->dev));
	/* Memory is charged to the real user, as locked memory is. */
	ASSERT_EQ(0, setresuid(USER_A, -1, -1));
	EXPECT_EQ(4 * MIB, region_bytes_max(self->dev));
	EXPECT_LE(0, create(self->dev, 4 * MIB, NULL));
	EXPECT_EQ(-EDQUOT, create(self->dev, 1, NULL));
	ASSERT_EQ(0, setresuid(0, -1, -1));
}

#define MANY 100

TEST_F(limits, many_users_are_limited_each)
{
	int fds[MANY], round, i;

	ASSERT_TRUE(set_parameter(self->parameters[USER_MAX_MIB], "1"));
	for (round = 0; round < 2; round++) {
		/* In no order: 37 and 100 have no common divisor. */
		for (i = 0; i < MANY; i++) {
			ASSERT_EQ(0, setresuid(USER_A + i * 37 % MANY, 0, 0));
			fds[i] = create(self->dev, MIB, NULL);
			EXPECT_LE(0, fds[i]);
			EXPECT_EQ(-EDQUOT, create(self->dev, 1, NULL));
		}
		for (i = 0; i < MANY; i++)
			ASSERT_EQ(0, close(fds[i * 63 % MANY]));
	}
	ASSERT_EQ(0, setresuid(0, 0, 0));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(limits, namespaces_are_limited_each)
{
	int inner;

	ASSERT_TRUE(set_parameter(self->parameters[NS_MAX_MIB], "4"));
	ASSERT_LE(0, create(self->dev, 4 * MIB, NULL));
	EXPECT_EQ(-EDQUOT, create(self->dev, 1, NULL));
	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	inner = open_device();
	ASSERT_LE(0, inner);
	EXPECT_EQ(4 * MIB, region_bytes_max(inner));
	EXPECT_LE(0, create(inner, 4 * MIB, NULL));
	EXPECT_EQ(-EDQUOT, create(inner, 1, NULL));
	EXPECT_EQ(-EDQUOT, create(self->dev, 1, NULL));
}

/* A mapping of a region whose maker has closed the device. */
static void *region_without_device(size_t size)
{
	int dev = open_device(), fd = create(dev, size, NULL);
	char *mem = map(fd, size, RW);

	close(fd);
	close(dev);
	return mem == MAP_FAILED ? NULL : mem;
}

TEST_F(limits, namespaces_are_charged_for_regions_that_outlive_the_device)
{
	ASSERT_TRUE(set_parameter(self->parameters[NS_MAX_MIB], "4"));
	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	ASSERT_NE(NULL, region_without_device(2 * MIB));
	ASSERT_NE(NULL, region_without_device(MIB));
	EXPECT_EQ(MIB, region_bytes_max(open_device()));
	EXPECT_EQ(NULL, region_without_device(2 * MIB));
	EXPECT_NE(NULL, region_without_device(MIB));
}

TEST_F(limits, many_namespaces_are_limited_each)
{
	int fds[MANY], i;

	ASSERT_TRUE(set_parameter(self->parameters[NS_MAX_MIB], "1"));
	for (i = 0; i < MANY; i++) {
		ASSERT_EQ(0, unshare(CLONE_NEWIPC));
		fds[i] = open("/proc/self/ns/ipc", O_RDONLY | O_CLOEXEC);
		ASSERT_LE(0, fds[i]);
		ASSERT_NE(NULL, region_without_device((i + 1) * PAGE));
	}
	/* In no order: 37 and 100 have no common divisor. */
	for (i = 0; i < MANY; i++) {
		int at = i * 37 % MANY, dev;

		ASSERT_EQ(0, setns(fds[at], CLONE_NEWIPC));
		dev = open_device();
		EXPECT_EQ(MIB - (at + 1) * PAGE, region_bytes_max(dev));
		close(dev);
	}
}

/*
 * What a second region with the same list is refused with, where there is room for one
 * such list of 6 MiB alone. 0 if lists don't count, or stay counted.
 */
static int second_list(int dev)
{
	struct records records = many_records(131072);
	int first = create_with_records(dev, PAGE, &records), err, again;

	err = create_with_records(dev, PAGE, &records);
	if (region_bytes_max(dev) != 8 * MIB - PAGE - whole_pages(records.size))
		err = 0;
	close(first);
	again = create_with_records(dev, PAGE, &records);
	close(again);
	free(records.data);
	return again < 0 ? 0 : err;
}

TEST_F(limits, descriptors_count_as_locked_memory)
{
	ASSERT_TRUE(set_limit(RLIMIT_MEMLOCK, 8 * MIB));
	ASSERT_TRUE(become(USER_A));
	EXPECT_EQ(-EDQUOT, second_list(self->dev));
}

TEST_F(limits, descriptors_count_against_the_modules_limit)
{
	ASSERT_TRUE(set_parameter(self->parameters[MAX_MIB], "8"));
	EXPECT_EQ(-EDQUOT, second_list(self->dev));
}

TEST_F(limits, descriptors_count_against_the_users_limit)
{
	ASSERT_TRUE(set_parameter(self->parameters[USER_MAX_MIB], "8"));
	EXPECT_EQ(-EDQUOT, second_list(self->dev));
}

TEST_F(limits, descriptors_count_against_the_namespaces_limit)
{
	ASSERT_TRUE(set_parameter(self->parameters[NS_MAX_MIB], "8"));
	EXPECT_EQ(-EDQUOT, second_list(self->dev));
}

TEST_F(limits, descriptors_count_in_whole_pages)
{
	struct records records = many_records(1000);
	int fd = create_with_records(self->dev, PAGE, &records);

	ASSERT_LE(0, fd);
	ASSERT_NE(0, records.size % PAGE);
	EXPECT_EQ(self->before.bytes + (long)(PAGE + whole_pages(records.size)),
		  read_number(SYSFS "bytes"));
	close(fd);
	EXPECT_SAME_COUNTERS(self->before);
	free(records.data);
}

TEST_F(limits, descriptors_of_up_to_a_page_do_not_count)
{
	struct records records = many_records(84);
	struct tensor tensor = { .bits = 8, .lanes = 1 };
	int fd;

	/* As long a name as makes it a page. */
	memset(tensor.name, 'x', PAGE - records.size - sizeof(struct tshare_desc) - 1);
	records.size += pack(&tensor, (char *)records.data + records.size);
	records.count++;
	ASSERT_EQ(PAGE, records.size);
	fd = create_with_records(self->dev, PAGE, &records);
	ASSERT_LE(0, fd);
	EXPECT_EQ(self->before.bytes + (long)PAGE, read_number(SYSFS "bytes"));
	free(records.data);
}

TEST_F(limits, refused_descriptors_leave_no_charge)
{
	struct records records = many_records(1000);

	records.count++;
	EXPECT_EQ(-EINVAL, create_with_records(self->dev, PAGE, &records));
	EXPECT_SAME_COUNTERS(self->before);
	free(records.data);
}

#define CGROUPS "/sys/fs/cgroup/"
#define CGROUP CGROUPS "tshare-limits/"

/* Joins a new memory cgroup with a limit; 1 if the kernel has none, -1 on error. */
static int join_memory_cgroup(const char *limit)
{
	/* Removes the groups of an earlier test that failed. */
	rmdir(CGROUP);
	if (!write_file(CGROUPS "cgroup.subtree_control", "+memory"))
		return 1;
	if (mkdir(CGROUP, 0755))
		return -1;
	return write_file(CGROUP "memory.max", limit) && write_file(CGROUP "cgroup.procs", "0") ?
	       0 : -1;
}

static void leave_memory_cgroup(void)
{
	write_file(CGROUPS "cgroup.procs", "0");
	rmdir(CGROUP);
}

TEST_F(limits, regions_up_to_2_mib_count_in_the_memory_cgroup)
{
	static const size_t sizes[] = { 2 * MIB, 2 * MIB - PAGE, MIB + PAGE };
	int err = join_memory_cgroup("64M"), fd;
	size_t i;
	long before;

	if (err > 0)
		SKIP(return, "the kernel has no memory cgroups");
	ASSERT_EQ(0, err);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		before = read_number(CGROUP "memory.current");
		fd = create(self->dev, sizes[i], NULL);
		EXPECT_LE(0, fd);
		/* The kernel charges some pages in advance. */
		EXPECT_LE(before + (long)sizes[i] / 2, read_number(CGROUP "memory.current"));
		close(fd);
	}
	leave_memory_cgroup();
}

/* So that README is changed when a kernel lets modules charge them. */
TEST_F(limits, larger_regions_do_not_count_in_the_memory_cgroup)
{
	int err = join_memory_cgroup("16M"), fd;

	if (err > 0)
		SKIP(return, "the kernel has no memory cgroups");
	ASSERT_EQ(0, err);
	fd = create(self->dev, 64 * MIB, NULL);
	EXPECT_LE(0, fd);
	EXPECT_GT(16 * (long)MIB, read_number(CGROUP "memory.current"));
	close(fd);
	leave_memory_cgroup();
}

TEST_F(limits, regions_stop_counting_in_the_memory_cgroup_when_they_are_gone)
{
	int err = join_memory_cgroup("64M"), i;
	long before;

	if (err > 0)
		SKIP(return, "the kernel has no memory cgroups");
	ASSERT_EQ(0, err);
	before = read_number(CGROUP "memory.current");
	/* Together they would pass the limit. */
	for (i = 0; i < 64; i++) {
		int fd = create(self->dev, 2 * MIB, NULL);

		EXPECT_LE(0, fd);
		close(fd);
	}
	EXPECT_GT(before + 8 * (long)MIB, read_number(CGROUP "memory.current"));
	leave_memory_cgroup();
}

TEST_F(limits, regions_up_to_2_mib_stop_at_the_cgroups_limit)
{
	int err = join_memory_cgroup("16M"), fd, count = 0;

	if (err > 0)
		SKIP(return, "the kernel has no memory cgroups");
	ASSERT_EQ(0, err);
	do {
		fd = create(self->dev, 2 * MIB, NULL);
	} while (fd >= 0 && ++count < 16);
	leave_memory_cgroup();
	EXPECT_EQ(-EDQUOT, fd);
	EXPECT_LT(0, count);
	EXPECT_GT(8, count);
}

/* By how much the memory cgroup's use grows with @count regions, which stay. */
static long growth_with_regions(int count)
{
	long before = read_number(CGROUP "memory.current");

	while (count--)
		if (!region_without_device(PAGE))
			return -1;
	return read_number(CGROUP "memory.current") - before;
}

/*
 * Each open of a device that is open nowhere else in its namespace begins a new record of the
 * namespace, and a new block of ids.
 */
TEST_F(limits, namespaces_and_ids_count_in_the_memory_cgroup)
{
	const int count = 1024;
	int err, dev;
	long shared;

	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	err = join_memory_cgroup("64M");
	if (err > 0)
		SKIP(return, "the kernel has no memory cgroups");
	ASSERT_EQ(0, err);
	dev = open_device();
	shared = growth_with_regions(count);
	close(dev);
	EXPECT_LT(0, shared);
	/* The kernel charges some pages in advance. */
	EXPECT_LE(shared + count * 2048L, growth_with_regions(count));
	leave_memory_cgroup();
}

TEST_F(limits, descriptors_count_in_the_memory_cgroup)
{
	struct records records = many_records(131072);
	int err = join_memory_cgroup("64M"), fd;
	long before;

	if (err > 0)
		SKIP(return, "the kernel has no memory cgroups");
	ASSERT_EQ(0, err);
	before = read_number(CGROUP "memory.current");
	fd = create_with_records(self->dev, PAGE, &records);
	EXPECT_LE(0, fd);
	EXPECT_LE(before + (long)records.size / 2, read_number(CGROUP "memory.current"));
	close(fd);
	leave_memory_cgroup();
	free(records.data);
}

/* The OOM killer would end the test. */
TEST_F(limits, descriptors_beyond_the_memory_cgroup_are_enomem)
{
	struct records records = many_records(131072);
	struct counters before = count_all();
	int err = join_memory_cgroup("4M"), fd;

	if (err > 0)
		SKIP(return, "the kernel has no memory cgroups");
	ASSERT_EQ(0, err);
	fd = create_with_records(self->dev, PAGE, &records);
	leave_memory_cgroup();
	EXPECT_EQ(-ENOMEM, fd);
	EXPECT_SAME_COUNTERS(before);
	free(records.data);
}

/* A file of 32 MiB on the guest's own disk, as mkswap(8) would make it. */
static bool make_swap(const char *path)
{
	const off_t size = 32 * MIB;
	__u32 header[] = { 1, size / PAGE - 1, 0 };
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool done;

	if (fd < 0)
		return false;
	done = !posix_fallocate(fd, 0, size) &&
	       pwrite(fd, header, sizeof(header), 1024) == sizeof(header) &&
	       pwrite(fd, "SWAPSPACE2", 10, PAGE - 10) == 10 && !fsync(fd);
	close(fd);
	return done;
}

TEST_F(limits, descriptors_that_were_swapped_out_are_given_back)
{
	struct records records = many_records(131072);
	struct tshare_info info = { .descs_size = records.size };
	const char *scratch = getenv("TSHARE_SCRATCH");
	char path[256], *descs = malloc(records.size);
	int err;

	if (!scratch)
		SKIP(return, "TSHARE_SCRATCH is not set");
	err = join_memory_cgroup("64M");
	if (err > 0)
		SKIP(return, "the kernel has no memory cgroups");
	ASSERT_EQ(0, err);
	snprintf(path, sizeof(path), "%s/tshare-limits.swap", scratch);
	ASSERT_TRUE(make_swap(path));
	ASSERT_EQ(0, swapon(path, 0));
	info.fd = create_with_records(self->dev, PAGE, &records);
	info.descs = (uintptr_t)descs;
	EXPECT_LE(0, info.fd);
	/* Fails if it can't take all of that, which is more than there is. */
	write_file(CGROUP "memory.reclaim", "60M");
	EXPECT_LT((long)records.size / 2, read_number(CGROUP "memory.swap.current"));
	EXPECT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_INFO, &info));
	EXPECT_EQ(0, memcmp(descs, records.data, records.size));
	close(info.fd);
	leave_memory_cgroup();
	EXPECT_EQ(0, swapoff(path));
	unlink(path);
	free(descs);
	free(records.data);
}

TEST_F(limits, refused_regions_leave_no_charge)
{
	__u64 before;
	int i;

	ASSERT_TRUE(set_limit(RLIMIT_MEMLOCK, 4 * MIB));
	ASSERT_TRUE(set_parameter(self->parameters[USER_MAX_MIB], "2"));
	ASSERT_TRUE(become(USER_A));
	before = region_bytes_max(self->dev);
	EXPECT_EQ(2 * MIB, before);
	for (i = 0; i < 10; i++)
		EXPECT_EQ(-EDQUOT, create(self->dev, 3 * MIB, NULL));
	EXPECT_EQ(before, region_bytes_max(self->dev));
	EXPECT_LE(0, create(self->dev, 2 * MIB, NULL));
}

TEST_HARNESS_MAIN
