/* SPDX-License-Identifier: MIT */
/*
 * A region's memory, registered with CUDA's driver where it is mapped: once for each object,
 * however many pins and imports need it.
 */
#ifndef TSHARE_REGISTRATION_H
#define TSHARE_REGISTRATION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct tshare_region;

/* Of the thread that has locked it. */
struct registration {
	bool locked; /* under the process's lock */
	bool registered;
	atomic_uint pins;   /* read by any thread */
	bool imported;	    /* a device has its address, until the region goes */
	uint64_t memory_id; /* of the registration */
	int device;	    /* in a context of which it was registered */
	bool retained;	    /* that is its primary context, and is kept */
};

/*
 * Waits until no other thread uses the driver for this region. It is not the process's
 * lock, which must not be held: to register memory takes seconds. In a forked child it may
 * never be unlocked, so cuda_start() comes first, or cuda_is_forked().
 */
void registration_lock(struct tshare_region *region);
void registration_unlock(struct tshare_region *region);

/*
 * Registers the memory, locked, if it isn't. 0, a result of the driver's, or a negative
 * errno if the driver wasn't asked. @created is set if the device has got a primary
 * context, which lasts as long as the registration.
 */
int registration_make(struct tshare_region *region, int device, bool *created);

/* Whether it is registered still: a reset of the device ends it, or the end of a context. */
bool registration_is_valid(const struct tshare_region *region);

/* Unregisters it, locked, unless a pin or an import needs it. */
void registration_drop(struct tshare_region *region);

/* For a region that nobody uses any more, before it is unmapped. */
void registration_release(struct tshare_region *region);

#endif /* TSHARE_REGISTRATION_H */
