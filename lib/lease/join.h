/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_LEASE_JOIN_H
#define TSHARE_LEASE_JOIN_H

#include "lease/object.h"

/*
 * Opens the stream that @name leads to. With @before another one than that, and of the same fields:
 * -EAGAIN if the name still leads to it, -EPROTO for other fields.
 */
int join_stream(struct tshare_ctx *ctx, const char *name,
		const struct tshare_stream_open_options *options,
		const struct tshare_stream *before, struct tshare_stream **stream);

#endif /* TSHARE_LEASE_JOIN_H */
