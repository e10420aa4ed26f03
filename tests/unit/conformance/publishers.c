// SPDX-License-Identifier: MIT
/* Which processes count as publishers, and how a wait ends when the last has exited. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "../partner.h"

TEST(a_publisher_that_was_killed_is_noticed_at_once)
{
	const char *name = unique("dead");
	struct tshare_region *region = new_region(name);
	struct partner partner = { .name = name };
	int64_t quickest = INT64_MAX, begin;
	int i;

	kill_and_reap(start_publisher(&partner));
	/* "At once": without a sleep, which would take 100 ms. */
	for (i = 0; i < 10; i++) {
		begin = now_ns();
		CHECK(wait_beyond(region, 1, -1, 0) == -EOWNERDEAD);
		if (now_ns() - begin < quickest)
			quickest = now_ns() - begin;
	}
	CHECK(quickest < 50 * MS);
	CHECK(error_says("publishers have exited"));
	close(partner.steps.ends[1]);
	tshare_region_unref(region);
}

static int kill_later(struct partner *partner)
{
	sleep_ns(partner->delay_ns);
	return kill((pid_t)partner->seen, SIGKILL) ? 1 : 0;
}

/* Returns how long @waiter waits for a publisher of the region @name that is killed meanwhile. */
static int64_t wait_for_the_dying(struct tshare_region *waiter, const char *name)
{
	struct partner partner = { .name = name }, killer = { .delay_ns = 250 * MS };
	int64_t begin, took;
	uint64_t seen;
	pid_t pids[2];

	pids[0] = start_publisher(&partner);
	seen = generation_of(waiter);
	killer.seen = pids[0];
	begin = now_ns();
	pids[1] = start_partner(kill_later, &killer);
	CHECK(wait_beyond(waiter, seen, -1, 0) == -EOWNERDEAD);
	took = now_ns() - begin;
	CHECK(!end_of(pids[1]));
	CHECK(end_of(pids[0]) == -1);
	close(partner.steps.ends[1]);
	return took;
}

/* Within five seconds, for which a busy machine has several tries. */
static void check_death_is_noticed(struct tshare_region *waiter, const char *name)
{
	int64_t took = INT64_MAX;
	int tries;

	for (tries = 0; tries < 5 && took >= 5000 * MS; tries++) {
		took = wait_for_the_dying(waiter, name);
		CHECK(took >= 200 * MS);
	}
	CHECK(took < 5000 * MS);
}

TEST(a_publisher_that_is_killed_is_noticed_during_the_wait)
{
	const char *name = unique("dies");
	struct tshare_region *region = new_region(name);

	check_death_is_noticed(region, name);
	tshare_region_unref(region);
}

TEST(a_reader_notices_a_dead_publisher)
{
	const char *name = unique("dies");
	struct tshare_region *region = new_region(name), *reader;

	CHECK(!tshare_region_open(ctx, name, &readonly_options, &reader));
	check_death_is_noticed(reader, name);
	tshare_region_unref(reader);
	tshare_region_unref(region);
}

struct watcher {
	struct tshare_region *region;
	uint64_t expected;
	int err;
};

static void *wait_for_more(void *data)
{
	struct watcher *watcher = data;

	watcher->err = wait_beyond(watcher->region, 1, -1, watcher->expected);
	return NULL;
}

/* The wait sleeps without a timeout at first, since there is no publisher to check. */
TEST(a_wait_that_began_before_the_first_publisher_notices_its_death)
{
	const char *name = unique("first");
	struct watcher watcher = { .region = new_region(name) };
	struct partner partner = { .name = name };
	pthread_t thread;
	pid_t pid;

	CHECK(!pthread_create(&thread, NULL, wait_for_more, &watcher));
	sleep_ns(50 * MS);
	pid = start_publisher(&partner);
	sleep_ns(50 * MS);
	kill_and_reap(pid);
	CHECK(!pthread_join(thread, NULL));
	CHECK(watcher.err == -EOWNERDEAD);
	close(partner.steps.ends[1]);
	tshare_region_unref(watcher.region);
}

static int announce_and_stay(struct partner *partner)
{
	struct tshare_region *region = open_as_partner(partner);
	int end = partner->steps.ends[0];

	if (!region || tshare_region_announce(region) || tshare_region_announce(region))
		return 1;
	return send_byte(end) && await_byte(end) ? 0 : 2;
}

