// SPDX-License-Identifier: MIT
/* Copies in a device's memory, on a stub of CUDA's driver, where that is memory of the process. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "hold.h"

#define SIZE  (1 << 20)
#define WORDS (SIZE / 4)

static const int64_t all[1] = { WORDS };

/* The context of most tests, with a stream of it; current in the test's thread. */
static CUcontext context;
static struct CUstream_st *stream;

static void open_stream(void)
{
	CHECK(!cuInit(0) && !cuCtxCreate_v2(&context, 0, 0));
	CHECK(!cuStreamCreate(&stream, 0));
}

static void close_stream(void)
{
	CHECK(!cuStreamDestroy_v2(stream) && !cuCtxDestroy_v2(context));
	CHECK(nothing_is_left());
}

/* A region of numbered words, as one tensor. */
static struct tshare_tensor *numbered(void)
{
	struct tshare_tensor *tensor = new_tensor(NULL, TSHARE_UINT32, 1, all);
	uint32_t *words = tshare_tensor_get_data(tensor);
	uint32_t i;

	for (i = 0; i < WORDS; i++)
		words[i] = i;
	return tensor;
}

static struct tshare_cuda_copy *copied(struct tshare_tensor *tensor, struct CUstream_st *on)
{
	struct tshare_cuda_copy *copy;

	CHECK(!tshare_cuda_copy_new(tensor, NULL, on, &copy));
	return copy;
}

static struct tshare_cuda_copy_info info_of(const struct tshare_cuda_copy *copy)
{
	struct tshare_cuda_copy_info info = { .size = sizeof(info) };

	CHECK(!tshare_cuda_copy_get_info(copy, &info));
	return info;
}

/* When its stream has made it: what is freed is freed at once. */
static void drop(struct tshare_cuda_copy *copy)
{
	while (stub_busy())
		sleep_ns(MS);
	tshare_cuda_copy_unref(copy);
}

/*
 * A copy that was dropped before goes in a thread of the library's. With it goes, last, the region
 * of @fd that it had the last reference to.
 */
static bool goes(int fd)
{
	int i;

	for (i = 0; i < 30000 && fcntl(fd, F_GETFD) >= 0; i++)
		sleep_ns(MS);
	return stub_calls("cuMemFree") == 1;
}

static const void *data_of(const struct tshare_cuda_copy *copy)
{
	return (const void *)(uintptr_t)info_of(copy).address;
}

static bool has_the_bytes(const struct tshare_cuda_copy *copy, const struct tshare_tensor *tensor)
{
	return !memcmp(data_of(copy), tshare_tensor_get_data(tensor),
		       tshare_tensor_get_nbytes(tensor));
}

static CUcontext current(void)
{
	CUcontext found;

	CHECK(!cuCtxGetCurrent(&found));
	return found;
}

/* What is copied */

TEST(a_copy_has_the_tensors_bytes)
{
	struct tshare_tensor *tensor = numbered();
	struct tshare_cuda_copy *copy;

	open_stream();
	copy = copied(tensor, stream);
	CHECK(!cuStreamSynchronize(stream));
	CHECK(data_of(copy) != tshare_tensor_get_data(tensor));
	CHECK(has_the_bytes(copy, tensor));
	CHECK(tshare_cuda_copy_get_tensor(copy) == tensor);
	drop(copy);
	tshare_tensor_unref(tensor);
	close_stream();
}

TEST(a_copy_reports_device_driver_and_bytes)
{
	const struct tshare_cuda_options options = on_device(1);
	struct tshare_tensor *tensor = numbered();
	struct tshare_cuda_copy_info info;
	struct tshare_cuda_copy *copy;

	stub_set_devices(2);
	CHECK(!tshare_cuda_copy_new(tensor, &options, LEGACY, &copy));
	info = info_of(copy);
	CHECK(info.device == 1 && info.driver_version == 13000);
	CHECK(info.memory_bytes == SIZE && info.context_created);
	drop(copy);
	tshare_tensor_unref(tensor);
	CHECK(nothing_is_left());
}

