// SPDX-License-Identifier: GPL-2.0-only
/* How long names live, and in which namespace. */
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "harness.h"
#include "proc.h"

FIXTURE(names)
{
	int dev;
};

FIXTURE_SETUP(names)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
}

FIXTURE_TEARDOWN(names)
{
	close(self->dev);
}

TEST_F(names, go_with_the_open_file)
{
	int dev = open_device(), fd;

	ASSERT_LE(0, dev);
	fd = create(dev, PAGE, "bound");
	ASSERT_LE(0, fd);
	EXPECT_LE(0, open_name(self->dev, "bound", 0));
	close(dev);
	EXPECT_EQ(-ENOENT, open_name(self->dev, "bound", 0));
}

TEST_F(names, that_went_are_not_shown_by_info)
{
	int dev = open_device(), fd;
	struct tshare_info info;

	ASSERT_LE(0, dev);
	fd = create(dev, PAGE, "bound");
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, get_info(self->dev, fd, &info));
	EXPECT_STREQ("bound", info.name);
	close(dev);
	ASSERT_EQ(0, get_info(self->dev, fd, &info));
	EXPECT_STREQ("", info.name);
	EXPECT_TRUE(zeroed(info.name, sizeof(info.name)));
}

TEST_F(names, that_went_leave_an_id_to_open_by)
{
	int dev = open_device(), fd;
	__u64 id;

	ASSERT_LE(0, dev);
	fd = create(dev, PAGE, "bound");
	id = id_of(dev, fd);
	ASSERT_NE(0, id);
	close(dev);
	EXPECT_LE(0, open_id(self->dev, id, 0));
	EXPECT_EQ(1, listed(self->dev, 0, id));
	EXPECT_EQ(-ENOENT, unlink_id(self->dev, id));
}

TEST_F(names, keep_the_memory_without_any_descriptor)
{
	int fd = create(self->dev, PAGE, "kept");
	char *mem = map(fd, PAGE, RW);

	ASSERT_NE(MAP_FAILED, mem);
	fill(mem, PAGE, 1);
	munmap(mem, PAGE);
	close(fd);
	fd = open_name(self->dev, "kept", 0);
	ASSERT_LE(0, fd);
	mem = map(fd, PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, mem);
	EXPECT_TRUE(filled(mem, PAGE, 1));
}

#define SOME 300

/* The last digits come first, so that the names come in no order. */
static const char *name_of(char *name, int i)
{
	sprintf(name, "%d%d%d", i % 10, i / 10 % 10, i / 100);
	return name;
}

TEST_F(names, among_many_are_found_each)
{
	__u64 ids[SOME];
	char name[16];
	int i, fd;

	for (i = 0; i < SOME; i++) {
		fd = create(self->dev, PAGE, name_of(name, i));
		ASSERT_LE(0, fd) TH_LOG("%s", name);
		ids[i] = id_of(self->dev, fd);
		close(fd);
	}
	for (i = 0; i < SOME; i += 2)
		ASSERT_EQ(0, unlink_name(self->dev, name_of(name, i))) TH_LOG("%s", name);
	for (i = 0; i < SOME; i++) {
		fd = open_name(self->dev, name_of(name, i), 0);
		if (i % 2 == 0) {
			EXPECT_EQ(-ENOENT, fd) TH_LOG("%s", name);
			continue;
		}
		EXPECT_EQ(ids[i], id_of(self->dev, fd)) TH_LOG("%s", name);
		close(fd);
	}
}

TEST_F(names, stay_while_a_duplicate_of_the_file_is_open)
{
	int dev = open_device(), copy = dup(dev);

	ASSERT_LE(0, copy);
	ASSERT_LE(0, create(dev, PAGE, "bound"));
	close(dev);
	EXPECT_LE(0, open_name(self->dev, "bound", 0));
	close(copy);
	EXPECT_EQ(-ENOENT, open_name(self->dev, "bound", 0));
}

static int wait_for_end(void *arg)
{
	char byte;

	return read(*(int *)arg, &byte, 1);
}

TEST_F(names, stay_while_a_forked_child_has_the_file)
{
	int dev = open_device(), pipes[2];
	pid_t child;

	ASSERT_LE(0, dev);
	ASSERT_EQ(0, pipe(pipes));
	ASSERT_LE(0, create(dev, PAGE, "bound"));
	child = fork();
	if (!child) {
		close(pipes[1]);
		_exit(wait_for_end(&pipes[0]));
	}
	close(dev);
	EXPECT_LE(0, open_name(self->dev, "bound", 0));
	close(pipes[1]);
	ASSERT_EQ(child, waitpid(child, NULL, 0));
	EXPECT_EQ(-ENOENT, open_name(self->dev, "bound", 0));
}

