// SPDX-License-Identifier: MIT
/*
 * NAME has a tensor for each field, whose first dimension is the slot, and
 *
 *	.stream    uint64 (16)           struct ring_head
 *	.number    uint64 (slots)        number of the frame in each slot
 *	.header    uint64 (slots, 8)     when it was captured and published, sequence, flags
 *	.shape     int64 (slots, dims)   the fields' shapes in use, one behind the other
 *
 * The region is another process's memory: what is read from it here is read once, then checked.
 */
#define _GNU_SOURCE 1
#include "lease/regions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "ctx.h"
#include "format/layout.h"
#include "format/strides.h"
#include "lease/object.h"
#include "lease/part.h"
#include "lease/seats-region.h"
#include "region/object.h"

/* Parts of the two regions, besides the fields. */

enum { PART_HEAD, PART_NUMBER, PART_HEADER, PART_SHAPE, PARTS };

static void parts_of(int64_t slots, int64_t dims, struct part *parts)
{
	parts[PART_HEAD] = (struct part){ ".stream", TSHARE_UINT64, 1, { RING_HEAD_WORDS } };
	parts[PART_NUMBER] = (struct part){ ".number", TSHARE_UINT64, 1, { slots } };
	parts[PART_HEADER] = (struct part){ ".header", TSHARE_UINT64, 2, { slots, STREAM_HEADER } };
	parts[PART_SHAPE] = (struct part){ ".shape", TSHARE_INT64, 2, { slots, dims } };
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

int regions_create(struct tshare_stream *stream, struct tshare_ctx *ctx, const char *name,
		   const char *seats_name, const struct tshare_spec *fields, size_t count,
		   const struct tshare_options *region)
{
	const struct ring_head head = {
		.version = STREAM_VERSION,
		.history = stream->ring.history,
		.flags = stream->ring.may_keep ? TSHARE_KEEP_ALL : 0,
	};
	struct tshare_spec known[TSHARE_STREAM_FIELDS];
	uint64_t id;
	int err;

	err = read_fields(fields, count, known);
	if (!err)
		err = create_region(stream, ctx, name, known, count, region);
	if (!err)
		err = seats_region_create(ctx, seats_name, "stream", stream->ring.slots, region,
					  &stream->seats_region);
	if (!err)
		err = seats_region_write_heads(stream->region, stream->seats_region, "stream",
					       &head);
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
	struct part part = { ".stream", TSHARE_UINT64, 1, { RING_HEAD_WORDS } };
	uint64_t version, history;
	int err;

	err = part_find(stream->region, "stream", &part, &ring->head);
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
		return part_fail_none(stream->region, "stream");
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
	err = part_find(stream->region, "stream", &parts[PART_NUMBER], &ring->numbers);
	if (!err)
		err = part_find(stream->region, "stream", &parts[PART_HEADER], &stream->headers);
	if (!err)
		err = part_find(stream->region, "stream", &parts[PART_SHAPE], &stream->shapes);
	return err;
}

int regions_bind_seats(struct tshare_stream *stream, uint64_t id)
{
	return seats_region_bind(stream->seats_region, "stream", STREAM_VERSION, id, &stream->ring,
				 &stream->labels);
}
