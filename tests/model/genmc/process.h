/* SPDX-License-Identifier: MIT */
/*
 * What GenMC finds in place of the kernel, the regions and the clocks: all else is the library's
 * code. Each process has one thread, and no object is two processes'.
 */
#include <assert.h>
#include <errno.h>
#include <genmc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

typedef unsigned int uid_t, gid_t; /* GenMC's headers lack them */

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "cuda/task.h"
#include "lease/consumer.h"
#include "lease/frame.h"
#include "lease/role.h"
#include "lease/seats-region.h"

#define TSHARE_BASE_THREAD_H
#define no_cancellation()		((void)0)
#define pthread_mutex_lock(lock)	((void)(lock))
#define pthread_mutex_unlock(lock)	((void)(lock))
#define clock_ns()			1
#define clock_deadline(timeout_ns, now) ((now) + (timeout_ns))
#define clock_left(deadline)		0
#undef fail
#define fail(err, ...) (err)

#define REGION	     ((struct tshare_region *)1)
#define SEATS_REGION ((struct tshare_region *)2)

static _Atomic(uint64_t) published, woken; /* the regions' generations */

int tshare_region_get_generation(struct tshare_region *region, uint64_t *generation)
{
	*generation =
		atomic_load_explicit(region == REGION ? &published : &woken, memory_order_acquire);
	return 0;
}

int tshare_region_publish_once(struct tshare_region *region, uint64_t *generation)
{
	atomic_fetch_add_explicit(region == REGION ? &published : &woken, 1, memory_order_release);
	return 0;
}

#define tshare_region_publish		tshare_region_publish_once
#define tshare_region_wait(region, ...) (-ETIMEDOUT)

static _Atomic(unsigned int) sleepers;
static uint64_t asleep_until[4];

/* Returns at once, or never: was_left_asleep() looks in the end whether somebody was to wake it. */
int seats_region_sleep(struct tshare_region *seats, uint64_t seen, int64_t until)
{
	if (atomic_load_explicit(&woken, memory_order_acquire) > seen)
		return 0;
	asleep_until[atomic_fetch_add_explicit(&sleepers, 1, memory_order_relaxed)] = seen + 1;
	pthread_exit(NULL);
}

static bool was_left_asleep(void)
{
	unsigned int i;

	for (i = 0; i < sleepers; i++)
		if (woken < asleep_until[i])
			return true;
	return false;
}

bool tasks_end_lost(const void *owner)
{
	return false;
}

static _Atomic(int) locks[TSHARE_STREAM_CONSUMERS + 1];

int seats_lock(const struct seats *seats, int seat)
{
	int none = 0;
	bool locked = atomic_compare_exchange_strong_explicit(
		&locks[seat], &none, 1, memory_order_acquire, memory_order_relaxed);

	return locked ? 0 : -EAGAIN;
}

void seats_unlock(const struct seats *seats, int seat)
{
	atomic_store_explicit(&locks[seat], 0, memory_order_release);
}
