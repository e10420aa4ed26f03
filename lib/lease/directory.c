// SPDX-License-Identifier: MIT
#include "lease/directory.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"

#define AGE_NEVER UINT64_MAX /* leased, or being made */

/* Rooms in which somebody has leased an entry meanwhile, until the maker lets others go on. */
#define MAKE_TRIES 100

/* The index */

#define INDEX_GONE UINT64_MAX /* an entry was here, and others may be behind it */

/* Half of the hash, and the slot. */
static uint64_t index_word(uint64_t hash, uint32_t slot)
{
	return (hash >> 33 << 32) | (slot + 1);
}

uint64_t directory_index_size(uint32_t slots)
{
	uint64_t size = 64;

	while (size < (uint64_t)slots * 4)
		size *= 2;
	return size;
}

/* FNV-1a, begun with the pool's id so that nobody can choose keys that collide everywhere. */
void directory_hash(const struct directory *directory, struct key *key)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ atomic_load(&directory->ring.head->id);
	size_t i;

	for (i = 0; i < key->size; i++)
		hash = (hash ^ (unsigned char)key->bytes[i]) * UINT64_C(0x100000001b3);
	hash = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15);
	key->hash = hash ^ hash >> 29;
}

int64_t directory_next(const struct directory *directory, const struct key *key, uint64_t *at)
{
	const uint64_t mask = directory->index_size - 1;
	uint64_t word, slot;

	while (*at < directory->index_size) {
		lease_step("get_index");
		word = atomic_load(&directory->index[(key->hash + (*at)++) & mask]);
		if (!word)
			break;
		slot = (word & UINT32_MAX) - 1;
		if (slot < directory->ring.slots && word == index_word(key->hash, slot))
			return slot;
	}
	*at = directory->index_size;
	return -1;
}

bool directory_has_key(const struct directory *directory, uint32_t slot, const struct key *key)
{
	const struct record *record = &directory->records[slot];

	return atomic_load(&record->hash) == key->hash &&
	       atomic_load(&record->key_size) == key->size &&
	       !memcmp(record->key, key->bytes, key->size);
}

static void index_add(struct directory *directory, uint32_t slot, uint64_t hash)
{
	const uint64_t mask = directory->index_size - 1;
	uint64_t at, word, i;

	for (i = 0; i < directory->index_size; i++) {
		at = (hash + i) & mask;
		word = atomic_load(&directory->index[at]);
		if (word && word != INDEX_GONE)
			continue;
		/* After a death the next claim of the slot finds the place, or nothing there. */
		atomic_store(&directory->records[slot].place, at + 1);
		lease_step("make_index");
		atomic_store(&directory->index[at], index_word(hash, slot));
		return;
	}
}

/* Places that nothing is behind any more become empty, so that searches end there. */
static void index_remove(struct directory *directory, uint32_t slot)
{
	struct record *record = &directory->records[slot];
	const uint64_t mask = directory->index_size - 1;
	uint64_t at = atomic_load(&record->place) - 1, i;

	if (at >= directory->index_size)
		return;
	if (atomic_load(&directory->index[at]) == index_word(atomic_load(&record->hash), slot))
		atomic_store(&directory->index[at], INDEX_GONE);
	for (i = 0; i < directory->index_size; i++, at = (at - 1) & mask) {
		lease_step("make_empty");
		if (atomic_load(&directory->index[at]) != INDEX_GONE ||
		    atomic_load(&directory->index[(at + 1) & mask]))
			break;
		atomic_store(&directory->index[at], 0);
	}
	lease_step("make_place");
	atomic_store(&record->place, 0);
}

/* Room */

/*
 * Looks at the maker first. To finish an entry stores its number, and then clears the maker: a
 * caller meanwhile finds one of the two.
 */
bool directory_is_entry(const struct directory *directory, uint32_t slot)
{
	return directory_maker(directory, slot) >= 0 || ring_number(&directory->ring, slot);
}

