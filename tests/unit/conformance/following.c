// SPDX-License-Identifier: MIT
/* Streams whose readers move over to the next stream of their name. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../frames.h"
#include "../partner.h"

static struct tshare_stream *follow_holding(const char *name, uint32_t flags, uint32_t hold)
{
	const struct tshare_stream_open_options options = {
		.size = sizeof(options),
		.flags = flags | TSHARE_FOLLOW,
		.hold = hold,
	};
	struct tshare_stream *stream;

	CHECK(!tshare_stream_open(ctx, name, &options, &stream));
	return stream;
}

static struct tshare_stream *follow(const char *name, uint32_t flags)
{
	return follow_holding(name, flags, 0);
}

/* A producer that takes over the name of one that lives. */
static struct tshare_stream *replace(const char *name, const struct tshare_spec *field,
				     uint32_t flags)
{
	const struct tshare_options region = { .size = sizeof(region), .flags = TSHARE_REPLACE };
	const int64_t shape[] = { FRAME_ELEMENTS };
	const struct tshare_spec data = SPEC("data", TSHARE_UINT64, 1, shape);
	const struct tshare_stream_options options = {
		.size = sizeof(options),
		.slots = 4,
		.flags = flags,
		.region = &region,
	};
	struct tshare_stream *stream;

	CHECK(!tshare_stream_create(ctx, name, field ? field : &data, 1, &options, &stream));
	return stream;
}

static struct tshare_frame_info info_of(struct tshare_frame *frame)
{
	struct tshare_frame_info info = { .size = sizeof(info) };

	CHECK(!tshare_frame_get_info(frame, &info));
	return info;
}

/* Takes a frame within the time: 100 times its epoch and its number, if it is whole; or the error. */
static int64_t take_within(struct tshare_stream *stream, int64_t timeout_ns)
{
	struct tshare_frame_info info;
	struct tshare_frame *frame;
	bool whole;
	int err;

	err = tshare_stream_take(stream, timeout_ns, &frame);
	if (err)
		return err;
	info = info_of(frame);
	whole = whole_number(frame) == info.number;
	tshare_frame_unref(frame);
	return whole ? 100 * (int64_t)info.epoch + (int64_t)info.number : 0;
}

TEST(a_follower_takes_what_is_left_and_moves_over)
{
	const uint32_t flags[] = { 0, TSHARE_KEEP_ALL, TSHARE_OBSERVE };
	struct tshare_stream *producer, *reader;
	const char *name;
	int i;

	for (i = 0; i < 3; i++) {
		name = unique("left");
		producer = new_stream(name, 8, 4, TSHARE_KEEP_ALL);
		reader = follow(name, flags[i]);
		CHECK(publish_until(producer, 3));
		CHECK(take_within(reader, 0) == 1);
		tshare_stream_unref(producer);
		producer = new_stream(name, 4, 3, TSHARE_KEEP_ALL);
		CHECK(publish_until(producer, 2));
		CHECK(take_within(reader, 0) == 2);
		CHECK(take_within(reader, 0) == 3);
		CHECK(take_within(reader, 0) == 101);
		CHECK(take_within(reader, 0) == 102);
		CHECK(take_within(reader, 0) == -ETIMEDOUT);
		tshare_stream_unref(reader);
		tshare_stream_unref(producer);
	}
}

