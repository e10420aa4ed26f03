// SPDX-License-Identifier: MIT
/* Drafts, which can't be opened before they are finished, and regions that replace others. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../util.h"

static const struct tshare_options draft_options = {
	.size = sizeof(draft_options),
	.flags = TSHARE_DRAFT,
};

static const struct tshare_options replacing = {
	.size = sizeof(replacing),
	.flags = TSHARE_REPLACE,
};

static const struct tshare_options replacing_draft = {
	.size = sizeof(replacing_draft),
	.flags = TSHARE_DRAFT | TSHARE_REPLACE,
};

static int create(const char *name, const struct tshare_options *options,
		  struct tshare_region **region)
{
	return tshare_region_create(ctx, name, 1, NULL, 0, options, region);
}

static struct tshare_region *new_draft(const char *name)
{
	struct tshare_region *region;

	CHECK(!create(name, &draft_options, &region));
	return region;
}

static uint64_t id_of_name(const char *name)
{
	struct tshare_region *region;
	uint64_t id;

	CHECK(!tshare_region_open(ctx, name, NULL, &region));
	id = tshare_region_get_id(region);
	tshare_region_unref(region);
	return id;
}

static struct tshare_region_info info_of(struct tshare_region *region)
{
	struct tshare_region_info info = { .size = sizeof(info) };

	CHECK(!tshare_region_get_info(region, &info));
	return info;
}

TEST(a_draft_can_not_be_opened)
{
	const char *name = unique("draft");
	struct tshare_region *region = new_draft(name);

	CHECK(open_error(name) == -EINPROGRESS);
	CHECK(error_says("is a draft"));
	tshare_region_unref(region);
}

TEST(a_draft_takes_its_name)
{
	const char *name = unique("taken");
	struct tshare_region *region = new_draft(name), *other;

	CHECK(create(name, NULL, &other) == -EEXIST);
	CHECK(create(name, &draft_options, &other) == -EEXIST);
	CHECK(create(name, &replacing, &other) == -EEXIST);
	CHECK(create(name, &replacing_draft, &other) == -EEXIST);
	tshare_region_unref(region);
}

TEST(a_create_that_a_draft_refuses_names_the_remedy)
{
	const char *name = unique("remedy");
	struct tshare_region *region = new_draft(name), *other;

	CHECK(create(name, NULL, &other) == -EEXIST);
	CHECK(error_says("is taken by a draft; wait until"));
	CHECK(create(name, &replacing, &other) == -EEXIST);
	CHECK(error_says("is taken by a draft; wait until"));
	tshare_region_unref(region);
}

TEST(a_draft_is_no_second_region_of_a_name)
{
	const char *name = unique("second");
	struct tshare_region *region = new_region(name), *other;

	CHECK(create(name, &draft_options, &other) == -EEXIST);
	CHECK(!open_error(name));
	tshare_region_unref(region);
}

TEST(finish_opens_a_draft_with_what_was_written)
{
	const char *name = unique("finish");
	struct tshare_region *region = new_draft(name), *opened;

	strcpy(tshare_region_get_data(region), "complete");
	CHECK(!tshare_region_finish(region, 0));
	CHECK(!tshare_region_open(ctx, name, NULL, &opened));
	CHECK(!strcmp(tshare_region_get_data(opened), "complete"));
	CHECK(tshare_region_get_id(opened) == tshare_region_get_id(region));
	tshare_region_unref(opened);
	tshare_region_unref(region);
}

TEST(finish_rejects_finished_regions)
{
	struct tshare_region *region = new_region(unique("none")), *unnamed = new_region(NULL);
	struct tshare_region *draft = new_draft(unique("once"));

	CHECK(tshare_region_finish(region, 0) == -EINVAL);
	CHECK(error_says("region: is not a draft"));
	CHECK(tshare_region_finish(unnamed, 0) == -EINVAL);
	CHECK(!tshare_region_finish(draft, 0));
	CHECK(tshare_region_finish(draft, 0) == -EINVAL);
	tshare_region_unref(region);
	tshare_region_unref(unnamed);
	tshare_region_unref(draft);
}

TEST(finish_rejects_unknown_flags)
{
	struct tshare_region *region = new_draft(unique("flags"));

	CHECK(tshare_region_finish(region, TSHARE_DRAFT) == -EINVAL);
	CHECK(error_says("flags: "));
	CHECK(!tshare_region_finish(region, 0));
	tshare_region_unref(region);
}

TEST(finish_rejects_another_contexts_draft)
{
	const char *name = unique("others");
	struct tshare_region *region = new_draft(name), *imported;
	struct tshare_ctx *other;

	CHECK(!tshare_ctx_new(NULL, &other));
	CHECK(!tshare_region_import(other, tshare_region_get_fd(region), 0, &imported));
	CHECK(tshare_region_finish(imported, 0) == -EPERM);
	CHECK(error_says("another context"));
	CHECK(open_error(name) == -EINPROGRESS);
	tshare_region_unref(imported);
	tshare_ctx_unref(other);
	tshare_region_unref(region);
}

TEST(drafts_and_replacements_need_a_name)
{
	struct tshare_region *region;

	CHECK(create(NULL, &draft_options, &region) == -EINVAL);
	CHECK(error_says("options.flags: TSHARE_DRAFT needs a name"));
	CHECK(create(NULL, &replacing, &region) == -EINVAL);
	CHECK(error_says("options.flags: TSHARE_REPLACE needs a name"));
}

TEST(a_draft_without_its_name_can_not_be_finished)
{
	const char *name = unique("lost"), *own = unique("own");
	struct tshare_region *region = new_draft(name), *unlinked = new_draft(own);

	CHECK(!tshare_ctx_unlink(ctx, name));
	CHECK(!tshare_region_unlink(unlinked));
	CHECK(tshare_region_finish(region, 0) == -ENOENT);
	CHECK(error_says("name was removed"));
	CHECK(tshare_region_finish(unlinked, 0) == -ENOENT);
	CHECK(open_error(name) == -ENOENT);
	tshare_region_unref(new_region(name));
	tshare_region_unref(region);
	tshare_region_unref(unlinked);
}

TEST(another_context_can_unlink_a_draft)
{
	const char *name = unique("foreign");
	struct tshare_region *region = new_draft(name);
	struct tshare_ctx *other;

	CHECK(!tshare_ctx_new(NULL, &other));
	CHECK(!tshare_ctx_unlink(other, name));
	CHECK(tshare_region_finish(region, 0) == -ENOENT);
	tshare_ctx_unref(other);
	tshare_region_unref(region);
}

TEST(drafts_are_listed_as_such)
{
	struct found found = { .name = unique("listed") };
	struct tshare_region *region = new_draft(found.name);

	CHECK(!tshare_ctx_list(ctx, find_listed, &found));
	CHECK(found.count == 1);
	CHECK(found.info.flags & TSHARE_DRAFT);
	CHECK(info_of(region).flags & TSHARE_DRAFT);
	CHECK(!strcmp(info_of(region).name, found.name));
	CHECK(!tshare_region_finish(region, 0));
	CHECK(!(info_of(region).flags & TSHARE_DRAFT));
	found.count = 0;
	CHECK(!tshare_ctx_list(ctx, find_listed, &found));
	CHECK(found.count == 1 && !(found.info.flags & TSHARE_DRAFT));
	tshare_region_unref(region);
}

struct killed {
	const char *name;
	uint32_t lifetime;
	bool finish;
};

static int draft_and_be_killed(void *data)
{
	struct killed *killed = data;
	struct tshare_options options = {
		.size = sizeof(options),
		.flags = TSHARE_DRAFT,
		.lifetime = killed->lifetime,
	};
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (!tshare_ctx_new(NULL, &own) &&
	    !tshare_region_create(own, killed->name, 1, NULL, 0, &options, &region) &&
	    (!killed->finish || !tshare_region_finish(region, 0)))
		kill(getpid(), SIGKILL);
	return 1;
}

TEST(a_draft_goes_with_its_maker_whatever_its_lifetime)
{
	static const uint32_t lifetimes[] = { TSHARE_LIFETIME_MAKER, TSHARE_LIFETIME_PERSIST };
	struct killed killed = { .name = unique("killed") };
	size_t i;

	for (i = 0; i < sizeof(lifetimes) / sizeof(lifetimes[0]); i++) {
		killed.lifetime = lifetimes[i];
		CHECK(in_child(draft_and_be_killed, &killed) == -1);
		CHECK(open_error(killed.name) == -ENOENT);
		tshare_region_unref(new_region(killed.name));
		CHECK(!tshare_ctx_unlink(ctx, killed.name));
	}
}

TEST(a_finished_draft_has_its_lifetime)
{
	struct killed persist = { unique("persists"), TSHARE_LIFETIME_PERSIST, true };
	struct killed maker = { unique("makers"), TSHARE_LIFETIME_MAKER, true };

	CHECK(in_child(draft_and_be_killed, &persist) == -1);
	CHECK(!open_error(persist.name));
	CHECK(!tshare_ctx_unlink(ctx, persist.name));
	CHECK(in_child(draft_and_be_killed, &maker) == -1);
	CHECK(open_error(maker.name) == -ENOENT);
}

TEST(a_draft_goes_when_its_context_is_closed)
{
	const char *name = unique("closed");

	tshare_region_unref(new_draft(name));
	close_context();
	open_context();
	CHECK(open_error(name) == -ENOENT);
}

TEST(a_draft_goes_with_its_last_object)
{
	const char *name = unique("dropped");
	struct tshare_region *region = new_draft(name), *imported, *next;

	CHECK(!tshare_region_import(ctx, tshare_region_get_fd(region), 0, &imported));
	tshare_region_unref(region);
	CHECK(open_error(name) == -EINPROGRESS);
	tshare_region_unref(imported);
	CHECK(open_error(name) == -ENOENT);
	next = new_draft(name);
	CHECK(!tshare_region_finish(next, 0));
	tshare_region_unref(next);
	CHECK(!open_error(name));
	CHECK(!tshare_ctx_unlink(ctx, name));
}

TEST(a_draft_can_be_finished_through_any_object_of_its_context)
{
	const char *name = unique("any");
	struct tshare_region *region = new_draft(name), *imported;

	CHECK(!tshare_region_import(ctx, tshare_region_get_fd(region), 0, &imported));
	tshare_region_unref(region);
	CHECK(!tshare_region_finish(imported, 0));
	CHECK(!open_error(name));
	tshare_region_unref(imported);
	CHECK(!open_error(name));
	CHECK(!tshare_ctx_unlink(ctx, name));
}

/* Finishes the draft, or is killed, once it is told to. */
static int finish_when_told(struct tshare_region *region, int end, bool finish)
{
	if (!await_byte(end))
		return 1;
	if (!finish)
		kill(getpid(), SIGKILL);
	return !!tshare_region_finish(region, 0);
}

