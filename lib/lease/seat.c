// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "lease/seat.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/ofd-lock.h"
#include "base/process.h"
#include "generation/counter.h"
#include "lease/ring.h"

/* The seats of this process, under its lock. */
static LIST_HEAD(, seats) all = LIST_HEAD_INITIALIZER(all);

/* With its parent's description a child would keep a dead parent's seat. */
static void after_fork_in_child(void)
{
	struct seats *seats;

	for (seats = LIST_FIRST(&all); seats; seats = LIST_NEXT(seats, entry)) {
		atomic_store(&seats->lost, true);
		if (seats->fd >= 0)
			close(seats->fd);
	}
	LIST_INIT(&all);
}

static const struct process_hooks hooks = { after_fork_in_child, NULL };

int seats_open(struct seats *seats, struct tshare_region *region)
{
	struct backend_counter own = { .fd = -1 };
	int err = 0;

	process_lock();
	if (region)
		err = counter_find(region, COUNTER_TO_WRITE_LOCK, &own);
	if (!err) {
		seats->fd = own.fd;
		seats->open = true;
		process_join(PROCESS_SEATS, &hooks);
		LIST_INSERT_HEAD(&all, seats, entry);
	}
	process_unlock();
	return err;
}

int seats_see(struct seats *seats, struct tshare_region *region)
{
	struct backend_counter at;
	int err;

	process_lock();
	err = counter_find(region, COUNTER_TO_MAP, &at);
	if (!err)
		seats->fd = at.fd;
	process_unlock();
	return err;
}

void seats_close(struct seats *seats)
{
	process_lock();
	if (seats->open && !seats_is_child(seats)) {
		LIST_REMOVE(seats, entry);
		if (seats->fd >= 0)
			close(seats->fd);
	}
	process_unlock();
}

int seats_lock(const struct seats *seats, int seat)
{
	int err = ofd_lock_set(seats->fd, F_WRLCK, TSHARE_COUNTER_SEATS + seat);

	if (!err || err == -EAGAIN || err == -EACCES)
		return err ? -EAGAIN : 0;
	return fail(err, "stream: lock of seat %d: %s", seat, strerror(-err));
}

void seats_unlock(const struct seats *seats, int seat)
{
	ofd_lock_set(seats->fd, F_UNLCK, TSHARE_COUNTER_SEATS + seat);
}

static int try_seats(const struct seats *seats, const _Atomic(uint64_t) *evicted)
{
	int seat, err;

	for (seat = 0; seat < TSHARE_STREAM_CONSUMERS; seat++) {
		lease_step("join");
		err = seats_lock(seats, seat);
		if (err == -EAGAIN)
			continue;
		if (err)
			return err;
		lease_step("join_evicted");
		if (!(atomic_load(evicted) & ring_bit(seat)))
			return seat;
		seats_unlock(seats, seat);
	}
	return -EUSERS;
}

/* Looks once more: others lock a free seat for a moment, to see whether it is free. */
int seats_take(const struct seats *seats, const _Atomic(uint64_t) *evicted)
{
	const struct timespec moment = { .tv_nsec = NSEC_PER_SEC / 1000 };
	int seat = try_seats(seats, evicted);

	if (seat != -EUSERS)
		return seat;
	nanosleep(&moment, NULL);
	return try_seats(seats, evicted);
}

bool seats_is_taken(const struct seats *seats, int seat)
{
	bool taken;

	ofd_lock_test(seats->fd, F_WRLCK, TSHARE_COUNTER_SEATS + seat, &taken);
	return taken;
}
