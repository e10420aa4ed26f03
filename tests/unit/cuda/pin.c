// SPDX-License-Identifier: MIT
/* Pins, on a stub of CUDA's driver. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "other.h"

#define SIZE (1 << 20)

static struct tshare_pin *pinned(struct tshare_region *region)
{
	struct tshare_pin *pin;

	CHECK(!tshare_region_pin(region, NULL, &pin));
	return pin;
}

static struct tshare_pin_info info_of(const struct tshare_pin *pin)
{
	struct tshare_pin_info info = { .size = sizeof(info) };

	CHECK(!tshare_pin_get_info(pin, &info));
	return info;
}

static bool is_registered(const struct tshare_region *region)
{
	return stub_is_registered(tshare_region_get_data(region), tshare_region_get_size(region));
}

static CUcontext current(void)
{
	CUcontext context;

	CHECK(!cuCtxGetCurrent(&context));
	return context;
}

static CUcontext own_context(int device)
{
	CUcontext context;

	CHECK(!cuInit(0));
	CHECK(!cuCtxCreate_v2(&context, 0, device));
	return context;
}

/* Registration */

TEST(a_pin_registers_the_region_where_it_lies)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin = pinned(region);

	CHECK(is_registered(region));
	CHECK(stub_flags(tshare_region_get_data(region)) == (PORTABLE | DEVICE_MAP));
	tshare_pin_unref(pin);
	end(region);
}

TEST(a_region_is_registered_once_however_many_pins_it_has)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *one = pinned(region), *two = pinned(region);

	CHECK(stub_calls("cuMemHostRegister") == 1);
	tshare_pin_unref(one);
	CHECK(is_registered(region));
	tshare_pin_unref(two);
	CHECK(!stub_registrations());
	tshare_pin_unref(pinned(region));
	end(region);
}

TEST(a_pin_lasts_until_its_last_unref)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin = pinned(region);

	CHECK(tshare_pin_ref(pin) == pin);
	CHECK(!tshare_pin_unref(pin));
	CHECK(is_registered(region));
	CHECK(!tshare_pin_unref(pin));
	CHECK(!tshare_pin_unref(NULL));
	CHECK(!stub_registrations());
	end(region);
}

TEST(a_region_is_pinned_until_its_last_pin_is_dropped)
{
	struct tshare_region *region = region_of(SIZE), *other = region_of(SIZE);
	struct tshare_pin *one, *two;

	CHECK(!tshare_region_is_pinned(region));
	one = pinned(region);
	two = pinned(region);
	tshare_pin_unref(one);
	CHECK(tshare_region_is_pinned(region));
	CHECK(!tshare_region_is_pinned(other));
	tshare_pin_unref(two);
	CHECK(!tshare_region_is_pinned(region));
	tshare_region_unref(other);
	end(region);
}

TEST(a_pin_holds_its_region)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin = pinned(region);

	tshare_region_unref(region);
	CHECK(tshare_pin_get_region(pin) == region);
	memset(tshare_region_get_data(region), 1, SIZE);
	tshare_pin_unref(pin);
	CHECK(nothing_is_left());
}

TEST(a_pin_reports_device_driver_and_piece)
{
	struct tshare_region *region = region_of(SIZE);
	const struct tshare_cuda_options options = on_device(1);
	struct tshare_pin_info info;
	struct tshare_pin *pin;

	stub_set_devices(2);
	CHECK(!tshare_region_pin(region, &options, &pin));
	info = info_of(pin);
	CHECK(info.device == 1 && info.driver_version == 13000);
	CHECK(info.piece_bytes == tshare_region_get_size(region) && !info.readonly);
	tshare_pin_unref(pin);
	end(region);
}

TEST(all_pages_are_populated_before_they_are_registered)
{
	struct tshare_region *writable = region_of(SIZE), *readonly = readonly_region_of(SIZE);
	struct tshare_pin *one = pinned(writable), *two = pinned(readonly);

	CHECK(!stub_unpopulated());
	tshare_pin_unref(one);
	tshare_pin_unref(two);
	tshare_region_unref(writable);
	tshare_region_unref(readonly);
	CHECK(nothing_is_left());
}

