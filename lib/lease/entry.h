/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_LEASE_ENTRY_H
#define TSHARE_LEASE_ENTRY_H

#include <stddef.h>
#include <stdint.h>

#include "format/desc-list.h"
#include "lease/pool.h"

/* An entry of no slot yet; NULL, with a text, without memory. */
struct tshare_entry *entry_new(struct tshare_pool *pool);

/* With the pool's lock held: gives the entry its slots. */
void entry_add(struct tshare_entry *entry, uint32_t slot, uint32_t count, enum entry_state state);

/* Checks a caller's key, and whether this process may use the pool. */
int entry_read_key(struct tshare_pool *pool, const void *key, size_t size, struct key *known);

/*
 * Makes an unfinished entry one that a CUDA stream will finish: 0, or as tshare_entry_finish(). The
 * others are for such an entry. They call neither CUDA nor what waits for it.
 */
int entry_queue(struct tshare_entry *entry);
void entry_unqueue(struct tshare_entry *entry);
void entry_finish_queued(struct tshare_entry *entry);

/* Where tensors begin in an entry with that many bytes of descriptors, which may be before them. */
uint64_t entry_base(uint64_t descs_size);

/* Writes the descriptors of @entry->list. */
void entry_write_tensors(struct tshare_entry *entry);

/* Wakes makers that wait for room, or for an entry. They all look again. */
void entry_wake_makers(struct tshare_pool *pool);

#endif /* TSHARE_LEASE_ENTRY_H */
