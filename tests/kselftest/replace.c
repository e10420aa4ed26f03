// SPDX-License-Identifier: GPL-2.0-only
/* Regions that take their name over from another one, in one step. */
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include "harness.h"

#define REPLACE TSHARE_CREATE_REPLACE
#define DRAFT TSHARE_CREATE_DRAFT

static int create_replacing(int dev, const char *name, __u32 flags)
{
	return create_flags(dev, PAGE, name, REPLACE | flags);
}

/* The id of the region that the name leads to, or 0. */
static __u64 id_by_name(int dev, const char *name)
{
	int fd = open_name(dev, name, 0);
	__u64 id = id_of(dev, fd);

	close(fd);
	return id;
}

FIXTURE(replace)
{
	int dev;
	/* Another open file of the device, as another process has it. */
	int other;
	/* A region that has the name. */
	int old;
	__u64 old_id;
	struct counters before;
};

FIXTURE_SETUP(replace)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->other = open_device();
	ASSERT_LE(0, self->other);
	self->before = count_all();
	self->old = create_mode(self->other, PAGE, "name", 0666);
	self->old_id = id_of(self->other, self->old);
	ASSERT_NE(0, self->old_id);
}

FIXTURE_TEARDOWN(replace)
{
	close(self->old);
	close(self->other);
	close(self->dev);
}

TEST_F(replace, without_a_name_is_einval)
{
	EXPECT_EQ(-EINVAL, create_replacing(self->dev, NULL, 0));
}

TEST_F(replace, makes_the_name_lead_to_the_new_region)
{
	__u64 id = id_of(self->dev, create_replacing(self->dev, "name", 0));

	ASSERT_NE(0, id);
	EXPECT_EQ(id, id_by_name(self->dev, "name"));
	EXPECT_EQ(id, id_by_name(self->other, "name"));
}

TEST_F(replace, of_a_name_that_is_free_creates)
{
	EXPECT_LE(0, create_replacing(self->dev, "free", 0));
	EXPECT_LE(0, open_name(self->other, "free", 0));
}

TEST_F(replace, of_a_draft_that_is_finished_works)
{
	int fd = create_flags(self->dev, PAGE, "draft", DRAFT);

	ASSERT_EQ(0, finish(self->dev, fd));
	EXPECT_LE(0, create_replacing(self->other, "draft", 0));
}

TEST_F(replace, leaves_the_old_region_to_its_users)
{
	char *mem = map(self->old, PAGE, RW);
	struct tshare_info info;

	ASSERT_NE(MAP_FAILED, mem);
	fill(mem, PAGE, 1);
	ASSERT_LE(0, create_replacing(self->dev, "name", 0));
	EXPECT_TRUE(filled(mem, PAGE, 1));
	EXPECT_LE(0, open_id(self->dev, self->old_id, TSHARE_OPEN_WRITE));
	ASSERT_EQ(0, get_info(self->dev, self->old, &info));
	EXPECT_STREQ("", info.name);
}

TEST_F(replace, frees_an_old_region_without_users)
{
	close(self->old);
	EXPECT_EQ(1, listed(self->dev, 0, self->old_id));
	ASSERT_EQ(0, close(create_replacing(self->dev, "name", 0)));
	EXPECT_EQ(0, listed(self->dev, 0, self->old_id));
}

TEST_F(replace, keeps_the_successor_when_the_old_region_is_unlinked)
{
	ASSERT_LE(0, create_replacing(self->dev, "name", 0));
	EXPECT_EQ(-ENOENT, unlink_id(self->other, self->old_id));
	EXPECT_LE(0, open_name(self->other, "name", 0));
}

TEST_F(replace, that_is_not_copied_out_leaves_the_old_region_its_name)
{
	struct tshare_create *args = guarded(PAGE);

	*args = create_args(PAGE, "name");
	args->flags = REPLACE;
	ASSERT_EQ(0, mprotect(args, PAGE, PROT_READ));
	EXPECT_EQ(-EFAULT, xioctl(self->dev, TSHARE_IOCTL_CREATE, args));
	EXPECT_EQ(self->old_id, id_by_name(self->dev, "name"));
}

TEST_F(replace, takes_the_owner)
{
	ASSERT_TRUE(act_as_user(USER_A));
	EXPECT_EQ(-EPERM, create_replacing(self->dev, "name", 0));
	EXPECT_EQ(-EPERM, create_replacing(self->dev, "name", DRAFT));
	EXPECT_EQ(-EEXIST, create(self->dev, PAGE, "name"));
	EXPECT_EQ(self->old_id, id_by_name(self->dev, "name"));
}

