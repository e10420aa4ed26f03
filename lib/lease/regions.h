/* SPDX-License-Identifier: MIT */
/* The two regions of a stream: their tensors, and where the ring's memory is in them. */
#ifndef TSHARE_LEASE_REGIONS_H
#define TSHARE_LEASE_REGIONS_H

#include <stddef.h>
#include <stdint.h>

#include "tshare.h"

struct tshare_stream;

#define STREAM_VERSION 1

/* Creates the drafts NAME and NAME.seats; with @region's options, which are checked. */
int regions_create(struct tshare_stream *stream, struct tshare_ctx *ctx, const char *name,
		   const char *seats_name, const struct tshare_spec *fields, size_t count,
		   const struct tshare_options *region);

/* Finds the ring's memory in NAME, and checks it. Stores the stream's id. */
int regions_bind(struct tshare_stream *stream, uint64_t *id);

/* The same in NAME.seats; -ESTALE if they are another stream's. */
int regions_bind_seats(struct tshare_stream *stream, uint64_t id);

#endif /* TSHARE_LEASE_REGIONS_H */
