// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every two calls at once: a thread makes the one again and again, a thread on another processor
 * the other, on the same region and name.
 *
 * What the calls do to each other is for KASAN, lockdep and KCSAN to judge.
 */
#include <pthread.h>
#include <sched.h>

#include "util.h"

/* TSHARE_TEST_STRESS may ask for ten minutes. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 900

#define NAME "pairs"
/* For how long all of them run. */
#define SECONDS 5
/* How often each of two has to succeed meanwhile; they get up to PATIENCE times as long for it. */
#define TIMES	 3
#define PATIENCE 50

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
		.timeout_ns = 1000000,
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
} calls[] = {
	{ "create", call_create },
	{ "finish", call_finish },
	{ "open", call_open },
	{ "wait", call_wait },
	{ "unlink", call_unlink },
	{ "info", call_info },
	{ "list", call_list },
	{ "export", call_export },
	{ "counter", call_counter },
	{ "map", call_map },
	{ "device", call_device },
	{ "show", call_show },
};

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
				EXPECT_EQ(0, sides[k].wrong);
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
	unlink_name(sides[0].dev, NAME);
	for (k = 0; k < 2; k++)
		close(sides[k].dev);
	EXPECT_SAME_COUNTERS(before);
}

TEST_HARNESS_MAIN