TEST_F(names, go_at_once_when_their_maker_is_killed)
{
	struct counters before = count_all();
	int i;

	for (i = 0; i < 20; i++) {
		pid_t maker = start_region_maker(create_args(4 * MIB, "mortal"));

		ASSERT_LT(0, maker);
		ASSERT_LE(0, close(open_name(self->dev, "mortal", 0)));
		ASSERT_EQ(0, kill(maker, SIGKILL));
		ASSERT_EQ(maker, waitpid(maker, NULL, 0));
		EXPECT_EQ(-ENOENT, open_name(self->dev, "mortal", 0));
		EXPECT_SAME_COUNTERS(before);
	}
}

TEST_F(names, that_persist_survive_their_maker)
{
	struct tshare_create args = create_args(PAGE, "mortal");
	pid_t maker;
	char *mem;
	int fd;

	args.flags = TSHARE_CREATE_PERSIST;
	maker = start_region_maker(args);
	ASSERT_LT(0, maker);
	ASSERT_EQ(0, kill(maker, SIGKILL));
	ASSERT_EQ(maker, waitpid(maker, NULL, 0));
	fd = open_name(self->dev, "mortal", 0);
	ASSERT_LE(0, fd);
	mem = map(fd, PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, mem);
	EXPECT_EQ(1, mem[PAGE - 1]);
	EXPECT_EQ(0, unlink_name(self->dev, "mortal"));
	EXPECT_EQ(-ENOENT, open_name(self->dev, "mortal", 0));
}

TEST_F(names, that_persist_hold_no_open_file)
{
	struct counters before = count_all();
	int dev = open_device();

	ASSERT_LE(0, dev);
	ASSERT_EQ(0, close(create_persistent(dev, PAGE, "persistent")));
	close(dev);
	EXPECT_EQ(0, unlink_name(self->dev, "persistent"));
	EXPECT_SAME_COUNTERS(before);
}

TEST_F(names, are_free_after_unlink_while_the_region_lives)
{
	int first = create(self->dev, PAGE, "reused"), second;
	char *old = map(first, PAGE, RW), *new;
	struct tshare_info info;

	ASSERT_NE(MAP_FAILED, old);
	fill(old, PAGE, 1);
	ASSERT_EQ(0, unlink_name(self->dev, "reused"));
	second = create(self->dev, PAGE, "reused");
	ASSERT_LE(0, second);
	new = map(second, PAGE, RW);
	ASSERT_NE(MAP_FAILED, new);
	EXPECT_TRUE(zeroed(new, PAGE));
	EXPECT_TRUE(filled(old, PAGE, 1));
	EXPECT_EQ(id_of(self->dev, second), id_of(self->dev, open_name(self->dev, "reused", 0)));
	ASSERT_EQ(0, get_info(self->dev, first, &info));
	EXPECT_STREQ("", info.name);
}

TEST_F(names, of_others_stay_when_a_former_owner_closes)
{
	int dev = open_device();

	ASSERT_LE(0, dev);
	ASSERT_LE(0, create(dev, PAGE, "reused"));
	ASSERT_EQ(0, unlink_name(self->dev, "reused"));
	ASSERT_LE(0, create(self->dev, PAGE, "reused"));
	close(dev);
	EXPECT_LE(0, open_name(self->dev, "reused", 0));
}

TEST_F(names, unlinked_twice_are_enoent)
{
	ASSERT_LE(0, create(self->dev, PAGE, "once"));
	EXPECT_EQ(0, unlink_name(self->dev, "once"));
	EXPECT_EQ(-ENOENT, unlink_name(self->dev, "once"));
	EXPECT_EQ(-ENOENT, unlink_name(self->dev, "never"));
}

TEST_F(names, are_compared_byte_by_byte)
{
	static const char *const names[] = { "a", "A", "aa", "ab", "b", "a ", "\xff", "\x7f" };
	__u64 ids[ARRAY_SIZE(names)];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		ids[i] = id_of(self->dev, create(self->dev, PAGE, names[i]));
		ASSERT_NE(0, ids[i]);
	}
	for (i = 0; i < ARRAY_SIZE(names); i++)
		EXPECT_EQ(ids[i], id_of(self->dev, open_name(self->dev, names[i], 0)));
}

TEST_F(names, end_at_their_first_nul)
{
	struct tshare_create made = create_args(PAGE, NULL);
	struct tshare_open opened = { .name = "short\0this" };
	struct tshare_unlink unlinked = { .name = "short\0that" };
	struct tshare_info info;
	int fd;

	memcpy(made.name, "short\0it", 9);
	fd = do_create(self->dev, &made);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, get_info(self->dev, fd, &info));
	EXPECT_STREQ("short", info.name);
	EXPECT_TRUE(zeroed(info.name + 5, sizeof(info.name) - 5));
	EXPECT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_OPEN, &opened));
	EXPECT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_UNLINK, &unlinked));
}

