// SPDX-License-Identifier: MIT
/* Pools: their objects, creation and opening. */
#define _GNU_SOURCE 1
#include "lease/pool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/export.h"
#include "base/refcount.h"
#include "base/sized.h"
#include "base/thread.h"
#include "ctx.h"
#include "lease/pool-regions.h"
#include "lease/seats-region.h"
#include "region/object.h"
#include "region/region.h"

/* Slots of a pool whose maker doesn't say. */
#define DEFAULT_SLOTS 4096

int pool_check(const struct tshare_pool *pool)
{
	if (seats_is_child(&pool->seats))
		return fail(-EOPNOTSUPP, "pool: belongs to the parent of this process; open it "
					 "anew");
	return 0;
}

/* Objects */

static struct tshare_pool *pool_new(void)
{
	struct tshare_pool *pool = calloc(1, sizeof(*pool));

	if (!pool) {
		error_store("pool: out of memory");
		return NULL;
	}
	atomic_init(&pool->refs, 1);
	pool->seats.fd = -1;
	pool->seat = -1;
	pthread_mutex_init(&pool->lock, NULL);
	return pool;
}

static void pool_unbind(struct tshare_pool *pool)
{
	struct directory *directory = &pool->directory;

	free(pool->holds);
	free(directory->ages);
	free(directory->starts);
	free(directory->queue);
	pool->holds = NULL;
	directory->ages = NULL;
	directory->starts = NULL;
	directory->queue = NULL;
	pool->seats_region = tshare_region_unref(pool->seats_region);
	pool->region = tshare_region_unref(pool->region);
}

static void unlink_both(struct tshare_pool *pool)
{
	if (pool->region)
		tshare_region_unlink(pool->region);
	if (pool->seats_region)
		tshare_region_unlink(pool->seats_region);
}

