// SPDX-License-Identifier: MIT
/* Streams: frames from a producer to consumers and observers. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "../frames.h"
#include "../partner.h"

static struct tshare_frame *loan(struct tshare_stream *stream)
{
	struct tshare_frame *frame;

	CHECK(!tshare_stream_loan(stream, 0, &frame));
	return frame;
}

static int loan_error(struct tshare_stream *stream)
{
	struct tshare_frame *frame;
	int err = tshare_stream_loan(stream, 0, &frame);

	if (!err)
		tshare_frame_unref(frame);
	return err;
}

static struct tshare_frame_info info_of(struct tshare_frame *frame)
{
	struct tshare_frame_info info = { .size = sizeof(info) };

	CHECK(!tshare_frame_get_info(frame, &info));
	return info;
}

static struct tshare_stream_info stream_info(struct tshare_stream *stream)
{
	struct tshare_stream_info info = { .size = sizeof(info) };

	CHECK(!tshare_stream_get_info(stream, &info));
	return info;
}

static int open_error_with(const char *name, const struct tshare_stream_open_options *options)
{
	struct tshare_stream *stream;
	int err = tshare_stream_open(ctx, name, options, &stream);

	if (!err)
		tshare_stream_unref(stream);
	return err;
}

TEST(a_consumer_takes_frames_in_order_and_whole)
{
	const char *name = unique("order");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0);
	struct tshare_stream *consumer = open_stream(name, 0);
	uint64_t number;

	for (number = 1; number < 20; number++) {
		CHECK(publish_until(producer, number));
		CHECK(generation_of(tshare_stream_get_region(consumer)) == number);
		CHECK(take_number(consumer) == (int64_t)number);
	}
	CHECK(take_number(consumer) == -ETIMEDOUT);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(a_slow_consumer_misses_frames_and_is_told_how_many)
{
	const char *name = unique("slow");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0);
	struct tshare_stream *consumer = open_stream(name, 0);
	struct tshare_frame *frame;

	CHECK(publish_until(producer, 10));
	frame = take_frame(consumer);
	CHECK(info_of(frame).number == 7);
	CHECK(info_of(frame).lost == 6);
	tshare_frame_unref(frame);
	CHECK(!tshare_stream_take_latest(consumer, 0, &frame));
	CHECK(info_of(frame).number == 10);
	CHECK(info_of(frame).lost == 2);
	tshare_frame_unref(frame);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(a_frame_stays_whole_while_it_is_held)
{
	const char *name = unique("held");
	struct tshare_stream *producer = new_stream(name, 3, 1, 0);
	struct tshare_stream *consumer = open_stream(name, 0);
	struct tshare_frame *frame;

	CHECK(publish_until(producer, 1));
	frame = take_frame(consumer);
	CHECK(publish_until(producer, 20));
	CHECK(whole_number(frame) == 1);
	CHECK(!tshare_frame_check(frame));
	tshare_frame_unref(frame);
	CHECK(take_number(consumer) >= 19);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(a_tensor_and_its_views_hold_the_frame)
{
	const char *name = unique("tensor");
	struct tshare_stream *producer = new_stream(name, 2, 1, 0);
	struct tshare_stream *consumer = open_stream(name, 0);
	struct tshare_tensor *tensor, *view;
	struct tshare_frame *frame;

	CHECK(publish_until(producer, 1));
	frame = take_frame(consumer);
	CHECK(!tshare_frame_get_tensor(frame, 0, &tensor));
	tshare_frame_unref(frame);
	CHECK(tshare_tensor_is_readonly(tensor));
	CHECK(!tshare_tensor_slice(tensor, 0, 1, 3, 1, &view));
	tshare_tensor_unref(tensor);
	CHECK(publish_until(producer, 2));
	CHECK(loan_error(producer) == -ETIMEDOUT);
	CHECK(*(uint64_t *)tshare_tensor_get_data(view) == 1);
	tshare_tensor_unref(view);
	CHECK(publish_until(producer, 3));
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(a_view_by_shape_and_strides_holds_the_frame_and_is_readonly)
{
	const int64_t shape[] = { 2 }, strides[] = { 2 };
	struct tshare_spec spec = SPEC(NULL, TSHARE_UINT64, 1, shape, strides);
	const char *name = unique("view");
	struct tshare_stream *producer = new_stream(name, 2, 1, 0);
	struct tshare_stream *consumer = open_stream(name, 0);
	struct tshare_tensor *tensor, *view;
	struct tshare_frame *frame;

	CHECK(publish_until(producer, 1));
	frame = take_frame(consumer);
	CHECK(!tshare_frame_get_tensor(frame, 0, &tensor));
	tshare_frame_unref(frame);
	spec.byte_offset = tshare_tensor_get_byte_offset(tensor) + sizeof(uint64_t);
	CHECK(!tshare_tensor_view(tensor, &spec, 0, &view));
	CHECK(tshare_tensor_view(tensor, &spec, 1U << 31, &view) == -EINVAL);
	tshare_tensor_unref(tensor);
	CHECK(tshare_tensor_is_readonly(view));
	CHECK(publish_until(producer, 2));
	CHECK(loan_error(producer) == -ETIMEDOUT);
	tshare_tensor_unref(view);
	CHECK(publish_until(producer, 3));
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

static int wrap(const void *data, struct tshare_tensor **tensor)
{
	const int64_t shape[] = { 4 };
	const struct tshare_spec spec = SPEC(NULL, TSHARE_UINT64, 1, shape);

	return tshare_tensor_wrap(data, &spec, 0, tensor);
}

TEST(a_tensor_over_memory_of_a_frame_holds_the_frame)
{
	const char *name = unique("wrapped");
	struct tshare_stream *producer = new_stream(name, 2, 1, 0);
	struct tshare_stream *consumer = open_stream(name, 0);
	struct tshare_region *region;
	struct tshare_tensor *tensor, *same;
	struct tshare_frame *frame;
	const uint64_t *data;

	CHECK(publish_until(producer, 1));
	frame = take_frame(consumer);
	CHECK(!tshare_frame_get_tensor(frame, 0, &tensor));
	CHECK(tshare_tensor_get_frame(tensor) == frame);
	data = tshare_tensor_get_data(tensor);
	CHECK(!wrap(data + 100, &same));
	CHECK(tshare_tensor_get_data(same) == data + 100);
	CHECK(tshare_tensor_get_frame(same) == frame);
	tshare_tensor_unref(tensor);
	tshare_frame_unref(frame);
	CHECK(publish_until(producer, 2));
	CHECK(loan_error(producer) == -ETIMEDOUT);
	CHECK(data[100] == 1);
	tshare_tensor_unref(same);
	CHECK(publish_until(producer, 3));

	/* Nobody holds it any more. */
	CHECK(wrap(data, &same) == -ENOENT && error_says("nobody holds"));
	region = tshare_region_ref(tshare_stream_get_region(consumer));
	CHECK(!wrap(tshare_region_get_data(region), &same));
	CHECK(!tshare_tensor_get_frame(same));
	tshare_tensor_unref(same);
	tshare_stream_unref(consumer);
	CHECK(wrap(data, &same) == -ENOENT && error_says("ended"));
	tshare_region_unref(region);
	tshare_stream_unref(producer);
}

