// SPDX-License-Identifier: MIT
/*
 * The waker is a thread that starts with the first watch, and ends IDLE_NS after the last one.
 * It reads the events of one instance of inotify(7), of which an account may have few, and wakes
 * the watches of the name that an event is about. When the pipe of a draft has lost its reader,
 * the maker of the draft has ended.
 *
 * The last watch of a directory ends inotify's watch, too, and the event IN_IGNORED wakes the
 * waker. So the waker runs only while it watches a directory.
 *
 * Any account may make files in the directory, as fast as the kernel can. So the waker reads
 * events without the process's lock, and list_of() leaves few names to compare with a file's.
 *
 * Where inotify can't report changes, because a limit is reached or the directory may not be read,
 * a waiting thread polls.
 */
#define _GNU_SOURCE 1
#include "backend/shm/watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/futex.h"
#include "base/process.h"
#include "base/thread.h"

/*
 * Homes come and go by renames; other programs may make and remove entries. A home that stays
 * without its region has new times, see shm_home_report().
 */
#define WATCHED (IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_ATTRIB)

/*
 * How long the waker stays without watches, as waits often follow one another. Closing an
 * instance takes many milliseconds just after its last watch has ended, and none after this time.
 */
#define IDLE_NS (NSEC_PER_SEC / 10)

/* The pauses of a thread that polls: each is twice the one before. */
#define SHORTEST_PAUSE_NS (NSEC_PER_SEC / 1000)
#define LONGEST_PAUSE_NS  (NSEC_PER_SEC / 10)

/* Events that one epoll_wait() returns. */
#define EVENTS 16

#define LISTS 64

/* Under the process's lock. */
static struct {
	LIST_HEAD(, shm_watch) watches[LISTS]; /* hashed by list_of(file) */
	unsigned int reported;		       /* how many of them have a directory */
	int inotify;			       /* -1 if there is no thread */
	int epoll;			       /* of @inotify and of drafts' pipes */
	int64_t idle_since;
} waker = { .inotify = -1, .epoll = -1 };

static unsigned int list_of(const char *file)
{
	uint32_t hash = 2166136261;

	while (*file)
		hash = (hash ^ (unsigned char)*file++) * 16777619;
	return hash % LISTS;
}

static struct shm_watch *first_watch(unsigned int list)
{
	struct shm_watch *watch = NULL;

	while (!watch && list < LISTS)
		watch = LIST_FIRST(&waker.watches[list++]);
	return watch;
}

static struct shm_watch *next_watch(const struct shm_watch *watch)
{
	struct shm_watch *next = LIST_NEXT(watch, entry);

	return next ? next : first_watch(list_of(watch->file) + 1);
}

static void waker_close(void)
{
	close(waker.epoll);
	close(waker.inotify);
	waker.epoll = -1;
	waker.inotify = -1;
}

/*
 * The waker and the waits of other threads are the parent's alone. If a signal handler or a
 * check has forked, the wait of the child's thread ends, or goes on: it then lists its watch
 * again, and knows its draft by the pipe.
 */
static void after_fork_in_child(void)
{
	struct shm_watch *watch, *next;

	for (watch = first_watch(0); watch; watch = next) {
		next = next_watch(watch);
		if (watch->maker >= 0 && !pthread_equal(watch->thread, pthread_self())) {
			close(watch->maker);
			watch->maker = -ENOENT;
		}
		watch->maker_watched = false;
		watch->directory = -1;
		watch->listed = false;
	}
	memset(waker.watches, 0, sizeof(waker.watches));
	waker.reported = 0;
	if (waker.inotify >= 0)
		waker_close();
}

static const struct process_hooks hooks = { .in_child = after_fork_in_child };

/* The thread */

static void wake(struct shm_watch *watch)
{
	atomic_fetch_add(&watch->changes, 1);
	futex_wake_private(&watch->changes);
	if (watch->event >= 0)
		eventfd_write(watch->event, 1);
}

/* For events that were lost. */
static void wake_all(void)
{
	struct shm_watch *watch;

	for (watch = first_watch(0); watch; watch = next_watch(watch))
		wake(watch);
}

static void take_change(const struct inotify_event *event)
{
	struct shm_watch *watch;

	LIST_FOREACH(watch, &waker.watches[list_of(event->name)], entry)
	if (event->wd == watch->directory && !strcmp(event->name, watch->file))
		wake(watch);
}

static void take_changes(const char *buffer, ssize_t size)
{
	const struct inotify_event *event;
	ssize_t i;

	for (i = 0; i < size; i += sizeof(*event) + event->len) {
		event = (const void *)(buffer + i);
		if (event->mask & IN_Q_OVERFLOW)
			wake_all();
		else if (event->len)
			take_change(event);
	}
}

static void take_end_of_maker(int maker)
{
	struct shm_watch *watch;

	for (watch = first_watch(0); watch; watch = next_watch(watch))
		if (watch->maker == maker)
			wake(watch);
}

/* How long to sleep, in milliseconds: -1 for ever, 0 to end. */
static int time_to_sleep(void)
{
	int64_t left;

	if (waker.reported)
		return -1;
	left = waker.idle_since + IDLE_NS - clock_ns();
	return left > 0 ? left * 1000 / NSEC_PER_SEC + 1 : 0;
}

