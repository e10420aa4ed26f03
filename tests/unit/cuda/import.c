// SPDX-License-Identifier: MIT
/* How a device reaches a region, on a stub of CUDA's driver. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "other.h"

#define SIZE (1 << 20)

static int import_by(struct tshare_region *region, uint32_t path, struct tshare_cuda_info *info)
{
	const struct tshare_cuda_options options = {
		.size = sizeof(options),
		.path = path,
	};

	*info = (struct tshare_cuda_info){ .size = sizeof(*info) };
	return tshare_cuda_import(region, &options, info);
}

static struct tshare_cuda_info imported_by(struct tshare_region *region, uint32_t path)
{
	struct tshare_cuda_info info;

	CHECK(!import_by(region, path, &info));
	CHECK(info.path == path || path == TSHARE_CUDA_ANY);
	return info;
}

static struct tshare_cuda_info imported(struct tshare_region *region)
{
	return imported_by(region, TSHARE_CUDA_ANY);
}

static bool fails(struct tshare_region *region, uint32_t path, int err, const char *text)
{
	struct tshare_cuda_info info;

	return import_by(region, path, &info) == err && error_says(text);
}

static void need_dmabufs(void)
{
	if (!limits_of(ctx).dmabuf)
		SKIP("shared memory has no dma-bufs");
}

static uintptr_t address_of(const struct tshare_region *region)
{
	return (uintptr_t)tshare_region_get_data(region);
}

/* The ways, in their order */

TEST(a_dmabuf_is_imported_first)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_cuda_info info = imported(region);

	if (limits_of(ctx).dmabuf) {
		CHECK(info.path == TSHARE_CUDA_DMABUF && !stub_registrations());
		CHECK(!info.results[TSHARE_CUDA_DMABUF]);
	} else {
		CHECK(info.path == TSHARE_CUDA_REGISTERED);
		CHECK(info.results[TSHARE_CUDA_DMABUF] == -EOPNOTSUPP);
		CHECK(!stub_calls("cuImportExternalMemory"));
	}
	CHECK(!info.results[TSHARE_CUDA_REGISTERED] && !info.results[TSHARE_CUDA_PAGEABLE]);
	CHECK(info.device == 0 && info.driver_version == 13000 && !info.readonly);
	end(region);
}

TEST(registered_memory_comes_second)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_cuda_info info;

	stub_set_dmabuf(false);
	info = imported(region);
	CHECK(info.path == TSHARE_CUDA_REGISTERED);
	CHECK(info.results[TSHARE_CUDA_DMABUF] == (limits_of(ctx).dmabuf ? 801 : -EOPNOTSUPP));
	CHECK(info.address == address_of(region));
	end(region);
}

TEST(pageable_memory_comes_last)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_cuda_info info;

	stub_set_dmabuf(false);
	stub_set_attribute(-1, 88, 1);
	stub_fail("cuMemHostRegister", 0, 801);
	info = imported(region);
	CHECK(info.path == TSHARE_CUDA_PAGEABLE && info.address == address_of(region));
	CHECK(info.results[TSHARE_CUDA_REGISTERED] == 801);
	end(region);
}

TEST(a_path_that_is_demanded_is_the_only_one_tried)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_cuda_info info = imported_by(region, TSHARE_CUDA_REGISTERED);

	CHECK(!info.results[TSHARE_CUDA_DMABUF] && !stub_calls("cuImportExternalMemory"));
	CHECK(fails(region, TSHARE_CUDA_PAGEABLE, -EOPNOTSUPP,
		    "region: CUDA device 0 can't reach it: pageable: the device can't read"));
	CHECK(!strstr(tshare_error_get(), "registered: "));
	stub_set_attribute(-1, 88, 1);
	imported_by(region, TSHARE_CUDA_PAGEABLE);
	end(region);
}

TEST(shared_memory_has_no_dmabuf_to_import)
{
	struct tshare_region *region = region_of(SIZE);

	if (limits_of(ctx).dmabuf)
		SKIP("the module has dma-bufs");
	CHECK(fails(region, TSHARE_CUDA_DMABUF, -EOPNOTSUPP, "dma-buf: shared memory has none"));
	end(region);
}

TEST(a_device_with_addresses_of_its_own_is_asked_for_them)
{
	struct tshare_region *region = region_of(SIZE);

	stub_set_attribute(-1, 91, 0);
	CHECK(imported_by(region, TSHARE_CUDA_REGISTERED).address != address_of(region));
	end(region);
}

