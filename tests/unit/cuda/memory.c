// SPDX-License-Identifier: MIT
/*
 * Memory of a device that another process opens by name, on a stub of CUDA's driver. A child of
 * fork() can't use CUDA once its parent does, so the other process is this program, started again.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tshare-dlpack.h>
#include <unistd.h>

#include "../partner.h"
#include "other.h"

#define BLOCK (2 << 20)
#define WORDS 1000

/* More calls of the driver than to make the memory takes; a call that never comes. */
#define STEPS 40
#define NEVER 1000000

/* An attribute of devices. */
#define PAGEABLE_MEMORY_ACCESS 88

static const int64_t words_shape[1] = { WORDS };

static int create_words(const char *name, const struct tshare_options *options,
			struct tshare_cuda_memory **memory)
{
	return tshare_cuda_memory_create(ctx, name, TSHARE_UINT32, 1, words_shape, options, NULL,
					 memory);
}

static struct tshare_cuda_memory *new_words(const char *name)
{
	struct tshare_cuda_memory *memory;

	CHECK(!create_words(name, NULL, &memory));
	return memory;
}

static int open_name(const char *name, struct tshare_cuda_memory **memory)
{
	struct tshare_region *region;
	int err = tshare_region_open(ctx, name, NULL, &region);

	if (err)
		return err;
	err = tshare_cuda_memory_open(region, NULL, memory);
	tshare_region_unref(region);
	return err;
}

static struct tshare_cuda_memory_info info_of(const struct tshare_cuda_memory *memory)
{
	struct tshare_cuda_memory_info info = { .size = sizeof(info) };

	CHECK(!tshare_cuda_memory_get_info(memory, &info));
	return info;
}

static uint32_t *words_of(const struct tshare_cuda_memory *memory)
{
	return (uint32_t *)(uintptr_t)info_of(memory).address;
}

static void drop(struct tshare_cuda_memory *memory)
{
	tshare_cuda_memory_unref(memory);
	CHECK(nothing_is_left());
}

/* The other process. Its end of a socket is descriptor 0. Returns what open_name() does, or 99. */

static int other_reads_and_writes(const char *name)
{
	struct tshare_cuda_memory *memory;
	int err = open_name(name, &memory);

	if (err)
		return -err;
	if (words_of(memory)[WORDS - 1] != 41 || info_of(memory).maker)
		return 99;
	words_of(memory)[0] = 42;
	tshare_cuda_memory_unref(memory);
	return nothing_is_left() ? 0 : 99;
}

static int other_opens_twice(const char *name)
{
	struct tshare_cuda_memory *first, *second;

	if (open_name(name, &first) || open_name(name, &second) || first != second)
		return 99;
	tshare_cuda_memory_unref(first);
	words_of(second)[0] = 42;
	tshare_cuda_memory_unref(second);
	return nothing_is_left() ? 0 : 99;
}

static int other_opens_often(const char *name)
{
	size_t before = open_descriptors();
	struct tshare_cuda_memory *memory;
	int i;

	for (i = 0; i < 1000; i++) {
		if (open_name(name, &memory))
			return 99;
		tshare_cuda_memory_unref(memory);
		/* A context of the library's own would have gone with the memory. */
		if (!nothing_is_left())
			return 99;
	}
	return open_descriptors() <= before + 4 ? 0 : 99;
}

static int other_fails_at_each_step(const char *name)
{
	struct tshare_cuda_memory *memory;
	unsigned int nth, failures = 0;
	size_t before;

	if (open_name(name, &memory))
		return 99;
	tshare_cuda_memory_unref(memory);
	before = open_descriptors();
	for (nth = 1; nth < STEPS; nth++) {
		stub_fail(NULL, nth, 999);
		/* The library does without some of the calls. */
		if (!open_name(name, &memory)) {
			stub_fail(NULL, NEVER, 999);
			tshare_cuda_memory_unref(memory);
		} else {
			failures++;
		}
		stub_fail(NULL, NEVER, 999);
		if (!nothing_is_left() || open_descriptors() != before)
			return 97;
	}
	return failures >= 4 ? 0 : 96;
}

static int other_holds(const char *name)
{
	struct tshare_cuda_memory *memory;

	if (open_name(name, &memory) || !send_byte(0) || !await_byte(0))
		return 99;
	if (tshare_cuda_memory_check(memory) != -EOWNERDEAD)
		return 98;
	tshare_cuda_memory_unref(memory);
	return nothing_is_left() ? 0 : 99;
}

static void *open_and_drop(void *name)
{
	struct tshare_cuda_memory *memory;
	intptr_t failed = 0;
	int i;

	for (i = 0; i < 200 && !failed; i++) {
		failed = open_name(name, &memory);
		if (failed)
			break;
		failed = tshare_cuda_memory_check(memory);
		__atomic_store_n(&words_of(memory)[0], 42, __ATOMIC_RELAXED);
		tshare_cuda_memory_unref(memory);
	}
	return (void *)failed;
}

