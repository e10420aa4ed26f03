// SPDX-License-Identifier: MIT
#include "lease/frame.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/container.h"
#include "base/error.h"
#include "base/export.h"
#include "base/refcount.h"
#include "base/sized.h"

static void owner_ref(struct tensor_owner *owner)
{
	tshare_frame_ref(container_of(owner, struct tshare_frame, owner));
}

static void owner_unref(struct tensor_owner *owner)
{
	tshare_frame_unref(container_of(owner, struct tshare_frame, owner));
}

struct tshare_frame *frame_new(struct tshare_stream *stream)
{
	struct tshare_frame *frame;

	frame = calloc(1, sizeof(*frame) + stream->dims * sizeof(*frame->shapes));
	if (!frame) {
		error_store("frame: out of memory");
		return NULL;
	}
	frame->owner = (struct tensor_owner){ owner_ref, owner_unref };
	atomic_init(&frame->refs, 1);
	frame->stream = tshare_stream_ref(stream);
	atomic_init(&frame->state, FRAME_PUBLISHED); /* no slot is its own */
	return frame;
}

void frame_add(struct tshare_frame *frame)
{
	LIST_INSERT_HEAD(&frame->stream->frames, frame, entry);
}

void frame_remove(struct tshare_frame *frame)
{
	LIST_REMOVE(frame, entry);
}

/* The slot that a byte of the region is in; -1 if it is beside the fields. */
static int slot_at(const struct tshare_stream *stream, uint64_t offset)
{
	const struct tshare_tensor *slots;
	uint64_t start, bytes;
	size_t i;

	for (i = 0; i < stream->field_count; i++) {
		slots = stream->fields[i];
		start = tshare_tensor_get_byte_offset(slots);
		bytes = (uint64_t)tshare_tensor_get_strides(slots)[0] *
			tshare_dtype_get_itemsize(tshare_tensor_get_dtype(slots));
		if (bytes && offset >= start && (offset - start) / bytes < stream->ring.slots)
			return (offset - start) / bytes;
	}
	return -1;
}

static int find_frame(struct owners *owners, uint64_t offset, struct tensor_owner **owner)
{
	struct tshare_stream *stream = container_of(owners, struct tshare_stream, owners);
	int slot = slot_at(stream, offset);
	struct tshare_frame *frame;

	if (slot < 0)
		return 0;
	for (frame = LIST_FIRST(&stream->frames); frame; frame = LIST_NEXT(frame, entry))
		if (frame->slot == (uint32_t)slot && refcount_get_unless_zero(&frame->refs)) {
			*owner = &frame->owner;
			return 0;
		}
	return fail(-ENOENT, "data: is in a slot of a stream, and nobody holds its frame");
}

static void unref_stream(struct owners *owners)
{
	tshare_stream_unref(container_of(owners, struct tshare_stream, owners));
}

void frames_begin(struct tshare_stream *stream)
{
	stream->owners = (struct owners){
		.refs = &stream->refs,
		.seats = &stream->seats,
		.lock = &stream->lock,
		.find = find_frame,
		.unref = unref_stream,
	};
	owners_begin(stream->region, &stream->owners);
}

TSHARE_EXPORT
struct tshare_frame *tshare_tensor_get_frame(const struct tshare_tensor *tensor)
{
	struct tensor_owner *owner = tensor_get_owner(tensor);

	if (!owner || owner->unref != owner_unref)
		return NULL;
	return container_of(owner, struct tshare_frame, owner);
}

TSHARE_EXPORT
struct tshare_frame *tshare_frame_ref(struct tshare_frame *frame)
{
	refcount_get(&frame->refs);
	return frame;
}

TSHARE_EXPORT
struct tshare_frame *tshare_frame_unref(struct tshare_frame *frame)
{
	keep_errno();

	if (!frame || !refcount_put(&frame->refs))
		return NULL;
	if (frame->drop)
		frame->drop(frame);
	tshare_stream_unref(frame->stream);
	free(frame);
	return NULL;
}

TSHARE_EXPORT
int tshare_frame_get_info(const struct tshare_frame *frame, struct tshare_frame_info *info)
{
	/* A thread of CUDA's may write the number just now. */
	bool queued = atomic_load(&frame->state) == FRAME_QUEUED;
	struct tshare_frame_info known = {
		.lost = frame->lost,
		.captured_ns = frame->captured_ns,
		.sequence = frame->sequence,
		.flags = frame->flags,
		.slot = frame->slot,
		.epoch = frame->stream->epoch,
	};
	int err;

	err = sized_check(info, "info.", SIZED_UPTO(struct tshare_frame_info, slot));
	if (!err && !queued) {
		known.number = frame->number;
		known.published_ns = frame->published_ns;
	}
	if (!err)
		sized_fill(info, &known, sizeof(known));
	return err;
}