static void change_errno(void *data)
{
	(void)data;
	errno = ENOTTY;
}

TEST(unref_of_a_pin_keeps_errno)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin = pinned(region);

	stub_set_hook("cuMemHostUnregister", change_errno, NULL);
	errno = EXDEV;
	tshare_pin_unref(pin);
	CHECK(errno == EXDEV);
	tshare_region_unref(region);
}

/* Read-only regions */

TEST(a_read_only_region_is_registered_read_only)
{
	struct tshare_region *region = readonly_region_of(SIZE);
	struct tshare_pin *pin = pinned(region);

	CHECK(stub_flags(tshare_region_get_data(region)) == (PORTABLE | DEVICE_MAP | READ_ONLY));
	CHECK(info_of(pin).readonly);
	tshare_pin_unref(pin);
	end(region);
}

TEST(a_read_only_region_is_eopnotsupp_where_the_device_could_write)
{
	struct tshare_region *region = readonly_region_of(SIZE);
	struct tshare_pin *pin;

	stub_set_attribute(-1, 113, 0);
	CHECK(tshare_region_pin(region, NULL, &pin) == -EOPNOTSUPP);
	CHECK(error_says("region: is read-only"));
	CHECK(!stub_calls("cuMemHostRegister"));
	end(region);
}

/* Contexts */

TEST(the_callers_context_is_used)
{
	struct tshare_region *region = region_of(SIZE);
	CUcontext context = own_context(0);
	struct tshare_pin *pin = pinned(region);

	CHECK(current() == context);
	CHECK(!info_of(pin).context_created);
	tshare_pin_unref(pin);
	CHECK(current() == context);
	CHECK(!stub_calls("cuDevicePrimaryCtxRetain"));
	CHECK(!cuCtxDestroy_v2(context));
	end(region);
}

TEST(without_a_context_the_primary_one_is_retained_while_it_is_needed)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *one = pinned(region), *two = pinned(region);

	CHECK(!current());
	CHECK(stub_references(0) == 1);
	CHECK(info_of(one).context_created && !info_of(two).context_created);
	tshare_pin_unref(one);
	tshare_pin_unref(two);
	CHECK(!current() && !stub_references(0));
	end(region);
}

TEST(a_primary_context_that_is_there_is_not_reported_as_created)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin;
	CUcontext primary;

	CHECK(!cuInit(0) && !cuDevicePrimaryCtxRetain(&primary, 0));
	pin = pinned(region);
	CHECK(!info_of(pin).context_created);
	tshare_pin_unref(pin);
	CHECK(!cuDevicePrimaryCtxRelease_v2(0));
	end(region);
}

TEST(a_registration_outlives_the_callers_reference_to_the_primary_context)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin;
	CUcontext primary;

	CHECK(!cuInit(0) && !cuDevicePrimaryCtxRetain(&primary, 0) &&
	      !cuCtxPushCurrent_v2(primary));
	pin = pinned(region);
	CHECK(current() == primary);
	CHECK(!cuCtxPopCurrent_v2(&primary) && !cuDevicePrimaryCtxRelease_v2(0));
	CHECK(is_registered(region));
	tshare_pin_unref(pin);
	end(region);
}

TEST(a_primary_context_that_is_not_current_is_not_kept)
{
	struct tshare_region *region = region_of(SIZE);
	CUcontext context = own_context(0), primary;
	struct tshare_pin *pin;

	CHECK(!cuDevicePrimaryCtxRetain(&primary, 0));
	pin = pinned(region);
	CHECK(current() == context && stub_references(0) == 1);
	tshare_pin_unref(pin);
	CHECK(stub_references(0) == 1);
	CHECK(!cuDevicePrimaryCtxRelease_v2(0) && !cuCtxDestroy_v2(context));
	end(region);
}

