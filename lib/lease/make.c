// SPDX-License-Identifier: MIT
/* Makers of a pool's entries: their lock, room, and waiting. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/export.h"
#include "base/thread.h"
#include "cuda/task.h"
#include "format/layout.h"
#include "lease/entry.h"
#include "lease/seats-region.h"

/* The byte behind the seats is the makers' lock. */
#define MAKERS TSHARE_STREAM_CONSUMERS

/* How soon a maker that waits sees that another process has died. */
#define REAP_NS (NSEC_PER_SEC / 20)

/*
 * How soon a maker looks again for the lock, and how long it does if nobody may wait. A process
 * that has it for longer doesn't run: a maker looks less often then.
 */
#define LOCK_LOOK_NS  (NSEC_PER_SEC / 20000)
#define LOCK_NS	      (NSEC_PER_SEC / 5)
#define LOCK_PAUSE_NS (NSEC_PER_SEC / 200)

static int sleep_until(struct tshare_pool *pool, uint64_t seen, int64_t until)
{
	int err = seats_region_sleep(pool->seats_region, seen, until);

	return err == -ECANCELED ? fail(err, "pool: the wait was cancelled") : err;
}

/* Waits for a process that keeps the lock, which a cancel and a signal end. */
static int pause_for_lock(struct tshare_pool *pool)
{
	uint64_t seen = 0;

	tshare_region_get_generation(pool->seats_region, &seen);
	return sleep_until(pool, seen, clock_ns() + LOCK_PAUSE_NS);
}

/* Locks out other makers: threads of this process by @pool->lock, processes by a byte's lock. */
static int lock_makers(struct tshare_pool *pool, int64_t deadline)
{
	const struct timespec moment = { .tv_nsec = LOCK_LOOK_NS };
	int64_t least = clock_ns() + LOCK_NS, now;
	int err;

	for (;;) {
		pthread_mutex_lock(&pool->lock);
		lease_step("make_lock");
		err = seats_lock(&pool->seats, MAKERS);
		if (!err)
			return 0;
		pthread_mutex_unlock(&pool->lock);
		if (err != -EAGAIN)
			return err;
		now = clock_ns();
		if (now > least && now >= deadline)
			return fail(-ETIMEDOUT, "timeout: another process that makes an entry "
						"doesn't go on; it may have been stopped");
		if (now <= least)
			nanosleep(&moment, NULL);
		else if ((err = pause_for_lock(pool)))
			return err;
	}
}

static void unlock_makers(struct tshare_pool *pool)
{
	lease_step("make_unlock");
	seats_unlock(&pool->seats, MAKERS);
	pthread_mutex_unlock(&pool->lock);
}

/* Frees what the dead have made and leased. */
static void reap(struct tshare_pool *pool)
{
	struct directory *directory = &pool->directory;
	uint64_t seats = ring_occupied(&directory->ring) | directory_makers(directory);
	int seat;

	seats &= ~ring_bit(pool->seat); /* the lock of its own seat could be taken */
	for (seat = 0; seat < TSHARE_STREAM_CONSUMERS; seat++) {
		lease_step("reap");
		if (!(seats & ring_bit(seat)) || seats_lock(&pool->seats, seat))
			continue;
		directory_free_seat(directory, seat);
		seats_unlock(&pool->seats, seat);
	}
}

/*
 * Looks who has the key: 0 for nobody; -EEXIST for a finished entry; -EAGAIN for one that is being
 * made, and who makes it. Frees one that a maker has begun to take out, and died.
 */
static int check_key(struct directory *directory, const struct key *key, int *making)
{
	uint64_t at = 0, number;
	int64_t slot;
	int maker;

	while ((slot = directory_next(directory, key, &at)) >= 0) {
		if (!directory_has_key(directory, slot, key))
			continue;
		/* First the maker: it finishes without the lock, and leaves the entry last. */
		lease_step("check_maker");
		maker = directory_maker(directory, slot);
		lease_step("check_number");
		number = ring_number(&directory->ring, slot);
		lease_step("check_word");
		if (number && !(atomic_load(&directory->ring.words[slot].value) & RING_WRITING))
			return -EEXIST;
		if (maker >= 0) {
			*making = maker;
			return -EAGAIN;
		}
		if (number)
			directory_abandon(directory, slot);
	}
	return 0;
}

/* The entry that a call wants to make. */
struct request {
	struct key key;
	uint32_t count; /* slots */
	int maker;	/* seat of who makes an entry of the key; -1 for nobody */
};

