/* SPDX-License-Identifier: MIT */
/*
 * A pool's entries: which slots each has, under which key it is found, and which of them go when
 * others need room.
 *
 * An entry has slots one behind the other, and is known by the first. Its number is 0 until it is
 * finished. To get an entry a process takes a lease, as of a stream's frame (ring.h), without a
 * lock. To make one it holds the lock of the makers, which the kernel drops with the process, and is
 * the producer of the slots that it claims. The next maker can go on after each step: a maker that
 * died has left a word that has WRITING, in a slot that nobody makes.
 * tests/model/pool explores all of it; its steps have the names of lease_step() here.
 */
#ifndef TSHARE_LEASE_DIRECTORY_H
#define TSHARE_LEASE_DIRECTORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lease/ring.h"

/* Descriptors of so many bytes are in the record, longer ones in the entry's first slot. */
#define RECORD_DESCS 192

/* The part of NAME for the entry that begins in a slot. Changed only with the makers' lock. */
struct record {
	_Atomic(uint64_t) place; /* in the index, plus 1; 0 for none */
	_Atomic(uint64_t) hash;
	_Atomic(uint64_t) key_size; /* 0 once the entry was removed */
	char key[TSHARE_POOL_KEY_MAX];
	_Atomic(uint64_t) desc_count; /* written by the entry's maker, as all below */
	_Atomic(uint64_t) descs_size;
	_Alignas(8) char descs[RECORD_DESCS];
};

struct directory {
	struct ring ring;
	_Atomic(uint32_t) *counts; /* slots of the entry that begins in each slot; 0 for none */
	_Atomic(uint32_t) *makers; /* seat of who makes that entry, plus 1; 0 once it is finished */
	struct record *records;
	_Atomic(uint64_t) *index; /* by hash: see index_word() */
	uint64_t index_size;	  /* a power of two, larger than twice the slots */
	uint64_t *ages;		  /* of runs of slots, this object's own; see find_runs() */
	uint32_t *starts, *queue; /* likewise */
};

struct key {
	const char *bytes;
	size_t size;
	uint64_t hash;
};

/* Entries of the index for @slots. */
uint64_t directory_index_size(uint32_t slots);

void directory_hash(const struct directory *directory, struct key *key);

/*
 * The next slot, of those that the index has under the key's hash, behind *@at, which is 0 at first;
 * -1 for none. Without the lock an entry may appear and go at any time.
 */
int64_t directory_next(const struct directory *directory, const struct key *key, uint64_t *at);

/* Whether the entry that begins in @slot has the key. Its lease or the lock must be held. */
bool directory_has_key(const struct directory *directory, uint32_t slot, const struct key *key);

/* Whether an entry begins in the slot, finished or not. */
bool directory_is_entry(const struct directory *directory, uint32_t slot);

/* Slots of the entry, at least 1; 0 if the memory is damaged. */
uint32_t directory_count(const struct directory *directory, uint32_t slot);

static inline int directory_maker(const struct directory *directory, uint32_t slot)
{
	uint32_t maker = atomic_load(&directory->makers[slot]);

	return maker <= TSHARE_STREAM_CONSUMERS ? (int)maker - 1 : -1;
}

/* Notes that the entry was used, so that others go first. */
void directory_touch(const struct directory *directory, uint32_t slot);

/* With the makers' lock held. */

/*
 * Gives an entry of @count slots to the maker in @seat: the first slot; -EAGAIN if too many of the
 * others are leased. Entries that nobody has used for longest go.
 */
int64_t directory_make(struct directory *directory, const struct key *key, uint32_t count,
		       int seat);

/*
 * Removes a finished entry, which nobody can get any more. Its holders keep it. -ENOENT if there is
 * none.
 */
int directory_remove(struct directory *directory, const struct key *key);
void directory_remove_all(struct directory *directory);

/* Seats that make an entry. */
uint64_t directory_makers(const struct directory *directory);

/* Without it. */

/* Ends what the seat's last process has made and leased. Needs the seat's lock. */
void directory_free_seat(struct directory *directory, int seat);

/* Only the entry's maker calls these. */

/* Everybody can get the entry from now on; @seat has a lease of it. Returns its number. */
uint64_t directory_finish(struct directory *directory, uint32_t slot, int seat);
void directory_abandon(struct directory *directory, uint32_t slot);

#endif /* TSHARE_LEASE_DIRECTORY_H */
