// SPDX-License-Identifier: MIT
/* Cancelled and interrupted waits, also on kernels without futex_waitv(). */
#define _GNU_SOURCE 1
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "../partner.h"

/* A thread that waits for a generation above @seen, and its result. */
struct sleeper {
	struct tshare_region *region;
	struct tshare_waiter *waiter; /* waits instead of the region if not NULL */
	uint64_t seen;
	int64_t spin_ns;
	int err;
	pthread_t thread;
};

static void *sleep_in_thread(void *data)
{
	struct sleeper *sleeper = data;
	uint64_t generation;

	sleeper->err = sleeper->waiter ? tshare_waiter_wait(sleeper->waiter, sleeper->seen, LONG,
							    sleeper->spin_ns, &generation) :
					 tshare_region_wait(sleeper->region, sleeper->seen, LONG,
							    sleeper->spin_ns, &generation);
	return NULL;
}

static void start(struct sleeper *sleeper)
{
	CHECK(!pthread_create(&sleeper->thread, NULL, sleep_in_thread, sleeper));
}

static int result_of(struct sleeper *sleeper)
{
	CHECK(!pthread_join(sleeper->thread, NULL));
	return sleeper->err;
}

/* A sleeper that isn't woken ends, too, but at its timeout. */
TEST(cancel_ends_a_wait)
{
	struct sleeper sleepers[3] = { 0 };
	struct tshare_region *region = new_region(NULL);
	int64_t begin = now_ns();
	int i;

	for (i = 0; i < 3; i++) {
		sleepers[i].region = region;
		start(&sleepers[i]);
	}
	sleep_ns(50 * MS);
	tshare_region_cancel(region);
	for (i = 0; i < 3; i++)
		CHECK(result_of(&sleepers[i]) == -ECANCELED);
	CHECK(now_ns() - begin < LONG / 2);
	tshare_region_unref(region);
}

static void *wait_for_the_largest_time(void *data)
{
	struct sleeper *sleeper = data;
	uint64_t generation;

	sleeper->err =
		tshare_region_wait(sleeper->region, 0, INT64_MAX, sleeper->spin_ns, &generation);
	return NULL;
}

/* In a process that ends by itself if the spin doesn't. */
static int cancel_an_endless_spin(void *unused)
{
	struct sleeper sleeper = { .region = new_region(NULL), .spin_ns = INT64_MAX };

	(void)unused;
	alarm(HANG_SECONDS);
	if (pthread_create(&sleeper.thread, NULL, wait_for_the_largest_time, &sleeper))
		return 1;
	sleep_ns(50 * MS);
	tshare_region_cancel(sleeper.region);
	return pthread_join(sleeper.thread, NULL) || sleeper.err != -ECANCELED;
}

TEST(cancel_ends_a_spin)
{
	CHECK(!in_child(cancel_an_endless_spin, NULL));
}

TEST(a_wait_takes_the_largest_timeout)
{
	struct sleeper sleeper = { .region = new_region(NULL) };

	CHECK(!pthread_create(&sleeper.thread, NULL, wait_for_the_largest_time, &sleeper));
	sleep_ns(50 * MS);
	CHECK(!tshare_region_publish(sleeper.region, NULL));
	CHECK(!result_of(&sleeper));
	tshare_region_unref(sleeper.region);
}

/* The wait may begin before or after the cancellation. */
TEST(no_cancel_is_lost)
{
	int i, times = rounds(500);

	for (i = 0; i < times; i++) {
		struct sleeper sleeper = { .region = new_region(NULL) };

		start(&sleeper);
		sleep_ns(i * INT64_C(50000) / times);
		tshare_region_cancel(sleeper.region);
		CHECK(result_of(&sleeper) == -ECANCELED);
		tshare_region_unref(sleeper.region);
	}
}

TEST(cancel_ends_each_later_wait)
{
	struct tshare_region *region = new_region(NULL);

	tshare_region_cancel(region);
	CHECK(wait_beyond(region, 0, -1, 0) == -ECANCELED);
	CHECK(error_says("cancelled"));
	CHECK(wait_beyond(region, 0, 0, 0) == -ECANCELED);
	publish(region);
	CHECK(generation_of(region) == 1);
	CHECK(wait_beyond(region, 0, -1, 0) == -ECANCELED);
	tshare_region_unref(region);
}

TEST(cancel_ends_the_waits_of_one_object)
{
	struct tshare_region *region = new_region(NULL);
	struct sleeper sleeper = { .region = another(region, TSHARE_READONLY) };

	start(&sleeper);
	sleep_ns(50 * MS);
	tshare_region_cancel(region);
	sleep_ns(50 * MS);
	publish(region);
	CHECK(!result_of(&sleeper));
	tshare_region_unref(sleeper.region);
	tshare_region_unref(region);
}

