// SPDX-License-Identifier: GPL-2.0-only
/* One allocation after the other fails: each call works or leaves nothing behind. */
#include <dirent.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "drm.h"
#include "harness.h"
#include "module.h"
#include "pool.h"
#include "record.h"

#define DEBUGFS "/sys/kernel/debug/"

/* These files have filters of their own for the allocations that may fail. */
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

/*
 * Files "fail-nth" of tasks, one of which makes the allocations that are to
 * fail: the test itself, or the kernel's workers on its processor.
 */
struct tasks {
	int fail_nth[64];
	size_t count;
};

static bool add_task(struct tasks *tasks, const char *pid)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/fail-nth", pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || tasks->count == ARRAY_SIZE(tasks->fail_nth))
		return false;
	tasks->fail_nth[tasks->count++] = fd;
	return true;
}

/* The next task of @proc whose name begins so, as /proc names it; NULL if there is none. */
static const char *next_task(DIR *proc, const char *begin)
{
	char path[300], name[32] = "";
	struct dirent *entry;
	FILE *comm;

	while ((entry = readdir(proc))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		comm = fopen(path, "re");
		if (!comm)
			continue;
		if (!fgets(name, sizeof(name), comm))
			name[0] = '\0';
		fclose(comm);
		if (!strncmp(name, begin, strlen(begin)))
			return entry->d_name;
	}
	return NULL;
}

/* Binds the test to the first processor, and finds the kernel's workers there. */
static bool add_workers(struct tasks *tasks)
{
	const char *pid;
	bool ok = true;
	cpu_set_t cpus;
	DIR *proc;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		return false;
	proc = opendir("/proc");
	if (!proc)
		return false;
	while (ok && (pid = next_task(proc, "kworker/0:")))
		ok = add_task(tasks, pid);
	closedir(proc);
	return ok && tasks->count > 0;
}

static bool set_fail_nth(const struct tasks *tasks, int nth)
{
	char text[16];
	size_t i;
	int len = sprintf(text, "%d", nth);

	for (i = 0; i < tasks->count; i++)
		if (pwrite(tasks->fail_nth[i], text, len, 0) != len)
			return false;
	return true;
}

/*
 * Stops failing, before the test itself allocates anything else. 1 if an
 * allocation was failed, 0 if not, or a negative errno.
 */
static int end_fail_nth(const struct tasks *tasks)
{
	bool failed = false;
	char left[16];
	size_t i;

	for (i = 0; i < tasks->count; i++) {
		ssize_t len = pread(tasks->fail_nth[i], left, sizeof(left) - 1, 0);

		if (len < 0)
			return -errno;
		left[len] = '\0';
		failed |= !atoi(left);
		if (pwrite(tasks->fail_nth[i], "0", 1, 0) != 1)
			return -errno;
	}
	return failed;
}

/* Lets allocations fail that may wait for memory, and those of pages from that order on. */
static bool begin_injection(int min_order)
{
	char path[64];
	bool ok = true;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(injectors); i++) {
		snprintf(path, sizeof(path), "%signore-gfp-wait", injectors[i]);
		ok &= write_file(path, "N");
		snprintf(path, sizeof(path), "%sverbose", injectors[i]);
		ok &= write_file(path, "0");
	}
	return ok && write_file(DEBUGFS "fail_page_alloc/min-order", "%d", min_order) &&
	       write_file(DEBUGFS "fail_page_alloc/ignore-gfp-highmem", "N");
}

static void end_injection(void)
{
	char path[64];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(injectors); i++) {
		snprintf(path, sizeof(path), "%signore-gfp-wait", injectors[i]);
		write_file(path, "Y");
	}
}

FIXTURE(faults)
{
	struct tasks self;
	int dev;
	int described;
	struct records few;
	struct records many;
};

FIXTURE_SETUP(faults)
{
	struct tshare_create args = create_args(PAGE, "described");

	ASSERT_TRUE(begin_injection(0));
	self->self.count = 0;
	ASSERT_TRUE(add_task(&self->self, "self"));
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->few = many_records(8);
	self->many = many_records(1000);
	set_records(&args, &self->few);
	self->described = do_create(self->dev, &args);
	ASSERT_LE(0, self->described);
}

FIXTURE_TEARDOWN(faults)
{
	end_injection();
	free(self->few.data);
	free(self->many.data);
	close(self->described);
	close(self->dev);
}

