// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "lease/news.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"

static int fail_errno(const char *call)
{
	int err = -errno;

	return fail(err, "stream: %s: %s", call, strerror(-err));
}

static int add(const struct news *news, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(news->epoll, EPOLL_CTL_ADD, fd, &event) ? fail_errno("epoll_ctl") : 0;
}

static void news_free(struct news *news)
{
	tshare_watcher_unref(news->watcher);
	tshare_waiter_unref(news->waiter);
	if (news->renewed >= 0)
		close(news->renewed);
	if (news->epoll >= 0)
		close(news->epoll);
	free(news);
}

static int open_both(struct news *news)
{
	news->epoll = fd_move_up(epoll_create1(EPOLL_CLOEXEC));
	if (news->epoll < 0)
		return fail_errno("epoll_create1");
	news->renewed = fd_move_up(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	return news->renewed < 0 ? fail_errno("eventfd") : add(news, news->renewed);
}

/* A waiter of its own: the region's belongs to the program. */
static int watch_region(struct news *news, struct tshare_region *region)
{
	struct tshare_waiter *waiter;
	int fd, err;

	err = tshare_waiter_new(region, &waiter);
	if (err)
		return err;
	err = tshare_waiter_get_event_fd(waiter, &fd);
	if (!err)
		err = add(news, fd);
	if (err) {
		tshare_waiter_unref(waiter);
		return err;
	}
	if (news->waiter)
		epoll_ctl(news->epoll, EPOLL_CTL_DEL, news->published, NULL);
	tshare_waiter_unref(news->waiter);
	news->waiter = waiter;
	news->published = fd;
	return 0;
}

static int watch_name(struct news *news, struct tshare_ctx *ctx, const char *name)
{
	int err;

	err = tshare_ctx_watch(ctx, name, &news->watcher);
	return err ? err : add(news, tshare_watcher_get_event_fd(news->watcher));
}

int news_begin(struct tshare_stream *stream, struct tshare_region *region, struct tshare_ctx *ctx,
	       const char *name)
{
	struct news *news;
	int err;

	if (stream->news)
		return 0;
	news = calloc(1, sizeof(*news));
	if (!news)
		return fail(-ENOMEM, "stream: out of memory");
	news->epoll = -1;
	news->renewed = -1;
	err = open_both(news);
	if (!err)
		err = watch_region(news, region);
	if (!err && ctx)
		err = watch_name(news, ctx, name);
	if (err) {
		news_free(news);
		return err;
	}
	atomic_store(&stream->news, news);
	/* A frame may have been published before: the first poll() returns. */
	news_renew(stream);
	return 0;
}

int news_move(struct tshare_stream *stream, struct tshare_region *region)
{
	struct news *news = stream->news;

	return news ? watch_region(news, region) : 0;
}

void news_acknowledge(struct tshare_stream *stream)
{
	const struct news *news = stream->news;
	eventfd_t ignored;
	uint64_t id;

	eventfd_read(news->renewed, &ignored);
	eventfd_read(news->published, &ignored);
	/* No region has this id: the call returns what the name leads to. */
	if (news->watcher)
		tshare_watcher_wait(news->watcher, UINT64_MAX, 0, &id);
}

void news_renew(struct tshare_stream *stream)
{
	const struct news *news = stream->news;

	if (news)
		eventfd_write(news->renewed, 1);
}

void news_end(struct tshare_stream *stream)
{
	if (stream->news)
		news_free(stream->news);
}
