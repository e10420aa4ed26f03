/* SPDX-License-Identifier: MIT */
/*
 * The protocol of leases: words and numbers in memory that processes share. No function makes a
 * system call.
 *
 * Each slot has a number, that of the frame in it, which only the producer writes; and a word: a
 * bit for each seat that has a lease of the frame, or WRITING while the producer has claimed the
 * slot. The producer claims a slot whose word is 0. A consumer sets its bit and then looks whether
 * the slot's number is still the same: if so, the slot can't be claimed before the bit is cleared.
 * A consumer that keeps every frame has a bit in @keep; each frame is published with those bits
 * set. tests/model/leases explores all of it; its steps have the names of lease_step() here.
 */
#ifndef TSHARE_LEASE_RING_H
#define TSHARE_LEASE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tshare.h"

#define RING_WRITING (UINT64_C(1) << 63)
#define RING_SEATS   ((UINT64_C(1) << TSHARE_STREAM_CONSUMERS) - 1)

/* A cache line, so that two slots' consumers don't slow one another down. */
struct ring_line {
	_Alignas(64) _Atomic(uint64_t) value;
	_Atomic(uint64_t) used; /* a pool's: when the entry was last used */
};

#define RING_HEAD_WORDS 16

/* The stream's memory, which only the producer writes; see regions.c. */
struct ring_head {
	_Atomic(uint64_t) version;
	_Atomic(uint64_t) id; /* in NAME.seats, too */
	_Atomic(uint64_t) history;
	_Atomic(uint64_t) flags;
	_Atomic(uint64_t) end;	   /* the generation that has no frame, or 0 */
	_Atomic(uint64_t) evicted; /* seats */
	_Atomic(uint64_t) entries; /* that a pool's makers have finished so far */
};

struct ring {
	uint32_t slots;
	uint32_t history;
	bool may_keep;
	struct ring_head *head;
	_Atomic(uint64_t) *numbers; /* of the frames in the slots; 0 for none */

	/* Written by consumers. NULL for an observer, or read-only. */
	struct ring_line *words;
	struct ring_line *keep;	   /* seats */
	struct ring_line *waiting; /* the producer sleeps until a slot is free */
};

static inline uint64_t ring_bit(int seat)
{
	return UINT64_C(1) << seat;
}

static inline uint64_t ring_number(const struct ring *ring, uint32_t slot)
{
	return atomic_load_explicit(&ring->numbers[slot], memory_order_seq_cst);
}

static inline bool ring_is_evicted(const struct ring *ring, int seat)
{
	return atomic_load(&ring->head->evicted) & ring_bit(seat);
}

/* The producer's. @generation: the number of its newest frame. Its calls come one at a time. */

/* Claims the slot of the oldest frame, of those not in @claimed, and returns it; -1 for none. */
int ring_claim(struct ring *ring, uint64_t generation, const bool *claimed);
void ring_abandon(struct ring *ring, uint32_t slot);

/* The generation becomes @number afterwards. */
void ring_publish(struct ring *ring, uint32_t slot, uint64_t number);

/* Seats that have a bit anywhere. */
uint64_t ring_occupied(const struct ring *ring);

/* Clears what a broken peer has set in words of slots that aren't in @claimed. */
void ring_clear_strays(struct ring *ring, const bool *claimed);

/* A seat's. */

/* Clears the seat's bits, in @keep first. */
void ring_clear_seat(struct ring *ring, int seat);
void ring_clear_leases(struct ring *ring, int seat);

/* Clears the seat's bit in @keep, then in words of slots that it doesn't hold. */
void ring_leave_frames(struct ring *ring, int seat, const uint32_t *held);

/* Sets the seat's bit in @keep. */
void ring_keep(struct ring *ring, int seat);

/* The lowest number that has been granted to the seat already, or @otherwise. */
uint64_t ring_first_grant(const struct ring *ring, int seat, uint64_t otherwise);

/* Whether the frame of @number is in @slot, and granted to the seat. */
bool ring_is_granted(const struct ring *ring, int seat, uint32_t slot, uint64_t number);

enum ring_lease { RING_LEASED, RING_GRANTED, RING_CHANGED, RING_WRITTEN };

/*
 * Takes a lease of the frame of @number in @slot. RING_GRANTED if the seat had it already.
 * RING_CHANGED if another frame is there meanwhile: look again. RING_WRITTEN if the producer fills
 * the slot. @undone: a lease was taken and released.
 */
enum ring_lease ring_lease(struct ring *ring, int seat, uint32_t slot, uint64_t number,
			   bool *undone);
void ring_release(struct ring *ring, int seat, uint32_t slot);

/* Whether the producer must be woken after bits were cleared. */
static inline bool ring_is_waiting(const struct ring *ring)
{
	return atomic_load(&ring->waiting->value);
}

/* Tests are called at each step. */
#ifdef LEASE_STEPS
void lease_step(const char *label);
#else
#define lease_step(label) ((void)0)
#endif

#endif /* TSHARE_LEASE_RING_H */
