// SPDX-License-Identifier: MIT
/*
 * The watcher is a thread that starts with the first watch, and ends some time after the last
 * one. It reads the events of one instance of inotify(7), of which a user may have few, and wakes
 * those whose name an event is about. A draft's pipe that has lost its reader is the end of the
 * draft's maker.
 *
 * To close an instance takes the kernel many milliseconds, for which nobody waits but the
 * watcher. It learns that the last watch has ended by the event IN_IGNORED, with which the
 * directory is watched no longer.
 *
 * A thread that can't be woken so looks now and then: where a limit is reached, or the directory may
 * not be read.
 */
#define _GNU_SOURCE 1
#include "shm/watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "fd.h"
#include "futex.h"
#include "lock.h"
#include "thread.h"

/* Renames bring and take homes; other programs may make and remove what is there. */
#define WATCHED (IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE)

/* How long the watcher stays without watches: waits often follow one another. */
#define IDLE_NS (NSEC_PER_SEC / 10)

/* The pauses between two looks of a thread that isn't woken: each is twice the one before. */
#define SHORTEST_PAUSE_NS (NSEC_PER_SEC / 1000)
#define LONGEST_PAUSE_NS  (NSEC_PER_SEC / 10)

/* What the watcher takes from epoll at once. */
#define EVENTS 16

/* Under the process's lock. */
static struct {
	LIST_HEAD(, shm_watch) watches;
	int inotify; /* -1 if there is no thread */
	int epoll;   /* of @inotify and of drafts' pipes */
	int64_t idle_since;
} watcher = { .inotify = -1, .epoll = -1 };

/* The thread is the parent's alone, and so are the waits of its other threads. */
static void after_fork_in_child(void)
{
	struct shm_watch *watch;

	LIST_FOREACH(watch, &watcher.watches, entry)
	{
		if (watch->maker >= 0)
			close(watch->maker);
		watch->forked = true;
	}
	LIST_INIT(&watcher.watches);
	if (watcher.inotify < 0)
		return;
	close(watcher.epoll);
	close(watcher.inotify);
	watcher.inotify = -1;
	watcher.epoll = -1;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, after_fork_in_child);
}

/* The thread */

static void wake(struct shm_watch *watch)
{
	atomic_fetch_add(&watch->changes, 1);
	futex_wake_private(&watch->changes);
	if (watch->event >= 0)
		eventfd_write(watch->event, 1);
}

/* Whether the event is about the home of the watch's name, or may be: some may have been lost. */
static bool concerns(const struct inotify_event *event, const struct shm_watch *watch)
{
	if (event->mask & IN_Q_OVERFLOW)
		return true;
	return event->wd == watch->directory && (!event->len || !strcmp(event->name, watch->file));
}

static void take_changes(void)
{
	_Alignas(struct inotify_event) char buffer[4096];
	const struct inotify_event *event;
	struct shm_watch *watch;
	ssize_t size, i;

	while ((size = read(watcher.inotify, buffer, sizeof(buffer))) > 0) {
		for (i = 0; i < size; i += sizeof(*event) + event->len) {
			event = (const void *)(buffer + i);
			LIST_FOREACH(watch, &watcher.watches, entry)
			if (concerns(event, watch))
				wake(watch);
		}
	}
}

static void take_end_of_maker(int maker)
{
	struct shm_watch *watch;

	LIST_FOREACH(watch, &watcher.watches, entry)
	if (watch->maker == maker)
		wake(watch);
}

/* How long to sleep, in milliseconds: -1 for ever, 0 to end. */
static int time_to_sleep(void)
{
	int64_t left;

	if (!LIST_EMPTY(&watcher.watches))
		return -1;
	left = watcher.idle_since + IDLE_NS - clock_ns();
	return left > 0 ? left * 1000 / NSEC_PER_SEC + 1 : 0;
}

static void *watcher_run(void *unused)
{
	struct epoll_event events[EVENTS];
	int timeout, count, inotify, epoll, i;

	(void)unused;
	pthread_setname_np(pthread_self(), "tshare-names");
	tshare_lock();
	epoll = watcher.epoll;
	while ((timeout = time_to_sleep())) {
		tshare_unlock();
		count = epoll_wait(epoll, events, EVENTS, timeout);
		tshare_lock();
		for (i = 0; i < count; i++) {
			if (events[i].data.fd == watcher.inotify)
				take_changes();
			else
				take_end_of_maker(events[i].data.fd);
		}
	}
	inotify = watcher.inotify;
	watcher.inotify = -1;
	watcher.epoll = -1;
	tshare_unlock();
	close(epoll);
	close(inotify);
	return NULL;
}

static bool watcher_add(int fd, uint32_t wanted)
{
	struct epoll_event event = { .events = wanted, .data.fd = fd };

	return !epoll_ctl(watcher.epoll, EPOLL_CTL_ADD, fd, &event);
}

/* Starts the thread, unless it runs. */
static bool watcher_start(void)
{
	if (watcher.inotify >= 0)
		return true;
	watcher.inotify = fd_move_up(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
	if (watcher.inotify < 0)
		return false;
	watcher.epoll = fd_move_up(epoll_create1(EPOLL_CLOEXEC));
	watcher.idle_since = clock_ns();
	if (watcher.epoll >= 0 && watcher_add(watcher.inotify, EPOLLIN) &&
	    !thread_start(watcher_run, NULL))
		return true;
	if (watcher.epoll >= 0)
		close(watcher.epoll);
	close(watcher.inotify);
	watcher.epoll = -1;
	watcher.inotify = -1;
	return false;
}

/* Watches, with the process's lock held */

static void watch_directory(struct shm_watch *watch, int dir)
{
	char path[32];

	if (watch->directory >= 0 || !watcher_start())
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	watch->directory = inotify_add_watch(watcher.inotify, path, WATCHED | IN_ONLYDIR);
}

/* Without other watches of the directory it has no more events. */
static void leave_directory(struct shm_watch *watch)
{
	const struct shm_watch *other;

	if (watch->directory < 0)
		return;
	LIST_FOREACH(other, &watcher.watches, entry)
	if (other->directory == watch->directory)
		return;
	inotify_rm_watch(watcher.inotify, watch->directory);
}

/* The pipe may be open in a child, too: it isn't watched until its last descriptor is closed. */
static void leave_maker(struct shm_watch *watch)
{
	if (watch->maker_watched)
		epoll_ctl(watcher.epoll, EPOLL_CTL_DEL, watch->maker, NULL);
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
	};
	shm_home_name(watch->file, name);
	tshare_lock();
	LIST_INSERT_HEAD(&watcher.watches, watch, entry);
	tshare_unlock();
}

void shm_watch_end(struct shm_watch *watch)
{
	if (watch->forked)
		return;
	tshare_lock();
	leave_maker(watch);
	LIST_REMOVE(watch, entry);
	leave_directory(watch);
	watcher.idle_since = clock_ns();
	tshare_unlock();
}

uint32_t shm_watch_prepare(struct shm_watch *watch, int dir)
{
	if (watch->directory < 0) {
		tshare_lock();
		watch_directory(watch, dir);
		tshare_unlock();
	}
	return atomic_load(&watch->changes);
}

void shm_watch_maker(struct shm_watch *watch, int maker)
{
	tshare_lock();
	leave_maker(watch);
	watch->maker = maker;
	if (maker >= 0 && watcher.epoll >= 0)
		watch->maker_watched = watcher_add(maker, EPOLLONESHOT);
	tshare_unlock();
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
