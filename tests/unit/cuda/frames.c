// SPDX-License-Identifier: MIT
/* CUDA streams that publish and release frames, on a stub of CUDA's driver. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "../frames.h"
#include "leases.h"

static struct tshare_stream *producer, *consumer;

static void open_all(uint32_t slots)
{
	open_cuda("frames");
	producer = new_stream(name, slots, 1, 0);
	consumer = open_stream(name, 0);
}

static void close_all(void)
{
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
	close_cuda();
}

static struct tshare_frame *loan(void)
{
	struct tshare_frame *frame;

	CHECK(!tshare_stream_loan(producer, 0, &frame));
	return frame;
}

static struct tshare_frame_info info_of(const struct tshare_frame *frame)
{
	struct tshare_frame_info info = { .size = sizeof(info) };

	CHECK(!tshare_frame_get_info(frame, &info));
	return info;
}

static int take(int64_t timeout_ns, struct tshare_frame **frame)
{
	return tshare_stream_take(consumer, timeout_ns, frame);
}

/* Slots that can be claimed now, or within @timeout_ns each. */
static int free_slots(int64_t timeout_ns)
{
	struct tshare_frame *frames[16];
	int count = 0, i;

	while (!tshare_stream_loan(producer, timeout_ns, &frames[count]))
		count++;
	for (i = 0; i < count; i++)
		tshare_frame_unref(frames[i]);
	return count;
}

/* A frame of 1 of a new stream, which the CUDA stream is to publish. */
static struct tshare_frame *queued(struct hold *hold)
{
	struct tshare_frame *frame;

	open_all(4);
	begin_hold(hold, cuda);
	frame = loan();
	fill_frame(frame, 1);
	CHECK(!tshare_frame_publish_on(frame, NULL, cuda));
	return frame;
}

/* Publishing */

TEST(a_frame_is_published_when_the_cuda_stream_comes_to_it)
{
	struct hold hold;
	struct tshare_frame *frame = queued(&hold), *taken;

	CHECK(take(100 * MS, &taken) == -ETIMEDOUT);
	CHECK(!info_of(frame).number && !info_of(frame).published_ns);
	end_hold(&hold);
	CHECK(!take(LONG, &taken));
	CHECK(whole_number(taken) == 1);
	CHECK(!cuStreamSynchronize(cuda));
	CHECK(info_of(frame).number == 1);
	CHECK(info_of(frame).published_ns == info_of(taken).published_ns);
	tshare_frame_unref(taken);
	tshare_frame_unref(frame);
	close_all();
}

TEST(frames_are_numbered_as_the_cuda_streams_come_to_them)
{
	struct tshare_frame *first = NULL, *second = NULL;
	struct CUstream_st *other;
	struct hold hold;

	open_all(4);
	CHECK(!cuStreamCreate(&other, 0));
	begin_hold(&hold, cuda);
	first = loan();
	second = loan();
	fill_frame(first, 2);
	fill_frame(second, 1);
	CHECK(!tshare_frame_publish_on(first, NULL, cuda));
	CHECK(!tshare_frame_publish_on(second, NULL, other));
	CHECK(!cuStreamSynchronize(other));
	CHECK(info_of(second).number == 1);
	CHECK(take_number(consumer) == 1);
	end_hold(&hold);
	CHECK(!cuStreamSynchronize(cuda));
	CHECK(info_of(first).number == 2);
	CHECK(take_number(consumer) == 2);
	tshare_frame_unref(first);
	tshare_frame_unref(second);
	CHECK(!cuStreamDestroy_v2(other));
	close_all();
}

TEST(a_queued_frame_is_published_once_and_described_no_more)
{
	struct tshare_frame_info info = { .size = sizeof(info) };
	const int64_t shape[] = { 1 };
	struct hold hold;
	struct tshare_frame *frame = queued(&hold);

	CHECK(tshare_frame_publish(frame) == -EACCES);
	CHECK(error_says("frame: a CUDA stream is to publish it already"));
	CHECK(tshare_frame_publish_on(frame, NULL, cuda) == -EACCES);
	CHECK(tshare_frame_set_info(frame, &info) == -EACCES);
	CHECK(tshare_frame_set_shape(frame, 0, shape) == -EACCES);
	CHECK(!tshare_frame_check(frame));
	end_hold(&hold);
	CHECK(!cuStreamSynchronize(cuda));
	CHECK(tshare_frame_publish_on(frame, NULL, cuda) == -EACCES);
	CHECK(error_says("frame: is published already"));
	CHECK(take_number(consumer) == 1);
	CHECK(take_number(consumer) == -ETIMEDOUT);
	tshare_frame_unref(frame);
	close_all();
}

