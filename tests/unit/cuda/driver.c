// SPDX-License-Identifier: MIT
/*
 * How CUDA's driver is loaded, in a process for each test. This program has a dlopen() of
 * its own, which the library calls in place of the C library's.
 */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../util.h"

/* What is loaded instead of the driver. */
static const char *driver_path;
static int loads;
static bool load_is_right = true;

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): theirs are reserved */
void *dlopen(const char *file, int mode)
{
	void *(*next)(const char *file, int mode);

	*(void **)&next = dlsym(RTLD_NEXT, "dlopen");
	if (!file || strncmp(file, "libcuda", 7))
		return next(file, mode);
	loads++;
	load_is_right &= !strcmp(file, "libcuda.so.1") && mode == (RTLD_NOW | RTLD_LOCAL);
	return next(driver_path, mode);
}

/* A driver, and what the library says of it. */
struct scenario {
	const char *path;
	const char *controls; /* of the stub */
	const char *visible;  /* CUDA_VISIBLE_DEVICES */
	int err;
	const char *text;
};

static int get_driver(struct tshare_cuda_driver *driver)
{
	driver->size = sizeof(*driver);
	return tshare_cuda_get_driver(driver);
}

static int play(void *data)
{
	const struct scenario *scenario = data;
	struct tshare_cuda_driver driver;
	int err;

	driver_path = scenario->path;
	unsetenv("CUDA_VISIBLE_DEVICES");
	if (scenario->visible)
		setenv("CUDA_VISIBLE_DEVICES", scenario->visible, 1);
	if (scenario->controls)
		setenv("TSHARE_STUB_CUDA", scenario->controls, 1);
	err = get_driver(&driver);
	if (err != scenario->err || loads != 1 || !load_is_right) {
		printf("# result %d, %d loads: %s\n", err, loads, tshare_error_get());
		return 1;
	}
	return !scenario->text || error_says(scenario->text) ? 0 : 2;
}

static bool holds(struct scenario scenario)
{
	return !in_child(play, &scenario);
}

TEST(no_driver_is_eopnotsupp)
{
	CHECK(holds((struct scenario){
		.path = "libcuda-that-is-not-there.so.1",
		.err = -EOPNOTSUPP,
		.text = "CUDA: no NVIDIA driver: libcuda-that-is-not-there.so.1: "
			"cannot open shared object file" }));
}

TEST(a_text_file_is_eopnotsupp)
{
	char path[] = "/tmp/tshare-libcuda-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);
	bool held;

	CHECK(fd >= 0 && write(fd, path, sizeof(path)) == sizeof(path));
	close(fd);
	held = holds((struct scenario){ .path = path,
					.err = -EOPNOTSUPP,
					.text = "CUDA: no NVIDIA driver: /tmp/tshare-libcuda" });
	unlink(path);
	CHECK(held);
}

TEST(a_library_that_is_another_one_is_eopnotsupp)
{
	CHECK(holds((struct scenario){
		.path = "libc.so.6", .err = -EOPNOTSUPP, .text = "lacks cuDriverGetVersion" }));
}

TEST(a_driver_that_lacks_a_function_is_eopnotsupp)
{
	CHECK(holds((struct scenario){ .path = STUB,
				       .controls = "hide=cuMemHostRegister",
				       .err = -EOPNOTSUPP,
				       .text = "CUDA: libcuda.so.1 lacks cuMemHostRegister" }));
}

TEST(the_toolkits_stub_is_eopnotsupp)
{
	CHECK(holds((struct scenario){ .path = STUB,
				       .controls = "cuDriverGetVersion=34",
				       .err = -EOPNOTSUPP,
				       .text = "stub for linking" }));
}

TEST(a_driver_that_is_too_old_is_eopnotsupp)
{
	CHECK(holds((struct scenario){ .path = STUB,
				       .controls = "version=10020",
				       .err = -EOPNOTSUPP,
				       .text = "CUDA 10.2, which is older than 11.0" }));
}