TEST(lost_frames_are_counted_within_a_stream)
{
	const char *name = unique("lost");
	struct tshare_stream *producer = new_stream(name, 4, 3, 0), *consumer = follow(name, 0);
	struct tshare_frame *frame;

	CHECK(publish_until(producer, 2));
	tshare_stream_unref(producer);
	producer = new_stream(name, 4, 3, 0);
	CHECK(publish_until(producer, 10));
	CHECK(!tshare_stream_take_latest(consumer, 0, &frame));
	CHECK(info_of(frame).number == 2 && info_of(frame).lost == 1);
	tshare_frame_unref(frame);
	frame = take_frame(consumer);
	CHECK(info_of(frame).number >= 7 && info_of(frame).lost == info_of(frame).number - 1);
	CHECK(info_of(frame).epoch == 1);
	tshare_frame_unref(frame);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

/* A thread that takes a frame. */
struct taking {
	struct tshare_stream *stream;
	int64_t taken;
	pthread_t thread;
};

static void *run_taking(void *data)
{
	struct taking *taking = data;

	taking->taken = take_within(taking->stream, LONG);
	return NULL;
}

static void start_taking(struct taking *taking, struct tshare_stream *stream)
{
	taking->stream = stream;
	CHECK(!pthread_create(&taking->thread, NULL, run_taking, taking));
	sleep_ns(50 * MS);
}

static int64_t end_taking(struct taking *taking)
{
	CHECK(!pthread_join(taking->thread, NULL));
	return taking->taken;
}

/* A child that creates the stream, publishes a frame, and waits to be killed. */
struct victim {
	const char *name;
	struct steps steps;
	pid_t pid;
};

static int produce(const struct victim *victim)
{
	struct tshare_stream *stream;
	struct tshare_ctx *own;

	if (ctx_new(tshare_ctx_get_backend(ctx), &own))
		return 1;
	ctx = own;
	stream = new_stream(victim->name, 4, 1, 0);
	if (!publish_until(stream, 1) || !send_byte(victim->steps.ends[1]))
		return 1;
	pause();
	return 2;
}

static void start_victim(struct victim *victim)
{
	CHECK(steps_open(&victim->steps));
	victim->pid = fork();
	CHECK(victim->pid >= 0);
	if (!victim->pid)
		_exit(produce(victim));
	CHECK(await_byte(victim->steps.ends[0]));
}

TEST(a_take_waits_for_a_killed_producers_successor)
{
	struct victim victim = { .name = unique("killed") };
	struct tshare_stream *consumer, *producer;
	struct taking taking[2];
	int64_t sum;

	start_victim(&victim);
	consumer = follow(victim.name, 0);
	start_taking(&taking[0], consumer);
	start_taking(&taking[1], consumer);
	kill_and_reap(victim.pid);
	steps_close(&victim.steps);
	sleep_ns(300 * MS);
	producer = new_stream(victim.name, 4, 3, 0);
	CHECK(publish_until(producer, 2));
	sum = end_taking(&taking[0]) + end_taking(&taking[1]);
	CHECK(sum == 203);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(without_a_successor_a_take_is_late)
{
	const char *name = unique("late");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0), *consumer = follow(name, 0);

	tshare_stream_unref(producer);
	CHECK(take_within(consumer, 0) == -ETIMEDOUT && error_says("no other stream yet"));
	CHECK(take_within(consumer, 20 * MS) == -ETIMEDOUT);
	tshare_stream_unref(consumer);
}

TEST(a_closed_stream_ends_unless_its_name_leads_on)
{
	const char *name = unique("closed");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0), *consumer = follow(name, 0);

	CHECK(publish_until(producer, 1));
	CHECK(!tshare_stream_close(producer, 0));
	CHECK(take_within(consumer, -1) == 1);
	CHECK(take_within(consumer, -1) == -ENODATA);
	tshare_stream_unref(producer);
	CHECK(take_within(consumer, -1) == -ENODATA);
	producer = new_stream(name, 4, 1, 0);
	CHECK(publish_until(producer, 1));
	CHECK(take_within(consumer, -1) == 101);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(a_replaced_producer_that_goes_on_is_left)
{
	const uint32_t flags[] = { 0, TSHARE_KEEP_ALL, TSHARE_OBSERVE };
	struct tshare_stream *producer, *next, *reader;
	struct tshare_frame *held, *frame;
	uint64_t number = 0;
	const char *name;
	int i;

	for (i = 0; i < 3; i++) {
		name = unique("living");
		producer = new_stream(name, 4, 1, TSHARE_KEEP_ALL);
		reader = follow(name, flags[i]);
		CHECK(publish_until(producer, number = 1));
		held = take_frame(reader);
		next = replace(name, NULL, TSHARE_KEEP_ALL);
		CHECK(publish_until(next, 1));
		for (;;) {
			CHECK(publish_until(producer, ++number));
			frame = take_frame(reader);
			if (info_of(frame).epoch)
				break;
			tshare_frame_unref(frame);
			sleep_ns(5 * MS);
		}
		CHECK(whole_number(frame) == 1);
		tshare_frame_unref(frame);
		CHECK(flags[i] == TSHARE_OBSERVE || whole_number(held) == 1);

		/* The consumer delays it no more, but for the frame that is held. */
		CHECK(publish_until(producer, number + 20));
		CHECK(flags[i] == TSHARE_OBSERVE || whole_number(held) == 1);
		tshare_frame_unref(held);
		tshare_stream_unref(reader);
		tshare_stream_unref(producer);
		tshare_stream_unref(next);
	}
}

TEST(a_shortage_of_descriptors_leaves_a_follower_where_it_is)
{
	const char *name = unique("shortage");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0), *consumer = follow(name, 0);
	struct rlimit limit;
	rlim_t before;

	CHECK(publish_until(producer, 1));
	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	before = limit.rlim_cur;
	limit.rlim_cur = 3;
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	sleep_ns(150 * MS);
	CHECK(take_within(consumer, 0) == 1);
	limit.rlim_cur = before;
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	CHECK(publish_until(producer, 2));
	CHECK(take_within(consumer, 0) == 2);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(a_stream_with_other_fields_is_not_moved_to)
{
	const int64_t shape[] = { 3 };
	const struct tshare_spec fields[] = {
		SPEC("data", TSHARE_UINT64, 1, shape),
		SPEC("data", TSHARE_UINT64),
		SPEC("other", TSHARE_UINT64),
	};
	const char *name = unique("fields");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0), *consumer = follow(name, 0);
	size_t i;

	CHECK(publish_until(producer, 1));
	tshare_stream_unref(producer);
	CHECK(take_within(consumer, 0) == 1);
	for (i = 0; i < 3; i++) {
		producer = replace(name, &fields[i], 0);
		CHECK(take_within(consumer, -1) == -EPROTO && error_says("field 'data' is"));
		tshare_stream_unref(producer);
	}
	producer = new_stream(name, 4, 1, 0);
	CHECK(publish_until(producer, 1));
	CHECK(take_within(consumer, 0) == 101);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(a_stream_that_lets_nobody_keep_all_is_not_moved_to)
{
	const char *name = unique("consent");
	struct tshare_stream *producer = new_stream(name, 4, 1, TSHARE_KEEP_ALL);
	struct tshare_stream *consumer = follow(name, TSHARE_KEEP_ALL);

	tshare_stream_unref(producer);
	producer = new_stream(name, 4, 1, 0);
	CHECK(take_within(consumer, -1) == -EPERM);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(frames_of_an_old_stream_stay_and_count_as_held)
{
	const char *name = unique("old");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0);
	struct tshare_stream *consumer = follow_holding(name, 0, 2);
	struct tshare_frame *frames[3];
	struct tshare_tensor *tensor;

	CHECK(publish_until(producer, 1));
	frames[0] = take_frame(consumer);
	tshare_stream_unref(producer);
	producer = new_stream(name, 4, 1, 0);
	CHECK(publish_until(producer, 2));
	frames[1] = take_frame(consumer);
	CHECK(info_of(frames[1]).epoch == 1);
	CHECK(tshare_stream_take(consumer, 0, &frames[2]) == -ENOBUFS);
	CHECK(whole_number(frames[0]) == 1 && !tshare_frame_check(frames[0]));
	CHECK(!tshare_frame_get_tensor(frames[0], 0, &tensor));
	tshare_frame_unref(frames[0]);
	CHECK(*(uint64_t *)tshare_tensor_get_data(tensor) == 1);
	CHECK(tshare_stream_take(consumer, 0, &frames[2]) == -ENOBUFS);
	tshare_tensor_unref(tensor);
	frames[2] = take_frame(consumer);
	tshare_frame_unref(frames[1]);

	/* Also when the object has gone. */
	tshare_stream_unref(consumer);
	CHECK(whole_number(frames[2]) == 2);
	tshare_frame_unref(frames[2]);
	tshare_stream_unref(producer);
}

TEST(a_followers_calls_are_about_the_stream_that_it_is_at)
{
	struct tshare_stream_info info = { .size = sizeof(info) };
	const char *name = unique("at");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0), *consumer = follow(name, 0);
	struct tshare_region *before, *after;
	struct tshare_frame *frame;

	before = tshare_stream_ref_region(consumer);
	CHECK(before == tshare_stream_get_region(consumer));
	tshare_stream_unref(producer);
	producer = new_stream(name, 6, 3, 0);
	CHECK(publish_until(producer, 2));
	CHECK(take_within(consumer, 0) == 101);
	after = tshare_stream_ref_region(consumer);
	CHECK(tshare_region_get_id(before) != tshare_region_get_id(after));
	CHECK(!tshare_stream_get_info(consumer, &info));
	CHECK(info.slots == 6 && info.history == 3 && info.newest == 2 && info.seat == 0);
	CHECK(!tshare_stream_get(consumer, 2, &frame));
	CHECK(info_of(frame).epoch == 1);
	tshare_frame_unref(frame);
	CHECK(tshare_stream_loan(consumer, 0, &frame) == -EACCES);
	tshare_region_unref(before);
	tshare_region_unref(after);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(cancelling_ends_a_wait_for_the_next_stream)
{
	const char *name = unique("cancel");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0), *consumer = follow(name, 0);
	struct taking taking;

	tshare_stream_unref(producer);
	start_taking(&taking, consumer);
	tshare_stream_cancel(consumer);
	CHECK(end_taking(&taking) == -ECANCELED);
	producer = new_stream(name, 4, 1, 0);
	CHECK(publish_until(producer, 1));
	CHECK(take_within(consumer, -1) == -ECANCELED);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(a_child_of_a_follower_has_no_role)
{
	struct tshare_stream_info info = { .size = sizeof(info) };
	const char *name = unique("child");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0), *consumer = follow(name, 0);
	pid_t pid;
	int ok;

	CHECK(publish_until(producer, 1));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		ok = take_within(consumer, 0) == -EOPNOTSUPP &&
		     !tshare_stream_get_info(consumer, &info) && info.newest == 1;
		tshare_stream_cancel(consumer);
		tshare_stream_unref(consumer);
		_exit(!ok);
	}
	CHECK(end_of(pid) == 0);
	CHECK(take_within(consumer, 0) == 1);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

