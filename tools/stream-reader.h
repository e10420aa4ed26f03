/* SPDX-License-Identifier: MIT */
/* Takes a stream's frames, until a number of them, a time, a signal or the stream's end. */
#ifndef TSHARE_CLI_STREAM_READER_H
#define TSHARE_CLI_STREAM_READER_H

#include "cli.h"

struct reader_limits {
	uint64_t count;	 /* of frames; 0: any */
	int64_t time_ns; /* negative: for ever */
	int64_t wait_ns; /* for the stream's name */
};

/* Lines of --help for the options below. */
#define READER_HELP                                           \
	"  -n, --count COUNT      end after so many frames\n" \
	"  -t, --time SECONDS     end after that time\n"      \
	"  -w, --wait SECONDS     wait so long for the stream (default: not at all)\n"

/* clang-format off */
#define READER_OPTIONS                                \
	{ "count", required_argument, NULL, 'n' },    \
	{ "time", required_argument, NULL, 't' },     \
	{ "wait", required_argument, NULL, 'w' }
/* clang-format on */

#define READER_LIMITS_INIT                  \
	{                                   \
		.time_ns = -1, .wait_ns = 0 \
	}

/* Parses one of READER_OPTIONS. Returns EXIT_OK, or another status after printing the error. */
int reader_option(struct reader_limits *limits, const struct verb *verb, int option,
		  const char *value);

enum reader_news {
	READER_FRAME,
	READER_PAUSE,  /* there is none yet, and the time to look is over */
	READER_LIMIT,  /* the number or the time is reached */
	READER_SIGNAL, /* asks for an orderly end */
	READER_END,    /* the producer has closed the stream */
	READER_ERROR,  /* @err, as -EOWNERDEAD; the library has the text */
};

struct reader {
	struct tshare_stream *stream;
	int fd; /* has news */
	uint64_t left;
	int64_t deadline; /* INT64_MAX for none */
	int err;
};

/* From now on signals end the reading. Returns an exit status. */
int reader_begin(struct reader *reader, struct tshare_stream *stream,
		 const struct reader_limits *limits);

/* Looks for a frame until @until of CLOCK_MONOTONIC; INT64_MAX: as long as the limits say. */
enum reader_news reader_next(struct reader *reader, int64_t until, struct tshare_frame **frame);

/* The last frame doesn't count among those of the limits. */
void reader_put_back(struct reader *reader);

#endif /* TSHARE_CLI_STREAM_READER_H */
