// SPDX-License-Identifier: GPL-2.0-only
/* On a machine with several NUMA nodes: which node memory is allocated on. */
#include <sched.h>

#include "util.h"

/* Variants by allocator: the page allocator, or a search. */
static const size_t sizes[] = { PAGE, 37 * PAGE, 2 * MIB, 8 * MIB + PAGE };

#define NODES "/sys/devices/system/node/"
#define CGROUPS "/sys/fs/cgroup/"
#define CPUSET CGROUPS "tshare-nodes/"

static bool has_file(const char *path)
{
	return !access(path, F_OK);
}

static void __attribute__((constructor)) need_nodes(void)
{
	if (!has_file(NODES "node1"))
		ksft_exit_skip("the machine has one NUMA node\n");
}

/* Runs the caller on the processors of @node alone, whose memory is then the nearest. */
static bool run_on(int node)
{
	unsigned long first, last;
	char path[64], line[64];
	cpu_set_t cpus;
	FILE *file;
	int count;

	snprintf(path, sizeof(path), NODES "node%d/cpulist", node);
	file = fopen(path, "re");
	if (!file || !fgets(line, sizeof(line), file))
		return false;
	fclose(file);
	count = sscanf(line, "%lu-%lu", &first, &last);
	if (count < 1)
		return false;
	CPU_ZERO(&cpus);
	for (last = count == 2 ? last : first; first <= last; first++)
		CPU_SET(first, &cpus);
	return !sched_setaffinity(0, sizeof(cpus), &cpus);
}

#define NO_NODE (-1)

/* The node of a new region, for which @node or none is asked, or a negative errno. */
static int node_of_new(int dev, size_t size, __s32 node)
{
	struct tshare_create args = create_args(size, NULL);
	struct tshare_info info;
	int fd, err;

	if (node != NO_NODE)
		set_node(&args, node);
	fd = do_create(dev, &args);
	if (fd < 0)
		return fd;
	err = get_info(dev, fd, &info);
	close(fd);
	return err ? err : info.node;
}

FIXTURE(nodes)
{
	int dev;
};

FIXTURE_SETUP(nodes)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
}

FIXTURE_TEARDOWN(nodes)
{
	write_file(CGROUPS "cgroup.procs", "%d", getpid());
	rmdir(CPUSET);
	close(self->dev);
}

TEST_F(nodes, region_is_on_the_node_asked_for)
{
	int cpus, node;
	size_t i;

	for (cpus = 0; cpus < 2; cpus++) {
		ASSERT_TRUE(run_on(cpus));
		for (node = 0; node < 2; node++)
			for (i = 0; i < ARRAY_SIZE(sizes); i++)
				EXPECT_EQ(node, node_of_new(self->dev, sizes[i], node)) {
					TH_LOG("size %zu from node %d", sizes[i], cpus);
				}
	}
}

TEST_F(nodes, region_for_any_is_on_the_callers)
{
	int node;
	size_t i;

	for (node = 0; node < 2; node++) {
		ASSERT_TRUE(run_on(node));
		for (i = 0; i < ARRAY_SIZE(sizes); i++)
			EXPECT_EQ(node, node_of_new(self->dev, sizes[i], NO_NODE)) {
				TH_LOG("size %zu", sizes[i]);
			}
	}
}

/* The node that a page of the caller's is on, or a negative errno. */
static int node_of_page(void *page)
{
	int node = -1;

	return syscall(SYS_move_pages, 0, 1, &page, NULL, &node, 0) ? -errno : node;
}

#define MOVE 2 /* MPOL_MF_MOVE */

/* Pages that devices may use are never moved, nor reported as moved. */
TEST_F(nodes, region_stays_where_it_is)
{
	unsigned long from = 1, to = 2;
	struct tshare_create args;
	int target = 1, result;
	void *page;
	size_t i;
	char *mem;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		args = create_args(sizes[i], NULL);
		set_node(&args, 0);
		mem = map_aligned(do_create(self->dev, &args), sizes[i], RW);
		ASSERT_NE(MAP_FAILED, mem);
		fill(mem, sizes[i], i);
		page = mem;
		ASSERT_EQ(0, node_of_page(page));
		result = 1;
		syscall(SYS_move_pages, 0, 1, &page, &target, &result, MOVE);
		EXPECT_GT(0, result);
		syscall(SYS_mbind, mem, sizes[i], 2 /* MPOL_BIND */, &to, 8, MOVE);
		syscall(SYS_migrate_pages, 0, 8, &from, &to);
		EXPECT_EQ(0, node_of_page(page));
		EXPECT_TRUE(filled(mem, sizes[i], i));
	}
}

/* Joins a group of its own that may use only the memory of @node. */
static bool enter_cpuset(int node)
{
	return write_file(CGROUPS "cgroup.subtree_control", "+cpuset") &&
	       (!mkdir(CPUSET, 0700) || errno == EEXIST) &&
	       write_file(CPUSET "cpuset.mems", "%d", node) &&
	       write_file(CPUSET "cgroup.procs", "%d", getpid());
}

TEST_F(nodes, region_for_any_is_where_the_cpuset_allows)
{
	int node;
	size_t i;

	for (node = 0; node < 2; node++) {
		ASSERT_TRUE(enter_cpuset(node));
		/* The cpuset denies the memory nearest to the caller. */
		ASSERT_TRUE(run_on(1 - node));
		for (i = 0; i < ARRAY_SIZE(sizes); i++)
			EXPECT_EQ(node, node_of_new(self->dev, sizes[i], NO_NODE)) {
				TH_LOG("size %zu", sizes[i]);
			}
	}
}

TEST_F(nodes, node_outside_the_cpuset_is_enomem)
{
	struct counters before = count_all();
	size_t i;

	ASSERT_TRUE(enter_cpuset(1));
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		EXPECT_EQ(-ENOMEM, node_of_new(self->dev, sizes[i], 0)) {
			TH_LOG("size %zu", sizes[i]);
		}
		EXPECT_EQ(1, node_of_new(self->dev, sizes[i], 1)) {
			TH_LOG("size %zu", sizes[i]);
		}
	}
	EXPECT_SAME_COUNTERS(before);
}

TEST_HARNESS_MAIN