/* Copies a matrix of words whose element [0, 0] is the numbered one, and compares. */
static bool keeps_strides(uint32_t first, const int64_t shape[2], const int64_t strides[2],
			  uint64_t words)
{
	struct tshare_tensor *whole = numbered(), *tensor;
	const struct tshare_spec spec = {
		.size = sizeof(spec),
		.dtype = TSHARE_UINT32,
		.ndim = 2,
		.shape = shape,
		.strides = strides,
		.byte_offset = first ? 4 * first : TSHARE_OFFSET_START,
	};
	struct tshare_cuda_copy *copy;
	const uint32_t *data;
	int64_t i, j;
	bool same;

	CHECK(!tshare_region_view(tshare_tensor_get_region(whole), &spec, 0, &tensor));
	copy = copied(tensor, stream);
	CHECK(!cuStreamSynchronize(stream));
	data = data_of(copy);
	same = info_of(copy).memory_bytes == 4 * words;
	for (i = 0; i < shape[0]; i++)
		for (j = 0; j < shape[1]; j++)
			same &= data[i * strides[0] + j * strides[1]] ==
				first + i * strides[0] + j * strides[1];
	drop(copy);
	tshare_tensor_unref(tensor);
	tshare_tensor_unref(whole);
	return same;
}

TEST(a_copy_has_the_tensors_strides)
{
	open_stream();
	CHECK(keeps_strides(0, (int64_t[]){ 3, 4 }, (int64_t[]){ 4, 1 }, 12));
	CHECK(keeps_strides(5, (int64_t[]){ 3, 4 }, (int64_t[]){ 1, 3 }, 12));
	CHECK(keeps_strides(5, (int64_t[]){ 3, 4 }, (int64_t[]){ 100, 2 }, 207));
	CHECK(keeps_strides(5, (int64_t[]){ 3, 4 }, (int64_t[]){ 0, 1 }, 4));
	CHECK(keeps_strides(5, (int64_t[]){ 3, 4 }, (int64_t[]){ 0, 0 }, 1));
	CHECK(keeps_strides(11, (int64_t[]){ 3, 4 }, (int64_t[]){ -4, -1 }, 12));
	CHECK(keeps_strides(8, (int64_t[]){ 3, 4 }, (int64_t[]){ -4, 1 }, 12));
	CHECK(keeps_strides(WORDS - 1, (int64_t[]){ 2, 2 }, (int64_t[]){ -3, -1 }, 5));
	close_stream();
}

TEST(a_copy_of_packed_elements_has_their_bytes)
{
	const struct tshare_dtype nibble = { 17, 4, 1 };
	struct tshare_tensor *tensor = new_tensor(NULL, nibble, 1, (int64_t[]){ 5 });
	struct tshare_cuda_copy *copy;

	memcpy(tshare_tensor_get_data(tensor), "\x21\x43\x05", 3);
	open_stream();
	copy = copied(tensor, stream);
	CHECK(!cuStreamSynchronize(stream));
	CHECK(info_of(copy).memory_bytes == 3);
	CHECK(!memcmp(data_of(copy), "\x21\x43\x05", 3));
	drop(copy);
	tshare_tensor_unref(tensor);
	close_stream();
}

TEST(an_empty_tensor_takes_nothing)
{
	struct tshare_tensor *tensor = new_tensor(NULL, TSHARE_UINT32, 2, (int64_t[]){ 3, 0 });
	const struct tshare_cuda_options options = on_device(1);
	struct tshare_cuda_copy *copy;

	stub_set_devices(2);
	CHECK(!tshare_cuda_copy_new(tensor, &options, LEGACY, &copy));
	CHECK(!info_of(copy).address && !info_of(copy).memory_bytes);
	CHECK(info_of(copy).device == 1 && !info_of(copy).context_created);
	CHECK(!tshare_cuda_copy_wait_on(copy, LEGACY));
	CHECK(tshare_cuda_copy_wait_on(copy, NULL) == -EINVAL);
	CHECK(!stub_calls("cuMemAlloc") && !stub_calls("cuDevicePrimaryCtxRetain"));
	drop(copy);
	open_stream();
	copy = copied(tensor, stream);
	CHECK(!info_of(copy).device);
	CHECK(!tshare_cuda_copy_wait_on(copy, stream));
	CHECK(!stub_calls("cuMemAlloc") && !stub_calls("cuStreamWaitEvent"));
	drop(copy);
	tshare_tensor_unref(tensor);
	close_stream();
}

