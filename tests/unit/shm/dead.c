// SPDX-License-Identifier: MIT
/* Files of processes that ended without removing their names, and their removal. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../shm.h"

static int create_and_be_killed(void *name)
{
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (!tshare_ctx_new(NULL, &own) &&
	    !tshare_region_create(own, name, 1, NULL, 0, NULL, &region))
		kill(getpid(), SIGKILL);
	return 1;
}

static void leave_dead(char *name)
{
	CHECK(in_child(create_and_be_killed, name) == -1);
	CHECK(has_file(name));
}

TEST(list_removes_files_of_dead_makers)
{
	char name[] = "dead-listed";

	leave_dead(name);
	CHECK(!tshare_ctx_list(ctx, ignore, NULL));
	CHECK(!has_file(name));
}

TEST(the_first_create_removes_files_of_dead_makers)
{
	char name[] = "dead-swept", persists[] = "persists";
	struct tshare_options options = { .size = sizeof(options) };
	struct tshare_region *living, *region;

	options.lifetime = TSHARE_LIFETIME_PERSIST;
	living = new_region("lives");
	leave_dead(name);
	CHECK(!tshare_region_create(ctx, persists, 1, NULL, 0, &options, &region));
	tshare_region_unref(region);
	CHECK(has_file(name));
	close_context();
	open_context();
	CHECK(has_file(name));
	CHECK(!tshare_region_create(ctx, NULL, 1, NULL, 0, NULL, &region));
	tshare_region_unref(region);
	CHECK(!has_file(name));
	CHECK(has_file(persists));
	CHECK(has_file("lives"));
	CHECK(!tshare_ctx_unlink(ctx, persists));
	tshare_region_unref(living);
}

TEST(a_later_create_removes_files_of_dead_makers)
{
	char name[] = "dead-later";
	int i;

	tshare_region_unref(new_region("first"));
	leave_dead(name);
	/* The next sweep is a second after the last one, or later if that took long. */
	for (i = 0; i < 100 && has_home(name); i++) {
		usleep(100000);
		tshare_region_unref(new_region(NULL));
	}
	CHECK(!has_home(name));
}

static int create_and_exit(void *name)
{
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (tshare_ctx_new(NULL, &own) ||
	    tshare_region_create(own, name, 1, NULL, 0, NULL, &region))
		return 1;
	exit(0);
}

TEST(exit_removes_names)
{
	char name[] = "exited";

	CHECK(!in_child(create_and_exit, name));
	CHECK(!has_home(name));
}

static int just_exit(void *unused)
{
	(void)unused;
	exit(0);
}

TEST(a_childs_exit_leaves_its_parents_names)
{
	struct tshare_region *region = new_victim("parents");

	CHECK(!in_child(just_exit, NULL));
	CHECK(!open_error("parents"));
	tshare_region_unref(region);
}

/* Exit status of a child that may not mount. */
enum { NO_MOUNT = 77 };

static bool set_inodes(unsigned long flags, unsigned long count)
{
	char options[64];

	snprintf(options, sizeof(options), "mode=700,nr_inodes=%lu", count);
	return !mount("none", directory, "tmpfs", flags, options);
}

/* Lets the directory have that many inodes besides those in use. */
static bool leave_inodes(unsigned int count)
{
	struct statvfs vfs;

	return !statvfs(directory, &vfs) &&
	       set_inodes(MS_REMOUNT, vfs.f_files - vfs.f_ffree + count);
}

static int create_several_and_be_killed(void *unused)
{
	struct tshare_region *region;
	char name[] = "dead-0";

	(void)unused;
	for (; name[5] < '8'; name[5]++)
		if (tshare_region_create(ctx, name, 1, NULL, 0, NULL, &region))
			return 1;
	kill(getpid(), SIGKILL);
	return 1;
}

static bool leave_to_the_dead(unsigned int inodes)
{
	return set_inodes(MS_REMOUNT, 1000) && in_child(create_several_and_be_killed, NULL) == -1 &&
	       leave_inodes(inodes);
}

struct scarce {
	unsigned int inodes;
	uint32_t flags;
};