TEST(a_published_frame_or_a_consumer_s_is_not_queued)
{
	struct tshare_frame *frame;

	open_all(4);
	frame = loan();
	fill_frame(frame, 1);
	CHECK(!tshare_frame_publish(frame));
	CHECK(tshare_frame_publish_on(frame, NULL, cuda) == -EACCES);
	tshare_frame_unref(frame);
	frame = take_frame(consumer);
	CHECK(tshare_frame_publish_on(frame, NULL, cuda) == -EACCES);
	CHECK(error_says("frame: is read-only"));
	tshare_frame_unref(frame);
	close_all();
}

TEST(a_queued_frame_keeps_its_stream_and_slot)
{
	struct hold hold;
	struct tshare_frame *frame = queued(&hold);

	tshare_frame_unref(frame);
	CHECK(free_slots(0) == 3);
	producer = tshare_stream_unref(producer);
	CHECK(has_name());
	end_hold(&hold);
	CHECK(!take(LONG, &frame));
	CHECK(whole_number(frame) == 1);
	tshare_frame_unref(frame);
	CHECK(take(LONG, &frame) == -EOWNERDEAD);
	CHECK(name_goes());
	close_all();
}

/* A thread of the library's does that, in a context that must be there until then. */
static bool is_unregistered(const void *memory, size_t bytes)
{
	int i;

	for (i = 0; i < 30000 && stub_is_registered(memory, bytes); i++)
		sleep_ns(MS);
	return !stub_is_registered(memory, bytes);
}

TEST(what_the_last_frame_keeps_is_undone_outside_of_the_host_function)
{
	const struct tshare_cuda_options options = {
		.size = sizeof(options),
		.path = TSHARE_CUDA_REGISTERED,
	};
	struct tshare_cuda_info info = { .size = sizeof(info) };
	const void *written, *taken_from;
	struct tshare_frame *frame, *taken;
	struct hold hold;
	size_t bytes;

	open_all(4);
	bytes = tshare_region_get_size(tshare_stream_get_region(producer));
	written = tshare_region_get_data(tshare_stream_get_region(producer));
	taken_from = tshare_region_get_data(tshare_stream_get_region(consumer));
	CHECK(!tshare_cuda_import(tshare_stream_get_region(producer), &options, &info));
	CHECK(!tshare_cuda_import(tshare_stream_get_region(consumer), &options, &info));
	CHECK(publish_until(producer, 1));
	taken = take_frame(consumer);
	begin_hold(&hold, cuda);
	frame = loan();
	CHECK(!tshare_frame_publish_on(frame, NULL, cuda));
	CHECK(!tshare_frame_release_on(taken, NULL, cuda));
	tshare_frame_unref(frame);
	producer = tshare_stream_unref(producer);
	consumer = tshare_stream_unref(consumer);
	CHECK(stub_is_registered(written, bytes) && stub_is_registered(taken_from, bytes));
	end_hold(&hold);
	CHECK(!cuStreamSynchronize(cuda));
	CHECK(is_unregistered(written, bytes) && is_unregistered(taken_from, bytes));
	close_all();
}

TEST(a_frame_of_a_stream_that_is_closed_first_is_not_published)
{
	struct tshare_frame *frame, *late;
	struct hold hold;

	open_all(4);
	begin_hold(&hold, cuda);
	frame = loan();
	late = loan();
	CHECK(!tshare_frame_publish_on(frame, NULL, cuda));
	CHECK(!tshare_stream_close(producer, 100 * MS));
	CHECK(tshare_frame_publish_on(late, NULL, cuda) == -ENODATA);
	tshare_frame_unref(late);
	end_hold(&hold);
	CHECK(!cuStreamSynchronize(cuda));
	CHECK(!info_of(frame).number);
	CHECK(tshare_frame_publish(frame) == -ENODATA);
	CHECK(take_number(consumer) == -ENODATA);
	tshare_frame_unref(frame);
	close_all();
}