static bool becomes_readable(struct tshare_stream *stream)
{
	struct pollfd fd = { .events = POLLIN };

	CHECK(!tshare_stream_get_event_fd(stream, &fd.fd));
	return poll(&fd, 1, HANG_SECONDS * 1000) == 1;
}

/* Polls until there is a frame. */
static int64_t poll_and_take(struct tshare_stream *stream)
{
	int64_t taken;

	do {
		CHECK(becomes_readable(stream));
		taken = take_within(stream, 0);
	} while (taken == -ETIMEDOUT);
	return taken;
}

TEST(a_followers_descriptor_stays_through_all_streams)
{
	const char *name = unique("poll");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0), *next;
	struct tshare_stream *consumer = follow(name, 0);
	int first, last;

	CHECK(!tshare_stream_get_event_fd(consumer, &first));
	CHECK(take_within(consumer, 0) == -ETIMEDOUT);
	tshare_stream_unref(producer);
	CHECK(take_within(consumer, 0) == -ETIMEDOUT);
	producer = new_stream(name, 4, 1, 0);
	CHECK(publish_until(producer, 1));
	CHECK(poll_and_take(consumer) == 101);
	/* So that late news of the old stream isn't taken for that of the new one. */
	sleep_ns(300 * MS);
	CHECK(take_within(consumer, 0) == -ETIMEDOUT);
	CHECK(publish_until(producer, 2));
	CHECK(poll_and_take(consumer) == 102);
	CHECK(take_within(consumer, 0) == -ETIMEDOUT);

	/* The old producer lives. */
	next = replace(name, NULL, 0);
	CHECK(publish_until(next, 1));
	CHECK(poll_and_take(consumer) == 201);
	CHECK(!tshare_stream_get_event_fd(consumer, &last));
	CHECK(first == last);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
	tshare_stream_unref(next);
}

