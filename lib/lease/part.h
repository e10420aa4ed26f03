/* SPDX-License-Identifier: MIT */
/* Tensors of a stream's or pool's regions that the library has for itself. */
#ifndef TSHARE_LEASE_PART_H
#define TSHARE_LEASE_PART_H

#include <stdint.h>

#include "tshare.h"

struct part {
	const char *name;
	struct tshare_dtype dtype;
	int32_t ndim;
	int64_t shape[2];
};

void part_spec(const struct part *part, struct tshare_spec *spec);

/*
 * Stores where the part's memory is at *@at. The region may be anybody's: -EPROTO if the part isn't
 * as this library makes it. @kind of region: "stream" or "pool", for texts.
 */
int part_find(struct tshare_region *region, const char *kind, const struct part *part, void *at);

/* -EPROTO: the region is none of that kind. */
int part_fail_none(struct tshare_region *region, const char *kind);

#endif /* TSHARE_LEASE_PART_H */
