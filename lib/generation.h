/* SPDX-License-Identifier: MIT */
/* What a region's object holds to publish and to wait. */
#ifndef TSHARE_GENERATION_H
#define TSHARE_GENERATION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "registration.h"

struct event;
struct tshare_region;

/* In memory that processes share. */
struct counter {
	_Atomic(uint64_t) generation;
	_Atomic(uint64_t) publishers; /* all that have ever been */
	_Atomic(uint32_t) version; /* COUNTER_VERSION; 0 until a process that may write maps it */
};

/* Of what the members mean, and the locks beside them. Its place is the same in all versions. */
#define COUNTER_VERSION 1

/* One that waits: what ends its waits, and its descriptor. */
struct tshare_waiter {
	atomic_uint refs;
	struct tshare_region *region;
	_Atomic(uint32_t) cancelled; /* a word that its sleepers sleep on */
	struct event *event;	     /* made when first asked for; under the process's lock */
};

/* All is made when first needed: a region that nobody waits for costs nothing more. */
struct generation {
	_Atomic(struct counter *) counter; /* mapped */
	atomic_int ask_fd;		   /* any description, to ask for locks; -1 if none */
	atomic_int lock_fd;		   /* one of its own, which makes it a publisher; or -1 */
	uint64_t lock;			   /* which byte; known with @counter */
	_Atomic(int64_t) alive_at;	   /* when other publishers were seen last */
	LIST_ENTRY(generation) publisher;  /* while there is @lock_fd */
	struct tshare_waiter waiter;	   /* that the region's own calls wait with */
	struct registered registered;	   /* its page, for kernels; see registration_lock() */
};

void generation_init(struct tshare_region *region);
void generation_release(struct tshare_region *region);

/* The counter, mapped if need be; NULL with @err stored if it is unavailable. */
struct counter *generation_counter(struct tshare_region *region, int *err);

/*
 * Fails with -EPROTO if processes whose library speaks another version share the counter. A
 * process that may only read it can have mapped it before they did.
 */
int generation_check_version(struct counter *counter);

/* With the process's lock held: maps the counter; opens a description to ask for locks. */
int generation_map(struct tshare_region *region);
int generation_prepare_to_ask(struct tshare_region *region);

/* A description of the counter's own, for a publisher's lock. */
int generation_open_own(struct tshare_region *region, int *fd);

static inline uint64_t newest(struct counter *counter)
{
	return atomic_load_explicit(&counter->generation, memory_order_acquire);
}

/* The half of the counter that changes with each publish, on which processes sleep. */
static inline uint32_t *futex_half(struct counter *counter)
{
	uint32_t *halves = (uint32_t *)&counter->generation;

	return halves + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

#endif /* TSHARE_GENERATION_H */
