// SPDX-License-Identifier: GPL-2.0-only
/* Many processes that use the same names at once, and some that are killed. */
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "util.h"

#define PROCESSES 4
#define THREADS 2
#define NAMES 6
/* How long it goes on, and how long at most until it has seen everything. */
#define SECONDS 6
#define SECONDS_MAX 60

/*
 * Results of the processes' calls, in memory that they share. Every way in which a
 * call may end has to be seen, or the test was none.
 */
struct seen {
	int wrong;
	int made;
	int taken;
	int finished;
	int ended;
	int waited;
	int late;
	int opened;
	int missing;
	int mapped;
	int unlinked;
	int listed;
};

static struct seen *seen;

static bool seen_all(void)
{
	return seen->made && seen->taken && seen->finished && seen->ended && seen->waited &&
	       seen->late && seen->opened && seen->missing && seen->mapped && seen->unlinked &&
	       seen->listed;
}

static void count(int *what)
{
	__atomic_add_fetch(what, 1, __ATOMIC_RELAXED);
}

struct worker {
	unsigned int seed;
	int dev;
	/* The region that it has waited for last. */
	__u64 last_id;
};

/* The first word of each region is zero or its id, in every process. */
static void use(int dev, int fd, bool write)
{
	__u64 id = id_of(dev, fd), word;
	volatile __u64 *mem;

	mem = map(fd, PAGE, write ? RW : PROT_READ);
	if (!id || mem == MAP_FAILED) {
		count(&seen->wrong);
		return;
	}
	count(&seen->mapped);
	word = *mem;
	if (word && word != id)
		count(&seen->wrong);
	if (write)
		*mem = id;
	munmap((void *)mem, PAGE);
}

/* Counts success, and the errno that the call may return in a race. */
static void count_result(int ret, int *success, int expected, int *failure)
{
	if (ret >= 0) {
		count(success);
	} else if (ret == -expected) {
		count(failure);
	} else if (ret != -ENOMEM) {
		ksft_print_msg("unexpected errno: %s\n", strerror(-ret));
		count(&seen->wrong);
	}
}

/* The lifetimes that a name can have, and whether it takes the name of another. */
static __u32 random_flags(struct worker *worker)
{
	static const __u32 lifetimes[] = {
		0, 0, TSHARE_CREATE_USERS, TSHARE_CREATE_PERSIST,
	};
	__u32 flags = lifetimes[rand_r(&worker->seed) % ARRAY_SIZE(lifetimes)];

	return flags | (rand_r(&worker->seed) % 2 ? TSHARE_CREATE_REPLACE : 0);
}

static void create_and_use(struct worker *worker, const char *name)
{
	static const __u64 sizes[] = { 1, 3 * PAGE, 2 * MIB, 2 * MIB + PAGE, 4 * MIB };
	__u64 size = sizes[rand_r(&worker->seed) % ARRAY_SIZE(sizes)];
	int fd = create_flags(worker->dev, size, name, random_flags(worker));

	count_result(fd, &seen->made, EEXIST, &seen->taken);
	if (fd >= 0) {
		use(worker->dev, fd, true);
		close(fd);
	}
}

/* A draft that is closed, unlinked by others, or finished. */
static void create_draft_and_finish(struct worker *worker, const char *name)
{
	int fd = create_flags(worker->dev, PAGE, name, random_flags(worker) | TSHARE_CREATE_DRAFT);

	count_result(fd, &seen->made, EEXIST, &seen->taken);
	if (fd < 0)
		return;
	use(worker->dev, fd, true);
	if (rand_r(&worker->seed) % 4)
		count_result(finish_replacing(worker->dev, fd), &seen->finished, ENOENT,
			     &seen->ended);
	close(fd);
}

/* Waits a few milliseconds for what the others do. */
static void wait_and_use(struct worker *worker, const char *name)
{
	struct tshare_open args = {
		.flags = TSHARE_OPEN_WRITE,
		.timeout_ns = rand_r(&worker->seed) % 4000000 + 1,
		.other_than = worker->last_id,
	};
	int err;

	strcpy(args.name, name);
	err = xioctl(worker->dev, TSHARE_IOCTL_OPEN, &args);
	if (err == -ENOENT) {
		count(&seen->missing);
		return;
	}
	count_result(err, &seen->waited, ETIMEDOUT, &seen->late);
	if (err)
		return;
	if (args.id == worker->last_id)
		count(&seen->wrong);
	worker->last_id = args.id;
	use(worker->dev, args.fd, true);
	close(args.fd);
}

