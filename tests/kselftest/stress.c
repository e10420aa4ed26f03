// SPDX-License-Identifier: GPL-2.0-only
/* Many processes that use the same names at once, and some that are killed. */
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>

#include "driver/importer.h"
#include "harness.h"
#include "held.h"
#include "pin.h"
#include "pool.h"
#include "proc.h"

/* TSHARE_TEST_STRESS may ask for ten minutes. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 900

#define PROCESSES 4
#define THREADS 2
#define NAMES 6
/* How long it goes on, and how long at most until it has seen everything. */
#define SECONDS 6
#define SECONDS_MAX 60
/* By how much the kernel's own use of memory may differ: caches, lists of free pages. */
#define MEMORY_NOISE (32 * MIB)

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
	int shown;
	int forked;
	int attached;
	int published;
	int slept;
};

static struct seen *seen;

/* The device that imports regions is missing where its driver was not built. */
static bool has_importer(void)
{
	return !access(IMPORTER, F_OK);
}

static bool seen_all(void)
{
	return seen->made && seen->taken && seen->finished && seen->ended && seen->waited &&
	       seen->late && seen->opened && seen->missing && seen->mapped && seen->unlinked &&
	       seen->listed && seen->shown && seen->forked &&
	       (seen->attached || !has_importer()) && seen->published && seen->slept;
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
		.deadline_ns = deadline_in(rand_r(&worker->seed) % 4000000),
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

/* The region that a name leads to, for the calls that take a descriptor. */
static int open_any(struct worker *worker, const char *name)
{
	int fd = open_name(worker->dev, name, TSHARE_OPEN_WRITE);

	if (fd != -EINPROGRESS)
		count_result(fd, &seen->opened, ENOENT, &seen->missing);
	return fd;
}

/* A child that has the region for a while, also if its parent is killed meanwhile. */
static void fork_and_use(struct worker *worker, const char *name)
{
	int fd = open_any(worker, name);
	__u64 *mem;
	pid_t pid;

	if (fd < 0)
		return;
	mem = map(fd, PAGE, RW);
	pid = fork();
	if (!pid) {
		use(worker->dev, fd, true);
		usleep(rand_r(&worker->seed) % 4000);
		_exit(0);
	}
	if (mem == MAP_FAILED || pid < 0)
		count(&seen->wrong);
	else
		count(&seen->forked);
	munmap(mem, PAGE);
	close(fd);
	waitpid(pid, NULL, 0);
}

/* A device that has the region mapped, until it is closed or the process is killed. */
static void attach_and_use(struct worker *worker, const char *name)
{
	/* Several at a time may only read: DMA_API_DEBUG takes others for a mistake. */
	struct importer_attach args = {
		.direction = IMPORTER_TO_DEVICE,
		.segment_max = 64 * KIB,
		.boundary = ~0U,
	};
	int fd = open_any(worker, name), importer;

	if (fd < 0)
		return;
	importer = open(IMPORTER, O_RDWR | O_CLOEXEC);
	args.fd = fd;
	count_result(xioctl(importer, IMPORTER_IOCTL_ATTACH, &args), &seen->attached, ENOMEM,
		     &seen->missing);
	use(worker->dev, fd, true);
	close(fd);
	close(importer);
}

/* Publishes, or waits up to 4 ms for others to publish. */
static void publish_or_wait(struct worker *worker, const char *name)
{
	const struct timespec timeout = { .tv_nsec = rand_r(&worker->seed) % 4000000 };
	int fd = open_any(worker, name);
	struct tshare_counter args = { .fd = fd };
	__u32 *word;

	if (fd < 0)
		return;
	if (xioctl(worker->dev, TSHARE_IOCTL_COUNTER, &args) ||
	    args.id != id_of(worker->dev, fd)) {
		count(&seen->wrong);
		close(fd);
		return;
	}
	word = map(args.counter_fd, PAGE, RW);
	close(args.counter_fd);
	close(fd);
	if (word == MAP_FAILED) {
		count(&seen->wrong);
	} else if (rand_r(&worker->seed) % 2) {
		__atomic_add_fetch(word, 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
		count(&seen->published);
	} else {
		syscall(SYS_futex, word, FUTEX_WAIT, *word, &timeout, NULL, 0);
		count(&seen->slept);
	}
	munmap(word, PAGE);
}

#define REGIONS "/sys/kernel/debug/tshare/regions"

/* Reads what debugfs shows: whole lines, each region once. */
static void read_debugfs(void)
{
	FILE *file = fopen(REGIONS, "re");
	unsigned long long id, before = 0;
	char line[512];

	if (!file)
		count(&seen->wrong);
	while (file && fgets(line, sizeof(line), file)) {
		/* A device that has the region above has a line that begins with a tab. */
		if (*line == '\t' || sscanf(line, "%llu ", &id) != 1)
			continue;
		if (id <= before || !strchr(line, '\n'))
			count(&seen->wrong);
		before = id;
		count(&seen->shown);
	}
	if (file)
		fclose(file);
}

static void act(struct worker *worker)
{
	struct tshare_list_entry entries[4];
	char name[8];
	int ret;

	sprintf(name, "s%d", rand_r(&worker->seed) % NAMES);
	switch (rand_r(&worker->seed) % 18) {
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
		ret = open_any(worker, name);
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
	case 11:
		read_debugfs();
		break;
	case 12:
		fork_and_use(worker, name);
		break;
	case 13:
	case 14:
		if (has_importer())
			attach_and_use(worker, name);
		break;
	case 15:
	case 16:
		publish_or_wait(worker, name);
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

/* Free memory without what the kernel caches. */
static __u64 memory_free_of_caches(void)
{
	write_file("/proc/sys/vm/drop_caches", "3");
	return free_memory();
}

/* Waits up to half a minute, as what was freed may still be on its way to the page allocator. */
static bool memory_returns_to(__u64 before)
{
	__u64 now = 0;
	int tries;

	for (tries = 0; tries < 300; tries++) {
		now = memory_free_of_caches();
		if (now + MEMORY_NOISE >= before)
			break;
		usleep(100000);
	}
	ksft_print_msg("free memory: %llu KiB before, %llu KiB after\n", before / KIB, now / KIB);
	return now + MEMORY_NOISE >= before;
}

TEST(killed_processes_leave_nothing_behind)
{
	struct counters before = count_all();
	__u64 memory = memory_free_of_caches();
	time_t begin = time(NULL), seconds = stress_seconds(SECONDS);
	unsigned int seed = 1, kills = 0;
	pid_t pids[PROCESSES];
	int dev = open_device(), i;
	char name[8];

	ASSERT_LE(0, dev);
	seen = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, seen);
	for (i = 0; i < PROCESSES; i++)
		pids[i] = start(seed++);
	while (time(NULL) < begin + seconds || (!seen_all() && time(NULL) < begin + SECONDS_MAX)) {
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
	ksft_print_msg("%u processes killed in %ld s\n", kills, (long)(time(NULL) - begin));
	ksft_print_msg("%d created, %d finished, %d opened, %d unlinked, %d mapped\n", seen->made,
		       seen->finished, seen->opened, seen->unlinked, seen->mapped);
	ksft_print_msg("%d forked, %d attached, %d published\n", seen->forked, seen->attached,
		       seen->published);
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
	EXPECT_LT(0, seen->shown);
	EXPECT_LT(0, seen->forked);
	EXPECT_TRUE(seen->attached || !has_importer());
	EXPECT_LT(0, seen->published);
	EXPECT_LT(0, seen->slept);
	EXPECT_TRUE(counters_return_to(before));
	EXPECT_TRUE(memory_returns_to(memory));
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

/* Regions whose memory must be zero, one after the other, until killed. */
static void create_on_and_on(unsigned int seed)
{
	int dev = open_device(), kept[4] = { -1, -1, -1, -1 }, pipes[2], fd;

	for (;;) {
		size_t size = (rand_r(&seed) % 12) * MIB + 2 * MIB + rand_r(&seed) % 3 * PAGE;
		int slot = rand_r(&seed) % 4;

		fd = create(dev, size, NULL);
		if (fd < 0) {
			if (fd != -ENOMEM)
				count(&seen->wrong);
			continue;
		}
		if (!is_zero_and_filled(fd, size))
			count(&seen->wrong);
		if (!(rand_r(&seed) % 8)) {
			if (!pin_region(fd, size, PAGE, pipes)) {
				usleep(rand_r(&seed) % 1000);
				unpin(pipes);
			}
			continue;
		}
		close(kept[slot]);
		kept[slot] = fd;
	}
}

TEST(pool_may_be_resized_while_others_use_it)
{
	struct counters before = count_all();
	unsigned int seed = 1, kills = 0;
	time_t start = time(NULL);
	pid_t pids[PROCESSES];
	int i, err;

	seen = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, seen);
	for (i = 0; i < PROCESSES; i++)
		pids[i] = 0;
	while (time(NULL) < start + rounds(SECONDS)) {
		for (i = 0; i < PROCESSES; i++) {
			if (pids[i] && rand_r(&seed) % 4)
				continue;
			if (pids[i]) {
				end(pids[i]);
				kills++;
			}
			seed++;
			pids[i] = fork();
			if (!pids[i])
				create_on_and_on(seed);
		}
		err = resize(rand_r(&seed) % 32 * 2 * MIB);
		EXPECT_TRUE(!err || err == -ENOMEM);
		usleep(rand_r(&seed) % 100000);
	}
	for (i = 0; i < PROCESSES; i++)
		end(pids[i]);
	ksft_print_msg("%u processes killed\n", kills);
	EXPECT_EQ(0, resize(0));
	EXPECT_TRUE(becomes(POOL(0, "size"), 0));
	EXPECT_EQ(0, seen->wrong);
	EXPECT_TRUE(counters_return_to(before));
}

TEST_HARNESS_MAIN