TEST(a_read_only_tensor_can_be_copied)
{
	struct tshare_tensor *tensor = numbered(), *readonly;
	struct tshare_region *region;
	struct tshare_cuda_copy *copy;
	int fd = tshare_region_get_fd(tshare_tensor_get_region(tensor));

	CHECK(!tshare_region_import(ctx, fd, TSHARE_READONLY, &region));
	CHECK(!tshare_region_get_tensor(region, 0, &readonly));
	open_stream();
	copy = copied(readonly, stream);
	CHECK(!cuStreamSynchronize(stream));
	CHECK(has_the_bytes(copy, tensor));
	drop(copy);
	tshare_tensor_unref(readonly);
	tshare_region_unref(region);
	tshare_tensor_unref(tensor);
	close_stream();
}

/* The order of streams */

TEST(a_stream_copies_when_it_comes_to_that)
{
	struct tshare_tensor *tensor = numbered();
	uint32_t *words = tshare_tensor_get_data(tensor);
	struct tshare_cuda_copy *copy;
	struct hold hold;

	open_stream();
	begin_hold(&hold, stream);
	copy = copied(tensor, stream);
	words[1] = 7;
	CHECK(cuStreamQuery(stream) == NOT_READY);
	end_hold(&hold);
	CHECK(!cuStreamSynchronize(stream));
	CHECK(((const uint32_t *)data_of(copy))[1] == 7);
	drop(copy);
	tshare_tensor_unref(tensor);
	close_stream();
}

struct look {
	const uint32_t *word;
	uint32_t seen;
};

static void look_now(void *data)
{
	struct look *look = data;

	look->seen = *look->word;
}

TEST(another_stream_can_wait_for_a_copy)
{
	struct tshare_tensor *tensor = numbered();
	struct CUstream_st *other, *own;
	struct tshare_cuda_copy *copy;
	struct look look;
	struct hold hold;
	int i;

	open_stream();
	CHECK(!cuStreamCreate(&own, 0));
	for (i = 0; i < 3; i++) {
		other = (struct CUstream_st *[]){ own, LEGACY, PER_THREAD }[i];
		begin_hold(&hold, stream);
		copy = copied(tensor, stream);
		look = (struct look){ .word = (const uint32_t *)data_of(copy) + 5 };
		CHECK(!tshare_cuda_copy_wait_on(copy, other));
		CHECK(!cuLaunchHostFunc(other, look_now, &look));
		sleep_ns(20 * MS);
		CHECK(cuStreamQuery(other) == NOT_READY);
		end_hold(&hold);
		CHECK(!cuStreamSynchronize(other));
		CHECK(look.seen == 5);
		drop(copy);
	}
	CHECK(!cuStreamDestroy_v2(own));
	tshare_tensor_unref(tensor);
	close_stream();
}

TEST(a_stream_of_another_device_can_wait_for_a_copy)
{
	struct tshare_tensor *tensor = numbered();
	struct tshare_cuda_copy *copy;
	struct CUstream_st *other;
	CUcontext second;

	stub_set_devices(2);
	open_stream();
	copy = copied(tensor, stream);
	CHECK(!cuCtxCreate_v2(&second, 0, 1) && !cuStreamCreate(&other, 0));
	CHECK(!tshare_cuda_copy_wait_on(copy, other));
	CHECK(current() == second);
	CHECK(!cuStreamDestroy_v2(other) && !cuCtxDestroy_v2(second));
	drop(copy);
	tshare_tensor_unref(tensor);
	close_stream();
}

TEST(a_default_stream_that_waits_is_that_of_the_copys_device)
{
	const struct tshare_cuda_options options = on_device(1);
	struct tshare_tensor *tensor = numbered();
	struct tshare_cuda_copy *copy;
	CUcontext second;
	struct hold hold;

	stub_set_devices(2);
	open_stream();
	CHECK(!cuDevicePrimaryCtxRetain(&second, 1) && !cuCtxPushCurrent_v2(second));
	begin_hold(&hold, LEGACY);
	CHECK(!cuCtxPopCurrent_v2(&second));
	CHECK(!tshare_cuda_copy_new(tensor, &options, LEGACY, &copy));
	CHECK(!tshare_cuda_copy_wait_on(copy, LEGACY));
	CHECK(current() == context && !cuStreamQuery(LEGACY));
	end_hold(&hold);
	drop(copy);
	CHECK(!cuDevicePrimaryCtxRelease_v2(1));
	tshare_tensor_unref(tensor);
	close_stream();
}

