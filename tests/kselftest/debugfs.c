// SPDX-License-Identifier: GPL-2.0-only
/* What debugfs shows root of each region. */
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "driver/importer.h"
#include "drm.h"
#include "harness.h"

#define REGIONS "/sys/kernel/debug/tshare/regions"
#define HEAD "id size uid pid users references mappings attachments rung node flags name\n"

static void __attribute__((constructor)) need_debugfs(void)
{
	if (access("/sys/kernel/debug/.", F_OK))
		ksft_exit_skip("the kernel has no debugfs\n");
}

/* A line, and the devices in the lines behind it. */
struct shown {
	unsigned long long id, size;
	int uid, pid, users, references, mappings, attachments, node;
	char rung[16], flags[64], name[128];
	char devices[256];
};

/* What is shown of the region @id; with nothing but zeros if it isn't. */
static struct shown shown(unsigned long long id)
{
	FILE *file = fopen(REGIONS, "re");
	struct shown found = {}, now;
	bool here = false;
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		if (*line == '\t') {
			if (here)
				strcat(found.devices, line + 1);
			continue;
		}
		now = (struct shown){};
		here = sscanf(line, "%llu %llu %d %d %d %d %d %d %15s %d %63s %127[^\n]", &now.id,
			      &now.size, &now.uid, &now.pid, &now.users, &now.references,
			      &now.mappings, &now.attachments, now.rung, &now.node, now.flags,
			      now.name) >= 11 && now.id == id;
		if (here)
			found = now;
	}
	if (file)
		fclose(file);
	return found;
}

FIXTURE(debugfs)
{
	int dev;
};

FIXTURE_SETUP(debugfs)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
}

FIXTURE_TEARDOWN(debugfs)
{
	close(self->dev);
}

TEST_F(debugfs, regions_are_for_root_alone)
{
	struct stat stat_buf;

	ASSERT_EQ(0, stat(REGIONS, &stat_buf));
	EXPECT_EQ(0400, stat_buf.st_mode & 07777);
	EXPECT_EQ(0, stat_buf.st_uid);
}

TEST_F(debugfs, head_names_the_columns)
{
	FILE *file = fopen(REGIONS, "re");
	char line[512];

	ASSERT_NE(NULL, file);
	ASSERT_NE(NULL, fgets(line, sizeof(line), file));
	EXPECT_STREQ(HEAD, line);
	fclose(file);
}

TEST_F(debugfs, region_is_shown)
{
	struct tshare_create args = create_args(3 * PAGE, "shown");
	struct tshare_info info;
	struct shown line;
	int fd;

	args.flags = TSHARE_CREATE_PERSIST | TSHARE_CREATE_DMA32;
	ASSERT_TRUE(act_as_user(USER_A));
	fd = do_create(self->dev, &args);
	ASSERT_TRUE(act_as_root());
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, get_info(self->dev, fd, &info));
	line = shown(args.id);
	EXPECT_EQ(3 * PAGE, line.size);
	EXPECT_EQ(USER_A, line.uid);
	EXPECT_EQ(getpid(), line.pid);
	EXPECT_EQ(1, line.users);
	EXPECT_EQ(2, line.references); /* the dma-buf's and the name's */
	EXPECT_EQ(0, line.mappings);
	EXPECT_EQ(0, line.attachments);
	EXPECT_STREQ("buddy", line.rung);
	EXPECT_EQ(info.node, line.node);
	EXPECT_STREQ("persist,dma32", line.flags);
	EXPECT_STREQ("shown", line.name);
	EXPECT_EQ(0, unlink_name(self->dev, "shown"));
	line = shown(args.id);
	EXPECT_EQ(args.id, line.id);
	EXPECT_STREQ("", line.name);
	close(fd);
	EXPECT_EQ(0, shown(args.id).id);
}

TEST_F(debugfs, rung_is_shown)
{
	int small = create(self->dev, PAGE, NULL), large = create(self->dev, 8 * MIB, NULL);

	EXPECT_STREQ("buddy", shown(id_of(self->dev, small)).rung);
	EXPECT_STREQ("contig", shown(id_of(self->dev, large)).rung);
}

TEST_F(debugfs, openers_are_users)
{
	int fd = create(self->dev, PAGE, "opened"), again, part;
	__u64 id = id_of(self->dev, fd);

	ASSERT_LE(0, fd);
	again = open_name(self->dev, "opened", 0);
	part = export_range(self->dev, fd, 0, PAGE, 0);
	EXPECT_EQ(3, shown(id).users);
	EXPECT_EQ(4, shown(id).references);
	close(again);
	close(part);
	EXPECT_EQ(1, shown(id).users);
}