TEST_F(names, many_are_found_and_forgotten)
{
	int dev = open_device(), i;
	struct counters before = count_all();
	char name[16];

	ASSERT_LE(0, dev);
	for (i = 0; i < 500; i++) {
		sprintf(name, "%d", i * 7919 % 500);
		ASSERT_EQ(0, close(create(dev, PAGE, name)));
	}
	EXPECT_EQ(before.names + 500, read_number(SYSFS "names"));
	for (i = 0; i < 500; i++) {
		sprintf(name, "%d", i);
		ASSERT_EQ(0, close(open_name(self->dev, name, 0)));
	}
	for (i = 0; i < 500; i += 2) {
		sprintf(name, "%d", i);
		ASSERT_EQ(0, unlink_name(self->dev, name));
		ASSERT_EQ(-ENOENT, open_name(self->dev, name, 0));
	}
	close(dev);
	before.fds--;
	EXPECT_SAME_COUNTERS(before);
}

/* Waits for a byte, tries to make "contested", writes the result. */
static int contend(int start, int results)
{
	char byte;
	int fd;

	if (read(start, &byte, 1) < 0)
		return 1;
	fd = create(open_device(), 2 * MIB, "contested");
	if (write(results, &fd, sizeof(fd)) != sizeof(fd))
		return 1;
	pause();
	return 0;
}

TEST_F(names, contested_are_had_by_exactly_one)
{
	int round, i, start[2], results[2], result;
	pid_t pids[4];

	for (round = 0; round < 10; round++) {
		int winners = 0;

		ASSERT_EQ(0, pipe(start));
		ASSERT_EQ(0, pipe(results));
		for (i = 0; i < 4; i++) {
			pids[i] = fork();
			if (!pids[i]) {
				close(start[1]);
				_exit(contend(start[0], results[1]));
			}
		}
		close(start[1]);
		for (i = 0; i < 4; i++) {
			ASSERT_EQ(sizeof(result), read(results[0], &result, sizeof(result)));
			winners += result >= 0;
			if (result < 0)
				EXPECT_EQ(-EEXIST, result);
		}
		EXPECT_EQ(1, winners);
		for (i = 0; i < 4; i++) {
			kill(pids[i], SIGKILL);
			waitpid(pids[i], NULL, 0);
		}
		close(start[0]);
		close(results[0]);
		close(results[1]);
	}
}

/* Execs this program to map descriptor 9 as mapper() does. */
static int exec_mapper(void *arg)
{
	int fd = *(int *)arg;

	if (fd != 9) {
		/* dup2() would clear FD_CLOEXEC, which is what is tested. */
		if (fcntl(fd, F_GETFD) & FD_CLOEXEC ? dup3(fd, 9, O_CLOEXEC) < 0 : dup2(fd, 9) < 0)
			return 99;
		close(fd);
	}
	execl("/proc/self/exe", "mapper", NULL);
	return 98;
}

/* The program that exec_mapper() starts: can descriptor 9 be mapped? */
static int mapper(void)
{
	char *mem = map(9, PAGE, PROT_READ);

	if (mem == MAP_FAILED)
		return errno == EBADF ? 1 : 2;
	return filled(mem, PAGE, 5) ? 0 : 3;
}

TEST_F(names, descriptors_are_closed_by_exec_unless_asked)
{
	struct tshare_create create_kept = create_args(PAGE, "kept");
	struct tshare_create create_closed = create_args(PAGE, "closed");
	int fds[4], i;
	char *mem;

	create_kept.flags = TSHARE_CREATE_NO_CLOEXEC;
	fds[0] = do_create(self->dev, &create_kept);
	fds[1] = open_name(self->dev, "kept", TSHARE_OPEN_NO_CLOEXEC);
	fds[2] = do_create(self->dev, &create_closed);
	fds[3] = open_name(self->dev, "closed", 0);
	for (i = 0; i < 4; i++) {
		ASSERT_LE(0, fds[i]);
		EXPECT_EQ(i < 2 ? 0 : FD_CLOEXEC, fcntl(fds[i], F_GETFD));
	}
	mem = map(fds[0], PAGE, RW);
	ASSERT_NE(MAP_FAILED, mem);
	fill(mem, PAGE, 5);
	for (i = 0; i < 4; i++)
		EXPECT_EQ(i < 2 ? 0 : 1, in_child(exec_mapper, &fds[i]));
}

/* Another program, which has only the name, checks and changes the memory. */
static int opener(const char *name)
{
	int fd = open_name(open_device(), name, TSHARE_OPEN_WRITE);
	char *mem = map(fd, PAGE, RW);

	if (fd < 0 || mem == MAP_FAILED)
		return 1;
	if (!filled(mem, PAGE, 6))
		return 2;
	fill(mem, PAGE, 7);
	return 0;
}

static int exec_opener(void *name)
{
	execl("/proc/self/exe", "opener", name, NULL);
	return 98;
}

