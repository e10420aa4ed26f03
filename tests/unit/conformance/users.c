// SPDX-License-Identifier: MIT
/* Names that stay while anybody has the region open. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../partner.h"

static const struct tshare_options users_options = {
	.size = sizeof(users_options),
	.lifetime = TSHARE_LIFETIME_USERS,
};

static const struct tshare_options users_draft = {
	.size = sizeof(users_draft),
	.lifetime = TSHARE_LIFETIME_USERS,
	.flags = TSHARE_DRAFT,
};

static int create(struct tshare_ctx *context, const char *name,
		  const struct tshare_options *options, struct tshare_region **region)
{
	return tshare_region_create(context, name, 1, NULL, 0, options, region);
}

static struct tshare_region *new_users(const char *name)
{
	struct tshare_region *region;

	CHECK(!create(ctx, name, &users_options, &region));
	return region;
}

static struct tshare_region *opened(const char *name)
{
	struct tshare_region *region;

	CHECK(!tshare_region_open(ctx, name, NULL, &region));
	return region;
}

/* A process that makes such a region, and then does what it is told to. */
struct maker {
	const char *name;
	struct steps steps;
	const struct tshare_options *options;
	pid_t pid;
};

static int make_and_wait(struct maker *maker)
{
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (tshare_ctx_new(NULL, &own) || create(own, maker->name, maker->options, &region) ||
	    !send_byte(maker->steps.ends[0]) || !await_byte(maker->steps.ends[0]))
		return 1;
	exit(0);
}

static void start(struct maker *maker)
{
	CHECK(steps_open(&maker->steps));
	maker->pid = fork();
	CHECK(maker->pid >= 0);
	if (!maker->pid)
		_exit(make_and_wait(maker));
	CHECK(await_byte(maker->steps.ends[1]));
}

static void be_killed(struct maker *maker)
{
	int status;

	CHECK(!kill(maker->pid, SIGKILL));
	CHECK(waitpid(maker->pid, &status, 0) == maker->pid);
	steps_close(&maker->steps);
}

static void be_told_to_exit(struct maker *maker)
{
	int status;

	CHECK(send_byte(maker->steps.ends[1]));
	CHECK(waitpid(maker->pid, &status, 0) == maker->pid && !status);
	steps_close(&maker->steps);
}

TEST(the_lifetime_is_reported)
{
	struct tshare_region_info info = { .size = sizeof(info) };
	struct tshare_region *region = new_users(unique("report"));

	CHECK(!tshare_region_get_info(region, &info));
	CHECK(info.lifetime == TSHARE_LIFETIME_USERS);
	tshare_region_unref(region);
}

TEST(the_name_outlives_its_maker_while_another_has_the_region_open)
{
	struct maker maker = { .name = unique("outlives"), .options = &users_options };
	struct tshare_region *region;

	start(&maker);
	region = opened(maker.name);
	be_killed(&maker);
	CHECK(!open_error(maker.name));
	tshare_region_unref(region);
	CHECK(open_error(maker.name) == -ENOENT);
}

TEST(the_name_goes_with_its_only_user)
{
	struct maker killed = { .name = unique("killed"), .options = &users_options };
	struct maker ended = { .name = unique("ended"), .options = &users_options };
	const char *name = unique("unref");

	start(&killed);
	CHECK(!open_error(killed.name));
	be_killed(&killed);
	CHECK(open_error(killed.name) == -ENOENT);
	start(&ended);
	be_told_to_exit(&ended);
	CHECK(open_error(ended.name) == -ENOENT);
	tshare_region_unref(new_users(name));
	CHECK(open_error(name) == -ENOENT);
}

TEST(the_name_can_be_taken_when_it_is_gone)
{
	const char *name = unique("again");

	tshare_region_unref(new_users(name));
	tshare_region_unref(new_users(name));
	CHECK(open_error(name) == -ENOENT);
}