/* Opens and closes descriptors under the lock alone, so a child of fork() can close them. */
static void *waker_run(void *unused)
{
	_Alignas(struct inotify_event) char buffer[4096];
	struct epoll_event events[EVENTS];
	int timeout, count, inotify, epoll, i;
	ssize_t size;

	(void)unused;
	pthread_setname_np(pthread_self(), "tshare-names");
	process_lock();
	inotify = waker.inotify;
	epoll = waker.epoll;
	while ((timeout = time_to_sleep())) {
		process_unlock();
		count = epoll_wait(epoll, events, EVENTS, timeout);
		size = read(inotify, buffer, sizeof(buffer));
		process_lock();
		take_changes(buffer, size);
		for (i = 0; i < count; i++)
			if (events[i].data.fd != inotify)
				take_end_of_maker(events[i].data.fd);
	}
	waker_close();
	process_unlock();
	return NULL;
}

static bool waker_add(int fd, uint32_t wanted)
{
	struct epoll_event event = { .events = wanted, .data.fd = fd };

	return !epoll_ctl(waker.epoll, EPOLL_CTL_ADD, fd, &event);
}

static bool waker_open(void)
{
	waker.inotify = fd_move_up(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
	if (waker.inotify < 0)
		return false;
	waker.epoll = fd_move_up(epoll_create1(EPOLL_CLOEXEC));
	if (waker.epoll >= 0 && waker_add(waker.inotify, EPOLLIN))
		return true;
	waker_close();
	return false;
}

/* Watches, with the process's lock held */

static void list_watch(struct shm_watch *watch)
{
	LIST_INSERT_HEAD(&waker.watches[list_of(watch->file)], watch, entry);
	watch->listed = true;
}

static bool add_directory(struct shm_watch *watch, int dir)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	watch->directory = inotify_add_watch(waker.inotify, path, WATCHED | IN_ONLYDIR);
	return watch->directory >= 0;
}

/* Starts the thread, unless it runs. */
static void watch_directory(struct shm_watch *watch, int dir)
{
	const bool runs = waker.inotify >= 0;

	if (!runs && !waker_open())
		return;
	if (add_directory(watch, dir) && (runs || !thread_start(waker_run, NULL))) {
		waker.reported++;
		return;
	}
	watch->directory = -1;
	if (!runs)
		waker_close();
}

/* Ends inotify's watch of the directory if no other watch needs it. */
static void leave_directory(struct shm_watch *watch)
{
	const struct shm_watch *other;

	if (watch->directory < 0)
		return;
	waker.reported--;
	waker.idle_since = clock_ns();
	for (other = first_watch(0); other; other = next_watch(other))
		if (other->directory == watch->directory)
			return;
	inotify_rm_watch(waker.inotify, watch->directory);
}

/* A child may have the pipe open, too: closing it here alone would leave it with epoll. */
static void leave_maker(struct shm_watch *watch)
{
	if (watch->maker_watched)
		epoll_ctl(waker.epoll, EPOLL_CTL_DEL, watch->maker, NULL);
	watch->maker_watched = false;
	if (watch->maker >= 0)
		close(watch->maker);
}

/* Waiting */

void shm_watch_begin(struct shm_watch *watch, const char *name, int event)
{
	*watch = (struct shm_watch){
		.directory = -1,
		.maker = -ENOENT,
		.pause = SHORTEST_PAUSE_NS,
		.event = event,
		.thread = pthread_self(),
	};
	shm_home_name(watch->file, name);
	process_lock();
	process_join(PROCESS_SHM_WATCHES, &hooks);
	list_watch(watch);
	process_unlock();
}

void shm_watch_end(struct shm_watch *watch)
{
	process_lock();
	leave_maker(watch);
	if (watch->listed)
		LIST_REMOVE(watch, entry);
	leave_directory(watch);
	process_unlock();
}

uint32_t shm_watch_prepare(struct shm_watch *watch, int dir)
{
	if (watch->directory < 0) {
		process_lock();
		if (!watch->listed)
			list_watch(watch);
		watch_directory(watch, dir);
		process_unlock();
	}
	return atomic_load(&watch->changes);
}

/* A thread that polls needs no event, and the waker may end meanwhile. */
void shm_watch_maker(struct shm_watch *watch, int maker)
{
	process_lock();
	leave_maker(watch);
	watch->maker = maker;
	if (maker >= 0 && watch->directory >= 0)
		watch->maker_watched = waker_add(maker, EPOLLONESHOT);
	process_unlock();
}

bool shm_watch_is_woken(const struct shm_watch *watch)
{
	return watch->directory >= 0 && (watch->maker == -ENOENT || watch->maker_watched);
}

int shm_watch_sleep(struct shm_watch *watch, uint32_t changes, int64_t deadline)
{
	int64_t now = clock_ns(), until = deadline;
	int err;

	if (now >= deadline)
		return -ETIMEDOUT;
	if (!shm_watch_is_woken(watch)) {
		if (watch->pause < deadline - now)
			until = now + watch->pause;
		if (watch->pause < LONGEST_PAUSE_NS)
			watch->pause *= 2;
	}
	err = futex_sleep_private(&watch->changes, changes, until);
	return err == -EINTR ? err : 0;
}