/* Releasing */

TEST(a_frame_is_released_when_the_cuda_stream_comes_to_it)
{
	struct tshare_frame *frame;
	struct hold hold;

	open_all(2);
	CHECK(publish_until(producer, 1));
	frame = take_frame(consumer);
	CHECK(publish_until(producer, 2));
	begin_hold(&hold, cuda);
	CHECK(!tshare_frame_release_on(frame, NULL, cuda));
	CHECK(!free_slots(100 * MS));
	CHECK(whole_number(frame) == 1);
	end_hold(&hold);
	CHECK(!tshare_stream_loan(producer, LONG, &frame));
	tshare_frame_unref(frame);
	CHECK(!cuStreamSynchronize(cuda));
	close_all();
}

TEST(a_tensor_keeps_a_frame_that_a_cuda_stream_has_released)
{
	struct tshare_tensor *tensor;
	struct tshare_frame *frame;

	open_all(2);
	CHECK(publish_until(producer, 1));
	frame = take_frame(consumer);
	CHECK(!tshare_frame_get_tensor(frame, 0, &tensor));
	CHECK(publish_until(producer, 2));
	CHECK(!tshare_frame_release_on(frame, NULL, cuda));
	CHECK(!cuStreamSynchronize(cuda));
	CHECK(!free_slots(0));
	tshare_tensor_unref(tensor);
	CHECK(free_slots(0) == 1);
	close_all();
}

TEST(a_loaned_frame_is_abandoned_when_the_cuda_stream_comes_to_it)
{
	struct tshare_frame *frame;
	struct hold hold;

	open_all(2);
	begin_hold(&hold, cuda);
	frame = loan();
	CHECK(!tshare_frame_release_on(frame, NULL, cuda));
	CHECK(free_slots(0) == 1);
	end_hold(&hold);
	CHECK(!cuStreamSynchronize(cuda));
	CHECK(free_slots(0) == 2);
	CHECK(take_number(consumer) == -ETIMEDOUT);
	close_all();
}

/* Pins */

TEST(a_pin_of_a_stream_s_region_pins_all_slots_at_once)
{
	struct tshare_tensor *tensor;
	struct tshare_frame *frame;
	struct tshare_pin *pin;
	int i;

	open_all(4);
	CHECK(!tshare_region_pin(tshare_stream_get_region(producer), NULL, &pin));
	for (i = 0; i < 8; i++) {
		frame = loan();
		CHECK(!tshare_frame_get_tensor(frame, 0, &tensor));
		CHECK(stub_flags(tshare_tensor_get_data(tensor)) == (PORTABLE | DEVICE_MAP));
		tshare_tensor_unref(tensor);
		CHECK(!tshare_frame_publish(frame));
		tshare_frame_unref(frame);
	}
	CHECK(stub_calls("cuMemHostRegister") == 1);
	tshare_pin_unref(pin);
	close_all();
}

/* Failures */

static int use_in_child(void *data)
{
	struct tshare_frame **frames = data;

	alarm(HANG_SECONDS);
	if (tshare_frame_publish_on(frames[0], NULL, cuda) != -EOPNOTSUPP ||
	    !error_says("stream: belongs to the parent"))
		return 1;
	if (tshare_frame_release_on(frames[1], NULL, cuda) != -EOPNOTSUPP ||
	    !error_says("stream: belongs to the parent"))
		return 2;
	return 0;
}

TEST(a_child_can_not_use_its_parent_s_frames)
{
	struct tshare_frame *frames[2];

	open_all(4);
	CHECK(publish_until(producer, 1));
	frames[0] = loan();
	frames[1] = take_frame(consumer);
	CHECK(!in_child(use_in_child, frames));
	tshare_frame_unref(frames[0]);
	tshare_frame_unref(frames[1]);
	close_all();
}

