// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every two calls at once: a thread makes the one again and again, a thread on another processor
 * the other, on the same region and name.
 *
 * What the calls do to each other is for KASAN, lockdep and KCSAN to judge.
 */
#include <pthread.h>
#include <sched.h>

#include "driver/importer.h"
#include "foreign.h"
#include "harness.h"
#include "pin.h"
#include "pool.h"

/* TSHARE_TEST_STRESS may ask for ten minutes. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 900

#define NAME "pairs"
/* More than the page allocator returns in one piece. */
#define LARGE (8 * MIB)
#define NS_MAX_MIB "/sys/module/tshare/parameters/ns_max_mib"
/* For how long all of them run. */
#define SECONDS 5
/* How often each of two has to succeed meanwhile; they get up to PATIENCE times as long for it. */
#define TIMES	 3
#define PATIENCE 150

struct side {
	const struct call *call;
	int dev;
	/* The region that the name leads to first. */
	int fd;
	unsigned int number;
	/* Calls, and those of them that did what they are for. */
	unsigned long made;
	unsigned long done;
	/* An errno that the call may not return here. */
	int wrong;
};

static pthread_barrier_t begin;
static bool stop;

static int closed(int fd)
{
	return fd < 0 ? fd : close(fd);
}

static int call_create(struct side *side)
{
	return closed(create_flags(side->dev, PAGE, NAME, TSHARE_CREATE_REPLACE));
}

static int call_finish(struct side *side)
{
	int fd = create_flags(side->dev, PAGE, NAME, TSHARE_CREATE_DRAFT | TSHARE_CREATE_REPLACE);
	int err;

	if (fd < 0)
		return fd;
	err = finish_replacing(side->dev, fd);
	close(fd);
	return err;
}

static int call_open(struct side *side)
{
	return closed(open_name(side->dev, NAME, TSHARE_OPEN_WRITE));
}

/* By turns the region that the name leads to, and another one, for at most a millisecond. */
static int call_wait(struct side *side)
{
	struct tshare_open args = {
		.name = NAME,
		.deadline_ns = deadline_in(1000000),
		.other_than = side->made % 2 ? id_of(side->dev, side->fd) : 0,
	};

	return xioctl(side->dev, TSHARE_IOCTL_OPEN, &args) ?: close(args.fd);
}

/* Makes the name that it removes, which may be gone since the last time. */
static int call_unlink(struct side *side)
{
	return call_create(side) ?: unlink_name(side->dev, NAME);
}

static int call_info(struct side *side)
{
	return id_of(side->dev, side->fd) ? 0 : -EINVAL;
}

static int call_list(struct side *side)
{
	struct tshare_list_entry entries[4];
	int count = do_list(side->dev, TSHARE_LIST_ALL, entries, ARRAY_SIZE(entries));

	return count < 0 ? count : 0;
}

static int call_export(struct side *side)
{
	return closed(export_range(side->dev, side->fd, 0, 0, 0));
}

static int call_counter(struct side *side)
{
	struct tshare_counter args = { .fd = side->fd };

	return xioctl(side->dev, TSHARE_IOCTL_COUNTER, &args) ?: close(args.counter_fd);
}

static int call_map(struct side *side)
{
	volatile __u64 *mem = map(side->fd, PAGE, RW);

	if (mem == MAP_FAILED)
		return -errno;
	mem[side->number] = 1;
	return munmap((void *)mem, PAGE);
}

static int call_device(struct side *side)
{
	(void)side;
	return closed(open_device());
}

static int call_query(struct side *side)
{
	struct tshare_query query = {};

	return xioctl(side->dev, TSHARE_IOCTL_QUERY, &query);
}

/* A limit that nothing reaches, and none. */
static int call_limit(struct side *side)
{
	return write_number(NS_MAX_MIB, side->made % 2 ? 0 : 1000000);
}

static int call_resize(struct side *side)
{
	return resize(side->made % 2 ? 0 : LARGE);
}

/* From the pool, if that has memory, or by a search. */
static int call_large(struct side *side)
{
	return closed(create(side->dev, LARGE, NULL));
}

static int call_pin(struct side *side)
{
	int pipes[2], err = pin(side->dev, 2 * PAGE, PAGE, pipes);

	if (!err)
		unpin(pipes);
	return err;
}

static int call_foreign(struct side *side)
{
	int dmabuf = create_udmabuf(PAGE), err;

	if (dmabuf < 0)
		return dmabuf;
	err = closed(name_foreign(side->dev, dmabuf, NAME, TSHARE_CREATE_REPLACE));
	close(dmabuf);
	return err;
}

static int call_attach(struct side *side)
{
	/* Several at a time may only read: DMA_API_DEBUG takes others for a mistake. */
	struct importer_attach args = {
		.fd = side->fd,
		.direction = IMPORTER_TO_DEVICE,
		.segment_max = 64 * KIB,
		.boundary = ~0U,
	};
	int importer = open(IMPORTER, O_RDWR | O_CLOEXEC), err;

	err = xioctl(importer, IMPORTER_IOCTL_ATTACH, &args);
	close(importer);
	return err;
}

/* A name that lives as long as anybody has the region open. */
static int call_users(struct side *side)
{
	return closed(create_flags(side->dev, PAGE, NAME,
				   TSHARE_CREATE_USERS | TSHARE_CREATE_REPLACE));
}