TEST_F(replace, asks_no_privilege_of_the_owner)
{
	int draft;

	ASSERT_TRUE(act_as_user(USER_A));
	ASSERT_LE(0, create(self->dev, PAGE, "theirs"));
	EXPECT_LE(0, create_replacing(self->dev, "theirs", 0));
	draft = create_replacing(self->dev, "theirs", DRAFT);
	ASSERT_LE(0, draft);
	EXPECT_EQ(0, finish_replacing(self->dev, draft));
}

TEST_F(replace, passes_with_cap_ipc_owner)
{
	ASSERT_TRUE(act_as_user(USER_A));
	ASSERT_LE(0, create(self->dev, PAGE, "theirs"));
	ASSERT_TRUE(act_as_root());
	EXPECT_LE(0, create_replacing(self->dev, "theirs", 0));
	ASSERT_TRUE(act_as_user(USER_B));
	EXPECT_EQ(-EPERM, create_replacing(self->dev, "theirs", 0));
}

TEST_F(replace, of_a_draft_is_eexist)
{
	int fd = create_draft(self->dev, "draft");

	EXPECT_EQ(-EEXIST, create_replacing(self->other, "draft", 0));
	EXPECT_EQ(-EEXIST, create_replacing(self->dev, "draft", DRAFT));
	EXPECT_EQ(0, finish(self->dev, fd));
}

/* A draft that replaces a region when it is finished. */
FIXTURE(successor)
{
	int dev;
	int other;
	int old;
	__u64 old_id;
	int draft;
	__u64 draft_id;
};

FIXTURE_SETUP(successor)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->other = open_device();
	ASSERT_LE(0, self->other);
	self->old = create_mode(self->other, PAGE, "name", 0666);
	self->old_id = id_of(self->other, self->old);
	ASSERT_NE(0, self->old_id);
	self->draft = create_replacing(self->dev, "name", DRAFT);
	self->draft_id = id_of(self->dev, self->draft);
	ASSERT_NE(0, self->draft_id);
}

FIXTURE_TEARDOWN(successor)
{
	close(self->draft);
	close(self->old);
	close(self->other);
	close(self->dev);
}

TEST_F(successor, leaves_the_name_to_the_old_region_until_it_is_finished)
{
	EXPECT_EQ(self->old_id, id_by_name(self->dev, "name"));
	EXPECT_EQ(-EINPROGRESS, open_id(self->other, self->draft_id, 0));
	ASSERT_EQ(0, finish_replacing(self->dev, self->draft));
	EXPECT_EQ(self->draft_id, id_by_name(self->dev, "name"));
	EXPECT_EQ(self->draft_id, id_by_name(self->other, "name"));
	EXPECT_LE(0, open_id(self->other, self->old_id, 0));
}

TEST_F(successor, keeps_others_from_the_name)
{
	EXPECT_EQ(-EEXIST, create(self->other, PAGE, "name"));
	EXPECT_EQ(-EEXIST, create_replacing(self->other, "name", 0));
	EXPECT_EQ(-EEXIST, create_replacing(self->other, "name", DRAFT));
}

TEST_F(successor, that_ends_leaves_the_old_region_its_name)
{
	close(self->dev);
	EXPECT_EQ(self->old_id, id_by_name(self->other, "name"));
	EXPECT_LE(0, create_replacing(self->other, "name", DRAFT));
}

TEST_F(successor, finished_without_replace_is_eexist_and_stays_a_draft)
{
	EXPECT_EQ(-EEXIST, finish(self->dev, self->draft));
	EXPECT_EQ(self->old_id, id_by_name(self->dev, "name"));
	EXPECT_EQ(-EINPROGRESS, open_id(self->other, self->draft_id, 0));
	EXPECT_EQ(0, finish_replacing(self->dev, self->draft));
}

TEST_F(successor, needs_no_replace_once_the_old_region_is_unlinked)
{
	ASSERT_EQ(0, unlink_name(self->other, "name"));
	EXPECT_EQ(-EINPROGRESS, open_name(self->other, "name", 0));
	ASSERT_EQ(0, finish(self->dev, self->draft));
	EXPECT_EQ(self->draft_id, id_by_name(self->other, "name"));
}

TEST_F(successor, outlives_the_old_regions_maker)
{
	close(self->other);
	EXPECT_EQ(-EINPROGRESS, open_name(self->dev, "name", 0));
	ASSERT_EQ(0, finish_replacing(self->dev, self->draft));
	EXPECT_EQ(self->draft_id, id_by_name(self->dev, "name"));
}