/* A call under test; returns a descriptor, 0 or a negative errno. */
struct call {
	int (*fn)(const struct call *call);
	int dev;
	int described;
	const struct records *records;
	size_t size;
	__u32 flags;
};

/*
 * Lets the first allocation of the call fail, then the second, until there are
 * no more and the call succeeds. How often it failed, or -1 if a failure was not
 * coped with.
 */
static int fail_each(const struct tasks *tasks, const struct call *call)
{
	struct counters before = count_all(), now;
	int nth, ret, injected, failures = 0;

	for (nth = 1; nth < 10000; nth++) {
		if (!set_fail_nth(tasks, nth))
			return -1;
		ret = call->fn(call);
		injected = end_fail_nth(tasks);
		if (injected < 0)
			return -1;
		if (ret > 0)
			close(ret);
		if (call->flags & TSHARE_CREATE_PERSIST)
			unlink_name(call->dev, "faulty");
		now = count_all();
		if (memcmp(&now, &before, sizeof(now))) {
			ksft_print_msg("allocation %d: left something behind\n", nth);
			return -1;
		}
		if (!injected)
			return ret < 0 ? -1 : failures;
		if (ret < 0 && ret != -ENOMEM) {
			ksft_print_msg("allocation %d: %s\n", nth, strerror(-ret));
			return -1;
		}
		failures += ret < 0;
	}
	return -1;
}

static int call_create(const struct call *call)
{
	struct tshare_create args = create_args(call->size, NULL);

	args.flags = call->flags;
	if (call->flags & TSHARE_CREATE_PERSIST)
		strcpy(args.name, "faulty");
	if (call->records)
		set_records(&args, call->records);
	return do_create(call->dev, &args);
}

TEST_F(faults, create_of_a_page_copes)
{
	struct call call = { .fn = call_create, .dev = self->dev, .size = PAGE };

	EXPECT_LT(4, fail_each(&self->self, &call));
}

TEST_F(faults, create_of_one_folio_copes)
{
	struct call call = { .fn = call_create, .dev = self->dev, .size = 2 * MIB };

	EXPECT_LT(4, fail_each(&self->self, &call));
}

TEST_F(faults, create_of_a_run_copes)
{
	struct call call = { .fn = call_create, .dev = self->dev, .size = 8 * MIB + 3 * PAGE };

	EXPECT_LT(4, fail_each(&self->self, &call));
}

TEST_F(faults, create_of_a_described_persistent_region_copes)
{
	struct call call = {
		.fn = call_create,
		.dev = self->dev,
		.records = &self->few,
		.size = PAGE,
		.flags = TSHARE_CREATE_PERSIST,
	};

	EXPECT_LT(5, fail_each(&self->self, &call));
}

/* Long lists are kept in pages of shared memory; each allocation of one may fail. */
TEST_F(faults, create_with_many_descriptors_copes)
{
	struct call call = {
		.fn = call_create,
		.dev = self->dev,
		.records = &self->many,
		.size = PAGE,
	};
	int pages = self->many.size / PAGE;

	/* Ten as with a short list, and the pages; how many more the kernel's caches decide. */
	EXPECT_LE(10 + pages, fail_each(&self->self, &call));
}

#define POOL_SIZE SYSFS "pool_node0/size"

/* Makes a pool and takes it away again. */
static int call_grow(const struct call *call)
{
	long left;
	int err;

	(void)call;
	errno = 0;
	err = write_file(POOL_SIZE, "%llu", 8 * MIB) ? 0 : -errno;
	/* The allocation that fails may be one of those that open the file again. */
	while (!write_file(POOL_SIZE, "0"))
		;
	do {
		left = read_number(POOL_SIZE);
	} while (left < 0);
	return left ? -EBADE : err;
}

TEST_F(faults, growth_of_the_pool_copes)
{
	struct call call = { .fn = call_grow };

	EXPECT_LT(4, fail_each(&self->self, &call));
}

TEST_F(faults, create_from_the_pool_copes)
{
	struct call call = { .fn = call_create, .dev = self->dev, .size = 4 * MIB + PAGE };

	ASSERT_TRUE(write_file(POOL_SIZE, "%llu", 8 * MIB));
	EXPECT_LT(4, fail_each(&self->self, &call));
	EXPECT_EQ(8 * MIB, (__u64)read_number(SYSFS "pool_node0/free"));
	EXPECT_TRUE(write_file(POOL_SIZE, "0"));
}