/* On the module: the stub maps the dma-buf itself. */
TEST(an_imported_dmabuf_is_the_same_memory)
{
	struct tshare_region *region = region_of(SIZE);
	char *data = tshare_region_get_data(region), *seen;

	need_dmabufs();
	seen = (char *)(uintptr_t)imported_by(region, TSHARE_CUDA_DMABUF).address;
	CHECK(seen != data);
	seen[SIZE - 1] = 77;
	CHECK(data[SIZE - 1] == 77);
	end(region);
}

TEST(a_dmabuf_that_can_not_be_mapped_is_dropped)
{
	struct tshare_region *region = region_of(SIZE);

	need_dmabufs();
	stub_fail("cuExternalMemoryGetMappedBuffer", 1, 2);
	CHECK(imported(region).results[TSHARE_CUDA_DMABUF] == 2);
	CHECK(stub_calls("cuDestroyExternalMemory") == 1);
	end(region);
}

TEST(numbers_that_no_path_has_yet_have_result_0)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_cuda_info info;
	uint32_t path;

	memset(&info, 0xff, sizeof(info));
	info.size = sizeof(info);
	CHECK(!tshare_cuda_import(region, NULL, &info));
	for (path = TSHARE_CUDA_PATHS; path < TSHARE_CUDA_PATH_LIMIT; path++)
		CHECK(!info.results[path]);
	end(region);
}

/* Lifetime */

TEST(a_second_import_only_looks_the_first_up)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_cuda_info first = imported(region), second;
	unsigned int before = stub_calls("cuMemHostRegister") +
			      stub_calls("cuImportExternalMemory") +
			      stub_calls("cuDevicePrimaryCtxRetain");

	second = imported(region);
	CHECK(second.address == first.address && second.path == first.path);
	CHECK(!memcmp(second.results, first.results, sizeof(first.results)));
	CHECK(before == stub_calls("cuMemHostRegister") + stub_calls("cuImportExternalMemory") +
				stub_calls("cuDevicePrimaryCtxRetain"));
	CHECK(first.context_created && !second.context_created);
	end(region);
}

TEST(without_a_region_the_device_is_reported_alone)
{
	struct tshare_cuda_info info = { .size = sizeof(info) };
	const struct tshare_cuda_options one = on_device(1), two = on_device(2);

	stub_set_devices(2);
	CHECK(!tshare_cuda_import(NULL, &one, &info));
	CHECK(info.device == 1 && info.driver_version == 13000);
	CHECK(!info.address && info.path == TSHARE_CUDA_ANY && !info.context_created);
	CHECK(tshare_cuda_import(NULL, &two, &info) == -EINVAL);
	CHECK(error_says("options.device: there is no device 2 of 2"));
	CHECK(nothing_is_left());
}

TEST(an_import_keeps_the_primary_context)
{
	struct tshare_region *region = region_of(SIZE);
	CUcontext current;

	imported(region);
	CHECK(stub_references(0) == 1);
	CHECK(!cuCtxGetCurrent(&current) && !current);
	end(region);
}

TEST(an_import_uses_the_callers_context)
{
	struct tshare_region *region = region_of(SIZE);
	CUcontext context, current;

	CHECK(!cuInit(0) && !cuCtxCreate_v2(&context, 0, 0));
	CHECK(!imported(region).context_created);
	CHECK(!stub_calls("cuDevicePrimaryCtxRetain"));
	CHECK(!cuCtxGetCurrent(&current) && current == context);
	tshare_region_unref(region);
	CHECK(!cuCtxDestroy_v2(context));
	CHECK(nothing_is_left());
}

/* The primary context goes with the call: the registration has the pin's. */
TEST(an_import_of_pinned_memory_creates_no_context)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin;
	CUcontext context;

	CHECK(!cuInit(0) && !cuCtxCreate_v2(&context, 0, 0));
	CHECK(!tshare_region_pin(region, NULL, &pin));
	CHECK(!cuCtxPopCurrent_v2(&context));
	CHECK(!imported(region).context_created && !stub_references(0));
	tshare_pin_unref(pin);
	tshare_region_unref(region);
	CHECK(!cuCtxDestroy_v2(context));
	CHECK(nothing_is_left());
}

TEST(unpinning_leaves_an_import_its_registration)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin;

	CHECK(!tshare_region_pin(region, NULL, &pin));
	CHECK(imported(region).path == TSHARE_CUDA_REGISTERED);
	tshare_pin_unref(pin);
	CHECK(stub_registrations() == 1);
	CHECK(imported(region).path == TSHARE_CUDA_REGISTERED);
	end(region);
}

TEST(a_pin_and_an_import_share_the_registration)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin;

	imported_by(region, TSHARE_CUDA_REGISTERED);
	CHECK(!tshare_region_pin(region, NULL, &pin));
	CHECK(stub_calls("cuMemHostRegister") == 1);
	tshare_pin_unref(pin);
	end(region);
}

