// SPDX-License-Identifier: MIT
/* Waiting for a name while the library calls the program: see struct tshare_open_options. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../util.h"

static const struct tshare_options draft_options = {
	.size = sizeof(draft_options),
	.flags = TSHARE_DRAFT,
};

/* Long enough that nothing ends for it. */
#define LONG (HANG_SECONDS * INT64_C(1000000000))

static int create(const char *name, const struct tshare_options *options,
		  struct tshare_region **region)
{
	return tshare_region_create(ctx, name, 1, NULL, 0, options, region);
}

/* A draft, and the checks of an open that waits for it. */
struct between {
	const char *name;
	struct tshare_region *draft;
	struct tshare_region *region;
	int calls;
	int ends_after; /* calls; 0 for never */
};

static int open_checking(int (*check)(void *data), int64_t timeout_ns, int64_t check_ns,
			 struct between *between, struct tshare_region **region)
{
	const struct tshare_open_options options = {
		.size = sizeof(options),
		.timeout_ns = timeout_ns,
		.check = check,
		.check_ns = check_ns,
		.data = between,
	};

	return tshare_region_open(ctx, between->name, &options, region);
}

#define SHORT 1000000

static int count_calls(void *data)
{
	struct between *between = data;

	return ++between->calls == between->ends_after;
}

TEST(open_ends_when_its_check_says_so)
{
	struct between between = { .name = unique("checked"), .ends_after = 3 };
	struct tshare_region *region;

	CHECK(open_checking(count_calls, -1, SHORT, &between, &region) == -ECANCELED);
	CHECK(between.calls == 3);
}

/* When the call would sleep, the next check is due already. */
TEST(open_whose_checks_are_due_all_the_time_is_in_time)
{
	struct between between = { .name = unique("checked-often"), .ends_after = 3 };
	struct tshare_region *region;

	CHECK(open_checking(count_calls, LONG, 1, &between, &region) == -ECANCELED);
	CHECK(between.calls == 3);
}

TEST(open_that_is_checked_ends_when_its_time_is_up)
{
	struct between between = { .name = unique("checked-late") };
	struct tshare_region *region;

	CHECK(open_checking(count_calls, 200 * SHORT, SHORT, &between, &region) == -ETIMEDOUT);
	CHECK(between.calls > 0);
	between.calls = 0;
	CHECK(open_checking(count_calls, SHORT, LONG, &between, &region) == -ETIMEDOUT);
	CHECK(!between.calls);
	CHECK(open_checking(count_calls, 0, SHORT, &between, &region) == -ENOENT);
	CHECK(open_checking(count_calls, 1, -1, &between, &region) == -EINVAL);
	CHECK(!between.calls);
}

/* The next draft is there when the open looks. */
static int replace_draft(void *data)
{
	struct between *between = data;

	between->calls++;
	tshare_region_unref(between->draft);
	CHECK(!create(between->name, &draft_options, &between->draft));
	return 0;
}

TEST(open_reports_the_end_of_a_draft_during_its_check)
{
	struct between between = { .name = unique("checked-lost") };
	struct tshare_region *region;

	CHECK(!create(between.name, &draft_options, &between.draft));
	CHECK(open_checking(replace_draft, LONG, SHORT, &between, &region) == -ENOENT);
	CHECK(between.calls == 1);
	tshare_region_unref(between.draft);
}

static int open_stream_checking(int (*check)(void *data), int64_t timeout_ns, int64_t check_ns,
				struct between *between)
{
	const struct tshare_stream_open_options options = {
		.size = sizeof(options),
		.timeout_ns = timeout_ns,
		.check = check,
		.check_ns = check_ns,
		.data = between,
	};
	struct tshare_stream *stream;

	return tshare_stream_open(ctx, between->name, &options, &stream);
}

TEST(opening_a_stream_is_checked_as_opening_a_region)
{
	struct between between = { .name = unique("checked-stream"), .ends_after = 3 };

	CHECK(open_stream_checking(count_calls, -1, SHORT, &between) == -ECANCELED);
	CHECK(between.calls == 3);
	CHECK(open_stream_checking(count_calls, 1, -1, &between) == -EINVAL);
	CHECK(error_says("options.check_ns"));
	CHECK(!create(between.name, &draft_options, &between.draft));
	between.calls = 0;
	CHECK(open_stream_checking(replace_draft, LONG, SHORT, &between) == -ENOENT);
	CHECK(between.calls == 1);
	tshare_region_unref(between.draft);
}

static int finish_draft_and_make_another(void *data)
{
	struct between *between = data;

	switch (between->calls++) {
	case 0:
		CHECK(!tshare_region_finish(between->draft, 0));
		CHECK(!tshare_region_unlink(between->draft));
		break;
	case 3:
		between->region = new_region(between->name);
		break;
	}
	return 0;
}

