// SPDX-License-Identifier: GPL-2.0-only
/* Drafts: regions that have their name, and can't be opened before they are finished. */
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>

#include "harness.h"

FIXTURE(drafts)
{
	int dev;
	/* Another open file of the device, as another process has it. */
	int other;
	struct counters before;
};

FIXTURE_SETUP(drafts)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->other = open_device();
	ASSERT_LE(0, self->other);
	self->before = count_all();
}

FIXTURE_TEARDOWN(drafts)
{
	close(self->other);
	close(self->dev);
}

TEST_F(drafts, without_a_name_are_einval)
{
	EXPECT_EQ(-EINVAL, create_flags(self->dev, PAGE, NULL, TSHARE_CREATE_DRAFT));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(drafts, take_their_name)
{
	struct counters before;

	ASSERT_LE(0, create_draft(self->dev, "draft"));
	before = count_all();
	EXPECT_EQ(-EEXIST, create(self->dev, PAGE, "draft"));
	EXPECT_EQ(-EEXIST, create(self->other, PAGE, "draft"));
	EXPECT_EQ(-EEXIST, create_draft(self->other, "draft"));
	EXPECT_SAME_COUNTERS(before);
}

TEST_F(drafts, cannot_have_a_taken_name)
{
	ASSERT_LE(0, create(self->dev, PAGE, "taken"));
	EXPECT_EQ(-EEXIST, create_draft(self->dev, "taken"));
	EXPECT_EQ(-EEXIST, create_draft(self->other, "taken"));
}

TEST_F(drafts, are_not_opened_by_name)
{
	struct counters before;

	ASSERT_LE(0, create_draft(self->dev, "draft"));
	before = count_all();
	EXPECT_EQ(-EINPROGRESS, open_name(self->dev, "draft", 0));
	EXPECT_EQ(-EINPROGRESS, open_name(self->other, "draft", TSHARE_OPEN_WRITE));
	EXPECT_SAME_COUNTERS(before);
}

TEST_F(drafts, are_not_opened_by_id)
{
	__u64 id = id_of(self->dev, create_draft(self->dev, "draft"));

	ASSERT_NE(0, id);
	EXPECT_EQ(-EINPROGRESS, open_id(self->dev, id, 0));
	EXPECT_EQ(-EINPROGRESS, open_id(self->other, id, 0));
}

TEST_F(drafts, of_another_namespace_are_enoent)
{
	__u64 id = id_of(self->dev, create_draft(self->dev, "draft"));
	int dev;

	ASSERT_NE(0, id);
	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	dev = open_device();
	ASSERT_LE(0, dev);
	EXPECT_EQ(-ENOENT, open_name(dev, "draft", 0));
	EXPECT_EQ(-EINPROGRESS, open_id(dev, id, 0));
	ASSERT_TRUE(drop_capability(CAP_SYS_ADMIN));
	EXPECT_EQ(-ENOENT, open_id(dev, id, 0));
}

TEST_F(drafts, can_be_mapped_and_filled_by_their_maker)
{
	int fd = create_draft(self->dev, "draft");
	char *mem = map(fd, PAGE, RW), *seen;

	ASSERT_NE(MAP_FAILED, mem);
	fill(mem, PAGE, 1);
	ASSERT_EQ(0, finish(self->dev, fd));
	seen = map(open_name(self->other, "draft", 0), PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, seen);
	EXPECT_TRUE(filled(seen, PAGE, 1));
}

TEST_F(drafts, are_opened_once_finished)
{
	int fd = create_draft(self->dev, "draft");
	__u64 id = id_of(self->dev, fd);

	ASSERT_EQ(0, finish(self->dev, fd));
	EXPECT_EQ(id, id_of(self->dev, open_name(self->dev, "draft", TSHARE_OPEN_WRITE)));
	EXPECT_EQ(id, id_of(self->dev, open_name(self->other, "draft", 0)));
	EXPECT_LE(0, open_id(self->other, id, 0));
	EXPECT_EQ(-EEXIST, create(self->other, PAGE, "draft"));
}

TEST_F(drafts, keep_their_mode_when_finished)
{
	struct tshare_create args = create_args(PAGE, "draft");
	int fd;

	args.flags = TSHARE_CREATE_DRAFT;
	args.mode = 0604;
	fd = do_create(self->dev, &args);
	ASSERT_EQ(0, finish(self->dev, fd));
	ASSERT_TRUE(act_as_user(USER_A));
	EXPECT_LE(0, open_name(self->other, "draft", 0));
	EXPECT_EQ(-EACCES, open_name(self->other, "draft", TSHARE_OPEN_WRITE));
}

TEST_F(drafts, are_einprogress_also_without_permission)
{
	struct tshare_create args = create_args(PAGE, "draft");

	args.flags = TSHARE_CREATE_DRAFT;
	args.mode = 0;
	ASSERT_LE(0, do_create(self->dev, &args));
	ASSERT_TRUE(act_as_user(USER_A));
	EXPECT_EQ(-EINPROGRESS, open_name(self->other, "draft", 0));
}

TEST_F(drafts, are_finished_once)
{
	int fd = create_draft(self->dev, "draft");

	ASSERT_EQ(0, finish(self->dev, fd));
	EXPECT_EQ(-EINVAL, finish(self->dev, fd));
}

TEST_F(drafts, are_all_that_can_be_finished)
{
	int memfd = memfd_create("tshare", 0);

	EXPECT_EQ(-EINVAL, finish(self->dev, create(self->dev, PAGE, "finished")));
	EXPECT_EQ(-EINVAL, finish(self->dev, create(self->dev, PAGE, NULL)));
	EXPECT_EQ(-EINVAL, finish(self->dev, memfd));
	EXPECT_EQ(-EINVAL, finish(self->dev, self->dev));
	EXPECT_EQ(-EBADF, finish(self->dev, -1));
	EXPECT_EQ(-EBADF, finish(self->dev, 1000000));
}

TEST_F(drafts, are_finished_only_through_their_open_file)
{
	int fd = create_draft(self->dev, "draft");

	EXPECT_EQ(-EPERM, finish(self->other, fd));
	EXPECT_EQ(-EINPROGRESS, open_name(self->other, "draft", 0));
	EXPECT_EQ(0, finish(self->dev, fd));
}

struct finisher {
	int dev;
	int fd;
};

static int finish_in_child(void *arg)
{
	struct finisher *finisher = arg;

	return finish(finisher->dev, finisher->fd) ? 1 : 0;
}

TEST_F(drafts, are_finished_by_a_child_with_the_open_file)
{
	struct finisher finisher = {
		.dev = self->dev,
		.fd = create_draft(self->dev, "draft"),
	};

	EXPECT_EQ(0, in_child(finish_in_child, &finisher));
	EXPECT_LE(0, open_name(self->other, "draft", 0));
}

TEST_F(drafts, are_shown_by_info_until_finished)
{
	int fd = create_draft(self->dev, "draft");
	struct tshare_info info;

	ASSERT_EQ(0, get_info(self->other, fd, &info));
	EXPECT_EQ(TSHARE_REGION_DRAFT, info.region_flags & TSHARE_REGION_DRAFT);
	EXPECT_STREQ("draft", info.name);
	ASSERT_EQ(0, finish(self->dev, fd));
	ASSERT_EQ(0, get_info(self->other, fd, &info));
	EXPECT_EQ(0, info.region_flags & TSHARE_REGION_DRAFT);
	EXPECT_STREQ("draft", info.name);
}

TEST_F(drafts, are_listed_as_such)
{
	struct tshare_list_entry entry;
	int fd = create_draft(self->dev, "draft");

	ASSERT_LE(0, fd);
	ASSERT_EQ(1, do_list(self->other, 0, &entry, 1));
	EXPECT_EQ(TSHARE_REGION_DRAFT | TSHARE_REGION_WRITABLE, entry.region_flags);
	EXPECT_STREQ("draft", entry.name);
	ASSERT_EQ(0, finish(self->dev, fd));
	ASSERT_EQ(1, do_list(self->other, 0, &entry, 1));
	EXPECT_EQ(TSHARE_REGION_WRITABLE, entry.region_flags);
}

TEST_F(drafts, unlinked_by_name_free_it)
{
	int fd = create_draft(self->dev, "draft");
	struct tshare_info info;

	ASSERT_EQ(0, unlink_name(self->other, "draft"));
	EXPECT_EQ(-ENOENT, open_name(self->other, "draft", 0));
	EXPECT_LE(0, create(self->other, PAGE, "draft"));
	EXPECT_EQ(-ENOENT, finish(self->dev, fd));
	ASSERT_EQ(0, get_info(self->dev, fd, &info));
	EXPECT_STREQ("", info.name);
}

TEST_F(drafts, unlinked_by_id_are_never_opened)
{
	int fd = create_draft(self->dev, "draft");
	__u64 id = id_of(self->dev, fd);

	ASSERT_EQ(0, unlink_id(self->dev, id));
	EXPECT_EQ(-ENOENT, unlink_id(self->dev, id));
	EXPECT_EQ(-ENOENT, open_id(self->dev, id, 0));
	EXPECT_EQ(-ENOENT, finish(self->dev, fd));
}

TEST_F(drafts, are_unlinked_only_by_their_owner)
{
	ASSERT_LE(0, create_draft(self->dev, "draft"));
	ASSERT_TRUE(act_as_user(USER_A));
	EXPECT_EQ(-EPERM, unlink_name(self->other, "draft"));
	EXPECT_EQ(-EINPROGRESS, open_name(self->other, "draft", 0));
}

TEST_F(drafts, pass_their_descriptor_on)
{
	int fd = create_draft(self->dev, "draft"), socks[2], passed;
	char *mem;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, socks));
	ASSERT_TRUE(send_fd(socks[0], fd));
	passed = receive_fd(socks[1]);
	mem = map(passed, PAGE, RW);
	EXPECT_NE(MAP_FAILED, mem);
	EXPECT_EQ(id_of(self->other, passed), id_of(self->dev, fd));
}