/* With the makers' lock held. */
static int try_make(struct tshare_entry *entry, struct request *request)
{
	struct tshare_pool *pool = entry->pool;
	int64_t slot;
	int err;

	request->maker = -1;
	err = check_key(&pool->directory, &request->key, &request->maker);
	if (err == -EEXIST)
		return fail(err, "key: the pool has an entry of that key");
	if (err)
		return err;
	slot = directory_make(&pool->directory, &request->key, request->count, pool->seat);
	if (slot < 0)
		return slot;
	lease_step("make_write");
	entry_add(entry, slot, request->count, ENTRY_MADE_HERE);
	entry_write_tensors(entry);
	return 0;
}

/* The entries that a seat holds or makes. */
struct holding {
	uint64_t entries;
	uint64_t slots;
};

static void count_holdings(const struct directory *directory, struct holding *holdings)
{
	uint64_t seats;
	uint32_t slot;
	int seat, maker;

	for (slot = 0; slot < directory->ring.slots; slot++) {
		seats = atomic_load(&directory->ring.words[slot].value) & RING_SEATS;
		maker = directory_maker(directory, slot);
		if (maker >= 0)
			seats |= ring_bit(maker);
		for (; seats; seats &= seats - 1) {
			seat = __builtin_ctzll(seats);
			holdings[seat].entries++;
			holdings[seat].slots += directory_count(directory, slot);
		}
	}
}

/* Names the processes that hold or make entries, as far as there is room. */
static void describe_holders(struct tshare_pool *pool, char *text, size_t size)
{
	struct holding holdings[TSHARE_STREAM_CONSUMERS] = { 0 };
	char command[SEAT_COMMAND_LEN];
	size_t used = 0;
	int seat;

	*text = '\0';
	count_holdings(&pool->directory, holdings);
	for (seat = 0; seat < TSHARE_STREAM_CONSUMERS && used < size; seat++) {
		if (!holdings[seat].entries)
			continue;
		seat_command(&pool->labels, seat, command);
		used += snprintf(text + used, size - used,
				 "; seat %d (pid %" PRId32 ", '%s') holds %" PRIu64
				 " entries of %" PRIu64 " KiB",
				 seat, atomic_load(&pool->labels.pids[seat]), command,
				 holdings[seat].entries,
				 holdings[seat].slots * pool->slot_size >> 10);
	}
}

static int fail_full(struct tshare_pool *pool, const struct request *request)
{
	char holders[512], command[SEAT_COMMAND_LEN];

	if (request->maker >= 0) {
		seat_command(&pool->labels, request->maker, command);
		return fail(-ETIMEDOUT,
			    "timeout: seat %d (pid %" PRId32 ", '%s') hasn't finished its entry of "
			    "that key",
			    request->maker, atomic_load(&pool->labels.pids[request->maker]),
			    command);
	}
	describe_holders(pool, holders, sizeof(holders));
	return fail(-ETIMEDOUT,
		    "timeout: no %" PRIu32 " of %" PRIu32 " slots side by side became free%s",
		    request->count, pool->directory.ring.slots, holders);
}

/*
 * Tries until @timeout_ns are over. It says that it waits before it looks; others first do what
 * they do, and then look whether somebody waits.
 */
static int make_within(struct tshare_entry *entry, struct request *request, int64_t timeout_ns)
{
	struct tshare_pool *pool = entry->pool;
	int64_t now = clock_ns(), deadline = clock_deadline(timeout_ns, now), reap_at = now;
	uint64_t seen = 0;
	bool waits = false;
	int err;

	for (;;) {
		lease_step("make_seen");
		tshare_region_get_generation(pool->seats_region, &seen);
		lease_step("make_waiting");
		if (waits)
			atomic_store(&pool->directory.ring.waiting->value, 1);
		err = lock_makers(pool, deadline);
		if (err)
			return err;
		err = try_make(entry, request);
		now = clock_ns();
		if (err == -EAGAIN && now >= reap_at) {
			reap(pool);
			err = try_make(entry, request);
			reap_at = now + REAP_NS;
		}
		unlock_makers(pool);
		if (err != -EAGAIN)
			return err;
		if (tasks_end_lost(pool))
			continue;
		if (now >= deadline)
			return fail_full(pool, request);
		if (waits)
			err = sleep_until(pool, seen, reap_at < deadline ? reap_at : deadline);
		if (waits && err)
			return err;
		waits = true;
	}
}

/* Lays the tensors out, and counts the slots that they need. */
static int lay_out(struct tshare_entry *entry, const struct tshare_spec *specs, size_t count,
		   struct request *request)
{
	const struct tshare_pool *pool = entry->pool;
	uint64_t slots = pool->directory.ring.slots, size, all;
	int err;