/* Returns the first error of the threads' calls. */
static int open_in_threads(const char *name)
{
	pthread_t threads[4];
	void *result;
	int i, err = 0;

	for (i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, open_and_drop, (void *)name));
	for (i = 0; i < 4; i++) {
		pthread_join(threads[i], &result);
		if (result)
			err = (intptr_t)result;
	}
	return err;
}

static int other_opens_in_threads(const char *name)
{
	int err = open_in_threads(name);

	if (err)
		return -err;
	return nothing_is_left() ? 0 : 99;
}

/* Opens it, and once more when the maker has changed the record. */
static int other_opens_changed(const char *name)
{
	struct tshare_cuda_memory *first, *second;

	if (open_name(name, &first) || words_of(first)[0] != 1 || !send_byte(0) || !await_byte(0))
		return 99;
	if (open_name(name, &second) || words_of(second)[0] != 2 || words_of(first)[0] != 1)
		return 98;
	tshare_cuda_memory_unref(first);
	words_of(second)[0] = 3;
	tshare_cuda_memory_unref(second);
	return nothing_is_left() ? 0 : 97;
}

static int other_opens_both(const char *name)
{
	struct tshare_cuda_memory *memory, *copied;
	char other[TSHARE_NAME_MAX + 1];

	snprintf(other, sizeof(other), "%s.copied", name);
	if (open_name(name, &memory) || open_name(other, &copied) || memory == copied)
		return 99;
	tshare_cuda_memory_unref(memory);
	words_of(copied)[0] = 42;
	tshare_cuda_memory_unref(copied);
	return nothing_is_left() ? 0 : 98;
}

static int other_opens_in_its_context(const char *name)
{
	struct tshare_cuda_memory *memory, *again;
	CUcontext context;

	if (cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || open_name(name, &memory) ||
	    info_of(memory).context_created || tshare_cuda_memory_check(memory))
		return 99;
	if (cuCtxDestroy_v2(context) || tshare_cuda_memory_check(memory) != -EIO)
		return 98;
	if (open_name(name, &again) || !info_of(again).context_created)
		return 97;
	tshare_cuda_memory_unref(memory);
	words_of(again)[0] = 42;
	if (cuCtxCreate_v2(&context, 0, 0))
		return 96;
	tshare_cuda_memory_unref(again);
	return cuCtxDestroy_v2(context) || !nothing_is_left() ? 95 : 0;
}

static int other_forks(const char *name)
{
	struct tshare_cuda_memory *memory;
	pid_t child;

	if (open_name(name, &memory))
		return 99;
	child = fork();
	if (!child) {
		tshare_cuda_memory_unref(memory);
		exit(0);
	}
	if (end_of(child) || tshare_cuda_memory_check(memory))
		return 98;
	words_of(memory)[0] = 42;
	if (!send_byte(0) || !await_byte(0))
		return 97;
	tshare_cuda_memory_unref(memory);
	return nothing_is_left() ? 0 : 96;
}

static int other_makes(const char *name)
{
	struct tshare_cuda_memory *memory;

	int err = create_words(name, NULL, &memory);

	if (err)
		return -err;
	if (!send_byte(0) || !await_byte(0))
		return 99;
	tshare_cuda_memory_unref(memory);
	return nothing_is_left() && send_byte(0) && await_byte(0) ? 0 : 99;
}

static int other_makes_and_forks(const char *name)
{
	struct tshare_cuda_memory *memory;
	pid_t child;

	if (create_words(name, NULL, &memory))
		return 99;
	child = fork();
	if (!child) {
		if (tshare_cuda_memory_check(memory) != -EOPNOTSUPP)
			_exit(99);
		send_byte(0);
		await_byte(0); /* until the test ends */
		_exit(0);
	}
	for (;;)
		pause();
}

static const struct {
	const char *name;
	int (*run)(const char *name);
} others[] = {
	{ "reads-and-writes", other_reads_and_writes },
	{ "opens-twice", other_opens_twice },
	{ "opens-often", other_opens_often },
	{ "fails-at-each-step", other_fails_at_each_step },
	{ "holds", other_holds },
	{ "opens-in-threads", other_opens_in_threads },
	{ "opens-changed", other_opens_changed },
	{ "opens-both", other_opens_both },
	{ "opens-in-its-context", other_opens_in_its_context },
	{ "forks", other_forks },
	{ "makes", other_makes },
	{ "makes-and-forks", other_makes_and_forks },
};

static int be_other(const char *what, const char *name)
{
	size_t i;
	int status = 99;

	if (ctx_new(NULL, &ctx))
		return 99;
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcmp(others[i].name, what))
			status = others[i].run(name);
	if (status)
		printf("# %s: %d: %s\n", what, status, tshare_error_get());
	return status;
}