TEST(each_object_is_a_user)
{
	const char *name = unique("objects");
	struct tshare_region *one = new_users(name), *two = opened(name);

	tshare_region_unref(one);
	CHECK(!open_error(name));
	tshare_region_unref(two);
	CHECK(open_error(name) == -ENOENT);
}

TEST(a_tensor_is_a_user)
{
	const char *name = unique("tensor");
	struct tshare_tensor *tensor;

	CHECK(!tshare_tensor_create(ctx, name, TSHARE_UINT8, 2, shape_4x8, &users_options,
				    &tensor));
	CHECK(!open_error(name));
	tshare_tensor_unref(tensor);
	CHECK(open_error(name) == -ENOENT);
}

TEST(a_reader_is_a_user)
{
	const char *name = unique("reader");
	struct tshare_region *region = new_users(name), *reader;

	CHECK(!tshare_region_open(ctx, name, &readonly_options, &reader));
	tshare_region_unref(region);
	CHECK(!open_error(name));
	tshare_region_unref(reader);
	CHECK(open_error(name) == -ENOENT);
}

TEST(an_importer_is_a_user)
{
	const char *name = unique("import");
	struct tshare_region *region = new_users(name), *imported;

	CHECK(!tshare_region_import(ctx, tshare_region_get_fd(region), 0, &imported));
	tshare_region_unref(region);
	CHECK(!open_error(name));
	tshare_region_unref(imported);
	CHECK(open_error(name) == -ENOENT);
}

/*
 * Imports what it is sent, with that many descriptors left; returns 0 or an errno. Read-only, which
 * takes one more: so the last one may be missing only for the user.
 */
static int import_with_few_descriptors(int end, unsigned int left)
{
	int fd = receive_fd(end), err;
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (fd < 0 || tshare_ctx_new(NULL, &own) || !leave_descriptors(left))
		return -1;
	err = tshare_region_import(own, fd, TSHARE_READONLY, &region);
	if (!err && send_byte(end))
		await_byte(end);
	return -err;
}

/* An importer that has not what the region has by fork(); what it returns. */
static int keep_by_import(const char *name, unsigned int left)
{
	struct tshare_region *region;
	struct steps steps;
	bool kept = true;
	pid_t pid;
	int status;

	CHECK(steps_open(&steps));
	pid = fork();
	if (!pid) {
		close(steps.ends[1]);
		_exit(import_with_few_descriptors(steps.ends[0], left));
	}
	close(steps.ends[0]);
	region = new_users(name);
	CHECK(send_fd(steps.ends[1], tshare_region_get_fd(region)));
	if (await_byte(steps.ends[1])) {
		tshare_region_unref(region);
		kept = !open_error(name);
		CHECK(send_byte(steps.ends[1]));
	} else {
		tshare_region_unref(region);
	}
	close(steps.ends[1]);
	status = end_of(pid);
	CHECK(kept);
	return status;
}

TEST(an_importer_with_few_descriptors_is_a_user)
{
	const char *name = unique("few");
	int err = EMFILE, left;

	for (left = 0; err; left++) {
		CHECK(left < 16);
		err = keep_by_import(name, left);
		CHECK(!err || err == EMFILE);
		CHECK(open_error(name) == -ENOENT);
	}
}

TEST(a_used_region_can_be_unlinked)
{
	const char *name = unique("unlink");
	struct tshare_region *region = new_users(name), *next;

	CHECK(!tshare_region_unlink(region));
	CHECK(open_error(name) == -ENOENT);
	next = new_users(name);
	tshare_region_unref(region);
	CHECK(!open_error(name));
	tshare_region_unref(next);
}

static int unref_in_child(void *region)
{
	tshare_region_unref(region);
	exit(0);
}

TEST(a_child_that_closes_its_parents_region_leaves_the_name)
{
	const char *name = unique("child");
	struct tshare_region *region = new_users(name);

	CHECK(!in_child(unref_in_child, region));
	CHECK(!open_error(name));
	tshare_region_unref(region);
}

