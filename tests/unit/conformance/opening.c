// SPDX-License-Identifier: MIT
/* Waiting for a name: until it is there, finished, and leads to another region. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
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

/* Long enough that nothing ends for it. */
#define LONG (HANG_SECONDS * INT64_C(1000000000))

static int open_within(const char *name, int64_t timeout_ns, const struct tshare_region *other_than,
		       struct tshare_region **region)
{
	const struct tshare_open_options options = {
		.size = sizeof(options),
		.timeout_ns = timeout_ns,
		.other_than = other_than,
	};

	return tshare_region_open(ctx, name, &options, region);
}

static int create(const char *name, const struct tshare_options *options,
		  struct tshare_region **region)
{
	return tshare_region_create(ctx, name, 1, NULL, 0, options, region);
}

/* A thread that opens a name, in the context of the test. */
struct opener {
	const char *name;
	int64_t timeout_ns;
	const struct tshare_region *other_than;
	struct tshare_region *found;
	int err;
	atomic_int id;
	atomic_bool done;
	pthread_t thread;
};

static void *run_opener(void *data)
{
	struct opener *opener = data;

	atomic_store(&opener->id, gettid());
	opener->err =
		open_within(opener->name, opener->timeout_ns, opener->other_than, &opener->found);
	atomic_store(&opener->done, true);
	return NULL;
}

/* Starts it, and returns when it sleeps: it has looked then. */
static void start_with(struct opener *opener, void *(*run)(void *opener))
{
	atomic_init(&opener->id, 0);
	atomic_init(&opener->done, false);
	CHECK(!pthread_create(&opener->thread, NULL, run, opener));
	while (!atomic_load(&opener->done) && !is_asleep(atomic_load(&opener->id)))
		usleep(1000);
	CHECK(!atomic_load(&opener->done));
}

static void start(struct opener *opener)
{
	start_with(opener, run_opener);
}

/* What it has found: its id, or 0 with the error in @opener. */
static uint64_t finish(struct opener *opener)
{
	uint64_t id = 0;

	CHECK(!pthread_join(opener->thread, NULL));
	if (!opener->err) {
		id = tshare_region_get_id(opener->found);
		tshare_region_unref(opener->found);
	}
	return id;
}

TEST(open_waits_until_a_name_is_there)
{
	struct opener opener = { .name = unique("there"), .timeout_ns = LONG };
	struct tshare_region *region;

	start(&opener);
	region = new_region(opener.name);
	CHECK(finish(&opener) == tshare_region_get_id(region));
	tshare_region_unref(region);
}

TEST(open_waits_for_ever_if_the_timeout_is_negative)
{
	struct opener opener = { .name = unique("ever"), .timeout_ns = -1 };
	struct tshare_region *region;

	start(&opener);
	region = new_region(opener.name);
	CHECK(finish(&opener) == tshare_region_get_id(region));
	tshare_region_unref(region);
}

TEST(open_takes_the_largest_timeout)
{
	struct opener opener = { .name = unique("largest"), .timeout_ns = INT64_MAX };
	struct tshare_region *region;

	start(&opener);
	region = new_region(opener.name);
	CHECK(finish(&opener) == tshare_region_get_id(region));
	tshare_region_unref(region);
}

TEST(open_waits_until_a_draft_is_finished)
{
	struct opener opener = { .name = unique("finished"), .timeout_ns = LONG };
	struct tshare_region *region;

	CHECK(!create(opener.name, &draft_options, &region));
	start(&opener);
	CHECK(!tshare_region_finish(region, 0));
	CHECK(finish(&opener) == tshare_region_get_id(region));
	tshare_region_unref(region);
}

TEST(open_waits_for_a_draft_that_is_made_meanwhile)
{
	struct opener opener = { .name = unique("meanwhile"), .timeout_ns = LONG };
	struct tshare_region *region;

	start(&opener);
	CHECK(!create(opener.name, &draft_options, &region));
	usleep(50000);
	CHECK(!atomic_load(&opener.done));
	CHECK(!tshare_region_finish(region, 0));
	CHECK(finish(&opener) == tshare_region_get_id(region));
	tshare_region_unref(region);
}