static pid_t start_other(const char *what, const char *name, struct steps *steps)
{
	pid_t pid;

	CHECK(steps_open(steps));
	pid = fork();
	if (!pid) {
		dup2(steps->ends[1], 0);
		execl("/proc/self/exe", "memory", what, name, NULL);
		_exit(99);
	}
	CHECK(pid > 0);
	close(steps->ends[1]);
	steps->ends[1] = -1;
	return pid;
}

static int run_other(const char *what, const char *name)
{
	struct steps steps;
	int status = end_of(start_other(what, name, &steps));

	close(steps.ends[0]);
	return status;
}

/* Making and opening */

TEST(another_process_opens_the_memory_by_its_name)
{
	struct tshare_cuda_memory *memory = new_words(unique("gpu"));
	const char *name = tshare_region_get_name(tshare_cuda_memory_get_region(memory));

	words_of(memory)[WORDS - 1] = 41;
	CHECK(run_other("reads-and-writes", name) == 0);
	CHECK(words_of(memory)[0] == 42);
	drop(memory);
}

TEST(new_memory_is_zeros_in_whole_blocks)
{
	struct tshare_cuda_memory *memory = new_words(unique("gpu"));

	CHECK(info_of(memory).memory_bytes == BLOCK && info_of(memory).maker);
	CHECK(stub_calls("cuMemsetD8Async") == 1 && all_zero(words_of(memory), BLOCK));
	drop(memory);
}

TEST(a_process_opens_the_memory_once)
{
	struct tshare_cuda_memory *memory = new_words(unique("gpu"));

	CHECK(!run_other("opens-twice",
			 tshare_region_get_name(tshare_cuda_memory_get_region(memory))));
	CHECK(words_of(memory)[0] == 42);
	drop(memory);
}

TEST(the_makers_process_gets_the_makers_object)
{
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory = new_words(name), *again;

	CHECK(!open_name(name, &again) && again == memory);
	CHECK(!stub_calls("cuIpcOpenMemHandle"));
	tshare_cuda_memory_unref(again);
	drop(memory);
}

TEST(a_thousand_opens_leave_nothing)
{
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory = new_words(name);

	CHECK(!run_other("opens-often", name));
	drop(memory);
}

TEST(a_draft_is_opened_when_it_is_finished)
{
	const struct tshare_options draft = { .size = sizeof(draft), .flags = TSHARE_DRAFT };
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory;

	CHECK(!create_words(name, &draft, &memory));
	CHECK(run_other("reads-and-writes", name) == EINPROGRESS);
	words_of(memory)[WORDS - 1] = 41;
	CHECK(!tshare_region_finish(tshare_cuda_memory_get_region(memory), 0));
	CHECK(!run_other("reads-and-writes", name));
	drop(memory);
}

TEST(new_memory_replaces_other_memory_of_its_name)
{
	const struct tshare_options replace = { .size = sizeof(replace), .flags = TSHARE_REPLACE };
	const char *name = unique("gpu");
	struct tshare_cuda_memory *old = new_words(name), *new;

	CHECK(create_words(name, NULL, &new) == -EEXIST);
	CHECK(!create_words(name, &replace, &new));
	words_of(new)[WORDS - 1] = 41;
	tshare_cuda_memory_unref(old);
	CHECK(!run_other("reads-and-writes", name));
	drop(new);
}

TEST(threads_open_and_drop_the_memory_at_once)
{
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory = new_words(name);

	CHECK(!run_other("opens-in-threads", name));
	CHECK(words_of(memory)[0] == 42);
	words_of(memory)[0] = 0;
	CHECK(!open_in_threads(name) && words_of(memory)[0] == 42);
	drop(memory);
}

static void *make_and_drop(void *stem)
{
	struct tshare_cuda_memory *memory;
	char name[TSHARE_NAME_MAX + 1];
	intptr_t failed = 0;
	int i;

	snprintf(name, sizeof(name), "test-%d-%s", getpid(), (const char *)stem);
	for (i = 0; i < 50 && !failed; i++) {
		failed = create_words(name, NULL, &memory);
		if (!failed)
			tshare_cuda_memory_unref(memory);
	}
	return (void *)failed;
}

TEST(threads_make_and_drop_memory_at_once)
{
	static const char *const stems[] = { "gpu1", "gpu2", "gpu3", "gpu4" };
	pthread_t threads[4];
	void *result;
	int i, failed = 0;

	for (i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, make_and_drop, (void *)stems[i]));
	for (i = 0; i < 4; i++) {
		pthread_join(threads[i], &result);
		failed += !!result;
	}
	CHECK(!failed && nothing_is_left());
}

static struct {
	struct tshare_cuda_memory *memory;
	pthread_t thread;
	atomic_int id;
} dropper;

