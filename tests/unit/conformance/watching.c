// SPDX-License-Identifier: MIT
/* Watchers: waiting until a name leads to another region, or to none. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../partner.h"
#include "../util.h"

static struct tshare_watcher *watcher_of(const char *name)
{
	struct tshare_watcher *watcher;

	CHECK(!tshare_ctx_watch(ctx, name, &watcher));
	return watcher;
}

/* The id of the region that the name leads to now, or -ETIMEDOUT if that is @seen. */
static int64_t look(struct tshare_watcher *watcher, uint64_t seen)
{
	uint64_t id;
	int err = tshare_watcher_wait(watcher, seen, 0, &id);

	return err ? err : (int64_t)id;
}

static bool readable(const struct tshare_watcher *watcher)
{
	struct pollfd fd = { .fd = tshare_watcher_get_event_fd(watcher), .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

/* The event may come a little later than what it is about. */
static bool becomes_readable(const struct tshare_watcher *watcher)
{
	struct pollfd fd = { .fd = tshare_watcher_get_event_fd(watcher), .events = POLLIN };

	return poll(&fd, 1, HANG_SECONDS * 1000) == 1;
}

static struct tshare_region *create(const char *name, uint32_t flags)
{
	const struct tshare_options options = { .size = sizeof(options), .flags = flags };
	struct tshare_region *region;

	CHECK(!tshare_region_create(ctx, name, 1, NULL, 0, &options, &region));
	return region;
}

/* A thread that waits for a name to lead elsewhere. */
struct waiting {
	struct tshare_watcher *watcher;
	uint64_t seen;
	uint64_t id;
	int err;
	atomic_int thread_id;
	pthread_t thread;
};

static void *run_waiting(void *data)
{
	struct waiting *waiting = data;

	atomic_store(&waiting->thread_id, gettid());
	waiting->err = tshare_watcher_wait(waiting->watcher, waiting->seen, LONG, &waiting->id);
	return NULL;
}

/* Starts it, and returns when it sleeps. */
static void start(struct waiting *waiting)
{
	atomic_init(&waiting->thread_id, 0);
	CHECK(!pthread_create(&waiting->thread, NULL, run_waiting, waiting));
	while (!atomic_load(&waiting->thread_id) || !is_asleep(atomic_load(&waiting->thread_id)))
		usleep(1000);
}

static int64_t finish(struct waiting *waiting)
{
	CHECK(!pthread_join(waiting->thread, NULL));
	return waiting->err ? waiting->err : (int64_t)waiting->id;
}

TEST(watcher_looks_at_once)
{
	const char *name = unique("looks");
	struct tshare_watcher *watcher = watcher_of(name);
	struct tshare_region *region;
	int64_t id;

	CHECK(readable(watcher));
	CHECK(look(watcher, 0) == -ETIMEDOUT);
	CHECK(error_says("timeout") && error_says(name));
	CHECK(look(watcher, 1) == 0);

	region = new_region(name);
	id = tshare_region_get_id(region);
	CHECK(look(watcher, 0) == id);
	CHECK(look(watcher, id + 1) == id);
	CHECK(look(watcher, id) == -ETIMEDOUT);
	tshare_region_unref(region);
	CHECK(!tshare_ctx_unlink(ctx, name));
	CHECK(look(watcher, id) == 0);
	tshare_watcher_unref(watcher);
}

TEST(watcher_waits_for_a_region_its_successor_and_its_end)
{
	struct tshare_region *region, *next;
	struct waiting waiting = { 0 };
	const char *name = unique("successor");

	waiting.watcher = watcher_of(name);
	start(&waiting);
	region = new_region(name);
	CHECK(finish(&waiting) == (int64_t)tshare_region_get_id(region));

	waiting.seen = waiting.id;
	start(&waiting);
	next = create(name, TSHARE_REPLACE);
	CHECK(finish(&waiting) == (int64_t)tshare_region_get_id(next));

	waiting.seen = waiting.id;
	start(&waiting);
	CHECK(!tshare_region_unlink(next));
	CHECK(finish(&waiting) == 0);
	tshare_region_unref(next);
	tshare_region_unref(region);
	tshare_watcher_unref(waiting.watcher);
}

TEST(watcher_waits_until_a_draft_is_finished)
{
	struct waiting waiting = { 0 };
	const char *name = unique("draft");
	struct tshare_region *draft;

	waiting.watcher = watcher_of(name);
	draft = create(name, TSHARE_DRAFT);
	CHECK(look(waiting.watcher, 0) == -ETIMEDOUT);
	start(&waiting);
	CHECK(!tshare_region_finish(draft, 0));
	CHECK(finish(&waiting) == (int64_t)tshare_region_get_id(draft));
	tshare_region_unref(draft);
	tshare_watcher_unref(waiting.watcher);
}

TEST(watcher_waits_on_when_a_draft_ends)
{
	struct waiting waiting = { 0 };
	const char *name = unique("ended");
	struct tshare_region *region;

	waiting.watcher = watcher_of(name);
	start(&waiting);
	tshare_region_unref(create(name, TSHARE_DRAFT));
	CHECK(open_error(name) == -ENOENT);
	region = new_region(name);
	CHECK(finish(&waiting) == (int64_t)tshare_region_get_id(region));
	tshare_region_unref(region);
	tshare_watcher_unref(waiting.watcher);
}

/* Makes a region in a context of its own, and waits to be killed. */
static pid_t start_maker(const char *name)
{
	struct steps steps;
	pid_t pid;

	CHECK(steps_open(&steps));
	pid = fork();
	if (!pid) {
		struct tshare_region *region;
		struct tshare_ctx *own;

		if (ctx_new(NULL, &own) ||
		    tshare_region_create(own, name, 1, NULL, 0, NULL, &region))
			_exit(1);
		send_byte(steps.ends[1]);
		pause();
	}
	CHECK(await_byte(steps.ends[0]));
	steps_close(&steps);
	return pid;
}

TEST(watcher_tells_that_the_maker_was_killed)
{
	struct waiting waiting = { 0 };
	const char *name = unique("killed");
	pid_t pid = start_maker(name);

	waiting.watcher = watcher_of(name);
	waiting.seen = look(waiting.watcher, 0);
	CHECK((int64_t)waiting.seen > 0);
	start(&waiting);
	kill_and_reap(pid);
	CHECK(finish(&waiting) == 0);
	tshare_watcher_unref(waiting.watcher);
}

TEST(event_fd_of_a_watcher_is_readable_when_the_maker_was_killed)
{
	const char *name = unique("killed");
	pid_t pid = start_maker(name);
	struct tshare_watcher *watcher = watcher_of(name);
	int64_t id = look(watcher, 0);

	CHECK(id > 0);
	kill_and_reap(pid);
	/* It may be readable without news. */
	do
		CHECK(becomes_readable(watcher));
	while (look(watcher, id) == -ETIMEDOUT);
	CHECK(look(watcher, id) == 0);
	tshare_watcher_unref(watcher);
}

TEST(event_fd_of_a_watcher_is_readable_until_it_looks)
{
	const char *name = unique("event");
	struct tshare_watcher *watcher = watcher_of(name);
	struct tshare_region *region;

	CHECK(look(watcher, 0) == -ETIMEDOUT);
	CHECK(!readable(watcher));
	region = new_region(name);
	CHECK(becomes_readable(watcher));
	CHECK(look(watcher, 0) > 0);
	tshare_region_unref(region);
	CHECK(!tshare_ctx_unlink(ctx, name));
	CHECK(becomes_readable(watcher));
	CHECK(look(watcher, 1) == 0);
	tshare_watcher_unref(watcher);
}

TEST(watchers_of_other_names_see_nothing)
{
	const char *name = unique("other");
	struct tshare_watcher *watcher = watcher_of(unique("others"));
	struct tshare_watcher *witness = watcher_of(name);

	CHECK(look(watcher, 0) == -ETIMEDOUT);
	CHECK(look(witness, 0) == -ETIMEDOUT);
	tshare_region_unref(new_region(name));
	CHECK(becomes_readable(witness));
	CHECK(!readable(watcher));
	CHECK(!tshare_ctx_unlink(ctx, name));
	tshare_watcher_unref(witness);
	tshare_watcher_unref(watcher);
}

TEST(cancelled_watcher_ends_all_waits)
{
	struct waiting waiting = { .watcher = watcher_of(unique("cancel")) };

	start(&waiting);
	tshare_watcher_cancel(waiting.watcher);
	CHECK(finish(&waiting) == -ECANCELED);
	CHECK(look(waiting.watcher, 1) == -ECANCELED);
	CHECK(readable(waiting.watcher));
	tshare_watcher_unref(waiting.watcher);
}

TEST(second_thread_needs_a_watcher_of_its_own)
{
	struct waiting waiting = { .watcher = watcher_of(unique("second")) };

	start(&waiting);
	CHECK(look(waiting.watcher, 0) == -EBUSY);
	tshare_watcher_cancel(waiting.watcher);
	CHECK(finish(&waiting) == -ECANCELED);
	tshare_watcher_unref(waiting.watcher);
}

static void ignore(int signal)
{
	(void)signal;
}

TEST(signal_handler_ends_a_watcher_s_wait)
{
	struct sigaction action = { .sa_handler = ignore, .sa_flags = SA_RESTART }, before;
	struct waiting waiting = { .watcher = watcher_of(unique("signal")) };

	CHECK(!sigaction(SIGUSR1, &action, &before));
	start(&waiting);
	CHECK(!pthread_kill(waiting.thread, SIGUSR1));
	CHECK(finish(&waiting) == -EINTR);
	CHECK(!sigaction(SIGUSR1, &before, NULL));
	tshare_watcher_unref(waiting.watcher);
}

TEST(child_of_fork_needs_a_watcher_of_its_own)
{
	const char *name = unique("fork");
	struct tshare_watcher *watcher = watcher_of(name);
	struct tshare_region *region;
	pid_t pid;

	CHECK(look(watcher, 0) == -ETIMEDOUT);
	pid = fork();
	if (!pid) {
		bool told = look(watcher, 1) == -EOPNOTSUPP && error_says("fork");

		tshare_watcher_unref(watcher);
		watcher = watcher_of(name);
		_exit(!told || look(watcher, 1) != 0);
	}
	CHECK(end_of(pid) == 0);
	region = new_region(name);
	CHECK(becomes_readable(watcher));
	CHECK(look(watcher, 0) == (int64_t)tshare_region_get_id(region));
	tshare_region_unref(region);
	tshare_watcher_unref(watcher);
}

TEST(watcher_keeps_its_context_and_leaves_no_descriptor)
{
	const char *name = unique("context");
	struct tshare_watcher *watcher;
	struct tshare_ctx *own;
	size_t before = open_descriptors();

	CHECK(!ctx_new(NULL, &own));
	CHECK(!tshare_ctx_watch(own, name, &watcher));
	tshare_ctx_unref(own);
	CHECK(look(watcher, 1) == 0);
	CHECK(tshare_watcher_ref(watcher) == watcher);
	CHECK(!tshare_watcher_unref(watcher));
	CHECK(look(watcher, 1) == 0);
	CHECK(!tshare_watcher_unref(watcher));
	CHECK(!tshare_watcher_unref(NULL));
	/* A thread of the library may keep two for a while. */
	while (open_descriptors() > before)
		usleep(1000);
}

TEST(watchers_of_malformed_names_are_refused)
{
	struct tshare_watcher *watcher;

	CHECK(tshare_ctx_watch(ctx, "", &watcher) == -EINVAL);
	CHECK(tshare_ctx_watch(ctx, "a/b", &watcher) == -EINVAL);
	CHECK(error_says("name"));
}

static int watch_without_descriptors(void)
{
	struct tshare_watcher *watcher;
	unsigned int count;
	int err;

	for (count = 0;; count++) {
		pid_t pid = fork();

		if (!pid) {
			if (!leave_descriptors(count))
				_exit(1);
			err = tshare_ctx_watch(ctx, "name", &watcher);
			_exit(err == -EMFILE ? 2 : err ? 1 : 0);
		}
		err = end_of(pid);
		if (err != 2)
			return err ? -EIO : (int)count;
	}
}

TEST(watcher_says_that_no_descriptor_is_left)
{
	CHECK(watch_without_descriptors() >= 2);
}

/* The name changes while it is watched: the last state is seen at the latest. */
TEST(watcher_of_a_name_that_changes_sees_the_last_region)
{
	const char *name = unique("changes");
	struct tshare_watcher *watcher = watcher_of(name);
	struct tshare_region *region;
	int64_t id;
	int i;

	for (i = 0; i < rounds(400); i++) {
		region = create(name, TSHARE_REPLACE);
		id = tshare_region_get_id(region);
		while (look(watcher, 0) != id)
			CHECK(becomes_readable(watcher));
		tshare_region_unref(region);
	}
	CHECK(!tshare_ctx_unlink(ctx, name));
	tshare_watcher_unref(watcher);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