TEST(the_device_is_that_of_the_current_context)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin;
	CUcontext context;

	stub_set_devices(2);
	context = own_context(1);
	pin = pinned(region);
	CHECK(info_of(pin).device == 1);
	tshare_pin_unref(pin);
	CHECK(!cuCtxDestroy_v2(context));
	end(region);
}

TEST(another_device_has_its_own_context_and_the_callers_stays_current)
{
	const struct tshare_cuda_options options = on_device(1);
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin;
	CUcontext context;

	stub_set_devices(2);
	context = own_context(0);
	CHECK(!tshare_region_pin(region, &options, &pin));
	CHECK(current() == context && stub_references(1) == 1);
	tshare_pin_unref(pin);
	CHECK(current() == context && !stub_references(1));
	CHECK(!cuCtxDestroy_v2(context));
	end(region);
}

TEST(a_pin_can_be_dropped_where_no_context_is_current)
{
	struct tshare_region *region = region_of(SIZE);
	CUcontext context = own_context(0);
	struct tshare_pin *pin = pinned(region);

	CHECK(!cuCtxPopCurrent_v2(&context));
	tshare_pin_unref(pin);
	CHECK(!stub_registrations());
	CHECK(!cuCtxDestroy_v2(context));
	end(region);
}

TEST(a_context_that_is_destroyed_takes_its_registration_along)
{
	struct tshare_region *region = region_of(SIZE);
	CUcontext context = own_context(0);
	struct tshare_pin *pin = pinned(region);

	CHECK(!cuCtxDestroy_v2(context));
	tshare_pin_unref(pin);
	end(region);
}

/* As cudaDeviceReset() does it. */
TEST(a_pin_after_a_reset_of_the_device_registers_anew)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *one = pinned(region), *two;

	CHECK(!cuDevicePrimaryCtxReset_v2(0));
	CHECK(!is_registered(region));
	two = pinned(region);
	CHECK(is_registered(region));
	tshare_pin_unref(one);
	CHECK(is_registered(region));
	tshare_pin_unref(two);
	end(region);
}

TEST(a_reset_is_noticed_without_ids_of_memory)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *one, *two;

	stub_set_ids(false);
	one = pinned(region);
	two = pinned(region);
	CHECK(stub_calls("cuMemHostRegister") == 1);
	tshare_pin_unref(two);
	CHECK(!cuDevicePrimaryCtxReset_v2(0));
	two = pinned(region);
	CHECK(is_registered(region));
	tshare_pin_unref(one);
	tshare_pin_unref(two);
	end(region);
}

TEST(a_reset_leaves_others_their_reference_to_the_primary_context)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin = pinned(region);
	CUcontext primary;

	CHECK(!cuDevicePrimaryCtxReset_v2(0) && !cuDevicePrimaryCtxRetain(&primary, 0));
	tshare_pin_unref(pin);
	CHECK(stub_references(0) == 1);
	CHECK(!cuDevicePrimaryCtxRelease_v2(0));
	end(region);
}

TEST(a_reset_leaves_others_their_registration)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin = pinned(region);
	void *data = tshare_region_get_data(region);
	CUcontext context;

	CHECK(!cuDevicePrimaryCtxReset_v2(0));
	CHECK(!cuCtxCreate_v2(&context, 0, 0) && !cuMemHostRegister_v2(data, SIZE, 0));
	tshare_pin_unref(pin);
	CHECK(is_registered(region));
	CHECK(!cuMemHostUnregister(data) && !cuCtxDestroy_v2(context));
	end(region);
}

/* A stale context is current in the thread after the reset. */
TEST(a_current_context_that_is_gone_is_no_obstacle)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin;
	CUcontext primary;

	CHECK(!cuInit(0) && !cuDevicePrimaryCtxRetain(&primary, 0) &&
	      !cuCtxPushCurrent_v2(primary));
	CHECK(!cuDevicePrimaryCtxReset_v2(0));
	pin = pinned(region);
	CHECK(info_of(pin).context_created);
	tshare_pin_unref(pin);
	CHECK(!cuCtxPopCurrent_v2(&primary));
	end(region);
}

