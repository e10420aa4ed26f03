// SPDX-License-Identifier: GPL-2.0-only
/* Pinned pages count against every limit until they are free. */
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "harness.h"
#include "module.h"
#include "pin.h"
#include "record.h"
#include "tracing.h"

#define PARAMETERS "/sys/module/tshare/parameters/"
#define LIMIT_MIB "8"
#define LIMIT (8 * MIB)
#define PIPES 80

static __u64 bytes_used(int dev)
{
	struct tshare_query query = {};

	return xioctl(dev, TSHARE_IOCTL_QUERY, &query) ? ~0ULL : query.bytes_used;
}

static __u64 region_bytes_max(int dev)
{
	struct tshare_query query = {};

	return xioctl(dev, TSHARE_IOCTL_QUERY, &query) ? ~0ULL : query.region_bytes_max;
}

/* Bytes that one pinned page keeps: its whole folio. */
static __u64 folio_size(int dev)
{
	struct tshare_query query = {};

	return xioctl(dev, TSHARE_IOCTL_QUERY, &query) ? 0 : query.huge_page_size;
}

/* What the module counts, also for a process that was root when it asked first. */
static long count(int *file, const char *path)
{
	char text[32] = "";

	if (*file < 0)
		*file = open(path, O_RDONLY | O_CLOEXEC);
	return pread(*file, text, sizeof(text) - 1, 0) > 0 ? strtol(text, NULL, 10) : -1;
}

static long count_bytes(void)
{
	static int file = -1;

	return count(&file, SYSFS "bytes");
}

static long count_regions(void)
{
	static int file = -1;

	return count(&file, SYSFS "regions");
}

/* Waits for the module to see that pages are free. */
static bool bytes_return_to(long bytes)
{
	int tries;

	for (tries = 0; tries < 1000; tries++) {
		if (count_bytes() == bytes)
			return true;
		usleep(10000);
	}
	return false;
}

FIXTURE(pinned)
{
	int dev;
	long regions;
	int pipes[PIPES][2];
	int pinned;
};

/* The limit under test; the others are out of reach. */
FIXTURE_VARIANT(pinned)
{
	const char *parameter;
};

FIXTURE_VARIANT_ADD(pinned, locked_memory)
{
};

FIXTURE_VARIANT_ADD(pinned, module)
{
	.parameter = PARAMETERS "max_mib",
};

FIXTURE_VARIANT_ADD(pinned, user)
{
	.parameter = PARAMETERS "user_max_mib",
};

FIXTURE_VARIANT_ADD(pinned, namespace)
{
	.parameter = PARAMETERS "ns_max_mib",
};

FIXTURE_SETUP(pinned)
{
	struct rlimit memlock = { .rlim_cur = LIMIT, .rlim_max = LIMIT };

	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->regions = count_regions();
	ASSERT_EQ(0, count_bytes());
	if (variant->parameter) {
		ASSERT_TRUE(write_file(variant->parameter, LIMIT_MIB));
	} else {
		ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &memlock));
		ASSERT_TRUE(become(USER_A));
	}
}

FIXTURE_TEARDOWN(pinned)
{
	if (variant->parameter)
		EXPECT_TRUE(write_file(variant->parameter, "0"));
	while (self->pinned)
		unpin(self->pipes[--self->pinned]);
	/* QUERY makes the module check which pages are still pinned. */
	region_bytes_max(self->dev);
	EXPECT_EQ(0, count_bytes());
	close(self->dev);
}

TEST_F(pinned, folios_in_pipes_pass_no_limit)
{
	int err = 0;

	if (folio_size(self->dev) == PAGE)
		SKIP(return, "the kernel has no folios of 2 MiB");
	while (self->pinned < PIPES && !err) {
		err = pin(self->dev, 2 * MIB, MIB, self->pipes[self->pinned]);
		self->pinned += !err;
	}
	EXPECT_EQ(-EDQUOT, err);
	EXPECT_EQ(LIMIT / (2 * MIB), self->pinned);
	EXPECT_EQ(LIMIT, bytes_used(self->dev));
	EXPECT_EQ(LIMIT, count_bytes());
	EXPECT_EQ(0, region_bytes_max(self->dev));
	EXPECT_EQ(self->regions, count_regions());
}