TEST(open_waits_on_when_a_draft_is_finished_and_unlinked_during_its_check)
{
	struct between between = { .name = unique("checked-brief") };
	struct tshare_region *found;

	CHECK(!create(between.name, &draft_options, &between.draft));
	CHECK(!open_checking(finish_draft_and_make_another, LONG, SHORT, &between, &found));
	CHECK(tshare_region_get_id(found) == tshare_region_get_id(between.region));
	tshare_region_unref(found);
	tshare_region_unref(between.region);
	tshare_region_unref(between.draft);
}

static int drop_draft(void *data)
{
	struct between *between = data;

	if (!between->calls++)
		tshare_region_unref(between->draft);
	return 0;
}

static void ignore_signal(int signal)
{
	(void)signal;
}

/* A signal handler runs again and again, as it ends no sleep that hasn't begun yet. */
static void interrupt(bool on)
{
	struct sigaction action = { .sa_handler = ignore_signal };
	struct itimerval often = { .it_interval.tv_usec = on ? 1000 : 0 };

	often.it_value = often.it_interval;
	CHECK(!sigaction(SIGALRM, &action, NULL));
	CHECK(!setitimer(ITIMER_REAL, &often, NULL));
}

TEST(open_checks_after_a_signal_handler_and_waits_on_for_its_draft)
{
	struct between between = { .name = unique("checked-signal") };
	struct tshare_region *region;

	CHECK(!create(between.name, &draft_options, &between.draft));
	interrupt(true);
	CHECK(open_checking(drop_draft, LONG, 0, &between, &region) == -ENOENT);
	interrupt(false);
	CHECK(between.calls > 0);
}

/* A check that forks: the call goes on in the child, and ends in the parent. */
struct forking {
	struct between between;
	bool waits; /* the child, before it goes on */
	struct steps steps;
	pid_t pid;
};

static int fork_once(void *data)
{
	struct forking *forking = data;
	struct between *between = &forking->between;

	if (between->calls++)
		return 0;
	forking->pid = fork();
	if (!forking->pid && forking->waits)
		CHECK(await_byte(forking->steps.ends[0]));
	return forking->pid != 0;
}

/* The result of the child, which has no timer. Returns in the parent alone, when it sleeps. */
static void open_in_child(struct forking *forking, int64_t timeout_ns, int expected)
{
	struct tshare_region *region;
	int err;

	forking->pid = -1;
	interrupt(true);
	err = open_checking(fork_once, timeout_ns, 0, &forking->between, &region);
	if (!forking->pid)
		_exit(err == expected ? 0 : 1);
	interrupt(false);
	CHECK(forking->pid > 0 && err == -ECANCELED);
	while (!is_asleep(forking->pid))
		usleep(1000);
}

static bool child_is_right(const struct forking *forking, int seconds)
{
	int status, tries;

	for (tries = 0; tries < seconds * 100; tries++) {
		if (waitpid(forking->pid, &status, WNOHANG))
			return !status;
		usleep(10000);
	}
	kill(forking->pid, SIGKILL);
	return false;
}

/* Sooner than what the dead have left in shared memory is removed, after which the wait looks. */
#define AT_ONCE 8

TEST(open_is_woken_in_the_child_of_a_check_that_forks)
{
	struct forking forking = { .between.name = unique("checked-fork") };
	struct tshare_region *region;

	open_in_child(&forking, LONG, 0);
	region = new_region(forking.between.name);
	CHECK(child_is_right(&forking, AT_ONCE));
	tshare_region_unref(region);
}

static int make_draft_and_be_killed(const struct forking *forking)
{
	struct tshare_region *draft;
	struct tshare_ctx *own;

	if (tshare_ctx_new(NULL, &own) ||
	    tshare_region_create(own, forking->between.name, 1, NULL, 0, &draft_options, &draft) ||
	    !send_byte(forking->steps.ends[0]))
		return 1;
	alarm(HANG_SECONDS);
	pause();
	return 2;
}

TEST(open_knows_its_draft_in_the_child_of_a_check_that_forks)
{
	struct forking forking = { .between.name = unique("checked-child"), .waits = true };
	struct tshare_region *next;
	int status;
	pid_t maker;

	CHECK(steps_open(&forking.steps));
	maker = fork();
	CHECK(maker >= 0);
	if (!maker)
		_exit(make_draft_and_be_killed(&forking));
	CHECK(await_byte(forking.steps.ends[1]));
	open_in_child(&forking, LONG, -ENOENT);
	CHECK(!kill(maker, SIGKILL));
	CHECK(waitpid(maker, &status, 0) == maker);
	CHECK(!create(forking.between.name, &draft_options, &next));
	CHECK(send_byte(forking.steps.ends[1]));
	CHECK(child_is_right(&forking, HANG_SECONDS));
	tshare_region_unref(next);
	steps_close(&forking.steps);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
