// SPDX-License-Identifier: GPL-2.0-only
/* The counter of a region: a page that processes sleep on, and its permissions. */
#include <linux/futex.h>
#include <linux/memfd.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>

#include "harness.h"
#include "proc.h"

FIXTURE(counter)
{
	struct counters before;
	int dev;
	int rw;
	int ro;
};

FIXTURE_SETUP(counter)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->before = count_all();
	self->rw = create(self->dev, PAGE, "counted");
	ASSERT_LE(0, self->rw);
	self->ro = open_name(self->dev, "counted", 0);
	ASSERT_LE(0, self->ro);
}

FIXTURE_TEARDOWN(counter)
{
	close(self->ro);
	close(self->rw);
	close(self->dev);
}

static int open_counter_with(int dev, int fd, __u32 flags)
{
	struct tshare_counter args = { .fd = fd, .flags = flags };
	int err = xioctl(dev, TSHARE_IOCTL_COUNTER, &args);

	return err ? err : args.counter_fd;
}

static int open_counter(int dev, int fd)
{
	return open_counter_with(dev, fd, 0);
}

static unsigned long inode_of(int fd)
{
	struct stat stat;

	return fstat(fd, &stat) ? 0 : stat.st_ino;
}

static int futex(void *word, int op, __u32 value, int milliseconds)
{
	const struct timespec timeout = {
		milliseconds / 1000,
		milliseconds % 1000 * 1000000,
	};
	int ret = syscall(SYS_futex, word, op, value, &timeout, NULL, 0);

	return ret < 0 ? -errno : ret;
}

TEST_F(counter, is_one_page_of_zeros)
{
	struct stat stat;
	char *page;
	int fd;

	fd = open_counter(self->dev, self->rw);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, fstat(fd, &stat));
	EXPECT_EQ(PAGE, stat.st_size);
	page = map(fd, PAGE, RW);
	ASSERT_NE(MAP_FAILED, page);
	EXPECT_TRUE(zeroed(page, PAGE));
}

TEST_F(counter, is_one_for_all_openers)
{
	int one = open_counter(self->dev, self->rw), two = open_counter(self->dev, self->ro);
	__u64 *writable, *shown;

	ASSERT_LE(0, one);
	ASSERT_LE(0, two);
	EXPECT_NE(one, two);
	EXPECT_EQ(inode_of(one), inode_of(two));
	writable = map(one, PAGE, RW);
	shown = map(two, PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, writable);
	ASSERT_NE(MAP_FAILED, shown);
	fill(writable, PAGE, 1);
	EXPECT_TRUE(filled(shown, PAGE, 1));
}

TEST_F(counter, comes_with_the_regions_id)
{
	struct tshare_counter args = { .fd = self->ro };

	ASSERT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_COUNTER, &args));
	EXPECT_EQ(id_of(self->dev, self->rw), args.id);
}

TEST_F(counter, differs_from_that_of_another_region)
{
	int other = create(self->dev, PAGE, NULL);
	int one = open_counter(self->dev, self->rw), two = open_counter(self->dev, other);

	ASSERT_LE(0, one);
	ASSERT_LE(0, two);
	EXPECT_NE(inode_of(one), inode_of(two));
}

TEST_F(counter, has_a_description_of_its_own_for_each_caller)
{
	struct flock lock = { .l_type = F_WRLCK, .l_len = 1 };
	int one = open_counter(self->dev, self->rw), two = open_counter(self->dev, self->rw);

	ASSERT_EQ(0, fcntl(one, F_OFD_SETLK, &lock));
	EXPECT_EQ(-1, fcntl(two, F_OFD_SETLK, &lock));
	EXPECT_EQ(EAGAIN, errno);
	ASSERT_EQ(0, close(one));
	EXPECT_EQ(0, fcntl(two, F_OFD_SETLK, &lock));
}

TEST_F(counter, is_close_on_exec_unless_asked_otherwise)
{
	int closed = open_counter(self->dev, self->rw);
	int kept = open_counter_with(self->dev, self->rw, TSHARE_COUNTER_NO_CLOEXEC);

	EXPECT_EQ(FD_CLOEXEC, fcntl(closed, F_GETFD));
	EXPECT_EQ(0, fcntl(kept, F_GETFD));
}

