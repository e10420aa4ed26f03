// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "lease/follow.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "lease/consumer.h"
#include "lease/join.h"
#include "lease/news.h"
#include "lease/stream.h"

/* How often the name is looked at while the producer lives, which then has been replaced. */
#define LOOK_NS (NSEC_PER_SEC / 10)

/* More frames than any stream has slots: the next one is read from its first frame on. */
#define FROM_THE_START UINT32_MAX

/* Members are under the lock of the program's object, but for those that never change. */
struct follow {
	struct tshare_ctx *ctx;
	struct tshare_stream_open_options options; /* for the next stream */
	struct tshare_stream *current;
	struct tshare_stream *next; /* opened while frames of @current are left; or NULL */
	int64_t look_at;	    /* when a take looks at the name */
	bool cancelled;
	char name[];
};

static void end_follow(struct tshare_stream *stream)
{
	struct follow *follow = stream->follow;

	tshare_stream_unref(follow->next);
	tshare_stream_unref(follow->current);
	tshare_ctx_unref(follow->ctx);
	free(follow);
}

int follow_new(struct tshare_ctx *ctx, const char *name,
	       const struct tshare_stream_open_options *options, struct tshare_stream **stream)
{
	struct tshare_stream *first = *stream, *new = stream_new(first->role);
	struct follow *follow = calloc(1, sizeof(*follow) + strlen(name) + 1);
	int err = -ENOMEM;

	if (!follow)
		error_store("stream: out of memory");
	/* It has no seat: a child of fork() finds that it is one. */
	if (follow && new)
		err = seats_open(&new->seats, NULL);
	if (err) {
		free(follow);
		tshare_stream_unref(new);
		tshare_stream_unref(first);
		return err;
	}
	follow->ctx = tshare_ctx_ref(ctx);
	follow->options = *options;
	follow->options.history = FROM_THE_START;
	follow->options.timeout_ns = 0;
	follow->options.check = NULL;
	follow->current = first;
	follow->look_at = clock_ns() + LOOK_NS;
	strcpy(follow->name, name);
	new->keeps_all = first->keeps_all;
	new->follow = follow;
	new->end_follow = end_follow;
	*stream = new;
	return 0;
}

struct tshare_stream *follow_current(struct tshare_stream *stream)
{
	struct tshare_stream *current;

	if (!stream->follow)
		return tshare_stream_ref(stream);
	/* Nobody moves over in a child of fork(), where the lock may be taken for good. */
	if (seats_is_child(&stream->seats))
		return tshare_stream_ref(stream->follow->current);
	pthread_mutex_lock(&stream->lock);
	current = tshare_stream_ref(stream->follow->current);
	pthread_mutex_unlock(&stream->lock);
	return current;
}

/* With the lock held: -ENOENT if the name leads to no other stream yet. */
static int open_next(struct follow *follow)
{
	int err;

	err = join_stream(follow->ctx, follow->name, &follow->options, follow->current,
			  &follow->next);
	return err == -EAGAIN || err == -EINPROGRESS ? -ENOENT : err;
}

/* Whether open_next() has found another stream, or what can't be followed. Others may pass. */
static bool leads_elsewhere(int err)
{
	return !err || err == -EPROTO || err == -EPERM || err == -EACCES || err == -EUSERS;
}

/*
 * The object to take from, with a reference. From time to time it looks at the name, since a
 * producer that was replaced may live and go on: then only the frames that it has published by now
 * are taken. An error is reported when they are.
 */
static struct tshare_stream *look_at_name(struct tshare_stream *stream, int64_t *until_look)
{
	struct follow *follow = stream->follow;
	struct tshare_stream *current;
	int64_t now = clock_ns();

	pthread_mutex_lock(&stream->lock);
	current = tshare_stream_ref(follow->current);
	if (now >= follow->look_at) {
		follow->look_at = now + LOOK_NS;
		if (!atomic_load(&current->end) && leads_elsewhere(open_next(follow)))
			consumer_finish(current);
		error_clear();
	}
	*until_look = follow->look_at - now;
	pthread_mutex_unlock(&stream->lock);
	return current;
}

