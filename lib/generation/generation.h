/* SPDX-License-Identifier: MIT */
/* The state with which a region's object publishes and waits. */
#ifndef TSHARE_GENERATION_GENERATION_H
#define TSHARE_GENERATION_GENERATION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "cuda/registration.h"

struct event;
struct tshare_region;

/* Lies in memory that processes share. */
struct counter {
	_Atomic(uint64_t) generation;
	_Atomic(uint64_t) publishers; /* how many there have ever been */
	_Atomic(uint32_t) version; /* COUNTER_VERSION; 0 until a process that may write maps it */
};

/* The version of the members and of the locks. @version has the same place in all versions. */
#define COUNTER_VERSION 1

/* A waiter: a word that ends its waits, and its event descriptor. */
struct tshare_waiter {
	atomic_uint refs;
	struct tshare_region *region;
	_Atomic(uint32_t) cancelled; /* a word that its sleepers sleep on */
	struct event *event;	     /* made when first asked for; under the process's lock */
};

/* Created on first use, so a region without waiters pays nothing. */
struct generation {
	_Atomic(struct counter *) counter; /* mapped */
	atomic_int ask_fd;		   /* any description, to test locks; -1 if none */
	atomic_int lock_fd;		   /* its own, with a publisher's lock; -1 if none */
	uint64_t lock;			   /* the byte to lock; set with @counter */
	_Atomic(int64_t) alive_at;	   /* when other publishers were seen last */
	LIST_ENTRY(generation) publisher;  /* while @lock_fd is open */
	struct tshare_waiter waiter;	   /* of the region's own calls */
	struct registered registered;	   /* the counter's page; see registration_lock() */
};

void generation_init(struct tshare_region *region);
void generation_release(struct tshare_region *region);

/* The counter, mapped if need be; NULL with @err stored if it is unavailable. */
struct counter *generation_counter(struct tshare_region *region, int *err);

/*
 * Fails with -EPROTO if a process whose library uses another version shares the counter. A
 * reader may have mapped it before that process.
 */
int generation_check_version(struct counter *counter);

/* With the process's lock held: maps the counter; opens a description to test locks. */
int generation_map(struct tshare_region *region);
int generation_prepare_to_ask(struct tshare_region *region);

/* Opens a description that nobody shares, for a publisher's lock. */
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

#endif /* TSHARE_GENERATION_GENERATION_H */
