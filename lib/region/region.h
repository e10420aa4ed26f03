/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_REGION_REGION_H
#define TSHARE_REGION_REGION_H

#include <stdint.h>

struct tshare_ctx;
struct tshare_open_options;
struct tshare_region;

/* A region without memory, for create.c and open.c to fill; NULL, with a text, without memory. */
struct tshare_region *region_new(struct tshare_ctx *ctx);

/* 0, or -EOPNOTSUPP for a region whose memory is on a device. */
int region_check_on_host(const struct tshare_region *region);

/* 0, or -EINVAL for flags other than TSHARE_READONLY. */
int region_check_flags(uint32_t flags);

/*
 * Finishes two drafts of one context, one right after the other. A failure leaves both drafts,
 * unless it is another process's doing and comes between the two.
 */
int region_finish_both(struct tshare_region *first, struct tshare_region *second);

/*
 * As tshare_region_open(), but @other_than, unless 0, is the id of the region that is not to be
 * opened: one that the caller does not keep, as a user of it would keep its name.
 */
int region_open(struct tshare_ctx *ctx, const char *name, const struct tshare_open_options *options,
		uint64_t other_than, struct tshare_region **region);

#endif /* TSHARE_REGION_REGION_H */