static pid_t start_finisher(struct tshare_region *region, struct steps *steps, bool finish)
{
	pid_t pid;

	CHECK(steps_open(steps));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(finish_when_told(region, steps->ends[0], finish));
	return pid;
}

TEST(a_child_can_finish_a_draft_that_its_parent_has_closed)
{
	const char *name = unique("inherited");
	struct tshare_options options = draft_options;
	struct tshare_region *region;
	struct steps steps;
	int status;
	pid_t pid;

	options.lifetime = TSHARE_LIFETIME_PERSIST;
	CHECK(!create(name, &options, &region));
	pid = start_finisher(region, &steps, true);
	tshare_region_unref(region);
	CHECK(open_error(name) == -EINPROGRESS);
	CHECK(send_byte(steps.ends[1]));
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(!status);
	CHECK(!open_error(name));
	CHECK(!tshare_ctx_unlink(ctx, name));
	steps_close(&steps);
}

TEST(a_draft_goes_with_the_child_that_its_parent_has_left_it_to)
{
	const char *name = unique("left");
	struct tshare_region *region = new_draft(name);
	struct steps steps;
	int status;
	pid_t pid;

	pid = start_finisher(region, &steps, false);
	tshare_region_unref(region);
	CHECK(create(name, NULL, &region) == -EEXIST);
	CHECK(send_byte(steps.ends[1]));
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status));
	CHECK(open_error(name) == -ENOENT);
	tshare_region_unref(new_region(name));
	CHECK(!tshare_ctx_unlink(ctx, name));
	steps_close(&steps);
}

