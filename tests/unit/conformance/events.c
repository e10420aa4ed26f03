// SPDX-License-Identifier: MIT
/* Event descriptors: when they are readable, and the thread that feeds them. */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../partner.h"

static int event_of(struct tshare_region *region)
{
	int fd = -1;

	CHECK(!tshare_region_get_event_fd(region, &fd));
	return fd;
}

static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd entry = { .fd = fd, .events = POLLIN };

	return poll(&entry, 1, timeout_ms) == 1 && entry.revents == POLLIN;
}

/* Waits for news, and acknowledges them. */
static bool await_news(int fd)
{
	eventfd_t count;

	return is_readable(fd, LONG / MS) && !eventfd_read(fd, &count);
}

/* Whether there is no news after a time in which some would have come. */
static bool is_quiet(int fd)
{
	return !is_readable(fd, 300);
}

/* Number of threads of this process, which has only its own if no descriptor is fed. */
static int thread_count(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int count = 0;

	while (tasks && readdir(tasks))
		count++;
	if (tasks)
		closedir(tasks);
	return count - 2;
}

/* One, and another if a sanitizer has a thread, which it starts with the first of the program's. */
static int own_threads;

static void *tell_id(void *id)
{
	*(pid_t *)id = gettid();
	return NULL;
}

/* A thread that was joined is in /proc until the kernel has taken it apart. */
static int count_own_threads(void)
{
	char path[64];
	pthread_t thread;
	pid_t id = 0;
	int i;

	if (!pthread_create(&thread, NULL, tell_id, &id))
		pthread_join(thread, NULL);
	snprintf(path, sizeof(path), "/proc/self/task/%d", id);
	for (i = 0; i < 2000 && !access(path, F_OK); i++)
		sleep_ns(10 * MS);
	return thread_count();
}

static bool no_thread_is_left(void)
{
	int i;

	for (i = 0; i < 2000 && thread_count() > own_threads; i++)
		sleep_ns(10 * MS);
	return thread_count() == own_threads;
}

TEST(a_publish_makes_an_event_descriptor_readable)
{
	const char *name = unique("event");
	struct tshare_region *region = new_region(name);
	struct partner partner = { .name = name, .delay_ns = 50 * MS };
	int fd = event_of(region);
	pid_t pid;

	CHECK(!is_readable(fd, 0));
	pid = start_partner(publish_later, &partner);
	CHECK(is_readable(fd, LONG / MS));
	CHECK(!wait_beyond(region, 0, 0, 1));
	CHECK(!end_of(pid));
	tshare_region_unref(region);
}

TEST(a_reader_has_an_event_descriptor_too)
{
	struct tshare_region *region = new_region(NULL);
	struct tshare_region *reader = another(region, TSHARE_READONLY);
	int fd = event_of(reader);

	publish(region);
	CHECK(await_news(fd));
	CHECK(!wait_beyond(reader, 0, 0, 1));
	tshare_region_unref(reader);
	tshare_region_unref(region);
}

TEST(an_event_descriptor_is_readable_until_it_is_read)
{
	struct tshare_region *region = new_region(NULL);
	int fd = event_of(region);
	eventfd_t count;

	CHECK(eventfd_read(fd, &count) && errno == EAGAIN);
	publish(region);
	CHECK(is_readable(fd, LONG / MS));
	CHECK(!wait_beyond(region, 0, 0, 1));
	CHECK(generation_of(region) == 1);
	CHECK(is_readable(fd, 0));
	CHECK(!eventfd_read(fd, &count));
	CHECK(is_quiet(fd));
	publish(region);
	CHECK(await_news(fd));
	CHECK(!wait_beyond(region, 1, 0, 2));
	tshare_region_unref(region);
}

TEST(each_news_that_was_read_is_followed_by_the_next)
{
	const char *name = unique("news");
	struct tshare_region *region = new_region(name);
	struct tshare_region *other = another(region, 0);
	int fd = event_of(region);
	uint64_t seen;

	for (seen = 0; seen < 2000; seen++) {
		publish(other);
		CHECK(await_news(fd));
		CHECK(!wait_beyond(region, seen, 0, seen + 1));
	}
	tshare_region_unref(other);
	tshare_region_unref(region);
}

TEST(what_was_published_before_is_news_at_first)
{
	struct tshare_region *region = new_region(NULL);
	int fd;

	publish(region);
	fd = event_of(region);
	CHECK(is_readable(fd, 0));
	tshare_region_unref(region);
}