TEST_F(counter, of_other_descriptors_is_refused)
{
	int memfd = memfd_create("foreign", MFD_CLOEXEC);
	struct counters before = count_all();

	EXPECT_EQ(-EBADF, open_counter(self->dev, -1));
	EXPECT_EQ(-EBADF, open_counter(self->dev, 1000));
	EXPECT_EQ(-EINVAL, open_counter(self->dev, self->dev));
	EXPECT_EQ(-EINVAL, open_counter(self->dev, memfd));
	EXPECT_SAME_COUNTERS(before);
}

TEST_F(counter, of_a_foreign_dma_buf_is_refused)
{
	struct {
		__u32 handle, flags;
		__s32 fd;
	} prime = { .flags = O_CLOEXEC };
	struct {
		__u32 height, width, bpp, flags, handle, pitch;
		__u64 size;
	} dumb = { .height = 64, .width = 64, .bpp = 32 };
	char path[] = "/dev/dri/card0";
	int card;

	/* The dma-buf of vgem, which the runner has loaded. */
	for (; path[sizeof(path) - 2] <= '9'; path[sizeof(path) - 2]++) {
		card = open(path, O_RDWR | O_CLOEXEC);
		if (card >= 0 && !ioctl(card, _IOWR('d', 0xB2, dumb), &dumb))
			break;
	}
	if (path[sizeof(path) - 2] > '9')
		SKIP(return, "the kernel has no vgem");
	prime.handle = dumb.handle;
	ASSERT_EQ(0, ioctl(card, _IOWR('d', 0x2d, prime), &prime));
	EXPECT_EQ(-EINVAL, open_counter(self->dev, prime.fd));
}

TEST_F(counter, of_a_read_only_dma_buf_is_read_only)
{
	int fd = open_counter(self->dev, self->ro);
	char *shown, byte = 1;

	ASSERT_LE(0, fd);
	EXPECT_EQ(O_RDONLY, fcntl(fd, F_GETFL) & O_ACCMODE);
	EXPECT_EQ(MAP_FAILED, map(fd, PAGE, RW));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(-1, write(fd, &byte, 1));
	EXPECT_EQ(EBADF, errno);
	shown = map(fd, PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, shown);
	EXPECT_EQ(-1, mprotect(shown, PAGE, RW));
	EXPECT_EQ(EACCES, errno);
	fd = open_counter(self->dev, self->rw);
	EXPECT_EQ(O_RDWR, fcntl(fd, F_GETFL) & O_ACCMODE);
}

/* Calls that might give a reader more access than it has. */
static int try_to_gain(void *arg)
{
	int fd = *(int *)arg;
	char path[64];

	sprintf(path, "/proc/self/fd/%d", fd);
	if (open(path, O_RDWR) >= 0 || open(path, O_WRONLY) >= 0 || open(path, O_RDONLY) >= 0)
		return 1;
	if (!fchmod(fd, 0666) || !fcntl(fd, F_SETLEASE, F_RDLCK))
		return 2;
	if (!fsetxattr(fd, "user.any", "", 0, 0) || !ftruncate(fd, 0))
		return 3;
	return open(path, O_RDWR) >= 0 ? 4 : 0;
}

static int try_to_gain_as_user(void *arg)
{
	return become(USER_C) ? try_to_gain(arg) : 9;
}

TEST_F(counter, can_not_be_opened_in_another_way)
{
	int fd = open_counter(self->dev, self->ro);

	ASSERT_LE(0, fd);
	EXPECT_EQ(0, in_child(try_to_gain_as_user, &fd));
}

TEST_F(counter, can_not_be_opened_in_another_way_by_their_maker)
{
	int region, fd;

	ASSERT_TRUE(act_as_user(USER_C));
	region = create(self->dev, PAGE, "mine");
	fd = open_counter(self->dev, open_name(self->dev, "mine", 0));
	close(region);
	ASSERT_TRUE(act_as_root());
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, in_child(try_to_gain_as_user, &fd));
}

TEST_F(counter, can_not_be_opened_in_another_way_by_root)
{
	int fd = open_counter(self->dev, self->ro);
	char path[64];

	ASSERT_LE(0, fd);
	sprintf(path, "/proc/self/fd/%d", fd);
	EXPECT_EQ(-1, open(path, O_RDWR));
	EXPECT_EQ(-1, fchmod(fd, 0666));
}