/* How long it lasts */

TEST(a_copy_lasts_until_its_last_unref)
{
	struct tshare_tensor *tensor = numbered();
	struct tshare_cuda_copy *copy;

	open_stream();
	copy = copied(tensor, stream);
	CHECK(tshare_cuda_copy_ref(copy) == copy && !cuStreamSynchronize(stream));
	CHECK(!tshare_cuda_copy_unref(copy));
	CHECK(!stub_calls("cuMemFree"));
	CHECK(!tshare_cuda_copy_unref(copy));
	CHECK(stub_calls("cuMemFree") == 1);
	CHECK(!tshare_cuda_copy_unref(NULL));
	tshare_tensor_unref(tensor);
	close_stream();
}

/* The copy has the last reference to the memory that it reads. */
TEST(a_copy_that_nobody_has_goes_when_the_stream_has_made_it)
{
	struct tshare_tensor *tensor = numbered();
	int fd = tshare_region_get_fd(tshare_tensor_get_region(tensor));
	struct tshare_cuda_copy *copy;
	struct hold hold;

	open_stream();
	begin_hold(&hold, stream);
	copy = copied(tensor, stream);
	tshare_tensor_unref(tensor);
	tshare_cuda_copy_unref(copy);
	sleep_ns(20 * MS);
	CHECK(!stub_calls("cuMemFree") && !stub_calls("cuDevicePrimaryCtxRetain"));
	end_hold(&hold);
	CHECK(goes(fd));
	close_stream();
}

TEST(a_pinned_region_stays_pinned_until_the_copy_goes)
{
	struct tshare_tensor *tensor = numbered();
	struct tshare_region *region = tshare_tensor_get_region(tensor);
	struct tshare_cuda_copy *copy;
	struct tshare_pin *pin;
	struct hold hold;

	open_stream();
	begin_hold(&hold, stream);
	CHECK(!tshare_region_pin(region, NULL, &pin));
	copy = copied(tensor, stream);
	tshare_pin_unref(pin);
	CHECK(tshare_region_is_pinned(region));
	CHECK(stub_is_registered(tshare_region_get_data(region), tshare_region_get_size(region)));
	end_hold(&hold);
	drop(copy);
	CHECK(!tshare_region_is_pinned(region) && !stub_registrations());
	tshare_tensor_unref(tensor);
	close_stream();
}

TEST(no_region_is_pinned_for_a_copy)
{
	struct tshare_tensor *tensor = numbered();
	struct tshare_cuda_copy *copy;

	open_stream();
	copy = copied(tensor, stream);
	CHECK(!tshare_region_is_pinned(tshare_tensor_get_region(tensor)));
	CHECK(!stub_calls("cuMemHostRegister"));
	drop(copy);
	tshare_tensor_unref(tensor);
	close_stream();
}

/* Its pin is left, and its registration has gone. */
TEST(a_region_whose_device_was_reset_is_not_pinned_for_a_copy)
{
	struct tshare_tensor *tensor = numbered();
	struct tshare_cuda_copy *copy;
	struct tshare_pin *pin;

	CHECK(!tshare_region_pin(tshare_tensor_get_region(tensor), NULL, &pin));
	CHECK(!cuDevicePrimaryCtxReset_v2(0));
	open_stream();
	copy = copied(tensor, stream);
	tshare_pin_unref(pin);
	CHECK(!tshare_region_is_pinned(tshare_tensor_get_region(tensor)));
	drop(copy);
	tshare_tensor_unref(tensor);
	close_stream();
}

static void change_errno(void *data)
{
	(void)data;
	errno = ENOTTY;
}

TEST(unref_of_a_copy_keeps_errno)
{
	struct tshare_tensor *tensor = numbered();
	struct tshare_cuda_copy *copy;

	open_stream();
	copy = copied(tensor, stream);
	stub_set_hook("cuMemFree", change_errno, NULL);
	errno = EXDEV;
	drop(copy);
	CHECK(errno == EXDEV);
	tshare_tensor_unref(tensor);
	close_stream();
}

/* Contexts */