static void *drop_it(void *unused)
{
	(void)unused;
	atomic_store(&dropper.id, gettid());
	tshare_cuda_memory_unref(dropper.memory);
	return NULL;
}

/* Once, while the memory is opened: until the thread waits for that. */
static void drop_meanwhile(void *unused)
{
	(void)unused;
	if (atomic_load(&dropper.id))
		return;
	CHECK(!pthread_create(&dropper.thread, NULL, drop_it, NULL));
	while (!atomic_load(&dropper.id) || !is_asleep(atomic_load(&dropper.id)))
		sleep_ns(MS);
}

TEST(memory_that_is_opened_while_another_thread_drops_it_stays)
{
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory;

	dropper.memory = new_words(name);
	atomic_store(&dropper.id, 0);
	stub_set_hook("cuPointerGetAttribute", drop_meanwhile, NULL);
	CHECK(!open_name(name, &memory) && memory == dropper.memory);
	stub_set_hook("cuPointerGetAttribute", NULL, NULL);
	pthread_join(dropper.thread, NULL);
	CHECK(!tshare_cuda_memory_check(memory) && !open_error(name));
	drop(memory);
}

TEST(memory_is_opened_in_the_callers_context)
{
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory = new_words(name);

	CHECK(!run_other("opens-in-its-context", name));
	CHECK(words_of(memory)[0] == 42);
	drop(memory);
}

/* The tensor */

TEST(the_tensor_is_the_devices)
{
	struct tshare_cuda_memory *memory = new_words(unique("gpu"));
	const uint64_t address = info_of(memory).address;
	struct DLManagedTensorVersioned *managed;
	struct tshare_tensor *tensor, *view;
	uint32_t word;

	CHECK(!tshare_cuda_memory_get_tensor(memory, &tensor));
	tshare_cuda_memory_unref(memory);
	CHECK(tshare_tensor_get_shape(tensor)[0] == WORDS && !tshare_tensor_get_data(tensor));
	CHECK(!tshare_tensor_slice(tensor, 0, 10, 11, 1, &view));
	tshare_tensor_unref(tensor);
	CHECK(tshare_tensor_read(view, &word) == -EOPNOTSUPP && error_says("tensor: "));
	CHECK(tshare_tensor_write(view, &word, NULL) == -EOPNOTSUPP);
	CHECK(!tshare_tensor_to_dlpack(view, &managed));
	CHECK(managed->dl_tensor.device.device_type == kDLCUDA);
	CHECK((uintptr_t)managed->dl_tensor.data == address + 40);
	tshare_tensor_unref(view);
	CHECK(stub_left());
	managed->deleter(managed);
	CHECK(nothing_is_left());
}

/* The region that the tensor lies in has no memory of the host's. */
TEST(calls_for_the_region_of_the_tensor_are_refused)
{
	const struct tshare_cuda_options pageable = { .size = sizeof(pageable),
						      .path = TSHARE_CUDA_PAGEABLE };
	struct tshare_cuda_memory *memory = new_words(unique("gpu")), *again;
	struct tshare_region_info about = { .size = sizeof(about) };
	struct tshare_cuda_info info = { .size = sizeof(info) };
	struct tshare_cuda_copy *copy;
	struct tshare_tensor *tensor;
	struct tshare_region *region;
	struct tshare_pin *pin;
	uint64_t generation;
	int fd;

	CHECK(!tshare_cuda_memory_get_tensor(memory, &tensor));
	region = tshare_tensor_get_region(tensor);
	CHECK(tshare_region_get_fd(region) == -1 && !tshare_region_get_data(region));
	CHECK(tshare_region_pin(region, NULL, &pin) == -EOPNOTSUPP);
	CHECK(error_says("region: its memory is on a device; use the region of tshare_cuda_memo"));
	stub_set_attribute(0, PAGEABLE_MEMORY_ACCESS, 1);
	CHECK(tshare_cuda_import(region, NULL, &info) == -EOPNOTSUPP);
	CHECK(tshare_cuda_import(region, &pageable, &info) == -EOPNOTSUPP);
	CHECK(tshare_cuda_copy_new(tensor, NULL, PER_THREAD, &copy) == -EOPNOTSUPP);
	CHECK(error_says("tensor: its memory is on a device"));
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	CHECK(tshare_region_read(region, fd, 0, 0, 4096, NULL) == -EOPNOTSUPP);
	close(fd);
	CHECK(tshare_region_export(region, 0, 0, 0, &fd) == -EOPNOTSUPP);
	CHECK(tshare_region_get_info(region, &about) == -EOPNOTSUPP);
	CHECK(tshare_region_publish(region, &generation) == -EOPNOTSUPP);
	CHECK(tshare_region_finish(region, 0) == -EOPNOTSUPP);
	CHECK(tshare_region_unlink(region) == -ENOENT);
	CHECK(tshare_cuda_memory_open(region, NULL, &again) == -ENOENT);
	tshare_tensor_unref(tensor);
	drop(memory);
}