static pid_t start_announced(struct partner *partner)
{
	pid_t pid;

	CHECK(steps_open(&partner->steps));
	pid = start_partner(announce_and_stay, partner);
	CHECK(await_byte(partner->steps.ends[1]));
	return pid;
}

TEST(a_publisher_that_has_only_announced_itself_is_noticed_when_it_dies)
{
	const char *name = unique("announced");
	struct tshare_region *region = new_region(name);
	struct partner partner = { .name = name };
	pid_t pid = start_announced(&partner);

	CHECK(generation_of(region) == 0);
	CHECK(wait_beyond(region, 0, 300 * MS, 0) == -ETIMEDOUT);
	kill_and_reap(pid);
	CHECK(wait_beyond(region, 0, LONG, 0) == -EOWNERDEAD);
	steps_close(&partner.steps);
	tshare_region_unref(region);
}

TEST(a_wait_that_began_before_a_publisher_announced_itself_notices_its_death)
{
	const char *name = unique("began");
	struct watcher watcher = { .region = new_region(name) };
	struct partner partner = { .name = name };
	pthread_t thread;
	pid_t pid;

	CHECK(!pthread_create(&thread, NULL, wait_for_more, &watcher));
	sleep_ns(50 * MS);
	pid = start_announced(&partner);
	sleep_ns(50 * MS);
	kill_and_reap(pid);
	CHECK(!pthread_join(thread, NULL));
	CHECK(watcher.err == -EOWNERDEAD);
	steps_close(&partner.steps);
	tshare_region_unref(watcher.region);
}

TEST(announce_of_a_read_only_region_is_eacces)
{
	const char *name = unique("reader");
	struct tshare_region *region = new_region(name), *reader;

	CHECK(!tshare_region_open(ctx, name, &readonly_options, &reader));
	CHECK(tshare_region_announce(reader) == -EACCES);
	CHECK(error_says("read-only"));
	tshare_region_unref(reader);
	tshare_region_unref(region);
}

TEST(a_publisher_does_not_wait_for_itself)
{
	const char *name = unique("alone");
	struct tshare_region *region = new_region(name);

	publish(region);
	check_death_is_noticed(region, name);
	publish(region);
	CHECK(wait_beyond(region, generation_of(region), -1, 0) == -EOWNERDEAD);
	tshare_region_unref(region);
}

TEST(before_another_publisher_has_come_a_wait_goes_on)
{
	struct tshare_region *region = new_region(NULL);

	CHECK(wait_beyond(region, 0, 250 * MS, 0) == -ETIMEDOUT);
	publish(region);
	CHECK(wait_beyond(region, 1, 250 * MS, 0) == -ETIMEDOUT);
	tshare_region_unref(region);
}

TEST(a_publisher_in_the_same_process_is_another_one)
{
	struct tshare_region *region = new_region(NULL), *other = another(region, 0);

	publish(other);
	publish(region);
	CHECK(wait_beyond(region, 2, 250 * MS, 0) == -ETIMEDOUT);
	tshare_region_unref(other);
	CHECK(wait_beyond(region, 2, 250 * MS, 0) == -EOWNERDEAD);
	tshare_region_unref(region);
}

TEST(one_publisher_of_two_is_enough)
{
	const char *name = unique("two");
	struct tshare_region *region = new_region(name);
	struct partner one = { .name = name }, two = { .name = name };
	pid_t pids[2];

	pids[0] = start_publisher(&one);
	pids[1] = start_publisher(&two);
	kill_and_reap(pids[0]);
	CHECK(wait_beyond(region, 2, 250 * MS, 0) == -ETIMEDOUT);
	kill_and_reap(pids[1]);
	CHECK(wait_beyond(region, 2, LONG, 0) == -EOWNERDEAD);
	close(one.steps.ends[1]);
	close(two.steps.ends[1]);
	tshare_region_unref(region);
}

