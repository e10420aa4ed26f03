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
#include "lease/pool-regions.h"

#include <errno.h>
#include <inttypes.h>

#include "base/error.h"
#include "ctx.h"
#include "format/layout.h"
#include "lease/part.h"
#include "lease/seats-region.h"
#include "region/object.h"

#define POOL_VERSION 1

#define RECORD_WORDS (sizeof(struct record) / sizeof(uint64_t))

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

/* Opening */

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

int pool_regions_bind(struct tshare_pool *pool, uint64_t *id)
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

int pool_regions_bind_seats(struct tshare_pool *pool, uint64_t id)
{
	return seats_region_bind(pool->seats_region, "pool", POOL_VERSION, id,
				 &pool->directory.ring, &pool->labels);
}

/* Creation */

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

int pool_regions_create(struct tshare_pool *pool, struct tshare_ctx *ctx, const char *name,
			const char *seats, uint32_t slots, uint64_t slot_size,
			struct tshare_options *options)
{
	const struct ring_head head = { .version = POOL_VERSION };
	uint64_t id;
	int err;

	err = create_region(pool, ctx, name, slots, slot_size, options);
	if (err)
		return err;
	/* If anything fails from here on, the names go. */
	pool->unlinks = true;
	err = create_seats(pool, ctx, seats, slots, options);
	if (!err)
		err = seats_region_write_heads(pool->region, pool->seats_region, "pool", &head);
	if (!err)
		err = pool_regions_bind(pool, &id);
	return err ? err : pool_regions_bind_seats(pool, id);
}
