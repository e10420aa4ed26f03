// SPDX-License-Identifier: MIT
/*
 * What the library does while another thread captures a stream into a graph, on a stub of
 * CUDA's driver: it must neither fail nor end the capture.
 */
#define _GNU_SOURCE 1
#include <errno.h>

#include "hold.h"

#define SIZE (1 << 20)

/* Of one context, which is the current one. */
static CUcontext context;
static struct CUstream_st *captured, *stream;

static void begin_capture(void)
{
	CHECK(!cuInit(0) && !cuCtxCreate_v2(&context, 0, 0));
	CHECK(!cuStreamCreate(&captured, 0) && !cuStreamCreate(&stream, 0));
	stub_set_capturing(captured, true);
}

static void await_stream(void)
{
	int i;

	for (i = 0; i < 30000 && cuStreamQuery(stream) == NOT_READY; i++)
		sleep_ns(MS);
	CHECK(!cuStreamQuery(stream));
}

/* What a stream had of a region goes in a thread of the library's, which enters a context. */
static void end_capture(void)
{
	int i;

	for (i = 0; i < 30000 && (stub_registrations() || stub_references(0)); i++)
		sleep_ns(MS);
	CHECK(!stub_registrations());
	stub_set_capturing(captured, false);
	CHECK(!cuCtxDestroy_v2(context) && nothing_is_left());
}

TEST(pins_leave_captures_whole)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin;

	begin_capture();
	CHECK(!tshare_region_pin(region, NULL, &pin));
	tshare_pin_unref(pin);
	tshare_region_unref(region);
	end_capture();
}

TEST(imports_leave_captures_whole)
{
	struct tshare_cuda_info info = { .size = sizeof(info) };
	struct tshare_region *region = region_of(SIZE);

	begin_capture();
	CHECK(!tshare_cuda_import(region, NULL, &info));
	CHECK(!tshare_cuda_import_counter(region, NULL, &info));
	tshare_region_unref(region);
	end_capture();
}

TEST(publishing_leaves_captures_whole)
{
	const struct tshare_cuda_options options = {
		.size = sizeof(options),
		.path = TSHARE_CUDA_REGISTERED,
	};
	struct tshare_cuda_info info = { .size = sizeof(info) };
	struct tshare_region *region = region_of(SIZE);

	begin_capture();
	CHECK(!tshare_cuda_import(region, &options, &info));
	CHECK(!tshare_region_publish_on(region, NULL, stream));
	tshare_region_unref(region);
	await_stream();
	end_capture();
}

/* The page that a stream waits for stays with its context. */
TEST(waits_leave_captures_whole)
{
	struct tshare_region *region = region_of(SIZE);

	begin_capture();
	CHECK(!tshare_region_wait_on(region, NULL, stream, 0, -1, NULL));
	publish(region);
	await_stream();
	tshare_region_unref(region);
	stub_set_capturing(captured, false);
	CHECK(!cuCtxDestroy_v2(context) && nothing_is_left());
}

TEST(copies_leave_captures_whole)
{
	static const int64_t shape[1] = { SIZE };
	struct tshare_tensor *tensor = new_tensor(NULL, TSHARE_UINT8, 1, shape);
	struct tshare_cuda_copy *copy;

	begin_capture();
	CHECK(!tshare_cuda_copy_new(tensor, NULL, stream, &copy));
	CHECK(!tshare_cuda_copy_wait_on(copy, stream));
	await_stream();
	tshare_cuda_copy_unref(copy);
	tshare_tensor_unref(tensor);
	end_capture();
}

/* It releases the primary context, which may end then. */
TEST(the_end_of_a_pin_leaves_captures_whole)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin;

	CHECK(!tshare_region_pin(region, NULL, &pin));
	begin_capture();
	tshare_pin_unref(pin);
	CHECK(!stub_complaint());
	tshare_region_unref(region);
	end_capture();
}

TEST(memory_by_name_leaves_captures_whole)
{
	static const int64_t shape[1] = { SIZE };
	struct tshare_cuda_memory *memory;

	begin_capture();
	CHECK(!tshare_cuda_memory_create(ctx, unique("gpu"), TSHARE_UINT8, 1, shape, NULL, NULL,
					 &memory));
	tshare_cuda_memory_unref(memory);
	end_capture();
}

TEST(a_thread_keeps_its_mode_of_capture)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin;
	int before, mode;

	begin_capture();
	for (before = 0; before < 3; before++) {
		mode = before;
		CHECK(!cuThreadExchangeStreamCaptureMode(&mode));
		CHECK(!tshare_region_pin(region, NULL, &pin));
		tshare_pin_unref(pin);
		CHECK(tshare_region_publish_on(region, NULL, captured) == -EOPNOTSUPP);
		mode = 0;
		CHECK(!cuThreadExchangeStreamCaptureMode(&mode));
		CHECK(mode == before);
	}
	tshare_region_unref(region);
	end_capture();
}

TEST(a_thread_keeps_its_mode_where_no_context_can_be_had)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin;
	int mode = 0;

	CHECK(!cuInit(0));
	stub_fail("cuDevicePrimaryCtxRetain", 0, 2);
	CHECK(tshare_region_pin(region, NULL, &pin) == -ENOMEM);
	CHECK(!cuThreadExchangeStreamCaptureMode(&mode) && !mode);
	stub_reset();
	end(region);
}

int main(void)
{
	return tap_main(start, close_context);
}
