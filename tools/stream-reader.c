// SPDX-License-Identifier: MIT
#include "stream-reader.h"

#include <errno.h>
#include <sys/eventfd.h>

#include "ending.h"
#include "number.h"

int reader_option(struct reader_limits *limits, const struct verb *verb, int option,
		  const char *value)
{
	char *end;

	if (option == 'n') {
		if (parse_number(value, 10, &limits->count, &end) && !*end && limits->count)
			return EXIT_OK;
		return usage_error(verb, "--count: '%s' is not a number of frames", value);
	}
	if (parse_seconds(value, option == 't' ? &limits->time_ns : &limits->wait_ns))
		return EXIT_OK;
	return usage_error(verb, "--%s: '%s' is not a number of seconds",
			   option == 't' ? "time" : "wait", value);
}

int reader_begin(struct reader *reader, struct tshare_stream *stream,
		 const struct reader_limits *limits)
{
	*reader = (struct reader){
		.stream = stream,
		.left = limits->count ? limits->count : UINT64_MAX,
		.deadline = INT64_MAX,
	};
	if (limits->time_ns >= 0)
		reader->deadline = ending_now() + limits->time_ns;
	reader->err = tshare_region_get_event_fd(tshare_stream_get_region(stream), &reader->fd);
	if (reader->err)
		return failure_of_library(reader->err);
	ending_begin();
	return EXIT_OK;
}

static enum reader_news fail(struct reader *reader, int err)
{
	reader->err = err;
	return err == -ENODATA ? READER_END : READER_ERROR;
}

/* A stream that is always faster than the reader is asked for the time and signals, too. */
enum reader_news reader_next(struct reader *reader, int64_t until, struct tshare_frame **frame)
{
	int64_t now = ending_now(), limit = until < reader->deadline ? until : reader->deadline;
	bool acknowledged = false;
	eventfd_t ignored;
	int err;

	while (reader->left) {
		if (ending_wait(-1, 0))
			return READER_SIGNAL;
		if (now >= reader->deadline)
			return READER_LIMIT;
		err = tshare_stream_take(reader->stream, 0, frame);
		if (!err) {
			reader->left--;
			return READER_FRAME;
		}
		if (err != -ETIMEDOUT)
			return fail(reader, err);
		if (!acknowledged) {
			eventfd_read(reader->fd, &ignored);
			acknowledged = true;
			continue;
		}
		if (now >= until)
			return READER_PAUSE;
		ending_wait(reader->fd, limit == INT64_MAX ? -1 : limit - now);
		acknowledged = false;
		now = ending_now();
	}
	return READER_LIMIT;
}

void reader_put_back(struct reader *reader)
{
	reader->left++;
}
