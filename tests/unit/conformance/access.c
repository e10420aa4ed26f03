// SPDX-License-Identifier: MIT
/* The access that a mode grants to other users; needs root, to become them. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../util.h"

struct access {
	const char *name;
	unsigned int uid;
	bool readonly;
	int err; /* expected access */
};

static int try_open(void *data)
{
	const struct access *access = data;
	struct tshare_region *region;
	struct tshare_ctx *own;
	int err;

	/* The device may be only for its group: open it before dropping root. */
	if (tshare_ctx_new(NULL, &own) || !become(access->uid))
		return 2;
	err = tshare_region_open(own, access->name, access->readonly ? &readonly_options : NULL,
				 &region);
	return err == access->err ? 0 : 1;
}

/* The access of a user to a region of root, or of the first user if @own. */
static bool access_is(const char *name, unsigned int uid, bool readonly, int err)
{
	struct access access = { name, uid, readonly, err };

	return !in_child(try_open, &access);
}

static void need_root(void)
{
	if (geteuid())
		SKIP("needs root, to be two users");
}

TEST(others_are_denied_what_the_mode_denies)
{
	const char *name = unique("private");
	struct tshare_region *region;

	need_root();
	region = new_region_mode(name, 0600);
	CHECK(access_is(name, USER_ONE, true, -EACCES));
	CHECK(access_is(name, USER_ONE, false, -EACCES));
	tshare_region_unref(region);
}

TEST(others_are_granted_what_the_mode_grants)
{
	const char *readable = unique("readable"), *writable = unique("writable");
	struct tshare_region *one, *two;

	need_root();
	one = new_region_mode(readable, 0604);
	two = new_region_mode(writable, 0606);
	CHECK(access_is(readable, USER_ONE, true, 0));
	CHECK(access_is(readable, USER_ONE, false, -EACCES));
	CHECK(access_is(writable, USER_ONE, true, 0));
	CHECK(access_is(writable, USER_ONE, false, 0));
	tshare_region_unref(one);
	tshare_region_unref(two);
}

struct owned {
	const char *name;
	uint32_t mode;
	struct steps steps;
};

/* Makes a region as USER_ONE, and keeps it until it receives a byte. */
static int own_region(void *data)
{
	struct tshare_options options = { .size = sizeof(options) };
	struct owned *owned = data;
	struct tshare_region *region;
	struct tshare_ctx *own;

	options.mode = owned->mode;
	if (tshare_ctx_new(NULL, &own) || !become(USER_ONE) ||
	    tshare_region_create(own, owned->name, 1, NULL, 0, &options, &region))
		return 1;
	send_byte(owned->steps.ends[0]);
	await_byte(owned->steps.ends[0]);
	tshare_region_unref(region);
	tshare_ctx_unref(own);
	return 0;
}

static pid_t start_owner(struct owned *owned)
{
	pid_t pid;

	CHECK(steps_open(&owned->steps));
	pid = fork();
	if (!pid) {
		close(owned->steps.ends[1]);
		_exit(own_region(owned));
	}
	close(owned->steps.ends[0]);
	CHECK(await_byte(owned->steps.ends[1]));
	return pid;
}

static void stop_owner(struct owned *owned, pid_t pid)
{
	CHECK(send_byte(owned->steps.ends[1]));
	CHECK(waitpid(pid, NULL, 0) == pid);
	close(owned->steps.ends[1]);
}

TEST(an_owner_is_held_to_the_mode_too)
{
	struct owned owned = { unique("owned"), 0466, { { 0 } } };
	pid_t pid;

	need_root();
	pid = start_owner(&owned);
	CHECK(access_is(owned.name, USER_ONE, true, 0));
	CHECK(access_is(owned.name, USER_ONE, false, -EACCES));
	CHECK(access_is(owned.name, USER_TWO, false, 0));
	stop_owner(&owned, pid);
	CHECK(!exists(owned.name));
}

TEST(a_name_without_any_permission_goes_with_its_maker)
{
	struct owned owned = { unique("closed"), TSHARE_MODE_NONE, { { 0 } } };
	pid_t pid;

	need_root();
	pid = start_owner(&owned);
	CHECK(access_is(owned.name, USER_ONE, true, -EACCES));
	CHECK(exists(owned.name));
	stop_owner(&owned, pid);
	CHECK(!exists(owned.name));
}

TEST(root_may_open_what_others_have_closed)
{
	struct owned owned = { unique("root"), 0600, { { 0 } } };
	struct tshare_region *region;
	struct tshare_region_info info = { .size = sizeof(info) };
	pid_t pid;

	need_root();
	pid = start_owner(&owned);
	CHECK(!tshare_region_open(ctx, owned.name, NULL, &region));
	CHECK(!tshare_region_get_info(region, &info));
	CHECK(info.uid == USER_ONE && info.gid == USER_ONE);
	tshare_region_unref(region);
	stop_owner(&owned, pid);
}