static int replace_where_the_dead_have_the_inodes(void *data)
{
	const struct scarce *scarce = data;
	const struct tshare_options options = {
		.size = sizeof(options),
		.flags = TSHARE_REPLACE | scarce->flags,
	};
	struct tshare_region *region;

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    !set_inodes(0, 1000))
		return NO_MOUNT;
	close_context();
	open_context();
	new_region("scarce");
	if (!leave_to_the_dead(scarce->inodes) ||
	    tshare_region_create(ctx, "scarce", 1, NULL, 0, &options, &region))
		return 1;
	if (scarce->flags &&
	    (!leave_to_the_dead(scarce->inodes) || tshare_region_finish(region, 0)))
		return 2;
	/* Now the living have them. */
	if (tshare_ctx_list(ctx, ignore, NULL) || !leave_inodes(0) ||
	    tshare_region_create(ctx, "scarce", 1, NULL, 0, &options, &region) != -ENOMEM)
		return 3;
	return !error_says("no room for another file") || open_error("scarce");
}

TEST(create_and_finish_without_an_inode_remove_files_of_dead_makers)
{
	struct scarce scarce;
	int status;

	for (scarce.inodes = 0; scarce.inodes < 6; scarce.inodes++) {
		scarce.flags = 0;
		status = in_child(replace_where_the_dead_have_the_inodes, &scarce);
		if (status == NO_MOUNT)
			SKIP("needs to be allowed to mount a tmpfs");
		CHECK(!status);
		scarce.flags = TSHARE_DRAFT;
		CHECK(!in_child(replace_where_the_dead_have_the_inodes, &scarce));
	}
}

TEST(files_of_other_versions_are_kept)
{
	struct tshare_region *region;
	char name[] = "dead-other";
	uint32_t version = 5;

	leave_dead(name);
	write_at(name, HEADER(version), &version, sizeof(version));
	CHECK(open_error(name) == -EPROTO);
	CHECK(!tshare_ctx_list(ctx, ignore, NULL));
	CHECK(tshare_region_create(ctx, name, 1, NULL, 0, NULL, &region) == -EEXIST);
	CHECK(has_file(name));
	CHECK(!tshare_ctx_unlink(ctx, name));
}

TEST(open_removes_files_of_dead_makers)
{
	char name[] = "dead-opened";

	leave_dead(name);
	CHECK(open_error(name) == -ENOENT);
	CHECK(!has_file(name));
}

TEST(unlink_does_not_find_names_of_dead_makers)
{
	char name[] = "dead-unlinked";

	leave_dead(name);
	CHECK(tshare_ctx_unlink(ctx, name) == -ENOENT);
	CHECK(!has_file(name));
}

static int become_and_create(void *name)
{
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (tshare_ctx_new(NULL, &own) || !become(USER_ONE))
		return 2;
	return tshare_region_create(own, name, 1, NULL, 0, NULL, &region) == -EEXIST &&
			       strstr(tshare_error_get(), "only its user can remove it") ?
		       0 :
		       1;
}

static int leave_readable(void *name)
{
	struct tshare_options options = { .size = sizeof(options) };
	struct tshare_region *region;
	struct tshare_ctx *own;

	options.mode = 0666;
	if (!tshare_ctx_new(NULL, &own) &&
	    !tshare_region_create(own, name, 1, NULL, 0, &options, &region))
		kill(getpid(), SIGKILL);
	return 1;
}

TEST(create_reports_a_dead_name_that_only_another_user_can_remove)
{
	char name[] = "dead-other";

	if (geteuid())
		SKIP("needs root, to be two users");
	CHECK(!chmod(directory, 01777));
	CHECK(in_child(leave_readable, name) == -1);
	CHECK(!in_child(become_and_create, name));
	CHECK(!chmod(directory, 0700));
	CHECK(tshare_ctx_unlink(ctx, name) == -ENOENT);
}

