/* SPDX-License-Identifier: MIT */
/* The object of a stream, for those who make one. */
#ifndef TSHARE_LEASE_STREAM_H
#define TSHARE_LEASE_STREAM_H

#include "lease/object.h"

/* An object without regions; NULL, with a text, without memory. */
struct tshare_stream *stream_new(enum stream_role role);
void stream_free(struct tshare_stream *stream);

/* Drops both regions. */
void stream_unbind(struct tshare_stream *stream);

#endif /* TSHARE_LEASE_STREAM_H */