/* With the lock held. Stores the object that was left. */
static int move(struct tshare_stream *stream, struct tshare_stream **left)
{
	struct follow *follow = stream->follow;
	int err;

	err = follow->next ? 0 : open_next(follow);
	if (!err)
		err = news_move(stream, follow->next->region);
	if (err)
		return err;
	*left = follow->current;
	follow->current = follow->next;
	follow->next = NULL;
	consumer_retire(*left);
	return 0;
}

/* Moves over from @from, unless another thread has: -ENOENT if there is no next stream yet. */
static int try_to_move(struct tshare_stream *stream, const struct tshare_stream *from)
{
	struct follow *follow = stream->follow;
	struct tshare_stream *left = NULL;
	int err = 0;

	pthread_mutex_lock(&stream->lock);
	if (follow->cancelled)
		err = fail(-ECANCELED, "stream: the wait was cancelled");
	else if (follow->current == from)
		err = move(stream, &left);
	pthread_mutex_unlock(&stream->lock);
	tshare_stream_unref(left);
	return err;
}

static int fail_late(void)
{
	return fail(-ETIMEDOUT, "timeout: the producer has exited, and its name leads to no other "
				"stream yet");
}

static int sleep_until(const struct news *news, int64_t deadline)
{
	struct pollfd fd = { .fd = news->epoll, .events = POLLIN };
	int64_t left = clock_left(deadline);
	struct timespec timeout = { left / NSEC_PER_SEC, left % NSEC_PER_SEC };

	if (!left)
		return fail_late();
	if (ppoll(&fd, 1, left < 0 ? NULL : &timeout, NULL) < 0)
		return fail(-errno, "stream: waiting: %s", strerror(errno));
	return 0;
}

/* Tries again whenever there is news of the name. */
static int wait_and_move(struct tshare_stream *stream, const struct tshare_stream *from,
			 int64_t deadline)
{
	int err;

	pthread_mutex_lock(&stream->lock);
	err = follow_begin_news(stream);
	pthread_mutex_unlock(&stream->lock);
	for (;;) {
		if (!err)
			err = sleep_until(stream->news, deadline);
		if (err)
			return err;
		pthread_mutex_lock(&stream->lock);
		news_acknowledge(stream);
		pthread_mutex_unlock(&stream->lock);
		err = try_to_move(stream, from);
		if (err != -ENOENT)
			break;
		err = 0;
	}
	pthread_mutex_lock(&stream->lock);
	news_renew(stream);
	pthread_mutex_unlock(&stream->lock);
	return err;
}

/*
 * Moves over from @from, whose stream has ended with @why: 0, or the error that the take returns.
 * Without a next stream a producer's close() is the end, and a death is not.
 */
static int move_over(struct tshare_stream *stream, struct tshare_stream *from, int why,
		     int64_t deadline)
{
	int err;

	err = try_to_move(stream, from);
	if (err != -ENOENT)
		return err;
	if (why == -ENODATA && !atomic_load(&from->end))
		return fail(why, "stream: the producer has closed it");
	if (!clock_left(deadline))
		return fail_late();
	return wait_and_move(stream, from, deadline);
}

int follow_take(struct tshare_stream *stream, bool latest, int64_t timeout_ns,
		struct tshare_frame **frame)
{
	int64_t deadline = clock_deadline(timeout_ns, clock_ns()), left, until_look;
	struct tshare_stream *current;
	bool again, last;
	int err;

	do {
		current = look_at_name(stream, &until_look);
		left = clock_left(deadline);
		last = left >= 0 && left <= until_look;
		if (frame)
			err = consumer_take(current, latest, last ? left : until_look, frame);
		else
			err = consumer_look(current);
		again = err == -ETIMEDOUT && !last;
		if (err == -EOWNERDEAD || err == -ENODATA) {
			err = move_over(stream, current, err, deadline);
			again = !err;
		}
		tshare_stream_unref(current);
	} while (again);
	return err;
}

int follow_begin_news(struct tshare_stream *stream)
{
	struct follow *follow = stream->follow;

	return news_begin(stream, follow->current->region, follow->ctx, follow->name);
}

void follow_hurry(struct tshare_stream *stream)
{
	stream->follow->look_at = 0;
}

void follow_cancel(struct tshare_stream *stream)
{
	struct follow *follow = stream->follow;

	pthread_mutex_lock(&stream->lock);
	follow->cancelled = true;
	tshare_region_cancel(follow->current->region);
	pthread_mutex_unlock(&stream->lock);
}