static int count_in_child(void *arg)
{
	/* Its parent's area, and its own copy of that. */
	return shown(*(__u64 *)arg).mappings;
}

TEST_F(debugfs, mappings_are_counted)
{
	int fd = create(self->dev, 4 * PAGE, NULL);
	__u64 id = id_of(self->dev, fd);
	char *mem;

	ASSERT_LE(0, fd);
	mem = map(fd, 4 * PAGE, RW);
	ASSERT_NE(MAP_FAILED, mem);
	EXPECT_EQ(1, shown(id).mappings);
	EXPECT_EQ(2, in_child(count_in_child, &id));
	EXPECT_EQ(1, shown(id).mappings);
	EXPECT_EQ(0, munmap(mem + PAGE, PAGE));
	EXPECT_EQ(2, shown(id).mappings);
	EXPECT_EQ(0, munmap(mem, 4 * PAGE));
	EXPECT_EQ(0, shown(id).mappings);
}

TEST_F(debugfs, mappings_that_are_refused_do_not_count)
{
	int fd = create(self->dev, PAGE, NULL);

	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, 0));
	EXPECT_EQ(MAP_FAILED, map(fd, PAGE, RW | PROT_EXEC));
	EXPECT_EQ(MAP_FAILED, map(fd, 2 * PAGE, RW));
	EXPECT_EQ(0, shown(id_of(self->dev, fd)).mappings);
}

static int create_and_exit(void *arg)
{
	return create_persistent(open_device(), PAGE, arg) < 0;
}

TEST_F(debugfs, pid_of_a_process_that_has_ended_is_0)
{
	int fd;

	ASSERT_EQ(0, in_child(create_and_exit, "left"));
	fd = open_name(self->dev, "left", 0);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, shown(id_of(self->dev, fd)).pid);
	EXPECT_STREQ("left", shown(id_of(self->dev, fd)).name);
	EXPECT_EQ(0, unlink_name(self->dev, "left"));
}

/* In a PID namespace of its own. */
static int see_pids(void *arg)
{
	int dev = open_device(), fd = create(dev, PAGE, NULL);

	if (getpid() != 1 || shown(id_of(dev, fd)).pid != 1)
		return 1;
	return shown(*(__u64 *)arg).pid ? 2 : 0;
}

TEST_F(debugfs, pid_is_the_readers)
{
	int fd = create(self->dev, PAGE, NULL);
	__u64 id = id_of(self->dev, fd);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, unshare(CLONE_NEWPID));
	EXPECT_EQ(0, in_child(see_pids, &id));
	EXPECT_EQ(getpid(), shown(id).pid);
}

/* A child with the number @pid, which no process has; it ends at once, or waits. */
static pid_t fork_as(pid_t pid, bool wait)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)&pid,
		.set_tid_size = 1,
	};
	pid_t child = syscall(SYS_clone3, &args, sizeof(args));

	if (!child) {
		if (wait)
			pause();
		_exit(create_persistent(open_device(), PAGE, "reused") < 0);
	}
	return child;
}