static void pool_free(struct tshare_pool *pool)
{
	bool child = seats_is_child(&pool->seats);

	owners_end(pool->region);
	if (!child && pool->unlinks)
		unlink_both(pool);
	seats_close(&pool->seats);
	pool_unbind(pool);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

TSHARE_EXPORT
struct tshare_pool *tshare_pool_ref(struct tshare_pool *pool)
{
	refcount_get(&pool->refs);
	return pool;
}

TSHARE_EXPORT
struct tshare_pool *tshare_pool_unref(struct tshare_pool *pool)
{
	keep_errno();

	if (pool && refcount_put(&pool->refs))
		pool_free(pool);
	return NULL;
}

/* Joining */

static int allocate(struct tshare_pool *pool)
{
	struct directory *directory = &pool->directory;
	size_t slots = directory->ring.slots;

	pool->holds = calloc(slots, sizeof(*pool->holds));
	if (pool->maker) {
		directory->ages = calloc(slots, sizeof(*directory->ages));
		directory->starts = calloc(slots, sizeof(*directory->starts));
		directory->queue = calloc(slots, sizeof(*directory->queue));
	}
	if (!pool->holds ||
	    (pool->maker && (!directory->ages || !directory->starts || !directory->queue)))
		return fail(-ENOMEM, "pool: out of memory");
	return 0;
}

/*
 * Takes a seat. A process that may only read can't end what a dead maker has begun. In that maker's
 * seat it would seem to be the maker, so it takes another one. It looks once it has the seat's lock:
 * before that a maker may join, begin an entry and die.
 */
static int take_seat(const struct tshare_pool *pool)
{
	_Atomic(uint64_t) closed = 0;
	int seat;

	for (;;) {
		seat = seats_take(&pool->seats, &closed);
		lease_step("join_closed");
		if (seat < 0 || pool->maker ||
		    !(directory_makers(&pool->directory) & ring_bit(seat)))
			return seat;
		seats_unlock(&pool->seats, seat);
		atomic_fetch_or(&closed, ring_bit(seat));
	}
}

/* Takes a seat, and ends what the seat's last process has left. */
static int join(struct tshare_pool *pool)
{
	struct directory *directory = &pool->directory;
	int seat, err;

	err = seats_open(&pool->seats, pool->seats_region);
	if (err)
		return err;
	seat = take_seat(pool);
	if (seat == -EUSERS)
		return fail(seat, "pool: is open in %d objects, the most that there can be",
			    TSHARE_STREAM_CONSUMERS);
	if (seat < 0)
		return seat;
	pool->seat = seat;
	if (pool->maker)
		directory_free_seat(directory, seat);
	else
		ring_clear_leases(&directory->ring, seat);
	seat_label(&pool->labels, seat);
	return 0;
}

/* Creation */

#define REGION_FLAGS (TSHARE_DMA32 | TSHARE_CONTIGUOUS | TSHARE_NODE)

static int read_create_options(const struct tshare_pool_options *options, uint32_t *slots,
			       struct tshare_options *region)
{
	struct tshare_pool_options known = { 0 };
	int err = 0;

	if (options)
		err = sized_read(options, "options.", sizeof(known), &known, sizeof(known));
	*region = (struct tshare_options){ .size = sizeof(*region) };
	if (!err && known.region)
		err = sized_read(known.region, "options.region.",
				 SIZED_UPTO(struct tshare_options, mode), region, sizeof(*region));
	if (err)
		return err;
	region->size = sizeof(*region);
	if (known.slots > TSHARE_POOL_SLOTS)
		return fail(-EINVAL, "options.slots: %" PRIu32 " is more than %d", known.slots,
			    TSHARE_POOL_SLOTS);
	if (known.reserved)
		return fail(-EINVAL, "options.reserved: is not 0");
	if (region->flags & ~REGION_FLAGS)
		return fail(-EINVAL, "options.region.flags: unknown flag in %#" PRIx32,
			    region->flags);
	*slots = known.slots;
	region->flags |= TSHARE_DRAFT;
	return 0;
}

/* Slots of whole pages that @size bytes make; fewer than DEFAULT_SLOTS for a small pool. */
static int choose_slots(struct tshare_ctx *ctx, uint64_t size, uint32_t *slots, uint64_t *slot_size)
{
	const uint64_t page = ctx->page_size;
	uint64_t pages = size / page + !!(size % page), each;

	if (!size)
		return fail(-EINVAL, "size: is 0");
	/* Its bits are counted, too. */
	if (size > INT64_MAX / 16)
		return fail(-EINVAL, "size: %" PRIu64 " bytes are more than can be counted", size);
	if (!*slots)
		*slots = pages < DEFAULT_SLOTS ? pages : DEFAULT_SLOTS;
	if (pages < *slots)
		return fail(-EINVAL,
			    "size: %" PRIu64 " bytes are less than a page for each of %" PRIu32
			    " slots",
			    size, *slots);
	each = pages / *slots + !!(pages % *slots);
	*slot_size = each * page;
	return 0;
}

static int pool_create(struct tshare_pool *pool, struct tshare_ctx *ctx, const char *name,
		       uint64_t size, const struct tshare_pool_options *options)
{
	struct tshare_options region;
	char seats[TSHARE_NAME_LEN];
	uint64_t slot_size;
	uint32_t slots = 0;
	int err;

	err = seats_region_name(name, seats);
	if (!err)
		err = read_create_options(options, &slots, &region);
	if (!err)
		err = choose_slots(ctx, size, &slots, &slot_size);
	if (!err)
		err = pool_regions_create(pool, ctx, name, seats, slots, slot_size, &region);
	if (!err)
		err = allocate(pool);
	if (!err)
		err = join(pool);
	/* First the seats, so that nobody finds a pool without them. */
	if (!err)
		err = region_finish_both(pool->seats_region, pool->region);
	if (!err)
		pool->unlinks = region.lifetime == TSHARE_LIFETIME_MAKER;
	return err;
}

TSHARE_EXPORT
int tshare_pool_create(struct tshare_ctx *ctx, const char *name, uint64_t size,
		       const struct tshare_pool_options *options, struct tshare_pool **pool)
{
	struct tshare_pool *new;
	int err;

	no_cancellation();
	new = pool_new();
	if (!new)
		return -ENOMEM;
	new->maker = true;
	err = pool_create(new, ctx, name, size, options);
	if (err) {
		pool_free(new);
		return err;
	}
	pool_entries_begin(new);
	*pool = new;
	return 0;
}

/* Opening */

/* -ESTALE if the pool is being unlinked, and NAME.seats is missing or the next pool's. */
static int open_both(struct tshare_pool *pool, struct tshare_ctx *ctx, const char *name,
		     const char *seats, const struct tshare_open_options *options,
		     uint64_t other_than)
{
	uint64_t id;
	int err;

	err = region_open(ctx, name, options, other_than, &pool->region);
	if (!err)
		err = pool_regions_bind(pool, &id);
	if (err)
		return err;
	err = tshare_region_open(ctx, seats, NULL, &pool->seats_region);
	if (err == -EACCES)
		return fail(err, "name: this user may read '%s', but not write '%s'", name, seats);
	if (!err)
		err = pool_regions_bind_seats(pool, id);
	return err == -ENOENT || err == -EINPROGRESS ? -ESTALE : err;
}

/*
 * Waits for another region while NAME is that of a pool that is being unlinked. It keeps nothing of
 * that meanwhile: NAME might stay as long as it has a user.
 */
static int pool_open(struct tshare_pool *pool, struct tshare_ctx *ctx, const char *name,
		     const struct tshare_open_options *options)
{
	struct tshare_open_options next = { .size = sizeof(next) };
	char seats[TSHARE_NAME_LEN];
	uint64_t unlinked = 0;
	int64_t deadline;
	bool waits;
	int err;

	err = seats_region_name(name, seats);
	if (!err && options)
		err = sized_read(options, "options.", SIZED_UPTO(struct tshare_open_options, flags),
				 &next, sizeof(next));
	if (err)
		return err;
	deadline = clock_deadline(next.timeout_ns, clock_ns());
	waits = next.timeout_ns;
	while ((err = open_both(pool, ctx, name, seats, &next, unlinked)) == -ESTALE) {
		unlinked = pool->region->handle.id;
		next.timeout_ns = clock_left(deadline);
		pool_unbind(pool);
		if (waits && !next.timeout_ns)
			return fail_name(-ETIMEDOUT, name);
	}
	if (err == -EAGAIN && unlinked)
		return fail(-ENOENT, "name: '%s' is being unlinked", name);
	if (err)
		return err;
	pool->maker = !pool->region->readonly;
	err = allocate(pool);
	return err ? err : join(pool);
}

TSHARE_EXPORT
int tshare_pool_open(struct tshare_ctx *ctx, const char *name,
		     const struct tshare_open_options *options, struct tshare_pool **pool)
{
	struct tshare_pool *new;
	int err;

	no_cancellation();
	new = pool_new();
	if (!new)
		return -ENOMEM;
	err = pool_open(new, ctx, name, options);
	if (err) {
		pool_free(new);
		return err;
	}
	pool_entries_begin(new);
	*pool = new;
	return 0;
}

/* Description */

TSHARE_EXPORT
struct tshare_region *tshare_pool_get_region(const struct tshare_pool *pool)
{
	return pool->region;
}

TSHARE_EXPORT
int tshare_pool_get_info(struct tshare_pool *pool, struct tshare_pool_info *info)
{
	const struct directory *directory = &pool->directory;
	struct tshare_pool_info known = {
		.slots = directory->ring.slots,
		.slot_size = pool->slot_size,
		.seat = pool->seat,
	};
	uint32_t slot, count;
	int err;

	err = sized_check(info, "info.", SIZED_UPTO(struct tshare_pool_info, seat));
	if (err)
		return err;
	for (slot = 0; slot < known.slots; slot += count) {
		count = 1;
		if (!directory_is_entry(directory, slot))
			continue;
		count = directory_count(directory, slot);
		count = count ? count : 1;
		known.entries++;
		known.used_slots += count;
		if (atomic_load(&directory->ring.words[slot].value))
			known.held_slots += count;
	}
	sized_fill(info, &known, sizeof(known));
	return 0;
}

TSHARE_EXPORT
int tshare_pool_unlink(struct tshare_pool *pool)
{
	int err = pool_check(pool), seats_err;

	if (err)
		return err;
	err = tshare_region_unlink(pool->region);
	/* As long as the pool has its name, it needs its seats. */
	if (err && err != -ENOENT)
		return err;
	/*
	 * Without that name nobody finds the seats, and another process may give theirs to the
	 * next pool at any time. If they can't be removed now, they are when the object goes.
	 */
	seats_err = tshare_region_unlink(pool->seats_region);
	pool->unlinks = seats_err && seats_err != -ENOENT;
	error_clear();
	if (err)
		return fail(err, "pool: has lost its name '%s'",
			    tshare_region_get_name(pool->region));
	return 0;
}

TSHARE_EXPORT
void tshare_pool_cancel(struct tshare_pool *pool)
{
	tshare_region_cancel(pool->seats_region);
}
