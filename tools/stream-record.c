// SPDX-License-Identifier: MIT
/* tshare stream record: writes a stream's frames to a folder of .npy files. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>

#include "number.h"
#include "recorder.h"
#include "stream-reader.h"

struct request {
	const char *name;
	const char *path;
	struct reader_limits limits;
	bool observes; /* once the stream is open */
};

/*
 * A consumer that misses no frame, if the producer allows that; else one that does; else an
 * observer, who may miss more. Says what can't be. Returns a negative errno without printing it.
 */
static int open_stream(struct tshare_ctx *ctx, const char *name, void *data,
		       struct tshare_stream **stream)
{
	struct request *request = data;
	struct tshare_stream_open_options options = {
		.size = sizeof(options),
		.flags = TSHARE_KEEP_ALL,
		.timeout_ns = request->limits.wait_ns,
	};
	const char *why;
	int err;

	err = tshare_stream_open(ctx, name, &options, stream);
	options.timeout_ns = 0;
	if (err == -EPERM) {
		failure("the producer of '%s' lets nobody keep all frames: some may be missing",
			name);
		options.flags = 0;
		err = tshare_stream_open(ctx, name, &options, stream);
	}
	if (err != -EACCES && err != -EUSERS)
		return err;
	why = err == -EUSERS ? "all seats are taken" : "its mode allows no more";
	options.flags = TSHARE_OBSERVE;
	request->observes = true;
	err = tshare_stream_open(ctx, name, &options, stream);
	if (!err)
		failure("only observes '%s' (%s): frames may be missing", name, why);
	return err;
}

/* Records until the limits. Returns what has ended it; READER_PAUSE if it could not be written. */
static enum reader_news record_frames(struct reader *reader, bool observes,
				      struct recorder *recorder, uint64_t *missed)
{
	struct tshare_frame_info info = { .size = sizeof(info) };
	struct tshare_frame *frame;
	enum reader_news news;
	bool torn;
	int status;

	while ((news = reader_next(reader, INT64_MAX, &frame)) == READER_FRAME) {
		tshare_frame_get_info(frame, &info);
		status = recorder_add(recorder, frame, observes, &torn);
		tshare_frame_unref(frame);
		*missed += info.lost + torn;
		if (torn)
			reader_put_back(reader);
		if (status)
			return READER_PAUSE;
	}
	return news;
}

static int status_of(enum reader_news news, const struct reader *reader,
		     const struct recorder *recorder)
{
	if (news == READER_ERROR)
		return failure_of_library(reader->err);
	if (news == READER_PAUSE)
		return EXIT_FAILED;
	if (news != READER_LIMIT || recorder->count)
		return EXIT_OK;
	failure("no frame was published in time");
	return EXIT_TIMEOUT;
}

static void print_summary(const struct request *request, const struct recorder *recorder,
			  uint64_t missed)
{
	char bytes[BYTES_LEN];

	if (!recorder->count)
		return;
	format_bytes(bytes, recorder->bytes, false);
	printf("%" PRIu64 " frame%s in %s, %s, %" PRIu64 " missed\n", recorder->count,
	       recorder->count == 1 ? "" : "s", request->path, bytes, missed);
}

static int record_facts(struct tshare_stream *stream, const struct stream_facts *facts,
			const struct request *request)
{
	struct recorder recorder;
	enum reader_news news;
	struct reader reader;
	uint64_t missed = 0;
	int status, closed;

	status = reader_begin(&reader, stream, &request->limits);
	if (status)
		return status;
	/* A file that may not grow is an error of its write. */
	signal(SIGXFSZ, SIG_IGN);
	status = recorder_open(&recorder, request->path, facts);
	if (status)
		return status;
	news = record_frames(&reader, request->observes, &recorder, &missed);
	status = status_of(news, &reader, &recorder);
	closed = recorder_close(&recorder);
	print_summary(request, &recorder, missed);
	return status ? status : closed;
}

static int record_stream(struct tshare_stream *stream, void *data)
{
	const struct request *request = data;
	struct stream_facts facts;
	int err, status;

	err = stream_facts_read(stream, &facts);
	if (err)
		return failure_of_library(err);
	status = record_facts(stream, &facts, request);
	stream_facts_release(&facts);
	return status;
}

static const struct option options[] = {
	READER_OPTIONS,
	{ 0 },
};

static int take(const struct verb *verb, int option, void *data)
{
	struct request *request = data;

	return reader_option(&request->limits, verb, option, optarg);
}

static int run(const struct verb *verb, int argc, char **argv)
{
	struct request request = { .limits = READER_LIMITS_INIT };
	int status;

	if (!parse_options(verb, argc, argv, &request, &status))
		return status;
	if (argc - optind != 2)
		return usage_error(verb, "needs NAME and FOLDER");
	request.name = argv[optind];
	request.path = argv[optind + 1];
	return use_stream(request.name, open_stream, record_stream, &request);
}

const struct verb verb_stream_record = {
	.name = "stream record",
	.arguments = "[OPTION...] NAME FOLDER",
	.summary = "write frames to .npy files in a new folder, as NumPy and 'play' read",
	.help = READER_HELP,
	.options = options,
	.take = take,
	.run = run,
};