TEST(a_default_stream_without_a_context_has_the_primary_one_made)
{
	struct tshare_tensor *tensor = numbered();
	struct tshare_cuda_copy *one = copied(tensor, LEGACY), *two = copied(tensor, PER_THREAD);

	CHECK(!current() && stub_references(0) == 2);
	CHECK(info_of(one).context_created && !info_of(two).context_created);
	drop(one);
	drop(two);
	CHECK(!current() && !stub_references(0));
	tshare_tensor_unref(tensor);
	CHECK(nothing_is_left());
}

TEST(the_streams_context_is_used)
{
	struct tshare_tensor *tensor = numbered();
	struct tshare_cuda_copy *copy;
	CUcontext popped;

	open_stream();
	CHECK(!cuCtxPopCurrent_v2(&popped));
	copy = copied(tensor, stream);
	CHECK(!current() && !stub_references(0) && !info_of(copy).context_created);
	CHECK(!cuCtxPushCurrent_v2(context));
	CHECK(!cuStreamSynchronize(stream) && has_the_bytes(copy, tensor));
	CHECK(!stub_calls("cuDevicePrimaryCtxRetain"));
	drop(copy);
	tshare_tensor_unref(tensor);
	close_stream();
}

TEST(a_copy_outlives_the_callers_reference_to_the_primary_context)
{
	struct tshare_tensor *tensor = numbered();
	struct CUstream_st *streams[2] = { LEGACY };
	struct tshare_cuda_copy *copy;
	CUcontext primary;
	int i;

	for (i = 0; i < 2; i++) {
		CHECK(!cuInit(0) && !cuDevicePrimaryCtxRetain(&primary, 0) &&
		      !cuCtxPushCurrent_v2(primary) && !cuStreamCreate(&streams[1], 0));
		copy = copied(tensor, streams[i]);
		CHECK(!cuStreamSynchronize(streams[i]));
		CHECK(current() == primary);
		CHECK(!cuCtxPopCurrent_v2(&primary) && !cuDevicePrimaryCtxRelease_v2(0));
		CHECK(stub_references(0) == 1 && has_the_bytes(copy, tensor));
		drop(copy);
	}
	tshare_tensor_unref(tensor);
	CHECK(nothing_is_left());
}

TEST(a_context_that_is_destroyed_takes_its_copy_along)
{
	struct tshare_tensor *tensor = numbered();
	struct tshare_cuda_copy *copy;

	open_stream();
	copy = copied(tensor, stream);
	CHECK(!cuCtxDestroy_v2(context));
	drop(copy);
	tshare_tensor_unref(tensor);
	CHECK(!stub_calls("cuEventQuery") && !stub_calls("cuMemFree"));
	CHECK(nothing_is_left());
}

TEST(a_reset_leaves_others_their_memory)
{
	struct tshare_tensor *tensor = numbered();
	struct tshare_cuda_copy *copy = copied(tensor, LEGACY);
	unsigned long long address;
	CUcontext primary;

	CHECK(!cuDevicePrimaryCtxReset_v2(0));
	CHECK(!cuDevicePrimaryCtxRetain(&primary, 0) && !cuCtxPushCurrent_v2(primary));
	CHECK(!cuMemAlloc_v2(&address, SIZE));
	CHECK(address == info_of(copy).address);
	drop(copy);
	CHECK(!stub_calls("cuMemFree") && stub_references(0) == 1);
	CHECK(!cuMemFree_v2(address));
	CHECK(!cuCtxPopCurrent_v2(&primary) && !cuDevicePrimaryCtxRelease_v2(0));
	tshare_tensor_unref(tensor);
	CHECK(nothing_is_left());
}

TEST(a_reset_leaves_no_copy_to_wait_for)
{
	struct tshare_tensor *tensor = numbered();
	struct tshare_cuda_copy *copy = copied(tensor, LEGACY);

	CHECK(!cuDevicePrimaryCtxReset_v2(0));
	open_stream();
	CHECK(tshare_cuda_copy_wait_on(copy, stream) == -EIO);
	CHECK(error_says("copy: has gone"));
	CHECK(!stub_calls("cuStreamWaitEvent"));
	drop(copy);
	tshare_tensor_unref(tensor);
	close_stream();
}