TEST(a_loans_memory_is_its_frames_until_it_is_published)
{
	const char *name = unique("loaned");
	struct tshare_stream *producer = new_stream(name, 2, 1, 0);
	struct tshare_frame *frame = loan(producer);
	struct tshare_tensor *tensor, *same;

	CHECK(!tshare_frame_get_tensor(frame, 0, &tensor));
	CHECK(!wrap(tshare_tensor_get_data(tensor), &same));
	CHECK(tshare_tensor_get_frame(same) == frame);
	tshare_tensor_unref(same);
	CHECK(!tshare_frame_publish(frame));
	CHECK(wrap(tshare_tensor_get_data(tensor), &same) == -ENOENT);
	tshare_tensor_unref(tensor);
	tshare_frame_unref(frame);
	tshare_stream_unref(producer);
}

TEST(a_consumer_that_keeps_all_misses_none)
{
	const char *name = unique("keep");
	struct tshare_stream *producer = new_stream(name, 4, 1, TSHARE_KEEP_ALL);
	struct tshare_stream *consumer = open_stream(name, TSHARE_KEEP_ALL);
	int64_t number;

	CHECK(publish_until(producer, 4));
	CHECK(loan_error(producer) == -ETIMEDOUT);
	CHECK(error_says("frames 1, 2, 3, 4") && error_says("test-streams"));
	for (number = 1; number <= 4; number++)
		CHECK(take_number(consumer) == number);
	CHECK(publish_until(producer, 8));
	for (number = 5; number <= 8; number++)
		CHECK(take_number(consumer) == number);
	tshare_stream_unref(consumer);
	CHECK(publish_until(producer, 20));
	tshare_stream_unref(producer);
}

TEST(a_frame_that_is_kept_and_got_by_its_number_is_still_taken_in_order)
{
	const char *name = unique("kept");
	struct tshare_stream *producer = new_stream(name, 4, 1, TSHARE_KEEP_ALL);
	struct tshare_stream *consumer = open_stream(name, TSHARE_KEEP_ALL);
	struct tshare_frame *frame;

	CHECK(publish_until(producer, 3));
	CHECK(!tshare_stream_get(consumer, 3, &frame));
	CHECK(whole_number(frame) == 3);
	tshare_frame_unref(frame);
	CHECK(take_number(consumer) == 1);
	CHECK(take_number(consumer) == 2);
	CHECK(take_number(consumer) == 3);
	CHECK(!tshare_stream_get(consumer, 3, &frame));
	tshare_frame_unref(frame);
	tshare_stream_unref(consumer);
	CHECK(publish_until(producer, 10));
	tshare_stream_unref(producer);
}