TEST(a_driver_that_fails_to_start_is_eopnotsupp)
{
	CHECK(holds((struct scenario){ .path = STUB,
				       .controls = "cuInit=803",
				       .err = -EOPNOTSUPP,
				       .text = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" }));
	CHECK(holds((struct scenario){ .path = STUB,
				       .controls = "cuDeviceGetCount=999",
				       .err = -EOPNOTSUPP,
				       .text = "CUDA_ERROR_UNKNOWN" }));
}

TEST(a_machine_without_devices_is_eopnotsupp)
{
	CHECK(holds((struct scenario){ .path = STUB,
				       .controls = "devices=0",
				       .err = -EOPNOTSUPP,
				       .text = "CUDA: the driver has no device" }));
}

TEST(empty_cuda_visible_devices_is_eopnotsupp)
{
	CHECK(holds((struct scenario){
		.path = STUB, .visible = "", .err = -EOPNOTSUPP, .text = "CUDA_VISIBLE_DEVICES" }));
}

static int report_driver(void *data)
{
	struct tshare_cuda_driver driver;

	(void)data;
	driver_path = STUB;
	setenv("TSHARE_STUB_CUDA", "version=12040,devices=3", 1);
	if (get_driver(&driver))
		return 1;
	driver = (struct tshare_cuda_driver){ 0 };
	if (get_driver(&driver) || loads != 1)
		return 1;
	return driver.version == 12040 && driver.device_count == 3 ? 0 : 2;
}

TEST(the_driver_is_loaded_once_and_reported)
{
	CHECK(!in_child(report_driver, NULL));
}

TEST(get_driver_needs_the_structs_size)
{
	struct tshare_cuda_driver driver = { 0 };

	CHECK(tshare_cuda_get_driver(&driver) == -EINVAL);
	CHECK(error_says("driver.size: "));
}

/* What the library calls of a driver that finds its functions in that way. */
static int pin_with(void *path)
{
	const char *(*complaint)(void), *(*left)(void);
	struct tshare_region *region;
	struct tshare_pin *pin;
	void *stub;

	driver_path = path;
	setenv("TSHARE_STUB_CUDA", "version=11030", 1);
	if (tshare_ctx_new(NULL, &ctx) ||
	    tshare_region_create(ctx, NULL, 1, NULL, 0, NULL, &region) ||
	    tshare_region_pin(region, NULL, &pin))
		return 1;
	tshare_pin_unref(pin);
	tshare_region_unref(region);
	close_context();
	stub = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	*(void **)&complaint = dlsym(stub, "stub_complaint");
	*(void **)&left = dlsym(stub, "stub_left");
	return complaint() || left() ? 2 : 0;
}

static bool works(const char *path)
{
	return !in_child(pin_with, (void *)path);
}

TEST(functions_are_found_as_in_cuda_12)
{
	CHECK(works(STUB));
}

TEST(functions_are_found_as_in_cuda_11_3)
{
	CHECK(works(STUB_11));
}

TEST(functions_are_found_as_before_cuda_11_3)
{
	CHECK(works(STUB_10));
}

struct starter {
	pthread_t thread;
	atomic_int id;
	atomic_bool ended;
	int err;
};

static void *start_too(void *data)
{
	struct starter *starter = data;
	struct tshare_cuda_driver driver;

	atomic_store(&starter->id, gettid());
	starter->err = get_driver(&driver);
	atomic_store(&starter->ended, true);
	return NULL;
}

/* Inside cuInit(): goes on when the other thread waits for the end, or has not waited. */
static void let_another_start(void *data)
{
	struct starter *starter = data;

	if (pthread_create(&starter->thread, NULL, start_too, starter))
		abort();
	while (!atomic_load(&starter->ended) && !is_asleep(atomic_load(&starter->id)))
		sched_yield();
}

static int start_together(void *data)
{
	void (*set_hook)(const char *function, void (*hook)(void *), void *hook_data);
	struct starter starter = { .err = 1 };
	struct tshare_cuda_driver driver;
	void *stub;

	(void)data;
	alarm(HANG_SECONDS);
	driver_path = STUB;
	stub = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	*(void **)&set_hook = dlsym(stub, "stub_set_hook");
	set_hook("cuInit", let_another_start, &starter);
	if (get_driver(&driver))
		return 1;
	pthread_join(starter.thread, NULL);
	return starter.err || loads != 2 ? 2 : 0;
}

TEST(threads_that_start_the_driver_at_once_start_it_once)
{
	CHECK(!in_child(start_together, NULL));
}

static int try_again(void *data)
{
	struct tshare_cuda_driver driver;

	(void)data;
	driver_path = "libcuda-that-is-not-there.so.1";
	if (get_driver(&driver) != -EOPNOTSUPP)
		return 1;
	driver_path = STUB;
	setenv("TSHARE_STUB_CUDA", "hide=cuMemHostUnregister", 1);
	if (get_driver(&driver) != -EOPNOTSUPP)
		return 2;
	unsetenv("TSHARE_STUB_CUDA");
	return get_driver(&driver) ? 3 : 0;
}

TEST(a_driver_that_comes_later_is_found)
{
	CHECK(!in_child(try_again, NULL));
}

/* What was found in a library that was unloaded again isn't called. */
static int start_another(void *data)
{
	struct tshare_cuda_driver driver;

	(void)data;
	driver_path = STUB;
	setenv("TSHARE_STUB_CUDA", "hide=cuMemHostUnregister", 1);
	if (get_driver(&driver) != -EOPNOTSUPP)
		return 1;
	driver_path = STUB_10;
	setenv("TSHARE_STUB_CUDA", "cuDriverGetVersion=999", 1);
	if (get_driver(&driver) != -EOPNOTSUPP)
		return 2;
	return error_says("CUDA error 999") ? 0 : 3;
}

TEST(a_library_that_is_no_driver_leaves_no_functions)
{
	CHECK(!in_child(start_another, NULL));
}

/* Forks */

static int be_refused(void *text)
{
	struct tshare_cuda_driver driver;

	alarm(HANG_SECONDS);
	return get_driver(&driver) == -EOPNOTSUPP && error_says(text) ? 0 : 1;
}

static int fork_after_start(void *data)
{
	struct tshare_cuda_driver driver;

	(void)data;
	driver_path = STUB;
	if (get_driver(&driver))
		return 1;
	return in_child(be_refused, (void *)"a forked child") || get_driver(&driver) ? 2 : 0;
}

TEST(a_forked_child_is_eopnotsupp_and_the_parent_goes_on)
{
	CHECK(!in_child(fork_after_start, NULL));
}

static int start_in_child(void *data)
{
	struct tshare_cuda_driver driver;

	(void)data;
	driver_path = STUB;
	return !!get_driver(&driver);
}

static int fork_after_failure(void *data)
{
	struct tshare_cuda_driver driver;

	(void)data;
	driver_path = "libcuda-that-is-not-there.so.1";
	return get_driver(&driver) == -EOPNOTSUPP ? in_child(start_in_child, NULL) : 2;
}

TEST(a_child_of_a_parent_without_cuda_can_use_it)
{
	CHECK(!in_child(fork_after_failure, NULL));
}

/* The parent's CUDA is another library's, of which this one learns from the driver alone. */
static int fork_from_another(void *data)
{
	int (*init)(unsigned int flags);
	void *stub;

	(void)data;
	driver_path = STUB;
	stub = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	*(void **)&init = dlsym(stub, "cuInit");
	return init(0) ? 1 : in_child(be_refused, (void *)"was forked from one that uses it");
}

TEST(a_child_of_another_librarys_user_of_cuda_is_eopnotsupp)
{
	CHECK(!in_child(fork_from_another, NULL));
}

static int forked_status = -1;

static void fork_now(void *data)
{
	forked_status = in_child(be_refused, data);
}

static int fork_during_start(void *data)
{
	void (*set_hook)(const char *function, void (*hook)(void *), void *hook_data);
	struct tshare_cuda_driver driver;
	void *stub;

	(void)data;
	driver_path = STUB;
	stub = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	*(void **)&set_hook = dlsym(stub, "stub_set_hook");
	set_hook("cuInit", fork_now, (void *)"a forked child");
	return get_driver(&driver) || forked_status ? 1 : 0;
}

TEST(a_child_that_is_forked_while_the_driver_starts_does_not_wait_for_it)
{
	CHECK(!in_child(fork_during_start, NULL));
}

static void nothing(void)
{
}

int main(void)
{
	return tap_main(nothing, nothing);
}