TEST_F(names, reach_another_program)
{
	int fd = create(self->dev, PAGE, "meeting");
	char *mem = map(fd, PAGE, RW);

	ASSERT_NE(MAP_FAILED, mem);
	fill(mem, PAGE, 6);
	EXPECT_EQ(0, in_child(exec_opener, "meeting"));
	EXPECT_TRUE(filled(mem, PAGE, 7));
}

/* Two IPC namespaces: the first one's device, and then the process's own. */
FIXTURE(namespaces)
{
	int outer;
	int inner;
	struct counters before;
};

FIXTURE_SETUP(namespaces)
{
	self->before = count_all();
	self->outer = open_device();
	ASSERT_LE(0, self->outer);
	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	self->inner = open_device();
	ASSERT_LE(0, self->inner);
}

FIXTURE_TEARDOWN(namespaces)
{
	close(self->inner);
	close(self->outer);
}

TEST_F(namespaces, each_has_its_own_names)
{
	int outer = create(self->outer, PAGE, "same");
	int inner = create(self->inner, PAGE, "same");

	ASSERT_LE(0, outer);
	ASSERT_LE(0, inner);
	EXPECT_EQ(id_of(self->outer, outer), id_of(self->outer, open_name(self->outer, "same", 0)));
	EXPECT_EQ(id_of(self->inner, inner), id_of(self->inner, open_name(self->inner, "same", 0)));
	EXPECT_NE(id_of(self->outer, outer), id_of(self->inner, inner));
	EXPECT_EQ(0, unlink_name(self->inner, "same"));
	EXPECT_LE(0, open_name(self->outer, "same", 0));
}

#define MANY 100

/* In no order: 37 and 100 have no common divisor. */
TEST_F(namespaces, many_are_found_each)
{
	int fds[MANY], i, dev, fd;
	__u64 ids[MANY];

	for (i = 0; i < MANY; i++) {
		ASSERT_EQ(0, unshare(CLONE_NEWIPC));
		fds[i] = open("/proc/self/ns/ipc", O_RDONLY | O_CLOEXEC);
		dev = open_device();
		ASSERT_LE(0, fds[i]);
		fd = create(dev, PAGE, "same");
		ids[i] = id_of(dev, fd);
		ASSERT_NE(0, ids[i]);
		close(fd);
	}
	for (i = 0; i < MANY; i++) {
		int at = i * 37 % MANY;

		ASSERT_EQ(0, setns(fds[at], CLONE_NEWIPC));
		dev = open_device();
		fd = open_name(dev, "same", 0);
		EXPECT_EQ(ids[at], id_of(dev, fd));
		close(fd);
		close(dev);
	}
}

TEST_F(namespaces, do_not_see_one_anothers_names)
{
	ASSERT_LE(0, create(self->outer, PAGE, "outer"));
	ASSERT_LE(0, create(self->inner, PAGE, "inner"));
	EXPECT_EQ(-ENOENT, open_name(self->inner, "outer", 0));
	EXPECT_EQ(-ENOENT, open_name(self->outer, "inner", 0));
	EXPECT_EQ(-ENOENT, unlink_name(self->outer, "inner"));
}

TEST_F(namespaces, do_not_list_one_anothers_regions)
{
	__u64 inner = id_of(self->inner, create(self->inner, PAGE, NULL));

	ASSERT_NE(0, inner);
	EXPECT_EQ(1, listed(self->inner, 0, inner));
	EXPECT_EQ(0, listed(self->outer, 0, inner));
	EXPECT_EQ(1, listed(self->outer, TSHARE_LIST_ALL, inner));
}

TEST_F(namespaces, ids_cross_with_cap_sys_admin_only)
{
	__u64 inner = id_of(self->inner, create(self->inner, PAGE, "inner"));

	ASSERT_NE(0, inner);
	EXPECT_LE(0, open_id(self->outer, inner, TSHARE_OPEN_WRITE));
	ASSERT_TRUE(drop_capability(CAP_SYS_ADMIN));
	EXPECT_EQ(-ENOENT, open_id(self->outer, inner, 0));
	EXPECT_EQ(-ENOENT, unlink_id(self->outer, inner));
	EXPECT_LE(0, open_id(self->inner, inner, 0));
	ASSERT_TRUE(act_as_user(USER_A));
	EXPECT_EQ(-ENOENT, open_id(self->outer, inner, 0));
	ASSERT_TRUE(act_as_root());
	EXPECT_EQ(0, unlink_id(self->outer, inner));
}

