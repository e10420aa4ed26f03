// SPDX-License-Identifier: MIT
/* Watchers: poll() or a thread waits on one until a name leads elsewhere. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/export.h"
#include "base/fd.h"
#include "base/refcount.h"
#include "base/thread.h"
#include "ctx.h"
#include "format/region-name.h"

struct tshare_watcher {
	atomic_uint refs;
	struct tshare_ctx *ctx;
	pid_t pid; /* a child of fork() would take its parent's news */
	int epoll; /* readable when the backend's descriptor or @cancel is */
	int cancel;
	atomic_bool cancelled;
	atomic_flag waiting;
	void *watch; /* the backend's */
	char name[TSHARE_NAME_LEN];
};

static int fail_errno(const struct tshare_watcher *watcher, const char *call)
{
	int err = -errno;

	return fail(err, "name '%s': %s: %s", watcher->name, call, strerror(-err));
}

/* Opens both descriptors, and adds @cancel to @epoll. */
static int open_events(struct tshare_watcher *watcher)
{
	struct epoll_event event = { .events = EPOLLIN };

	watcher->epoll = fd_move_up(epoll_create1(EPOLL_CLOEXEC));
	if (watcher->epoll < 0)
		return fail_errno(watcher, "epoll_create1");
	watcher->cancel = fd_move_up(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (watcher->cancel < 0)
		return fail_errno(watcher, "eventfd");
	if (epoll_ctl(watcher->epoll, EPOLL_CTL_ADD, watcher->cancel, &event))
		return fail_errno(watcher, "epoll_ctl");
	return 0;
}

static void watcher_free(struct tshare_watcher *watcher)
{
	if (watcher->watch)
		watcher->ctx->backend->unwatch(watcher->watch);
	if (watcher->cancel >= 0)
		close(watcher->cancel);
	if (watcher->epoll >= 0)
		close(watcher->epoll);
	tshare_ctx_unref(watcher->ctx);
	free(watcher);
}

TSHARE_EXPORT
int tshare_ctx_watch(struct tshare_ctx *ctx, const char *name, struct tshare_watcher **watcher)
{
	struct tshare_watcher *new;
	int err;

	no_cancellation();
	new = calloc(1, sizeof(*new));
	if (!new)
		return fail(-ENOMEM, "watcher: out of memory");
	atomic_init(&new->refs, 1);
	new->ctx = tshare_ctx_ref(ctx);
	new->pid = getpid();
	new->epoll = -1;
	new->cancel = -1;
	err = region_name_copy(new->name, name);
	if (!err && !*new->name)
		err = fail(-EINVAL, "name: is empty");
	if (!err)
		err = open_events(new);
	if (!err)
		err = ctx->backend->watch(ctx->session, new->name, new->epoll, &new->watch);
	if (err)
		watcher_free(new);
	else
		*watcher = new;
	return err;
}

TSHARE_EXPORT
struct tshare_watcher *tshare_watcher_ref(struct tshare_watcher *watcher)
{
	refcount_get(&watcher->refs);
	return watcher;
}

TSHARE_EXPORT
struct tshare_watcher *tshare_watcher_unref(struct tshare_watcher *watcher)
{
	keep_errno();

	if (watcher && refcount_put(&watcher->refs))
		watcher_free(watcher);
	return NULL;
}

/* 0 when something may have happened, -ETIMEDOUT or -EINTR. */
static int sleep_until(const struct tshare_watcher *watcher, int64_t deadline)
{
	struct pollfd fd = { .fd = watcher->epoll, .events = POLLIN };
	int64_t now = clock_ns(), left;
	struct timespec timeout;
	int count;

	if (now >= deadline)
		return -ETIMEDOUT;
	left = deadline - now;
	timeout = (struct timespec){ left / NSEC_PER_SEC, left % NSEC_PER_SEC };
	count = ppoll(&fd, 1, deadline == INT64_MAX ? NULL : &timeout, NULL);
	if (count < 0)
		return -errno;
	return count ? 0 : -ETIMEDOUT;
}

/* Looks again whenever something may have happened. */
static int watcher_wait(struct tshare_watcher *watcher, uint64_t seen, int64_t deadline,
			uint64_t *id)
{
	int err;

	do {
		if (atomic_load(&watcher->cancelled))
			return fail(-ECANCELED, "name '%s': the wait was cancelled", watcher->name);
		err = watcher->ctx->backend->watch_look(watcher->watch, id);
		if (err || *id != seen)
			return err;
		err = sleep_until(watcher, deadline);
	} while (!err);
	if (err == -ETIMEDOUT)
		return fail(err, "timeout: name '%s' led nowhere else in time", watcher->name);
	return fail_name(err, watcher->name);
}

TSHARE_EXPORT
int tshare_watcher_wait(struct tshare_watcher *watcher, uint64_t seen, int64_t timeout_ns,
			uint64_t *id)
{
	uint64_t found;
	int err;

	no_cancellation();
	if (watcher->pid != getpid())
		return fail(-EOPNOTSUPP, "watcher: a child of fork() needs its own");
	if (atomic_flag_test_and_set(&watcher->waiting))
		return fail(-EBUSY, "watcher: another thread waits, and needs its own");
	err = watcher_wait(watcher, seen, clock_deadline(timeout_ns, clock_ns()), &found);
	atomic_flag_clear(&watcher->waiting);
	if (!err)
		*id = found;
	return err;
}

/* The eventfd stays readable, since nothing reads it. */
TSHARE_EXPORT
void tshare_watcher_cancel(struct tshare_watcher *watcher)
{
	atomic_store(&watcher->cancelled, true);
	eventfd_write(watcher->cancel, 1);
}

TSHARE_EXPORT
int tshare_watcher_get_event_fd(const struct tshare_watcher *watcher)
{
	return watcher->epoll;
}
