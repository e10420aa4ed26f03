// SPDX-License-Identifier: MIT
/* Streams that publish and wait, on a stub of CUDA's driver. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hold.h"

#define SIZE (1 << 20)

/* The context of most tests, with a stream of it; current in the test's thread. */
static CUcontext context;
static struct CUstream_st *stream;

static void open_stream(void)
{
	CHECK(!cuInit(0) && !cuCtxCreate_v2(&context, 0, 0));
	CHECK(!cuStreamCreate(&stream, 0));
}

/* What the library holds of a region goes in a thread of its own. */
static bool nothing_stays(void)
{
	int i;

	for (i = 0; i < 30000 && stub_left(); i++)
		sleep_ns(MS);
	return nothing_is_left();
}

/* The page that streams wait for goes with the context. */
static void close_stream(void)
{
	CHECK(!cuStreamDestroy_v2(stream) && !cuCtxDestroy_v2(context));
	CHECK(nothing_stays());
}

static struct tshare_cuda_wait *wait_on(struct tshare_region *region, uint64_t seen,
					int64_t timeout_ns)
{
	struct tshare_cuda_wait *wait;

	CHECK(!tshare_region_wait_on(region, NULL, stream, seen, timeout_ns, &wait));
	return wait;
}

static int result_of(const struct tshare_cuda_wait *wait)
{
	uint64_t generation;

	return tshare_cuda_wait_get_result(wait, &generation);
}

/* Whether the stream still has work after a time in which it would have ended. */
static bool stream_waits(void)
{
	sleep_ns(100 * MS);
	return cuStreamQuery(stream) == NOT_READY;
}

/* Publishing */

TEST(a_stream_publishes_when_it_comes_to_that)
{
	struct tshare_region *region = region_of(SIZE), *other = another(region, 0);
	struct hold hold;

	open_stream();
	begin_hold(&hold, stream);
	CHECK(!tshare_region_publish_on(region, NULL, stream));
	CHECK(wait_beyond(other, 0, 100 * MS, 0) == -ETIMEDOUT);
	end_hold(&hold);
	CHECK(!wait_beyond(other, 0, LONG, 1));
	CHECK(!cuStreamSynchronize(stream));
	tshare_region_unref(other);
	tshare_region_unref(region);
	close_stream();
}

/* Until the stream has published the object is a publisher, and then its last unref ends that. */
TEST(a_stream_keeps_a_region_until_it_has_published)
{
	struct tshare_region *region = region_of(SIZE), *other = another(region, TSHARE_READONLY);
	struct tshare_region *first = another(region, 0);
	struct hold hold;

	publish(first);
	open_stream();
	begin_hold(&hold, stream);
	CHECK(!tshare_region_publish_on(region, NULL, stream));
	tshare_region_unref(first);
	tshare_region_unref(region);
	CHECK(wait_beyond(other, 1, 300 * MS, 0) == -ETIMEDOUT);
	end_hold(&hold);
	CHECK(!wait_beyond(other, 1, LONG, 2));
	CHECK(wait_beyond(other, 2, LONG, 0) == -EOWNERDEAD);
	tshare_region_unref(other);
	close_stream();
}

TEST(what_a_stream_has_of_a_region_is_undone_outside_of_its_host_function)
{
	const struct tshare_cuda_options options = {
		.size = sizeof(options),
		.path = TSHARE_CUDA_REGISTERED,
	};
	struct tshare_cuda_info info = { .size = sizeof(info) };
	struct tshare_region *region = region_of(SIZE);
	struct tshare_pin *pin;
	struct hold hold;
	int i;

	open_stream();
	CHECK(!tshare_cuda_import(region, &options, &info));
	CHECK(!tshare_region_pin(region, NULL, &pin));
	begin_hold(&hold, stream);
	CHECK(!tshare_region_publish_on(region, NULL, stream));
	tshare_pin_unref(pin);
	tshare_region_unref(region);
	CHECK(stub_registrations() == 1);
	end_hold(&hold);
	CHECK(!cuStreamSynchronize(stream));
	for (i = 0; i < 30000 && stub_registrations(); i++)
		sleep_ns(MS);
	CHECK(!stub_registrations());
	close_stream();
}