TEST(a_waiter_is_cancelled_by_itself)
{
	struct tshare_region *region = new_region(NULL);
	struct sleeper one = { 0 }, two = { 0 }, three = { .region = region };

	CHECK(!tshare_waiter_new(region, &one.waiter));
	CHECK(!tshare_waiter_new(region, &two.waiter));
	start(&one);
	start(&two);
	start(&three);
	sleep_ns(50 * MS);
	tshare_waiter_cancel(one.waiter);
	CHECK(result_of(&one) == -ECANCELED);
	tshare_region_cancel(region);
	CHECK(result_of(&three) == -ECANCELED);
	publish(region);
	CHECK(!result_of(&two));
	tshare_waiter_unref(one.waiter);
	tshare_waiter_unref(two.waiter);
	tshare_region_unref(region);
}

TEST(a_waiter_keeps_its_region)
{
	struct tshare_region *region = new_region(NULL), *other = another(region, 0);
	struct tshare_waiter *waiter;
	uint64_t generation;

	CHECK(!tshare_waiter_new(region, &waiter));
	tshare_region_unref(region);
	CHECK(tshare_waiter_ref(waiter) == waiter);
	CHECK(!tshare_waiter_unref(waiter));
	publish(other);
	CHECK(!tshare_waiter_wait(waiter, 0, LONG, 0, &generation));
	CHECK(generation == 1);
	CHECK(!tshare_waiter_unref(waiter));
	CHECK(!tshare_waiter_unref(NULL));
	tshare_region_unref(other);
}

/* A publish by the same object does not count as another publisher's. */
TEST(a_waiter_does_not_wait_for_its_own_object)
{
	struct tshare_region *region = new_region(NULL), *other = another(region, 0);
	struct tshare_waiter *waiter;
	uint64_t generation;

	CHECK(!tshare_waiter_new(region, &waiter));
	publish(region);
	publish(other);
	tshare_region_unref(other);
	CHECK(tshare_waiter_wait(waiter, 2, LONG, 0, &generation) == -EOWNERDEAD);
	tshare_waiter_unref(waiter);
	tshare_region_unref(region);
}

/* Signals and cancelled threads */

static void note_signal(int signal)
{
	(void)signal;
}

struct sender {
	pthread_t thread, target;
	atomic_bool done;
};

/* A signal that comes before the wait has begun doesn't end it. */
static void *send_signals(void *data)
{
	struct sender *sender = data;

	while (!atomic_load(&sender->done)) {
		sleep_ns(10 * MS);
		pthread_kill(sender->target, SIGUSR1);
	}
	return NULL;
}

/* Returns the result of a wait of that length during which SIGUSR1 arrives. */
static int wait_under_signals(int flags, int64_t timeout_ns)
{
	struct sigaction action = { .sa_handler = note_signal, .sa_flags = flags }, before;
	struct tshare_region *region = new_region(NULL);
	struct sender sender = { .target = pthread_self(), .done = false };
	int err;

	CHECK(!sigaction(SIGUSR1, &action, &before));
	CHECK(!pthread_create(&sender.thread, NULL, send_signals, &sender));
	err = wait_beyond(region, 0, timeout_ns, 0);
	atomic_store(&sender.done, true);
	CHECK(!pthread_join(sender.thread, NULL));
	CHECK(!sigaction(SIGUSR1, &before, NULL));
	tshare_region_unref(region);
	return err;
}

TEST(a_signal_handler_ends_a_wait)
{
	CHECK(wait_under_signals(0, LONG) == -EINTR);
	CHECK(wait_under_signals(0, -1) == -EINTR);
}

TEST(a_wait_goes_on_after_a_handler_with_sa_restart)
{
	int64_t start = now_ns();

	CHECK(wait_under_signals(SA_RESTART, 300 * MS) == -ETIMEDOUT);
	CHECK(now_ns() - start >= 300 * MS);
}

static void *wait_for_ever(void *region)
{
	uint64_t generation;

	tshare_region_wait(region, 0, -1, 0, &generation);
	pthread_testcancel();
	return NULL;
}

TEST(a_wait_is_no_cancellation_point)
{
	struct tshare_region *region = new_region(NULL);
	struct timespec soon;
	pthread_t thread;
	void *result;

	CHECK(!pthread_create(&thread, NULL, wait_for_ever, region));
	sleep_ns(50 * MS);
	CHECK(!pthread_cancel(thread));
	CHECK(!clock_gettime(CLOCK_REALTIME, &soon));
	soon.tv_sec++;
	CHECK(pthread_timedjoin_np(thread, &result, &soon) == ETIMEDOUT);
	tshare_region_cancel(region);
	CHECK(!pthread_join(thread, &result));
	CHECK(result == PTHREAD_CANCELED);
	tshare_region_unref(region);
}