TEST(the_region_of_the_name_is_pinned_as_any_other)
{
	struct tshare_cuda_memory *memory = new_words(unique("gpu"));
	struct tshare_region *region = tshare_cuda_memory_get_region(memory);
	struct tshare_cuda_info info = { .size = sizeof(info) };
	struct tshare_pin *pin;

	CHECK(!tshare_region_pin(region, NULL, &pin));
	CHECK(!tshare_cuda_import(region, NULL, &info));
	CHECK(info.address == (uintptr_t)tshare_region_get_data(region));
	tshare_pin_unref(pin);
	drop(memory);
}

/* Ends */

TEST(memory_of_a_killed_maker_is_eownerdead)
{
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory;
	struct tshare_region *region;
	struct steps steps;
	pid_t maker = start_other("makes", name, &steps);

	CHECK(await_byte(steps.ends[0]));
	CHECK(!tshare_region_open(ctx, name, NULL, &region));
	CHECK(!tshare_cuda_memory_open(region, NULL, &memory) && !tshare_cuda_memory_check(memory));
	kill_and_reap(maker);
	CHECK(tshare_cuda_memory_check(memory) == -EOWNERDEAD);
	CHECK(tshare_cuda_memory_open(region, NULL, &memory) == -EOWNERDEAD);
	tshare_cuda_memory_unref(memory);
	CHECK(tshare_cuda_memory_open(region, NULL, &memory) == -EOWNERDEAD);
	CHECK(stub_calls("cuIpcOpenMemHandle") == 1);
	CHECK(open_error(name) == -ENOENT);
	close(steps.ends[0]);
	end(region);
}

/* The maker's name stays as long as the child does. */
TEST(a_child_of_a_killed_maker_is_no_maker)
{
	const char *name = unique("forked");
	struct tshare_cuda_memory *memory;
	struct tshare_region *region;
	struct steps steps;
	pid_t maker = start_other("makes-and-forks", name, &steps);

	CHECK(await_byte(steps.ends[0]));
	CHECK(!tshare_region_open(ctx, name, NULL, &region));
	kill_and_reap(maker);
	CHECK(tshare_cuda_memory_open(region, NULL, &memory) == -EOWNERDEAD);
	close(steps.ends[0]);
	end(region);
}

static void kill_once(void *pid)
{
	if (*(pid_t *)pid)
		kill_and_reap(*(pid_t *)pid);
	*(pid_t *)pid = 0;
}

/* Before, while and after the handle is opened. */
TEST(a_maker_that_dies_while_its_memory_is_opened_is_eownerdead)
{
	static const char *const calls[] = { "cuDeviceGetUuid", "cuIpcOpenMemHandle",
					     "cuCtxPopCurrent" };
	struct tshare_cuda_memory *memory;
	struct tshare_region *region;
	struct steps steps;
	const char *name;
	pid_t maker;
	size_t i;

	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		name = unique(calls[i]);
		maker = start_other("makes", name, &steps);
		CHECK(await_byte(steps.ends[0]));
		CHECK(!tshare_region_open(ctx, name, NULL, &region));
		stub_set_hook(calls[i], kill_once, &maker);
		CHECK(tshare_cuda_memory_open(region, NULL, &memory) == -EOWNERDEAD && !maker);
		stub_set_hook(calls[i], NULL, NULL);
		close(steps.ends[0]);
		end(region);
	}
}

static int do_nothing(void *unused)
{
	(void)unused;
	return 0;
}

/* The child has no life of the memory's: its descriptor's number may be another file's. */
static int drop_and_fork(void *memory)
{
	int fds[2];

	if (pipe(fds))
		return 99;
	tshare_cuda_memory_unref(memory);
	if (fcntl(fds[0], F_GETFD) < 0 || fcntl(fds[1], F_GETFD) < 0)
		return 98;
	return in_child(do_nothing, NULL);
}

TEST(a_child_that_drops_its_parents_memory_leaves_it)
{
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory = new_words(name);

	words_of(memory)[WORDS - 1] = 41;
	CHECK(!in_child(drop_and_fork, memory));
	CHECK(!tshare_cuda_memory_check(memory) && !run_other("reads-and-writes", name));
	drop(memory);
}

/* Its child has neither the memory nor a life in it. */
TEST(a_child_of_a_user_leaves_the_memory_to_it)
{
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory = new_words(name);
	struct steps steps;
	pid_t user = start_other("forks", name, &steps);

	CHECK(await_byte(steps.ends[0]) && words_of(memory)[0] == 42);
	tshare_cuda_memory_unref(memory);
	CHECK(!stub_calls("cuMemFree"));
	CHECK(send_byte(steps.ends[0]) && !end_of(user));
	close(steps.ends[0]);
	tshare_cuda_memory_unref(new_words(name));
	CHECK(nothing_is_left());
}