TEST(publishes_of_a_stream_are_counted_each)
{
	struct tshare_region *region = region_of(SIZE);
	int i;

	open_stream();
	for (i = 0; i < 100; i++)
		CHECK(!tshare_region_publish_on(region, NULL, stream));
	CHECK(!cuStreamSynchronize(stream));
	CHECK(generation_of(region) == 100);
	tshare_region_unref(region);
	close_stream();
}

TEST(a_stream_can_not_publish_to_a_readonly_region)
{
	struct tshare_region *region = readonly_region_of(SIZE);

	open_stream();
	CHECK(tshare_region_publish_on(region, NULL, stream) == -EACCES);
	CHECK(error_says("region: is read-only"));
	tshare_region_unref(region);
	close_stream();
}

/* Waiting */

static void copy_number(void *data)
{
	int **numbers = data;

	*numbers[1] = *numbers[0];
}

TEST(a_stream_waits_until_something_is_published)
{
	struct tshare_region *region = region_of(SIZE), *other = another(region, 0);
	struct tshare_region *reader = another(region, TSHARE_READONLY);
	struct tshare_cuda_wait *wait;
	int copy = 0, *numbers[2] = { tshare_region_get_data(reader), &copy };
	uint64_t generation = 0;

	open_stream();
	wait = wait_on(reader, 0, -1);
	CHECK(!cuLaunchHostFunc(stream, copy_number, numbers));
	CHECK(stream_waits());
	CHECK(result_of(wait) == -EINPROGRESS && error_says("wait: nothing was published yet"));
	*(int *)tshare_region_get_data(other) = 5;
	publish(other);
	CHECK(!cuStreamSynchronize(stream));
	CHECK(copy == 5);
	CHECK(!tshare_cuda_wait_get_result(wait, &generation) && generation == 1);
	CHECK(!tshare_cuda_wait_unref(wait));
	tshare_region_unref(reader);
	tshare_region_unref(other);
	tshare_region_unref(region);
	close_stream();
}

TEST(a_stream_does_not_wait_for_what_was_published)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_cuda_wait *wait;
	uint64_t generation = 0;

	open_stream();
	publish(region);
	publish(region);
	wait = wait_on(region, 1, -1);
	CHECK(!tshare_cuda_wait_get_result(wait, &generation) && generation == 2);
	CHECK(!cuStreamSynchronize(stream));
	tshare_cuda_wait_unref(wait);
	wait = wait_on(region, 2, -1);
	CHECK(result_of(wait) == -EINPROGRESS);
	CHECK(stream_waits());
	publish(region);
	CHECK(!cuStreamSynchronize(stream));
	tshare_cuda_wait_unref(wait);
	tshare_region_unref(region);
	close_stream();
}

TEST(a_stream_waits_until_its_time_is_over)
{
	struct tshare_region *region = region_of(SIZE);
	int64_t begin = now_ns();
	struct tshare_cuda_wait *wait, *look;

	open_stream();
	wait = wait_on(region, 0, 300 * MS);
	look = wait_on(region, 0, 0);
	CHECK(result_of(look) == -ETIMEDOUT);
	CHECK(result_of(wait) == -EINPROGRESS || now_ns() - begin >= 300 * MS);
	CHECK(!cuStreamSynchronize(stream));
	CHECK(now_ns() - begin >= 300 * MS && now_ns() - begin < LONG);
	CHECK(result_of(wait) == -ETIMEDOUT && error_says("timeout: "));
	tshare_cuda_wait_unref(look);
	tshare_cuda_wait_unref(wait);
	tshare_region_unref(region);
	close_stream();
}