/* At exit the driver's destructor may run before a program's last unref. */
TEST(a_driver_that_has_ended_is_left_alone)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin = pinned(region);

	stub_fail("cuPointerGetAttribute", 0, 4);
	tshare_pin_unref(pin);
	tshare_region_unref(region);
	CHECK(!stub_calls("cuMemHostUnregister") && !stub_calls("cuDevicePrimaryCtxRelease"));
}

/* Failures */

static bool fails(struct tshare_region *region, int err, const char *text)
{
	struct tshare_pin *pin;

	return tshare_region_pin(region, NULL, &pin) == err && error_says(text);
}

/* By bit 63 of its entry. */
static bool is_populated(const void *page)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;
	off_t at = (uintptr_t)page / sysconf(_SC_PAGESIZE) * sizeof(entry);

	CHECK(fd >= 0 && pread(fd, &entry, sizeof(entry), at) == sizeof(entry));
	close(fd);
	return entry >> 63;
}

TEST(a_device_without_a_context_leaves_the_memory_unpopulated)
{
	struct tshare_region *region = region_of(SIZE);
	const char *data = tshare_region_get_data(region);

	stub_fail("cuDevicePrimaryCtxRetain", 1, 2);
	CHECK(fails(region, -ENOMEM, "region: "));
	CHECK(!is_populated(data + SIZE - 4096));
	tshare_pin_unref(pinned(region));
	CHECK(is_populated(data + SIZE - 4096));
	tshare_region_unref(region);
	CHECK(nothing_is_left());
}

TEST(memory_that_another_has_registered_is_ebusy)
{
	struct tshare_region *region = region_of(SIZE);
	char *data = tshare_region_get_data(region);
	CUcontext context = own_context(0);

	CHECK(!cuMemHostRegister_v2(data, tshare_region_get_size(region), 0));
	CHECK(fails(region, -EBUSY, "region: "));
	CHECK(!cuMemHostUnregister(data));
	CHECK(!cuMemHostRegister_v2(data + 8192, 4096, 0));
	CHECK(fails(region, -EBUSY, "region: "));
	CHECK(!cuMemHostUnregister(data + 8192));
	tshare_pin_unref(pinned(region));
	CHECK(!cuCtxDestroy_v2(context));
	end(region);
}

TEST(a_failure_leaves_nothing)
{
	struct tshare_region *region = region_of(SIZE);

	stub_fail("cuDevicePrimaryCtxRetain", 1, 2);
	CHECK(fails(region, -ENOMEM, "region: CUDA is out of memory, for the "));
	stub_fail("cuCtxPushCurrent", 1, 304);
	CHECK(fails(region, -EIO, "CUDA_ERROR_OPERATING_SYSTEM"));
	stub_fail("cuMemHostRegister", 1, 2);
	CHECK(fails(region, -ENOMEM, "region: CUDA is out of memory, for the "));
	stub_fail("cuMemHostRegister", 1, 1);
	CHECK(fails(region, -EIO, "CUDA_ERROR_INVALID_VALUE"));
	stub_fail("cuMemHostRegister", 1, 801);
	CHECK(fails(region, -EOPNOTSUPP, "CUDA_ERROR_NOT_SUPPORTED"));
	stub_fail("cuMemHostRegister", 1, 12345);
	CHECK(fails(region, -EIO, "12345"));
	CHECK(nothing_is_left());
	tshare_pin_unref(pinned(region));
	end(region);
}

/* Fails each call to the driver in turn, in pin() and unref(). */
static bool each_failure_leaves_nothing(void)
{
	struct tshare_region *region = region_of(SIZE);
	CUcontext before = current();
	unsigned int calls, references = stub_references(0), nth;
	struct tshare_pin *pin;
	bool held = true;
	int err;

	calls = stub_calls(NULL);
	tshare_pin_unref(pinned(region));
	calls = stub_calls(NULL) - calls;
	for (nth = 1; held && nth <= calls; nth++) {
		stub_fail(NULL, nth, 999);
		err = tshare_region_pin(region, NULL, &pin);
		held = !err || (err == -EIO && error_says("CUDA_ERROR_UNKNOWN"));
		if (!err)
			tshare_pin_unref(pin);
		stub_fail(NULL, UINT_MAX, 999); /* no call any more */
		held &= !stub_registrations() && stub_references(0) == references &&
			current() == before;
		if (!held)
			printf("# call %u of %u: %d\n", nth, calls, err);
	}
	tshare_region_unref(region);
	return held && !stub_complaint();
}