TEST(memory_that_its_maker_drops_is_eownerdead)
{
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory;
	struct tshare_region *region;
	struct steps steps;
	pid_t maker = start_other("makes", name, &steps);

	CHECK(await_byte(steps.ends[0]));
	CHECK(!tshare_region_open(ctx, name, NULL, &region));
	CHECK(send_byte(steps.ends[0]) && await_byte(steps.ends[0]));
	CHECK(tshare_cuda_memory_open(region, NULL, &memory) == -EOWNERDEAD);
	CHECK(open_error(name) == -ENOENT);
	CHECK(send_byte(steps.ends[0]) && !end_of(maker));
	close(steps.ends[0]);
	end(region);
}

TEST(the_maker_keeps_dropped_memory_while_others_use_it)
{
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory = new_words(name);
	struct steps steps;
	pid_t user = start_other("holds", name, &steps);

	CHECK(await_byte(steps.ends[0]));
	tshare_cuda_memory_unref(memory);
	CHECK(open_error(name) == -ENOENT && !stub_calls("cuMemFree"));
	CHECK(send_byte(steps.ends[0]) && !end_of(user));
	close(steps.ends[0]);
	memory = new_words(name);
	CHECK(stub_calls("cuMemFree") == 1);
	drop(memory);
}

TEST(a_killed_user_leaves_nothing_at_the_maker)
{
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory = new_words(name);
	struct steps steps;
	pid_t user = start_other("holds", name, &steps);

	CHECK(await_byte(steps.ends[0]));
	kill_and_reap(user);
	close(steps.ends[0]);
	CHECK(!tshare_cuda_memory_check(memory));
	drop(memory);
}

TEST(memory_goes_with_a_reset_of_the_device)
{
	struct tshare_cuda_memory *memory = new_words(unique("gpu"));

	CHECK(!tshare_cuda_memory_check(memory));
	CHECK(!cuDevicePrimaryCtxReset_v2(0));
	CHECK(tshare_cuda_memory_check(memory) == -EIO);
	drop(memory);
}

TEST(a_reset_of_the_makers_device_is_eio_for_its_process)
{
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory = new_words(name), *again;

	CHECK(!cuDevicePrimaryCtxReset_v2(0));
	CHECK(open_name(name, &again) == -EIO && error_says("memory: has gone with the context"));
	drop(memory);
}

/* Failures */

TEST(a_failure_of_any_step_leaves_nothing)
{
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory;
	unsigned int nth, failures = 0;
	size_t before;

	tshare_cuda_memory_unref(new_words(name));
	before = open_descriptors();
	for (nth = 1; nth < STEPS; nth++) {
		stub_fail(NULL, nth, 999);
		if (!create_words(name, NULL, &memory)) {
			stub_fail(NULL, NEVER, 999);
			tshare_cuda_memory_unref(memory);
		} else {
			failures++;
		}
		stub_fail(NULL, NEVER, 999);
		CHECK(nothing_is_left() && open_error(name) == -ENOENT);
		CHECK(open_descriptors() == before);
	}
	CHECK(failures >= 6);
}

/* A context of the library's own would take its memory with it. */
TEST(a_failure_leaves_no_memory_in_the_callers_context)
{
	static const char *const calls[] = { "cuMemsetD8Async", "cuIpcGetMemHandle" };
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory;
	CUcontext context;
	size_t i;

	CHECK(!cuInit(0) && !cuCtxCreate_v2(&context, 0, 0));
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		stub_fail(calls[i], 1, 999);
		CHECK(create_words(name, NULL, &memory) == -EIO && error_says("memory: "));
		CHECK(stub_calls("cuMemAlloc") == stub_calls("cuMemFree"));
	}
	CHECK(!cuCtxDestroy_v2(context) && nothing_is_left());
}

static void unlink_name(void *name)
{
	tshare_ctx_unlink(ctx, name);
}

TEST(a_name_that_goes_while_its_memory_is_made_leaves_nothing)
{
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory;
	CUcontext context;

	CHECK(!cuInit(0) && !cuCtxCreate_v2(&context, 0, 0));
	stub_set_hook("cuIpcGetMemHandle", unlink_name, (void *)name);
	CHECK(create_words(name, NULL, &memory) == -ENOENT);
	stub_set_hook("cuIpcGetMemHandle", NULL, NULL);
	CHECK(stub_calls("cuMemAlloc") == 1 && stub_calls("cuMemFree") == 1);
	CHECK(!create_words(name, NULL, &memory) && !open_name(name, &memory));
	tshare_cuda_memory_unref(memory);
	tshare_cuda_memory_unref(memory);
	CHECK(!cuCtxDestroy_v2(context) && nothing_is_left());
}

