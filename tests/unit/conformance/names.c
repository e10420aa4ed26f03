// SPDX-License-Identifier: MIT
/* The lifetime of names, and their owners. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../util.h"

TEST(a_name_outlives_its_makers_region)
{
	const char *name = unique("stays");

	tshare_region_unref(new_region(name));
	CHECK(exists(name));
}

TEST(a_name_goes_with_its_context)
{
	const char *name = unique("goes");

	tshare_region_unref(new_region(name));
	close_context();
	CHECK(!exists(name));
}

TEST(a_region_keeps_its_context_and_so_the_name)
{
	const char *name = unique("kept");
	struct tshare_region *region = new_region(name);

	close_context();
	CHECK(exists(name));
	tshare_region_unref(region);
	CHECK(!exists(name));
}

static int create_and_be_killed(void *name)
{
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (!tshare_ctx_new(NULL, &own) &&
	    !tshare_region_create(own, name, 1, NULL, 0, NULL, &region))
		kill(getpid(), SIGKILL);
	return 1;
}

TEST(a_name_goes_when_its_maker_is_killed)
{
	const char *name = unique("killed");

	CHECK(in_child(create_and_be_killed, (void *)(uintptr_t)name) == -1);
	CHECK(!exists(name));
	tshare_region_unref(new_region(name));
}

struct maker {
	const char *name;
	struct steps steps;
};

static int create_and_be_killed_later(void *data)
{
	struct maker *maker = data;
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (tshare_ctx_new(NULL, &own) ||
	    tshare_region_create(own, maker->name, 1, NULL, 0, NULL, &region))
		return 1;
	strcpy(tshare_region_get_data(region), "legacy");
	if (fork())
		kill(getpid(), SIGKILL);
	/* The maker's child keeps the name until it ends. */
	await_byte(maker->steps.ends[0]);
	return 0;
}

TEST(after_fork_a_name_lives_until_both_are_gone)
{
	struct maker maker = { .name = unique("forked") };
	int i;

	CHECK(steps_open(&maker.steps));
	CHECK(in_child(create_and_be_killed_later, &maker) == -1);
	CHECK(exists(maker.name));
	CHECK(send_byte(maker.steps.ends[1]));
	for (i = 0; i < 3000 && exists(maker.name); i++)
		usleep(20 * 1000);
	CHECK(!exists(maker.name));
	steps_close(&maker.steps);
}

static int close_inherited_context(void *data)
{
	tshare_region_unref(data);
	close_context();
	return 0;
}

TEST(a_child_that_closes_the_context_leaves_the_name_to_its_parent)
{
	const char *name = unique("parent");
	struct tshare_region *region = new_region(name);

	CHECK(!in_child(close_inherited_context, region));
	CHECK(exists(name));
	tshare_region_unref(region);
}

static int leave_persistent(void *name)
{
	struct tshare_options options = { .size = sizeof(options) };
	struct tshare_region *region;
	struct tshare_ctx *own;

	options.lifetime = TSHARE_LIFETIME_PERSIST;
	if (tshare_ctx_new(NULL, &own) ||
	    tshare_region_create(own, name, 1, NULL, 0, &options, &region))
		return 1;
	strcpy(tshare_region_get_data(region), "left");
	kill(getpid(), SIGKILL);
	return 2;
}

TEST(a_persistent_name_stays_until_it_is_unlinked)
{
	const char *name = unique("persist");
	struct tshare_region_info info = { .size = sizeof(info) };
	struct tshare_region *region;

	CHECK(in_child(leave_persistent, (void *)(uintptr_t)name) == -1);
	CHECK(!tshare_region_open(ctx, name, NULL, &region));
	CHECK(!strcmp(tshare_region_get_data(region), "left"));
	CHECK(!tshare_region_get_info(region, &info));
	CHECK(info.lifetime == TSHARE_LIFETIME_PERSIST);
	tshare_region_unref(region);
	CHECK(!tshare_ctx_unlink(ctx, name));
	CHECK(!exists(name));
}

TEST(unlink_frees_the_name)
{
	const char *name = unique("unlink");
	struct tshare_region *region = new_region(name), *next;
	uint64_t id = tshare_region_get_id(region);

	CHECK(!tshare_ctx_unlink(ctx, name));
	CHECK(!exists(name));
	CHECK(tshare_ctx_unlink(ctx, name) == -ENOENT);
	next = new_region(name);
	CHECK(tshare_region_get_id(next) != id);
	tshare_region_unref(region);
	tshare_region_unref(next);
}

TEST(unlink_rejects_invalid_names)
{
	CHECK(tshare_ctx_unlink(ctx, NULL) == -EINVAL);
	CHECK(tshare_ctx_unlink(ctx, "") == -EINVAL);
	CHECK(tshare_ctx_unlink(ctx, "a/b") == -EINVAL);
}

/* Leaves a persistent name in a new IPC namespace, which lives as long as the file returned. */
static int leave_in_namespace(const char *name)
{
	int own = open("/proc/self/ns/ipc", O_RDONLY | O_CLOEXEC), other = -1;

	if (own >= 0 && !unshare(CLONE_NEWIPC)) {
		other = open("/proc/self/ns/ipc", O_RDONLY | O_CLOEXEC);
		CHECK(in_child(leave_persistent, (void *)(uintptr_t)name) == -1);
		CHECK(!setns(own, CLONE_NEWIPC));
	}
	close(own);
	return other;
}

