/* SPDX-License-Identifier: MIT */
/* The holder of a byte of a stream's or pool's region, for memory that another library names. */
#ifndef TSHARE_LEASE_OWNERS_H
#define TSHARE_LEASE_OWNERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct seats;
struct tensor_owner;
struct tshare_region;

/* A part of the stream's or pool's object, which sets it before owners_begin(). */
struct owners {
	atomic_uint *refs; /* of the object */
	const struct seats *seats;
	pthread_mutex_t *lock;

	/*
	 * With @lock held: stores a reference to the frame or entry at @offset, if there is one;
	 * -ENOENT if nobody holds it.
	 */
	int (*find)(struct owners *owners, uint64_t offset, struct tensor_owner **owner);
	void (*unref)(struct owners *owners);
};

/* Lets tensors be made of memory of frames or entries, which keep them. Until the end. */
void owners_begin(struct tshare_region *region, struct owners *owners);
void owners_end(struct tshare_region *region);

#endif /* TSHARE_LEASE_OWNERS_H */