TEST(an_event_descriptor_is_the_same_each_time)
{
	struct tshare_region *region = new_region(NULL);
	int fd = event_of(region);

	CHECK(event_of(region) == fd);
	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
	tshare_region_unref(region);
	CHECK(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
}

TEST(epoll_takes_an_event_descriptor)
{
	struct tshare_region *region = new_region(NULL);
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u32 = 7 }, got;
	int epoll = epoll_create1(EPOLL_CLOEXEC), i;

	CHECK(epoll >= 0);
	CHECK(!epoll_ctl(epoll, EPOLL_CTL_ADD, event_of(region), &event));
	CHECK(!epoll_wait(epoll, &got, 1, 0));
	for (i = 0; i < 10; i++) {
		publish(region);
		CHECK(epoll_wait(epoll, &got, 1, LONG / MS) == 1);
		CHECK(got.data.u32 == 7);
	}
	close(epoll);
	tshare_region_unref(region);
}

/* Dead publishers and cancellation */

TEST(a_killed_publisher_is_news)
{
	const char *name = unique("killed");
	struct tshare_region *region = new_region(name);
	struct partner partner = { .name = name };
	pid_t pid = start_publisher(&partner);
	int fd = event_of(region);

	CHECK(await_news(fd));
	CHECK(!wait_beyond(region, 0, 0, 1));
	CHECK(is_quiet(fd));
	kill_and_reap(pid);
	CHECK(await_news(fd));
	CHECK(wait_beyond(region, 1, 0, 0) == -EOWNERDEAD);
	CHECK(is_quiet(fd));
	close(partner.steps.ends[1]);
	tshare_region_unref(region);
}

TEST(a_publisher_that_was_dead_before_is_news_at_first)
{
	const char *name = unique("dead");
	struct tshare_region *region = new_region(name);
	struct partner partner = { .name = name };

	kill_and_reap(start_publisher(&partner));
	CHECK(await_news(event_of(region)));
	CHECK(wait_beyond(region, 1, 0, 0) == -EOWNERDEAD);
	close(partner.steps.ends[1]);
	tshare_region_unref(region);
}

TEST(the_end_of_a_second_publisher_is_news_too)
{
	struct tshare_region *region = new_region(NULL), *publisher;
	int fd = event_of(region);
	uint64_t i;

	for (i = 1; i <= 3; i++) {
		publisher = another(region, 0);
		publish(publisher);
		CHECK(await_news(fd));
		CHECK(!wait_beyond(region, i - 1, 0, i));
		CHECK(is_quiet(fd));
		tshare_region_unref(publisher);
		CHECK(await_news(fd));
		CHECK(wait_beyond(region, i, 0, 0) == -EOWNERDEAD);
	}
	tshare_region_unref(region);
}

TEST(cancel_is_news)
{
	struct tshare_region *region = new_region(NULL);
	struct tshare_waiter *waiter;
	int fd = event_of(region);

	tshare_region_cancel(region);
	CHECK(await_news(fd));
	CHECK(wait_beyond(region, 0, 0, 0) == -ECANCELED);
	CHECK(!tshare_waiter_new(region, &waiter));
	tshare_waiter_cancel(waiter);
	CHECK(!tshare_waiter_get_event_fd(waiter, &fd));
	CHECK(await_news(fd));
	tshare_waiter_unref(waiter);
	tshare_region_unref(region);
}

/* Several descriptors */

TEST(each_waiter_has_news_of_its_own)
{
	struct tshare_region *region = new_region(NULL);
	struct tshare_waiter *waiters[2];
	int fds[3], i, round;

	fds[2] = event_of(region);
	for (i = 0; i < 2; i++) {
		CHECK(!tshare_waiter_new(region, &waiters[i]));
		CHECK(!tshare_waiter_get_event_fd(waiters[i], &fds[i]));
	}
	for (round = 0; round < 10; round++) {
		publish(region);
		for (i = 0; i < 3; i++)
			CHECK(await_news(fds[i]));
	}
	for (i = 0; i < 2; i++)
		tshare_waiter_unref(waiters[i]);
	CHECK(!is_readable(fds[2], 0));
	publish(region);
	CHECK(await_news(fds[2]));
	tshare_region_unref(region);
}

TEST(many_regions_have_event_descriptors)
{
	enum { MANY = 150 };
	struct tshare_region *regions[MANY];
	int fds[MANY], i;

	CHECK(no_thread_is_left());
	for (i = 0; i < MANY; i++) {
		regions[i] = new_region(NULL);
		fds[i] = event_of(regions[i]);
	}
	CHECK(thread_count() == own_threads + 2);
	for (i = 0; i < MANY; i++) {
		publish(regions[i]);
		CHECK(await_news(fds[i]));
		CHECK(!is_readable(fds[(i + 1) % MANY], 0));
	}
	for (i = 0; i < MANY; i += 2)
		tshare_region_unref(regions[i]);
	for (i = 1; i < MANY; i += 2) {
		publish(regions[i]);
		CHECK(await_news(fds[i]));
		tshare_region_unref(regions[i]);
	}
	CHECK(no_thread_is_left());
}

