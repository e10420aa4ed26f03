/* SPDX-License-Identifier: MIT */
/* Facts of a stream that an observer finds out: its fields, its consumers, its producer. */
#ifndef TSHARE_CLI_STREAM_FACTS_H
#define TSHARE_CLI_STREAM_FACTS_H

#include "details.h"

struct stream_field {
	char *name;
	struct tshare_dtype dtype;
	int32_t ndim;
	int64_t shape[TSHARE_NDIM_LIMIT]; /* the largest of a frame */
};

struct stream_facts {
	struct tshare_stream_info info;
	struct stream_field *fields;
	bool seats_known; /* this user may see them */
	size_t seat_count;
	struct tshare_stream_seat seats[TSHARE_STREAM_CONSUMERS];
};

/* Opens a stream as an observer, which may be created meanwhile, and prints nothing. */
int stream_observe(struct tshare_ctx *ctx, const char *name, int64_t timeout_ns,
		   struct tshare_stream **stream);

/*
 * Opens a stream in a session by @open, which returns a negative errno, and returns what @use does;
 * or an exit status, after printing why it can't.
 */
int use_stream(const char *name,
	       int (*open)(struct tshare_ctx *ctx, const char *name, void *request,
			   struct tshare_stream **stream),
	       int (*use)(struct tshare_stream *stream, void *request), void *request);

/* Stores a negative errno, without printing it, and then nothing else; or facts to release. */
int stream_facts_read(struct tshare_stream *stream, struct stream_facts *facts);
void stream_facts_release(struct stream_facts *facts);

/* Bytes of a frame's field in its largest shape, without gaps. */
uint64_t stream_field_bytes(const struct stream_field *field);

/* "live", "ended" or "dead" */
const char *stream_facts_state(const struct stream_facts *facts, const struct details *details);

/* Prints the stream's JSON object. */
void stream_facts_json(const struct stream_facts *facts, const struct details *details);

#endif /* TSHARE_CLI_STREAM_FACTS_H */