static bool refuses(struct tshare_frame *loaned, struct tshare_frame *taken,
		    const struct tshare_cuda_options *options, struct CUstream_st *given, int err,
		    const char *text)
{
	return tshare_frame_publish_on(loaned, options, given) == err && error_says(text) &&
	       tshare_frame_release_on(taken, options, given) == err && error_says(text);
}

TEST(bad_streams_and_options_are_refused)
{
	struct tshare_cuda_options options = on_device(1);
	struct tshare_frame *loaned, *taken;

	open_all(4);
	CHECK(publish_until(producer, 1));
	loaned = loan();
	taken = take_frame(consumer);
	CHECK(refuses(loaned, taken, NULL, NULL, -EINVAL, "stream: NULL may be"));
	CHECK(refuses(loaned, taken, &options, cuda, -EINVAL, "options.device: there is no"));
	options.size = 8;
	CHECK(refuses(loaned, taken, &options, cuda, -EINVAL, "options.size: "));
	stub_set_capturing(cuda, true);
	CHECK(refuses(loaned, taken, NULL, cuda, -EOPNOTSUPP, "stream: is being captured"));
	stub_set_capturing(cuda, false);
	stub_fail("cuLaunchHostFunc", 1, 2);
	CHECK(tshare_frame_publish_on(loaned, NULL, cuda) == -ENOMEM);
	stub_fail("cuLaunchHostFunc", 1, 2);
	CHECK(tshare_frame_release_on(taken, NULL, cuda) == -ENOMEM);
	CHECK(whole_number(taken) == 1);
	tshare_frame_unref(taken);
	fill_frame(loaned, 2);
	CHECK(!tshare_frame_publish(loaned));
	tshare_frame_unref(loaned);
	CHECK(take_number(consumer) == 2);
	close_all();
}

TEST(a_call_that_fails_changes_nothing)
{
	struct tshare_cuda_driver driver = { .size = sizeof(driver) };
	struct tshare_frame *frame;
	unsigned int nth;
	int err, failed = 0;

	CHECK(!tshare_cuda_get_driver(&driver));
	for (nth = 1; nth < 30; nth++) {
		open_all(3);
		frame = loan();
		fill_frame(frame, 1);
		stub_fail(NULL, nth, 999);
		err = tshare_frame_publish_on(frame, NULL, cuda);
		stub_fail(NULL, UINT32_MAX, 0);
		CHECK(!err || err == -EIO);
		failed += !!err;
		CHECK(!err || !tshare_frame_publish(frame));
		tshare_frame_unref(frame);
		CHECK(!take(LONG, &frame));
		stub_fail(NULL, nth, 999);
		err = tshare_frame_release_on(frame, NULL, cuda);
		stub_fail(NULL, UINT32_MAX, 0);
		CHECK(!err || err == -EIO);
		failed += !!err;
		if (err)
			tshare_frame_unref(frame);
		CHECK(!cuStreamSynchronize(cuda));
		CHECK(publish_until(producer, 2));
		CHECK(free_slots(0) == 2);
		close_all();
	}
	CHECK(failed > 4);
}

/* Lost contexts */

TEST(a_context_that_ends_gives_queued_frames_back)
{
	struct tshare_frame *frame, *kept;
	static struct hold hold; /* the old stream's thread may look at it later */

	open_all(4);
	begin_hold(&hold, cuda);
	frame = loan();
	kept = loan();
	CHECK(!tshare_frame_publish_on(frame, NULL, cuda));
	CHECK(!tshare_frame_publish_on(kept, NULL, cuda));
	tshare_frame_unref(frame);
	CHECK(!tshare_frame_release_on(loan(), NULL, cuda));
	CHECK(free_slots(0) == 1);
	replace_context();
	CHECK(free_slots(0) == 3);
	end_hold(&hold);
	fill_frame(kept, 1);
	CHECK(!tshare_frame_publish_on(kept, NULL, cuda));
	CHECK(!cuStreamSynchronize(cuda));
	CHECK(take_number(consumer) == 1);
	tshare_frame_unref(kept);
	close_all();
}

/* The consumer releases two, as many as it may hold, which the CUDA stream doesn't come to. */
static void release_all(struct hold *hold)
{
	struct tshare_frame *frame;
	int i;

	begin_hold(hold, cuda);
	for (i = 1; i <= 2; i++) {
		CHECK(publish_until(producer, i));
		frame = take_frame(consumer);
		CHECK(!tshare_frame_release_on(frame, NULL, cuda));
	}
}

