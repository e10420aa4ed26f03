// SPDX-License-Identifier: GPL-2.0-only
/* One allocation after the other fails: each call works or leaves nothing behind. */
#include <sched.h>

#include "util.h"

#define DEBUGFS "/sys/kernel/debug/"

/* Which have their own meaning of "which allocations may fail". */
static const char *const injectors[] = { DEBUGFS "failslab/", DEBUGFS "fail_page_alloc/" };

static void __attribute__((constructor)) need_fault_injection(void)
{
	char path[64];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(injectors); i++) {
		snprintf(path, sizeof(path), "%signore-gfp-wait", injectors[i]);
		if (access(path, W_OK))
			ksft_exit_skip("the kernel has no %s\n", injectors[i]);
	}
}

FIXTURE(faults)
{
	int fail_nth;
	int dev;
	int described;
	struct tshare_desc descs[8];
};

FIXTURE_SETUP(faults)
{
	struct tshare_create args = create_args(PAGE, "described");
	char path[64];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(injectors); i++) {
		snprintf(path, sizeof(path), "%signore-gfp-wait", injectors[i]);
		ASSERT_TRUE(write_file(path, "N"));
		snprintf(path, sizeof(path), "%sverbose", injectors[i]);
		ASSERT_TRUE(write_file(path, "0"));
	}
	ASSERT_TRUE(write_file(DEBUGFS "fail_page_alloc/min-order", "0"));
	ASSERT_TRUE(write_file(DEBUGFS "fail_page_alloc/ignore-gfp-highmem", "N"));
	self->fail_nth = open("/proc/self/fail-nth", O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->fail_nth);
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	for (i = 0; i < ARRAY_SIZE(self->descs); i++)
		self->descs[i] = (struct tshare_desc){ .dtype_bits = 8, .dtype_lanes = 1 };
	args.descs = (uintptr_t)self->descs;
	args.desc_count = ARRAY_SIZE(self->descs);
	args.desc_size = sizeof(self->descs[0]);
	self->described = do_create(self->dev, &args);
	ASSERT_LE(0, self->described);
}

FIXTURE_TEARDOWN(faults)
{
	char path[64];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(injectors); i++) {
		snprintf(path, sizeof(path), "%signore-gfp-wait", injectors[i]);
		write_file(path, "Y");
	}
	close(self->described);
	close(self->dev);
}

/* What is called with failing allocations: a descriptor, 0 or a negative errno. */
struct call {
	int (*fn)(const struct call *call);
	int dev;
	int described;
	const struct tshare_desc *descs;
	size_t size;
	__u32 flags;
};

/*
 * Lets the first allocation of the call fail, then the second, until there are
 * no more. The allocations that failed, or -1 if one was not coped with.
 */
static int fail_each(int fail_nth, const struct call *call)
{
	struct counters before = count_all(), now;
	char left[16];
	int nth, ret;
	ssize_t len;

	for (nth = 1; nth < 10000; nth++) {
		/* The number must be gone before anything else allocates. */
		len = sprintf(left, "%d", nth);
		if (pwrite(fail_nth, left, len, 0) != len)
			return -1;
		ret = call->fn(call);
		len = pread(fail_nth, left, sizeof(left) - 1, 0);
		if (len < 0 || pwrite(fail_nth, "0", 1, 0) != 1)
			return -1;
		left[len] = '\0';
		if (ret > 0)
			close(ret);
		if (call->flags & TSHARE_CREATE_PERSIST)
			unlink_name(call->dev, "faulty");
		now = count_all();
		if (memcmp(&now, &before, sizeof(now))) {
			ksft_print_msg("allocation %d: left something behind\n", nth);
			return -1;
		}
		if (atoi(left))
			return ret < 0 ? -1 : nth - 1;
		if (ret < 0 && ret != -ENOMEM) {
			ksft_print_msg("allocation %d: %s\n", nth, strerror(-ret));
			return -1;
		}
	}
	return -1;
}

