// SPDX-License-Identifier: MIT
#include "lease/ring.h"

/*
 * Read-modify-writes of words and of @keep, and what is loaded after a store that another process
 * answers to, are sequentially consistent: the protocol is of the kind "each says what it does,
 * then looks at what the other one does".
 */

static bool is_history(const struct ring *ring, uint64_t number, uint64_t generation)
{
	return number && (number > generation || generation - number < ring->history);
}

static int find_oldest(const struct ring *ring, uint64_t generation, const bool *claimed)
{
	uint64_t number, least = UINT64_MAX;
	int found = -1;
	uint32_t slot;

	for (slot = 0; slot < ring->slots; slot++) {
		number = ring_number(ring, slot);
		if (number >= least || is_history(ring, number, generation))
			continue;
		/* A broken consumer may have cleared the word of a slot that is claimed. */
		if (claimed[slot] || atomic_load(&ring->words[slot].value))
			continue;
		least = number;
		found = slot;
	}
	return found;
}

int ring_claim(struct ring *ring, uint64_t generation, const bool *claimed)
{
	uint64_t none;
	int slot;

	while ((slot = find_oldest(ring, generation, claimed)) >= 0) {
		lease_step("claim");
		none = 0;
		if (!atomic_compare_exchange_strong(&ring->words[slot].value, &none, RING_WRITING))
			continue;
		lease_step("claim_number");
		atomic_store_explicit(&ring->numbers[slot], 0, memory_order_relaxed);
		/* An observer that has copied what is written from now on finds no number. */
		atomic_thread_fence(memory_order_release);
		lease_step("fill");
		return slot;
	}
	return -1;
}

void ring_abandon(struct ring *ring, uint32_t slot)
{
	lease_step("abandon");
	atomic_store(&ring->words[slot].value, 0);
}

static uint64_t keeping(const struct ring *ring)
{
	if (!ring->may_keep)
		return 0;
	return atomic_load(&ring->keep->value) & RING_SEATS & ~atomic_load(&ring->head->evicted);
}

void ring_publish(struct ring *ring, uint32_t slot, uint64_t number)
{
	uint64_t kept, gone;

	lease_step("publish_number");
	atomic_store(&ring->numbers[slot], number);
	lease_step("publish_keep");
	kept = keeping(ring);
	lease_step("publish_word");
	atomic_exchange(&ring->words[slot].value, kept);
	/* A consumer that left before the exchange has cleared all bits but this one. */
	lease_step("publish_again");
	gone = kept & ~keeping(ring);
	if (gone) {
		lease_step("publish_gone");
		atomic_fetch_and(&ring->words[slot].value, ~gone);
	}
	lease_step("publish");
}

uint64_t ring_occupied(const struct ring *ring)
{
	uint64_t seats = atomic_load(&ring->keep->value) | atomic_load(&ring->head->evicted);
	uint32_t slot;

	for (slot = 0; slot < ring->slots; slot++)
		seats |= atomic_load(&ring->words[slot].value);
	return seats & RING_SEATS;
}

void ring_clear_strays(struct ring *ring, const bool *claimed)
{
	uint32_t slot;

	for (slot = 0; slot < ring->slots; slot++)
		if (!claimed[slot] && atomic_load(&ring->words[slot].value) & ~RING_SEATS)
			atomic_fetch_and(&ring->words[slot].value, RING_SEATS);
}

void ring_clear_leases(struct ring *ring, int seat)
{
	uint32_t slot;

	for (slot = 0; slot < ring->slots; slot++) {
		lease_step("clear_word");
		if (atomic_load(&ring->words[slot].value) & ring_bit(seat))
			atomic_fetch_and(&ring->words[slot].value, ~ring_bit(seat));
	}
}

void ring_clear_seat(struct ring *ring, int seat)
{
	lease_step("clear_keep");
	atomic_fetch_and(&ring->keep->value, ~ring_bit(seat));
	ring_clear_leases(ring, seat);
}

void ring_leave_frames(struct ring *ring, int seat, const uint32_t *held)
{
	uint32_t slot;

	lease_step("clear_keep");
	atomic_fetch_and(&ring->keep->value, ~ring_bit(seat));
	for (slot = 0; slot < ring->slots; slot++)
		if (!held[slot])
			ring_release(ring, seat, slot);
}

void ring_keep(struct ring *ring, int seat)
{
	lease_step("keep");
	atomic_fetch_or(&ring->keep->value, ring_bit(seat));
	lease_step("keep_newest");
}

/* Whether the frame in @slot, which the producer isn't filling, is granted to the seat. */
static bool has_grant(const struct ring *ring, int seat, uint32_t slot)
{
	uint64_t word = atomic_load(&ring->words[slot].value);

	return word & ring_bit(seat) && !(word & RING_WRITING);
}

uint64_t ring_first_grant(const struct ring *ring, int seat, uint64_t otherwise)
{
	uint64_t first = otherwise, number;
	uint32_t slot;

	for (slot = 0; slot < ring->slots; slot++) {
		lease_step("keep_adopt");
		if (!has_grant(ring, seat, slot))
			continue;
		number = ring_number(ring, slot);
		if (number && number < first)
			first = number;
	}
	return first;
}

bool ring_is_granted(const struct ring *ring, int seat, uint32_t slot, uint64_t number)
{
	return ring_number(ring, slot) == number && has_grant(ring, seat, slot);
}

enum ring_lease ring_lease(struct ring *ring, int seat, uint32_t slot, uint64_t number,
			   bool *undone)
{
	uint64_t bit = ring_bit(seat), word = atomic_load(&ring->words[slot].value);

	lease_step("take_word");
	do {
		if (word & RING_WRITING)
			return RING_WRITTEN;
		/* Granted. Undoing that would remove a newer frame's grant. */
		if (word & bit)
			return ring_number(ring, slot) == number ? RING_GRANTED : RING_CHANGED;
	} while (!atomic_compare_exchange_weak(&ring->words[slot].value, &word, word | bit));
	lease_step("take_number");
	if (ring_number(ring, slot) == number)
		return RING_LEASED;
	ring_release(ring, seat, slot);
	*undone = true;
	return RING_CHANGED;
}

void ring_release(struct ring *ring, int seat, uint32_t slot)
{
	lease_step("release_word");
	atomic_fetch_and(&ring->words[slot].value, ~ring_bit(seat));
	lease_step("release_waiting");
}