TEST(a_stream_does_not_wait_for_dead_publishers)
{
	const char *name = unique("dead");
	struct tshare_region *region = new_region(name);
	struct partner partner = { .name = name };
	struct tshare_cuda_wait *wait;
	uint64_t seen;
	pid_t pid;

	pid = start_publisher(&partner);
	seen = generation_of(region);
	open_stream();
	wait = wait_on(region, seen, -1);
	CHECK(stream_waits());
	CHECK(!kill(pid, SIGKILL));
	CHECK(!cuStreamSynchronize(stream));
	CHECK(result_of(wait) == -EOWNERDEAD && error_says("publishers have exited"));
	CHECK(end_of(pid) == -1);
	tshare_cuda_wait_unref(wait);
	close(partner.steps.ends[1]);
	tshare_region_unref(region);
	close_stream();
}

TEST(a_wait_that_nobody_asks_about_goes_on)
{
	struct tshare_region *region = region_of(SIZE), *other = another(region, 0);

	open_stream();
	CHECK(!tshare_region_wait_on(region, NULL, stream, 0, -1, NULL));
	tshare_cuda_wait_unref(wait_on(region, 0, -1));
	CHECK(!tshare_cuda_wait_unref(NULL));
	tshare_region_unref(region);
	CHECK(stream_waits());
	publish(other);
	CHECK(!cuStreamSynchronize(stream));
	tshare_region_unref(other);
	close_stream();
}

TEST(a_wait_has_as_many_references_as_were_taken)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_cuda_wait *wait;

	open_stream();
	wait = wait_on(region, 0, -1);
	CHECK(tshare_cuda_wait_ref(wait) == wait);
	tshare_cuda_wait_unref(wait);
	publish(region);
	CHECK(!cuStreamSynchronize(stream));
	CHECK(!result_of(wait));
	tshare_cuda_wait_unref(wait);
	tshare_region_unref(region);
	close_stream();
}

/* More than a page has words, and than a thread sleeps on counters. */
TEST(any_number_of_waits_may_be_under_way)
{
	enum { COUNT = 200 };
	struct tshare_region *region = region_of(SIZE);
	struct tshare_cuda_wait *waits[COUNT];
	int i;

	open_stream();
	for (i = 0; i < COUNT; i++)
		waits[i] = wait_on(region, 0, -1);
	CHECK(stream_waits());
	for (i = 0; i < COUNT; i++)
		CHECK(result_of(waits[i]) == -EINPROGRESS);
	publish(region);
	CHECK(!cuStreamSynchronize(stream));
	for (i = 0; i < COUNT; i++) {
		CHECK(!result_of(waits[i]));
		tshare_cuda_wait_unref(waits[i]);
	}
	tshare_region_unref(region);
	close_stream();
}

static atomic_uint questions;

/* The library's, which asks so whether there are publishers. */
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): theirs are reserved */
int fcntl64(int fd, int command, ...)
{
	va_list args;
	void *argument;

	va_start(args, command);
	argument = va_arg(args, void *);
	va_end(args);
	if (command == F_OFD_GETLK)
		atomic_fetch_add(&questions, 1);
	return syscall(SYS_fcntl, fd, command, argument);
}

TEST(a_publish_asks_for_publishers_once_for_all_waits)
{
	enum { COUNT = 50 };
	struct tshare_region *region = region_of(SIZE), *other = another(region, 0);
	struct tshare_cuda_wait *waits[COUNT];
	int i;

	publish(other);
	open_stream();
	for (i = 0; i < COUNT; i++)
		waits[i] = wait_on(region, 1 + i, -1);
	/*
	 * The library's thread asks if the publish has woken it. On a busy machine it may not have
	 * slept yet, and then looks without asking: there is a wait for each of many publishes.
	 */
	i = 0;
	do {
		sleep_ns(20 * MS);
		atomic_store(&questions, 0);
		publish(other);
		while (result_of(waits[i]) == -EINPROGRESS)
			sleep_ns(MS);
	} while (!atomic_load(&questions) && ++i < COUNT / 2);
	for (i = 0; i < COUNT; i++)
		tshare_cuda_wait_cancel(waits[i]);
	CHECK(atomic_load(&questions) && atomic_load(&questions) < COUNT / 2);
	CHECK(!cuStreamSynchronize(stream));
	for (i = 0; i < COUNT; i++)
		tshare_cuda_wait_unref(waits[i]);
	tshare_region_unref(other);
	tshare_region_unref(region);
	close_stream();
}

