// SPDX-License-Identifier: MIT
/* A region's generation as a kernel sees it, on a stub of CUDA's driver. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#include "../partner.h"
#include "other.h"

#define SIZE (1 << 20)

static struct tshare_cuda_info imported(struct tshare_region *region,
					const struct tshare_cuda_options *options)
{
	struct tshare_cuda_info info = { .size = sizeof(info) };

	CHECK(!tshare_cuda_import_counter(region, options, &info));
	CHECK(info.path == TSHARE_CUDA_REGISTERED && !info.readonly);
	CHECK(info.address % sizeof(uint64_t) == 0);
	return info;
}

/* On the stub a device's address is the process's own. */
static uint64_t *counter_of(struct tshare_region *region)
{
	return (uint64_t *)(uintptr_t)imported(region, NULL).address;
}

TEST(a_kernel_reads_the_generation)
{
	struct tshare_region *region = region_of(SIZE), *other = another(region, 0);
	uint64_t *counter = counter_of(region);

	CHECK(!__atomic_load_n(counter, __ATOMIC_ACQUIRE));
	publish(other);
	CHECK(__atomic_load_n(counter, __ATOMIC_ACQUIRE) == 1);
	tshare_region_unref(other);
	end(region);
}

/* Nothing wakes the one that waits, which looks for itself while another is a publisher. */
TEST(a_kernel_publishes_by_a_store)
{
	struct tshare_region *region = region_of(SIZE), *other = another(region, TSHARE_READONLY);
	uint64_t *counter = counter_of(region);
	struct tshare_region *waiter = another(region, TSHARE_READONLY);

	publish(region);
	CHECK(!wait_beyond(other, 0, LONG, 1));
	__atomic_store_n(counter, 2, __ATOMIC_RELEASE);
	CHECK(!wait_beyond(waiter, 1, LONG, 2));
	CHECK(generation_of(region) == 2);
	tshare_region_unref(waiter);
	tshare_region_unref(other);
	end(region);
}

TEST(a_counter_is_registered_once)
{
	struct tshare_region *region = region_of(SIZE);
	uint64_t address = imported(region, NULL).address;

	CHECK(imported(region, NULL).address == address);
	CHECK(stub_calls("cuMemHostRegister") == 1);
	CHECK(stub_flags((void *)(uintptr_t)address) == (PORTABLE | DEVICE_MAP));
	end(region);
}

TEST(each_device_has_its_address_of_a_counter)
{
	const struct tshare_cuda_options options = on_device(1);
	struct tshare_region *region = region_of(SIZE);
	struct tshare_cuda_info first, second;

	stub_set_devices(2);
	first = imported(region, NULL);
	CHECK(first.device == 0 && first.context_created && first.driver_version == 13000);
	stub_set_attribute(-1, 91, 0);
	second = imported(region, &options);
	CHECK(second.device == 1 && !imported(region, &options).context_created);
	CHECK(second.address != first.address);
	CHECK(second.address % 4096 == first.address % 4096);
	CHECK(stub_calls("cuMemHostRegister") == 1);
	end(region);
}

TEST(a_counter_and_the_memory_are_registered_each)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin;

	imported(region, NULL);
	CHECK(!tshare_region_pin(region, NULL, &pin));
	CHECK(stub_registrations() == 2);
	tshare_pin_unref(pin);
	CHECK(stub_registrations() == 1);
	end(region);
}

TEST(after_a_reset_a_counter_is_imported_anew)
{
	struct tshare_region *region = region_of(SIZE);

	imported(region, NULL);
	CHECK(!cuDevicePrimaryCtxReset_v2(0));
	CHECK(imported(region, NULL).context_created);
	CHECK(stub_registrations() == 1);
	CHECK(!cuDevicePrimaryCtxReset_v2(0));
	end(region);
}

TEST(a_counter_keeps_the_primary_context)
{
	struct tshare_region *region = region_of(SIZE);

	imported(region, NULL);
	CHECK(stub_references(0) == 1);
	end(region);
}

static bool refuses(struct tshare_region *region, const struct tshare_cuda_options *options,
		    int err, const char *text)
{
	struct tshare_cuda_info info = { .size = sizeof(info) };

	return tshare_cuda_import_counter(region, options, &info) == err && error_says(text);
}

TEST(a_readonly_region_has_no_counter_for_kernels)
{
	struct tshare_region *region = readonly_region_of(SIZE);

	CHECK(refuses(region, NULL, -EACCES, "region: is read-only"));
	end(region);
}

TEST(malformed_arguments_are_refused)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_cuda_options options = on_device(1);
	struct tshare_cuda_info info = { .size = 8 };

	CHECK(tshare_cuda_import_counter(region, NULL, &info) == -EINVAL &&
	      error_says("info.size"));
	CHECK(refuses(region, &options, -EINVAL, "options.device: there is no device 1"));
	options = on_device(0);
	options.path = TSHARE_CUDA_REGISTERED;
	CHECK(refuses(region, &options, -EINVAL, "options.path: "));
	end(region);
}

TEST(a_failure_of_any_call_leaves_nothing)
{
	struct tshare_region *region;
	unsigned int nth, failed = 0;
	struct tshare_cuda_info info;

	for (nth = 1; nth < 40; nth++) {
		region = region_of(SIZE);
		info = (struct tshare_cuda_info){ .size = sizeof(info) };
		stub_fail(NULL, nth, 999);
		if (tshare_cuda_import_counter(region, NULL, &info)) {
			CHECK(!stub_registrations() && !stub_references(0));
			failed++;
		}
		stub_fail(NULL, UINT32_MAX, 0);
		end(region);
	}
	CHECK(failed >= 4);
}

static int use_in_child(void *data)
{
	struct tshare_region *region = data;
	unsigned int before = stub_calls(NULL);

	alarm(HANG_SECONDS);
	if (!refuses(region, NULL, -EOPNOTSUPP, "forked"))
		return 1;
	tshare_region_unref(region);
	return stub_calls(NULL) == before ? 0 : 2;
}

TEST(a_child_leaves_the_counter_of_its_parent_alone)
{
	struct tshare_region *region = region_of(SIZE);

	imported(region, NULL);
	CHECK(!in_child(use_in_child, region));
	CHECK(stub_registrations() == 1);
	end(region);
}

int main(void)
{
	return tap_main(start, close_context);
}
