// SPDX-License-Identifier: MIT
/* Generations: how they are counted, and what ends a wait for the next one. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <linux/tshare.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "../partner.h"

TEST(a_generation_is_0_at_first)
{
	struct tshare_region *region = new_region(NULL);

	CHECK(generation_of(region) == 0);
	tshare_region_unref(region);
}

TEST(publishes_are_counted)
{
	struct tshare_region *region = new_region(NULL);
	uint64_t generation, i;

	for (i = 1; i <= 10; i++) {
		CHECK(!tshare_region_publish(region, &generation));
		CHECK(generation == i);
		CHECK(generation_of(region) == i);
	}
	publish(region);
	CHECK(generation_of(region) == 11);
	tshare_region_unref(region);
}

/* As a library does that counts in another way. The version's place is the same for all. */
static void store_version(const struct tshare_region *region, uint32_t version)
{
	struct tshare_counter counter = { .fd = tshare_region_get_fd(region) };
	const off_t place = 16;
	int device;

	if (!strcmp(tshare_region_get_backend(region), "shm")) {
		CHECK(pwrite(counter.fd, &version, sizeof(version), 192 + place) == 4);
		return;
	}
	device = open("/dev/tshare", O_RDWR | O_CLOEXEC);
	CHECK(device >= 0 && !ioctl(device, TSHARE_IOCTL_COUNTER, &counter));
	CHECK(pwrite(counter.counter_fd, &version, sizeof(version), place) == 4);
	close(counter.counter_fd);
	close(device);
}

TEST(a_counter_of_another_version_is_not_used)
{
	struct tshare_region *region = new_region(NULL);
	uint64_t generation;
	int fd;

	store_version(region, 2);
	CHECK(tshare_region_get_generation(region, &generation) == -EPROTO);
	CHECK(error_says("version 2"));
	CHECK(tshare_region_publish(region, NULL) == -EPROTO);
	CHECK(tshare_region_wait(region, 0, 0, 0, &generation) == -EPROTO);
	CHECK(tshare_region_get_event_fd(region, &fd) == -EPROTO);
	tshare_region_unref(region);
}

/* A reader can map the counter before the first process that counts in another way. */
TEST(a_reader_notices_that_others_begin_to_count_in_another_way)
{
	struct tshare_region *region = new_region(unique("spoken")), *reader;
	uint64_t generation;

	CHECK(!tshare_region_open(ctx, tshare_region_get_name(region), &readonly_options, &reader));
	CHECK(tshare_region_wait(reader, 0, 0, 0, &generation) == -ETIMEDOUT);
	publish(region);
	store_version(region, 2);
	CHECK(tshare_region_wait(reader, 0, 0, 0, &generation) == -EPROTO);
	CHECK(tshare_region_wait(reader, 1, -1, 0, &generation) == -EPROTO);
	CHECK(tshare_region_get_generation(reader, &generation) == -EPROTO);
	tshare_region_unref(reader);
	tshare_region_unref(region);
}

TEST(each_region_has_a_generation_of_its_own)
{
	struct tshare_region *one = new_region(NULL), *two = new_region(NULL);

	publish(one);
	CHECK(generation_of(one) == 1);
	CHECK(generation_of(two) == 0);
	publish(two);
	publish(two);
	CHECK(generation_of(one) == 1);
	CHECK(generation_of(two) == 2);
	tshare_region_unref(one);
	tshare_region_unref(two);
}

TEST(a_generation_is_shared_by_all_openers)
{
	const char *name = unique("generation");
	struct tshare_region *region = new_region(name), *opened, *imported, *reader;

	publish(region);
	CHECK(!tshare_region_open(ctx, name, NULL, &opened));
	imported = another(region, 0);
	reader = another(region, TSHARE_READONLY);
	publish(opened);
	publish(imported);
	CHECK(generation_of(region) == 3);
	CHECK(generation_of(opened) == 3);
	CHECK(generation_of(imported) == 3);
	CHECK(generation_of(reader) == 3);
	tshare_region_unref(region);
	tshare_region_unref(opened);
	tshare_region_unref(imported);
	CHECK(generation_of(reader) == 3);
	tshare_region_unref(reader);
}