static int call_create(const struct call *call)
{
	struct tshare_create args = create_args(call->size, NULL);

	args.flags = call->flags;
	if (call->flags & TSHARE_CREATE_PERSIST)
		strcpy(args.name, "faulty");
	if (call->descs) {
		args.descs = (uintptr_t)call->descs;
		args.desc_count = 8;
		args.desc_size = sizeof(call->descs[0]);
	}
	return do_create(call->dev, &args);
}

TEST_F(faults, create_of_a_page_copes)
{
	struct call call = { .fn = call_create, .dev = self->dev, .size = PAGE };

	EXPECT_LT(4, fail_each(self->fail_nth, &call));
}

TEST_F(faults, create_of_one_folio_copes)
{
	struct call call = { .fn = call_create, .dev = self->dev, .size = 2 * MIB };

	EXPECT_LT(4, fail_each(self->fail_nth, &call));
}

TEST_F(faults, create_of_a_run_copes)
{
	struct call call = { .fn = call_create, .dev = self->dev, .size = 8 * MIB + 3 * PAGE };

	EXPECT_LT(4, fail_each(self->fail_nth, &call));
}

TEST_F(faults, create_of_a_described_persistent_region_copes)
{
	struct call call = {
		.fn = call_create,
		.dev = self->dev,
		.descs = self->descs,
		.size = PAGE,
		.flags = TSHARE_CREATE_PERSIST,
	};

	EXPECT_LT(5, fail_each(self->fail_nth, &call));
}

static int call_open(const struct call *call)
{
	return open_name(call->dev, "described", TSHARE_OPEN_WRITE);
}

TEST_F(faults, open_copes)
{
	struct call call = { .fn = call_open, .dev = self->dev };

	EXPECT_LT(1, fail_each(self->fail_nth, &call));
}

static int call_open_device(const struct call *call)
{
	(void)call;
	return open_device();
}

TEST_F(faults, open_of_the_device_copes)
{
	struct call call = { .fn = call_open_device };

	EXPECT_LT(1, fail_each(self->fail_nth, &call));
}

TEST_F(faults, open_of_the_device_in_a_new_namespace_copes)
{
	struct call call = { .fn = call_open_device };

	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	EXPECT_LT(1, fail_each(self->fail_nth, &call));
}

static int call_list(const struct call *call)
{
	struct tshare_list_entry entries[4];
	int count = do_list(call->dev, 0, entries, 4);

	return count < 0 ? count : 0;
}

TEST_F(faults, list_copes)
{
	struct call call = { .fn = call_list, .dev = self->dev };

	EXPECT_LE(0, fail_each(self->fail_nth, &call));
}

static int open_counter(int dev, int region)
{
	struct tshare_counter args = { .fd = region };
	int err = xioctl(dev, TSHARE_IOCTL_COUNTER, &args);

	return err ? err : args.counter_fd;
}

static int call_counter(const struct call *call)
{
	return open_counter(call->dev, call->described);
}

static int call_first_counter(const struct call *call)
{
	int region = create(call->dev, PAGE, NULL), ret;

	if (region < 0)
		return region;
	ret = open_counter(call->dev, region);
	close(region);
	return ret;
}

TEST_F(faults, counter_copes)
{
	struct call call = {
		.fn = call_counter,
		.dev = self->dev,
		.described = self->described,
	};

	EXPECT_LT(0, fail_each(self->fail_nth, &call));
}

/* Which makes the file that the region keeps. */
TEST_F(faults, first_counter_of_a_region_copes)
{
	struct call call = { .fn = call_first_counter, .dev = self->dev };

	EXPECT_LT(7, fail_each(self->fail_nth, &call));
}

static int call_map(const struct call *call)
{
	char *mem = map(call->dev, PAGE, RW);

	if (mem == MAP_FAILED)
		return -errno;
	return munmap(mem, PAGE) ? -errno : 0;
}

TEST_F(faults, mmap_copes)
{
	struct call call = { .fn = call_map, .dev = self->described };

	EXPECT_LT(0, fail_each(self->fail_nth, &call));
}

TEST_HARNESS_MAIN
