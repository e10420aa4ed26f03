// SPDX-License-Identifier: MIT
/* The calls of consumers and observers, and their descriptor for poll(). */
#include <errno.h>

#include "base/error.h"
#include "base/export.h"
#include "base/thread.h"
#include "lease/consumer.h"
#include "lease/follow.h"
#include "lease/news.h"
#include "lease/role.h"

/* Takes a frame, or without @frame looks for one. */
struct attempt {
	bool latest;
	struct tshare_frame **frame;
};

static int try_once(struct tshare_stream *stream, const struct attempt *attempt, int64_t timeout_ns)
{
	if (stream->follow)
		return follow_take(stream, attempt->latest, timeout_ns, attempt->frame);
	if (!attempt->frame)
		return consumer_look(stream);
	return consumer_take(stream, attempt->latest, timeout_ns, attempt->frame);
}

/* Looks once more after it has made the descriptor unreadable. */
static int acknowledge(struct tshare_stream *stream, const struct attempt *attempt)
{
	int err;

	pthread_mutex_lock(&stream->lock);
	news_acknowledge(stream);
	if (stream->follow)
		follow_hurry(stream);
	pthread_mutex_unlock(&stream->lock);
	err = try_once(stream, attempt, 0);
	if (err == -ETIMEDOUT)
		return err;
	pthread_mutex_lock(&stream->lock);
	news_renew(stream);
	pthread_mutex_unlock(&stream->lock);
	return err;
}

static int try(struct tshare_stream *stream, const struct attempt *attempt, int64_t timeout_ns)
{
	int err;

	err = role_check_reader(stream);
	if (err)
		return err;
	no_cancellation();
	err = try_once(stream, attempt, timeout_ns);
	return err == -ETIMEDOUT && stream->news ? acknowledge(stream, attempt) : err;
}

TSHARE_EXPORT
int tshare_stream_take(struct tshare_stream *stream, int64_t timeout_ns,
		       struct tshare_frame **frame)
{
	const struct attempt attempt = { .frame = frame };

	return try(stream, &attempt, timeout_ns);
}

TSHARE_EXPORT
int tshare_stream_take_latest(struct tshare_stream *stream, int64_t timeout_ns,
			      struct tshare_frame **frame)
{
	const struct attempt attempt = { .latest = true, .frame = frame };

	if (stream->keeps_all)
		return fail(-EINVAL, "stream: this consumer keeps all frames, and takes them in "
				     "order");
	return try(stream, &attempt, timeout_ns);
}

TSHARE_EXPORT
int tshare_stream_get(struct tshare_stream *stream, uint64_t number, struct tshare_frame **frame)
{
	struct tshare_stream *current;
	int err;

	err = role_check_reader(stream);
	if (err)
		return err;
	current = follow_current(stream);
	err = consumer_get(current, number, frame);
	tshare_stream_unref(current);
	return err;
}

TSHARE_EXPORT
int tshare_stream_is_ready(struct tshare_stream *stream, bool *ready)
{
	const struct attempt look = { .frame = NULL };
	int err;

	err = role_check_reader(stream);
	if (err)
		return err;
	*ready = try(stream, &look, 0) != -ETIMEDOUT;
	return 0;
}

TSHARE_EXPORT
int tshare_stream_get_event_fd(struct tshare_stream *stream, int *fd)
{
	int err;

	err = role_check_reader(stream);
	if (err)
		return err;
	no_cancellation();
	pthread_mutex_lock(&stream->lock);
	err = stream->follow ? follow_begin_news(stream) :
			       news_begin(stream, stream->region, NULL, NULL);
	if (!err)
		*fd = stream->news->epoll;
	pthread_mutex_unlock(&stream->lock);
	return err;
}