TEST_F(namespaces, ids_show_nothing_of_other_ones)
{
	const __u64 block = 1 << 24;
	__u64 first = id_of(self->inner, create(self->inner, PAGE, NULL)), outer, other;
	int dev;

	ASSERT_NE(0, first);
	outer = id_of(self->outer, create(self->outer, PAGE, NULL));
	EXPECT_EQ(first + 1, id_of(self->inner, create(self->inner, PAGE, NULL)));
	EXPECT_EQ(outer + 1, id_of(self->outer, create(self->outer, PAGE, NULL)));
	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	dev = open_device();
	other = id_of(dev, create(dev, PAGE, NULL));
	/* Each begins a block of its own. */
	EXPECT_EQ(1, first % block);
	EXPECT_EQ(1, other % block);
	EXPECT_NE(first, other);
	EXPECT_NE(first + block, other);
}

/* All regions that are listed, which are @nr with the ids @ids; returns where the list ends. */
static __u64 list_is(int dev, const __u64 *ids, __u32 nr)
{
	struct tshare_list_entry entries[8];
	struct tshare_list args = {
		.entries = (uintptr_t)entries,
		.count = ARRAY_SIZE(entries),
		.entry_size = sizeof(entries[0]),
	};
	__u32 i;

	if (xioctl(dev, TSHARE_IOCTL_LIST, &args) || args.count != nr)
		return 0;
	for (i = 0; i < nr; i++)
		if (entries[i].id != ids[i])
			return 0;
	return args.cursor;
}

/* The end of a list, too: the id there would be of the newest region of some namespace. */
TEST_F(namespaces, list_shows_nothing_of_other_ones)
{
	int devs[20];
	__u64 ids[20][2];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(devs); i++) {
		if (i)
			ASSERT_EQ(0, unshare(CLONE_NEWIPC));
		devs[i] = i ? open_device() : self->outer;
		ids[i][0] = id_of(devs[i], create_mode(devs[i], PAGE, NULL, 0644));
		ASSERT_LE(0, create_mode(devs[i], PAGE, NULL, 0600));
		ids[i][1] = id_of(devs[i], create_mode(devs[i], PAGE, NULL, 0644));
		ASSERT_NE(0, ids[i][1]);
		ASSERT_LE(0, create_mode(devs[i], PAGE, NULL, 0600));
	}
	ASSERT_TRUE(act_as_user(USER_A));
	for (i = 0; i < ARRAY_SIZE(devs); i++)
		EXPECT_EQ(ids[i][1], list_is(devs[i], ids[i], 2));
	ASSERT_TRUE(act_as_root());
}

static struct tshare_query query(int dev)
{
	struct tshare_query args = {};

	if (xioctl(dev, TSHARE_IOCTL_QUERY, &args))
		memset(&args, 0xff, sizeof(args));
	return args;
}

TEST_F(namespaces, query_shows_nothing_of_other_ones)
{
	struct tshare_query before, now;

	ASSERT_LE(0, create(self->inner, PAGE, NULL));
	EXPECT_EQ(read_number(SYSFS "bytes"), query(self->inner).bytes_used);
	ASSERT_TRUE(drop_capability(CAP_SYS_ADMIN));
	before = query(self->inner);
	EXPECT_EQ(PAGE, before.bytes_used);
	ASSERT_LE(0, create(self->outer, 4 * MIB, NULL));
	now = query(self->inner);
	EXPECT_EQ(PAGE, now.bytes_used);
	EXPECT_EQ(before.region_bytes_max, now.region_bytes_max);
	ASSERT_LE(0, create(self->inner, PAGE, NULL));
	now = query(self->inner);
	EXPECT_EQ(2 * PAGE, now.bytes_used);
	EXPECT_EQ(before.region_bytes_max - PAGE, now.region_bytes_max);
}

TEST_F(namespaces, counts_of_all_are_for_root)
{
	static const char *const files[] = { "regions", "exports", "names", "bytes" };
	char path[64];
	size_t i;

	ASSERT_TRUE(act_as_user(USER_A));
	for (i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), SYSFS "%s", files[i]);
		EXPECT_EQ(-1, open(path, O_RDONLY | O_CLOEXEC));
		EXPECT_EQ(EACCES, errno);
	}
	ASSERT_TRUE(act_as_root());
}

TEST_F(namespaces, info_works_from_another_one)
{
	int fd = create(self->inner, PAGE, "inner");
	struct tshare_info info;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, get_info(self->outer, fd, &info));
	EXPECT_STREQ("inner", info.name);
}

TEST_F(namespaces, files_keep_the_one_they_were_opened_in)
{
	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	ASSERT_LE(0, create(self->inner, PAGE, "kept"));
	EXPECT_LE(0, open_name(self->inner, "kept", 0));
	EXPECT_EQ(-ENOENT, open_name(open_device(), "kept", 0));
}

/* In a user namespace where @uid outside is root. */
static bool enter_user_namespace(uid_t uid)
{
	return !unshare(CLONE_NEWUSER) && write_file("/proc/self/setgroups", "deny") &&
	       write_file("/proc/self/uid_map", "0 %u 1", uid) &&
	       write_file("/proc/self/gid_map", "0 %u 1", uid);
}