TEST(a_generation_lies_outside_the_memory)
{
	struct tshare_region *region = new_region(NULL);

	publish(region);
	CHECK(all_zero(tshare_region_get_data(region), tshare_region_get_size(region)));
	memset(tshare_region_get_data(region), 0xff, tshare_region_get_size(region));
	CHECK(generation_of(region) == 1);
	tshare_region_unref(region);
}

TEST(a_wait_returns_at_once_when_it_is_behind)
{
	struct tshare_region *region = new_region(NULL);
	uint64_t i;

	for (i = 0; i < 5; i++)
		publish(region);
	for (i = 0; i < 5; i++) {
		CHECK(!wait_beyond(region, i, 0, 5));
		CHECK(!wait_beyond(region, i, -1, 5));
		CHECK(!wait_beyond(region, i, LONG, 5));
	}
	tshare_region_unref(region);
}

TEST(a_wait_times_out)
{
	struct tshare_region *region = new_region(NULL);
	int64_t start = now_ns(), took;

	CHECK(wait_beyond(region, 0, 250 * MS, 0) == -ETIMEDOUT);
	took = now_ns() - start;
	CHECK(error_says("timeout"));
	CHECK(took >= 250 * MS);
	CHECK(took < LONG);
	tshare_region_unref(region);
}

/* How often this thread has slept since it was started. */
static long sleeps(void)
{
	struct rusage usage;

	CHECK(!getrusage(RUSAGE_THREAD, &usage));
	return usage.ru_nvcsw;
}

TEST(a_wait_without_time_only_looks)
{
	struct tshare_region *region = new_region(NULL);
	int64_t quickest = INT64_MAX, begin;
	long before = sleeps();
	int i;

	for (i = 0; i < 100; i++) {
		begin = now_ns();
		CHECK(wait_beyond(region, 0, 0, 0) == -ETIMEDOUT);
		if (now_ns() - begin < quickest)
			quickest = now_ns() - begin;
	}
	CHECK(sleeps() - before < 50);
	CHECK(quickest < 50 * MS);
	tshare_region_unref(region);
}

TEST(a_wait_that_spins_times_out_too)
{
	struct tshare_region *region = new_region(NULL);
	int64_t start = now_ns(), took;
	uint64_t generation;

	CHECK(tshare_region_wait(region, 0, 50 * MS, LONG, &generation) == -ETIMEDOUT);
	took = now_ns() - start;
	CHECK(took >= 50 * MS);
	CHECK(took < LONG);
	tshare_region_unref(region);
}

TEST(a_wait_takes_no_processor)
{
	struct tshare_region *region = new_region(NULL);
	clock_t start = clock();

	CHECK(wait_beyond(region, 0, 1000 * MS, 0) == -ETIMEDOUT);
	CHECK(clock() - start < CLOCKS_PER_SEC / 4);
	tshare_region_unref(region);
}

/* A wait without publishers checks nothing periodically: it costs one context switch. */
TEST(a_wait_without_publishers_sleeps_through)
{
	struct tshare_region *region = new_region(NULL);
	long before = sleeps();

	CHECK(wait_beyond(region, 0, 1000 * MS, 0) == -ETIMEDOUT);
	CHECK(sleeps() - before < 5);
	tshare_region_unref(region);
}

TEST(a_reader_can_wait_and_not_publish)
{
	const char *name = unique("reader");
	struct tshare_region *region = new_region(name), *reader, *imported;
	uint64_t generation = 7;

	CHECK(!tshare_region_open(ctx, name, &readonly_options, &reader));
	imported = another(region, TSHARE_READONLY);
	CHECK(tshare_region_publish(reader, &generation) == -EACCES);
	CHECK(error_says("read-only"));
	CHECK(tshare_region_publish(imported, &generation) == -EACCES);
	CHECK(generation == 7);
	CHECK(wait_beyond(reader, 0, 50 * MS, 0) == -ETIMEDOUT);
	publish(region);
	CHECK(!wait_beyond(reader, 0, LONG, 1));
	CHECK(!wait_beyond(imported, 0, LONG, 1));
	CHECK(wait_beyond(reader, 1, 250 * MS, 0) == -ETIMEDOUT);
	tshare_region_unref(region);
	tshare_region_unref(reader);
	tshare_region_unref(imported);
}