/* The same name elsewhere, in a namespace that goes with it. */
static int call_namespace(struct side *side)
{
	int home = open("/proc/thread-self/ns/ipc", O_RDONLY | O_CLOEXEC), dev, err;

	(void)side;
	if (unshare(CLONE_NEWIPC))
		return -errno;
	dev = open_device();
	err = closed(create_flags(dev, PAGE, NAME, TSHARE_CREATE_USERS));
	close(dev);
	if (setns(home, CLONE_NEWIPC))
		err = -errno;
	close(home);
	return err;
}

/* What the module shows of all regions. */
static int call_show(struct side *side)
{
	static const char *const files[] = {
		SYSFS "regions", SYSFS "names", SYSFS "exports", SYSFS "bytes",
		"/sys/kernel/debug/tshare/regions",
	};
	char text[4096];
	int fd = open(files[side->done % ARRAY_SIZE(files)], O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (fd < 0)
		return -errno;
	len = read(fd, text, sizeof(text));
	close(fd);
	return len < 0 ? -errno : 0;
}

static const struct call {
	const char *name;
	int (*make)(struct side *side);
	/* What not every kernel has. */
	const char *needs;
} calls[] = {
	{ .name = "create", .make = call_create },
	{ .name = "finish", .make = call_finish },
	{ .name = "open", .make = call_open },
	{ .name = "wait", .make = call_wait },
	{ .name = "unlink", .make = call_unlink },
	{ .name = "info", .make = call_info },
	{ .name = "list", .make = call_list },
	{ .name = "export", .make = call_export },
	{ .name = "counter", .make = call_counter },
	{ .name = "map", .make = call_map },
	{ .name = "device", .make = call_device },
	{ .name = "show", .make = call_show },
	{ .name = "query", .make = call_query },
	{ .name = "limit", .make = call_limit },
	{ .name = "resize", .make = call_resize },
	{ .name = "large", .make = call_large },
	{ .name = "pin", .make = call_pin },
	{ .name = "foreign", .make = call_foreign, .needs = UDMABUF },
	{ .name = "attach", .make = call_attach, .needs = IMPORTER },
	{ .name = "users", .make = call_users },
	{ .name = "namespace", .make = call_namespace },
};

static bool is_possible(const struct call *call)
{
	return !call->needs || !access(call->needs, F_OK);
}

static void *run(void *arg)
{
	struct side *side = arg;
	cpu_set_t cpus;
	int err;

	CPU_ZERO(&cpus);
	CPU_SET(side->number, &cpus);
	pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	pthread_barrier_wait(&begin);
	do {
		err = side->call->make(side);
		side->made++;
		if (!err)
			__atomic_add_fetch(&side->done, 1, __ATOMIC_RELAXED);
		else if (err != -EEXIST && err != -ENOENT && err != -EINPROGRESS &&
			 err != -ETIMEDOUT)
			side->wrong = err;
	} while (!__atomic_load_n(&stop, __ATOMIC_RELAXED));
	return NULL;
}

static bool both_succeed(struct side *sides)
{
	return __atomic_load_n(&sides[0].done, __ATOMIC_RELAXED) >= TIMES &&
	       __atomic_load_n(&sides[1].done, __ATOMIC_RELAXED) >= TIMES;
}

TEST(calls_can_be_made_at_once_with_any_other)
{
	const size_t pairs = ARRAY_SIZE(calls) * (ARRAY_SIZE(calls) + 1) / 2;
	const int milliseconds = stress_seconds(SECONDS) * 1000 / pairs;
	struct counters before = count_all();
	unsigned long done[ARRAY_SIZE(calls)] = {};
	struct side sides[2] = { { .number = 0 }, { .number = 1 } };
	pthread_t threads[2];
	size_t i, j, k;
	int fd, tries;

	for (k = 0; k < 2; k++) {
		sides[k].dev = open_device();
		ASSERT_LE(0, sides[k].dev);
	}
	pthread_barrier_init(&begin, NULL, 2);
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		for (j = i; j < ARRAY_SIZE(calls); j++) {
			if (!is_possible(&calls[i]) || !is_possible(&calls[j]))
				continue;
			fd = create_flags(sides[0].dev, PAGE, NAME,
					  TSHARE_CREATE_PERSIST | TSHARE_CREATE_REPLACE);
			ASSERT_LE(0, fd);
			stop = false;
			for (k = 0; k < 2; k++) {
				sides[k].call = &calls[k ? j : i];
				sides[k].fd = fd;
				sides[k].made = 0;
				sides[k].done = 0;
				sides[k].wrong = 0;
				ASSERT_EQ(0, pthread_create(&threads[k], NULL, run, &sides[k]));
			}
			tries = 0;
			do
				usleep(milliseconds * 1000);
			while (++tries < PATIENCE && !both_succeed(sides));
			__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
			for (k = 0; k < 2; k++) {
				pthread_join(threads[k], NULL);
				EXPECT_EQ(0, sides[k].wrong) {
					TH_LOG("%s, beside %s", sides[k].call->name,
					       sides[!k].call->name);
				}
			}
			EXPECT_TRUE(both_succeed(sides)) {
				TH_LOG("%s and %s: %lu and %lu times", calls[i].name,
				       calls[j].name, sides[0].done, sides[1].done);
			}
			close(fd);
			done[i] += sides[0].done;
			done[j] += sides[1].done;
		}
	}
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		ksft_print_msg("%s: %lu times\n", calls[i].name, done[i]);
	EXPECT_EQ(0, resize(0));
	EXPECT_EQ(0, write_number(NS_MAX_MIB, 0));
	unlink_name(sides[0].dev, NAME);
	for (k = 0; k < 2; k++)
		close(sides[k].dev);
	EXPECT_TRUE(counters_return_to(before));
	EXPECT_SAME_COUNTERS(before);
}

TEST_HARNESS_MAIN