TEST(a_readers_lock_keeps_no_dead_name)
{
	struct flock whole_file = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	char name[] = "dead-locked";
	int fd;

	CHECK(in_child(leave_readable, name) == -1);
	fd = open(path_of(name), O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(!fcntl(fd, F_OFD_SETLK, &whole_file));
	tshare_region_unref(new_region(name));
	CHECK(!open_error(name));
	close(fd);
	CHECK(!tshare_ctx_unlink(ctx, name));
}

/* Makes a name that is free or a dead maker's, and is killed; 0 unless another had it. */
static int make_and_die(void *name)
{
	struct tshare_region *region, *found;
	struct tshare_ctx *own;
	int err;

	if (tshare_ctx_new(NULL, &own))
		return 1;
	err = tshare_region_create(own, name, 1, NULL, 0, NULL, &region);
	if (err)
		_exit(err != -EEXIST);
	usleep(200);
	if (tshare_region_open(ctx, name, NULL, &found))
		_exit(2);
	_exit(tshare_region_get_id(found) != tshare_region_get_id(region));
}

static int make_and_die_often(void *name)
{
	int i;

	alarm(HANG_SECONDS);
	for (i = 0; i < 100; i++)
		if (in_child(make_and_die, name))
			return 1;
	return 0;
}

TEST(a_sweep_for_the_dead_keeps_the_living)
{
	char name[] = "race";
	pid_t pids[4];
	int i, status, failed = 0;

	for (i = 0; i < 4; i++) {
		pids[i] = fork();
		if (!pids[i])
			_exit(make_and_die_often(name));
	}
	for (i = 0; i < 4; i++)
		failed += waitpid(pids[i], &status, 0) != pids[i] || status;
	CHECK(!failed);
	CHECK(open_error(name) == -ENOENT);
	CHECK(!has_home(name));
}

/* Removes files of dead makers, until it is killed. */
static int sweep_for_ever(void)
{
	struct tshare_region *region;
	struct tshare_ctx *own;

	alarm(HANG_SECONDS);
	while (!tshare_ctx_new(NULL, &own)) {
		if (tshare_region_create(own, NULL, 1, NULL, 0, NULL, &region))
			return 1;
		tshare_region_unref(region);
		tshare_ctx_unref(own);
	}
	return 1;
}

TEST(a_sweep_for_drafts_keeps_persistent_regions)
{
	struct tshare_options options = { .size = sizeof(options) };
	char name[] = "was-a-draft";
	struct tshare_region *region;
	int i, times = rounds(5000), lost = 0;
	pid_t pids[2];

	for (i = 0; i < 2; i++) {
		pids[i] = fork();
		if (!pids[i])
			_exit(sweep_for_ever());
	}
	options.lifetime = TSHARE_LIFETIME_PERSIST;
	for (i = 0; i < times; i++) {
		CHECK(!tshare_region_create(ctx, name, 1, NULL, 0, &options, &region));
		tshare_region_unref(region);
		lost += !!tshare_ctx_unlink(ctx, name);
	}
	for (i = 0; i < 2; i++)
		CHECK(!kill(pids[i], SIGKILL) && waitpid(pids[i], NULL, 0) == pids[i]);
	CHECK(!lost);
}

TEST(a_draft_of_a_dead_maker_is_removed)
{
	char draft[sizeof(directory) + 32];
	struct tshare_region *region;
	char name[] = "dead-draft";
	struct stat st;

	leave_dead(name);
	snprintf(draft, sizeof(draft), "%s/.tshare.0123456789abcdef", directory);
	CHECK(!rename(home_of(name), draft));
	close_context();
	open_context();
	CHECK(!tshare_region_create(ctx, NULL, 1, NULL, 0, NULL, &region));
	tshare_region_unref(region);
	CHECK(lstat(draft, &st) && errno == ENOENT);
}

TEST(the_context_removes_its_files)
{
	struct tshare_region *region = new_victim("closed");

	CHECK(has_file("closed"));
	tshare_region_unref(region);
	close_context();
	CHECK(!has_home("closed"));
}

TEST(the_context_removes_files_that_others_have_damaged)
{
	struct tshare_region *region = new_victim("damaged");

	write_at("damaged", HEADER(magic), "T", 1);
	tshare_region_unref(region);
	close_context();
	CHECK(!has_file("damaged"));
}

int main(void)
{
	return shm_main();
}
