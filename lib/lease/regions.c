// SPDX-License-Identifier: MIT
/*
 * NAME has a tensor for each field, whose first dimension is the slot, and
 *
 *	.stream    uint64 (16)           struct ring_head
 *	.number    uint64 (slots)        number of the frame in each slot
 *	.header    uint64 (slots, 8)     when it was captured and published, sequence, flags
 *	.shape     int64 (slots, dims)   the fields' shapes in use, one behind the other
 *
 * NAME.seats has
 *
 *	.stream    uint64 (16)           version and id, as in NAME
 *	.word      uint64 (slots, 8)     leases; the first number of each line
 *	.keep      uint64 (8)            seats that keep every frame
 *	.waiting   uint64 (8)            whether the producer sleeps
 *	.pid       int32 (62)            who sits there
 *	.command   uint8 (62, 16)
 *
 * Both regions are other processes' memory: what is read from it here is read once, then checked.
 */
#define _GNU_SOURCE 1
#include "lease/regions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "ctx.h"
#include "format/layout.h"
#include "format/strides.h"
#include "lease/object.h"
#include "region/object.h"

#define HEAD_WORDS 16
#define LINE_WORDS (sizeof(struct ring_line) / sizeof(uint64_t))

_Static_assert(sizeof(struct ring_head) <= HEAD_WORDS * sizeof(uint64_t), "the head has room");

/* Parts of the two regions, besides the fields. */

struct part {
	const char *name;
	struct tshare_dtype dtype;
	int32_t ndim;
	int64_t shape[2];
};

enum { PART_HEAD, PART_NUMBER, PART_HEADER, PART_SHAPE, PARTS };
enum { SEATS_HEAD, SEATS_WORD, SEATS_KEEP, SEATS_WAITING, SEATS_PID, SEATS_COMMAND, SEATS_PARTS };

static void parts_of(int64_t slots, int64_t dims, struct part *parts)
{
	parts[PART_HEAD] = (struct part){ ".stream", TSHARE_UINT64, 1, { HEAD_WORDS } };
	parts[PART_NUMBER] = (struct part){ ".number", TSHARE_UINT64, 1, { slots } };
	parts[PART_HEADER] = (struct part){ ".header", TSHARE_UINT64, 2, { slots, STREAM_HEADER } };
	parts[PART_SHAPE] = (struct part){ ".shape", TSHARE_INT64, 2, { slots, dims } };
}

static void seats_parts_of(int64_t slots, struct part *parts)
{
	const int64_t consumers = TSHARE_STREAM_CONSUMERS;

	parts[SEATS_HEAD] = (struct part){ ".stream", TSHARE_UINT64, 1, { HEAD_WORDS } };
	parts[SEATS_WORD] = (struct part){ ".word", TSHARE_UINT64, 2, { slots, LINE_WORDS } };
	parts[SEATS_KEEP] = (struct part){ ".keep", TSHARE_UINT64, 1, { LINE_WORDS } };
	parts[SEATS_WAITING] = (struct part){ ".waiting", TSHARE_UINT64, 1, { LINE_WORDS } };
	parts[SEATS_PID] = (struct part){ ".pid", TSHARE_INT32, 1, { consumers } };
	parts[SEATS_COMMAND] = (struct part){ ".command", TSHARE_UINT8, 2, { consumers, 16 } };
}

static void part_spec(const struct part *part, struct tshare_spec *spec)
{
	*spec = (struct tshare_spec){
		.size = sizeof(*spec),
		.name = part->name,
		.dtype = part->dtype,
		.ndim = part->ndim,
		.shape = part->shape,
	};
}

static int fail_no_stream(struct tshare_region *region)
{
	return fail(-EPROTO, "name: '%s' is no stream, or one of another version of tshare",
		    tshare_region_get_name(region));
}

/* The memory of a part, which must be as this library makes it. */
static int find_part(struct tshare_region *region, const struct part *part, void *at)
{
	struct tshare_tensor *tensor;
	struct tshare_dtype dtype;
	bool same;
	int err;

	err = tshare_region_find_tensor(region, part->name, &tensor);
	if (err == -ENOENT)
		return fail_no_stream(region);
	if (err)
		return err;
	dtype = tshare_tensor_get_dtype(tensor);
	same = !memcmp(&dtype, &part->dtype, sizeof(dtype)) &&
	       tshare_tensor_get_ndim(tensor) == part->ndim &&
	       !memcmp(tshare_tensor_get_shape(tensor), part->shape,
		       part->ndim * sizeof(*part->shape)) &&
	       tshare_tensor_is_contiguous(tensor) &&
	       tshare_tensor_get_byte_offset(tensor) % _Alignof(struct ring_line) == 0;
	*(void **)at = tshare_tensor_get_data(tensor);
	tshare_tensor_unref(tensor);
	if (!same)
		return fail(-EPROTO, "name: '%s' has a tensor '%s' that no stream has",
			    tshare_region_get_name(region), part->name);
	return 0;
}