static void *come_and_go(void *region)
{
	struct tshare_waiter *waiter;
	int i, fd;

	for (i = 0; i < 300; i++) {
		if (tshare_waiter_new(region, &waiter) || tshare_waiter_get_event_fd(waiter, &fd))
			return region;
		if (tshare_region_publish(region, NULL) || !await_news(fd))
			return region;
		tshare_waiter_unref(waiter);
	}
	return NULL;
}

TEST(threads_may_ask_for_event_descriptors_at_the_same_time)
{
	enum { THREADS = 4 };
	struct tshare_region *regions[THREADS];
	size_t before = open_descriptors();
	pthread_t threads[THREADS];
	void *failed;
	int i;

	for (i = 0; i < THREADS; i++) {
		regions[i] = new_region(NULL);
		CHECK(!pthread_create(&threads[i], NULL, come_and_go, regions[i]));
	}
	for (i = 0; i < THREADS; i++) {
		CHECK(!pthread_join(threads[i], &failed));
		CHECK(!failed);
		tshare_region_unref(regions[i]);
	}
	CHECK(open_descriptors() == before);
	CHECK(no_thread_is_left());
}

/* The sum of the numbers of the other threads, which changes with each of them. */
static long other_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;
	long threads = 0;

	while (tasks && (entry = readdir(tasks)))
		if (strtol(entry->d_name, NULL, 10) != getpid())
			threads += strtol(entry->d_name, NULL, 10);
	if (tasks)
		closedir(tasks);
	return threads;
}

/* Where the machine stands still for a moment there is another one. */
TEST(event_descriptors_in_succession_take_one_thread)
{
	enum { COUNT = 40 };
	struct tshare_region *region;
	long threads = 0;
	int i, changes = 0;

	CHECK(no_thread_is_left());
	for (i = 0; i < COUNT; i++) {
		region = new_region(NULL);
		event_of(region);
		changes += other_threads() != threads;
		threads = other_threads();
		tshare_region_unref(region);
		sleep_ns(MS);
	}
	CHECK(changes < COUNT / 2);
	CHECK(no_thread_is_left());
}

TEST(event_descriptors_leave_nothing_behind)
{
	struct tshare_region *region = new_region(NULL), *other;
	size_t before;
	int i;

	CHECK(no_thread_is_left());
	before = open_descriptors();
	for (i = 0; i < 10; i++) {
		other = another(region, i % 2 ? TSHARE_READONLY : 0);
		event_of(other);
		CHECK(thread_count() == own_threads + 1);
		tshare_region_unref(other);
		CHECK(open_descriptors() == before);
		CHECK(no_thread_is_left());
	}
	tshare_region_unref(region);
}

/* Signals, fork(), and kernels that can't sleep on several words */

static volatile sig_atomic_t caught_in;

static void note_thread(int signal)
{
	(void)signal;
	caught_in = gettid();
}

TEST(no_signal_is_handled_in_the_library_s_thread)
{
	struct sigaction action = { .sa_handler = note_thread }, before;
	struct tshare_region *region = new_region(NULL);
	sigset_t blocked, pending, old;
	int fd = event_of(region);

	CHECK(!sigaction(SIGUSR1, &action, &before));
	CHECK(!sigemptyset(&blocked) && !sigaddset(&blocked, SIGUSR1));
	CHECK(!pthread_sigmask(SIG_BLOCK, &blocked, &old));
	caught_in = 0;
	CHECK(!kill(getpid(), SIGUSR1));
	publish(region);
	CHECK(await_news(fd));
	CHECK(!sigpending(&pending) && sigismember(&pending, SIGUSR1));
	CHECK(!caught_in);
	CHECK(!pthread_sigmask(SIG_SETMASK, &old, NULL));
	CHECK(caught_in == getpid());
	CHECK(!sigaction(SIGUSR1, &before, NULL));
	tshare_region_unref(region);
}

struct inherited {
	struct tshare_region *region;
	int fd;
};

static int ask_anew(void *data)
{
	struct inherited *inherited = data;
	int fd;

	alarm(HANG_SECONDS);
	if (fcntl(inherited->fd, F_GETFD) != -1 || thread_count() != 1)
		return 1;
	if (tshare_region_get_event_fd(inherited->region, &fd) || !await_news(fd))
		return 2;
	if (tshare_region_publish(inherited->region, NULL) || !await_news(fd))
		return 3;
	tshare_region_unref(inherited->region);
	return !no_thread_is_left();
}