static int call_open(const struct call *call)
{
	return open_name(call->dev, "described", TSHARE_OPEN_WRITE);
}

TEST_F(faults, open_copes)
{
	struct call call = { .fn = call_open, .dev = self->dev };

	EXPECT_LT(1, fail_each(&self->self, &call));
}

static int call_export(const struct call *call)
{
	return export_range(call->dev, call->described, PAGE, PAGE, TSHARE_EXPORT_WRITE);
}

TEST_F(faults, export_copes)
{
	struct call call = { .fn = call_export, .dev = self->dev };

	call.described = create(self->dev, 4 * PAGE, NULL);
	ASSERT_LE(0, call.described);
	EXPECT_LT(2, fail_each(&self->self, &call));
}

static int call_create_foreign(const struct call *call)
{
	struct tshare_create args = create_args(0, "foreign");
	int fd;

	args.flags = TSHARE_CREATE_DMABUF;
	args.fd = call->described;
	fd = do_create(call->dev, &args);
	if (fd >= 0)
		unlink_name(call->dev, "foreign");
	return fd;
}

TEST_F(faults, create_of_a_foreign_region_copes)
{
	struct call call = { .fn = call_create_foreign, .dev = self->dev };
	int drm = open_drm("vgem");

	if (drm < 0)
		SKIP(return, "the kernel has no vgem");
	call.described = create_gem(drm, 1, DRM_RDWR);
	ASSERT_LE(0, call.described);
	EXPECT_LT(0, fail_each(&self->self, &call));
}

/* Replaces a region, and removes both. */
static int call_replace(const struct call *call)
{
	__u32 flags = TSHARE_CREATE_REPLACE | TSHARE_CREATE_DRAFT | TSHARE_CREATE_USERS;
	int old = create(call->dev, PAGE, "faulty"), new, err;

	if (old < 0)
		return old;
	new = create_flags(call->dev, PAGE, "faulty", flags);
	err = new < 0 ? new : finish_replacing(call->dev, new);
	close(new);
	close(old);
	/* What has replaced it went with its users. */
	if (unlink_name(call->dev, "faulty") != (err ? 0 : -ENOENT))
		return -EBADE;
	return err;
}

TEST_F(faults, replacing_copes)
{
	struct call call = { .fn = call_replace, .dev = self->dev };

	EXPECT_LT(8, fail_each(&self->self, &call));
}

static int call_wait(const struct call *call)
{
	struct tshare_open args = { .deadline_ns = 1, .name = "absent" };
	int err = xioctl(call->dev, TSHARE_IOCTL_OPEN, &args);

	return err == -ETIMEDOUT ? 0 : err;
}

TEST_F(faults, wait_for_a_name_needs_no_memory)
{
	struct call call = { .fn = call_wait, .dev = self->dev };

	EXPECT_EQ(0, fail_each(&self->self, &call));
}

static int call_open_device(const struct call *call)
{
	(void)call;
	return open_device();
}

TEST_F(faults, open_of_the_device_copes)
{
	struct call call = { .fn = call_open_device };

	EXPECT_LT(1, fail_each(&self->self, &call));
}

TEST_F(faults, open_of_the_device_in_a_new_namespace_copes)
{
	struct call call = { .fn = call_open_device };

	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	EXPECT_LT(1, fail_each(&self->self, &call));
}

/* At an open of the device a worker of the kernel takes hold of the namespace. */
TEST_F(faults, open_of_the_device_copes_with_what_its_worker_lacks)
{
	struct call call = { .fn = call_open_device };
	struct tasks workers = {};

	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	ASSERT_TRUE(add_workers(&workers));
	EXPECT_LT(0, fail_each(&workers, &call));
}

static int call_list(const struct call *call)
{
	struct tshare_list_entry entries[4];
	int count = do_list(call->dev, 0, entries, 4);

	return count < 0 ? count : 0;
}

TEST_F(faults, list_needs_no_memory)
{
	struct call call = { .fn = call_list, .dev = self->dev };

	EXPECT_EQ(0, fail_each(&self->self, &call));
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

	EXPECT_LT(0, fail_each(&self->self, &call));
}

/* COUNTER makes the file that the region keeps. */
TEST_F(faults, first_counter_of_a_region_copes)
{
	struct call call = { .fn = call_first_counter, .dev = self->dev };

	EXPECT_LT(7, fail_each(&self->self, &call));
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

	EXPECT_LT(0, fail_each(&self->self, &call));
}