/* At exit the driver's destructor may run before a program's last unref. */
TEST(a_driver_that_has_ended_is_left_alone)
{
	struct tshare_tensor *tensor = numbered();
	struct tshare_cuda_copy *copy = copied(tensor, LEGACY);

	stub_fail("cuPointerGetAttribute", 0, 4);
	drop(copy);
	tshare_tensor_unref(tensor);
	CHECK(!stub_calls("cuMemFree") && !stub_calls("cuDevicePrimaryCtxRelease"));
}

/* Failures */

static bool fails(struct tshare_tensor *tensor, int err, const char *text)
{
	struct tshare_cuda_copy *copy;

	return tshare_cuda_copy_new(tensor, NULL, LEGACY, &copy) == err && error_says(text);
}

TEST(a_device_without_memory_left_is_enomem)
{
	struct tshare_tensor *tensor = numbered();

	stub_fail("cuMemAlloc", 1, 2);
	CHECK(fails(tensor, -ENOMEM, "copy: CUDA device 0 has no 1048576 bytes"));
	CHECK(nothing_is_left());
	drop(copied(tensor, LEGACY));
	tshare_tensor_unref(tensor);
	CHECK(nothing_is_left());
}

/* A context that the driver doesn't report is one that there isn't. */
static bool is_expected(int err)
{
	return !err || (err == -EIO && error_says("CUDA_ERROR_UNKNOWN")) ||
	       (err == -EINVAL && error_says("has no context"));
}

/* Fails each call to the driver in turn, in new(), wait_on() and unref(). */
static bool each_failure_leaves_nothing(struct CUstream_st *on)
{
	struct tshare_tensor *tensor = numbered();
	unsigned int calls, references = stub_references(0), nth;
	CUcontext before = current();
	struct tshare_cuda_copy *copy;
	const char *left;
	bool held = true;
	int err;

	calls = stub_calls(NULL);
	copy = copied(tensor, on);
	CHECK(!tshare_cuda_copy_wait_on(copy, on));
	drop(copy);
	calls = stub_calls(NULL) - calls;
	for (nth = 1; held && nth <= calls; nth++) {
		stub_fail(NULL, nth, 999);
		err = tshare_cuda_copy_new(tensor, NULL, on, &copy);
		held = is_expected(err);
		if (!err) {
			err = tshare_cuda_copy_wait_on(copy, on);
			held &= is_expected(err);
			drop(copy);
		}
		stub_fail(NULL, UINT_MAX, 999); /* no call any more */
		left = stub_left() ?: "";
		held &= !strstr(left, "memory") && !strstr(left, "event") &&
			stub_references(0) == references && current() == before;
		if (!held)
			printf("# call %u of %u: %d, %s\n", nth, calls, err, left);
	}
	tshare_tensor_unref(tensor);
	return held && !stub_complaint();
}

TEST(a_failure_of_any_call_leaves_nothing)
{
	CUcontext primary;

	CHECK(!cuInit(0));
	CHECK(each_failure_leaves_nothing(LEGACY));
	CHECK(!cuDevicePrimaryCtxRetain(&primary, 0) && !cuCtxPushCurrent_v2(primary));
	CHECK(each_failure_leaves_nothing(LEGACY));
	CHECK(!cuStreamCreate(&stream, 0));
	CHECK(each_failure_leaves_nothing(stream));
	CHECK(!cuCtxPopCurrent_v2(&primary) && !cuDevicePrimaryCtxRelease_v2(0));
	CHECK(nothing_is_left());
}

struct maker {
	pthread_t thread;
	struct tshare_tensor *tensor;
	atomic_bool done;
	int err;
};

static void *fail_to_make(void *data)
{
	struct tshare_cuda_copy *copy;
	struct maker *maker = data;

	maker->err = tshare_cuda_copy_new(maker->tensor, NULL, stream, &copy);
	atomic_store(&maker->done, true);
	return NULL;
}

/* Neither the memory nor the source goes while the stream has the copy before it. */
TEST(a_failure_behind_the_copy_waits_for_it)
{
	struct maker maker = { .tensor = numbered(), .done = false };
	struct tshare_pin *pin;
	struct hold hold;

	CHECK(!tshare_region_pin(tshare_tensor_get_region(maker.tensor), NULL, &pin));
	open_stream();
	begin_hold(&hold, stream);
	stub_fail("cuEventRecord", 1, 999);
	CHECK(!pthread_create(&maker.thread, NULL, fail_to_make, &maker));
	sleep_ns(100 * MS);
	CHECK(!atomic_load(&maker.done) && !stub_calls("cuMemFree"));
	end_hold(&hold);
	CHECK(!pthread_join(maker.thread, NULL) && maker.err == -EIO);
	tshare_pin_unref(pin);
	CHECK(!stub_registrations());
	tshare_tensor_unref(maker.tensor);
	close_stream();
}