TEST_F(successor, that_is_unlinked_by_id_leaves_the_old_region_its_name)
{
	ASSERT_EQ(0, unlink_id(self->dev, self->draft_id));
	EXPECT_EQ(self->old_id, id_by_name(self->dev, "name"));
	EXPECT_EQ(-ENOENT, finish_replacing(self->dev, self->draft));
}

TEST_F(successor, is_finished_by_a_caller_that_may_unlink_the_old_region)
{
	ASSERT_TRUE(act_as_user(USER_A));
	EXPECT_EQ(-EPERM, finish_replacing(self->dev, self->draft));
	EXPECT_EQ(self->old_id, id_by_name(self->dev, "name"));
	ASSERT_TRUE(act_as_root());
	EXPECT_EQ(0, finish_replacing(self->dev, self->draft));
}

/* A region of each lifetime replaces one of each, made directly or as a draft. */
FIXTURE(lifetimes)
{
	int dev;
	struct counters before;
	long module_uses;
};

FIXTURE_VARIANT(lifetimes)
{
	__u32 old_flags;
	__u32 new_flags;
};

#define PERSIST TSHARE_CREATE_PERSIST
#define USERS TSHARE_CREATE_USERS

#define LIFETIMES(old, new)                             \
	{                                               \
		.old_flags = (old), .new_flags = (new), \
	}

FIXTURE_VARIANT_ADD(lifetimes, makers_by_makers) LIFETIMES(0, 0);
FIXTURE_VARIANT_ADD(lifetimes, makers_by_persistent) LIFETIMES(0, PERSIST);
FIXTURE_VARIANT_ADD(lifetimes, makers_by_users) LIFETIMES(0, USERS);
FIXTURE_VARIANT_ADD(lifetimes, persistent_by_makers) LIFETIMES(PERSIST, 0);
FIXTURE_VARIANT_ADD(lifetimes, persistent_by_persistent) LIFETIMES(PERSIST, PERSIST);
FIXTURE_VARIANT_ADD(lifetimes, persistent_by_users) LIFETIMES(PERSIST, USERS);
FIXTURE_VARIANT_ADD(lifetimes, users_by_makers) LIFETIMES(USERS, 0);
FIXTURE_VARIANT_ADD(lifetimes, users_by_persistent) LIFETIMES(USERS, PERSIST);
FIXTURE_VARIANT_ADD(lifetimes, users_by_users) LIFETIMES(USERS, USERS);

FIXTURE_VARIANT_ADD(lifetimes, makers_by_makers_draft) LIFETIMES(0, DRAFT);
FIXTURE_VARIANT_ADD(lifetimes, makers_by_persistent_draft) LIFETIMES(0, DRAFT | PERSIST);
FIXTURE_VARIANT_ADD(lifetimes, makers_by_users_draft) LIFETIMES(0, DRAFT | USERS);
FIXTURE_VARIANT_ADD(lifetimes, persistent_by_makers_draft) LIFETIMES(PERSIST, DRAFT);
FIXTURE_VARIANT_ADD(lifetimes, persistent_by_persistent_draft) LIFETIMES(PERSIST, DRAFT | PERSIST);
FIXTURE_VARIANT_ADD(lifetimes, persistent_by_users_draft) LIFETIMES(PERSIST, DRAFT | USERS);
FIXTURE_VARIANT_ADD(lifetimes, users_by_makers_draft) LIFETIMES(USERS, DRAFT);
FIXTURE_VARIANT_ADD(lifetimes, users_by_persistent_draft) LIFETIMES(USERS, DRAFT | PERSIST);
FIXTURE_VARIANT_ADD(lifetimes, users_by_users_draft) LIFETIMES(USERS, DRAFT | USERS);

FIXTURE_SETUP(lifetimes)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->before = count_all();
	self->module_uses = read_number(MODULE_USES);
}

FIXTURE_TEARDOWN(lifetimes)
{
	unlink_name(self->dev, "name");
	close(self->dev);
}

/* A region that replaces another one; each has its own device file, and is open. */
struct replaced {
	int old_dev;
	int old;
	int new_dev;
	int new;
};

