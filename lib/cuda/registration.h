/* SPDX-License-Identifier: MIT */
/*
 * A region's memory, registered with CUDA's driver where it is mapped: once for each object,
 * however many pins and imports need it.
 */
#ifndef TSHARE_CUDA_REGISTRATION_H
#define TSHARE_CUDA_REGISTRATION_H

#include <stdbool.h>

struct tshare_region;

/*
 * Waits until no other thread uses the driver for this region. The process's lock must not
 * be held: registering memory takes seconds. A forked child may find it locked for ever, so
 * cuda_start() comes first, or cuda_is_forked().
 */
void registration_lock(struct tshare_region *region);
void registration_unlock(struct tshare_region *region);

/*
 * With the registration locked: registers the region's memory if it isn't. As
 * registered_make(), or a negative errno if the driver wasn't asked. @created: the device
 * has got a primary context, which lasts as long as the registration.
 */
int registration_make(struct tshare_region *region, int device, bool *created);

bool registration_is_valid(const struct tshare_region *region);

/*
 * Adds a pin if there is one already and the memory is still registered; returns whether.
 * registration_unpin() drops a pin. Both lock the registration.
 */
bool registration_pin_again(struct tshare_region *region);
void registration_unpin(struct tshare_region *region);

/* With the registration locked: ends it, unless a pin or an import needs it. */
void registration_drop(struct tshare_region *region);

#endif /* TSHARE_CUDA_REGISTRATION_H */