static bool refuses(const struct tshare_cuda_options *options, struct CUstream_st *on, int err,
		    const char *text)
{
	struct tshare_tensor *tensor = numbered();
	struct tshare_cuda_copy *copy;
	bool refused = tshare_cuda_copy_new(tensor, options, on, &copy) == err && error_says(text);

	tshare_tensor_unref(tensor);
	return refused && !stub_calls("cuMemAlloc");
}

TEST(copies_refuse_streams_and_options_that_are_wrong)
{
	struct tshare_cuda_options options = on_device(1);

	CHECK(refuses(NULL, NULL, -EINVAL, "stream: NULL"));
	CHECK(refuses(&options, LEGACY, -EINVAL, "options.device: there is no device 1 of 1"));
	stub_set_devices(2);
	open_stream();
	CHECK(refuses(&options, stream, -EINVAL, "options.device: the stream is of device 0"));
	options.path = TSHARE_CUDA_REGISTERED;
	CHECK(refuses(&options, LEGACY, -EINVAL, "options.path: "));
	stub_set_capturing(stream, true);
	CHECK(refuses(NULL, stream, -EOPNOTSUPP, "stream: is being captured"));
	close_stream();
}

TEST(waits_for_copies_refuse_streams_that_are_wrong)
{
	struct tshare_tensor *tensor = numbered();
	struct tshare_cuda_copy *copy;

	open_stream();
	copy = copied(tensor, stream);
	CHECK(tshare_cuda_copy_wait_on(copy, NULL) == -EINVAL && error_says("stream: NULL"));
	stub_set_capturing(stream, true);
	CHECK(tshare_cuda_copy_wait_on(copy, stream) == -EOPNOTSUPP);
	stub_set_capturing(stream, false);
	drop(copy);
	tshare_tensor_unref(tensor);
	close_stream();
}

TEST(copy_info_needs_its_size)
{
	struct tshare_tensor *tensor = numbered();
	struct tshare_cuda_copy *copy = copied(tensor, LEGACY);
	struct tshare_cuda_copy_info info = { 0 };

	CHECK(tshare_cuda_copy_get_info(copy, &info) == -EINVAL);
	CHECK(error_says("info.size: "));
	drop(copy);
	tshare_tensor_unref(tensor);
	CHECK(nothing_is_left());
}

/* Forks */

/* The child has the parent's copy, and the parent's references to what that holds. */
static int use_in_child(void *data)
{
	struct tshare_cuda_copy *copy = data, *another;
	struct tshare_tensor *tensor = tshare_cuda_copy_get_tensor(copy);
	unsigned int before = stub_calls(NULL);

	alarm(HANG_SECONDS);
	if (tshare_cuda_copy_new(tensor, NULL, LEGACY, &another) != -EOPNOTSUPP ||
	    !error_says("forked"))
		return 1;
	if (tshare_cuda_copy_wait_on(copy, LEGACY) != -EOPNOTSUPP)
		return 2;
	tshare_cuda_copy_unref(copy);
	tshare_tensor_unref(tensor);
	return stub_calls(NULL) == before ? 0 : 3;
}

TEST(a_child_leaves_the_parents_copy_alone)
{
	struct tshare_tensor *tensor = numbered();
	struct tshare_cuda_copy *copy;
	struct tshare_pin *pin;
	struct hold hold;

	open_stream();
	CHECK(!tshare_region_pin(tshare_tensor_get_region(tensor), NULL, &pin));
	begin_hold(&hold, stream);
	copy = copied(tensor, stream);
	CHECK(!in_child(use_in_child, copy));
	end_hold(&hold);
	CHECK(!cuStreamSynchronize(stream) && has_the_bytes(copy, tensor));
	drop(copy);
	tshare_pin_unref(pin);
	tshare_tensor_unref(tensor);
	close_stream();
}

int main(void)
{
	return tap_main(start, close_context);
}
