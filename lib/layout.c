// SPDX-License-Identifier: MIT
/* From what a caller wants in a region to the descriptors that go with it. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "desc.h"
#include "error.h"
#include "export.h"
#include "layout.h"
#include "strides.h"

static int too_large(void)
{
	return tshare_fail(-EINVAL, "shape: more bytes than can be counted");
}

static int describe_type(const struct tshare_spec *spec, struct tshare_desc *desc)
{
	if (!spec->dtype.bits || !spec->dtype.lanes)
		return tshare_fail(-EINVAL, "dtype: %u bits and %u lanes", spec->dtype.bits,
				   spec->dtype.lanes);
	desc->dtype_code = spec->dtype.code;
	desc->dtype_bits = spec->dtype.bits;
	desc->dtype_lanes = spec->dtype.lanes;
	return 0;
}

static int describe_shape(const struct tshare_spec *spec, struct tshare_desc *desc)
{
	int32_t i;

	if (spec->ndim < 0 || spec->ndim > TSHARE_NDIM_LIMIT)
		return tshare_fail(-EINVAL, "ndim: %" PRId32 " is not 0 to %d", spec->ndim,
				   TSHARE_NDIM_LIMIT);
	if (spec->ndim && !spec->shape)
		return tshare_fail(-EINVAL, "shape: is NULL");
	for (i = 0; i < spec->ndim; i++) {
		if (spec->shape[i] < 0)
			return tshare_fail(-EINVAL, "shape[%" PRId32 "]: %" PRId64 " is negative",
					   i, spec->shape[i]);
		desc->shape[i] = spec->shape[i];
	}
	desc->ndim = spec->ndim;
	return 0;
}

static int describe_strides(const struct tshare_spec *spec, struct tshare_desc *desc)
{
	const int64_t *strides = spec->strides;
	int64_t filled[TSHARE_NDIM_LIMIT];
	int32_t i;

	if (!strides) {
		if (!strides_fill(spec->ndim, spec->shape, filled))
			return too_large();
		strides = filled;
	}
	for (i = 0; i < spec->ndim; i++)
		desc->strides[i] = strides[i];
	return 0;
}

static int describe_name(const struct tshare_spec *spec, struct tshare_desc *desc)
{
	size_t length;

	if (!spec->name)
		return 0;
	length = strnlen(spec->name, TSHARE_NAME_LEN);
	if (length == TSHARE_NAME_LEN)
		return tshare_fail(-ENAMETOOLONG, "name: longer than %d bytes", TSHARE_NAME_MAX);
	memcpy(desc->name, spec->name, length);
	return 0;
}

/* Puts the tensor at or behind @cursor if its place is free to choose, and moves @cursor there. */
static int place(const struct tshare_spec *spec, struct tshare_desc *desc, uint64_t *cursor)
{
	const uint64_t mask = TSHARE_TENSOR_ALIGNMENT - 1;
	struct extent extent;
	uint64_t start;

	if (!strides_extent(desc, &extent))
		return too_large();
	if (spec->byte_offset == TSHARE_OFFSET_START) {
		start = 0;
	} else if (spec->byte_offset != TSHARE_OFFSET_AUTO) {
		start = spec->byte_offset;
	} else if (__builtin_add_overflow(*cursor, extent.below, &start) ||
		   __builtin_add_overflow(start, mask, &start)) {
		return too_large();
	} else {
		start &= ~mask;
	}
	desc->byte_offset = start;
	if (__builtin_add_overflow(start, extent.above, cursor))
		return tshare_fail(-ERANGE, "byte_offset: beyond any region");
	return 0;
}

static int describe(const struct tshare_spec *spec, struct tshare_desc *desc, uint64_t *cursor)
{
	int err;

	err = describe_type(spec, desc);
	if (!err)
		err = describe_shape(spec, desc);
	if (!err)
		err = describe_strides(spec, desc);
	if (!err)
		err = describe_name(spec, desc);
	if (!err)
		err = place(spec, desc, cursor);
	return err;
}

int tshare_layout(const struct tshare_spec *specs, size_t count, struct tshare_desc *descs,
		  uint64_t *size)
{
	uint64_t cursor = 0, end = 0;
	size_t i;
	int err;

	for (i = 0; i < count; i++) {
		err = describe(&specs[i], &descs[i], &cursor);
		if (err)
			return count > 1 ? tshare_fail_within(err, "specs[%zu].", i) : err;
		if (cursor > end)
			end = cursor;
	}
	*size = end;
	return 0;
}

/*
 * Strides of zero let any number of elements lie in little memory, and strides
 * that were computed from such a shape may have wrapped around.
 */
static int count_elements(const struct tshare_desc *desc)
{
	int64_t total = (int64_t)desc->dtype_bits * desc->dtype_lanes;
	uint32_t i;

	for (i = 0; i < desc->ndim; i++)
		if (desc->shape[i] && __builtin_mul_overflow(total, desc->shape[i], &total))
			return too_large();
	return 0;
}

static int check_place(uintptr_t data, const struct extent *extent, uintptr_t start, uintptr_t size)
{
	uintptr_t low, high;

	if (__builtin_sub_overflow(data, extent->below, &low) ||
	    __builtin_add_overflow(data, extent->above, &high))
		return tshare_fail(-ERANGE, "strides: reach beyond the address space");
	if (start && (low < start || data < start || high - start > size))
		return tshare_fail(-ERANGE, "shape, strides: reach beyond the memory");
	return 0;
}

TSHARE_EXPORT
int tshare_spec_check(const struct tshare_spec *spec, const void *data, const void *memory,
		      size_t size)
{
	struct tshare_desc desc = { 0 };
	struct extent extent;
	int err;

	if (!spec)
		return tshare_fail(-EINVAL, "spec: is NULL");
	err = describe_type(spec, &desc);
	if (!err)
		err = describe_shape(spec, &desc);
	if (!err)
		err = describe_strides(spec, &desc);
	if (!err)
		err = count_elements(&desc);
	if (!err && !strides_extent(&desc, &extent))
		err = too_large();
	if (err || !extent.above)
		return err;
	if (!data)
		return tshare_fail(-EINVAL, "data: is NULL");
	return check_place((uintptr_t)data, &extent, (uintptr_t)memory, size);
}

int tshare_layout_check(const struct tshare_desc *descs, size_t count, uint64_t size,
			const char *array)
{
	const char *why;
	size_t i;
	int err;

	for (i = 0; i < count; i++) {
		err = tshare_desc_check(&descs[i], size, &why);
		if (err && count > 1)
			return tshare_fail(err, "%s[%zu].%s", array, i, why);
		if (err)
			return tshare_fail(err, "%s", why);
	}
	return 0;
}