TEST_F(counter, has_a_fixed_size)
{
	int fd = open_counter(self->dev, self->rw);
	char byte = 1;

	ASSERT_LE(0, fd);
	EXPECT_EQ(-1, ftruncate(fd, 0));
	EXPECT_EQ(-1, ftruncate(fd, 2 * PAGE));
	EXPECT_EQ(-1, fallocate(fd, 0, PAGE, PAGE));
	EXPECT_EQ(-1, pwrite(fd, &byte, 1, PAGE));
	EXPECT_EQ(-1, fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	EXPECT_EQ(EPERM, errno);
	EXPECT_EQ(F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW, fcntl(fd, F_GET_SEALS));
}

TEST_F(counter, survives_a_hole_in_it)
{
	int fd = open_counter(self->dev, self->rw), ro = open_counter(self->dev, self->ro);
	__u64 *writable = map(fd, PAGE, RW), *shown = map(ro, PAGE, PROT_READ);

	ASSERT_NE(MAP_FAILED, writable);
	ASSERT_NE(MAP_FAILED, shown);
	*writable = 1;
	ASSERT_EQ(0, fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
	EXPECT_EQ(0, *(volatile __u64 *)shown);
	*writable = 2;
	EXPECT_EQ(2, *(volatile __u64 *)shown);
}

static int sleep_on_word(__u32 *word)
{
	int ret = 0;

	while (!ret && !*(volatile __u32 *)word)
		ret = futex(word, FUTEX_WAIT, 0, 20000);
	return ret && ret != -EAGAIN ? 1 : 0;
}

TEST_F(counter, can_be_slept_on_by_readers)
{
	__u32 *word = map(open_counter(self->dev, self->rw), PAGE, RW);
	__u32 *shown = map(open_counter(self->dev, self->ro), PAGE, PROT_READ);
	int tries, woken = 0;
	pid_t pid;

	ASSERT_NE(MAP_FAILED, word);
	ASSERT_NE(MAP_FAILED, shown);
	EXPECT_EQ(-EAGAIN, futex(shown, FUTEX_WAIT, 1, 1000));
	EXPECT_EQ(-ETIMEDOUT, futex(shown, FUTEX_WAIT, 0, 10));
	pid = fork();
	if (!pid)
		_exit(sleep_on_word(shown));
	/* The word is unchanged, so the processes that FUTEX_WAKE counts were asleep. */
	for (tries = 0; tries < 1000 && !woken; tries++) {
		usleep(10000);
		woken = futex(word, FUTEX_WAKE, 1, 0);
	}
	EXPECT_EQ(1, woken);
	*(volatile __u32 *)word = 1;
	futex(word, FUTEX_WAKE, 1, 0);
	ASSERT_EQ(pid, waitpid(pid, &tries, 0));
	EXPECT_EQ(0, tries);
}

/* Why the counter is necessary: a futex on the region's own memory fails. */
TEST_F(counter, is_needed_since_the_memory_can_not_be_slept_on)
{
	__u32 *word = map(self->rw, PAGE, RW);

	ASSERT_NE(MAP_FAILED, word);
	EXPECT_EQ(-EFAULT, futex(word, FUTEX_WAIT, 0, 10));
}

TEST_F(counter, does_not_keep_the_region)
{
	int fd = open_counter(self->dev, self->rw);
	__u64 *page = map(fd, PAGE, RW);

	ASSERT_NE(MAP_FAILED, page);
	close(fd);
	*page = 1;
	close(self->rw);
	close(self->ro);
	ASSERT_EQ(0, unlink_name(self->dev, "counted"));
	self->rw = -1;
	self->ro = -1;
	EXPECT_SAME_COUNTERS(self->before);
	EXPECT_EQ(1, *(volatile __u64 *)page);
	EXPECT_EQ(-EAGAIN, futex(page, FUTEX_WAIT, 0, 1000));
}

static int count_and_exit(void *arg)
{
	int dev = open_device();
	int fd = open_name(dev, "counted", TSHARE_OPEN_WRITE);
	__u64 *page = map(open_counter(dev, fd), PAGE, RW);

	(void)arg;
	if (page == MAP_FAILED)
		return 1;
	*page = 42;
	return 0;
}

TEST_F(counter, survives_its_maker)
{
	__u64 *shown;

	ASSERT_EQ(0, in_child(count_and_exit, NULL));
	shown = map(open_counter(self->dev, self->ro), PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, shown);
	EXPECT_EQ(42, *shown);
}

TEST_F(counter, does_not_need_the_namespace_of_the_region)
{
	int dev;

	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	dev = open_device();
	ASSERT_LE(0, dev);
	EXPECT_LE(0, open_counter(dev, self->rw));
}

/* The module doesn't count counters; their pages are counted as shared memory. */
struct asker {
	int dev;
	int rw;
};

/* Opens the counter in a user namespace of USER_A, whose limit is one counter. */
static int ask_in_a_user_namespace(void *arg)
{
	struct asker *asker = arg;

	if (!become(USER_A))
		return 1;
	if (unshare(CLONE_NEWUSER))
		return errno == ENOSPC ? 2 : 3;
	return open_counter(asker->dev, asker->rw) < 0;
}

#define USER_NAMESPACES "/proc/sys/user/max_user_namespaces"

TEST_F(counter, does_not_keep_the_user_namespace_of_its_maker)
{
	struct asker asker = { .dev = self->dev, .rw = self->rw };
	long limit = read_number(USER_NAMESPACES);
	int tries, result;

	if (limit <= 0)
		SKIP(return, "no user namespaces");
	ASSERT_TRUE(write_file(USER_NAMESPACES, "1"));
	result = in_child(ask_in_a_user_namespace, &asker);
	EXPECT_EQ(0, result);
	/* A namespace is freed in the background. */
	for (tries = 0; tries < 500; tries++) {
		result = in_child(ask_in_a_user_namespace, &asker);
		if (result != 2)
			break;
		usleep(10000);
	}
	EXPECT_EQ(0, result);
	EXPECT_TRUE(write_file(USER_NAMESPACES, "%ld", limit));
}

TEST_F(counter, goes_with_its_last_user)
{
	const int rounds = 1000;
	struct counters before = count_all();
	long shared = shared_memory();
	int i, region, fd;

	ASSERT_LE(0, shared);
	for (i = 0; i < rounds; i++) {
		region = create(self->dev, PAGE, NULL);
		ASSERT_LE(0, region);
		fd = open_counter(self->dev, region);
		ASSERT_LE(0, fd);
		ASSERT_EQ(1, pwrite(fd, "1", 1, 0));
		close(i % 2 ? fd : region);
		close(i % 2 ? region : fd);
	}
	EXPECT_SAME_COUNTERS(before);
	EXPECT_GT(shared + rounds * (long)PAGE / 2, shared_memory());
}

struct racer {
	pthread_barrier_t *together;
	int dev;
	int region;
	int fd;
};

static void *open_together(void *arg)
{
	struct racer *racer = arg;

	pthread_barrier_wait(racer->together);
	racer->fd = open_counter(racer->dev, racer->region);
	return NULL;
}

TEST_F(counter, is_one_for_concurrent_first_callers)
{
	enum { THREADS = 4 };
	const int times = rounds(200);
	struct racer racers[THREADS];
	pthread_t threads[THREADS];
	pthread_barrier_t together;
	int round, region, i;

	ASSERT_EQ(0, pthread_barrier_init(&together, NULL, THREADS));
	for (round = 0; round < times; round++) {
		region = create(self->dev, PAGE, NULL);
		ASSERT_LE(0, region);
		for (i = 0; i < THREADS; i++) {
			racers[i] = (struct racer){ &together, self->dev, region, -1 };
			ASSERT_EQ(0, pthread_create(&threads[i], NULL, open_together, &racers[i]));
		}
		for (i = 0; i < THREADS; i++)
			ASSERT_EQ(0, pthread_join(threads[i], NULL));
		for (i = 0; i < THREADS; i++) {
			ASSERT_LE(0, racers[i].fd);
			EXPECT_EQ(inode_of(racers[0].fd), inode_of(racers[i].fd));
		}
		for (i = 0; i < THREADS; i++)
			close(racers[i].fd);
		close(region);
	}
}

TEST_F(counter, without_a_free_descriptor_is_emfile)
{
	struct counters before = count_all();
	struct rlimit limit;
	int fd;

	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(fd);
	limit.rlim_cur = fd;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	EXPECT_EQ(-EMFILE, open_counter(self->dev, self->rw));
	limit.rlim_cur = limit.rlim_max;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	EXPECT_SAME_COUNTERS(before);
}

TEST_HARNESS_MAIN