TEST(waits_in_succession_take_one_page)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_cuda_wait *wait;
	uint64_t seen;

	open_stream();
	for (seen = 0; seen < 500; seen++) {
		wait = wait_on(region, seen, -1);
		publish(region);
		CHECK(!cuStreamSynchronize(stream));
		CHECK(!result_of(wait));
		tshare_cuda_wait_unref(wait);
	}
	CHECK(stub_calls("cuMemHostRegister") == 1);
	tshare_region_unref(region);
	close_stream();
}

/* A wait is over before the stream comes to it, and another one has its word then. */
TEST(a_stream_passes_a_wait_that_is_long_over)
{
	struct tshare_region *region = region_of(SIZE), *quiet = region_of(SIZE);
	struct tshare_cuda_wait *first, *second;
	struct hold hold;

	open_stream();
	begin_hold(&hold, stream);
	first = wait_on(region, 0, -1);
	publish(region);
	while (result_of(first) == -EINPROGRESS)
		sleep_ns(MS);
	second = wait_on(quiet, 0, -1);
	end_hold(&hold);
	CHECK(stream_waits());
	CHECK(result_of(second) == -EINPROGRESS);
	tshare_cuda_wait_cancel(second);
	CHECK(!cuStreamSynchronize(stream));
	tshare_cuda_wait_unref(first);
	tshare_cuda_wait_unref(second);
	tshare_region_unref(quiet);
	tshare_region_unref(region);
	close_stream();
}

/* Giving up */

TEST(a_wait_can_be_cancelled)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_cuda_wait *wait, *other;

	open_stream();
	other = wait_on(region, 0, -1);
	wait = wait_on(region, 0, -1);
	tshare_cuda_wait_cancel(wait);
	tshare_cuda_wait_cancel(wait);
	CHECK(result_of(wait) == -ECANCELED && error_says("cancelled"));
	CHECK(stream_waits());
	CHECK(result_of(other) == -EINPROGRESS);
	publish(region);
	CHECK(!cuStreamSynchronize(stream));
	tshare_cuda_wait_cancel(other);
	CHECK(!result_of(other));
	tshare_cuda_wait_unref(other);
	tshare_cuda_wait_unref(wait);
	tshare_region_unref(region);
	close_stream();
}

TEST(cancel_of_a_region_ends_the_waits_of_streams)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_cuda_wait *wait, *of_waiter;
	struct tshare_waiter *waiter;

	open_stream();
	CHECK(!tshare_waiter_new(region, &waiter));
	wait = wait_on(region, 0, -1);
	CHECK(!tshare_waiter_wait_on(waiter, NULL, stream, 0, -1, &of_waiter));
	tshare_region_cancel(region);
	CHECK(result_of(wait) == -ECANCELED);
	CHECK(result_of(of_waiter) == -EINPROGRESS);
	tshare_cuda_wait_unref(wait);
	CHECK(tshare_region_wait_on(region, NULL, stream, 0, -1, &wait) == -ECANCELED);
	tshare_waiter_cancel(waiter);
	CHECK(result_of(of_waiter) == -ECANCELED);
	CHECK(tshare_waiter_wait_on(waiter, NULL, stream, 0, -1, &wait) == -ECANCELED);
	tshare_waiter_unref(waiter);
	CHECK(!cuStreamSynchronize(stream));
	tshare_cuda_wait_unref(of_waiter);
	tshare_region_unref(region);
	close_stream();
}

