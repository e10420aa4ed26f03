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

struct cuda_scope;
struct tshare_region;

/* Memory of the process's that is registered with the driver. */
struct registered {
	bool made;
	uint64_t id;   /* see cuda_memory_id() */
	int device;    /* in a context of which it was registered */
	bool retained; /* that is its primary context, and is kept */
};

/*
 * In a scope: registers memory that isn't. One that isn't valid any more went with its context.
 * That was the caller's, or somebody has reset the device: then the reference to the primary
 * context has gone, too. 0, or a result of the driver's.
 */
int registered_make(struct registered *memory, void *start, uint64_t size, bool readonly,
		    struct cuda_scope *scope);

/* Whether it is registered still: a reset of the device ends it, or the end of a context. */
bool registered_is_valid(const struct registered *memory, const void *start);

/* Unregisters it, if it is registered. */
void registered_drop(struct registered *memory, void *start, uint64_t size);

/* Of the thread that has locked it. */
struct registration {
	bool locked;	  /* under the process's lock */
	atomic_uint pins; /* read by any thread */
	bool imported;	  /* a device has its address, until the region goes */
	struct registered memory;
};

/*
 * Waits until no other thread uses the driver for this region. It is not the process's
 * lock, which must not be held: to register memory takes seconds. In a forked child it may
 * never be unlocked, so cuda_start() comes first, or cuda_is_forked().
 */
void registration_lock(struct tshare_region *region);
void registration_unlock(struct tshare_region *region);

/*
 * Registers the region's memory, locked, if it isn't. As registered_make(), or a negative
 * errno if the driver wasn't asked. @created is set if the device has got a primary context,
 * which lasts as long as the registration.
 */
int registration_make(struct tshare_region *region, int device, bool *created);

bool registration_is_valid(const struct tshare_region *region);

/*
 * Adds a pin if there is one already and it is registered still, and returns whether. Each is
 * dropped by registration_unpin(). Both lock it.
 */
bool registration_pin_again(struct tshare_region *region);
void registration_unpin(struct tshare_region *region);

/* Unregisters it, locked, unless a pin or an import needs it. */
void registration_drop(struct tshare_region *region);

/* For a region that nobody uses any more, before it is unmapped. */
void registration_release(struct tshare_region *region);

#endif /* TSHARE_REGISTRATION_H */