TEST(waiting_and_publishing_leave_nothing_open)
{
	struct tshare_region *region = new_region(NULL), *other;
	size_t before = open_descriptors();
	int i;

	for (i = 0; i < 10; i++) {
		other = another(region, i % 2 ? TSHARE_READONLY : 0);
		CHECK(wait_beyond(other, UINT64_MAX, 1 * MS, 0) == (i ? -EOWNERDEAD : -ETIMEDOUT));
		if (!(i % 2))
			publish(other);
		CHECK(wait_beyond(other, UINT64_MAX, 1 * MS, 0) == (i ? -EOWNERDEAD : -ETIMEDOUT));
		tshare_region_unref(other);
	}
	CHECK(open_descriptors() == before);
	tshare_region_unref(region);
}

TEST(a_publish_wakes_another_process)
{
	const char *name = unique("wakes");
	struct tshare_region *region = new_region(name);
	struct partner partner = { .name = name, .delay_ns = 150 * MS };
	pid_t pid = start_partner(publish_later, &partner);

	CHECK(!wait_beyond(region, 0, LONG, 1));
	CHECK(!strcmp(tshare_region_get_data(region), "published"));
	CHECK(!end_of(pid));
	tshare_region_unref(region);
}

TEST(a_publish_wakes_a_waiter_without_timeout)
{
	const char *name = unique("wakes");
	struct tshare_region *region = new_region(name), *reader;
	struct partner partner = { .name = name, .delay_ns = 50 * MS };
	pid_t pid;

	CHECK(!tshare_region_open(ctx, name, &readonly_options, &reader));
	pid = start_partner(publish_later, &partner);
	CHECK(!wait_beyond(reader, 0, -1, 1));
	CHECK(!end_of(pid));
	tshare_region_unref(region);
	tshare_region_unref(reader);
}

TEST(a_publish_ends_a_spin)
{
	const char *name = unique("spins");
	struct tshare_region *region = new_region(name);
	struct partner partner = { .name = name, .delay_ns = 20 * MS };
	pid_t pid = start_partner(publish_later, &partner);
	uint64_t generation;

	CHECK(!tshare_region_wait(region, 0, LONG, LONG, &generation));
	CHECK(generation == 1);
	CHECK(!end_of(pid));
	tshare_region_unref(region);
}

/* Counts each wait before it begins, and in another word after it has ended. */
static int wait_in_rounds(struct partner *partner, int woken)
{
	struct tshare_region *region = open_as_partner(partner);
	uint64_t seen;

	for (seen = 0; seen < partner->rounds; seen++)
		if (!send_byte(partner->steps.ends[0]) ||
		    wait_beyond(region, seen, LONG, seen + 1) || !send_byte(woken))
			return 1;
	return 0;
}

static void await_bytes(int end, int count)
{
	while (count--)
		CHECK(await_byte(end));
}

/*
 * Counts the rounds in which all waiters end soon after a publish. A waiter that isn't
 * woken checks the generation at the end of a slice, 100 ms after its wait began.
 */
static unsigned int quick_rounds(unsigned int rounds)
{
	enum { WAITERS = 6 };
	const char *name = unique("all");
	struct tshare_region *region = new_region(name);
	struct partner partner = { .name = name, .rounds = rounds };
	unsigned int round, quick = 0, i;
	struct steps woken;
	pid_t pids[WAITERS];
	int64_t begin;

	CHECK(steps_open(&partner.steps));
	CHECK(steps_open(&woken));
	for (i = 0; i < WAITERS; i++) {
		partner.flags = i % 2 ? TSHARE_READONLY : 0;
		pids[i] = fork();
		if (!pids[i])
			_exit(wait_in_rounds(&partner, woken.ends[0]));
	}
	for (round = 0; round < rounds; round++) {
		await_bytes(partner.steps.ends[1], WAITERS);
		sleep_ns(20 * MS);
		begin = now_ns();
		publish(region);
		await_bytes(woken.ends[1], WAITERS);
		quick += now_ns() - begin < 50 * MS;
	}
	for (i = 0; i < WAITERS; i++)
		CHECK(!end_of(pids[i]));
	steps_close(&partner.steps);
	steps_close(&woken);
	CHECK(!tshare_region_unlink(region));
	tshare_region_unref(region);
	return quick;
}

