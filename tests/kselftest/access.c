// SPDX-License-Identifier: GPL-2.0-only
/* Permissions: modes, capabilities, lists. */

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "harness.h"

FIXTURE(access)
{
	int dev;
};

FIXTURE_SETUP(access)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
}

FIXTURE_TEARDOWN(access)
{
	close(self->dev);
}

/* Classes of users, by the shift of their bits in the mode. */
enum { OTHER = 0, GROUP = 3, OWNER = 6 };

static bool act_as_class(int class)
{
	switch (class) {
	case OWNER:
		return act_as_user(USER_A);
	case GROUP:
		return act_as(USER_B, USER_B, USER_A);
	default:
		return act_as_user(USER_C);
	}
}

/* USER_A's region, made without A's capabilities. */
static int create_of_a(int dev, const char *name, __u32 mode)
{
	int fd = -EPERM;

	if (act_as_user(USER_A))
		fd = create_mode(dev, PAGE, name, mode);
	return act_as_root() ? fd : -EPERM;
}

TEST_F(access, first_class_that_fits_decides)
{
	int class, fd, bits;

	for (class = OTHER; class <= OWNER; class += 3) {
		for (bits = 0; bits < 8; bits += 2) {
			/* The other classes of users have the opposite permissions. */
			__u32 mode = (0666 & ~(7 << class) & ~(0111 * bits)) | bits << class;
			int may_read = bits & 4 ? 0 : -EACCES;
			int may_write = (bits & 6) == 6 ? 0 : -EACCES;

			fd = create_of_a(self->dev, "moded", mode);
			ASSERT_LE(0, fd);
			ASSERT_TRUE(act_as_class(class));
			EXPECT_EQ(may_read, open_name(self->dev, "moded", 0) < 0 ? -EACCES : 0) {
				TH_LOG("mode %04o class %d", mode, class);
			}
			EXPECT_EQ(may_write,
				  open_name(self->dev, "moded", TSHARE_OPEN_WRITE) < 0 ?
				  -EACCES : 0) {
				TH_LOG("mode %04o class %d", mode, class);
			}
			ASSERT_TRUE(act_as_root());
			ASSERT_EQ(0, unlink_name(self->dev, "moded"));
			close(fd);
		}
	}
}

TEST_F(access, refused_access_is_eacces)
{
	struct counters before;

	ASSERT_LE(0, create_of_a(self->dev, "closed", 0640));
	before = count_all();
	ASSERT_TRUE(act_as(USER_B, USER_B, USER_A));
	EXPECT_EQ(-EACCES, open_name(self->dev, "closed", TSHARE_OPEN_WRITE));
	ASSERT_TRUE(act_as_root());
	ASSERT_TRUE(act_as_user(USER_C));
	EXPECT_EQ(-EACCES, open_name(self->dev, "closed", 0));
	ASSERT_TRUE(act_as_root());
	EXPECT_SAME_COUNTERS(before);
}

TEST_F(access, by_id_is_checked_like_by_name)
{
	int fd = create_of_a(self->dev, NULL, 0640);
	__u64 id = id_of(self->dev, fd);

	ASSERT_NE(0, id);
	ASSERT_TRUE(act_as(USER_B, USER_B, USER_A));
	EXPECT_LE(0, open_id(self->dev, id, 0));
	EXPECT_EQ(-EACCES, open_id(self->dev, id, TSHARE_OPEN_WRITE));
	ASSERT_TRUE(act_as_root());
	ASSERT_TRUE(act_as_user(USER_C));
	EXPECT_EQ(-EACCES, open_id(self->dev, id, 0));
}

TEST_F(access, cap_ipc_owner_passes)
{
	ASSERT_LE(0, create_of_a(self->dev, "sealed", 0));
	EXPECT_LE(0, open_name(self->dev, "sealed", TSHARE_OPEN_WRITE));
}

TEST_F(access, uid_0_without_cap_ipc_owner_does_not_pass)
{
	ASSERT_LE(0, create_of_a(self->dev, "sealed", 0));
	ASSERT_TRUE(drop_capability(CAP_IPC_OWNER));
	EXPECT_EQ(-EACCES, open_name(self->dev, "sealed", 0));
	EXPECT_EQ(-EPERM, unlink_name(self->dev, "sealed"));
}

TEST_F(access, cap_ipc_owner_suffices)
{
	ASSERT_LE(0, create_of_a(self->dev, "sealed", 0));
	ASSERT_EQ(0, prctl(PR_SET_KEEPCAPS, 1));
	ASSERT_TRUE(become(USER_C));
	ASSERT_TRUE(keep_only_capability(CAP_IPC_OWNER));
	EXPECT_LE(0, open_name(self->dev, "sealed", TSHARE_OPEN_WRITE));
	EXPECT_EQ(0, unlink_name(self->dev, "sealed"));
}