TEST(a_failure_of_any_call_leaves_nothing)
{
	CUcontext context;

	CHECK(!cuInit(0));
	CHECK(each_failure_leaves_nothing());
	CHECK(!cuDevicePrimaryCtxRetain(&context, 0) && !cuCtxPushCurrent_v2(context));
	CHECK(each_failure_leaves_nothing());
	CHECK(!cuCtxPopCurrent_v2(&context) && !cuDevicePrimaryCtxRelease_v2(0));
	context = own_context(0);
	CHECK(each_failure_leaves_nothing());
	CHECK(!cuCtxDestroy_v2(context));
	CHECK(nothing_is_left());
}

static bool refuses(const struct tshare_cuda_options *options, const char *text)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin;
	int err = tshare_region_pin(region, options, &pin);

	tshare_region_unref(region);
	return err == -EINVAL && error_says(text) && nothing_is_left();
}

TEST(pin_refuses_options_that_are_malformed)
{
	struct tshare_cuda_options options = on_device(0);

	options.flags |= 1U << 31;
	CHECK(refuses(&options, "options.flags: "));
	options = on_device(-1);
	CHECK(refuses(&options, "options.device: there is no device -1 of 1"));
	options = on_device(1);
	CHECK(refuses(&options, "options.device: there is no device 1 of 1"));
	options.flags = 0;
	CHECK(refuses(&options, "options.device: 1 is ignored"));
	options = on_device(0);
	options.path = TSHARE_CUDA_REGISTERED;
	CHECK(refuses(&options, "options.path: "));
	options.path = TSHARE_CUDA_PATHS;
	CHECK(refuses(&options, "options.path: 4 is unknown"));
	options = on_device(0);
	options.size = 8;
	CHECK(refuses(&options, "options.size: "));
}

TEST(pin_info_needs_its_size)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin = pinned(region);
	struct tshare_pin_info info = { 0 };

	CHECK(tshare_pin_get_info(pin, &info) == -EINVAL);
	CHECK(error_says("info.size: "));
	tshare_pin_unref(pin);
	tshare_region_unref(region);
}

/* Forks */

/* The child has the parent's pin. */
static int use_in_child(void *data)
{
	struct tshare_pin *pin = data, *another;
	struct tshare_region *region = tshare_region_ref(tshare_pin_get_region(pin));
	unsigned int before = stub_calls(NULL);

	alarm(HANG_SECONDS);
	if (tshare_region_pin(region, NULL, &another) != -EOPNOTSUPP || !error_says("forked"))
		return 1;
	if (tshare_region_is_pinned(region))
		return 3;
	tshare_pin_unref(pin);
	tshare_region_unref(region);
	tshare_region_unref(region);
	return stub_calls(NULL) == before ? 0 : 2;
}

TEST(a_child_leaves_the_parents_registration_alone)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin = pinned(region);

	CHECK(!in_child(use_in_child, pin));
	CHECK(is_registered(region));
	tshare_pin_unref(pin);
	end(region);
}

struct forking {
	struct tshare_region *region;
	int status;
};

static int refuse_in_child(void *data)
{
	struct tshare_pin *pin;

	alarm(HANG_SECONDS);
	return tshare_region_pin(data, NULL, &pin) == -EOPNOTSUPP ? 0 : 1;
}

static void fork_now(void *data)
{
	struct forking *forking = data;

	forking->status = in_child(refuse_in_child, forking->region);
}

