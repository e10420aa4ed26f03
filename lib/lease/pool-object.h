/* SPDX-License-Identifier: MIT */
/* The objects of a pool and of an entry. */
#ifndef TSHARE_LEASE_POOL_OBJECT_H
#define TSHARE_LEASE_POOL_OBJECT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lease/directory.h"
#include "lease/owners.h"
#include "lease/seat-label.h"
#include "lease/seat.h"
#include "tensor/tensor.h"
#include "tshare.h"

struct desc_list;

struct tshare_pool {
	atomic_uint refs;
	bool maker;   /* may make entries */
	bool unlinks; /* the names end with this object */
	struct tshare_region *region;
	struct tshare_region *seats_region;
	struct seats seats;
	struct seat_labels labels;
	int seat;
	struct directory directory;
	uint64_t data_offset; /* of the first slot, in the region */
	uint64_t slot_size;

	/* A child of fork() doesn't take it. */
	pthread_mutex_t lock;
	struct owners owners;
	LIST_HEAD(, tshare_entry) entries; /* that have slots, under @lock */
	uint32_t *holds;		   /* entries' objects of each slot, under @lock */
};

enum entry_state {
	ENTRY_MADE_HERE,
	ENTRY_QUEUED, /* a CUDA stream will finish it */
	ENTRY_LEASED,
};

struct tshare_entry {
	struct tensor_owner owner; /* for its tensors */
	atomic_uint refs;
	LIST_ENTRY(tshare_entry) entry; /* in the pool's list, while it has slots */
	struct tshare_pool *pool;
	atomic_int state; /* enum entry_state */
	bool has_slots;
	uint32_t slot;
	uint32_t count;
	uint64_t base; /* of the tensors, from the region's start */
	struct desc_list *list;
};

#endif /* TSHARE_LEASE_POOL_OBJECT_H */