/* Creation */

/* A field of the region, from a caller's of one frame. */
struct slots_field {
	struct tshare_spec spec;
	int64_t shape[TSHARE_NDIM_LIMIT];
	int64_t strides[TSHARE_NDIM_LIMIT];
};

/* Checks what a stream's field may not be though a tensor may. */
static int check_field(const struct tshare_spec *fields, size_t index)
{
	const struct tshare_spec *spec = &fields[index];
	size_t i;

	if (spec->strides)
		return fail(-EINVAL, "fields[%zu].strides: a stream lays out its fields itself",
			    index);
	if (spec->byte_offset)
		return fail(-EINVAL, "fields[%zu].byte_offset: a stream lays out its fields itself",
			    index);
	if (!spec->name || !*spec->name || *spec->name == '.')
		return fail(-EINVAL, "fields[%zu].name: needs a name that doesn't begin with '.'",
			    index);
	for (i = 0; i < index; i++)
		if (!strcmp(spec->name, fields[i].name))
			return fail(-EINVAL, "fields[%zu].name: '%s' is that of fields[%zu] too",
				    index, spec->name, i);
	if (spec->ndim >= TSHARE_NDIM_LIMIT)
		return fail(-EINVAL, "fields[%zu].ndim: %" PRId32 " is not 0 to %d", index,
			    spec->ndim, TSHARE_NDIM_LIMIT - 1);
	if (!tshare_dtype_get_itemsize(spec->dtype))
		return fail(-EINVAL, "fields[%zu].dtype: elements are no whole bytes", index);
	return 0;
}

/* Checks the fields of one frame, and copies them to @known. */
static int read_fields(const struct tshare_spec *fields, size_t count, struct tshare_spec *known)
{
	uint64_t offsets[TSHARE_STREAM_FIELDS];
	size_t i;
	int err;

	if (!count || count > TSHARE_STREAM_FIELDS)
		return fail(-EINVAL, "count: %zu is not 1 to %d", count, TSHARE_STREAM_FIELDS);
	if (!fields)
		return fail(-EINVAL, "fields: is NULL");
	err = tshare_region_compute_layout(fields, count, offsets, NULL);
	if (err == -ENOMEM)
		return err;
	/* The specs are fields here. */
	if (err) {
		err = fail_without(err, "specs");
		return fail_within(err, "fields");
	}
	for (i = 0; !err && i < count; i++) {
		spec_read_element(fields, i, &known[i]);
		err = check_field(known, i);
	}
	return err;
}

static int fail_large(size_t index, uint32_t slots)
{
	return fail(-EINVAL, "fields[%zu].shape: is too large for %" PRIu32 " slots", index, slots);
}

/* Lays a field out from @at on, a whole page, and moves @at behind it. */
static int place_field(const struct tshare_spec *spec, size_t index, uint32_t slots,
		       uint64_t page_size, uint64_t *at, struct slots_field *field)
{
	uint64_t itemsize = tshare_dtype_get_itemsize(spec->dtype), unit, bytes, all;
	int64_t count;

	if (spec->ndim)
		memcpy(field->shape + 1, spec->shape, spec->ndim * sizeof(*spec->shape));
	field->shape[0] = slots;
	/* Whole pages, and whole elements. */
	for (unit = page_size; unit % itemsize; unit += page_size)
		;
	/* The elements and their bits were counted when the field was checked. */
	strides_count(spec->ndim, field->shape + 1, &count);
	if (!strides_fill(spec->ndim, field->shape + 1, field->strides + 1) ||
	    __builtin_add_overflow(count * itemsize, unit - 1, &bytes))
		return fail_large(index, slots);
	bytes = bytes / unit * unit;
	if (!bytes)
		bytes = unit;
	field->strides[0] = bytes / itemsize;
	field->spec = *spec;
	field->spec.ndim = spec->ndim + 1;
	field->spec.shape = field->shape;
	field->spec.strides = field->strides;
	field->spec.byte_offset = *at;
	if (__builtin_mul_overflow(bytes, slots, &all) || __builtin_add_overflow(*at, all, at))
		return fail_large(index, slots);
	/* Elements that are no power of two end within a page. */
	*at = (*at + page_size - 1) / page_size * page_size;
	return 0;
}