/* The same for USER_A, who may open the device. */
static bool enter_user_namespace_of_a(void)
{
	struct stat device;

	return !stat(DEVICE, &device) && !setgroups(1, &device.st_gid) &&
	       !setresgid(USER_A, USER_A, USER_A) && !setresuid(USER_A, USER_A, USER_A) &&
	       !prctl(PR_SET_DUMPABLE, 1) && enter_user_namespace(USER_A);
}

/* The kernel lets users make no user namespaces. */
#define VISIT_SKIPPED 77

/* Actions of a process in a namespace of its own, before it ends there. */
struct visit {
	/* Bytes of a System V segment that it leaves behind, 0 for none. */
	size_t sysv;
	/* Whether USER_A makes it, in a user namespace of its own. */
	bool user_ns;
	__u32 flags;
	__u32 mode;
	/* To send the region's descriptor through, -1 not to. */
	int sock;
	__u64 id;
	ino_t ns;
};

static ino_t current_ipc_ns(void)
{
	struct stat stat_ns;

	return stat("/proc/self/ns/ipc", &stat_ns) ? 0 : stat_ns.st_ino;
}

static bool leave_sysv_memory(size_t size)
{
	int id = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
	void *mem = shmat(id, NULL, 0);

	if (mem == (void *)-1)
		return false;
	memset(mem, 1, size);
	return !shmdt(mem);
}

static int visit_a_namespace(void *arg)
{
	struct visit *visit = arg;
	struct tshare_create args = create_args(PAGE, "left behind");
	int dev, fd;

	if (visit->user_ns && !enter_user_namespace_of_a())
		return VISIT_SKIPPED;
	if (unshare(CLONE_NEWIPC) || (visit->sysv && !leave_sysv_memory(visit->sysv)))
		return 1;
	args.flags = visit->flags;
	args.mode = visit->mode;
	dev = open_device();
	fd = do_create(dev, &args);
	visit->id = id_of(dev, fd);
	visit->ns = current_ipc_ns();
	if (visit->sock >= 0 && !send_fd(visit->sock, fd))
		return 2;
	return !visit->id;
}

/* Runs @visit in a child; the parent reads the result. */
static int make_visit(struct visit *visit)
{
	struct visit *shared = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int result;

	if (shared == MAP_FAILED)
		return 1;
	*shared = *visit;
	result = in_child(visit_a_namespace, shared);
	*visit = *shared;
	munmap(shared, PAGE);
	return result;
}

/* Waits for the kernel to free a namespace, which it does in the background. */
static bool shared_memory_sinks_to(long bytes, int tries)
{
	while (tries--) {
		/* Ignores what each CPU has not yet added to the sum. */
		if (shared_memory() <= bytes + (long)MIB)
			return true;
		usleep(10000);
	}
	return false;
}

#define SYSV_MEMORY (64 * MIB)

TEST_F(namespaces, are_not_kept_by_a_region)
{
	struct visit visit = { .sysv = SYSV_MEMORY };
	long before = shared_memory();
	struct tshare_info info;
	int socks[2], fd;

	ASSERT_LT(0, before);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, socks));
	visit.sock = socks[0];
	ASSERT_EQ(0, make_visit(&visit));
	fd = receive_fd(socks[1]);
	ASSERT_LE(0, fd);
	EXPECT_TRUE(shared_memory_sinks_to(before, 1000));
	ASSERT_EQ(0, get_info(self->outer, fd, &info));
	EXPECT_EQ(visit.id, info.id);
}

TEST_F(namespaces, are_kept_by_an_open_device)
{
	long before = shared_memory();
	int dev;

	ASSERT_LT(0, before);
	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	ASSERT_TRUE(leave_sysv_memory(SYSV_MEMORY));
	dev = open_device();
	ASSERT_LE(0, dev);
	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	EXPECT_FALSE(shared_memory_sinks_to(before, 100));
	close(dev);
	EXPECT_TRUE(shared_memory_sinks_to(before, 1000));
}

/* As System V memory is: nobody could look for the name any more. */
TEST_F(namespaces, end_with_their_persistent_names)
{
	struct visit visit = { .sysv = SYSV_MEMORY, .flags = TSHARE_CREATE_PERSIST, .sock = -1 };
	struct counters before = count_all();
	long shared = shared_memory();
	int i;

	ASSERT_LT(0, shared);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, make_visit(&visit));
		EXPECT_TRUE(counters_return_to(before));
		EXPECT_TRUE(shared_memory_sinks_to(shared, 1000));
		EXPECT_EQ(-ENOENT, open_id(self->outer, visit.id, 0));
	}
}

