// SPDX-License-Identifier: MIT
/*
 * A pool is two regions. NAME has
 *
 *	.pool      uint64 (16)           struct ring_head
 *	.number    uint64 (slots)        of the entry that begins in each slot; 0 for none
 *	.count     uint32 (slots)        slots of that entry
 *	.maker     uint32 (slots)        seat of the process that makes it, plus 1
 *	.record    uint64 (slots, 44)    struct record: its key and short descriptors
 *	.index     uint64 (...)          where each key is: see directory.c
 *	data       uint8 (slots, bytes)  the slots
 *
 * and NAME.seats what seats-region.c says. Long descriptors are in the entry itself, before its tensors.
 * Both are other processes' memory: what is read from it here is read once, then checked.
 */
#define _GNU_SOURCE 1
#include "lease/pool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/export.h"
#include "base/refcount.h"
#include "base/sized.h"
#include "base/thread.h"
#include "ctx.h"
#include "format/layout.h"
#include "lease/part.h"
#include "lease/seats-region.h"
#include "region/object.h"

#define POOL_VERSION 1

#define RECORD_WORDS (sizeof(struct record) / sizeof(uint64_t))

/* Slots of a pool whose maker doesn't say. */
#define DEFAULT_SLOTS 4096

enum {
	PART_HEAD,
	PART_NUMBER,
	PART_COUNT,
	PART_MAKER,
	PART_RECORD,
	PART_INDEX,
	PARTS,
};

static void parts_of(uint32_t slots, struct part *parts)
{
	const int64_t index = directory_index_size(slots);

	parts[PART_HEAD] = (struct part){ ".pool", TSHARE_UINT64, 1, { RING_HEAD_WORDS } };
	parts[PART_NUMBER] = (struct part){ ".number", TSHARE_UINT64, 1, { slots } };
	parts[PART_COUNT] = (struct part){ ".count", TSHARE_UINT32, 1, { slots } };
	parts[PART_MAKER] = (struct part){ ".maker", TSHARE_UINT32, 1, { slots } };
	parts[PART_RECORD] = (struct part){ ".record", TSHARE_UINT64, 2, { slots, RECORD_WORDS } };
	parts[PART_INDEX] = (struct part){ ".index", TSHARE_UINT64, 1, { index } };
}

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

	pool_entries_end(pool);
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

/* The two regions */

static int fail_damaged(const struct tshare_pool *pool, const char *what, uint64_t value)
{
	return fail(-EPROTO, "name: '%s' has a damaged head: %s %" PRIu64,
		    tshare_region_get_name(pool->region), what, value);
}

static int bind_data(struct tshare_pool *pool)
{
	struct tshare_tensor *data;
	const int64_t *shape;
	int err;

	err = tshare_region_find_tensor(pool->region, "data", &data);
	if (err == -ENOENT)
		return part_fail_none(pool->region, "pool");
	if (err)
		return err;
	shape = tshare_tensor_get_shape(data);
	if (tshare_tensor_get_ndim(data) != 2 || !tshare_tensor_is_contiguous(data) ||
	    tshare_dtype_get_itemsize(tshare_tensor_get_dtype(data)) != 1) {
		err = part_fail_none(pool->region, "pool");
	} else if (shape[0] < 1 || shape[0] > TSHARE_POOL_SLOTS) {
		err = fail_damaged(pool, "slots", shape[0]);
	} else if (shape[1] < 1 || shape[1] % pool->region->ctx->page_size) {
		err = fail_damaged(pool, "bytes of a slot", shape[1]);
	} else if (tshare_tensor_get_byte_offset(data) % TSHARE_TENSOR_ALIGNMENT) {
		err = fail_damaged(pool, "offset of the slots",
				   tshare_tensor_get_byte_offset(data));
	} else {
		pool->directory.ring.slots = shape[0];
		pool->slot_size = shape[1];
		pool->data_offset = tshare_tensor_get_byte_offset(data);
	}
	tshare_tensor_unref(data);
	return err;
}

/* Finds the directory's memory in NAME, and checks it. Stores the pool's id. */
static int bind(struct tshare_pool *pool, uint64_t *id)
{
	struct directory *directory = &pool->directory;
	struct tshare_region *region = pool->region;
	struct ring *ring = &directory->ring;
	struct part parts[PARTS];
	uint64_t version;
	int err;

	parts_of(0, parts);
	err = part_find(region, "pool", &parts[PART_HEAD], &ring->head);
	if (err)
		return err;
	version = atomic_load(&ring->head->version);
	*id = atomic_load(&ring->head->id);
	if (version != POOL_VERSION)
		return fail(-EPROTO,
			    "name: '%s' is a pool of version %" PRIu64 ", and this library knows "
			    "%d",
			    tshare_region_get_name(region), version, POOL_VERSION);
	err = bind_data(pool);
	if (err)
		return err;
	parts_of(ring->slots, parts);
	directory->index_size = directory_index_size(ring->slots);
	err = part_find(region, "pool", &parts[PART_NUMBER], &ring->numbers);
	if (!err)
		err = part_find(region, "pool", &parts[PART_COUNT], &directory->counts);
	if (!err)
		err = part_find(region, "pool", &parts[PART_MAKER], &directory->makers);
	if (!err)
		err = part_find(region, "pool", &parts[PART_RECORD], &directory->records);
	if (!err)
		err = part_find(region, "pool", &parts[PART_INDEX], &directory->index);
	return err;
}

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

