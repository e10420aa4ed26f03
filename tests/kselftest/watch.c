// SPDX-License-Identifier: GPL-2.0-only
/* WATCH: a file that is readable when a name may lead elsewhere. */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "harness.h"
#include "proc.h"

static int do_watch(int dev, const char *name, __u32 flags)
{
	struct tshare_watch args = { .flags = flags };
	int err;

	snprintf(args.name, sizeof(args.name), "%s", name);
	err = xioctl(dev, TSHARE_IOCTL_WATCH, &args);
	return err ? err : args.fd;
}

/* Of which read() doesn't sleep. */
static int watch(int dev, const char *name)
{
	int fd = do_watch(dev, name, 0);

	return fd >= 0 && fcntl(fd, F_SETFL, O_NONBLOCK) ? -errno : fd;
}

/* The id that read() stores, or a negative errno. */
static __s64 look(int watch)
{
	__u64 id;
	ssize_t size = read(watch, &id, sizeof(id));

	if (size < 0)
		return -errno;
	return size == sizeof(id) ? (__s64)id : -EPROTO;
}

static bool readable(int watch)
{
	struct pollfd pollfd = { .fd = watch, .events = POLLIN };

	return poll(&pollfd, 1, 0) == 1 && pollfd.revents == POLLIN;
}

FIXTURE(watch)
{
	int dev;
	int fd; /* a watch of "name" that nothing has happened to since it was read */
	struct counters before;
};

FIXTURE_SETUP(watch)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->before = count_all();
	self->fd = watch(self->dev, "name");
	ASSERT_LE(0, self->fd);
	EXPECT_TRUE(readable(self->fd));
	ASSERT_EQ(0, look(self->fd));
}

FIXTURE_TEARDOWN(watch)
{
	close(self->fd);
	EXPECT_TRUE(counters_return_to(self->before));
	close(self->dev);
}

TEST_F(watch, without_news_is_eagain)
{
	EXPECT_FALSE(readable(self->fd));
	EXPECT_EQ(-EAGAIN, look(self->fd));
}

TEST_F(watch, tells_the_id_of_a_region_that_is_there)
{
	int region = create(self->dev, PAGE, "name");
	int other = watch(self->dev, "name");

	EXPECT_EQ(id_of(self->dev, region), look(other));
	EXPECT_EQ(-EAGAIN, look(other));
	close(other);
	close(region);
	unlink_name(self->dev, "name");
}

TEST_F(watch, tells_of_a_new_region_its_successor_and_its_end)
{
	int first = create(self->dev, PAGE, "name");
	int next;

	EXPECT_TRUE(readable(self->fd));
	EXPECT_EQ(id_of(self->dev, first), look(self->fd));
	EXPECT_FALSE(readable(self->fd));

	next = create_flags(self->dev, PAGE, "name", TSHARE_CREATE_REPLACE);
	EXPECT_TRUE(readable(self->fd));
	EXPECT_EQ(id_of(self->dev, next), look(self->fd));
	EXPECT_FALSE(readable(self->fd));

	EXPECT_EQ(0, unlink_name(self->dev, "name"));
	EXPECT_TRUE(readable(self->fd));
	EXPECT_EQ(0, look(self->fd));
	EXPECT_FALSE(readable(self->fd));
	close(next);
	close(first);
}

TEST_F(watch, tells_of_a_draft_when_it_is_finished)
{
	int draft = create_draft(self->dev, "name");

	EXPECT_FALSE(readable(self->fd));
	EXPECT_EQ(0, finish(self->dev, draft));
	EXPECT_EQ(id_of(self->dev, draft), look(self->fd));
	unlink_name(self->dev, "name");
	EXPECT_EQ(0, look(self->fd));
	close(draft);
}

TEST_F(watch, tells_nothing_of_a_draft_that_ends)
{
	int draft = create_draft(self->dev, "name");

	EXPECT_EQ(0, unlink_name(self->dev, "name"));
	EXPECT_FALSE(readable(self->fd));
	close(draft);
}

TEST_F(watch, tells_nothing_of_other_names)
{
	close(create(self->dev, PAGE, "name1"));
	close(create(self->dev, PAGE, "name2"));
	unlink_name(self->dev, "name1");
	unlink_name(self->dev, "name2");
	EXPECT_FALSE(readable(self->fd));
}

TEST_F(watch, tells_that_the_maker_was_killed)
{
	pid_t maker = start_region_maker(create_args(PAGE, "name"));

	ASSERT_LT(0, maker);
	EXPECT_LT(0, look(self->fd));
	ASSERT_EQ(0, kill(maker, SIGKILL));
	ASSERT_EQ(maker, waitpid(maker, NULL, 0));
	EXPECT_EQ(0, look(self->fd));
}

TEST_F(watch, tells_that_the_last_user_is_gone)
{
	int region = create_flags(self->dev, PAGE, "name", TSHARE_CREATE_USERS);

	EXPECT_LT(0, look(self->fd));
	close(region);
	EXPECT_EQ(0, look(self->fd));
}

TEST_F(watch, makes_one_change_of_many)
{
	close(create(self->dev, PAGE, "name"));
	unlink_name(self->dev, "name");
	EXPECT_TRUE(readable(self->fd));
	EXPECT_EQ(0, look(self->fd));
	EXPECT_EQ(-EAGAIN, look(self->fd));
}