uint32_t directory_count(const struct directory *directory, uint32_t slot)
{
	uint32_t count = atomic_load(&directory->counts[slot]);

	return count <= directory->ring.slots - slot ? count : 0;
}

void directory_touch(const struct directory *directory, uint32_t slot)
{
	atomic_store_explicit(&directory->ring.words[slot].used, clock_ns(), memory_order_relaxed);
}

static uint64_t age_of(const struct directory *directory, uint32_t slot)
{
	const struct ring_line *line = &directory->ring.words[slot];
	uint64_t used;

	lease_step("make_age");
	if (directory_maker(directory, slot) >= 0 || atomic_load(&line->value) & RING_SEATS)
		return AGE_NEVER;
	used = atomic_load_explicit(&line->used, memory_order_relaxed);
	return used && used < AGE_NEVER ? used : 1;
}

/*
 * The runs of slots: entries, and free slots that lie side by side. Each has an age, when it was
 * last used, which is 0 of free ones. Returns how many there are.
 */
static uint32_t find_runs(struct directory *directory)
{
	uint32_t slot, count, runs = 0;
	uint64_t age;

	for (slot = 0; slot < directory->ring.slots; slot += count) {
		age = 0;
		count = 1;
		lease_step("make_room");
		if (directory_is_entry(directory, slot)) {
			age = age_of(directory, slot);
			count = directory_count(directory, slot);
			count = count ? count : 1;
		}
		if (!age && runs && !directory->ages[runs - 1])
			continue;
		directory->starts[runs] = slot;
		directory->ages[runs++] = age;
	}
	return runs;
}

/*
 * Where @count slots are whose newest use is the longest ago; -1 if each such place has one that is
 * leased. Only places that begin with a run are looked at: to move a place back to where its first
 * run begins adds no run to it. The queue has those runs of a place that are newer than all behind
 * them, so its first is the newest.
 */
static int64_t find_room(struct directory *directory, uint32_t count)
{
	const uint32_t runs = find_runs(directory), slots = directory->ring.slots;
	uint32_t *queue = directory->queue, first = 0, behind = 0, next = 0, run;
	const uint32_t *starts = directory->starts;
	const uint64_t *ages = directory->ages;
	uint64_t least = AGE_NEVER;
	int64_t found = -1;

	for (run = 0; run < runs && count <= slots - starts[run] && least; run++) {
		for (; next < runs && starts[next] < starts[run] + count; next++) {
			while (behind > first && ages[queue[behind - 1]] <= ages[next])
				behind--;
			queue[behind++] = next;
		}
		if (queue[first] < run)
			first++;
		if (ages[queue[first]] >= least)
			continue;
		least = ages[queue[first]];
		found = starts[run];
	}
	return found;
}

/* Takes an entry out, if nobody has leased it since: whether it is gone. */
static bool evict(struct directory *directory, uint32_t slot)
{
	struct ring *ring = &directory->ring;
	uint64_t word = atomic_load(&ring->words[slot].value);

	lease_step("make_evict");
	/* A maker that has died, or a broken process, may have left other bits than leases. */
	do {
		if (word & RING_SEATS)
			return false;
	} while (!atomic_compare_exchange_weak(&ring->words[slot].value, &word, RING_WRITING));
	lease_step("make_evict_number");
	atomic_store(&ring->numbers[slot], 0);
	return true;
}

/* Frees a slot that is no entry's first, or that of one that is gone. */
static void clear(struct directory *directory, uint32_t slot)
{
	lease_step("make_clear");
	index_remove(directory, slot);
	atomic_store(&directory->counts[slot], 0);
	lease_step("make_zero");
	if (atomic_load(&directory->ring.words[slot].value))
		atomic_store(&directory->ring.words[slot].value, 0);
}

static bool clear_room(struct directory *directory, uint32_t first, uint32_t count)
{
	uint32_t slot;

	for (slot = first; slot < first + count; slot++) {
		if (ring_number(&directory->ring, slot) && !evict(directory, slot))
			return false;
		clear(directory, slot);
	}
	return true;
}