/* The opener may look before the name is removed, or not. */
TEST(open_waits_on_when_the_draft_it_saw_is_finished_and_unlinked_at_once)
{
	struct opener opener = { .name = unique("brief"), .timeout_ns = LONG };
	struct tshare_region *brief, *region;
	int i, times = rounds(20);

	for (i = 0; i < times; i++) {
		CHECK(!create(opener.name, &draft_options, &brief));
		start(&opener);
		CHECK(!tshare_region_finish(brief, 0));
		CHECK(!tshare_region_unlink(brief));
		region = new_region(opener.name);
		if (finish(&opener) != tshare_region_get_id(region))
			CHECK(!opener.err);
		tshare_region_unref(brief);
		CHECK(!tshare_region_unlink(region));
		tshare_region_unref(region);
	}
}

TEST(open_ends_when_its_time_is_up)
{
	struct tshare_region *region;
	const char *name = unique("late");

	CHECK(open_within(name, 1000000, NULL, &region) == -ETIMEDOUT);
	CHECK(error_says("within the timeout"));
	CHECK(!create(name, &draft_options, &region));
	CHECK(open_within(name, 1, NULL, &region) == -ETIMEDOUT);
	tshare_region_unref(region);
}

struct maker {
	const char *name;
	struct steps steps;
};

static int draft_and_be_told_to_die(void *data)
{
	struct maker *maker = data;
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (tshare_ctx_new(NULL, &own) ||
	    tshare_region_create(own, maker->name, 1, NULL, 0, &draft_options, &region) ||
	    !send_byte(maker->steps.ends[0]) || !await_byte(maker->steps.ends[0]))
		return 1;
	kill(getpid(), SIGKILL);
	return 2;
}

TEST(open_ends_when_a_drafts_maker_is_killed)
{
	struct maker maker = { .name = unique("killed") };
	struct opener opener = { .name = maker.name, .timeout_ns = LONG };
	int status;
	pid_t pid;

	CHECK(steps_open(&maker.steps));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(draft_and_be_told_to_die(&maker));
	CHECK(await_byte(maker.steps.ends[1]));
	start(&opener);
	CHECK(send_byte(maker.steps.ends[1]));
	CHECK(!finish(&opener));
	CHECK(opener.err == -ENOENT);
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	steps_close(&maker.steps);
}

static int open_patiently(void *data)
{
	const struct maker *maker = data;
	struct tshare_region *region;
	struct tshare_ctx *own;

	alarm(HANG_SECONDS);
	if (!await_byte(maker->steps.ends[0]) || tshare_ctx_new(NULL, &own) ||
	    !send_byte(maker->steps.ends[0]))
		return 1;
	return tshare_region_open(
		       own, maker->name,
		       &(struct tshare_open_options){ .size = sizeof(struct tshare_open_options),
						      .timeout_ns = LONG },
		       &region) == -ENOENT ?
		       0 :
		       2;
}

/* Stopped, so that it doesn't look in between. */
TEST(open_reports_the_end_of_the_draft_it_saw_though_the_next_is_there)
{
	struct maker maker = { .name = unique("lost") };
	struct tshare_region *draft, *next;
	int status, tries;
	pid_t pid;

	CHECK(steps_open(&maker.steps));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(open_patiently(&maker));
	CHECK(!create(maker.name, &draft_options, &draft));
	CHECK(send_byte(maker.steps.ends[1]));
	CHECK(await_byte(maker.steps.ends[1]));
	usleep(50000);
	for (tries = 0; tries < HANG_SECONDS * 1000 && !is_asleep(pid); tries++)
		usleep(1000);
	CHECK(!kill(pid, SIGSTOP));
	CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	tshare_region_unref(draft);
	CHECK(!create(maker.name, &draft_options, &next));
	CHECK(!kill(pid, SIGCONT));
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	tshare_region_unref(next);
	steps_close(&maker.steps);
}

TEST(open_of_another_region_than_the_one_there_is_eagain)
{
	const char *name = unique("same");
	struct tshare_region *region = new_region(name), *unnamed = new_region(NULL), *found;

	CHECK(open_within(name, 0, region, &found) == -EAGAIN);
	CHECK(error_says("still leads to other_than"));
	CHECK(open_within(name, 1000000, region, &found) == -ETIMEDOUT);
	CHECK(!open_within(name, 0, unnamed, &found));
	tshare_region_unref(found);
	tshare_region_unref(unnamed);
	tshare_region_unref(region);
}