/* Threads that share a follower through several streams. */
struct readers {
	struct tshare_stream *stream;
	atomic_int taken;
};

static void *run_reader(void *data)
{
	struct readers *readers = data;
	struct tshare_frame *frame;

	while (!tshare_stream_take(readers->stream, LONG, &frame)) {
		atomic_fetch_add(&readers->taken, 1);
		tshare_frame_unref(frame);
	}
	return NULL;
}

TEST(threads_that_share_a_follower_take_each_frame_once)
{
	const char *name = unique("threads");
	struct tshare_stream *producer = new_stream(name, 8, 4, TSHARE_KEEP_ALL);
	struct readers readers = { follow_holding(name, TSHARE_KEEP_ALL, 4), 0 };
	pthread_t threads[3];
	int i, round;

	for (i = 0; i < 3; i++)
		CHECK(!pthread_create(&threads[i], NULL, run_reader, &readers));
	for (round = 0; round < 5; round++) {
		CHECK(publish_until(producer, 4));
		/* A stream that ends before any of them has opened it is passed over. */
		while (atomic_load(&readers.taken) != 4 * (round + 1))
			sleep_ns(MS);
		tshare_stream_unref(producer);
		producer = new_stream(name, 8, 4, TSHARE_KEEP_ALL);
	}
	CHECK(!tshare_stream_close(producer, LONG));
	for (i = 0; i < 3; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(atomic_load(&readers.taken) == 20);
	tshare_stream_unref(readers.stream);
	tshare_stream_unref(producer);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