/* The thread that writes to the word may not have looked yet. */
TEST(a_generation_wins_over_a_cancel)
{
	struct tshare_region *region = region_of(SIZE), *other = another(region, 0);
	struct tshare_cuda_wait *wait, *of_region;
	uint64_t seen, generation;

	open_stream();
	for (seen = 0; seen < 200; seen++) {
		wait = wait_on(other, seen, -1);
		publish(region);
		tshare_cuda_wait_cancel(wait);
		CHECK(!tshare_cuda_wait_get_result(wait, &generation));
		CHECK(generation == seen + 1);
		tshare_cuda_wait_unref(wait);
	}
	of_region = wait_on(other, seen, -1);
	publish(region);
	tshare_region_cancel(other);
	CHECK(!result_of(of_region));
	tshare_cuda_wait_unref(of_region);
	CHECK(!cuStreamSynchronize(stream));
	tshare_region_unref(other);
	tshare_region_unref(region);
	close_stream();
}

TEST(a_wait_keeps_its_waiter)
{
	struct tshare_region *region = region_of(SIZE), *other = another(region, 0);
	struct tshare_cuda_wait *wait;
	struct tshare_waiter *waiter;

	open_stream();
	CHECK(!tshare_waiter_new(region, &waiter));
	CHECK(!tshare_waiter_wait_on(waiter, NULL, stream, 0, -1, &wait));
	tshare_waiter_unref(waiter);
	tshare_region_unref(region);
	CHECK(stream_waits());
	publish(other);
	CHECK(!cuStreamSynchronize(stream));
	CHECK(!result_of(wait));
	tshare_cuda_wait_unref(wait);
	tshare_region_unref(other);
	close_stream();
}

#define EXIT_VARIABLE "TSHARE_TEST_EXIT"

/* By exec: a forked child can't use the driver of this process. */
static int start_another(void *data)
{
	(void)data;
	execl("/proc/self/exe", "test-stream", NULL);
	return 3;
}

static int status_of_exit(const char *how)
{
	int status;

	setenv(EXIT_VARIABLE, how, 1);
	status = in_child(start_another, NULL);
	unsetenv(EXIT_VARIABLE);
	return status;
}

/* The stub ends a process with 99 whose streams have work at exit. */
TEST(exit_releases_the_streams)
{
	CHECK(!status_of_exit("wait"));
}

TEST(no_wait_begins_once_the_process_exits)
{
	CHECK(!status_of_exit("wait, wait at exit"));
}

/* The driver ends at exit, too, and must not be called meanwhile. */
TEST(exit_leaves_what_a_stream_has_of_a_region_to_the_driver)
{
	CHECK(!status_of_exit("import, wait"));
	CHECK(!status_of_exit("import, publish"));
}

static struct tshare_region *exiting_region;
static struct hold exiting_hold;

/* Both run when the library's exit handler has run, and before the driver's does. */
static void wait_at_exit(void)
{
	if (tshare_region_wait_on(exiting_region, NULL, stream, 0, -1, NULL) != -ECANCELED ||
	    !error_says("wait: the process exits"))
		_exit(4);
}

static void find_driver_unused(void)
{
	end_hold(&exiting_hold);
	sleep_ns(300 * MS);
	if (stub_calls("cuMemHostUnregister"))
		_exit(5);
}