/* Above all that the kernel has: no allocation of pages fails. */
#define NO_ORDER 64

/* Loading the module. */
FIXTURE(loading)
{
	struct tasks self;
	struct stat device;
	int file;
};

FIXTURE_VARIANT(loading)
{
	const char *parameters;
	long pool;
};

FIXTURE_VARIANT_ADD(loading, alone)
{
	.parameters = "",
};

FIXTURE_VARIANT_ADD(loading, with_a_pool)
{
	.parameters = "pool_mib=4",
	.pool = 4 * MIB,
};

static int open_module_file(void)
{
	FILE *found = popen("modinfo -n tshare", "re");
	char path[512] = "";

	if (!found)
		return -1;
	if (fgets(path, sizeof(path), found))
		path[strcspn(path, "\n")] = '\0';
	pclose(found);
	return open(path, O_RDONLY | O_CLOEXEC);
}

FIXTURE_SETUP(loading)
{
	if (!module_is_found())
		SKIP(return, "modprobe doesn't find the module");
	self->file = open_module_file();
	ASSERT_LE(0, self->file);
	ASSERT_EQ(0, stat(DEVICE, &self->device));
	ASSERT_TRUE(begin_injection(NO_ORDER));
	self->self.count = 0;
	ASSERT_TRUE(add_task(&self->self, "self"));
	ASSERT_EQ(0, remove_module());
}

FIXTURE_TEARDOWN(loading)
{
	end_injection();
	remove_module();
	EXPECT_TRUE(restore_module(&self->device));
	close(self->file);
}

/* By this process itself, of which alone allocations fail. */
static int load(int file, const char *parameters)
{
	return syscall(SYS_finit_module, file, parameters, 0) ? -errno : 0;
}

/*
 * Allocations before the module's own ones, but for some. They are the kernel's, which reads and
 * links the module by them, and warns of each that fails; there are hundreds. The module refuses
 * a pool on a node without memory after the first of its own, and few are made when it goes then.
 * -1 if they can't be counted.
 */
static int allocations_before_init(const struct tasks *tasks, int file)
{
	const int many = 1000000, few = 16;
	char left[16] = "";
	int err;

	if (!set_fail_nth(tasks, many))
		return -1;
	err = load(file, "pool_mib=0,0,0,8");
	if (pread(tasks->fail_nth[0], left, sizeof(left) - 1, 0) < 0)
		return -1;
	return end_fail_nth(tasks) || err != -EINVAL ? -1 : many - atoi(left) - few;
}

static bool has_worker(void)
{
	DIR *proc = opendir("/proc");
	bool found = proc && next_task(proc, "tshare_pool/");

	if (proc)
		closedir(proc);
	return found;
}

/* Whether nothing is left of the module that is to be seen. */
static bool is_gone(void)
{
	static const char *const made[] = { DEVICE, SYSFS, "/sys/module/tshare", DEBUGFS "tshare" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(made); i++) {
		if (!access(made[i], F_OK)) {
			ksft_print_msg("%s is left\n", made[i]);
			return false;
		}
	}
	return !has_worker();
}

/* Whether the module that is loaded works, with what it got of the pool. It is removed. */
static bool works_and_goes(long pool)
{
	int dev = open_device(), fd = create(dev, PAGE, "name");
	bool ok = fd >= 0 && pool_size() <= pool && pool_free() == pool_size() &&
		  read_number(POOL(0, "target")) == pool_size();

	close(fd);
	close(dev);
	return !remove_module() && ok;
}

TEST_F_TIMEOUT(loading, copes, 900)
{
	int before = allocations_before_init(&self->self, self->file);
	int nth = before, ret, injected, failures = 0;

	ASSERT_LE(0, before);
	do {
		ASSERT_TRUE(set_fail_nth(&self->self, ++nth));
		ret = load(self->file, variant->parameters);
		injected = end_fail_nth(&self->self);
		ASSERT_LE(0, injected);
		if (ret) {
			ASSERT_EQ(-ENOMEM, ret);
			failures++;
		} else {
			ASSERT_TRUE(works_and_goes(variant->pool));
		}
		ASSERT_TRUE(is_gone()) {
			TH_LOG("allocation %d", nth - before);
		}
	} while (injected);
	EXPECT_EQ(0, ret);
	EXPECT_LT(10, failures);
	TH_LOG("%d of %d failures were ENOMEM", failures, nth - before - 1);
}

TEST_HARNESS_MAIN