/* Drafts of each lifetime, whose maker ends. */
FIXTURE(unfinished)
{
	int dev;
	struct counters before;
	long module_uses;
};

FIXTURE_VARIANT(unfinished)
{
	__u32 flags;
	/* Whether the name outlives a maker that finishes the draft and closes everything. */
	bool outlives;
};

FIXTURE_VARIANT_ADD(unfinished, of_its_maker)
{
	.flags = TSHARE_CREATE_DRAFT,
};

FIXTURE_VARIANT_ADD(unfinished, persistent)
{
	.flags = TSHARE_CREATE_DRAFT | TSHARE_CREATE_PERSIST,
	.outlives = true,
};

FIXTURE_VARIANT_ADD(unfinished, of_its_users)
{
	.flags = TSHARE_CREATE_DRAFT | TSHARE_CREATE_USERS,
};

FIXTURE_SETUP(unfinished)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->before = count_all();
	self->module_uses = read_number(MODULE_USES);
}

FIXTURE_TEARDOWN(unfinished)
{
	unlink_name(self->dev, "draft");
	close(self->dev);
}

TEST_F(unfinished, goes_with_the_open_file)
{
	int dev = open_device();
	int fd = create_flags(dev, PAGE, "draft", variant->flags);

	ASSERT_LE(0, fd);
	close(dev);
	EXPECT_EQ(-ENOENT, open_name(self->dev, "draft", 0));
	EXPECT_LE(0, create(self->dev, PAGE, "draft"));
	EXPECT_EQ(-ENOENT, finish(self->dev, fd));
}