TEST(a_publisher_that_closes_is_not_counted)
{
	const char *name = unique("orderly");
	struct tshare_region *region = new_region(name);
	struct partner partner = { .name = name };
	pid_t pid = start_publisher(&partner);

	CHECK(wait_beyond(region, 1, 250 * MS, 0) == -ETIMEDOUT);
	CHECK(send_byte(partner.steps.ends[1]));
	CHECK(await_byte(partner.steps.ends[1]));
	CHECK(wait_beyond(region, 1, LONG, 0) == -EOWNERDEAD);
	CHECK(send_byte(partner.steps.ends[1]));
	CHECK(!end_of(pid));
	close(partner.steps.ends[1]);
	tshare_region_unref(region);
}

TEST(a_publisher_that_exits_is_not_counted)
{
	const char *name = unique("exits");
	struct tshare_region *region = new_region(name);
	struct partner partner = { .name = name };

	CHECK(!end_of(start_partner(publish_later, &partner)));
	CHECK(wait_beyond(region, 1, LONG, 0) == -EOWNERDEAD);
	tshare_region_unref(region);
}

static int publish_once_and_end(struct partner *partner)
{
	return tshare_region_publish_once(open_as_partner(partner), NULL);
}

TEST(publishing_once_makes_no_publisher)
{
	const char *name = unique("once");
	struct tshare_region *region = new_region(name);
	struct partner partner = { .name = name };

	CHECK(!end_of(start_partner(publish_once_and_end, &partner)));
	CHECK(!end_of(start_partner(publish_once_and_end, &partner)));
	CHECK(!wait_beyond(region, 1, LONG, 2));
	CHECK(wait_beyond(region, 2, 250 * MS, 0) == -ETIMEDOUT);
	tshare_region_unref(region);
}

TEST(publishing_once_wakes_waiters)
{
	const char *name = unique("wakes");
	struct watcher watcher = { .region = new_region(name), .expected = 2 };
	pthread_t thread;

	CHECK(!tshare_region_publish_once(watcher.region, NULL));
	CHECK(!pthread_create(&thread, NULL, wait_for_more, &watcher));
	sleep_ns(50 * MS);
	CHECK(!tshare_region_publish_once(watcher.region, NULL));
	CHECK(!pthread_join(thread, NULL));
	CHECK(!watcher.err);
	tshare_region_unref(watcher.region);
}

TEST(a_publisher_that_publishes_once_stays_one)
{
	struct tshare_region *region = new_region(NULL), *other = another(region, 0);
	uint64_t generation;

	publish(other);
	CHECK(!tshare_region_publish_once(other, &generation));
	CHECK(generation == 2);
	CHECK(wait_beyond(region, 2, 250 * MS, 0) == -ETIMEDOUT);
	tshare_region_unref(other);
	CHECK(wait_beyond(region, 2, LONG, 0) == -EOWNERDEAD);
	tshare_region_unref(region);
}

TEST(publishing_once_needs_write_access)
{
	struct tshare_region *region = new_region(NULL), *reader = another(region, TSHARE_READONLY);

	CHECK(tshare_region_publish_once(reader, NULL) == -EACCES);
	CHECK(error_says("read-only"));
	CHECK(!generation_of(region));
	tshare_region_unref(reader);
	tshare_region_unref(region);
}

TEST(an_object_tells_whether_there_are_publishers)
{
	struct tshare_region *region = new_region(NULL), *other = another(region, 0);
	bool has = true;

	publish(region);
	CHECK(!tshare_region_publish_once(other, NULL));
	CHECK(!tshare_region_has_publishers(region, &has) && !has);
	publish(other);
	CHECK(!tshare_region_has_publishers(region, &has) && has);
	tshare_region_unref(other);
	CHECK(tshare_region_has_publishers(region, &has) == -EOWNERDEAD);
	CHECK(error_says("publishers have exited"));
	tshare_region_unref(region);
}

static int publish_twice_and_end(struct partner *partner)
{
	struct tshare_region *region = partner->region;

	if (tshare_region_publish(region, NULL) || !send_byte(partner->steps.ends[0]))
		return 1;
	sleep_ns(partner->delay_ns);
	return tshare_region_publish(region, NULL) ? 2 : 0;
}