TEST(each_device_imports_for_itself)
{
	const struct tshare_cuda_options second = on_device(1);
	struct tshare_cuda_info info = { .size = sizeof(info) };
	struct tshare_region *region = region_of(SIZE);

	stub_set_devices(2);
	CHECK(imported(region).device == 0);
	CHECK(!tshare_cuda_import(region, &second, &info));
	CHECK(info.device == 1);
	CHECK(stub_registrations() <= 1);
	end(region);
}

TEST(after_a_reset_of_the_device_a_region_is_imported_anew)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_cuda_info info;

	info = imported(region);
	CHECK(!cuDevicePrimaryCtxReset_v2(0));
	CHECK(imported(region).path == info.path);
	CHECK(stub_references(0) == 1);
	imported_by(region, TSHARE_CUDA_REGISTERED);
	CHECK(!cuDevicePrimaryCtxReset_v2(0));
	imported_by(region, TSHARE_CUDA_REGISTERED);
	CHECK(stub_registrations() == 1);
	end(region);
}

TEST(a_reset_leaves_nothing_to_undo)
{
	struct tshare_region *region = region_of(SIZE);

	imported(region);
	CHECK(!cuDevicePrimaryCtxReset_v2(0));
	end(region);
}

/* Another region takes the device addresses that the first registration had. */
TEST(an_import_that_a_reset_has_ended_is_not_that_of_a_later_pin)
{
	struct tshare_region *region = region_of(SIZE), *other = region_of(SIZE);
	struct tshare_pin *pin, *others;
	uint64_t address;

	stub_set_attribute(-1, 91, 0);
	address = imported_by(region, TSHARE_CUDA_REGISTERED).address;
	CHECK(!cuDevicePrimaryCtxReset_v2(0));
	CHECK(!tshare_region_pin(other, NULL, &others) && !tshare_region_pin(region, NULL, &pin));
	CHECK(imported_by(region, TSHARE_CUDA_REGISTERED).address != address);
	tshare_pin_unref(pin);
	tshare_pin_unref(others);
	tshare_region_unref(other);
	end(region);
}

TEST(an_import_that_a_reset_has_ended_keeps_no_later_registration)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin;

	imported_by(region, TSHARE_CUDA_REGISTERED);
	CHECK(!cuDevicePrimaryCtxReset_v2(0));
	CHECK(!tshare_region_pin(region, NULL, &pin));
	tshare_pin_unref(pin);
	CHECK(!stub_registrations());
	end(region);
}

TEST(an_import_after_a_reset_creates_the_primary_context)
{
	struct tshare_region *region = region_of(SIZE);

	CHECK(imported_by(region, TSHARE_CUDA_REGISTERED).context_created);
	CHECK(!cuDevicePrimaryCtxReset_v2(0));
	CHECK(imported_by(region, TSHARE_CUDA_REGISTERED).context_created);
	end(region);
}

static int use_in_child(void *data)
{
	struct tshare_region *region = data;
	struct tshare_cuda_info info;
	unsigned int before = stub_calls(NULL);

	alarm(HANG_SECONDS);
	if (import_by(region, TSHARE_CUDA_ANY, &info) != -EOPNOTSUPP || !error_says("forked"))
		return 1;
	tshare_region_unref(region);
	return stub_calls(NULL) == before ? 0 : 2;
}

TEST(a_child_leaves_the_parents_imports_alone)
{
	struct tshare_region *region = region_of(SIZE);

	imported(region);
	CHECK(!in_child(use_in_child, region));
	imported(region);
	end(region);
}

/* Read-only regions */

TEST(a_read_only_region_is_registered_read_only)
{
	struct tshare_region *region = readonly_region_of(SIZE);
	struct tshare_cuda_info info = imported(region);

	CHECK(info.path == TSHARE_CUDA_REGISTERED && info.readonly);
	CHECK(stub_flags(tshare_region_get_data(region)) & READ_ONLY);
	CHECK(info.results[TSHARE_CUDA_DMABUF] == (limits_of(ctx).dmabuf ? -EACCES : -EOPNOTSUPP));
	CHECK(!stub_calls("cuImportExternalMemory"));
	end(region);
}

TEST(a_read_only_region_is_pageable_where_the_device_could_write_to_registered_memory)
{
	struct tshare_region *region = readonly_region_of(SIZE);
	struct tshare_cuda_info info;

	stub_set_attribute(-1, 113, 0);
	stub_set_attribute(-1, 88, 1);
	info = imported(region);
	CHECK(info.path == TSHARE_CUDA_PAGEABLE && info.readonly);
	CHECK(info.results[TSHARE_CUDA_REGISTERED] == -EOPNOTSUPP);
	CHECK(!stub_calls("cuMemHostRegister"));
	end(region);
}