TEST_F(pinned, freed_folio_can_be_allocated_at_once)
{
	int fd, i, count = LIMIT / folio_size(self->dev);

	if (count > PIPES)
		SKIP(return, "the kernel has no folios of 2 MiB");
	for (; self->pinned < count; self->pinned++)
		ASSERT_EQ(0, pin(self->dev, 2 * MIB, 0, self->pipes[self->pinned]));
	for (i = 0; i < 16; i++) {
		ASSERT_EQ(-EDQUOT, create(self->dev, 2 * MIB, NULL));
		unpin(self->pipes[--self->pinned]);
		fd = create(self->dev, 2 * MIB, NULL);
		EXPECT_LE(0, fd);
		close(fd);
		ASSERT_EQ(0, pin(self->dev, 2 * MIB, 0, self->pipes[self->pinned]));
		self->pinned++;
	}
}

TEST_F(pinned, freed_folio_is_seen_by_query)
{
	__u64 folio = folio_size(self->dev);
	struct tshare_query query = {};

	ASSERT_EQ(0, pin(self->dev, 2 * MIB, 0, self->pipes[0]));
	EXPECT_EQ(LIMIT - folio, region_bytes_max(self->dev));
	EXPECT_EQ(folio, bytes_used(self->dev));
	unpin(self->pipes[0]);
	ASSERT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_QUERY, &query));
	EXPECT_EQ(LIMIT, query.region_bytes_max);
	EXPECT_EQ(0, query.bytes_used);
}

TEST_F(pinned, freed_folio_is_seen_by_itself)
{
	ASSERT_EQ(0, pin(self->dev, 2 * MIB, 0, self->pipes[0]));
	EXPECT_LT(0, count_bytes());
	unpin(self->pipes[0]);
	EXPECT_TRUE(bytes_return_to(0));
}

TEST_F(pinned, only_pinned_folios_count)
{
	__u64 folio = folio_size(self->dev);

	ASSERT_EQ(0, pin(self->dev, 6 * MIB, 3 * MIB, self->pipes[self->pinned++]));
	EXPECT_EQ(folio, count_bytes());
	ASSERT_EQ(0, pin(self->dev, 4 * MIB + 3 * PAGE, 4 * MIB + PAGE,
			 self->pipes[self->pinned++]));
	EXPECT_EQ(folio + PAGE, count_bytes());
	ASSERT_EQ(0, pin(self->dev, 5 * PAGE, 2 * PAGE, self->pipes[self->pinned++]));
	EXPECT_EQ(folio + 2 * PAGE, count_bytes());
	EXPECT_EQ(LIMIT - folio - 2 * PAGE, region_bytes_max(self->dev));
}

TEST_F(pinned, descriptors_do_not_count_when_their_region_is_gone)
{
	struct records records = many_records(1000);
	int fd = create_with_records(self->dev, PAGE, &records);

	EXPECT_LT(PAGE, (__u64)count_bytes());
	ASSERT_EQ(0, pin_region(fd, PAGE, 0, self->pipes[self->pinned++]));
	EXPECT_EQ(PAGE, (__u64)count_bytes());
	free(records.data);
}

TEST_F(pinned, folio_pinned_twice_counts_once)
{
	int fd = create(self->dev, 2 * MIB, NULL), copy[2];
	char *mem = map(fd, 2 * MIB, RW);
	struct iovec iov = { .iov_base = mem, .iov_len = PAGE };

	ASSERT_NE(MAP_FAILED, mem);
	close(fd);
	ASSERT_EQ(0, pipe2(self->pipes[0], O_CLOEXEC));
	ASSERT_EQ(0, pipe2(copy, O_CLOEXEC));
	self->pinned++;
	ASSERT_EQ((ssize_t)PAGE, vmsplice(self->pipes[0][1], &iov, 1, 0));
	ASSERT_EQ((ssize_t)PAGE, tee(self->pipes[0][0], copy[1], PAGE, 0));
	munmap(mem, 2 * MIB);
	EXPECT_EQ(folio_size(self->dev), bytes_used(self->dev));
	unpin(copy);
	EXPECT_EQ(LIMIT - folio_size(self->dev), region_bytes_max(self->dev));
}

static int exit_with_pins(void *arg)
{
	int pipes[2];

	return pin(*(int *)arg, 2 * MIB, 0, pipes) || !count_bytes();
}