static bool make_replaced(struct replaced *made, __u32 old_flags, __u32 new_flags)
{
	made->old_dev = open_device();
	made->new_dev = open_device();
	made->old = create_flags(made->old_dev, PAGE, "name", old_flags);
	made->new = create_replacing(made->new_dev, "name", new_flags);
	if (made->old < 0 || made->new < 0)
		return false;
	return !(new_flags & DRAFT) || !finish_replacing(made->new_dev, made->new);
}

TEST_F(lifetimes, end_with_the_new_region)
{
	bool outlives_maker = variant->new_flags & (PERSIST | USERS);
	bool outlives_users = variant->new_flags & PERSIST;
	struct replaced made;

	ASSERT_TRUE(make_replaced(&made, variant->old_flags, variant->new_flags));
	EXPECT_EQ(self->before.names + 1, read_number(SYSFS "names"));
	close(made.old);
	close(made.old_dev);
	EXPECT_EQ(0, close(open_name(self->dev, "name", 0)));
	close(made.new_dev);
	EXPECT_EQ(self->before.names + outlives_maker, read_number(SYSFS "names"));
	close(made.new);
	EXPECT_EQ(self->before.names + outlives_users, read_number(SYSFS "names"));
	EXPECT_EQ(self->before.regions + outlives_users, read_number(SYSFS "regions"));
	EXPECT_EQ(self->module_uses + outlives_users, read_number(MODULE_USES));
	EXPECT_EQ(outlives_users ? 0 : -ENOENT, unlink_name(self->dev, "name"));
	EXPECT_SAME_COUNTERS(self->before);
	EXPECT_EQ(self->module_uses, read_number(MODULE_USES));
}

TEST_F(lifetimes, of_the_old_region_do_not_come_back)
{
	struct replaced made;

	ASSERT_TRUE(make_replaced(&made, variant->old_flags, variant->new_flags));
	ASSERT_EQ(0, unlink_name(made.old_dev, "name"));
	EXPECT_EQ(-ENOENT, open_name(self->dev, "name", 0));
	close(made.new);
	close(made.new_dev);
	EXPECT_EQ(-ENOENT, open_name(self->dev, "name", 0));
	close(made.old);
	close(made.old_dev);
	EXPECT_SAME_COUNTERS(self->before);
	EXPECT_EQ(self->module_uses, read_number(MODULE_USES));
}

/* Readers of a name that one region after another takes over. */
static int open_on_and_on(void *arg)
{
	int dev = *(int *)arg, times = rounds(3000), i;

	for (i = 0; i < times; i++) {
		int fd = open_name(dev, "name", 0);

		if (fd < 0)
			return 1;
		close(fd);
	}
	return 0;
}

TEST_F(replace, never_leaves_a_moment_without_the_name)
{
	int status = 0, i;
	pid_t pid = fork();

	if (!pid)
		_exit(open_on_and_on(&self->dev));
	for (i = 0; !waitpid(pid, &status, WNOHANG); i++) {
		if (i % 2) {
			ASSERT_EQ(0, close(create_replacing(self->other, "name", 0)));
		} else {
			int fd = create_replacing(self->other, "name", DRAFT);

			ASSERT_EQ(0, finish_replacing(self->other, fd));
			close(fd);
		}
	}
	EXPECT_EQ(0, status);
	EXPECT_LT(2, i);
}

/* Makes one region after another, each in the place of the last, until it is killed. */
static int replace_on_and_on(void *arg)
{
	int dev = *(int *)arg, fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	do {
		fd = create_replacing(dev, "name", 0);
		close(fd);
	} while (fd >= 0);
	return 1;
}

/* Once there is a new one, only unlink takes the name away. */
TEST_F(replace, does_not_hide_the_name_from_unlink)
{
	const time_t until = time(NULL) + stress_seconds(rounds(40));
	int missing = 0, status, i, fd;
	pid_t pids[4];

	for (i = 0; i < (int)ARRAY_SIZE(pids); i++) {
		pids[i] = fork();
		ASSERT_LE(0, pids[i]);
		if (!pids[i])
			_exit(replace_on_and_on(&self->other));
	}
	do {
		while ((fd = open_name(self->dev, "name", 0)) == -ENOENT)
			sched_yield();
		ASSERT_LE(0, fd);
		close(fd);
		missing += unlink_name(self->dev, "name") == -ENOENT;
	} while (time(NULL) < until);
	EXPECT_EQ(0, missing);
	for (i = 0; i < (int)ARRAY_SIZE(pids); i++) {
		EXPECT_EQ(0, kill(pids[i], SIGKILL));
		EXPECT_EQ(pids[i], waitpid(pids[i], &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status));
	}
}

TEST_HARNESS_MAIN