TEST(open_waits_until_the_name_leads_to_another_region)
{
	struct opener opener = { .name = unique("other"), .timeout_ns = LONG };
	struct tshare_region *old = new_region(opener.name), *new;

	opener.other_than = old;
	start(&opener);
	CHECK(!create(opener.name, &replacing, &new));
	CHECK(finish(&opener) == tshare_region_get_id(new));
	tshare_region_unref(old);
	tshare_region_unref(new);
}

TEST(open_waits_for_a_successor_also_after_the_name_was_unlinked)
{
	struct opener opener = { .name = unique("unlinked"), .timeout_ns = LONG };
	struct tshare_region *old = new_region(opener.name), *new;

	opener.other_than = old;
	start(&opener);
	CHECK(!tshare_region_unlink(old));
	new = new_region(opener.name);
	CHECK(finish(&opener) == tshare_region_get_id(new));
	tshare_region_unref(old);
	tshare_region_unref(new);
}

TEST(open_is_not_ended_by_other_names)
{
	struct opener opener = { .name = unique("one"), .timeout_ns = LONG };
	struct tshare_region *region, *other;

	start(&opener);
	other = new_region(unique("one-more"));
	tshare_region_unref(other);
	usleep(20000);
	CHECK(!atomic_load(&opener.done));
	region = new_region(opener.name);
	CHECK(finish(&opener) == tshare_region_get_id(region));
	tshare_region_unref(region);
}

static void ignore_signal(int signal)
{
	(void)signal;
}

static void check_signal_ends_open(int flags)
{
	struct opener opener = { .name = unique("signal"), .timeout_ns = LONG };
	struct sigaction action = { .sa_handler = ignore_signal, .sa_flags = flags };

	CHECK(!sigaction(SIGUSR1, &action, NULL));
	start(&opener);
	/* A signal that comes before the wait has begun doesn't end it. */
	while (!atomic_load(&opener.done)) {
		CHECK(!pthread_kill(opener.thread, SIGUSR1));
		usleep(1000);
	}
	CHECK(!finish(&opener));
	CHECK(opener.err == -EINTR);
}

TEST(a_signal_handler_ends_open)
{
	check_signal_ends_open(0);
}

TEST(a_signal_handler_with_sa_restart_ends_open)
{
	check_signal_ends_open(SA_RESTART);
}

static void *open_and_be_cancelled(void *data)
{
	run_opener(data);
	pthread_testcancel();
	return NULL;
}

TEST(open_is_no_cancellation_point)
{
	struct opener opener = { .name = unique("cancelled"), .timeout_ns = LONG };
	struct tshare_region *draft;
	void *result;

	CHECK(!create(opener.name, &draft_options, &draft));
	start_with(&opener, open_and_be_cancelled);
	CHECK(!pthread_cancel(opener.thread));
	usleep(50000);
	CHECK(!atomic_load(&opener.done));
	CHECK(!tshare_region_finish(draft, 0));
	CHECK(!pthread_join(opener.thread, &result));
	CHECK(atomic_load(&opener.done) && !opener.err);
	CHECK(result == PTHREAD_CANCELED);
	tshare_region_unref(opener.found);
	tshare_region_unref(draft);
}

TEST(tensor_open_waits_too)
{
	const struct tshare_open_options options = { .size = sizeof(options), .timeout_ns = 1 };
	struct tshare_tensor *tensor;

	CHECK(tshare_tensor_open(ctx, unique("tensor"), &options, &tensor) == -ETIMEDOUT);
}

/* The library's own are closed some time after the last wait: they are fewer than the rounds. */
TEST(waiting_leaves_no_descriptors)
{
	enum { ROUNDS = 10 };
	struct tshare_region *region, *found;
	const char *name = unique("draft-fds");
	size_t before;
	int i;

	CHECK(!create(name, &draft_options, &region));
	before = open_descriptors();
	for (i = 0; i < ROUNDS; i++) {
		CHECK(open_within(unique("fds"), 1000000, NULL, &found) == -ETIMEDOUT);
		CHECK(open_within(name, 1000000, NULL, &found) == -ETIMEDOUT);
	}
	for (i = 0; i < HANG_SECONDS * 100 && open_descriptors() > before; i++)
		usleep(10000);
	CHECK(open_descriptors() <= before);
	tshare_region_unref(region);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
