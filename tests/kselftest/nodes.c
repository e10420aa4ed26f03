// SPDX-License-Identifier: GPL-2.0-only
/* On a machine with several NUMA nodes: which node memory is allocated on. */
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "harness.h"

/* Variants by allocator: the page allocator, or a search. */
static const size_t sizes[] = { PAGE, 37 * PAGE, 2 * MIB, 8 * MIB + PAGE };

#define NODES "/sys/devices/system/node/"
#define CGROUPS "/sys/fs/cgroup/"
#define MAX_MIB "/sys/module/tshare/parameters/max_mib"
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

/* As in <linux/mempolicy.h>, which numactl(8) passes on to what it runs. */
#define PREFERRED 1
#define BIND 2

static bool set_policy(int mode, unsigned long nodes)
{
	return !syscall(SYS_set_mempolicy, mode, &nodes, 8 * sizeof(nodes));
}

FIXTURE(policy)
{
	int dev;
};

FIXTURE_VARIANT(policy)
{
	int mode;
};

FIXTURE_VARIANT_ADD(policy, bind)
{
	.mode = BIND,
};

FIXTURE_VARIANT_ADD(policy, prefer)
{
	.mode = PREFERRED,
};

FIXTURE_SETUP(policy)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
}

FIXTURE_TEARDOWN(policy)
{
	close(self->dev);
}

TEST_F(policy, decides_where_a_region_for_any_node_is)
{
	int node;
	size_t i;

	for (node = 0; node < 2; node++) {
		ASSERT_TRUE(run_on(1 - node));
		ASSERT_TRUE(set_policy(variant->mode, 1UL << node));
		for (i = 0; i < ARRAY_SIZE(sizes); i++)
			EXPECT_EQ(node, node_of_new(self->dev, sizes[i], NO_NODE)) {
				TH_LOG("size %zu", sizes[i]);
			}
	}
}

TEST_F(policy, is_overridden_by_the_node_asked_for)
{
	size_t i;

	ASSERT_TRUE(set_policy(variant->mode, 1));
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		EXPECT_EQ(1, node_of_new(self->dev, sizes[i], 1)) {
			TH_LOG("size %zu", sizes[i]);
		}
}

/* All memory below 4 GiB is on the first node. The page allocator decides in the same way. */
TEST_F(policy, yields_to_an_address_limit)
{
	struct tshare_create args;
	struct tshare_info info;
	size_t i;

	ASSERT_TRUE(set_policy(variant->mode, 2));
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		args = create_args(sizes[i], NULL);
		args.flags = TSHARE_CREATE_DMA32;
		ASSERT_LE(0, do_create(self->dev, &args));
		ASSERT_EQ(0, get_info(self->dev, args.fd, &info));
		EXPECT_GT(4 * GIB, info.phys_addr);
	}
}

/* Fills a node, and a few MiB more have to come from the other one or from none. */
static int fill_node(int dev, int node)
{
	struct tshare_create args = create_args(32 * MIB, NULL);
	int fd;

	set_node(&args, node);
	do {
		fd = do_create(dev, &args);
	} while (fd >= 0);
	return fd;
}

/*
 * Fills the first node as the caller's policy has it, with what others of the kernel's callers give
 * up meanwhile, too. Returns the errno or the node that ends it.
 */
static int fill_first_by_policy(int dev)
{
	struct tshare_info info;
	int fd;

	do {
		fd = create(dev, 32 * MIB, NULL);
		if (fd < 0 || get_info(dev, fd, &info))
			return fd;
	} while (!info.node);
	return info.node;
}

TEST_F(nodes, bound_caller_gets_nothing_of_another_node)
{
	ASSERT_TRUE(write_file(MAX_MIB, "1000000"));
	EXPECT_EQ(-ENOMEM, fill_node(self->dev, 0));
	EXPECT_TRUE(set_policy(BIND, 1));
	EXPECT_EQ(-ENOMEM, fill_first_by_policy(self->dev));
	EXPECT_TRUE(set_policy(PREFERRED, 1));
	EXPECT_EQ(1, fill_first_by_policy(self->dev));
	EXPECT_TRUE(write_file(MAX_MIB, "0"));
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

static bool has_cpusets(void)
{
	return has_file(CGROUPS "cgroup.controllers");
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

	if (!has_cpusets())
		SKIP(return, "the kernel has no cpusets");
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

	if (!has_cpusets())
		SKIP(return, "the kernel has no cpusets");
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