static int look_as_another_user(void *id)
{
	struct tshare_ctx *own;

	if (tshare_ctx_new(NULL, &own) || !become(USER_ONE))
		return 1;
	if (tshare_ctx_list_all(own, find_listed, &(struct found){ .name = "" }) != -EPERM ||
	    !error_says("CAP_SYS_ADMIN"))
		return 2;
	return tshare_ctx_unlink_id(own, *(uint64_t *)id) == -ENOENT ? 0 : 3;
}

TEST(a_name_in_another_namespace_is_found_and_unlinked)
{
	struct found found = { .name = unique("elsewhere") };
	const char *name = found.name;
	int namespace;

	if (!limits_of(ctx).dmabuf) {
		CHECK(tshare_ctx_list_all(ctx, find_listed, &found) == -EOPNOTSUPP);
		CHECK(tshare_ctx_unlink_id(ctx, 1) == -EOPNOTSUPP);
		return;
	}
	if (geteuid())
		SKIP("needs root, for a namespace");
	namespace = leave_in_namespace(name);
	CHECK(namespace >= 0);
	CHECK(!exists(name));
	CHECK(!tshare_ctx_list(ctx, find_listed, &found) && !found.count);
	CHECK(!tshare_ctx_list_all(ctx, find_listed, &found) && found.count == 1);
	CHECK(found.info.lifetime == TSHARE_LIFETIME_PERSIST);
	CHECK(!in_child(look_as_another_user, &found.info.id));
	CHECK(!tshare_ctx_unlink_id(ctx, found.info.id));
	found.count = 0;
	CHECK(!tshare_ctx_list_all(ctx, find_listed, &found) && !found.count);
	CHECK(tshare_ctx_unlink_id(ctx, found.info.id) == -ENOENT && error_says("id: "));
	CHECK(tshare_ctx_unlink_id(ctx, 0) == -EINVAL && error_says("id: "));
	close(namespace);
}

static int unlink_as_another_user(void *id)
{
	struct tshare_ctx *own;

	if (tshare_ctx_new(NULL, &own) || !become(USER_ONE))
		return 1;
	return tshare_ctx_unlink_id(own, *(uint64_t *)id) == -EPERM ? 0 : 2;
}

TEST(an_id_unlinks_the_callers_own_region_alone)
{
	const char *name = unique("by-id");
	struct tshare_region *region;
	uint64_t id;

	if (!limits_of(ctx).dmabuf)
		return;
	if (geteuid())
		SKIP("needs root, to be two users");
	region = new_region(name);
	id = tshare_region_get_id(region);
	CHECK(!in_child(unlink_as_another_user, &id));
	CHECK(exists(name));
	CHECK(!tshare_ctx_unlink_id(ctx, id) && !exists(name));
	tshare_region_unref(region);
}

TEST(a_context_does_not_take_back_a_name_that_another_made_since)
{
	const char *name = unique("reused");
	struct tshare_region *region;
	struct tshare_ctx *other;

	CHECK(!tshare_ctx_new(NULL, &other));
	tshare_region_unref(new_region(name));
	CHECK(!tshare_ctx_unlink(other, name));
	CHECK(!tshare_region_create(other, name, 1, NULL, 0, NULL, &region));
	close_context();
	CHECK(exists(name));
	tshare_region_unref(region);
	tshare_ctx_unref(other);
}

struct race {
	const char *name;
	struct steps steps;
};

static int race_for_name(void *data)
{
	struct tshare_region *region;
	struct race *race = data;
	struct tshare_ctx *own;
	int err;

	if (tshare_ctx_new(NULL, &own) || !await_byte(race->steps.ends[0]))
		return 2;
	err = tshare_region_create(own, race->name, 1, NULL, 0, NULL, &region);
	/* The winner keeps the name until every racer has tried. */
	if (!send_byte(race->steps.ends[0]) || !await_byte(race->steps.ends[0]))
		return 2;
	return err == -EEXIST ? 1 : err ? 2 : 0;
}

#define RACERS 8

TEST(of_racing_creators_exactly_one_wins)
{
	struct race races[RACERS];
	int winners, round, i, status;
	const char *name;
	pid_t pids[RACERS];

	for (round = 0; round < 10; round++) {
		name = unique("race");
		/* The files of a dead maker must not let two creators succeed. */
		CHECK(in_child(create_and_be_killed, (void *)(uintptr_t)name) == -1);
		for (i = 0; i < RACERS; i++) {
			races[i].name = name;
			CHECK(steps_open(&races[i].steps));
			pids[i] = fork();
			if (!pids[i])
				_exit(race_for_name(&races[i]));
		}
		for (i = 0; i < RACERS; i++)
			CHECK(send_byte(races[i].steps.ends[1]));
		for (i = 0; i < RACERS; i++)
			CHECK(await_byte(races[i].steps.ends[1]));
		for (i = 0; i < RACERS; i++)
			CHECK(send_byte(races[i].steps.ends[1]));
		for (winners = 0, i = 0; i < RACERS; i++) {
			CHECK(waitpid(pids[i], &status, 0) == pids[i]);
			CHECK(WIFEXITED(status) && WEXITSTATUS(status) < 2);
			winners += !WEXITSTATUS(status);
			steps_close(&races[i].steps);
		}
		CHECK(winners == 1);
	}
}

int main(void)
{
	return tap_main(open_context, close_context);
}