/* What a runtime does before it drops its objects; the process goes on. */
static int shut_down(void)
{
	struct tshare_region *other = another(exiting_region, 0);
	struct tshare_cuda_wait *wait;

	if (tshare_region_wait_on(exiting_region, NULL, stream, 0, -1, &wait) ||
	    tshare_region_wait_on(other, NULL, stream, 0, -1, NULL))
		return 2;
	tshare_cuda_wait_shutdown();
	if (cuStreamSynchronize(stream) || result_of(wait) != -ECANCELED ||
	    !error_says("wait: the process exits"))
		return 6;
	if (tshare_region_wait_on(exiting_region, NULL, stream, 0, -1, NULL) != -ECANCELED)
		return 7;
	if (tshare_region_publish_on(exiting_region, NULL, stream) || cuStreamSynchronize(stream) ||
	    generation_of(other) != 1)
		return 8;
	tshare_cuda_wait_shutdown();
	tshare_cuda_wait_unref(wait);
	tshare_region_unref(other);
	return 0;
}

TEST(a_shutdown_ends_all_waits_for_good)
{
	CHECK(!status_of_exit("shutdown"));
}

static int exit_as(const char *how)
{
	struct tshare_cuda_info info = { .size = sizeof(info) };
	bool imports = strstr(how, "import");
	int err;

	alarm(HANG_SECONDS);
	start();
	if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuStreamCreate(&stream, 0))
		return 1;
	exiting_region = region_of(SIZE);
	if (strstr(how, "shutdown"))
		return shut_down();
	if (imports && tshare_cuda_import(exiting_region, NULL, &info))
		return 1;
	if (imports) {
		begin_hold(&exiting_hold, stream);
		atexit(find_driver_unused);
	}
	if (strstr(how, "at exit"))
		atexit(wait_at_exit);
	if (strstr(how, "publish"))
		err = tshare_region_publish_on(exiting_region, NULL, stream);
	else
		err = tshare_region_wait_on(exiting_region, NULL, stream, 0, -1, NULL);
	if (imports)
		tshare_region_unref(exiting_region);
	return err ? 2 : 0;
}

/* Forks */

static int use_in_child(void *data)
{
	struct tshare_cuda_wait *wait = data;
	struct tshare_region *region = region_of(SIZE);

	alarm(HANG_SECONDS);
	if (result_of(wait) != -EOPNOTSUPP || !error_says("parent"))
		return 1;
	tshare_cuda_wait_cancel(wait);
	if (tshare_region_wait_on(region, NULL, stream, 0, -1, NULL) != -EOPNOTSUPP ||
	    tshare_region_publish_on(region, NULL, stream) != -EOPNOTSUPP)
		return 2;
	tshare_cuda_wait_unref(wait);
	exit(0);
}

TEST(a_child_leaves_the_streams_of_its_parent_alone)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_cuda_wait *wait;

	open_stream();
	wait = wait_on(region, 0, -1);
	CHECK(!in_child(use_in_child, wait));
	CHECK(stream_waits());
	CHECK(result_of(wait) == -EINPROGRESS);
	publish(region);
	CHECK(!cuStreamSynchronize(stream));
	CHECK(!result_of(wait));
	tshare_cuda_wait_unref(wait);
	tshare_region_unref(region);
	close_stream();
}

/* Devices and contexts */

TEST(a_stream_has_its_context_whichever_is_current)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_cuda_wait *wait;
	CUcontext other, now;

	stub_set_devices(2);
	open_stream();
	CHECK(!cuCtxCreate_v2(&other, 0, 1));
	CHECK(!tshare_region_publish_on(region, NULL, stream));
	wait = wait_on(region, 1, 100 * MS);
	CHECK(!cuCtxGetCurrent(&now) && now == other);
	CHECK(!cuCtxDestroy_v2(other));
	CHECK(!cuStreamSynchronize(stream));
	tshare_cuda_wait_unref(wait);
	tshare_region_unref(region);
	close_stream();
}

