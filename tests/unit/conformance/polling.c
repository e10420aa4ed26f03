// SPDX-License-Identifier: MIT
/* Streams' descriptors for poll(): readable when there may be a frame. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../frames.h"
#include "../partner.h"

static int fd_of(struct tshare_stream *stream)
{
	int fd;

	CHECK(!tshare_stream_get_event_fd(stream, &fd));
	return fd;
}

static bool readable_within(struct tshare_stream *stream, int timeout_ms)
{
	struct pollfd fd = { .fd = fd_of(stream), .events = POLLIN };

	return poll(&fd, 1, timeout_ms) == 1;
}

static bool readable(struct tshare_stream *stream)
{
	return readable_within(stream, 0);
}

/* The event may come a little later than what it is about. */
static bool becomes_readable(struct tshare_stream *stream)
{
	return readable_within(stream, HANG_SECONDS * 1000);
}

static bool is_ready(struct tshare_stream *stream)
{
	bool ready;

	CHECK(!tshare_stream_is_ready(stream, &ready));
	return ready;
}

TEST(a_descriptor_is_readable_until_a_take_finds_nothing)
{
	const char *name = unique("poll");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0);
	struct tshare_stream *consumer = open_stream(name, 0);

	CHECK(fd_of(consumer) == fd_of(consumer));
	take_number(consumer);
	CHECK(!readable(consumer));
	CHECK(publish_until(producer, 2));
	CHECK(becomes_readable(consumer));
	CHECK(take_number(consumer) == 1);
	CHECK(readable(consumer));
	CHECK(take_number(consumer) == 2);
	CHECK(take_number(consumer) == -ETIMEDOUT);
	CHECK(!readable(consumer));
	CHECK(publish_until(producer, 3));
	CHECK(becomes_readable(consumer));
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(a_descriptor_is_readable_for_what_was_published_before_it)
{
	const char *name = unique("before");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0);
	struct tshare_stream *consumer = open_stream(name, 0);

	CHECK(publish_until(producer, 1));
	CHECK(readable(consumer));
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(readiness_is_that_a_take_would_not_wait)
{
	const char *name = unique("ready");
	struct tshare_stream *producer = new_stream(name, 4, 1, TSHARE_KEEP_ALL);
	struct tshare_stream *consumer = open_stream(name, 0);
	struct tshare_stream *keeper = open_stream(name, TSHARE_KEEP_ALL);
	struct tshare_stream *observer = open_stream(name, TSHARE_OBSERVE);
	struct tshare_stream *readers[] = { consumer, keeper, observer };
	size_t i;

	for (i = 0; i < 3; i++)
		CHECK(!is_ready(readers[i]));
	CHECK(publish_until(producer, 1));
	for (i = 0; i < 3; i++) {
		CHECK(is_ready(readers[i]));
		CHECK(take_number(readers[i]) == 1);
		CHECK(!is_ready(readers[i]));
	}
	CHECK(!tshare_stream_close(producer, 0));
	for (i = 0; i < 3; i++) {
		CHECK(is_ready(readers[i]));
		CHECK(take_number(readers[i]) == -ENODATA);
		tshare_stream_unref(readers[i]);
	}
	tshare_stream_unref(producer);
}

TEST(asking_for_readiness_makes_a_descriptor_unreadable)
{
	const char *name = unique("asked");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0);
	struct tshare_stream *consumer = open_stream(name, 0);

	CHECK(!is_ready(consumer));
	fd_of(consumer);
	CHECK(!is_ready(consumer));
	CHECK(!readable(consumer));
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(a_descriptor_stays_readable_at_the_end)
{
	const char *name = unique("end");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0);
	struct tshare_stream *consumer = open_stream(name, 0);

	fd_of(consumer);
	take_number(consumer);
	CHECK(!tshare_stream_close(producer, 0));
	CHECK(becomes_readable(consumer));
	CHECK(take_number(consumer) == -ENODATA);
	CHECK(readable(consumer));
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

TEST(a_descriptor_tells_of_a_producers_death)
{
	const char *name = unique("death");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0);
	struct tshare_stream *consumer = open_stream(name, 0);

	fd_of(consumer);
	take_number(consumer);
	tshare_stream_unref(producer);
	CHECK(becomes_readable(consumer));
	CHECK(take_number(consumer) == -EOWNERDEAD);
	CHECK(readable(consumer));
	tshare_stream_unref(consumer);
}

TEST(a_descriptor_of_a_cancelled_stream_stays_readable)
{
	const char *name = unique("cancelled");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0);
	struct tshare_stream *consumer = open_stream(name, 0);

	fd_of(consumer);
	take_number(consumer);
	tshare_stream_cancel(consumer);
	CHECK(readable(consumer));
	CHECK(take_number(consumer) == -ECANCELED);
	CHECK(readable(consumer) && is_ready(consumer));
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

/* Threads that poll one stream, and take all that they find. */
struct pollers {
	struct tshare_stream *stream;
	atomic_int taken;
};

static void *poll_and_take(void *data)
{
	struct pollers *pollers = data;
	struct tshare_frame *frame;
	int err = -ETIMEDOUT;

	while (!err || err == -ETIMEDOUT) {
		if (!becomes_readable(pollers->stream))
			break;
		err = tshare_stream_take(pollers->stream, 0, &frame);
		if (err)
			continue;
		atomic_fetch_add(&pollers->taken, 1);
		tshare_frame_unref(frame);
	}
	return NULL;
}

TEST(threads_that_poll_one_stream_take_all_frames)
{
	const char *name = unique("threads");
	struct tshare_stream *producer = new_stream(name, 8, 1, TSHARE_KEEP_ALL);
	struct pollers pollers = { open_stream(name, TSHARE_KEEP_ALL), 0 };
	struct tshare_frame *frame;
	pthread_t threads[3];
	int i;

	for (i = 0; i < 3; i++)
		CHECK(!pthread_create(&threads[i], NULL, poll_and_take, &pollers));
	for (i = 0; i < 500; i++) {
		CHECK(!tshare_stream_loan(producer, LONG, &frame));
		CHECK(!tshare_frame_publish(frame));
		tshare_frame_unref(frame);
	}
	CHECK(!tshare_stream_close(producer, LONG));
	for (i = 0; i < 3; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(atomic_load(&pollers.taken) == 500);
	tshare_stream_unref(pollers.stream);
	tshare_stream_unref(producer);
}

TEST(only_readers_of_this_process_poll)
{
	const char *name = unique("roles");
	struct tshare_stream *producer = new_stream(name, 4, 1, 0);
	struct tshare_stream *consumer = open_stream(name, 0);
	bool ready;
	pid_t pid;
	int fd;

	CHECK(tshare_stream_get_event_fd(producer, &fd) == -EACCES);
	CHECK(tshare_stream_is_ready(producer, &ready) == -EACCES);
	fd_of(consumer);
	take_number(consumer);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		fd = tshare_stream_get_event_fd(consumer, &fd) == -EOPNOTSUPP &&
		     tshare_stream_is_ready(consumer, &ready) == -EOPNOTSUPP;
		tshare_stream_cancel(consumer);
		tshare_stream_unref(consumer);
		_exit(!fd);
	}
	CHECK(end_of(pid) == 0);
	CHECK(!readable(consumer));
	CHECK(publish_until(producer, 1));
	CHECK(becomes_readable(consumer));
	tshare_stream_unref(consumer);
	tshare_stream_unref(producer);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
