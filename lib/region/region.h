/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_REGION_REGION_H
#define TSHARE_REGION_REGION_H

#include <stdint.h>

struct tshare_ctx;
struct tshare_region;

/* A region without memory, for create.c and open.c to fill; NULL, with a text, without memory. */
struct tshare_region *region_new(struct tshare_ctx *ctx);

/* 0, or -EINVAL for flags other than TSHARE_READONLY. */
int region_check_flags(uint32_t flags);

#endif /* TSHARE_REGION_REGION_H */
