// SPDX-License-Identifier: GPL-2.0-only
/* Names that stay for as long as anybody has the region open. */
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>

#include "harness.h"

static int create_users(int dev, const char *name)
{
	return create_flags(dev, 2 * PAGE, name, TSHARE_CREATE_USERS);
}

FIXTURE(users)
{
	int dev;
	/* The maker's, which has made "name". */
	int maker;
	int fd;
	__u64 id;
	struct counters before;
	long module_uses;
};

FIXTURE_SETUP(users)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->before = count_all();
	self->module_uses = read_number(MODULE_USES);
	self->maker = open_device();
	ASSERT_LE(0, self->maker);
	self->fd = create_users(self->maker, "name");
	self->id = id_of(self->maker, self->fd);
	ASSERT_NE(0, self->id);
}

FIXTURE_TEARDOWN(users)
{
	close(self->fd);
	close(self->maker);
	close(self->dev);
}

TEST_F(users, without_a_name_are_einval)
{
	EXPECT_EQ(-EINVAL, create_users(self->dev, NULL));
}

TEST_F(users, and_persist_are_einval)
{
	EXPECT_EQ(-EINVAL, create_flags(self->dev, PAGE, "both",
					TSHARE_CREATE_USERS | TSHARE_CREATE_PERSIST));
}

TEST_F(users, are_shown_by_info_and_list)
{
	struct tshare_list_entry entry;
	struct tshare_info info;

	ASSERT_EQ(0, get_info(self->dev, self->fd, &info));
	EXPECT_EQ(TSHARE_REGION_USERS | TSHARE_REGION_PHYS | TSHARE_REGION_WRITABLE,
		  info.region_flags);
	ASSERT_EQ(1, do_list(self->dev, 0, &entry, 1));
	EXPECT_EQ(TSHARE_REGION_USERS | TSHARE_REGION_WRITABLE, entry.region_flags);
}

TEST_F(users, keep_the_name_when_the_makers_device_is_closed)
{
	close(self->maker);
	EXPECT_EQ(self->id, id_of(self->dev, open_name(self->dev, "name", 0)));
}

TEST_F(users, that_have_all_gone_free_the_name)
{
	close(self->fd);
	EXPECT_EQ(-ENOENT, open_name(self->dev, "name", 0));
	EXPECT_LE(0, create(self->dev, PAGE, "name"));
}

TEST_F(users, that_have_all_gone_leave_nothing_behind)
{
	int other = open_name(self->dev, "name", 0);

	ASSERT_LE(0, other);
	close(self->maker);
	close(self->fd);
	close(other);
	EXPECT_SAME_COUNTERS(self->before);
	EXPECT_EQ(self->module_uses, read_number(MODULE_USES));
}

TEST_F(users, other_than_the_maker_keep_the_name)
{
	int other = open_name(self->dev, "name", 0);

	ASSERT_LE(0, other);
	close(self->fd);
	close(self->maker);
	EXPECT_EQ(0, close(open_name(self->dev, "name", 0)));
	close(other);
	EXPECT_EQ(-ENOENT, open_name(self->dev, "name", 0));
}

TEST_F(users, that_opened_by_id_keep_the_name)
{
	int other = open_id(self->dev, self->id, 0);

	ASSERT_LE(0, other);
	close(self->fd);
	EXPECT_EQ(0, close(open_name(self->dev, "name", 0)));
	close(other);
	EXPECT_EQ(-ENOENT, open_name(self->dev, "name", 0));
}

TEST_F(users, may_be_mappings)
{
	char *mem = map(self->fd, PAGE, PROT_READ);

	ASSERT_NE(MAP_FAILED, mem);
	close(self->fd);
	EXPECT_EQ(0, close(open_name(self->dev, "name", 0)));
	munmap(mem, PAGE);
	EXPECT_EQ(-ENOENT, open_name(self->dev, "name", 0));
}

TEST_F(users, may_be_descriptors_on_their_way)
{
	int socks[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, socks));
	ASSERT_TRUE(send_fd(socks[0], self->fd));
	close(self->fd);
	EXPECT_EQ(0, close(open_name(self->dev, "name", 0)));
	close(receive_fd(socks[1]));
	EXPECT_EQ(-ENOENT, open_name(self->dev, "name", 0));
}

TEST_F(users, may_be_ranges)
{
	struct tshare_export args = { .fd = self->fd, .offset = PAGE };

	ASSERT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_EXPORT, &args));
	close(self->fd);
	EXPECT_EQ(0, close(open_name(self->dev, "name", 0)));
	close(args.export_fd);
	EXPECT_EQ(-ENOENT, open_name(self->dev, "name", 0));
}

TEST_F(users, are_not_counters)
{
	struct tshare_counter args = { .fd = self->fd };

	ASSERT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_COUNTER, &args));
	close(self->fd);
	EXPECT_EQ(-ENOENT, open_name(self->dev, "name", 0));
}

TEST_F(users, that_are_killed_free_the_name)
{
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	close(self->fd);
	close(self->maker);
	EXPECT_EQ(0, close(open_name(self->dev, "name", 0)));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	EXPECT_EQ(-ENOENT, open_name(self->dev, "name", 0));
}

TEST_F(users, that_are_refused_change_nothing)
{
	ASSERT_TRUE(act_as_user(USER_A));
	EXPECT_EQ(-EACCES, open_name(self->dev, "name", 0));
	ASSERT_TRUE(act_as_root());
	EXPECT_EQ(0, close(open_name(self->dev, "name", 0)));
	close(self->fd);
	EXPECT_EQ(-ENOENT, open_name(self->dev, "name", 0));
}

TEST_F(users, stay_when_the_name_is_unlinked)
{
	ASSERT_EQ(0, unlink_name(self->dev, "name"));
	EXPECT_EQ(-ENOENT, open_name(self->dev, "name", 0));
	EXPECT_LE(0, create(self->dev, PAGE, "name"));
	close(self->fd);
	EXPECT_LE(0, open_name(self->dev, "name", 0));
}

/* The initial namespace is always found, others while something uses them. */
TEST_F(users, find_the_name_in_a_namespace_without_open_devices)
{
	int dev, fd;
	__u64 id;

	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	dev = open_device();
	fd = create_users(dev, "inner");
	id = id_of(dev, fd);
	ASSERT_NE(0, id);
	close(dev);
	dev = open_device();
	ASSERT_LE(0, dev);
	EXPECT_EQ(id, id_of(dev, open_name(dev, "inner", 0)));
}

#define ROUNDS 2000

/* Creates the name and lets it go, all the time. */
static int create_and_close(void)
{
	int dev = open_device(), i;

	for (i = 0; i < ROUNDS; i++) {
		int fd = create_users(dev, "crossed");

		if (fd < 0 && fd != -EEXIST)
			return 1;
		close(fd);
	}
	return 0;
}

TEST_F(users, never_lose_the_name_to_a_close_that_they_cross)
{
	int status, opened = 0;
	pid_t pid = fork();

	if (!pid)
		_exit(create_and_close());
	while (!waitpid(pid, &status, WNOHANG)) {
		int fd = open_name(self->dev, "crossed", 0), again;

		if (fd < 0) {
			ASSERT_EQ(-ENOENT, fd);
			continue;
		}
		again = open_name(self->dev, "crossed", 0);
		ASSERT_LE(0, again);
		ASSERT_EQ(id_of(self->dev, fd), id_of(self->dev, again));
		close(again);
		close(fd);
		opened++;
	}
	EXPECT_EQ(0, status);
	EXPECT_LT(0, opened);
}

TEST_HARNESS_MAIN
