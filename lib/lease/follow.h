/* SPDX-License-Identifier: MIT */
/*
 * Following a name: when a producer has died, or when the name leads to another stream, a consumer
 * takes what is left of the one, and moves over to the other.
 *
 * The program's object has an object for each stream in turn. Frames belong to the latter, and keep
 * it when the program's object has moved over.
 */
#ifndef TSHARE_LEASE_FOLLOW_H
#define TSHARE_LEASE_FOLLOW_H

#include "lease/object.h"

/* Puts an object that follows @name in place of @stream, which is dropped on failure. */
int follow_new(struct tshare_ctx *ctx, const char *name,
	       const struct tshare_stream_open_options *options, struct tshare_stream **stream);

/* A reference to the object that @stream is at now: itself, if it follows no name. */
struct tshare_stream *follow_current(struct tshare_stream *stream);

/* As tshare_stream_take() or, without a frame, as consumer_look(). */
int follow_take(struct tshare_stream *stream, bool latest, int64_t timeout_ns,
		struct tshare_frame **frame);

/* With the lock held: makes the descriptor for poll(); makes the next take look at the name. */
int follow_begin_news(struct tshare_stream *stream);
void follow_hurry(struct tshare_stream *stream);

void follow_cancel(struct tshare_stream *stream);

#endif /* TSHARE_LEASE_FOLLOW_H */