static int get_third(int64_t timeout_ns, struct tshare_frame **frame)
{
	(void)timeout_ns;
	return tshare_stream_get(consumer, 3, frame);
}

static void check_third(int (*call)(int64_t timeout_ns, struct tshare_frame **frame),
			struct hold *hold)
{
	struct tshare_frame *frame;

	open_all(4);
	release_all(hold);
	CHECK(publish_until(producer, 3));
	CHECK(call(0, &frame) == -ENOBUFS);
	replace_context();
	CHECK(!call(0, &frame));
	CHECK(whole_number(frame) == 3);
	tshare_frame_unref(frame);
	CHECK(free_slots(0) == 3);
	end_hold(hold);
	close_all();
}

TEST(a_context_that_ends_releases_a_consumer_s_frames)
{
	static struct hold hold; /* the old stream's thread may look at it later */

	check_third(take, &hold);
}

TEST(a_get_looks_for_lost_contexts_too)
{
	static struct hold hold; /* the old stream's thread may look at it later */

	check_third(get_third, &hold);
}

static void *take_patiently(void *data)
{
	struct tshare_frame *frame;

	(void)data;
	return take(LONG, &frame) ? NULL : frame;
}

/* No frame is published that would be one too many: the producer waits for the slots. */
TEST(a_take_that_waits_releases_frames_of_a_lost_context)
{
	static struct hold hold; /* the old stream's thread may look at it later */
	struct tshare_frame *frame;
	pthread_t thread;
	void *taken;

	open_all(2);
	release_all(&hold);
	CHECK(!free_slots(0));
	CHECK(!pthread_create(&thread, NULL, take_patiently, NULL));
	sleep_ns(20 * MS);
	replace_context();
	CHECK(!tshare_stream_loan(producer, LONG, &frame));
	fill_frame(frame, 3);
	CHECK(!tshare_frame_publish(frame));
	tshare_frame_unref(frame);
	CHECK(!pthread_join(thread, &taken) && taken);
	tshare_frame_unref(taken);
	end_hold(&hold);
	close_all();
}

TEST(a_context_that_ends_releases_frames_of_the_stream_before)
{
	struct tshare_frame *frame;
	static struct hold hold; /* the old stream's thread may look at it later */

	open_all(4);
	tshare_stream_unref(consumer);
	consumer = open_stream(name, TSHARE_FOLLOW);
	release_all(&hold);
	tshare_stream_unref(producer);
	producer = new_stream(name, 4, 1, 0);
	CHECK(publish_until(producer, 1));
	CHECK(take(LONG, &frame) == -ENOBUFS);
	replace_context();
	CHECK(!take(LONG, &frame));
	CHECK(info_of(frame).number == 1 && info_of(frame).epoch == 1);
	tshare_frame_unref(frame);
	end_hold(&hold);
	close_all();
}

static void queue_frame(struct CUstream_st *stream)
{
	struct tshare_frame *frame = loan();

	CHECK(!tshare_frame_publish_on(frame, NULL, stream));
	tshare_frame_unref(frame);
}

/* The next context has its address, and the kernel may give its memory that of the last one's. */
TEST(a_context_that_ends_is_not_taken_for_its_successor)
{
	static struct hold hold; /* the old stream's thread may look at it later */
	struct CUstream_st *old, *new;
	CUcontext primary;

	open_all(4);
	stub_set_ids(false);
	CHECK(!cuDevicePrimaryCtxRetain(&primary, 0) && !cuCtxPushCurrent_v2(primary));
	CHECK(!cuStreamCreate(&old, 0));
	begin_hold(&hold, old);
	queue_frame(old);
	CHECK(free_slots(0) == 3);
	CHECK(!cuDevicePrimaryCtxReset_v2(0) && !cuDevicePrimaryCtxRetain(&primary, 0));
	CHECK(!cuStreamCreate(&new, 0));
	queue_frame(new);
	CHECK(!cuStreamSynchronize(new));
	CHECK(free_slots(0) == 3);
	end_hold(&hold);
	CHECK(!cuStreamDestroy_v2(new) && !cuCtxPopCurrent_v2(NULL));
	CHECK(!cuDevicePrimaryCtxRelease_v2(0));
	close_all();
}