TEST(a_child_has_an_event_descriptor_when_it_asks_anew)
{
	struct inherited inherited = { .region = new_region(NULL) };

	publish(inherited.region);
	inherited.fd = event_of(inherited.region);
	CHECK(!in_child(ask_anew, &inherited));
	/* The child's publish is news here; the child's read has not consumed it. */
	CHECK(await_news(inherited.fd));
	CHECK(generation_of(inherited.region) == 2);
	publish(inherited.region);
	CHECK(await_news(inherited.fd));
	tshare_region_unref(inherited.region);
}

static int close_inherited(void *data)
{
	struct inherited *inherited = data;

	tshare_region_unref(inherited->region);
	return 0;
}

TEST(a_child_that_closes_leaves_the_parent_its_event_descriptor)
{
	struct inherited inherited = { .region = new_region(NULL) };

	inherited.fd = event_of(inherited.region);
	CHECK(!in_child(close_inherited, &inherited));
	publish(inherited.region);
	CHECK(await_news(inherited.fd));
	tshare_region_unref(inherited.region);
}

static int exit_with_an_event(void *region)
{
	struct tshare_region *own = another(region, 0);
	int fd;

	if (tshare_region_get_event_fd(own, &fd) || tshare_region_publish(own, NULL))
		return 1;
	exit(0);
}

TEST(a_process_may_exit_with_its_event_descriptors)
{
	struct tshare_region *region = new_region(NULL);
	int i;

	for (i = 0; i < 20; i++)
		CHECK(!in_child(exit_with_an_event, region));
	tshare_region_unref(region);
}

static int use_events_without_waitv(void *unused)
{
	struct tshare_region *regions[3], *publisher;
	int fds[3], i;

	(void)unused;
	alarm(HANG_SECONDS);
	if (!forbid_waitv(ENOSYS))
		return 77;
	own_threads = count_own_threads();
	for (i = 0; i < 3; i++) {
		regions[i] = new_region(NULL);
		fds[i] = event_of(regions[i]);
	}
	for (i = 0; i < 3; i++) {
		publisher = another(regions[i], 0);
		publish(publisher);
		if (!await_news(fds[i]))
			return 1;
		tshare_region_unref(publisher);
		if (!await_news(fds[i]) || wait_beyond(regions[i], 1, 0, 0) != -EOWNERDEAD)
			return 2;
		tshare_region_unref(regions[i]);
	}
	return !no_thread_is_left();
}

TEST(event_descriptors_work_where_the_kernel_has_no_futex_waitv)
{
	int status = in_child(use_events_without_waitv, NULL);

	if (status == 77)
		SKIP("the kernel has no seccomp filters");
	CHECK(!status);
}

/* The time from a publish to the news, with a thread that has slept on another counter. */
static int64_t delay_after_another(void)
{
	struct tshare_region *before = new_region(NULL), *region = new_region(NULL);
	int64_t begin;
	int fd;

	event_of(before);
	sleep_ns(20 * MS);
	tshare_region_unref(before);
	fd = event_of(region);
	sleep_ns(5 * MS);
	begin = now_ns();
	publish(region);
	CHECK(await_news(fd));
	tshare_region_unref(region);
	return now_ns() - begin;
}

static int measure_without_waitv(void *unused)
{
	int i;

	(void)unused;
	alarm(HANG_SECONDS);
	if (!forbid_waitv(ENOSYS))
		return 77;
	for (i = 0; i < 20; i++)
		if (delay_after_another() < 30 * MS)
			return 0;
	return 1;
}

TEST(without_futex_waitv_news_of_one_region_do_not_wait_for_another)
{
	int status = in_child(measure_without_waitv, NULL);

	if (status == 77)
		SKIP("the kernel has no seccomp filters");
	CHECK(!status);
}

static int count_threads_without_waitv(void *unused)
{
	enum { COUNT = 50 };
	struct tshare_region *region = new_region(NULL);
	struct tshare_waiter *waiters[COUNT];
	int fds[COUNT], i;

	(void)unused;
	alarm(HANG_SECONDS);
	if (!forbid_waitv(ENOSYS))
		return 77;
	for (i = 0; i < COUNT; i++)
		if (tshare_waiter_new(region, &waiters[i]) ||
		    tshare_waiter_get_event_fd(waiters[i], &fds[i]))
			return 1;
	if (thread_count() > own_threads + 1)
		return 2;
	publish(region);
	for (i = 0; i < COUNT; i++) {
		if (!await_news(fds[i]))
			return 3;
		tshare_waiter_unref(waiters[i]);
	}
	tshare_region_unref(region);
	return !no_thread_is_left();
}

TEST(without_futex_waitv_a_region_takes_one_thread)
{
	int status = in_child(count_threads_without_waitv, NULL);

	if (status == 77)
		SKIP("the kernel has no seccomp filters");
	CHECK(!status);
}

int main(void)
{
	own_threads = count_own_threads();
	return tap_main(open_context, close_context);
}