int frame_check_loaned(const struct tshare_frame *frame)
{
	int state = atomic_load(&frame->state);

	switch (state) {
	case FRAME_LOANED:
		return 0;
	case FRAME_QUEUED:
		return fail(-EACCES, "frame: a CUDA stream is to publish it already");
	case FRAME_PUBLISHED:
		return fail(-EACCES, "frame: is published already");
	default:
		return fail(-EACCES, "frame: is read-only");
	}
}

TSHARE_EXPORT
int tshare_frame_set_info(struct tshare_frame *frame, const struct tshare_frame_info *info)
{
	struct tshare_frame_info known;
	int err;

	err = frame_check_loaned(frame);
	if (!err)
		err = sized_read(info, "info.", SIZED_UPTO(struct tshare_frame_info, slot), &known,
				 sizeof(known));
	if (err)
		return err;
	frame->captured_ns = known.captured_ns;
	frame->sequence = known.sequence;
	frame->flags = known.flags;
	return 0;
}

static int check_field(const struct tshare_frame *frame, size_t field)
{
	if (field >= frame->stream->field_count)
		return fail(-ENOENT, "field: %zu of %zu fields", field, frame->stream->field_count);
	return 0;
}

/* Where a field's shape in use is among all fields'. */
static size_t dims_before(const struct tshare_stream *stream, size_t field)
{
	size_t dims = 0, i;

	for (i = 0; i < field; i++)
		dims += tshare_tensor_get_ndim(stream->fields[i]) - 1;
	return dims;
}

TSHARE_EXPORT
int tshare_frame_set_shape(struct tshare_frame *frame, size_t field, const int64_t *shape)
{
	const struct tshare_tensor *slots;
	int32_t ndim, dim;
	int64_t most;
	int err;

	err = frame_check_loaned(frame);
	if (!err)
		err = check_field(frame, field);
	if (err)
		return err;
	slots = frame->stream->fields[field];
	ndim = tshare_tensor_get_ndim(slots) - 1;
	if (ndim && !shape)
		return fail(-EINVAL, "shape: is NULL");
	for (dim = 0; dim < ndim; dim++) {
		most = tshare_tensor_get_shape(slots)[dim + 1];
		if (shape[dim] < 0 || shape[dim] > most)
			return fail(-ERANGE, "shape[%" PRId32 "]: %" PRId64 " is not 0 to %" PRId64,
				    dim, shape[dim], most);
	}
	if (ndim)
		memcpy(frame->shapes + dims_before(frame->stream, field), shape,
		       ndim * sizeof(*shape));
	return 0;
}

TSHARE_EXPORT
int tshare_frame_get_tensor(struct tshare_frame *frame, size_t field, struct tshare_tensor **tensor)
{
	struct tshare_spec spec = { .size = sizeof(spec) };
	const struct tshare_tensor *slots;
	int err;

	err = check_field(frame, field);
	if (err)
		return err;
	slots = frame->stream->fields[field];
	spec.name = tshare_tensor_get_name(slots);
	spec.dtype = tshare_tensor_get_dtype(slots);
	spec.ndim = tshare_tensor_get_ndim(slots) - 1;
	spec.shape = frame->shapes + dims_before(frame->stream, field);
	spec.strides = tshare_tensor_get_strides(slots) + 1;
	/*
	 * The tensor of all slots was checked to lie in its region. A tensor without
	 * elements may have any strides.
	 */
	spec.byte_offset = tshare_tensor_get_byte_offset(slots) +
			   (uint64_t)frame->slot * tshare_tensor_get_strides(slots)[0] *
				   tshare_dtype_get_itemsize(spec.dtype);
	if (!spec.byte_offset)
		spec.byte_offset = TSHARE_OFFSET_START;
	err = tshare_region_view(frame->stream->region, &spec, 0, tensor);
	if (!err)
		tensor_set_owner(*tensor, &frame->owner);
	return err;
}

TSHARE_EXPORT
int tshare_frame_find_tensor(struct tshare_frame *frame, const char *name,
			     struct tshare_tensor **tensor)
{
	const struct tshare_stream *stream = frame->stream;
	size_t i;

	if (!name)
		return fail(-EINVAL, "name: is NULL");
	for (i = 0; i < stream->field_count; i++)
		if (!strcmp(name, tshare_tensor_get_name(stream->fields[i])))
			return tshare_frame_get_tensor(frame, i, tensor);
	return fail(-ENOENT, "name: no field '%s' among %zu", name, stream->field_count);
}

TSHARE_EXPORT
int tshare_frame_check(struct tshare_frame *frame)
{
	const struct tshare_stream *stream = frame->stream;
	int state = atomic_load(&frame->state);

	if (state != FRAME_LEASED && state != FRAME_OBSERVED)
		return 0;
	atomic_thread_fence(memory_order_acquire);
	if (ring_number(&stream->ring, frame->slot) != frame->number)
		return fail(-ESTALE, "frame: %" PRIu64 " was overwritten", frame->number);
	if (stream->seat >= 0 && ring_is_evicted(&stream->ring, stream->seat))
		return fail(-ESTALE, "frame: the producer has evicted this consumer");
	return 0;
}