	if (!count || count > TSHARE_TENSOR_LIMIT)
		return fail(-EINVAL, "count: %zu is not 1 to %d", count, TSHARE_TENSOR_LIMIT);
	if (!specs)
		return fail(-EINVAL, "specs: is NULL");
	err = layout_specs(specs, count, &entry->list, &size);
	if (!err)
		err = desc_list_check(entry->list, size, "specs");
	if (!err)
		err = desc_list_check_unique(entry->list);
	if (err)
		return err;
	if (__builtin_add_overflow(entry_base(entry->list->size), size, &all) ||
	    all > slots * pool->slot_size)
		return fail(-EFBIG, "specs: need %" PRIu64 " bytes, and the pool has %" PRIu64,
			    entry_base(entry->list->size) + size, slots * pool->slot_size);
	request->count = all ? (all + pool->slot_size - 1) / pool->slot_size : 1;
	return 0;
}

TSHARE_EXPORT
int tshare_pool_make(struct tshare_pool *pool, const void *key, size_t key_size,
		     const struct tshare_spec *specs, size_t count, int64_t timeout_ns,
		     struct tshare_entry **entry)
{
	struct request request = { 0 };
	struct tshare_entry *new;
	int err;

	err = entry_read_key(pool, key, key_size, &request.key);
	if (err)
		return err;
	if (!pool->maker)
		return fail(-EACCES, "pool: was opened read-only");
	new = entry_new(pool);
	if (!new)
		return -ENOMEM;
	no_cancellation();
	err = lay_out(new, specs, count, &request);
	if (!err)
		err = make_within(new, &request, timeout_ns);
	if (err) {
		tshare_entry_unref(new);
		return err;
	}
	*entry = new;
	return 0;
}

TSHARE_EXPORT
bool tshare_entry_is_finished(const struct tshare_entry *entry)
{
	return atomic_load(&entry->state) == ENTRY_LEASED;
}

/* 0 with the lock held, if the entry can be finished now or queued. */
static int lock_unfinished(struct tshare_entry *entry)
{
	struct tshare_pool *pool = entry->pool;
	int state, err;

	err = pool_check(pool);
	if (err)
		return err;
	pthread_mutex_lock(&pool->lock);
	state = atomic_load(&entry->state);
	if (state == ENTRY_MADE_HERE)
		return 0;
	pthread_mutex_unlock(&pool->lock);
	return fail(-EACCES, state == ENTRY_QUEUED ?
				     "entry: a CUDA stream is to finish it already" :
				     "entry: is finished already");
}

/* With the lock held. */
static void finish(struct tshare_entry *entry)
{
	struct tshare_pool *pool = entry->pool;

	directory_finish(&pool->directory, entry->slot, pool->seat);
	pool->holds[entry->slot]++;
	atomic_store(&entry->state, ENTRY_LEASED);
	entry_wake_makers(pool);
}

TSHARE_EXPORT
int tshare_entry_finish(struct tshare_entry *entry)
{
	int err;

	err = lock_unfinished(entry);
	if (err)
		return err;
	finish(entry);
	pthread_mutex_unlock(&entry->pool->lock);
	return 0;
}

int entry_queue(struct tshare_entry *entry)
{
	int err;

	err = lock_unfinished(entry);
	if (err)
		return err;
	atomic_store(&entry->state, ENTRY_QUEUED);
	pthread_mutex_unlock(&entry->pool->lock);
	return 0;
}

void entry_unqueue(struct tshare_entry *entry)
{
	atomic_store(&entry->state, ENTRY_MADE_HERE);
}

void entry_finish_queued(struct tshare_entry *entry)
{
	pthread_mutex_lock(&entry->pool->lock);
	finish(entry);
	pthread_mutex_unlock(&entry->pool->lock);
}

/* Removing */

/* Removes the entry of a key, or all for NULL. */
static int remove_entries(struct tshare_pool *pool, const struct key *key)
{
	int err;

	if (!pool->maker)
		return fail(-EACCES, "pool: was opened read-only");
	no_cancellation();
	err = lock_makers(pool, INT64_MIN);
	if (err)
		return err;
	if (key)
		err = directory_remove(&pool->directory, key);
	else
		directory_remove_all(&pool->directory);
	unlock_makers(pool);
	return err ? fail(err, "key: the pool has no entry of that key") : 0;
}

TSHARE_EXPORT
int tshare_pool_remove(struct tshare_pool *pool, const void *key, size_t key_size)
{
	struct key known;
	int err;

	err = entry_read_key(pool, key, key_size, &known);
	return err ? err : remove_entries(pool, &known);
}

TSHARE_EXPORT
int tshare_pool_clear(struct tshare_pool *pool)
{
	int err = pool_check(pool);

	return err ? err : remove_entries(pool, NULL);
}
