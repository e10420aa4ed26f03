/* SPDX-License-Identifier: MIT */
/* The object of a region, with what each wing keeps in it. */
#ifndef TSHARE_REGION_OBJECT_H
#define TSHARE_REGION_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "backend/backend.h"

struct counter;
struct cuda_import;
struct desc_list;
struct event;
struct tensor_owner;
struct watch;

/* generation/ */

/* A waiter: a word that ends its waits, and its event descriptor. */
struct tshare_waiter {
	atomic_uint refs;
	struct tshare_region *region;
	_Atomic(uint32_t) cancelled; /* a word that its sleepers sleep on */
	struct event *event;	     /* made when first asked for; under the process's lock */
	LIST_HEAD(, watch) watches;  /* under that lock, too */
};

#define NEVER_NS (INT64_MIN / 2)

/* Created on first use, so a region without waiters pays nothing. */
struct generation {
	_Atomic(struct counter *) counter; /* mapped */
	atomic_int ask_fd;		   /* any description, to test locks; -1 if none */
	atomic_int lock_fd;		   /* its own, with a publisher's lock; -1 if none */
	uint64_t lock;			   /* the byte to lock; set with @counter */
	_Atomic(int64_t) alive_at;	   /* when other publishers were seen last, or NEVER_NS */
	LIST_ENTRY(generation) publisher;  /* while @lock_fd is open */
	struct tshare_waiter waiter;	   /* of the region's own calls */
};

/* cuda/ */

/* Memory of the process's that is registered with the driver. */
struct registered {
	bool made;
	uint64_t id;   /* see cuda_memory_id() */
	int device;    /* in a context of which it was registered */
	bool retained; /* it holds a reference to the primary context */
};

/* Members belong to the thread that holds @locked. */
struct registration {
	bool locked;	  /* under the process's lock */
	atomic_uint pins; /* read by any thread */
	bool imported;	  /* a device has its address, until the region goes */
	struct registered memory;
	struct registered counter; /* the page of the region's counter */
	SLIST_HEAD(, cuda_import) imports;
};

/* A device's memory, in place of the host's. */
struct device_memory {
	int32_t device;
	uint64_t address; /* of the region's first byte */
};

/* lease/ */

/* A stream's or pool's region: the frames, or entries, that its memory belongs to. */
struct frames {
	struct owners *owners; /* under the process's lock; NULL when the stream or pool is gone */

	/*
	 * Stores a reference to the frame that @data is in, or NULL if it is beside the frames.
	 * -ENOENT if nobody holds that frame. NULL for any other region.
	 */
	int (*find)(struct tshare_region *region, const void *data, struct tensor_owner **frame);
};

/*
 * Wings that put something into a region leave the function that releases it, which the last
 * unref calls before it unmaps the memory. In this order: the counter's page is unregistered
 * before it is unmapped, and imports go before the registration that they stand on.
 */
enum region_part {
	REGION_CUDA_COUNTER,
	REGION_EVENT,
	REGION_PUBLISHER,
	REGION_COUNTER,
	REGION_CUDA_IMPORTS,
	REGION_REGISTRATION,
	REGION_PARTS
};

struct tshare_region {
	atomic_uint refs;
	struct tshare_ctx *ctx;
	const struct backend_ops *backend; /* may differ from the context's after an import */
	struct backend_region handle;
	void *data; /* NULL for memory that is on a device */
	struct device_memory on_device;
	bool readonly;			   /* the mapping is, maybe not the descriptor */
	bool replaces;			   /* created with TSHARE_REPLACE, for its finish */
	atomic_bool unfinished;		   /* being created: mapped, but not to its memory */
	_Atomic(struct desc_list *) descs; /* see region_descs() */
	struct generation generation;
	struct registration registration;
	struct frames frames;
	void (*release[REGION_PARTS])(struct tshare_region *region); /* NULL for nothing */
};

static inline bool region_is_on_device(const struct tshare_region *region)
{
	return !region->data;
}

#endif /* TSHARE_REGION_OBJECT_H */