TEST(a_child_that_is_forked_during_a_registration_does_not_wait_for_it)
{
	struct forking forking = { .region = region_of(SIZE), .status = -1 };

	stub_set_hook("cuMemHostRegister", fork_now, &forking);
	tshare_pin_unref(pinned(forking.region));
	CHECK(!forking.status);
	tshare_region_unref(forking.region);
	CHECK(nothing_is_left());
}

/* Threads */

struct pinner {
	pthread_t thread;
	struct tshare_region *region;
	pthread_barrier_t *together;
	atomic_bool *stop;
	struct tshare_pin *pin;
	int err;
};

static void *pin_once(void *data)
{
	struct pinner *pinner = data;

	pthread_barrier_wait(pinner->together);
	pinner->err = tshare_region_pin(pinner->region, NULL, &pinner->pin);
	return NULL;
}

TEST(threads_that_pin_a_region_at_once_register_it_once)
{
	struct tshare_region *region = region_of(SIZE);
	struct pinner pinners[8];
	pthread_barrier_t together;
	int i, round, failed = 0;
	unsigned int before;

	CHECK(!pthread_barrier_init(&together, NULL, 8));
	for (round = 0; round < 50; round++) {
		before = stub_calls("cuMemHostRegister");
		for (i = 0; i < 8; i++) {
			pinners[i] = (struct pinner){ .region = region, .together = &together };
			CHECK(!pthread_create(&pinners[i].thread, NULL, pin_once, &pinners[i]));
		}
		for (i = 0; i < 8; i++) {
			pthread_join(pinners[i].thread, NULL);
			failed += pinners[i].err;
		}
		CHECK(!failed);
		CHECK(stub_calls("cuMemHostRegister") == before + 1);
		for (i = 0; i < 8; i++)
			tshare_pin_unref(pinners[i].pin);
	}
	pthread_barrier_destroy(&together);
	end(region);
}

static void meet(void *together)
{
	pthread_barrier_wait(together);
}

/* Each is inside the driver until the other is, too. */
TEST(regions_do_not_wait_for_one_anothers_registration)
{
	struct tshare_region *one = region_of(SIZE), *two = region_of(SIZE);
	pthread_barrier_t at_start, inside;
	struct pinner pinner = { .region = one, .together = &at_start };
	struct tshare_pin *pin;

	CHECK(!pthread_barrier_init(&at_start, NULL, 2));
	CHECK(!pthread_barrier_init(&inside, NULL, 2));
	stub_set_hook("cuMemHostRegister", meet, &inside);
	CHECK(!pthread_create(&pinner.thread, NULL, pin_once, &pinner));
	pthread_barrier_wait(&at_start);
	CHECK(!tshare_region_pin(two, NULL, &pin));
	CHECK(!pthread_join(pinner.thread, NULL) && !pinner.err);
	stub_set_hook("cuMemHostRegister", NULL, NULL);
	tshare_pin_unref(pinner.pin);
	tshare_pin_unref(pin);
	tshare_region_unref(one);
	tshare_region_unref(two);
	pthread_barrier_destroy(&at_start);
	pthread_barrier_destroy(&inside);
	CHECK(nothing_is_left());
}

static void *pin_until_stopped(void *data)
{
	struct pinner *pinner = data;

	while (!pinner->err && !atomic_load(pinner->stop)) {
		pinner->err = tshare_region_pin(pinner->region, NULL, &pinner->pin);
		if (!pinner->err)
			tshare_pin_unref(pinner->pin);
	}
	return NULL;
}

TEST(fork_at_any_moment_leaves_the_child_no_locks)
{
	struct tshare_region *region = region_of(SIZE);
	atomic_bool stop = false;
	struct pinner pinner = { .region = region, .stop = &stop };
	int i, failed = 0;

	tshare_pin_unref(pinned(region));
	CHECK(!pthread_create(&pinner.thread, NULL, pin_until_stopped, &pinner));
	for (i = 0; i < 100; i++)
		failed += !!in_child(refuse_in_child, region);
	atomic_store(&stop, true);
	CHECK(!pthread_join(pinner.thread, NULL) && !pinner.err);
	CHECK(!failed);
	end(region);
}

int main(void)
{
	return tap_main(start, close_context);
}
