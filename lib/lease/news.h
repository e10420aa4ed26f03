/* SPDX-License-Identifier: MIT */
/* The descriptor of a stream for poll(): readable when there may be something to take. */
#ifndef TSHARE_LEASE_NEWS_H
#define TSHARE_LEASE_NEWS_H

#include "lease/object.h"

/*
 * With the stream's lock held, all of them. A thread acknowledges the news, and looks for a frame
 * after that. If it finds one it renews the news, for other threads that poll: so the descriptor
 * is unreadable only if somebody has looked in vain since it last was readable.
 */

/*
 * Makes the descriptor if there is none, with a @ctx also for what @name leads to: 0; -EMFILE,
 * -ENFILE, -ENOMEM, -EAGAIN, -EDQUOT.
 */
int news_begin(struct tshare_stream *stream, struct tshare_region *region, struct tshare_ctx *ctx,
	       const char *name);

/* The next region, in place of the one before; without effect if there is no descriptor. */
int news_move(struct tshare_stream *stream, struct tshare_region *region);
void news_acknowledge(struct tshare_stream *stream);
void news_renew(struct tshare_stream *stream);

/* Without the lock, when the stream goes. */
void news_end(struct tshare_stream *stream);

#endif /* TSHARE_LEASE_NEWS_H */