TEST(a_read_only_region_is_eopnotsupp_where_nothing_protects_it)
{
	struct tshare_region *region = readonly_region_of(SIZE);

	stub_set_attribute(-1, 113, 0);
	CHECK(fails(region, TSHARE_CUDA_ANY, -EOPNOTSUPP,
		    "region: CUDA device 0 can't reach it: dma-buf: "));
	CHECK(error_says("; registered: the device can't register read-only memory"));
	CHECK(error_says("; pageable: the device can't read pageable memory"));
	end(region);
}

/* A device that lacks it has no share in another's read-only registration. */
TEST(a_read_only_region_needs_each_devices_protection)
{
	const struct tshare_cuda_options second = on_device(1);
	struct tshare_cuda_info info = { .size = sizeof(info) };
	struct tshare_region *region = readonly_region_of(SIZE);

	stub_set_devices(2);
	stub_set_attribute(1, 113, 0);
	imported(region);
	CHECK(tshare_cuda_import(region, &second, &info) == -EOPNOTSUPP);
	end(region);
}

/* Failures */

TEST(memory_that_another_has_registered_is_ebusy)
{
	struct tshare_region *region = region_of(SIZE);
	CUcontext context;

	CHECK(!cuInit(0) && !cuCtxCreate_v2(&context, 0, 0));
	CHECK(!cuMemHostRegister_v2(tshare_region_get_data(region), 4096, 0));
	CHECK(fails(region, TSHARE_CUDA_REGISTERED, -EBUSY, "ALREADY_REGISTERED"));
	CHECK(!cuMemHostUnregister(tshare_region_get_data(region)));
	CHECK(!cuCtxDestroy_v2(context));
	end(region);
}

TEST(a_failure_leaves_nothing)
{
	struct tshare_region *region = region_of(SIZE);

	stub_set_dmabuf(false);
	stub_fail("cuDevicePrimaryCtxRetain", 1, 2);
	CHECK(fails(region, TSHARE_CUDA_ANY, -ENOMEM, "CUDA_ERROR_OUT_OF_MEMORY"));
	stub_fail("cuMemHostRegister", 1, 2);
	CHECK(fails(region, TSHARE_CUDA_ANY, -ENOMEM, "registered: CUDA_ERROR_OUT_OF_MEMORY"));
	stub_fail("cuMemHostGetDevicePointer", 1, 304);
	CHECK(fails(region, TSHARE_CUDA_ANY, -EIO, "registered: CUDA_ERROR_OPERATING_SYSTEM"));
	CHECK(!stub_registrations());
	CHECK(nothing_is_left());
	imported(region);
	end(region);
}

/* Fails each call to the driver in turn, in an import and its end. */
static bool each_failure_leaves_nothing(uint32_t path)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_cuda_info info;
	unsigned int calls, nth;
	bool held = true;
	int err;

	calls = stub_calls(NULL);
	imported_by(region, path);
	tshare_region_unref(region);
	calls = stub_calls(NULL) - calls;
	for (nth = 1; held && nth <= calls; nth++) {
		region = region_of(SIZE);
		stub_fail(NULL, nth, 999);
		err = import_by(region, path, &info);
		held = !err || error_says("CUDA_ERROR_UNKNOWN");
		tshare_region_unref(region);
		stub_fail(NULL, UINT_MAX, 999); /* no call any more */
		held &= nothing_is_left();
		if (!held)
			printf("# call %u of %u: %d\n", nth, calls, err);
	}
	return held;
}

TEST(a_failure_of_any_call_leaves_nothing)
{
	CHECK(each_failure_leaves_nothing(TSHARE_CUDA_ANY));
	CHECK(each_failure_leaves_nothing(TSHARE_CUDA_REGISTERED));
	if (limits_of(ctx).dmabuf)
		CHECK(each_failure_leaves_nothing(TSHARE_CUDA_DMABUF));
}

TEST(import_refuses_what_is_malformed)
{
	struct tshare_region *region = region_of(SIZE);
	const struct tshare_cuda_options minus = on_device(-1);
	struct tshare_cuda_info info = { 0 };

	CHECK(tshare_cuda_import(region, NULL, &info) == -EINVAL);
	CHECK(error_says("info.size: "));
	CHECK(import_by(region, TSHARE_CUDA_PATHS, &info) == -EINVAL);
	CHECK(error_says("options.path: 4 is unknown"));
	info.size = sizeof(info);
	CHECK(tshare_cuda_import(region, &minus, &info) == -EINVAL);
	CHECK(error_says("options.device: there is no device -1 of 1"));
	end(region);
}

int main(void)
{
	return tap_main(start, close_context);
}