TEST(a_draft_goes_with_its_maker_and_is_its_users_once_it_is_finished)
{
	struct maker maker = { .name = unique("draft"), .options = &users_draft };
	const char *name = unique("finished");
	struct tshare_region *region, *other;

	start(&maker);
	CHECK(open_error(maker.name) == -EINPROGRESS);
	be_killed(&maker);
	CHECK(open_error(maker.name) == -ENOENT);

	CHECK(!create(ctx, name, &users_draft, &region));
	CHECK(!tshare_region_finish(region, 0));
	other = opened(name);
	tshare_region_unref(region);
	CHECK(!open_error(name));
	tshare_region_unref(other);
	CHECK(open_error(name) == -ENOENT);
}

TEST(a_replaced_region_leaves_its_successors_name)
{
	const struct tshare_options options = {
		.size = sizeof(options),
		.lifetime = TSHARE_LIFETIME_USERS,
		.flags = TSHARE_REPLACE,
	};
	const char *name = unique("replaced");
	struct tshare_region *old = new_users(name), *new;

	CHECK(!create(ctx, name, &options, &new));
	tshare_region_unref(old);
	CHECK(!open_error(name));
	tshare_region_unref(new);
	CHECK(open_error(name) == -ENOENT);
}

TEST(lifetime_of_users_needs_a_name)
{
	struct tshare_region *region;

	CHECK(create(ctx, NULL, &users_options, &region) == -EINVAL);
	CHECK(error_says("options.lifetime: "));
}

TEST(a_create_that_is_refused_leaves_no_descriptors)
{
	const struct tshare_options options = {
		.size = sizeof(options),
		.lifetime = TSHARE_LIFETIME_USERS,
		.flags = TSHARE_REPLACE,
	};
	const char *name = unique("refused");
	struct tshare_region *draft, *region;
	size_t before;

	CHECK(!create(ctx, name, &users_draft, &draft));
	before = open_descriptors();
	CHECK(create(ctx, name, &options, &region) == -EEXIST);
	CHECK(open_descriptors() == before);
	tshare_region_unref(draft);
}

/* As long as it is held, the name leads to the region that was made or opened by it. */
static int use_once(struct tshare_ctx *own, const char *name)
{
	struct tshare_region *region, *again;
	int err;

	err = tshare_region_open(own, name, NULL, &region);
	if (err == -ENOENT)
		err = create(own, name, &users_options, &region);
	if (err)
		return err == -EEXIST || err == -ENOENT ? 0 : 1;
	err = tshare_region_open(own, name, NULL, &again);
	if (!err) {
		err = tshare_region_get_id(region) == tshare_region_get_id(again) ? 0 : 2;
		tshare_region_unref(again);
	}
	tshare_region_unref(region);
	return err;
}

/* 500 times; only 100 where ten seconds are too few for more, as on an emulated machine. */
static int use_often(const char *name)
{
	const int64_t end = now_ns() + rounds(10000) * MS;
	const int times = rounds(500);
	struct tshare_ctx *own;
	int i, err;

	alarm(HANG_SECONDS);
	if (tshare_ctx_new(NULL, &own))
		return 1;
	for (i = 0; i < times / 5 || (i < times && now_ns() < end); i++) {
		err = use_once(own, name);
		if (err)
			return 2;
	}
	tshare_ctx_unref(own);
	return 0;
}

TEST(no_user_loses_the_name_whoever_comes_and_goes)
{
	const char *name = unique("race");
	int i, status, failed = 0;
	pid_t pids[4];

	for (i = 0; i < 4; i++) {
		pids[i] = fork();
		if (!pids[i])
			_exit(use_often(name));
	}
	for (i = 0; i < 4; i++)
		failed += waitpid(pids[i], &status, 0) != pids[i] || status;
	CHECK(!failed);
	CHECK(open_error(name) == -ENOENT);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