static int create_region(struct tshare_stream *stream, struct tshare_ctx *ctx, const char *name,
			 const struct tshare_spec *fields, size_t count,
			 const struct tshare_options *options)
{
	const uint32_t slots = stream->ring.slots;
	_cleanup_free_ struct slots_field *placed = calloc(count, sizeof(*placed));
	struct tshare_spec specs[TSHARE_STREAM_FIELDS + PARTS];
	uint64_t offsets[PARTS], at;
	struct part parts[PARTS];
	size_t i;
	int err;

	if (!placed)
		return fail(-ENOMEM, "fields: out of memory");
	for (i = 0; i < count; i++)
		stream->dims += fields[i].ndim;
	parts_of(slots, stream->dims, parts);
	for (i = 0; i < PARTS; i++)
		part_spec(&parts[i], &specs[i]);
	err = tshare_region_compute_layout(specs, PARTS, offsets, &at);
	if (err)
		return err;
	at = (at + ctx->page_size - 1) / ctx->page_size * ctx->page_size;
	for (i = 0; i < count; i++) {
		err = place_field(&fields[i], i, slots, ctx->page_size, &at, &placed[i]);
		if (err)
			return err;
		specs[PARTS + i] = placed[i].spec;
	}
	err = tshare_region_create(ctx, name, at, specs, PARTS + count, options, &stream->region);
	return err ? fail_without(err, "specs: ") : 0;
}

static int create_seats(struct tshare_stream *stream, struct tshare_ctx *ctx, const char *name,
			const struct tshare_options *region)
{
	struct tshare_options options = {
		.size = sizeof(options),
		.flags = region->flags & (TSHARE_DRAFT | TSHARE_REPLACE),
		.mode = region->mode,
	};
	struct tshare_spec specs[SEATS_PARTS];
	struct part parts[SEATS_PARTS];
	size_t i;

	/*
	 * Whoever may read the stream takes a seat, which is to write. On shared memory who may write
	 * a file may truncate it, too, and so let its users crash: there others can only observe.
	 */
	if (options.mode != TSHARE_MODE_NONE && ctx->backend->has_dmabufs)
		options.mode |= (options.mode & 0444) >> 1;
	seats_parts_of(stream->ring.slots, parts);
	for (i = 0; i < SEATS_PARTS; i++)
		part_spec(&parts[i], &specs[i]);
	return tshare_region_create(ctx, name, 0, specs, SEATS_PARTS, &options,
				    &stream->seats_region);
}

static uint64_t random_id(void)
{
	uint64_t id;

	if (getrandom(&id, sizeof(id), GRND_NONBLOCK) != sizeof(id))
		id = clock_ns();
	return id ? id : 1;
}

/* Both are new: nobody else reads them. */
static int write_heads(struct tshare_stream *stream)
{
	struct ring_head *heads[2];
	struct part part = { ".stream", TSHARE_UINT64, 1, { HEAD_WORDS } };
	uint64_t id = random_id();
	size_t i;
	int err;

	err = find_part(stream->region, &part, &heads[0]);
	if (!err)
		err = find_part(stream->seats_region, &part, &heads[1]);
	for (i = 0; !err && i < 2; i++) {
		atomic_store(&heads[i]->version, STREAM_VERSION);
		atomic_store(&heads[i]->id, id);
		atomic_store(&heads[i]->history, stream->ring.history);
		atomic_store(&heads[i]->flags, stream->ring.may_keep ? TSHARE_KEEP_ALL : 0);
	}
	return err;
}

int regions_create(struct tshare_stream *stream, struct tshare_ctx *ctx, const char *name,
		   const char *seats_name, const struct tshare_spec *fields, size_t count,
		   const struct tshare_options *region)
{
	struct tshare_spec known[TSHARE_STREAM_FIELDS];
	uint64_t id;
	int err;

	err = read_fields(fields, count, known);
	if (!err)
		err = create_region(stream, ctx, name, known, count, region);
	if (!err)
		err = create_seats(stream, ctx, seats_name, region);
	if (!err)
		err = write_heads(stream);
	if (!err)
		err = regions_bind(stream, &id);
	return err ? err : regions_bind_seats(stream, id);
}

/* Opening */

static int fail_damaged(const struct tshare_stream *stream, const char *what, uint64_t value)
{
	return fail(-EPROTO, "name: '%s' has a damaged head: %s %" PRIu64,
		    tshare_region_get_name(stream->region), what, value);
}