TEST_F(unfinished, leaves_nothing_behind)
{
	int dev = open_device();
	int fd = create_flags(dev, PAGE, "draft", variant->flags);

	ASSERT_LE(0, fd);
	close(dev);
	close(fd);
	EXPECT_SAME_COUNTERS(self->before);
	EXPECT_EQ(self->module_uses, read_number(MODULE_USES));
}

TEST_F(unfinished, is_no_use_of_the_module)
{
	long before;

	ASSERT_LE(0, create(self->dev, PAGE, "finished"));
	before = read_number(MODULE_USES);
	ASSERT_LE(0, create_flags(self->dev, PAGE, "draft", variant->flags));
	/* The descriptor's. */
	EXPECT_EQ(before + 1, read_number(MODULE_USES));
}

TEST_F(unfinished, leaves_nothing_behind_when_unlinked)
{
	int dev = open_device();
	int fd = create_flags(dev, PAGE, "draft", variant->flags);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, unlink_name(self->dev, "draft"));
	close(fd);
	close(dev);
	EXPECT_SAME_COUNTERS(self->before);
	EXPECT_EQ(self->module_uses, read_number(MODULE_USES));
}

TEST_F(unfinished, has_its_lifetime_once_finished)
{
	int dev = open_device();
	int fd = create_flags(dev, PAGE, "draft", variant->flags);

	ASSERT_EQ(0, finish(dev, fd));
	EXPECT_EQ(0, close(open_name(self->dev, "draft", 0)));
	close(fd);
	close(dev);
	EXPECT_EQ(self->before.names + variant->outlives, read_number(SYSFS "names"));
	EXPECT_EQ(self->module_uses + variant->outlives, read_number(MODULE_USES));
	EXPECT_EQ(variant->outlives ? 0 : -ENOENT, unlink_name(self->dev, "draft"));
	EXPECT_SAME_COUNTERS(self->before);
	EXPECT_EQ(self->module_uses, read_number(MODULE_USES));
}

TEST_F(unfinished, goes_with_its_last_descriptor)
{
	int dev = open_device();
	int fd = create_flags(dev, PAGE, "draft", variant->flags), copy = dup(fd);

	ASSERT_LE(0, copy);
	close(fd);
	EXPECT_EQ(-EINPROGRESS, open_name(self->dev, "draft", 0));
	close(copy);
	EXPECT_EQ(-ENOENT, open_name(self->dev, "draft", 0));
	close(dev);
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(unfinished, goes_at_once_when_its_maker_is_killed)
{
	struct tshare_create args = create_args(PAGE, "draft");
	int i;

	args.flags = variant->flags;
	for (i = 0; i < 20; i++) {
		pid_t maker = start_region_maker(args);

		ASSERT_LT(0, maker);
		EXPECT_EQ(-EINPROGRESS, open_name(self->dev, "draft", 0));
		ASSERT_EQ(0, kill(maker, SIGKILL));
		ASSERT_EQ(maker, waitpid(maker, NULL, 0));
		EXPECT_EQ(-ENOENT, open_name(self->dev, "draft", 0));
		EXPECT_SAME_COUNTERS(self->before);
	}
}

TEST_HARNESS_MAIN