/* A last publish wins over the death of the publisher. */
TEST(publishes_of_the_dead_are_not_lost)
{
	struct partner partner;
	pid_t pid;
	int i;

	for (i = 0; i < 20; i++) {
		partner = (struct partner){ .region = new_region(NULL), .delay_ns = (90 + i) * MS };
		CHECK(steps_open(&partner.steps));
		pid = start_partner(publish_twice_and_end, &partner);
		CHECK(await_byte(partner.steps.ends[1]));
		CHECK(!wait_beyond(partner.region, 1, LONG, 2));
		CHECK(!end_of(pid));
		CHECK(!wait_beyond(partner.region, 1, LONG, 2));
		steps_close(&partner.steps);
		tshare_region_unref(partner.region);
	}
}

TEST(a_new_publisher_takes_the_place_of_a_dead_one)
{
	const char *name = unique("heir");
	struct tshare_region *region = new_region(name);
	struct partner one = { .name = name }, two = { .name = name };
	pid_t pid;

	kill_and_reap(start_publisher(&one));
	CHECK(wait_beyond(region, 1, LONG, 0) == -EOWNERDEAD);
	pid = start_publisher(&two);
	CHECK(!wait_beyond(region, 1, LONG, 2));
	CHECK(wait_beyond(region, 2, 250 * MS, 0) == -ETIMEDOUT);
	kill_and_reap(pid);
	close(one.steps.ends[1]);
	close(two.steps.ends[1]);
	tshare_region_unref(region);
}

/* Publishes, leaves a child that has the region, too, and ends. */
static int publish_and_fork(struct partner *partner)
{
	struct tshare_region *region = open_as_partner(partner);

	if (tshare_region_publish(region, NULL))
		return 1;
	if (!fork()) {
		send_byte(partner->steps.ends[0]);
		await_byte(partner->steps.ends[0]);
		if (!tshare_region_publish(region, NULL))
			send_byte(partner->steps.ends[0]);
		await_byte(partner->steps.ends[0]);
		_exit(0);
	}
	return 0;
}

TEST(after_fork_the_child_is_no_publisher_until_it_publishes)
{
	const char *name = unique("fork");
	struct tshare_region *region = new_region(name);
	struct partner partner = { .name = name };
	pid_t pid;

	CHECK(steps_open(&partner.steps));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		close(partner.steps.ends[1]);
		_exit(publish_and_fork(&partner));
	}
	close(partner.steps.ends[0]);
	CHECK(await_byte(partner.steps.ends[1]));
	CHECK(!end_of(pid));
	CHECK(wait_beyond(region, 1, LONG, 0) == -EOWNERDEAD);
	CHECK(send_byte(partner.steps.ends[1]));
	CHECK(await_byte(partner.steps.ends[1]));
	CHECK(wait_beyond(region, 2, 250 * MS, 0) == -ETIMEDOUT);
	close(partner.steps.ends[1]);
	CHECK(wait_beyond(region, 2, LONG, 0) == -EOWNERDEAD);
	tshare_region_unref(region);
}

static int end_at_once(struct partner *partner)
{
	tshare_region_unref(partner->region);
	return 0;
}

TEST(after_fork_the_parent_stays_a_publisher)
{
	struct tshare_region *region = new_region(NULL);
	struct tshare_region *reader = another(region, TSHARE_READONLY);
	struct partner partner = { .region = region };

	publish(region);
	CHECK(!end_of(start_partner(end_at_once, &partner)));
	CHECK(wait_beyond(reader, 1, 250 * MS, 0) == -ETIMEDOUT);
	tshare_region_unref(region);
	CHECK(wait_beyond(reader, 1, LONG, 0) == -EOWNERDEAD);
	tshare_region_unref(reader);
}

static int wait_for_parent(struct partner *partner)
{
	/* The parent is alive, and a publisher to this process. */
	if (wait_beyond(partner->region, 1, 250 * MS, 0) != -ETIMEDOUT)
		return 1;
	send_byte(partner->steps.ends[0]);
	return wait_beyond(partner->region, 1, LONG, 2) ? 2 : 0;
}

TEST(after_fork_the_child_can_wait_for_its_parent)
{
	struct tshare_region *region = new_region(NULL);
	struct partner partner = { .region = region };
	pid_t pid;

	publish(region);
	CHECK(steps_open(&partner.steps));
	pid = start_partner(wait_for_parent, &partner);
	CHECK(await_byte(partner.steps.ends[1]));
	publish(region);
	CHECK(!end_of(pid));
	steps_close(&partner.steps);
	tshare_region_unref(region);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
