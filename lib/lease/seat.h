/* SPDX-License-Identifier: MIT */
/*
 * Seats: locked bytes of the counter's file of NAME.seats. The kernel drops the lock when the
 * process ends, and so says who is dead.
 */
#ifndef TSHARE_LEASE_SEAT_H
#define TSHARE_LEASE_SEAT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct tshare_region;

/* The part of a stream's object that a child of fork() gives up. */
struct seats {
	bool open;
	atomic_bool lost; /* this is such a child, which has no role in the stream */
	int fd;		  /* the process's own description of the file; -1 for none */
	LIST_ENTRY(seats) entry;
};

/* Opens the seats; without a @region an observer's, which doesn't see them yet. */
int seats_open(struct seats *seats, struct tshare_region *region);
void seats_close(struct seats *seats);

/* Lets an observer look who has the seats of @region; it can lock none. */
int seats_see(struct seats *seats, struct tshare_region *region);

/* Locks the seat, without waiting: 0; -EAGAIN if another process or object has it. */
int seats_lock(const struct seats *seats, int seat);
void seats_unlock(const struct seats *seats, int seat);

/*
 * Locks the first free seat, and returns it; -EUSERS if there is none. A seat in @evicted is free
 * once the producer has seen that its last consumer is gone: until then the producer clears the
 * seat's leases at any time.
 */
int seats_take(const struct seats *seats, const _Atomic(uint64_t) *evicted);

/* Whether another process or object has the seat, as far as can be found out. */
bool seats_is_taken(const struct seats *seats, int seat);

/* Whether this is a child of the process that has opened the stream, which can't use it. */
static inline bool seats_is_child(const struct seats *seats)
{
	return atomic_load_explicit(&seats->lost, memory_order_relaxed);
}

#endif /* TSHARE_LEASE_SEAT_H */