TEST_F(pinned, pins_of_a_process_end_with_it)
{
	ASSERT_EQ(0, in_child(exit_with_pins, &self->dev));
	EXPECT_TRUE(bytes_return_to(0));
}

#define LONG_PAGES 255
#define QUERIES 20
#define CHARGES 100
#define THREADS 16

/* A pipe that holds all pages of a region that is gone, each a folio. */
static bool pin_single_pages(int dev, int *pipes)
{
	const size_t size = LONG_PAGES * PAGE;
	int fd = create(dev, size, NULL);
	char *mem = map(fd, size, RW);
	struct iovec iov = { .iov_base = mem, .iov_len = size };
	bool pinned = mem != MAP_FAILED && !pipe2(pipes, O_CLOEXEC) &&
		      fcntl(pipes[1], F_SETPIPE_SZ, 256 * PAGE) > 0 &&
		      vmsplice(pipes[1], &iov, 1, SPLICE_F_NONBLOCK) == (ssize_t)size;

	close(fd);
	munmap(mem, size);
	return pinned;
}

static pthread_barrier_t all_ready;

static void *query_together(void *arg)
{
	int i;

	for (i = 0; i < QUERIES; i++) {
		pthread_barrier_wait(&all_ready);
		bytes_used(*(int *)arg);
	}
	return NULL;
}

static long looks(void)
{
	FILE *file = fopen(TRACING "kprobe_profile", "re");
	long hits = -1;

	if (file && fscanf(file, " tshare_looks %ld", &hits) != 1)
		hits = -1;
	if (file)
		fclose(file);
	return hits;
}

/* Otherwise each of them makes all others wait for a walk through the list. */
TEST(queries_that_wait_share_a_look)
{
	int dev = open_device(), pipes[CHARGES][2], i;
	pthread_t threads[THREADS];
	long hits;

	trace_mount();
	if (!write_file(TRACING "kprobe_events", "p:tshare_looks tshare:tshare_pinned_free"))
		SKIP(return, "the kernel has no kprobes");
	for (i = 0; i < CHARGES; i++)
		ASSERT_TRUE(pin_single_pages(dev, pipes[i]));
	ASSERT_TRUE(write_file(TRACING "events/kprobes/tshare_looks/enable", "1"));
	ASSERT_EQ(0, pthread_barrier_init(&all_ready, NULL, THREADS));
	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, query_together, &dev));
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	hits = looks();
	EXPECT_TRUE(write_file(TRACING "events/kprobes/tshare_looks/enable", "0"));
	EXPECT_TRUE(write_file(TRACING "kprobe_events", "-:tshare_looks"));
	ksft_print_msg("%ld looks at %d charges for %d queries\n", hits, CHARGES,
		       THREADS * QUERIES);
	EXPECT_LT(0, hits);
	EXPECT_GT(CHARGES * THREADS * QUERIES, hits);
	for (i = 0; i < CHARGES; i++)
		unpin(pipes[i]);
	bytes_used(dev);
	EXPECT_EQ(0, count_bytes());
	close(dev);
}

/* The module goes while pages of its regions are in a pipe; they stay. */
TEST(module_can_be_removed_while_pages_are_pinned)
{
	int dev = open_device(), pipes[2][2];
	__u64 seen[PAGE / 8];
	struct stat node;

	if (!module_is_found())
		SKIP(return, "modprobe doesn't find the module");
	ASSERT_EQ(0, stat(DEVICE, &node));
	ASSERT_EQ(0, pin(dev, 2 * MIB, 0, pipes[0]));
	ASSERT_EQ(0, pin(dev, 3 * PAGE, PAGE, pipes[1]));
	close(dev);
	EXPECT_EQ(0, remove_module());
	EXPECT_EQ((ssize_t)PAGE, read(pipes[0][0], seen, PAGE));
	EXPECT_TRUE(zeroed(seen, PAGE));
	EXPECT_EQ((ssize_t)PAGE, read(pipes[1][0], seen, PAGE));
	EXPECT_TRUE(zeroed(seen, PAGE));
	unpin(pipes[0]);
	unpin(pipes[1]);
	ASSERT_TRUE(restore_module(&node));
	EXPECT_EQ(0, count_bytes());
}

TEST_HARNESS_MAIN