#define OTHERS 8

TEST(a_context_that_ends_is_found_among_many)
{
	static struct hold hold, holds[OTHERS]; /* an old stream's thread may look at it later */
	struct CUstream_st *streams[OTHERS];
	CUcontext contexts[OTHERS];
	int i;

	open_all(OTHERS + 2);
	begin_hold(&hold, cuda);
	queue_frame(cuda);
	for (i = 0; i < OTHERS; i++) {
		CHECK(!cuCtxCreate_v2(&contexts[i], 0, 0) && !cuStreamCreate(&streams[i], 0));
		begin_hold(&holds[i], streams[i]);
		CHECK(!cuCtxPopCurrent_v2(NULL));
		queue_frame(streams[i]);
	}
	CHECK(free_slots(0) == 1);
	replace_context();
	CHECK(free_slots(0) == 2);
	end_hold(&hold);
	for (i = 0; i < OTHERS; i++) {
		end_hold(&holds[i]);
		CHECK(!cuStreamSynchronize(streams[i]) && !cuStreamDestroy_v2(streams[i]));
		CHECK(!cuCtxDestroy_v2(contexts[i]));
	}
	close_all();
}

/* The stub goes on with its work. A driver doesn't, as far as it says. */
TEST(after_an_error_of_its_context_a_cuda_stream_publishes_nothing)
{
	struct hold hold, other = { false, false };
	struct tshare_frame *frame;

	open_all(3);
	begin_hold(&hold, cuda);
	frame = loan();
	fill_frame(frame, 1);
	CHECK(!tshare_frame_publish_on(frame, NULL, cuda));
	stub_fail("cuEventCreate", 0, 700);
	CHECK(free_slots(0) == 2);
	stub_fail("cuEventCreate", UINT32_MAX, 0);
	CHECK(!cuLaunchHostFunc(cuda, hold_stream, &other));
	CHECK(!tshare_frame_publish_on(frame, NULL, cuda));
	end_hold(&hold);
	while (!atomic_load(&other.begun))
		sleep_ns(MS);
	CHECK(take_number(consumer) == -ETIMEDOUT);
	end_hold(&other);
	CHECK(!cuStreamSynchronize(cuda));
	CHECK(take_number(consumer) == 1);
	tshare_frame_unref(frame);
	CHECK(free_slots(0) == 2);
	close_all();
}

/* Threads */

#define ROUNDS 300

static atomic_int wrong;

static void *produce(void *data)
{
	struct CUstream_st *own;
	struct tshare_frame *frame;
	int i;

	(void)data;
	if (cuCtxPushCurrent_v2(context) || cuStreamCreate(&own, 0))
		return NULL;
	for (i = 0; i < ROUNDS; i++) {
		if (tshare_stream_loan(producer, LONG, &frame) ||
		    tshare_frame_publish_on(frame, NULL, own))
			atomic_fetch_add(&wrong, 1);
		while (i % 8 == 0 && !info_of(frame).number)
			sleep_ns(MS);
		tshare_frame_unref(frame);
	}
	if (cuStreamDestroy_v2(own))
		atomic_fetch_add(&wrong, 1);
	return NULL;
}

TEST(threads_publish_and_release_on_streams_of_their_own)
{
	uint64_t last = 0, number = 0;
	struct tshare_frame *frame;
	pthread_t threads[3];
	int i;

	open_all(8);
	for (i = 0; i < 3; i++)
		CHECK(!pthread_create(&threads[i], NULL, produce, NULL));
	while (number < 3 * ROUNDS && !take(LONG, &frame)) {
		number = info_of(frame).number;
		CHECK(number > last);
		last = number;
		CHECK(!tshare_frame_release_on(frame, NULL, cuda));
		/* A consumer holds two frames of eight slots. */
		CHECK(!cuStreamSynchronize(cuda));
	}
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CHECK(number == 3 * ROUNDS && !atomic_load(&wrong));
	CHECK(free_slots(0) == 7);
	close_all();
}

int main(void)
{
	return tap_main(start, close_context);
}