TEST_F(access, descriptors_keep_what_their_opener_might)
{
	int fd;

	ASSERT_LE(0, create_of_a(self->dev, "kept", 0600));
	ASSERT_TRUE(act_as_user(USER_A));
	fd = open_name(self->dev, "kept", TSHARE_OPEN_WRITE);
	ASSERT_TRUE(act_as_root());
	ASSERT_LE(0, fd);
	ASSERT_TRUE(act_as_user(USER_C));
	EXPECT_NE(MAP_FAILED, map(fd, PAGE, RW));
}

TEST_F(access, unlink_is_for_the_owner_and_the_privileged)
{
	ASSERT_LE(0, create_of_a(self->dev, "one", 0666));
	ASSERT_LE(0, create_of_a(self->dev, "two", 0));
	ASSERT_TRUE(act_as(USER_B, USER_A, USER_A));
	EXPECT_EQ(-EPERM, unlink_name(self->dev, "one"));
	ASSERT_TRUE(act_as_root());
	EXPECT_EQ(0, unlink_name(self->dev, "one"));
	ASSERT_TRUE(act_as_user(USER_A));
	EXPECT_EQ(0, unlink_name(self->dev, "two"));
}

TEST_F(access, unlink_by_id_is_checked_like_by_name)
{
	int fd = create_of_a(self->dev, "mine", 0666);
	__u64 id = id_of(self->dev, fd);

	ASSERT_NE(0, id);
	ASSERT_TRUE(act_as_user(USER_B));
	EXPECT_EQ(-EPERM, unlink_id(self->dev, id));
	ASSERT_TRUE(act_as_root());
	ASSERT_TRUE(act_as_user(USER_A));
	EXPECT_EQ(0, unlink_id(self->dev, id));
	EXPECT_EQ(-ENOENT, unlink_id(self->dev, id));
}

TEST_F(access, list_shows_what_the_caller_may_read)
{
	__u64 readable = id_of(self->dev, create_of_a(self->dev, NULL, 0644));
	__u64 write_only = id_of(self->dev, create_of_a(self->dev, NULL, 0622));
	__u64 closed = id_of(self->dev, create_of_a(self->dev, NULL, 0600));

	ASSERT_TRUE(act_as_user(USER_C));
	EXPECT_EQ(1, listed(self->dev, 0, readable));
	EXPECT_EQ(0, listed(self->dev, 0, write_only));
	EXPECT_EQ(0, listed(self->dev, 0, closed));
	ASSERT_TRUE(act_as_root());
	ASSERT_TRUE(act_as_user(USER_A));
	EXPECT_EQ(1, listed(self->dev, 0, closed));
	ASSERT_TRUE(act_as_root());
	EXPECT_EQ(1, listed(self->dev, 0, closed));
}

TEST_F(access, list_shows_the_owner_what_it_may_not_read)
{
	struct tshare_list_entry entries[2];

	ASSERT_LE(0, create_of_a(self->dev, NULL, 0));
	ASSERT_LE(0, create_of_a(self->dev, NULL, 0266));
	ASSERT_TRUE(act_as_user(USER_A));
	ASSERT_EQ(2, do_list(self->dev, 0, entries, 2));
	EXPECT_EQ(0, entries[0].mode);
	EXPECT_EQ(0, entries[0].region_flags);
	EXPECT_EQ(0, entries[1].region_flags);
}

TEST_F(access, list_reports_whether_the_caller_may_write)
{
	struct tshare_list_entry entries[2];

	ASSERT_LE(0, create_of_a(self->dev, NULL, 0644));
	ASSERT_LE(0, create_of_a(self->dev, NULL, 0666));
	ASSERT_TRUE(act_as_user(USER_C));
	ASSERT_EQ(2, do_list(self->dev, 0, entries, 2));
	EXPECT_EQ(0, entries[0].region_flags);
	EXPECT_EQ(TSHARE_REGION_WRITABLE, entries[1].region_flags);
}

TEST_F(access, list_all_needs_cap_sys_admin)
{
	struct tshare_list_entry entry;

	EXPECT_LE(0, do_list(self->dev, TSHARE_LIST_ALL, &entry, 1));
	ASSERT_TRUE(drop_capability(CAP_SYS_ADMIN));
	EXPECT_EQ(-EPERM, do_list(self->dev, TSHARE_LIST_ALL, &entry, 1));
}

TEST_F(access, info_needs_only_the_descriptor)
{
	int fd = create_of_a(self->dev, "passed", 0);
	struct tshare_info info;

	ASSERT_LE(0, fd);
	ASSERT_TRUE(act_as_user(USER_C));
	EXPECT_EQ(0, get_info(self->dev, fd, &info));
	EXPECT_STREQ("passed", info.name);
	EXPECT_EQ(USER_A, info.uid);
}

TEST_F(access, device_is_for_its_group)
{
	struct stat stat;

	ASSERT_EQ(0, fstat(self->dev, &stat));
	EXPECT_EQ(0, stat.st_mode & 0007);
	ASSERT_TRUE(act_as_user(USER_C));
	EXPECT_EQ(-EACCES, open_device());
	ASSERT_TRUE(act_as_root());
	ASSERT_TRUE(act_as(USER_C, USER_C, stat.st_gid));
	EXPECT_LE(0, open_device());
}

TEST_HARNESS_MAIN
