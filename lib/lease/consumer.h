/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_LEASE_CONSUMER_H
#define TSHARE_LEASE_CONSUMER_H

#include <stdbool.h>
#include <stdint.h>

#include "lease/object.h"

/* Takes a seat, for a consumer, and finds where to begin. */
int consumer_join(struct tshare_stream *stream, uint32_t history);

/* Takes only what is published by now, then fails with -ENODATA. */
void consumer_finish(struct tshare_stream *stream);

/* Takes nothing any more: keeps the frames that are held, and leaves all others. */
void consumer_retire(struct tshare_stream *stream);

void consumer_leave(struct tshare_stream *stream);

/* As the calls of tshare.h, for an object that is a reader's. */
int consumer_take(struct tshare_stream *stream, bool latest, int64_t timeout_ns,
		  struct tshare_frame **frame);
int consumer_get(struct tshare_stream *stream, uint64_t number, struct tshare_frame **frame);

/* 0 if there is a frame to take; else what a take without a timeout would return. */
int consumer_look(struct tshare_stream *stream);

#endif /* TSHARE_LEASE_CONSUMER_H */