static int bind_head(struct tshare_stream *stream, uint64_t *id)
{
	struct ring *ring = &stream->ring;
	struct part part = { ".stream", TSHARE_UINT64, 1, { HEAD_WORDS } };
	uint64_t version, history;
	int err;

	err = find_part(stream->region, &part, &ring->head);
	if (err)
		return err;
	version = atomic_load(&ring->head->version);
	history = atomic_load(&ring->head->history);
	*id = atomic_load(&ring->head->id);
	if (version != STREAM_VERSION)
		return fail(-EPROTO,
			    "name: '%s' is a stream of version %" PRIu64 ", and this library "
			    "knows %d",
			    tshare_region_get_name(stream->region), version, STREAM_VERSION);
	if (history > TSHARE_STREAM_SLOTS)
		return fail_damaged(stream, "history", history);
	ring->history = history;
	ring->may_keep = atomic_load(&ring->head->flags) & TSHARE_KEEP_ALL;
	return 0;
}

/* A tensor of the region, if it is a field's. */
static int bind_field(struct tshare_stream *stream, size_t index)
{
	struct tshare_tensor *tensor;
	const char *name;
	int err;

	err = tshare_region_get_tensor_name(stream->region, index, &name);
	if (err || *name == '.')
		return err;
	if (stream->field_count == TSHARE_STREAM_FIELDS)
		return fail_damaged(stream, "fields", stream->field_count + 1);
	err = tshare_region_get_tensor(stream->region, index, &tensor);
	if (err)
		return err;
	stream->fields[stream->field_count++] = tensor;
	if (tshare_tensor_get_ndim(tensor) < 1 ||
	    !tshare_dtype_get_itemsize(tshare_tensor_get_dtype(tensor)))
		return fail_damaged(stream, "dimensions", 0);
	if (!stream->ring.slots && tshare_tensor_get_shape(tensor)[0] <= TSHARE_STREAM_SLOTS)
		stream->ring.slots = tshare_tensor_get_shape(tensor)[0];
	if (!stream->ring.slots || tshare_tensor_get_shape(tensor)[0] != stream->ring.slots)
		return fail_damaged(stream, "slots", tshare_tensor_get_shape(tensor)[0]);
	return 0;
}

static int bind_fields(struct tshare_stream *stream)
{
	size_t i, count = tshare_region_get_tensor_count(stream->region);
	int err = 0;

	for (i = 0; !err && i < count; i++)
		err = bind_field(stream, i);
	/* A stream's NAME.seats. */
	if (!err && !stream->field_count)
		return fail_no_stream(stream->region);
	stream->dims = 0;
	for (i = 0; i < stream->field_count; i++)
		stream->dims += tshare_tensor_get_ndim(stream->fields[i]) - 1;
	return err;
}

int regions_bind(struct tshare_stream *stream, uint64_t *id)
{
	struct ring *ring = &stream->ring;
	struct part parts[PARTS];
	int err;

	err = bind_head(stream, id);
	if (!err)
		err = bind_fields(stream);
	if (err)
		return err;
	parts_of(ring->slots, stream->dims, parts);
	err = find_part(stream->region, &parts[PART_NUMBER], &ring->numbers);
	if (!err)
		err = find_part(stream->region, &parts[PART_HEADER], &stream->headers);
	if (!err)
		err = find_part(stream->region, &parts[PART_SHAPE], &stream->shapes);
	return err;
}

int regions_bind_seats(struct tshare_stream *stream, uint64_t id)
{
	struct tshare_region *region = stream->seats_region;
	struct ring *ring = &stream->ring;
	struct part parts[SEATS_PARTS];
	struct ring_head *head;
	int err;

	seats_parts_of(ring->slots, parts);
	err = find_part(region, &parts[SEATS_HEAD], &head);
	if (err)
		return err;
	if (atomic_load(&head->version) != STREAM_VERSION || atomic_load(&head->id) != id)
		return fail(-ESTALE, "name: '%s' belongs to another stream",
			    tshare_region_get_name(region));
	err = find_part(region, &parts[SEATS_WORD], &ring->words);
	if (!err)
		err = find_part(region, &parts[SEATS_KEEP], &ring->keep);
	if (!err)
		err = find_part(region, &parts[SEATS_WAITING], &ring->waiting);
	if (!err)
		err = find_part(region, &parts[SEATS_PID], &stream->labels.pids);
	if (!err)
		err = find_part(region, &parts[SEATS_COMMAND], &stream->labels.commands);
	return err;
}
