/* SPDX-License-Identifier: MIT */
/* The counter of a region, in memory that processes share. */
#ifndef TSHARE_GENERATION_COUNTER_H
#define TSHARE_GENERATION_COUNTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backend/backend.h"

struct tshare_region;

/* Lies in memory that processes share. */
struct counter {
	_Atomic(uint64_t) generation;
	_Atomic(uint64_t) publishers; /* how many there have ever been */
	_Atomic(uint32_t) version; /* COUNTER_VERSION; 0 until a process that may write maps it */
};

/* The version of the members and of the locks. @version has the same place in all versions. */
#define COUNTER_VERSION 1

/* The counter, mapped if need be; NULL with @err stored if it is unavailable. */
struct counter *counter_get(struct tshare_region *region, int *err);

/*
 * Fails with -EPROTO if a process whose library uses another version shares the counter. A
 * reader may have mapped it before that process.
 */
int counter_check_version(struct counter *counter);

/* With the process's lock held: maps the counter; opens a description to test locks. */
int counter_map(struct tshare_region *region);
int counter_prepare_to_ask(struct tshare_region *region);

/* Opens the counter's file. */
int counter_find(const struct tshare_region *region, enum counter_use use,
		 struct backend_counter *found);

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

#endif /* TSHARE_GENERATION_COUNTER_H */