/* Taking a name over */

TEST(create_takes_a_name_over)
{
	const char *name = unique("over");
	struct tshare_region *old = new_region(name), *new;

	CHECK(!create(name, &replacing, &new));
	CHECK(id_of_name(name) == tshare_region_get_id(new));
	CHECK(!*info_of(old).name);
	*(char *)tshare_region_get_data(old) = 1;
	CHECK(!*(char *)tshare_region_get_data(new));
	tshare_region_unref(old);
	CHECK(id_of_name(name) == tshare_region_get_id(new));
	tshare_region_unref(new);
}

TEST(create_with_replace_needs_nothing_to_replace)
{
	const char *name = unique("nothing");
	struct tshare_region *region;

	CHECK(!create(name, &replacing, &region));
	CHECK(!open_error(name));
	tshare_region_unref(region);
}

TEST(until_a_draft_takes_a_name_over_it_leads_to_the_old_region)
{
	const char *name = unique("until");
	struct tshare_region *old = new_region(name), *new, *third;

	CHECK(!create(name, &replacing_draft, &new));
	CHECK(id_of_name(name) == tshare_region_get_id(old));
	CHECK(create(name, &replacing_draft, &third) == -EEXIST);
	CHECK(!tshare_region_finish(new, TSHARE_REPLACE));
	CHECK(id_of_name(name) == tshare_region_get_id(new));
	CHECK(!*info_of(old).name);
	tshare_region_unref(old);
	tshare_region_unref(new);
}