static int create_region(struct tshare_pool *pool, struct tshare_ctx *ctx, const char *name,
			 uint32_t slots, uint64_t slot_size, const struct tshare_options *options)
{
	const int64_t shape[] = { slots, slot_size };
	struct tshare_spec specs[PARTS + 1];
	uint64_t offsets[PARTS], at;
	struct part parts[PARTS];
	size_t i;
	int err;

	parts_of(slots, parts);
	for (i = 0; i < PARTS; i++)
		part_spec(&parts[i], &specs[i]);
	err = tshare_region_compute_layout(specs, PARTS, offsets, &at);
	if (err)
		return err;
	specs[PARTS] = (struct tshare_spec){
		.size = sizeof(*specs),
		.name = "data",
		.dtype = TSHARE_UINT8,
		.ndim = 2,
		.shape = shape,
		.byte_offset = (at + ctx->page_size - 1) / ctx->page_size * ctx->page_size,
	};
	err = tshare_region_create(ctx, name, 0, specs, PARTS + 1, options, &pool->region);
	/* A region could be replaced, and a pool can't. */
	return err == -EEXIST ? fail(err, "name: '%s' is taken; open it, or unlink it", name) : err;
}

/* Whether the region of that name is a pool's NAME.seats. */
static bool is_pool_seats(struct tshare_ctx *ctx, const char *seats)
{
	const struct tshare_open_options readonly = {
		.size = sizeof(readonly),
		.flags = TSHARE_READONLY,
	};
	static const char *const names[] = { ".pool", ".word" };
	struct tshare_tensor *tensor;
	struct tshare_region *region;
	size_t found;

	if (tshare_region_open(ctx, seats, &readonly, &region))
		return false;
	for (found = 0; found < 2; found++) {
		if (tshare_region_find_tensor(region, names[found], &tensor))
			break;
		tshare_tensor_unref(tensor);
	}
	tshare_region_unref(region);
	return found == 2;
}

/*
 * NAME is this pool's already. A process that was killed between its two names leaves NAME.seats, if
 * the lifetime lets it stay: nobody can find it, and the new ones take its place.
 */
static int create_seats(struct tshare_pool *pool, struct tshare_ctx *ctx, const char *seats,
			uint32_t slots, struct tshare_options *region)
{
	int err;

	err = seats_region_create(ctx, seats, "pool", slots, region, &pool->seats_region);
	if (err != -EEXIST || !is_pool_seats(ctx, seats))
		return err;
	region->flags |= TSHARE_REPLACE;
	return seats_region_create(ctx, seats, "pool", slots, region, &pool->seats_region);
}

/* First the seats, so that nobody finds a pool without them. */
static int finish(struct tshare_pool *pool)
{
	int err;

	err = tshare_region_finish(pool->seats_region, 0);
	return err ? err : tshare_region_finish(pool->region, 0);
}

static int pool_create(struct tshare_pool *pool, struct tshare_ctx *ctx, const char *name,
		       uint64_t size, const struct tshare_pool_options *options)
{
	const struct ring_head head = { .version = POOL_VERSION };
	struct tshare_options region;
	char seats[TSHARE_NAME_LEN];
	uint64_t slot_size, id;
	uint32_t slots = 0;
	int err;

	err = seats_region_name(name, seats);
	if (!err)
		err = read_create_options(options, &slots, &region);
	if (!err)
		err = choose_slots(ctx, size, &slots, &slot_size);
	if (!err)
		err = create_region(pool, ctx, name, slots, slot_size, &region);
	if (err)
		return err;
	/* If anything fails from here on, the names go. */
	pool->unlinks = true;
	err = create_seats(pool, ctx, seats, slots, &region);
	if (!err)
		err = seats_region_write_heads(pool->region, pool->seats_region, "pool", &head);
	if (!err)
		err = bind(pool, &id);
	if (!err)
		err = seats_region_bind(pool->seats_region, "pool", POOL_VERSION, id,
					&pool->directory.ring, &pool->labels);
	if (!err)
		err = allocate(pool);
	if (!err)
		err = join(pool);
	if (!err)
		err = finish(pool);
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

static int pool_open(struct tshare_pool *pool, struct tshare_ctx *ctx, const char *name,
		     const struct tshare_open_options *options)
{
	char seats[TSHARE_NAME_LEN];
	uint64_t id;
	int err;

	err = seats_region_name(name, seats);
	if (!err)
		err = tshare_region_open(ctx, name, options, &pool->region);
	if (!err)
		err = bind(pool, &id);
	if (err)
		return err;
	pool->maker = !pool->region->readonly;
	err = tshare_region_open(ctx, seats, NULL, &pool->seats_region);
	if (err == -EACCES)
		return fail(err, "name: this user may read '%s', but not write '%s'", name, seats);
	if (!err)
		err = seats_region_bind(pool->seats_region, "pool", POOL_VERSION, id,
					&pool->directory.ring, &pool->labels);
	/* Its maker unlinks NAME first. */
	if (err == -ENOENT || err == -EINPROGRESS || err == -ESTALE)
		return fail(-ENOENT, "name: no region '%s': the pool has just been unlinked",
			    seats);
	if (!err)
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
	pool->unlinks = false;
	err = tshare_region_unlink(pool->region);
	seats_err = tshare_region_unlink(pool->seats_region);
	return err ? err : seats_err;
}

TSHARE_EXPORT
void tshare_pool_cancel(struct tshare_pool *pool)
{
	tshare_region_cancel(pool->seats_region);
}