TEST(the_default_streams_are_those_of_the_device)
{
	const struct tshare_cuda_options options = on_device(1);
	struct tshare_region *region = region_of(SIZE);
	struct tshare_cuda_wait *wait;
	CUcontext primary, now;

	stub_set_devices(2);
	CHECK(!cuInit(0) && !cuDevicePrimaryCtxRetain(&primary, 1));
	CHECK(!tshare_region_publish_on(region, &options, LEGACY));
	CHECK(!tshare_region_wait_on(region, &options, PER_THREAD, 0, -1, &wait));
	CHECK(!cuCtxGetCurrent(&now) && !now);
	CHECK(!cuCtxPushCurrent_v2(primary));
	CHECK(!cuStreamSynchronize(LEGACY) && !cuStreamSynchronize(PER_THREAD));
	CHECK(!result_of(wait));
	CHECK(!tshare_region_publish_on(region, NULL, PER_THREAD));
	CHECK(!cuStreamSynchronize(PER_THREAD));
	CHECK(generation_of(region) == 2);
	CHECK(!cuCtxPopCurrent_v2(&primary) && !cuDevicePrimaryCtxRelease_v2(1));
	tshare_cuda_wait_unref(wait);
	tshare_region_unref(region);
	CHECK(nothing_stays());
}

TEST(a_device_without_a_context_has_no_streams)
{
	struct tshare_region *region = region_of(SIZE);

	CHECK(tshare_region_publish_on(region, NULL, LEGACY) == -EINVAL);
	CHECK(error_says("stream: device 0 has no context"));
	CHECK(tshare_region_wait_on(region, NULL, PER_THREAD, 0, -1, NULL) == -EINVAL);
	tshare_region_unref(region);
	CHECK(nothing_stays());
}

/* The new context is where the old one was. */
TEST(a_context_that_has_ended_takes_its_page_along)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_cuda_wait *lost, *wait;
	CUcontext primary;

	CHECK(!cuInit(0) && !cuDevicePrimaryCtxRetain(&primary, 0) &&
	      !cuCtxPushCurrent_v2(primary));
	CHECK(!tshare_region_wait_on(region, NULL, LEGACY, 0, -1, &lost));
	CHECK(!cuDevicePrimaryCtxReset_v2(0) && !cuCtxPopCurrent_v2(&primary));
	CHECK(!cuDevicePrimaryCtxRetain(&primary, 0) && !cuCtxPushCurrent_v2(primary));
	CHECK(!tshare_region_wait_on(region, NULL, LEGACY, 0, -1, &wait));
	CHECK(stub_calls("cuMemHostRegister") == 2);
	publish(region);
	CHECK(!cuStreamSynchronize(LEGACY));
	CHECK(!result_of(wait));
	while (result_of(lost) == -EINPROGRESS)
		sleep_ns(MS);
	tshare_cuda_wait_unref(wait);
	tshare_cuda_wait_unref(lost);
	CHECK(!cuCtxPopCurrent_v2(&primary) && !cuDevicePrimaryCtxRelease_v2(0));
	tshare_region_unref(region);
	CHECK(nothing_stays());
}

/* Failures */

static bool refuses(struct tshare_region *region, const struct tshare_cuda_options *options,
		    struct CUstream_st *given, int err, const char *text)
{
	struct tshare_cuda_wait *wait;

	return tshare_region_publish_on(region, options, given) == err && error_says(text) &&
	       tshare_region_wait_on(region, options, given, 0, -1, &wait) == err &&
	       error_says(text);
}

TEST(bad_streams_and_options_are_refused)
{
	struct tshare_region *region = region_of(SIZE);
	struct tshare_cuda_options options = on_device(1);

	open_stream();
	CHECK(refuses(region, NULL, NULL, -EINVAL, "stream: NULL may be"));
	CHECK(refuses(region, &options, stream, -EINVAL, "options.device: there is no device 1"));
	stub_set_devices(2);
	CHECK(refuses(region, &options, stream, -EINVAL,
		      "options.device: the stream is of device 0"));
	CHECK(refuses(region, &options, LEGACY, -EINVAL, "stream: device 1 has no context"));
	options = on_device(0);
	options.path = TSHARE_CUDA_DMABUF;
	CHECK(refuses(region, &options, stream, -EINVAL, "options.path: "));
	options.size = 8;
	CHECK(refuses(region, &options, stream, -EINVAL, "options.size: "));
	stub_set_capturing(stream, true);
	CHECK(refuses(region, NULL, stream, -EOPNOTSUPP, "stream: is being captured"));
	stub_set_capturing(stream, false);
	CHECK(!generation_of(region) && cuStreamQuery(stream) == 0);
	tshare_region_unref(region);
	close_stream();
}

