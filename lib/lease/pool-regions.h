/* SPDX-License-Identifier: MIT */
/* The two regions of a pool: their tensors, and where the directory's memory is in them. */
#ifndef TSHARE_LEASE_POOL_REGIONS_H
#define TSHARE_LEASE_POOL_REGIONS_H

#include <stdint.h>

#include "lease/pool-object.h"

/* Creates the drafts NAME and NAME.seats, whose names go with @pool, and finds all memory. */
int pool_regions_create(struct tshare_pool *pool, struct tshare_ctx *ctx, const char *name,
			const char *seats, uint32_t slots, uint64_t slot_size,
			struct tshare_options *options);

/* Finds the directory's memory in NAME, and checks it. Stores the pool's id. */
int pool_regions_bind(struct tshare_pool *pool, uint64_t *id);

/* The same in NAME.seats; -ESTALE if it belongs to another pool. */
int pool_regions_bind_seats(struct tshare_pool *pool, uint64_t id);

#endif /* TSHARE_LEASE_POOL_REGIONS_H */