/* The first one's end is noticed while the second lives on. */
TEST_F(namespaces, end_each_by_itself)
{
	struct visit visit = { .flags = TSHARE_CREATE_PERSIST, .sock = -1 };
	__u64 id = id_of(self->inner, create_persistent(self->inner, PAGE, "stays"));

	ASSERT_NE(0, id);
	close(self->inner);
	ASSERT_EQ(0, make_visit(&visit));
	while (listed(self->outer, TSHARE_LIST_ALL, visit.id))
		usleep(10000);
	EXPECT_EQ(1, listed(self->outer, TSHARE_LIST_ALL, id));
	self->inner = open_device();
	EXPECT_EQ(id, id_of(self->inner, open_name(self->inner, "stays", 0)));
	EXPECT_EQ(0, unlink_name(self->inner, "stays"));
}

TEST_F(namespaces, are_not_kept_by_a_users_name)
{
	struct visit visit = { .sysv = SYSV_MEMORY, .flags = TSHARE_CREATE_USERS };
	long before = shared_memory();
	struct tshare_info info;
	int socks[2], fd, tries;

	ASSERT_LT(0, before);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, socks));
	visit.sock = socks[0];
	ASSERT_EQ(0, make_visit(&visit));
	fd = receive_fd(socks[1]);
	ASSERT_LE(0, fd);
	EXPECT_TRUE(shared_memory_sinks_to(before, 1000));
	for (tries = 0; tries < 1000; tries++) {
		ASSERT_EQ(0, get_info(self->outer, fd, &info));
		if (!info.name[0])
			break;
		usleep(10000);
	}
	EXPECT_EQ(visit.id, info.id);
	EXPECT_STREQ("", info.name);
}

/* Longer than the pauses between the module's looks. */
static void wait_for_looks(void)
{
	sleep(3);
}

/* Leaves a persistent name where no process and no open device is, but @file. */
static int leave_a_name(void)
{
	int file = open("/proc/self/ns/ipc", O_RDONLY | O_CLOEXEC), dev = open_device();

	close(create_persistent(dev, PAGE, "left"));
	close(dev);
	return file;
}

TEST_F(namespaces, keep_their_names_while_a_file_leads_there)
{
	int file, dev;

	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	file = leave_a_name();
	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	wait_for_looks();
	ASSERT_EQ(0, setns(file, CLONE_NEWIPC));
	dev = open_device();
	EXPECT_LE(0, open_name(dev, "left", 0));
	EXPECT_EQ(0, unlink_name(dev, "left"));
}

TEST_F(namespaces, end_long_after_the_device_was_closed_there)
{
	struct counters before = count_all();
	int file;

	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	file = leave_a_name();
	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	wait_for_looks();
	EXPECT_EQ(before.names + 1, read_number(SYSFS "names"));
	close(file);
	EXPECT_TRUE(counters_return_to(before));
}

TEST_F(namespaces, keep_their_names_while_a_process_is_there)
{
	int dev;

	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	close(leave_a_name());
	wait_for_looks();
	dev = open_device();
	EXPECT_LE(0, open_name(dev, "left", 0));
	EXPECT_EQ(0, unlink_name(dev, "left"));
}

TEST_F(namespaces, are_not_kept_by_a_draft_that_was_not_finished)
{
	struct visit visit = {
		.sysv = SYSV_MEMORY,
		.flags = TSHARE_CREATE_PERSIST | TSHARE_CREATE_DRAFT,
		.sock = -1,
	};
	long before = shared_memory();

	ASSERT_LT(0, before);
	ASSERT_EQ(0, make_visit(&visit));
	EXPECT_TRUE(shared_memory_sinks_to(before, 1000));
}

/* Enters new namespaces until one has the inode number that another one had. */
static bool enter_namespace_numbered(ino_t ns)
{
	int tries;

	for (tries = 0; tries < 500; tries++) {
		if (unshare(CLONE_NEWIPC))
			return false;
		if (current_ipc_ns() == ns)
			return true;
		usleep(10000);
	}
	return false;
}

TEST_F(namespaces, with_a_reused_inode_number_do_not_find_their_predecessors_regions)
{
	struct visit visit = {};
	int socks[2], dev;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, socks));
	visit.sock = socks[0];
	ASSERT_EQ(0, make_visit(&visit));
	ASSERT_LE(0, receive_fd(socks[1]));
	ASSERT_TRUE(enter_namespace_numbered(visit.ns));
	dev = open_device();
	ASSERT_LE(0, dev);
	EXPECT_EQ(0, listed(dev, 0, visit.id));
	EXPECT_LE(0, open_id(dev, visit.id, 0));
	ASSERT_TRUE(drop_capability(CAP_SYS_ADMIN));
	EXPECT_EQ(-ENOENT, open_id(dev, visit.id, 0));
}