TEST(getting_a_frame_takes_no_later_one_away)
{
	const struct tshare_stream_open_options options = {
		.size = sizeof(options),
		.flags = TSHARE_KEEP_ALL,
		.history = 3,
	};
	const char *name = unique("got");
	struct tshare_stream *producer = new_stream(name, 6, 4, TSHARE_KEEP_ALL);
	struct tshare_stream *consumer;
	struct tshare_frame *frame;
	int64_t number;

	CHECK(publish_until(producer, 3));
	CHECK(!tshare_stream_open(ctx, name, &options, &consumer));
	CHECK(!tshare_stream_get(consumer, 1, &frame));
	tshare_frame_unref(frame);
	for (number = 1; number <= 3; number++)
		CHECK(take_number(consumer) == number);
	CHECK(publish_until(producer, 8));
	for (number = 4; number <= 8; number++)
		CHECK(take_number(consumer) == number);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(keeping_all_needs_the_producers_consent)
{
	const struct tshare_stream_open_options keep = {
		.size = sizeof(keep),
		.flags = TSHARE_KEEP_ALL,
	};
	const char *name = unique("consent");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0);

	CHECK(open_error_with(name, &keep) == -EPERM);
	tshare_stream_unref(producer);
}

TEST(history_stays_for_those_who_come_late)
{
	const struct tshare_stream_open_options options = {
		.size = sizeof(options),
		.history = 10,
	};
	const char *name = unique("history");
	struct tshare_stream *producer = new_stream(name, 5, 3, 0);
	struct tshare_stream *consumer;

	CHECK(publish_until(producer, 9));
	CHECK(!tshare_stream_open(ctx, name, &options, &consumer));
	CHECK(publish_until(producer, 9));
	CHECK(take_number(consumer) == 5);
	CHECK(publish_until(producer, 12));
	CHECK(take_number(consumer) >= 8);
	tshare_stream_unref(consumer);
	consumer = open_stream(name, 0);
	CHECK(take_number(consumer) == -ETIMEDOUT);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(loans_are_numbered_by_their_publishes_and_abandoned_ones_return)
{
	const char *name = unique("loans");
	struct tshare_stream *producer = new_stream(name, 3, 1, 0);
	struct tshare_stream *consumer = open_stream(name, 0);
	struct tshare_frame *first = loan(producer), *second = loan(producer);

	CHECK(info_of(first).slot != info_of(second).slot);
	fill_frame(second, 1);
	CHECK(!tshare_frame_publish(second));
	CHECK(info_of(second).number == 1);
	CHECK(tshare_frame_publish(second) == -EACCES);
	CHECK(take_number(consumer) == 1);
	tshare_frame_unref(first);
	tshare_frame_unref(second);
	CHECK(take_number(consumer) == -ETIMEDOUT);
	first = loan(producer);
	second = loan(producer);
	CHECK(loan_error(producer) == -ETIMEDOUT); /* the third one is history */
	tshare_frame_unref(first);
	tshare_frame_unref(second);
	CHECK(publish_until(producer, 5));
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(a_frame_tells_what_the_producer_says_of_it)
{
	const struct tshare_frame_info said = {
		.size = sizeof(said),
		.captured_ns = 17,
		.sequence = 18,
		.flags = 19,
	};
	const char *name = unique("info");
	struct tshare_stream *producer = new_stream(name, 3, 1, 0);
	struct tshare_stream *consumer = open_stream(name, 0);
	const int64_t less[] = { 7 }, more[] = { FRAME_ELEMENTS + 1 }, negative[] = { -1 };
	struct tshare_frame *frame = loan(producer);
	int64_t before = now_ns();
	struct tshare_tensor *tensor;

	CHECK(!tshare_frame_set_info(frame, &said));
	CHECK(tshare_frame_set_shape(frame, 0, more) == -ERANGE);
	CHECK(tshare_frame_set_shape(frame, 0, negative) == -ERANGE);
	CHECK(tshare_frame_set_shape(frame, 1, less) == -ENOENT);
	CHECK(!tshare_frame_set_shape(frame, 0, less));
	CHECK(!tshare_frame_publish(frame));
	CHECK(tshare_frame_set_shape(frame, 0, less) == -EACCES);
	tshare_frame_unref(frame);

	frame = take_frame(consumer);
	CHECK(info_of(frame).captured_ns == 17 && info_of(frame).sequence == 18);
	CHECK(info_of(frame).flags == 19 && info_of(frame).number == 1);
	CHECK(info_of(frame).published_ns >= before && info_of(frame).published_ns <= now_ns());
	CHECK(!tshare_frame_get_tensor(frame, 0, &tensor));
	CHECK(tshare_tensor_get_shape(tensor)[0] == 7);
	CHECK(!strcmp(tshare_tensor_get_name(tensor), "data"));
	tshare_tensor_unref(tensor);
	CHECK(tshare_frame_get_tensor(frame, 1, &tensor) == -ENOENT);
	CHECK(tshare_frame_find_tensor(frame, "other", &tensor) == -ENOENT);
	CHECK(tshare_frame_set_info(frame, &said) == -EACCES);
	tshare_frame_unref(frame);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

/* Makes a descriptor of the page that a tensor of a frame begins on. */
static int export_page(struct tshare_stream *stream, const struct tshare_tensor *tensor)
{
	int fd, err;

	err = tshare_region_export(tshare_stream_get_region(stream),
				   tshare_tensor_get_byte_offset(tensor), limits_of(ctx).page_size,
				   TSHARE_READONLY, &fd);
	if (!err)
		close(fd);
	return err;
}

TEST(several_fields_lie_on_pages_of_their_own)
{
	const int64_t image[] = { 3, 5 }, none[] = { 0, 4 };
	const struct tshare_dtype three = { 1, 8, 3 };
	const struct tshare_spec fields[] = {
		SPEC("image", three, 2, image),
		SPEC("scalar", TSHARE_FLOAT64),
		SPEC("empty", TSHARE_INT8, 2, none),
	};
	const char *name = unique("fields");
	uint32_t page = limits_of(ctx).page_size;
	struct tshare_tensor *tensor, *slots;
	struct tshare_stream *producer;
	struct tshare_frame *frame;
	int slot, i;

	CHECK(!tshare_stream_create(ctx, name, fields, 3, NULL, &producer));
	CHECK(stream_info(producer).slots == 8 && stream_info(producer).history == 1);
	CHECK(stream_info(producer).field_count == 3 && stream_info(producer).seat == -1);
	CHECK(!tshare_region_find_tensor(tshare_stream_get_region(producer), "image", &slots));
	CHECK(tshare_tensor_get_ndim(slots) == 3 && tshare_tensor_get_shape(slots)[0] == 8);
	tshare_tensor_unref(slots);
	for (slot = 0; slot < 8; slot++) {
		frame = loan(producer);
		for (i = 0; i < 3; i++) {
			CHECK(!tshare_frame_get_tensor(frame, i, &tensor));
			CHECK(tshare_tensor_get_byte_offset(tensor) % page == 0);
			CHECK(export_page(producer, tensor) ==
			      (limits_of(ctx).dmabuf ? 0 : -EOPNOTSUPP));
			CHECK(tshare_tensor_get_ndim(tensor) == fields[i].ndim);
			CHECK(!fields[i].ndim ||
			      !memcmp(tshare_tensor_get_shape(tensor), fields[i].shape,
				      fields[i].ndim * sizeof(int64_t)));
			CHECK(!tshare_tensor_is_readonly(tensor));
			tshare_tensor_unref(tensor);
		}
		CHECK(!tshare_frame_publish(frame));
		tshare_frame_unref(frame);
	}
	tshare_stream_unref(producer);
}

TEST(an_observer_delays_nobody_and_notices_what_was_overwritten)
{
	const char *name = unique("observer");
	struct tshare_stream *producer = new_stream(name, 2, 1, TSHARE_KEEP_ALL);
	struct tshare_stream *observer = open_stream(name, TSHARE_OBSERVE);
	struct tshare_frame *frame;

	CHECK(stream_info(observer).seat == -1);
	CHECK(publish_until(producer, 1));
	frame = take_frame(observer);
	CHECK(whole_number(frame) == 1 && !tshare_frame_check(frame));
	CHECK(publish_until(producer, 3));
	CHECK(tshare_frame_check(frame) == -ESTALE);
	tshare_frame_unref(frame);
	CHECK(take_number(observer) == 2);
	tshare_stream_unref(observer);
	tshare_stream_unref(producer);
}

TEST(a_frame_can_be_got_by_its_number)
{
	const char *name = unique("number");
	struct tshare_stream *producer = new_stream(name, 8, 4, 0);
	struct tshare_stream *consumer = open_stream(name, 0);
	struct tshare_frame *frame, *same;

	CHECK(publish_until(producer, 20));
	CHECK(!tshare_stream_get(consumer, 18, &frame));
	CHECK(whole_number(frame) == 18);
	CHECK(!tshare_stream_get(consumer, 18, &same));
	tshare_frame_unref(frame);
	CHECK(publish_until(producer, 40));
	CHECK(whole_number(same) == 18);
	tshare_frame_unref(same);
	CHECK(publish_until(producer, 60));
	CHECK(tshare_stream_get(consumer, 19, &frame) == -ENOENT && error_says("any more"));
	CHECK(tshare_stream_get(consumer, 61, &frame) == -ENOENT && error_says("yet"));
	CHECK(tshare_stream_get(consumer, 0, &frame) == -ENOENT);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(a_consumer_holds_as_many_frames_as_it_may)
{
	const struct tshare_stream_open_options options = { .size = sizeof(options), .hold = 2 };
	const char *name = unique("hold");
	struct tshare_stream *producer = new_stream(name, 8, 4, 0);
	struct tshare_frame *frames[3];
	struct tshare_stream *consumer;

	CHECK(!tshare_stream_open(ctx, name, &options, &consumer));
	CHECK(publish_until(producer, 4));
	frames[0] = take_frame(consumer);
	frames[1] = take_frame(consumer);
	CHECK(tshare_stream_take(consumer, 0, &frames[2]) == -ENOBUFS);
	CHECK(error_says("holds 2 frames") && error_says("(options.hold)"));
	tshare_frame_unref(frames[0]);
	frames[2] = take_frame(consumer);
	CHECK(info_of(frames[2]).number == 3 && info_of(frames[2]).lost == 0);
	tshare_frame_unref(frames[1]);
	tshare_frame_unref(frames[2]);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(a_consumer_may_hold_a_frame_until_it_has_the_next)
{
	const char *name = unique("two");
	struct tshare_stream *producer = new_stream(name, 2, 1, 0);
	struct tshare_stream *consumer = open_stream(name, 0);
	struct tshare_frame *frame, *next;
	uint64_t number;

	CHECK(publish_until(producer, 1));
	frame = take_frame(consumer);
	for (number = 2; number < 9; number++) {
		CHECK(publish_until(producer, number));
		next = take_frame(consumer);
		tshare_frame_unref(frame);
		frame = next;
	}
	CHECK(info_of(frame).number == 8 && info_of(frame).lost == 0);
	tshare_frame_unref(frame);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(after_close_consumers_take_what_is_left)
{
	const char *name = unique("close");
	struct tshare_stream *producer = new_stream(name, 8, 4, 0);
	struct tshare_stream *consumer = open_stream(name, 0);
	struct tshare_frame *claimed = loan(producer);

	CHECK(publish_until(producer, 2));
	CHECK(!tshare_stream_close(producer, 0));
	CHECK(tshare_frame_publish(claimed) == -ENODATA);
	tshare_frame_unref(claimed);
	CHECK(loan_error(producer) == -ENODATA);
	CHECK(stream_info(consumer).ended && stream_info(consumer).newest == 2);
	CHECK(take_number(consumer) == 1);
	CHECK(take_number(consumer) == 2);
	CHECK(take_number(consumer) == -ENODATA);
	CHECK(!tshare_stream_close(producer, 0));
	tshare_stream_unref(producer);
	CHECK(take_number(consumer) == -ENODATA);
	tshare_stream_unref(consumer);
}

TEST(close_drains_what_is_held)
{
	const char *name = unique("drain");
	struct tshare_stream *producer = new_stream(name, 8, 4, 0);
	struct tshare_stream *consumer = open_stream(name, 0);
	struct tshare_frame *frame;

	CHECK(publish_until(producer, 1));
	frame = take_frame(consumer);
	CHECK(tshare_stream_close(producer, MS) == -ETIMEDOUT);
	CHECK(error_says("holds frames 1"));
	tshare_frame_unref(frame);
	CHECK(!tshare_stream_close(producer, -1));
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(a_producer_that_goes_leaves_its_frames)
{
	const char *name = unique("gone");
	struct tshare_stream *producer = new_stream(name, 8, 4, 0);
	struct tshare_stream *consumer = open_stream(name, 0);
	struct tshare_frame *frame;

	CHECK(publish_until(producer, 2));
	tshare_stream_unref(producer);
	CHECK(take_number(consumer) == 1);
	CHECK(take_number(consumer) == 2);
	CHECK(tshare_stream_take(consumer, -1, &frame) == -EOWNERDEAD);
	CHECK(error_says("stream: the producer has exited"));
	tshare_stream_unref(consumer);
	CHECK(open_error_with(name, NULL) == -ENOENT);
}

TEST(a_restarted_producer_replaces_the_stream)
{
	const struct tshare_options region = { .size = sizeof(region), .flags = TSHARE_REPLACE };
	const struct tshare_stream_options options = { .size = sizeof(options), .region = &region };
	const struct tshare_spec field = SPEC("data", TSHARE_INT8);
	const char *name = unique("replace");
	struct tshare_stream *producer = new_stream(name, 8, 4, 0), *next;
	struct tshare_stream *consumer = open_stream(name, 0), *late;

	CHECK(tshare_stream_create(ctx, name, &field, 1, NULL, &next) == -EEXIST);
	CHECK(error_says("producer lives") && error_says("(TSHARE_REPLACE)"));
	CHECK(publish_until(producer, 1));
	CHECK(!tshare_stream_create(ctx, name, &field, 1, &options, &next));
	late = open_stream(name, 0);
	CHECK(stream_info(late).newest == 0 && stream_info(late).seat == 0);
	CHECK(take_number(consumer) == 1);
	tshare_stream_unref(late);
	tshare_stream_unref(next);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

static void *open_patiently(void *data)
{
	const struct tshare_stream_open_options options = {
		.size = sizeof(options),
		.timeout_ns = LONG,
	};
	const char *name = data;
	struct tshare_stream *stream;

	return tshare_stream_open(ctx, name, &options, &stream) ? NULL : stream;
}

/* NAME without its own seats is what a producer leaves that stops while it replaces the two. */
TEST(open_waits_for_a_producer_that_takes_long_to_replace_another)
{
	const struct tshare_options region = { .size = sizeof(region), .flags = TSHARE_REPLACE };
	const struct tshare_stream_options options = { .size = sizeof(options), .region = &region };
	const struct tshare_stream_open_options brief = { .size = sizeof(brief), .timeout_ns = MS };
	const struct tshare_spec field = SPEC("data", TSHARE_INT8);
	const char *name = unique("stopped");
	struct tshare_stream *producer = new_stream(name, 8, 4, 0), *next;
	char seats[TSHARE_NAME_MAX + 1];
	pthread_t thread;
	void *opened;

	strcpy(stpcpy(seats, name), ".seats");
	CHECK(!tshare_ctx_unlink(ctx, seats));
	CHECK(open_error_with(name, NULL) == -EPROTO);
	CHECK(error_says("is not of the stream"));
	CHECK(open_error_with(name, &brief) == -ETIMEDOUT);
	CHECK(error_says("is not of the stream") && error_says("may have been stopped"));
	CHECK(!pthread_create(&thread, NULL, open_patiently, (void *)name));
	sleep_ns(400 * MS);
	CHECK(!tshare_stream_create(ctx, name, &field, 1, &options, &next));
	CHECK(!pthread_join(thread, &opened) && opened);
	tshare_stream_unref(opened);
	tshare_stream_unref(next);
	tshare_stream_unref(producer);
}

TEST(a_stream_replaces_no_region_that_is_none)
{
	const struct tshare_options options = { .size = sizeof(options), .flags = TSHARE_REPLACE };
	const struct tshare_stream_options replace = { .size = sizeof(replace),
						       .region = &options };
	const struct tshare_spec field = SPEC("data", TSHARE_INT8);
	const char *name = unique("other");
	struct tshare_region *region = new_region(name);
	struct tshare_stream *stream;

	CHECK(tshare_stream_create(ctx, name, &field, 1, &replace, &stream) == -EEXIST);
	CHECK(error_says("no stream's") && exists(name));
	tshare_region_unlink(region);
	tshare_region_unref(region);
	CHECK(!tshare_stream_create(ctx, name, &field, 1, &replace, &stream));
	tshare_stream_unref(stream);
}

TEST(each_side_has_its_own_calls)
{
	const char *name = unique("sides");
	struct tshare_stream *producer = new_stream(name, 8, 4, TSHARE_KEEP_ALL);
	struct tshare_stream *consumer = open_stream(name, TSHARE_KEEP_ALL);
	struct tshare_frame *frame;

	CHECK(loan_error(consumer) == -EACCES && error_says("consumer"));
	CHECK(tshare_stream_close(consumer, 0) == -EACCES);
	CHECK(tshare_stream_evict(consumer, 0, 0) == -EACCES);
	CHECK(tshare_stream_take(producer, 0, &frame) == -EACCES && error_says("producer"));
	CHECK(tshare_stream_get(producer, 1, &frame) == -EACCES);
	CHECK(tshare_stream_take_latest(consumer, 0, &frame) == -EINVAL);
	CHECK(publish_until(producer, 1));
	frame = take_frame(consumer);
	CHECK(tshare_frame_publish(frame) == -EACCES);
	tshare_frame_unref(frame);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

/* From now on the kernel kills the process for each system call but its end. */
static int forbid_system_calls(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	const struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int take_without_system_calls(void *data)
{
	const struct tshare_stream_open_options history = {
		.size = sizeof(history),
		.history = 3,
	};
	struct tshare_stream *stream;
	struct tshare_ctx *own;
	int64_t number;

	if (ctx_new(tshare_ctx_get_backend(ctx), &own) ||
	    tshare_stream_open(own, data, &history, &stream))
		return 1;
	/* The first one makes the allocator ask for memory. */
	if (take_number(stream) != 1 || forbid_system_calls())
		return 2;
	for (number = 2; number <= 3 && take_number(stream) == number; number++)
		;
	/* A sanitizer's _exit() would make calls of its own. */
	return syscall(SYS_exit_group, number == 4 ? 0 : 3);
}

TEST(taking_and_dropping_a_frame_makes_no_system_call)
{
	const char *name = unique("calls");
	struct tshare_stream *producer = new_stream(name, 4, 3, 0);

	CHECK(publish_until(producer, 3));
	CHECK(!in_child(take_without_system_calls, (void *)name));
	tshare_stream_unref(producer);
}

/* Waiting */

struct taking {
	struct tshare_stream *stream;
	int64_t number;
	pthread_t thread;
};

static void *run_taking(void *data)
{
	struct taking *taking = data;
	struct tshare_frame *frame;
	int err = tshare_stream_take(taking->stream, LONG, &frame);

	taking->number = err ? err : (int64_t)whole_number(frame);
	if (!err)
		tshare_frame_unref(frame);
	return NULL;
}

static int64_t end_taking(struct taking *taking)
{
	CHECK(!pthread_join(taking->thread, NULL));
	return taking->number;
}

TEST(a_publish_wakes_a_consumer_and_a_cancel_too)
{
	const char *name = unique("wake");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0);
	struct taking taking = { .stream = open_stream(name, 0) };
	struct tshare_frame *frame;

	CHECK(!pthread_create(&taking.thread, NULL, run_taking, &taking));
	sleep_ns(20 * MS);
	CHECK(publish_until(producer, 1));
	CHECK(end_taking(&taking) == 1);
	CHECK(!pthread_create(&taking.thread, NULL, run_taking, &taking));
	sleep_ns(20 * MS);
	tshare_stream_cancel(taking.stream);
	CHECK(end_taking(&taking) == -ECANCELED);
	CHECK(tshare_stream_take(taking.stream, 0, &frame) == -ECANCELED);
	CHECK(error_says("stream: the wait was cancelled"));
	tshare_stream_unref(taking.stream);
	tshare_stream_unref(producer);
}

struct lending {
	struct tshare_stream *stream;
	int err;
	pthread_t thread;
};

static void *run_lending(void *data)
{
	struct lending *lending = data;
	struct tshare_frame *frame;

	lending->err = tshare_stream_loan(lending->stream, LONG, &frame);
	if (!lending->err)
		tshare_frame_unref(frame);
	return NULL;
}

TEST(a_release_wakes_the_producer_and_a_cancel_too)
{
	const char *name = unique("slots");
	struct tshare_stream *producer = new_stream(name, 2, 1, 0);
	struct tshare_stream *consumer = open_stream(name, 0);
	struct lending lending[2] = { { producer }, { producer } };
	struct tshare_frame *frame;

	CHECK(publish_until(producer, 1));
	frame = take_frame(consumer);
	CHECK(publish_until(producer, 2));
	CHECK(!pthread_create(&lending[0].thread, NULL, run_lending, &lending[0]));
	sleep_ns(20 * MS);
	tshare_frame_unref(frame);
	CHECK(!pthread_join(lending[0].thread, NULL));
	CHECK(!lending[0].err);

	CHECK(publish_until(producer, 3));
	CHECK(take_number(consumer) == 2);
	frame = take_frame(consumer);
	CHECK(publish_until(producer, 4));
	CHECK(!pthread_create(&lending[1].thread, NULL, run_lending, &lending[1]));
	sleep_ns(20 * MS);
	tshare_stream_cancel(producer);
	CHECK(!pthread_join(lending[1].thread, NULL));
	CHECK(lending[1].err == -ECANCELED);
	CHECK(tshare_stream_loan(producer, LONG, &frame) == -ECANCELED);
	CHECK(error_says("stream: the wait was cancelled"));
	tshare_frame_unref(frame);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

static void handle(int signal)
{
	(void)signal;
}

TEST(a_signal_ends_the_waits)
{
	const struct sigaction action = { .sa_handler = handle };
	/* Again and again: the first may come before the wait. */
	const struct itimerval soon = { { 0, 20000 }, { 0, 20000 } },
			       never = { { 0, 0 }, { 0, 0 } };
	const char *name = unique("signal");
	struct tshare_stream *producer = new_stream(name, 2, 1, 0);
	struct tshare_stream *consumer = open_stream(name, 0);
	struct tshare_frame *held, *frame;
	int took, lent, drained;

	CHECK(publish_until(producer, 1));
	held = take_frame(consumer);
	CHECK(publish_until(producer, 2));
	CHECK(take_number(consumer) == 2);
	CHECK(!sigaction(SIGALRM, &action, NULL) && !setitimer(ITIMER_REAL, &soon, NULL));
	took = tshare_stream_take(consumer, LONG, &frame);
	lent = tshare_stream_loan(producer, LONG, &frame);
	drained = tshare_stream_close(producer, LONG);
	CHECK(!setitimer(ITIMER_REAL, &never, NULL));
	CHECK(took == -EINTR && lent == -EINTR && drained == -EINTR);
	tshare_frame_unref(held);
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

/* Bad input */

static int create_error(const char *name, const struct tshare_spec *fields, size_t count,
			const struct tshare_stream_options *options)
{
	struct tshare_stream *stream;
	int err = tshare_stream_create(ctx, name, fields, count, options, &stream);

	if (!err)
		tshare_stream_unref(stream);
	return err;
}

TEST(create_names_the_malformed_argument)
{
	const struct tshare_options persist = { .size = sizeof(persist),
						.lifetime = TSHARE_LIFETIME_PERSIST },
				    draft = { .size = sizeof(draft), .flags = TSHARE_DRAFT };
	const int64_t shape[] = { 4, 4 }, negative[] = { -1 }, huge[] = { INT64_MAX / 8 },
		      strides[] = { 4, 1 }, most[] = { INT64_MAX, INT64_MAX };
	const int64_t many_dims[TSHARE_NDIM_LIMIT] = { 0 };
	const struct tshare_dtype none = { 1, 8, 0 };
	const struct tshare_dtype packed = { 1, 4, 1 };
	const struct tshare_spec good = SPEC("a", TSHARE_INT8, 2, shape);
	struct tshare_spec many[TSHARE_STREAM_FIELDS + 1];
	const char *name = unique("bad");
	size_t i;
	const struct {
		struct tshare_spec field;
		struct tshare_stream_options options;
		int err;
		const char *says;
	} cases[] = {
		{ good, { .slots = 257 }, -EINVAL, "options.slots" },
		{ good, { .slots = 1 }, -EINVAL, "options.history" },
		{ good, { .slots = 4, .history = 4 }, -EINVAL, "options.history" },
		{ good, { .flags = TSHARE_OBSERVE }, -EINVAL, "options.flags" },
		{ good, { .reserved = 1 }, -EINVAL, "options.reserved" },
		{ good, { .region = &persist }, -EINVAL, "options.region.lifetime" },
		{ good, { .region = &draft }, -EINVAL, "options.region.flags" },
		{ SPEC(NULL, TSHARE_INT8), { 0 }, -EINVAL, "fields[0].name" },
		{ SPEC(".number", TSHARE_INT8), { 0 }, -EINVAL, "fields[0].name" },
		{ SPEC("a", packed, 2, shape), { 0 }, -EINVAL, "fields[0].dtype" },
		{ SPEC("a", TSHARE_INT8, 2, NULL), { 0 }, -EINVAL, "fields[0].shape" },
		{ SPEC("a", TSHARE_INT8, -1, shape), { 0 }, -EINVAL, "fields[0].ndim" },
		{ SPEC("a", TSHARE_INT8, 32, many_dims), { 0 }, -EINVAL, "fields[0].ndim" },
		{ SPEC("a", TSHARE_INT8, 1, negative), { 0 }, -EINVAL, "fields[0].shape[0]" },
		{ SPEC("a", TSHARE_INT64, 1, huge), { 0 }, -EINVAL, "fields[0].shape" },
		{ SPEC("a", TSHARE_INT64, 2, most), { 0 }, -EINVAL, "fields[0]." },
		{ SPEC("a", none, 2, shape), { 0 }, -EINVAL, "fields[0].dtype" },
		{ SPEC("a", TSHARE_INT8, 2, shape, strides), { 0 }, -EINVAL, "strides" },
		{ SPEC("a", TSHARE_INT8, 2, shape, NULL, 64), { 0 }, -EINVAL, "byte_offset" },
	};

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tshare_stream_options options = cases[i].options;

		options.size = sizeof(options);
		CHECK(create_error(name, &cases[i].field, 1, &options) == cases[i].err);
		CHECK(error_says(cases[i].says));
	}
	for (i = 0; i < TSHARE_STREAM_FIELDS + 1; i++)
		many[i] = good;
	CHECK(create_error(name, many, TSHARE_STREAM_FIELDS + 1, NULL) == -EINVAL);
	CHECK(create_error(name, many, 2, NULL) == -EINVAL);
	CHECK(error_says("fields[1].name: 'a' is that of fields[0] too"));
	CHECK(create_error(name, &good, 0, NULL) == -EINVAL);
	CHECK(create_error(name, NULL, 1, NULL) == -EINVAL);
	CHECK(create_error(NULL, &good, 1, NULL) == -EINVAL);
	CHECK(create_error("a/b", &good, 1, NULL) == -EINVAL);
	CHECK(!exists(name));
}

TEST(a_streams_name_leaves_room_for_that_of_its_seats)
{
	const struct tshare_spec good = SPEC("a", TSHARE_INT8);
	const char *stem = unique("long");
	char name[TSHARE_STREAM_NAME_MAX + 2];

	memset(name, 'x', sizeof(name));
	memcpy(name, stem, strlen(stem));
	name[TSHARE_STREAM_NAME_MAX + 1] = '\0';
	CHECK(create_error(name, &good, 1, NULL) == -ENAMETOOLONG);
	CHECK(open_error_with(name, NULL) == -ENAMETOOLONG);
	name[TSHARE_STREAM_NAME_MAX] = '\0';
	CHECK(!create_error(name, &good, 1, NULL));
}

TEST(open_names_the_malformed_argument)
{
	const struct tshare_stream_open_options flags = { .size = sizeof(flags), .flags = 8 },
						both = { .size = sizeof(both),
							 .flags = TSHARE_KEEP_ALL |
								  TSHARE_OBSERVE },
						reserved = { .size = sizeof(reserved),
							     .reserved = 1 },
						wait = { .size = sizeof(wait), .timeout_ns = MS };
	const char *name = unique("none");
	struct tshare_region *region;

	CHECK(open_error_with(name, &flags) == -EINVAL && error_says("options.flags"));
	CHECK(open_error_with(name, &both) == -EINVAL && error_says("options.flags"));
	CHECK(open_error_with(name, &reserved) == -EINVAL && error_says("options.reserved"));
	CHECK(open_error_with(NULL, NULL) == -EINVAL && error_says("name"));
	CHECK(open_error_with(name, NULL) == -ENOENT);
	CHECK(open_error_with(name, &wait) == -ETIMEDOUT);
	region = new_region(name);
	CHECK(open_error_with(name, NULL) == -EPROTO && error_says("no stream"));
	tshare_region_unlink(region);
	tshare_region_unref(region);
}

TEST(the_seats_of_a_stream_are_no_stream)
{
	const char *name = unique("stream");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0);
	char seats[TSHARE_NAME_MAX + 1];

	strcpy(stpcpy(seats, name), ".seats");
	CHECK(open_error_with(seats, NULL) == -EPROTO && error_says("no stream"));
	tshare_stream_unref(producer);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
