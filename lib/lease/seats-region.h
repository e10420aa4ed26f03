/* SPDX-License-Identifier: MIT */
/* NAME.seats, the second region of a stream or pool: leases, and who has them. */
#ifndef TSHARE_LEASE_SEATS_REGION_H
#define TSHARE_LEASE_SEATS_REGION_H

#include <stdint.h>

#include "format/region-name.h"
#include "lease/ring.h"
#include "lease/seat-label.h"
#include "tshare.h"

/* Stores the region's name, for that of the other region. */
int seats_region_name(const char *name, char seats[TSHARE_NAME_LEN]);

/* @kind: "stream" or "pool". @region: the other one's options. */
int seats_region_create(struct tshare_ctx *ctx, const char *name, const char *kind, uint32_t slots,
			const struct tshare_options *region, struct tshare_region **made);

/* Writes @head, with a random id, into both regions, which are new. */
int seats_region_write_heads(struct tshare_region *region, struct tshare_region *seats,
			     const char *kind, const struct ring_head *head);

/*
 * Finds the memory of leases and labels, for @ring->slots, and checks it. -ESTALE if it belongs to
 * a region of another id.
 */
int seats_region_bind(struct tshare_region *seats, const char *kind, uint64_t version, uint64_t id,
		      struct ring *ring, struct seat_labels *labels);

/*
 * Sleeps until something happens to the seats after @seen, or until then by the monotonic clock: 0;
 * -EINTR; -ECANCELED.
 */
int seats_region_sleep(struct tshare_region *seats, uint64_t seen, int64_t until);

#endif /* TSHARE_LEASE_SEATS_REGION_H */