TEST(a_draft_that_was_created_to_replace_does)
{
	const char *name = unique("does");
	struct tshare_region *old = new_region(name), *new;

	CHECK(!create(name, &replacing_draft, &new));
	CHECK(!tshare_region_finish(new, 0));
	CHECK(id_of_name(name) == tshare_region_get_id(new));
	CHECK(!*info_of(old).name);
	tshare_region_unref(old);
	tshare_region_unref(new);
}

TEST(finish_without_replace_leaves_the_name_and_the_draft)
{
	const char *name = unique("leaves");
	struct tshare_region *old = new_region(name), *created, *new;

	CHECK(!create(name, &replacing_draft, &created));
	CHECK(!tshare_region_import(ctx, tshare_region_get_fd(created), 0, &new));
	CHECK(tshare_region_finish(new, 0) == -EEXIST);
	CHECK(error_says("is taken by a finished region; unlink it, or replace it"));
	CHECK(id_of_name(name) == tshare_region_get_id(old));
	CHECK(info_of(new).flags & TSHARE_DRAFT);
	CHECK(!tshare_region_unlink(old));
	CHECK(open_error(name) == -EINPROGRESS);
	CHECK(!tshare_region_finish(new, 0));
	CHECK(id_of_name(name) == tshare_region_get_id(new));
	tshare_region_unref(old);
	tshare_region_unref(created);
	tshare_region_unref(new);
}

static int replace_as_another(void *data)
{
	const char *name = data;
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (tshare_ctx_new(NULL, &own) || !become(USER_ONE))
		return 2;
	if (tshare_region_create(own, name, 1, NULL, 0, &replacing, &region) != -EPERM)
		return 3;
	return !error_says("belongs to another user");
}

TEST(only_a_caller_that_may_unlink_a_region_can_replace_it)
{
	const char *name = unique("owned");
	struct tshare_region *region;

	if (geteuid())
		SKIP("needs root, to be two users");
	region = new_region_mode(name, 0666);
	CHECK(!in_child(replace_as_another, (void *)(uintptr_t)name));
	CHECK(id_of_name(name) == tshare_region_get_id(region));
	tshare_region_unref(region);
}

/* Unlinking by region */

TEST(unlink_by_region_leaves_a_successors_name)
{
	const char *name = unique("successor");
	struct tshare_region *old = new_region(name), *new;

	CHECK(!tshare_ctx_unlink(ctx, name));
	new = new_region(name);
	CHECK(tshare_region_unlink(old) == -ENOENT);
	CHECK(error_says("has lost its name"));
	CHECK(id_of_name(name) == tshare_region_get_id(new));
	CHECK(!tshare_region_unlink(new));
	CHECK(open_error(name) == -ENOENT);
	CHECK(tshare_region_unlink(new) == -ENOENT);
	tshare_region_unref(old);
	tshare_region_unref(new);
}

TEST(unlink_by_region_needs_a_name)
{
	struct tshare_region *region = new_region(NULL);

	CHECK(tshare_region_unlink(region) == -ENOENT);
	CHECK(error_says("region: has no name"));
	tshare_region_unref(region);
}