TEST(a_driver_that_cannot_share_memory_is_eopnotsupp)
{
	static const char *const hidden[] = {
		"hide=cuDeviceGetUuid",	   "hide=cuMemsetD8Async",     "hide=cuIpcGetMemHandle",
		"hide=cuIpcOpenMemHandle", "hide=cuIpcCloseMemHandle",
	};
	const char *name = unique("gpu"), *another_name = unique("gpu2");
	struct tshare_cuda_memory *memory = new_words(name);
	size_t i;

	for (i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
		CHECK(!setenv("TSHARE_STUB_CUDA", hidden[i], 1));
		CHECK(run_other("reads-and-writes", name) == EOPNOTSUPP);
		CHECK(run_other("makes", another_name) == EOPNOTSUPP);
	}
	CHECK(!unsetenv("TSHARE_STUB_CUDA"));
	drop(memory);
}

TEST(a_failure_to_open_leaves_nothing)
{
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory = new_words(name);

	CHECK(!run_other("fails-at-each-step", name));
	drop(memory);
}

TEST(a_device_without_memory_left_is_enomem)
{
	struct tshare_cuda_memory *memory;

	stub_fail("cuMemAlloc", 1, 2);
	CHECK(create_words(unique("gpu"), NULL, &memory) == -ENOMEM && error_says("shape: "));
	CHECK(nothing_is_left());
}

TEST(a_captured_default_stream_is_left_whole)
{
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory = new_words(name);
	CUcontext context;

	CHECK(!cuDevicePrimaryCtxRetain(&context, 0) && !cuCtxPushCurrent_v2(context));
	stub_set_capturing(PER_THREAD, true);
	tshare_cuda_memory_unref(memory);
	CHECK(create_words(name, NULL, &memory) == -EOPNOTSUPP && error_says("memory: "));
	CHECK(open_error(name) == -ENOENT && !stub_complaint());
	stub_set_capturing(PER_THREAD, false);
	CHECK(!cuCtxPopCurrent_v2(&context) && !cuDevicePrimaryCtxRelease_v2(0));
	CHECK(nothing_is_left());
}

/* Arguments */

static int create_with(uint32_t flags, uint32_t mode, uint32_t lifetime)
{
	const struct tshare_options options = { sizeof(options), flags, mode, 0, lifetime };
	struct tshare_cuda_memory *memory;

	return create_words(unique("gpu"), &options, &memory);
}

TEST(what_a_devices_memory_cannot_have_is_refused)
{
	struct tshare_cuda_memory *memory;

	CHECK(create_words(NULL, NULL, &memory) == -EINVAL && error_says("name: "));
	CHECK(create_with(TSHARE_CONTIGUOUS, 0, 0) == -EINVAL && error_says("options.flags: "));
	CHECK(create_with(0, 0, TSHARE_LIFETIME_USERS) == -EINVAL);
	CHECK(error_says("options.lifetime: "));
	CHECK(create_with(0, 0644, 0) == -EOPNOTSUPP && error_says("options.mode: "));
	CHECK(create_with(0, 0622, 0) == -EOPNOTSUPP);
	CHECK(nothing_is_left());
}

TEST(a_shape_that_no_memory_holds_is_refused)
{
	static const int64_t negative[1] = { -1 }, huge[2] = { INT64_C(1) << 62, 16 };
	static const int64_t most[1] = { INT64_MAX };
	struct tshare_cuda_memory *memory;
	const char *name = unique("gpu");

	CHECK(tshare_cuda_memory_create(ctx, name, TSHARE_UINT8, 1, negative, NULL, NULL,
					&memory) == -EINVAL);
	CHECK(error_says("shape[0]: "));
	CHECK(tshare_cuda_memory_create(ctx, name, TSHARE_UINT8, 2, huge, NULL, NULL, &memory) ==
	      -EINVAL);
	CHECK(tshare_cuda_memory_create(ctx, name, TSHARE_UINT16, 1, most, NULL, NULL, &memory) ==
	      -EINVAL);
	CHECK(tshare_cuda_memory_create(ctx, name, TSHARE_UINT8, 33, NULL, NULL, NULL, &memory) ==
	      -EINVAL);
	CHECK(nothing_is_left());
}