/* Most rounds are quick, on a busy machine in one of several tries. */
TEST(a_publish_wakes_all_waiters)
{
	const unsigned int rounds = 20;
	unsigned int tries, quick = 0;

	for (tries = 0; tries < 10 && quick <= rounds / 2; tries++)
		quick = quick_rounds(rounds);
	CHECK(quick > rounds / 2);
}

TEST(an_unnamed_region_passes_its_generation_on)
{
	struct tshare_region *region = new_region(NULL);
	struct partner partner = { .region = another(region, 0), .delay_ns = 50 * MS };
	pid_t pid = start_partner(publish_later, &partner);

	CHECK(!wait_beyond(region, 0, LONG, 1));
	CHECK(!end_of(pid));
	tshare_region_unref(partner.region);
	tshare_region_unref(region);
}

static int publish_received(void *data)
{
	struct steps *steps = data;
	struct tshare_region *region;
	struct tshare_ctx *own;
	int fd = receive_fd(steps->ends[1]);

	if (tshare_ctx_new(NULL, &own) || tshare_region_import(own, fd, 0, &region))
		return 1;
	return tshare_region_publish(region, NULL) ? 2 : 0;
}

TEST(a_receiver_of_a_descriptor_can_publish)
{
	struct tshare_region *region = new_region(NULL);
	struct steps steps;

	CHECK(steps_open(&steps));
	CHECK(send_fd(steps.ends[0], tshare_region_get_fd(region)));
	CHECK(!in_child(publish_received, &steps));
	CHECK(!wait_beyond(region, 0, LONG, 1));
	steps_close(&steps);
	tshare_region_unref(region);
}

static int stop_and_continue(struct partner *unused)
{
	int i;

	(void)unused;
	for (i = 0; i < 10; i++) {
		sleep_ns(20 * MS);
		if (kill(getppid(), SIGSTOP) || kill(getppid(), SIGCONT))
			return 1;
	}
	return 0;
}

TEST(to_be_stopped_and_continued_does_not_end_a_wait)
{
	struct tshare_region *region = new_region(NULL);
	struct partner partner = { 0 };
	pid_t pid;

	pid = start_partner(stop_and_continue, &partner);
	CHECK(wait_beyond(region, 0, 300 * MS, 0) == -ETIMEDOUT);
	CHECK(!end_of(pid));
	tshare_region_unref(region);
}

/* Answers each odd generation with an even one. */
static int answer(struct partner *partner)
{
	struct tshare_region *region = open_as_partner(partner);
	uint64_t round, seen = 0;

	for (round = 0; round < partner->rounds; round++) {
		if (tshare_region_wait(region, seen, LONG, 0, &seen) || seen != 2 * round + 1)
			return 1;
		if (*(uint64_t *)tshare_region_get_data(region) != round)
			return 2;
		*(uint64_t *)tshare_region_get_data(region) = ~round;
		if (tshare_region_publish(region, &seen) || seen != 2 * round + 2)
			return 3;
	}
	return 0;
}

TEST(no_wake_up_is_lost)
{
	const char *name = unique("pingpong");
	struct tshare_region *region = new_region(name);
	struct partner partner = { .name = name, .rounds = rounds(20000) };
	volatile uint64_t *shared = tshare_region_get_data(region);
	pid_t pid = start_partner(answer, &partner);
	uint64_t round, seen;

	for (round = 0; round < partner.rounds; round++) {
		*shared = round;
		CHECK(!tshare_region_publish(region, &seen));
		CHECK(!wait_beyond(region, seen, LONG, seen + 1));
		CHECK(*shared == ~round);
	}
	CHECK(!end_of(pid));
	tshare_region_unref(region);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