TEST_F(watch, needs_no_permission_to_open_the_region)
{
	int region = create_mode(self->dev, PAGE, "name", 0600);
	__u64 id = id_of(self->dev, region);

	ASSERT_TRUE(act_as_user(USER_A));
	EXPECT_EQ(-EACCES, open_name(self->dev, "name", 0));
	EXPECT_EQ(id, look(self->fd));
	ASSERT_TRUE(act_as_root());
	unlink_name(self->dev, "name");
	close(region);
}

TEST_F(watch, of_another_namespace_tells_nothing)
{
	int dev;

	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	dev = open_device();
	close(create(dev, PAGE, "name"));
	EXPECT_FALSE(readable(self->fd));
	close(dev);
}

/* A name that outlives its maker's file would go with a namespace that nothing keeps. */
TEST_F(watch, keeps_the_namespace_after_the_device_was_closed)
{
	int dev, fd, region;

	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	dev = open_device();
	ASSERT_LE(0, dev);
	fd = watch(dev, "name");
	ASSERT_LE(0, fd);
	close(dev);
	dev = open_device();
	region = create(dev, PAGE, "name");
	EXPECT_EQ(id_of(dev, region), look(fd));
	close(region);
	close(dev);
	EXPECT_EQ(0, look(fd));
	close(fd);
}

TEST_F(watch, wakes_a_reader)
{
	int blocking = do_watch(self->dev, "name", 0);
	pid_t pid;
	int status;

	ASSERT_LE(0, blocking);
	ASSERT_EQ(0, look(blocking));
	pid = fork();
	if (!pid)
		_exit(look(blocking) <= 0);
	wait_for_sleep(pid);
	close(create(self->dev, PAGE, "name"));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	close(blocking);
	unlink_name(self->dev, "name");
}

TEST_F(watch, wakes_poll)
{
	struct pollfd pollfd = { .fd = self->fd, .events = POLLIN };
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(poll(&pollfd, 1, -1) != 1 || pollfd.revents != POLLIN);
	wait_for_sleep(pid);
	close(create(self->dev, PAGE, "name"));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	unlink_name(self->dev, "name");
}

TEST_F(watch, number_in_a_namespace_is_limited)
{
	struct rlimit limit = { TSHARE_WATCH_MAX + 100, TSHARE_WATCH_MAX + 100 };
	int fd = 0, i, dev;

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	for (i = 1; i < TSHARE_WATCH_MAX; i++)
		ASSERT_LE(0, fd = do_watch(self->dev, i % 2 ? "name" : "other", 0));
	EXPECT_EQ(-EDQUOT, do_watch(self->dev, "name", 0));
	close(fd);
	EXPECT_LE(0, do_watch(self->dev, "name", 0));
	EXPECT_EQ(-EDQUOT, do_watch(self->dev, "name", 0));

	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	dev = open_device();
	EXPECT_LE(0, do_watch(dev, "name", 0));
	closefrom(self->fd + 1);
}

static void ignore(int signal)
{
	(void)signal;
}

TEST_F(watch, read_is_interrupted_by_a_signal)
{
	struct sigaction action = { .sa_handler = ignore };
	int blocking = do_watch(self->dev, "name", 0);
	pid_t pid;
	int status;

	ASSERT_EQ(0, look(blocking));
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	pid = fork();
	if (!pid)
		_exit(look(blocking) != -EINTR);
	wait_for_sleep(pid);
	ASSERT_EQ(0, kill(pid, SIGUSR1));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	close(blocking);
}

TEST_F(watch, failed_read_loses_nothing)
{
	__u32 half;

	close(create(self->dev, PAGE, "name"));
	EXPECT_EQ(-1, read(self->fd, &half, sizeof(half)));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, syscall(SYS_read, self->fd, 1, 8));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_LT(0, look(self->fd));
	unlink_name(self->dev, "name");
}

TEST_F(watch, of_no_name_is_einval)
{
	EXPECT_EQ(-EINVAL, do_watch(self->dev, "", 0));
	EXPECT_EQ(-EINVAL, do_watch(self->dev, "a/b", 0));
	EXPECT_EQ(-EINVAL, do_watch(self->dev, "..", 0));
}

TEST_F(watch, descriptor_is_closed_by_execve_unless_asked_for)
{
	int stays = do_watch(self->dev, "name", TSHARE_WATCH_NO_CLOEXEC);

	EXPECT_EQ(FD_CLOEXEC, fcntl(self->fd, F_GETFD));
	EXPECT_EQ(0, fcntl(stays, F_GETFD));
	close(stays);
}

/* Names come and go while others watch them, and close what they watch with. */
TEST_F(watch, of_a_name_that_changes_is_closed_at_any_time)
{
	pid_t maker = fork();
	int i, fd;

	if (!maker) {
		int dev = open_device();

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			close(create(dev, PAGE, "name"));
			unlink_name(dev, "name");
		}
	}
	for (i = 0; i < rounds(4000); i++) {
		fd = watch(self->dev, "name");
		ASSERT_LE(0, fd);
		ASSERT_LE(0, look(fd));
		if (i % 2)
			readable(fd);
		ASSERT_EQ(0, close(fd));
	}
	ASSERT_EQ(0, kill(maker, SIGKILL));
	ASSERT_EQ(maker, waitpid(maker, NULL, 0));
}

TEST_HARNESS_MAIN