/* USER_A made the user namespace, and so has all capabilities in it. */
TEST_F(namespaces, that_are_gone_leave_their_user_namespace_for_capabilities)
{
	struct visit visit = { .user_ns = true };
	int socks[2], result;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, socks));
	visit.sock = socks[0];
	result = make_visit(&visit);
	if (result == VISIT_SKIPPED)
		SKIP(return, "no user namespaces for users");
	ASSERT_EQ(0, result);
	ASSERT_LE(0, receive_fd(socks[1]));
	/* Finding it in another namespace takes CAP_SYS_ADMIN, opening it more. */
	ASSERT_TRUE(act_as_user(USER_B));
	ASSERT_TRUE(keep_only_capability(CAP_SYS_ADMIN));
	EXPECT_EQ(-EACCES, open_id(self->outer, visit.id, 0));
	ASSERT_TRUE(act_as_root());
	ASSERT_TRUE(act_as_user(USER_A));
	ASSERT_TRUE(keep_only_capability(CAP_SYS_ADMIN));
	EXPECT_LE(0, open_id(self->outer, visit.id, 0));
}

TEST_F(namespaces, device_needs_no_proc)
{
	int dev;

	ASSERT_EQ(0, unshare(CLONE_NEWIPC | CLONE_NEWNS));
	ASSERT_EQ(0, mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	ASSERT_EQ(0, mount("none", "/proc", "tmpfs", 0, NULL));
	dev = open_device();
	ASSERT_LE(0, dev);
	ASSERT_LE(0, create(dev, PAGE, "hidden"));
	EXPECT_LE(0, open_name(open_device(), "hidden", 0));
	EXPECT_EQ(-ENOENT, open_name(self->inner, "hidden", 0));
}

TEST_F(namespaces, device_needs_one_descriptor_in_a_new_one)
{
	struct rlimit limit = { .rlim_cur = open_fds() + 1, .rlim_max = 1024 };
	long fds = open_fds();

	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	EXPECT_LE(0, open_device());
	EXPECT_EQ(fds + 1, open_fds());
	EXPECT_EQ(-EMFILE, open_device());
}

TEST_F(namespaces, owners_are_mapped_to_the_callers_user_namespace)
{
	int fd, other = create(self->inner, PAGE, NULL);
	struct tshare_info info;

	ASSERT_TRUE(act_as_user(USER_A));
	fd = create(self->inner, PAGE, NULL);
	ASSERT_TRUE(act_as_root());
	ASSERT_LE(0, fd);
	ASSERT_LE(0, other);
	ASSERT_TRUE(become(USER_A));
	if (!enter_user_namespace(USER_A))
		SKIP(return, "no user namespaces for users: %s", strerror(errno));
	ASSERT_EQ(0, get_info(self->inner, fd, &info));
	EXPECT_EQ(0, info.uid);
	EXPECT_EQ(0, info.gid);
	ASSERT_EQ(0, get_info(self->inner, other, &info));
	EXPECT_EQ(65534, info.uid);
	EXPECT_EQ(65534, info.gid);
}

TEST_F(namespaces, root_of_a_user_namespace_has_no_power_outside)
{
	int fd = create(self->inner, PAGE, "inner");
	__u64 id = id_of(self->inner, fd);
	struct tshare_list_entry entry;
	struct tshare_info info;

	ASSERT_NE(0, id);
	ASSERT_TRUE(become(USER_A));
	if (!enter_user_namespace(USER_A))
		SKIP(return, "no user namespaces for users: %s", strerror(errno));
	EXPECT_EQ(-EACCES, open_name(self->inner, "inner", 0));
	EXPECT_EQ(-EPERM, unlink_name(self->inner, "inner"));
	EXPECT_EQ(-ENOENT, open_id(self->outer, id, 0));
	EXPECT_EQ(-EPERM, do_list(self->inner, TSHARE_LIST_ALL, &entry, 1));
	EXPECT_EQ(0, listed(self->inner, 0, id));
	ASSERT_EQ(0, get_info(self->inner, fd, &info));
	EXPECT_EQ(0, info.region_flags & TSHARE_REGION_PHYS);
	EXPECT_EQ(0, info.phys_addr);
}

TEST_F(namespaces, ids_do_not_cross_with_cap_sys_admin_of_their_user_namespace)
{
	int first, second;
	__u64 id;

	if (!enter_user_namespace_of_a())
		SKIP(return, "no user namespaces for users: %s", strerror(errno));
	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	first = open_device();
	id = id_of(first, create(first, PAGE, "first"));
	ASSERT_NE(0, id);
	ASSERT_EQ(0, unshare(CLONE_NEWIPC));
	second = open_device();
	ASSERT_LE(0, second);
	EXPECT_EQ(-ENOENT, open_id(second, id, 0));
	EXPECT_EQ(-ENOENT, unlink_id(second, id));
	EXPECT_EQ(0, unlink_id(first, id));
}

static void __attribute__((constructor(101))) act_as_another_program(int argc, char **argv)
{
	if (argc == 1 && !strcmp(argv[0], "mapper"))
		_exit(mapper());
	if (argc == 2 && !strcmp(argv[0], "opener"))
		_exit(opener(argv[1]));
}

TEST_HARNESS_MAIN
