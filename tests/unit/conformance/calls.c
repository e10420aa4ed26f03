// SPDX-License-Identifier: MIT
/* What tshare.h says of all calls: signals, errno, descriptors, forks. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "../util.h"

static atomic_int handled;

static void count_signal(int number)
{
	(void)number;
	atomic_fetch_add(&handled, 1);
}

/* Interrupts this thread every 200 us from now on, or no more. */
static void set_interruptions(bool on)
{
	struct itimerval timer = { .it_interval.tv_usec = on ? 200 : 0 };
	struct sigaction action = { .sa_handler = count_signal }; /* no SA_RESTART */

	timer.it_value = timer.it_interval;
	CHECK(!sigaction(SIGALRM, &action, NULL));
	CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
}

static int ignore(const struct tshare_region_info *info, void *data)
{
	(void)info;
	(void)data;
	return 0;
}

/* Calls that don't wait, until they have been interrupted @times. */
static int call_until(int times)
{
	struct tshare_region *region, *opened;
	struct tshare_ctx *own;
	const char *name = unique("calls");
	int err = 0;

	while (!err && atomic_load(&handled) < times) {
		err = tshare_ctx_new(NULL, &own);
		if (err)
			break;
		err = tshare_region_create(own, name, 1 << 20, NULL, 0, NULL, &region);
		if (!err) {
			err = tshare_region_open(own, name, 0, &opened);
			if (!err)
				tshare_region_unref(opened);
			if (!err)
				err = tshare_ctx_list(own, ignore, NULL);
			if (!err)
				err = tshare_region_publish(region, NULL);
			if (!err)
				err = tshare_ctx_unlink(own, name);
			tshare_region_unref(region);
		}
		tshare_ctx_unref(own);
	}
	return err;
}

TEST(no_call_is_interrupted_that_does_not_wait)
{
	int err;

	atomic_store(&handled, 0);
	set_interruptions(true);
	err = call_until(200);
	set_interruptions(false);
	CHECK(!err);
}

TEST(unref_keeps_errno)
{
	struct tshare_waiter *waiter;
	struct tshare_region *region;
	struct tshare_tensor *tensor;
	struct tshare_ctx *own;
	int fd;

	CHECK(!tshare_ctx_new(NULL, &own));
	CHECK(!tshare_tensor_create(own, unique("errno"), TSHARE_UINT8, 2, shape_4x8, NULL,
				    &tensor));
	region = tshare_tensor_get_region(tensor);
	CHECK(!tshare_region_publish(region, NULL));
	CHECK(!tshare_region_get_event_fd(region, &fd));
	CHECK(!tshare_waiter_new(region, &waiter));
	CHECK(!tshare_waiter_get_event_fd(waiter, &fd));
	/* The session that made it finds nothing to remove. */
	CHECK(!tshare_ctx_unlink(ctx, unique("errno")));
	errno = E2BIG;
	tshare_waiter_unref(waiter);
	CHECK(errno == E2BIG);
	tshare_tensor_unref(tensor);
	CHECK(errno == E2BIG);
	tshare_ctx_unref(own);
	CHECK(errno == E2BIG);
}

TEST(every_descriptor_is_closed_on_exec)
{
	bool before[1024];
	struct tshare_region *region, *imported;
	struct tshare_ctx *own;
	int fd, inherited = 0;

	for (fd = 0; fd < 1024; fd++)
		before[fd] = fcntl(fd, F_GETFD) >= 0;
	CHECK(!tshare_ctx_new(NULL, &own));
	CHECK(!tshare_region_create(own, unique("exec"), 1, NULL, 0, NULL, &region));
	CHECK(!tshare_region_import(own, tshare_region_get_fd(region), 0, &imported));
	CHECK(!tshare_region_publish(region, NULL));
	CHECK(!tshare_region_get_event_fd(imported, &fd));
	for (fd = 0; fd < 1024; fd++)
		inherited += !before[fd] && fcntl(fd, F_GETFD) == 0;
	tshare_region_unref(imported);
	tshare_region_unref(region);
	tshare_ctx_unref(own);
	CHECK(!inherited);
}

static int write_and_drop(void *tensor)
{
	*(char *)tshare_tensor_get_data(tensor) = 42;
	tshare_tensor_unref(tensor);
	return 0;
}

TEST(a_child_has_the_memory_and_references_of_its_own)
{
	struct tshare_tensor *tensor = new_tensor(NULL, TSHARE_UINT8, 2, shape_4x8);

	CHECK(!in_child(write_and_drop, tensor));
	CHECK(*(char *)tshare_tensor_get_data(tensor) == 42);
	tshare_tensor_unref(tensor);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