TEST_F(debugfs, pid_is_not_that_of_a_later_process)
{
	pid_t pid = fork();
	int status, fd;

	if (!pid)
		_exit(0);
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	ASSERT_EQ(pid, fork_as(pid, false));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	fd = open_name(self->dev, "reused", 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(pid, fork_as(pid, true));
	EXPECT_EQ(0, shown(id_of(self->dev, fd)).pid);
	kill(pid, SIGKILL);
	EXPECT_EQ(pid, waitpid(pid, NULL, 0));
	EXPECT_EQ(0, unlink_name(self->dev, "reused"));
}

#define PID_NAMESPACES "/proc/sys/user/max_pid_namespaces"
#define NONE_LEFT      77

static int create_persistent_if_named(void *name)
{
	return name && create_persistent(open_device(), PAGE, name) < 0;
}

/* Makes a region, of that name if it isn't NULL, as the first process of a PID namespace. */
static int enter_a_pid_namespace(void *name)
{
	if (unshare(CLONE_NEWPID))
		return errno == ENOSPC ? NONE_LEFT : 1;
	return in_child(create_persistent_if_named, name);
}

/* A namespace is freed in the background. */
static int enter_the_only_pid_namespace(void *name)
{
	int tries, result = NONE_LEFT;

	for (tries = 0; tries < 500 && result == NONE_LEFT; tries++) {
		result = in_child(enter_a_pid_namespace, name);
		usleep(10000);
	}
	return result;
}

TEST_F(debugfs, creator_keeps_no_pid_namespace)
{
	long limit = read_number(PID_NAMESPACES);

	if (limit <= 0)
		SKIP(return, "no PID namespaces");
	ASSERT_TRUE(write_file(PID_NAMESPACES, "1"));
	EXPECT_EQ(0, enter_the_only_pid_namespace(NULL));
	EXPECT_EQ(0, enter_the_only_pid_namespace("held"));
	EXPECT_EQ(0, enter_the_only_pid_namespace(NULL));
	EXPECT_EQ(0, unlink_name(self->dev, "held"));
	EXPECT_TRUE(write_file(PID_NAMESPACES, "%ld", limit));
}

static int attach(int importer, int fd)
{
	struct importer_attach args = {
		.fd = fd,
		.direction = IMPORTER_TO_DEVICE,
		.segment_max = 64 * KIB,
		.boundary = ~0U,
	};

	return xioctl(importer, IMPORTER_IOCTL_ATTACH, &args);
}

TEST_F(debugfs, devices_are_shown)
{
	int importer = open(IMPORTER, O_RDWR | O_CLOEXEC), second;
	int fd = create(self->dev, 4 * PAGE, NULL), part;
	__u64 id = id_of(self->dev, fd);
	struct shown line;
	char *newline;

	if (importer < 0)
		SKIP(return, "no %s: %m", IMPORTER);
	second = open(IMPORTER, O_RDWR | O_CLOEXEC);
	part = export_range(self->dev, fd, PAGE, PAGE, 0);
	EXPECT_STREQ("", shown(id).devices);
	ASSERT_EQ(0, attach(importer, fd));
	line = shown(id);
	EXPECT_EQ(1, line.attachments);
	/* The name of a PCI device, such as 0000:00:05.0. */
	newline = strchr(line.devices, '\n');
	ASSERT_NE(NULL, newline);
	EXPECT_EQ(0, newline[1]);
	*newline = 0;
	EXPECT_EQ(strlen(line.devices), strspn(line.devices, "0123456789abcdef:."));
	/* Through a range, too. */
	ASSERT_EQ(0, attach(second, part));
	EXPECT_EQ(2, shown(id).attachments);
	ASSERT_EQ(0, xioctl(importer, IMPORTER_IOCTL_DETACH, NULL));
	EXPECT_EQ(1, shown(id).attachments);
	close(second);
	EXPECT_EQ(0, shown(id).attachments);
	close(importer);
}

TEST_F(debugfs, foreign_region_is_shown)
{
	struct tshare_create args = create_args(0, "foreign");
	int drm = open_drm("vgem");
	struct shown line;

	if (drm < 0)
		SKIP(return, "the kernel has no vgem");
	args.flags = TSHARE_CREATE_DMABUF;
	args.fd = create_gem(drm, 4, DRM_RDWR);
	ASSERT_LE(0, args.fd);
	ASSERT_LE(0, do_create(self->dev, &args));
	line = shown(args.id);
	EXPECT_EQ(4 * PAGE, line.size);
	EXPECT_STREQ("dmabuf", line.rung);
	EXPECT_STREQ("dmabuf", line.flags);
	EXPECT_EQ(-1, line.node);
	close(drm);
}

TEST_F(debugfs, name_makes_no_lines)
{
	int fd = create(self->dev, PAGE, "two\nlines");

	EXPECT_STREQ("two?lines", shown(id_of(self->dev, fd)).name);
}

#define MANY 300

/* Through a buffer that holds few lines, while regions come and go between the reads. */
TEST_F(debugfs, each_region_is_shown_once)
{
	unsigned long long first, last, id, before = 0;
	int fds[MANY], i, count = 0, dir;
	char line[512];
	FILE *file;

	for (i = 0; i < MANY; i++) {
		fds[i] = create(self->dev, PAGE, NULL);
		ASSERT_LE(0, fds[i]);
	}
	first = id_of(self->dev, fds[0]);
	last = id_of(self->dev, fds[MANY - 1]);
	dir = open(REGIONS, O_RDONLY | O_CLOEXEC);
	file = fdopen(dir, "r");
	ASSERT_NE(NULL, file);
	ASSERT_EQ(0, setvbuf(file, NULL, _IOFBF, 128));
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llu ", &id) != 1)
			continue;
		EXPECT_LT(before, id);
		before = id;
		count += id >= first && id <= last && !((id - first) % 2);
		/* Every second region goes before it is reached, or just after. */
		if (id >= first && id < last && !((id - first) % 2))
			close(fds[id - first + 1]);
	}
	fclose(file);
	EXPECT_EQ(MANY / 2, count);
}

TEST_HARNESS_MAIN