/* Copies */

#define COPY_BYTES (8 << 20)

static int copy_often(void *data)
{
	/* Backwards, a byte after the other: that takes long. */
	static const int64_t shape[] = { COPY_BYTES }, strides[] = { -1 };
	struct tshare_spec spec = {
		.size = sizeof(spec),
		.dtype = TSHARE_UINT8,
		.ndim = 1,
		.shape = shape,
		.strides = strides,
	};
	char *bytes = malloc(COPY_BYTES), *name = data;
	struct tshare_tensor *tensor;
	struct tshare_ctx *own;
	int i;

	if (!bytes || tshare_ctx_new(NULL, &own))
		return 1;
	memset(bytes, 7, COPY_BYTES);
	for (i = 0; i < 30; i++) {
		if (tshare_tensor_copy(own, name, bytes + COPY_BYTES - 1, &spec, NULL, &tensor))
			return 2;
		tshare_tensor_unref(tensor);
		if (tshare_ctx_unlink(own, name))
			return 3;
	}
	return 0;
}

TEST(a_copy_is_opened_only_when_complete)
{
	char *name = strdup(unique("copied"));
	struct tshare_region *region;
	int status, half = 0;
	const char *data;
	pid_t pid;

	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(copy_often(name));
	while (!waitpid(pid, &status, WNOHANG)) {
		if (tshare_region_open(ctx, name, NULL, &region))
			continue;
		data = tshare_region_get_data(region);
		half += data[0] != data[COPY_BYTES - 1];
		tshare_region_unref(region);
	}
	free(name);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	CHECK(!half);
}

TEST(a_copy_can_stay_a_draft)
{
	const char *name = unique("stays");
	struct tshare_spec spec = { .size = sizeof(spec), .dtype = TSHARE_UINT8 };
	struct tshare_tensor *tensor;

	CHECK(!tshare_tensor_copy(ctx, name, "x", &spec, &draft_options, &tensor));
	CHECK(open_error(name) == -EINPROGRESS);
	CHECK(!tshare_region_finish(tshare_tensor_get_region(tensor), 0));
	CHECK(!open_error(name));
	tshare_tensor_unref(tensor);
}

/* Races */

#define REPLACERS 4

static int replace_often(const char *name)
{
	struct tshare_region *region;
	struct tshare_ctx *own;
	int i, times = rounds(100);

	alarm(HANG_SECONDS);
	for (i = 0; i < times; i++) {
		if (tshare_ctx_new(NULL, &own))
			return 1;
		if (tshare_region_create(own, name, 1, NULL, 0, &replacing, &region))
			return 2;
		tshare_region_unref(region);
		/* The name stays for the next creator, or is removed with this context. */
		if (i % 2)
			tshare_ctx_unref(own);
	}
	return 0;
}

TEST(concurrent_replacements_all_succeed)
{
	const char *name = unique("crowd");
	pid_t pids[REPLACERS];
	int i, status;

	for (i = 0; i < REPLACERS; i++) {
		pids[i] = fork();
		if (!pids[i])
			_exit(replace_often(name));
	}
	for (i = 0; i < REPLACERS; i++) {
		CHECK(waitpid(pids[i], &status, 0) == pids[i]);
		CHECK(!status);
	}
	CHECK(open_error(name) == -ENOENT);
}

static int replace_for_ever(const char *name)
{
	struct tshare_region *region;
	struct tshare_ctx *own;

	alarm(HANG_SECONDS);
	if (tshare_ctx_new(NULL, &own))
		return 1;
	for (;;) {
		if (tshare_region_create(own, name, 1, NULL, 0, &replacing, &region))
			return 2;
		tshare_region_unref(region);
	}
}

TEST(a_name_that_is_taken_over_leads_somewhere_at_any_time)
{
	const char *name = unique("always");
	struct tshare_region *first = new_region(name);
	int i, times = rounds(2000), failed = 0, status;
	pid_t pid;

	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(replace_for_ever(name));
	for (i = 0; i < times; i++)
		failed += !!open_error(name);
	CHECK(!kill(pid, SIGKILL) && waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status));
	CHECK(!failed);
	tshare_region_unref(first);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