TEST(a_device_that_can_not_wait_says_so)
{
	struct tshare_region *region = region_of(SIZE);

	open_stream();
	stub_set_attribute(0, 122, 0);
	CHECK(tshare_region_wait_on(region, NULL, stream, 0, -1, NULL) == -EOPNOTSUPP);
	CHECK(error_says("stream: device 0, or its driver, can't have a stream wait"));
	CHECK(!tshare_region_publish_on(region, NULL, stream));
	CHECK(!cuStreamSynchronize(stream));
	tshare_region_unref(region);
	close_stream();
}

/* With the @nth call of the driver failing. Some may: their answer doesn't matter. */
static int call_both(struct tshare_region *region, unsigned int nth)
{
	struct tshare_cuda_wait *wait = NULL;
	int err, failed = 0;

	stub_fail(NULL, nth, 999);
	err = tshare_region_publish_on(region, NULL, stream);
	failed += !!err;
	CHECK(!err || err == -EIO);
	err = tshare_region_wait_on(region, NULL, stream, UINT64_MAX - 1, -1, &wait);
	failed += !!err;
	CHECK(!err || err == -EIO || err == -EOPNOTSUPP);
	CHECK(!err == !!wait);
	stub_fail(NULL, UINT32_MAX, 0);
	if (wait)
		tshare_cuda_wait_cancel(wait);
	tshare_cuda_wait_unref(wait);
	CHECK(!cuStreamSynchronize(stream));
	return failed;
}

TEST(a_call_that_fails_changes_nothing)
{
	struct tshare_region *region;
	unsigned int nth;
	int failed = 0;

	for (nth = 1; nth < 60; nth++) {
		region = region_of(SIZE);
		open_stream();
		failed += call_both(region, nth);
		tshare_region_unref(region);
		close_stream();
	}
	CHECK(failed > 10);
}

/* Threads */

struct worker {
	pthread_t thread;
	struct tshare_region *region;
	struct CUstream_st *stream;
	int failed;
};

static void *take_turns(void *data)
{
	struct worker *worker = data;
	struct tshare_cuda_wait *wait;
	uint64_t seen = 0;
	int i;

	for (i = 0; i < 200; i++) {
		wait = NULL;
		if (tshare_region_publish_on(worker->region, NULL, worker->stream) ||
		    tshare_region_wait_on(worker->region, NULL, worker->stream, seen, LONG, &wait))
			worker->failed++;
		else if (i % 3 == 0)
			tshare_cuda_wait_cancel(wait);
		tshare_cuda_wait_unref(wait);
	}
	return NULL;
}

TEST(threads_may_use_streams_at_once)
{
	struct tshare_region *region = region_of(SIZE);
	struct worker workers[4];
	int i;

	open_stream();
	for (i = 0; i < 4; i++) {
		workers[i] = (struct worker){ .region = region };
		CHECK(!cuStreamCreate(&workers[i].stream, 0));
		CHECK(!pthread_create(&workers[i].thread, NULL, take_turns, &workers[i]));
	}
	for (i = 0; i < 4; i++) {
		pthread_join(workers[i].thread, NULL);
		CHECK(!workers[i].failed);
		CHECK(!cuStreamDestroy_v2(workers[i].stream));
	}
	CHECK(generation_of(region) == 800);
	tshare_region_unref(region);
	close_stream();
}

int main(void)
{
	const char *how = getenv(EXIT_VARIABLE);

	return how ? exit_as(how) : tap_main(start, close_context);
}