TEST(another_gpu_than_the_makers_is_refused)
{
	const struct tshare_cuda_options second = on_device(1), first = on_device(0);
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory, *again;
	struct tshare_region *region;

	stub_set_devices(2);
	CHECK(!tshare_cuda_memory_create(ctx, name, TSHARE_UINT32, 1, words_shape, NULL, &second,
					 &memory));
	region = tshare_cuda_memory_get_region(memory);
	CHECK(tshare_cuda_memory_open(region, &first, &again) == -EINVAL);
	CHECK(error_says("options.device: the memory is on device 1 (GPU-02000000-0000-"));
	CHECK(!setenv("TSHARE_STUB_CUDA", "uuid=9", 1));
	CHECK(run_other("reads-and-writes", name) == EOPNOTSUPP);
	CHECK(!unsetenv("TSHARE_STUB_CUDA"));
	stub_set_uuid(1, 9);
	CHECK(tshare_cuda_memory_open(region, NULL, &again) == -EOPNOTSUPP);
	CHECK(error_says("GPU-02000000-0000-0000-0000-000000000000, "));
	CHECK(error_says("CUDA_VISIBLE_DEVICES"));
	drop(memory);
}

TEST(a_region_opened_readonly_is_refused)
{
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory = new_words(name), *again;
	struct tshare_region *region;

	CHECK(!tshare_region_open(ctx, name, &readonly_options, &region));
	CHECK(tshare_cuda_memory_is(region));
	CHECK(tshare_cuda_memory_open(region, NULL, &again) == -EOPNOTSUPP);
	tshare_region_unref(region);
	drop(memory);
}

TEST(a_region_of_the_hosts_memory_is_enoent)
{
	struct tshare_region *region = region_of(4096);
	struct tshare_cuda_memory *memory;

	CHECK(!tshare_cuda_memory_is(region));
	CHECK(tshare_cuda_memory_open(region, NULL, &memory) == -ENOENT);
	end(region);
}

TEST(a_description_of_more_than_there_is_is_eproto)
{
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory = new_words(name);
	unsigned char *bytes = tshare_region_get_data(tshare_cuda_memory_get_region(memory));

	bytes[8 + 3] = 1; /* 16 MiB more */
	CHECK(run_other("reads-and-writes", name) == EPROTO);
	drop(memory);
}

#define OFFSET_IN_HANDLE (8 + 8 + 16 + 12) /* the stub's */

TEST(a_handle_that_leads_behind_the_start_is_eproto)
{
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory = new_words(name);
	unsigned char *bytes = tshare_region_get_data(tshare_cuda_memory_get_region(memory));

	bytes[OFFSET_IN_HANDLE + 1] = 16; /* the second page */
	CHECK(run_other("reads-and-writes", name) == EPROTO);
	drop(memory);
}

static void copy_record(struct tshare_cuda_memory *to, struct tshare_cuda_memory *from)
{
	memcpy(tshare_region_get_data(tshare_cuda_memory_get_region(to)),
	       tshare_region_get_data(tshare_cuda_memory_get_region(from)), 360);
}

/* Peers may change a description. Whoever opens it then gets what it says. */
TEST(a_changed_description_is_opened_anew)
{
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory = new_words(name), *second = new_words(unique("gpu2"));
	struct steps steps;
	pid_t user;

	words_of(memory)[0] = 1;
	words_of(second)[0] = 2;
	user = start_other("opens-changed", name, &steps);
	CHECK(await_byte(steps.ends[0]));
	copy_record(memory, second);
	CHECK(send_byte(steps.ends[0]) && !end_of(user));
	close(steps.ends[0]);
	CHECK(words_of(second)[0] == 3);
	tshare_cuda_memory_unref(second);
	drop(memory);
}

TEST(two_names_of_the_same_memory_are_opened)
{
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory = new_words(name), *second;

	second = new_words(unique("gpu.copied"));
	copy_record(second, memory);
	CHECK(!run_other("opens-both", name));
	CHECK(words_of(memory)[0] == 42);
	tshare_cuda_memory_unref(second);
	drop(memory);
}

TEST(a_damaged_description_is_eproto)
{
	const char *name = unique("gpu");
	struct tshare_cuda_memory *memory = new_words(name), *again;
	struct tshare_region *region = tshare_cuda_memory_get_region(memory);
	unsigned char *bytes = tshare_region_get_data(region), was;
	static const struct {
		size_t at;
		unsigned char value;
	} damages[] = {
		{ 0, 'x' },	   /* the magic */
		{ 8 + 2, 0 },	   /* the bytes: 0 in all */
		{ 97, 0 },	   /* bits of the type */
		{ 100, 0xff },	   /* the number of dimensions */
		{ 104 + 7, 0xff }, /* the shape: negative */
		{ 104 + 4, 1 },	   /* more than the bytes */
	};
	size_t i;

	for (i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		was = bytes[damages[i].at];
		bytes[damages[i].at] = damages[i].value;
		CHECK(tshare_cuda_memory_open(region, NULL, &again) == -EPROTO);
		CHECK(error_says("region: "));
		bytes[damages[i].at] = was;
	}
	drop(memory);
}

int main(int argc, char **argv)
{
	return argc == 3 ? be_other(argv[1], argv[2]) : tap_main(start, close_context);
}
