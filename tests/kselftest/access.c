// SPDX-License-Identifier: GPL-2.0-only
/* Permissions: modes, capabilities, read-only descriptors, lists. */

#include "util.h"

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
		for (bits = 0; bits < 8; bits++) {
			/* The other classes of users have the opposite permissions. */
			__u32 mode = (0777 & ~(7 << class) & ~(0111 * bits)) | bits << class;
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

FIXTURE(readonly)
{
	int dev;
	int rw;
	int ro;
	char *shown;
};

FIXTURE_SETUP(readonly)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->rw = create(self->dev, 2 * MIB, "readable");
	ASSERT_LE(0, self->rw);
	self->ro = open_name(self->dev, "readable", 0);
	ASSERT_LE(0, self->ro);
	self->shown = map_aligned(self->ro, 2 * MIB, PROT_READ);
	ASSERT_NE(MAP_FAILED, self->shown);
}

FIXTURE_TEARDOWN(readonly)
{
	close(self->ro);
	close(self->rw);
	close(self->dev);
}

TEST_F(readonly, info_reports_the_access)
{
	struct tshare_info info;

	ASSERT_EQ(0, get_info(self->dev, self->ro, &info));
	EXPECT_EQ(0, info.region_flags & TSHARE_REGION_WRITABLE);
	ASSERT_EQ(0, get_info(self->dev, self->rw, &info));
	EXPECT_EQ(TSHARE_REGION_WRITABLE, info.region_flags & TSHARE_REGION_WRITABLE);
}

TEST_F(readonly, sees_what_the_writer_writes)
{
	char *writable = map(self->rw, 2 * MIB, RW);

	ASSERT_NE(MAP_FAILED, writable);
	fill(writable, 2 * MIB, 1);
	EXPECT_TRUE(filled(self->shown, 2 * MIB, 1));
}

TEST_F(readonly, writable_mapping_is_eacces)
{
	EXPECT_EQ(MAP_FAILED, map(self->ro, PAGE, RW));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(MAP_FAILED, map(self->ro, PAGE, PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
}

TEST_F(readonly, mprotect_to_writable_is_eacces)
{
	EXPECT_EQ(-1, mprotect(self->shown, 2 * MIB, RW));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(-1, mprotect(self->shown + PAGE, PAGE, PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
}

TEST_F(readonly, private_mapping_is_einval)
{
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, self->ro, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, RW, MAP_PRIVATE, self->ro, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, RW, MAP_PRIVATE, self->rw, 0));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(readonly, can_not_be_reopened_for_writing)
{
	char path[64];

	sprintf(path, "/proc/self/fd/%d", self->ro);
	EXPECT_EQ(-1, open(path, O_RDWR));
	EXPECT_EQ(-1, open(path, O_WRONLY));
	sprintf(path, "/proc/self/map_files/%lx-%lx", (unsigned long)self->shown,
		(unsigned long)(self->shown + 2 * MIB));
	EXPECT_EQ(-1, open(path, O_RDWR));
}

TEST_F(readonly, fcntl_does_not_make_it_writable)
{
	fcntl(self->ro, F_SETFL, O_RDWR);
	EXPECT_EQ(O_RDONLY, fcntl(self->ro, F_GETFL) & O_ACCMODE);
	EXPECT_EQ(MAP_FAILED, map(self->ro, PAGE, RW));
}

TEST_F(readonly, proc_mem_does_not_write)
{
	int mem = open("/proc/self/mem", O_RDWR);
	__u64 word = 1;

	ASSERT_LE(0, mem);
	EXPECT_EQ(-1, pwrite(mem, &word, sizeof(word), (off_t)self->shown));
	EXPECT_EQ(0, *(volatile __u64 *)self->shown);
	ASSERT_EQ(sizeof(word), pread(mem, &word, sizeof(word), (off_t)self->shown));
	EXPECT_EQ(0, word);
	EXPECT_EQ(-1, pwrite(mem, &word, sizeof(word), (off_t)self->shown));
}

TEST_F(readonly, read_into_it_is_efault)
{
	int zero = open("/dev/zero", O_RDONLY);

	ASSERT_LE(0, zero);
	EXPECT_EQ(-1, read(zero, self->shown, PAGE));
	EXPECT_EQ(EFAULT, errno);
}

TEST_F_SIGNAL(readonly, store_is_sigsegv, SIGSEGV)
{
	*(volatile char *)self->shown = 1;
}

TEST_F_SIGNAL(readonly, store_after_load_is_sigsegv, SIGSEGV)
{
	volatile char *shown = self->shown;

	if (!*shown)
		*shown = 1;
}

TEST_F(readonly, remapping_does_not_make_it_writable)
{
	char *moved = mremap(self->shown, 2 * MIB, 2 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED,
			     self->shown + 64 * MIB);

	ASSERT_NE(MAP_FAILED, moved);
	EXPECT_EQ(-1, mprotect(moved, PAGE, RW));
	/* A size of zero duplicates a shared mapping. */
	moved = mremap(moved, 0, PAGE, MREMAP_MAYMOVE);
	if (moved != MAP_FAILED)
		EXPECT_EQ(-1, mprotect(moved, PAGE, RW));
}

struct passing {
	int sock;
	int dev;
};

/* A user that may not open the region receives its descriptor. */
static int receive_as_stranger(void *arg)
{
	struct passing *passing = arg;
	char *shown;
	int fd;

	if (!become(USER_C) || open_name(passing->dev, "readable", 0) != -EACCES)
		return 1;
	fd = receive_fd(passing->sock);
	shown = map(fd, PAGE, PROT_READ);
	if (fd < 0 || shown == MAP_FAILED)
		return 2;
	if (map(fd, PAGE, RW) != MAP_FAILED || !mprotect(shown, PAGE, RW))
		return 3;
	return 0;
}

TEST_F(readonly, stays_so_when_it_is_passed_on)
{
	struct passing passing = { .dev = self->dev };
	int socks[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, socks));
	ASSERT_TRUE(send_fd(socks[0], self->ro));
	passing.sock = socks[1];
	EXPECT_EQ(0, in_child(receive_as_stranger, &passing));
}

TEST_HARNESS_MAIN