static int try_unlink(void *data)
{
	const struct access *access = data;
	struct tshare_ctx *own;

	if (tshare_ctx_new(NULL, &own) || !become(access->uid))
		return 2;
	return tshare_ctx_unlink(own, access->name) == access->err ? 0 : 1;
}

TEST(only_its_owner_may_unlink_a_name)
{
	struct owned owned = { unique("unlinked"), 0666, { { 0 } } };
	struct access access = { owned.name, USER_TWO, false, -EPERM };
	pid_t pid;

	need_root();
	pid = start_owner(&owned);
	CHECK(!in_child(try_unlink, &access));
	CHECK(exists(owned.name));
	access = (struct access){ owned.name, USER_ONE, false, 0 };
	CHECK(!in_child(try_unlink, &access));
	CHECK(!exists(owned.name));
	stop_owner(&owned, pid);
}

TEST(root_may_unlink_any_name)
{
	struct owned owned = { unique("unlinked"), 0600, { { 0 } } };
	pid_t pid;

	need_root();
	pid = start_owner(&owned);
	CHECK(!tshare_ctx_unlink(ctx, owned.name));
	CHECK(!exists(owned.name));
	stop_owner(&owned, pid);
}

/* Exit status of a child that may not make a user namespace. */
enum { NO_NAMESPACE = 77 };

static bool write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t length = strlen(text);

	return fd >= 0 && write(fd, text, length) == length && !close(fd);
}

/* Becomes root in a namespace that has no other user, and is USER_ONE to all others. */
static bool become_root_of_a_namespace(void)
{
	char map[32];

	snprintf(map, sizeof(map), "0 %d 1", USER_ONE);
	return !unshare(CLONE_NEWUSER) && write_to("/proc/self/setgroups", "deny") &&
	       write_to("/proc/self/uid_map", map) && write_to("/proc/self/gid_map", map) &&
	       !geteuid();
}

static int act_as_root_of_a_namespace(void *name)
{
	struct tshare_options options = { .size = sizeof(options), .flags = TSHARE_REPLACE };
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (tshare_ctx_new(NULL, &own) || !become(USER_ONE) || prctl(PR_SET_DUMPABLE, 1))
		return 1;
	if (!become_root_of_a_namespace())
		return NO_NAMESPACE;
	if (tshare_region_open(own, name, NULL, &region) != -EACCES)
		return 2;
	if (tshare_ctx_unlink(own, name) != -EPERM)
		return 3;
	if (tshare_region_create(own, name, 1, NULL, 0, &options, &region) != -EPERM)
		return 4;
	options.flags |= TSHARE_DRAFT;
	return tshare_region_create(own, name, 1, NULL, 0, &options, &region) == -EPERM ? 0 : 5;
}

TEST(root_of_a_user_namespace_is_another_user_to_those_outside)
{
	const char *name = unique("outside");
	struct tshare_region *region;
	int status;

	need_root();
	region = new_region_mode(name, 0644);
	status = in_child(act_as_root_of_a_namespace, (void *)(uintptr_t)name);
	CHECK(exists(name));
	tshare_region_unref(region);
	if (status == NO_NAMESPACE)
		SKIP("may not make namespaces");
	CHECK(!status);
}

/* Returns how many regions of that name the user sees, none of which it may write. */
static int count_listed(unsigned int uid, const char *name)
{
	struct found found = { .name = name };
	struct tshare_ctx *own;

	if (tshare_ctx_new(NULL, &own) || !become(uid) || tshare_ctx_list(own, find_listed, &found))
		return 2;
	if (found.count && !(found.info.flags & TSHARE_READONLY))
		return 3;
	return found.count;
}

static int list_as_user(void *data)
{
	return count_listed(USER_TWO, data);
}

static int list_as_owner(void *data)
{
	return count_listed(USER_ONE, data);
}

TEST(list_leaves_out_what_may_not_be_read)
{
	struct owned closed = { unique("closed"), 0600, { { 0 } } };
	struct owned open = { unique("open"), 0644, { { 0 } } };
	pid_t pids[2];

	need_root();
	pids[0] = start_owner(&closed);
	pids[1] = start_owner(&open);
	CHECK(in_child(list_as_user, (void *)(uintptr_t)closed.name) == 0);
	CHECK(in_child(list_as_user, (void *)(uintptr_t)open.name) == 1);
	stop_owner(&closed, pids[0]);
	stop_owner(&open, pids[1]);
}

TEST(list_shows_the_owner_what_it_may_not_read)
{
	struct owned closed = { unique("closed"), TSHARE_MODE_NONE, { { 0 } } };
	struct owned write_only = { unique("write-only"), 0266, { { 0 } } };
	pid_t pids[2];

	need_root();
	pids[0] = start_owner(&closed);
	pids[1] = start_owner(&write_only);
	CHECK(in_child(list_as_owner, (void *)(uintptr_t)closed.name) == 1);
	CHECK(in_child(list_as_owner, (void *)(uintptr_t)write_only.name) == 1);
	CHECK(in_child(list_as_user, (void *)(uintptr_t)closed.name) == 0);
	stop_owner(&closed, pids[0]);
	stop_owner(&write_only, pids[1]);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