int64_t directory_make(struct directory *directory, const struct key *key, uint32_t count, int seat)
{
	struct record *record;
	int tries = MAKE_TRIES;
	int64_t slot;

	do {
		slot = find_room(directory, count);
		if (slot < 0 || !tries--)
			return -EAGAIN;
	} while (!clear_room(directory, slot, count));
	record = &directory->records[slot];
	lease_step("make_record");
	atomic_store(&record->hash, key->hash);
	atomic_store(&record->key_size, key->size);
	memcpy(record->key, key->bytes, key->size);
	atomic_store(&directory->counts[slot], count);
	index_add(directory, slot, key->hash);
	lease_step("make_word");
	atomic_store(&directory->ring.words[slot].value, RING_WRITING);
	lease_step("make_maker");
	atomic_store(&directory->makers[slot], seat + 1);
	directory_touch(directory, slot);
	return slot;
}

/* Whether there is a finished entry, which others can get. */
static bool is_finished(const struct directory *directory, uint32_t slot)
{
	return ring_number(&directory->ring, slot) &&
	       !(atomic_load(&directory->ring.words[slot].value) & RING_WRITING);
}

/* Without its key nobody finds an entry. A held entry is the first to go once it is dropped. */
static void remove_entry(struct directory *directory, uint32_t slot)
{
	lease_step("remove_key");
	atomic_store(&directory->records[slot].key_size, 0);
	index_remove(directory, slot);
	atomic_store_explicit(&directory->ring.words[slot].used, 1, memory_order_relaxed);
	if (evict(directory, slot))
		clear(directory, slot);
}

int directory_remove(struct directory *directory, const struct key *key)
{
	uint64_t at = 0;
	int64_t slot;

	while ((slot = directory_next(directory, key, &at)) >= 0) {
		if (!directory_has_key(directory, slot, key) || !is_finished(directory, slot))
			continue;
		remove_entry(directory, slot);
		return 0;
	}
	return -ENOENT;
}

void directory_remove_all(struct directory *directory)
{
	uint32_t slot;

	for (slot = 0; slot < directory->ring.slots; slot++)
		if (is_finished(directory, slot))
			remove_entry(directory, slot);
}

/* Makers */

uint64_t directory_makers(const struct directory *directory)
{
	uint64_t seats = 0;
	uint32_t slot;
	int maker;

	for (slot = 0; slot < directory->ring.slots; slot++) {
		maker = directory_maker(directory, slot);
		if (maker >= 0)
			seats |= ring_bit(maker);
	}
	return seats;
}

void directory_free_seat(struct directory *directory, int seat)
{
	uint32_t slot;

	for (slot = 0; slot < directory->ring.slots; slot++) {
		lease_step("free_maker");
		if (directory_maker(directory, slot) != seat)
			continue;
		/* With a word of leases the entry was finished. */
		if (atomic_load(&directory->ring.words[slot].value) == RING_WRITING)
			directory_abandon(directory, slot);
		else
			atomic_store(&directory->makers[slot], 0);
	}
	ring_clear_leases(&directory->ring, seat);
}

uint64_t directory_finish(struct directory *directory, uint32_t slot, int seat)
{
	struct ring *ring = &directory->ring;
	uint64_t number = atomic_fetch_add(&ring->head->entries, 1) + 1;

	directory_touch(directory, slot);
	lease_step("finish_number");
	atomic_store(&ring->numbers[slot], number);
	lease_step("finish_word");
	atomic_store(&ring->words[slot].value, ring_bit(seat));
	lease_step("finish_maker");
	atomic_store(&directory->makers[slot], 0);
	lease_step("finish_waiting");
	return number;
}

void directory_abandon(struct directory *directory, uint32_t slot)
{
	struct ring *ring = &directory->ring;

	lease_step("abandon_number");
	atomic_store(&ring->numbers[slot], 0);
	lease_step("abandon_word");
	atomic_store(&ring->words[slot].value, 0);
	lease_step("abandon_maker");
	atomic_store(&directory->makers[slot], 0);
	lease_step("abandon_waiting");
}