static void act(struct worker *worker)
{
	struct tshare_list_entry entries[4];
	char name[8];
	int ret;

	sprintf(name, "s%d", rand_r(&worker->seed) % NAMES);
	switch (rand_r(&worker->seed) % 12) {
	case 0:
	case 1:
		create_and_use(worker, name);
		break;
	case 7:
	case 8:
		create_draft_and_finish(worker, name);
		break;
	case 9:
	case 10:
		wait_and_use(worker, name);
		break;
	case 2:
	case 3:
	case 4:
		ret = open_name(worker->dev, name, TSHARE_OPEN_WRITE);
		if (ret == -EINPROGRESS)
			break;
		count_result(ret, &seen->opened, ENOENT, &seen->missing);
		if (ret >= 0) {
			use(worker->dev, ret, rand_r(&worker->seed) % 2);
			close(ret);
		}
		break;
	case 5:
		count_result(unlink_name(worker->dev, name), &seen->unlinked, ENOENT,
			     &seen->missing);
		break;
	case 6:
		ret = do_list(worker->dev, TSHARE_LIST_ALL, entries, 4);
		if (ret)
			count_result(ret, &seen->listed, 0, &seen->wrong);
		break;
	default:
		close(worker->dev);
		worker->dev = open_device();
		if (worker->dev < 0)
			count(&seen->wrong);
	}
}

static void *work(void *arg)
{
	struct worker worker = { .seed = (uintptr_t)arg, .dev = open_device() };

	for (;;)
		act(&worker);
	return NULL;
}

static pid_t start(unsigned int seed)
{
	pid_t pid = fork();
	pthread_t thread;
	int i;

	if (pid)
		return pid;
	for (i = 1; i < THREADS; i++)
		if (pthread_create(&thread, NULL, work, (void *)(uintptr_t)(seed * 31 + i)))
			_exit(1);
	work((void *)(uintptr_t)seed);
	_exit(1);
}

TEST(killed_processes_leave_nothing_behind)
{
	struct counters before = count_all();
	time_t begin = time(NULL);
	unsigned int seed = 1, kills = 0;
	pid_t pids[PROCESSES];
	int dev = open_device(), i;
	char name[8];

	ASSERT_LE(0, dev);
	seen = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, seen);
	for (i = 0; i < PROCESSES; i++)
		pids[i] = start(seed++);
	while (time(NULL) < begin + (seen_all() ? SECONDS : SECONDS_MAX)) {
		i = rand_r(&seed) % PROCESSES;
		usleep(rand_r(&seed) % 40000);
		kill(pids[i], SIGKILL);
		ASSERT_EQ(pids[i], waitpid(pids[i], NULL, 0));
		pids[i] = start(seed++);
		kills++;
	}
	for (i = 0; i < PROCESSES; i++) {
		kill(pids[i], SIGKILL);
		ASSERT_EQ(pids[i], waitpid(pids[i], NULL, 0));
	}
	for (i = 0; i < NAMES; i++) {
		sprintf(name, "s%d", i);
		unlink_name(dev, name);
	}
	ksft_print_msg("%u processes killed\n", kills);
	EXPECT_EQ(0, seen->wrong);
	EXPECT_LT(0, seen->made);
	EXPECT_LT(0, seen->taken);
	EXPECT_LT(0, seen->finished);
	EXPECT_LT(0, seen->ended);
	EXPECT_LT(0, seen->waited);
	EXPECT_LT(0, seen->late);
	EXPECT_LT(0, seen->opened);
	EXPECT_LT(0, seen->missing);
	EXPECT_LT(0, seen->mapped);
	EXPECT_LT(0, seen->unlinked);
	EXPECT_LT(0, seen->listed);
	EXPECT_TRUE(counters_return_to(before));
}

/* Regions which are large enough to be searched for, until killed. */
static int search_on_and_on(void *arg)
{
	int dev = open_device(), fd;

	(void)arg;
	for (;;) {
		fd = create(dev, 128 * MIB, NULL);
		if (fd < 0)
			count(&seen->wrong);
		close(fd);
	}
	return 0;
}

TEST(killed_searches_leave_nothing_behind)
{
	struct counters before = count_all();
	unsigned int seed = 1;
	int i;

	seen = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, seen);
	for (i = 0; i < 30; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(search_on_and_on(NULL));
		usleep(rand_r(&seed) % 100000);
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	}
	EXPECT_EQ(0, seen->wrong);
	EXPECT_TRUE(counters_return_to(before));
}

TEST(two_searches_at_once_both_end)
{
	int dev = open_device(), i, status;
	pid_t pids[2];

	ASSERT_LE(0, dev);
	for (i = 0; i < 2; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			int fd, round;

			for (round = 0; round < 10; round++) {
				fd = create(dev, 32 * MIB, NULL);
				if (fd < 0)
					_exit(1);
				close(fd);
			}
			_exit(0);
		}
	}
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(pids[i], waitpid(pids[i], &status, 0));
		EXPECT_EQ(0, status);
	}
}

TEST_HARNESS_MAIN