static void *wait_cancelled(void *data)
{
	pthread_cancel(pthread_self());
	sleep_in_thread(data);
	pthread_testcancel();
	return NULL;
}

/* Waits in a context of its own: the next look for the dead is a second after the last one. */
static void check_cancelled_wait(struct tshare_region *region, bool with_waiter)
{
	struct sleeper sleeper = { .seen = 1 };
	struct tshare_ctx *own;
	void *result;

	CHECK(!ctx_new(NULL, &own));
	CHECK(!tshare_region_import(own, tshare_region_get_fd(region), 0, &sleeper.region));
	CHECK(!with_waiter || !tshare_waiter_new(sleeper.region, &sleeper.waiter));
	CHECK(!pthread_create(&sleeper.thread, NULL, wait_cancelled, &sleeper));
	CHECK(!pthread_join(sleeper.thread, &result));
	CHECK(sleeper.err == -EOWNERDEAD && result == PTHREAD_CANCELED);
	tshare_waiter_unref(sleeper.waiter);
	tshare_region_unref(sleeper.region);
	tshare_ctx_unref(own);
}

/* On shm a wait that finds a publisher dead looks for what else the dead have left. */
TEST(a_wait_for_a_dead_publisher_is_no_cancellation_point)
{
	struct tshare_region *region = new_region(NULL);
	struct partner partner = { .region = region };

	kill_and_reap(start_publisher(&partner));
	check_cancelled_wait(region, false);
	check_cancelled_wait(region, true);
	tshare_region_unref(region);
}

static int wait_in_child(void *region)
{
	alarm(HANG_SECONDS);
	if (wait_beyond(region, 1, 50 * MS, 0) != -ETIMEDOUT)
		return 1;
	tshare_region_cancel(region);
	return wait_beyond(region, 1, -1, 0) == -ECANCELED ? 0 : 2;
}

TEST(a_child_cancels_only_its_own_waits)
{
	struct sleeper sleeper = { .region = new_region(NULL), .seen = 1 };

	publish(sleeper.region);
	start(&sleeper);
	sleep_ns(20 * MS);
	CHECK(!in_child(wait_in_child, sleeper.region));
	publish(sleeper.region);
	CHECK(!result_of(&sleeper));
	tshare_region_unref(sleeper.region);
}

/* Kernels that can't sleep on several words */

struct without {
	int err; /* error that futex_waitv() fails with */
	const char *name;
};

static int wait_without_waitv(void *data)
{
	const struct without *without = data;
	struct partner partner = { .name = without->name, .delay_ns = 150 * MS };
	struct tshare_region *region = open_as_partner(&partner);
	pid_t pid;

	alarm(HANG_SECONDS);
	if (!forbid_waitv(without->err))
		return 77;
	if (wait_beyond(region, 0, 250 * MS, 0) != -ETIMEDOUT)
		return 1;
	pid = start_partner(publish_later, &partner);
	if (wait_beyond(region, 0, -1, 1))
		return 2;
	if (end_of(pid) || wait_beyond(region, 1, -1, 0) != -EOWNERDEAD)
		return 3;
	return 0;
}

static void check_without_waitv(int err)
{
	struct without without = { err, unique("without") };
	struct tshare_region *region = new_region(without.name);
	int status = in_child(wait_without_waitv, &without);

	if (status == 77)
		SKIP("the kernel has no seccomp filters");
	CHECK(!status);
	tshare_region_unref(region);
}

TEST(waits_work_where_a_filter_forbids_futex_waitv)
{
	check_without_waitv(EPERM);
}

TEST(waits_work_where_the_kernel_has_no_futex_waitv)
{
	check_without_waitv(ENOSYS);
}

static int cancel_without_waitv(void *data)
{
	struct sleeper sleeper = { .region = data };

	alarm(HANG_SECONDS);
	if (!forbid_waitv(ENOSYS))
		return 77;
	start(&sleeper);
	sleep_ns(20 * MS);
	tshare_region_cancel(sleeper.region);
	return result_of(&sleeper) == -ECANCELED ? 0 : 1;
}

TEST(cancel_works_where_the_kernel_has_no_futex_waitv)
{
	struct tshare_region *region = new_region(NULL);
	int status = in_child(cancel_without_waitv, region);

	if (status == 77)
		SKIP("the kernel has no seccomp filters");
	CHECK(!status);
	tshare_region_unref(region);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
