// SPDX-License-Identifier: MIT
/* Turns a caller's specs into descriptors. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/export.h"
#include "base/sized.h"
#include "format/desc-list.h"
#include "format/layout.h"
#include "format/strides.h"

static int too_large(void)
{
	return fail(-EINVAL, "shape: more bytes than can be counted");
}

static int check_type(const struct tshare_spec *spec)
{
	if (!spec->dtype.bits || !spec->dtype.lanes)
		return fail(-EINVAL, "dtype: %u bits and %u lanes", spec->dtype.bits,
			    spec->dtype.lanes);
	return 0;
}

static int check_shape(const struct tshare_spec *spec)
{
	int32_t i;

	if (spec->ndim < 0 || spec->ndim > TSHARE_NDIM_LIMIT)
		return fail(-EINVAL, "ndim: %" PRId32 " is not 0 to %d", spec->ndim,
			    TSHARE_NDIM_LIMIT);
	if (spec->ndim && !spec->shape)
		return fail(-EINVAL, "shape: is NULL");
	for (i = 0; i < spec->ndim; i++)
		if (spec->shape[i] < 0)
			return fail(-EINVAL, "shape[%" PRId32 "]: %" PRId64 " is negative", i,
				    spec->shape[i]);
	return 0;
}

/* The strides of a spec or, if it has none, C-contiguous ones in @filled. */
static int choose_strides(const struct tshare_spec *spec, int64_t filled[TSHARE_NDIM_LIMIT],
			  const int64_t **strides)
{
	*strides = spec->strides;
	if (*strides)
		return 0;
	if (!strides_fill(spec->ndim, spec->shape, filled))
		return too_large();
	*strides = filled;
	return 0;
}

/* Puts a tensor at or behind @cursor, unless it has a place, and moves @cursor to its end. */
static int place(const struct tshare_spec *spec, const int64_t *strides, uint64_t *cursor,
		 uint64_t *start)
{
	const uint64_t mask = TSHARE_TENSOR_ALIGNMENT - 1;
	struct extent extent;

	if (!strides_extent(spec->dtype, spec->ndim, spec->shape, strides, &extent))
		return too_large();
	if (spec->byte_offset == TSHARE_OFFSET_START) {
		*start = 0;
	} else if (spec->byte_offset != TSHARE_OFFSET_AUTO) {
		*start = spec->byte_offset;
	} else if (__builtin_add_overflow(*cursor, extent.below, start) ||
		   __builtin_add_overflow(*start, mask, start)) {
		return too_large();
	} else {
		*start &= ~mask;
	}
	if (__builtin_add_overflow(*start, extent.above, cursor))
		return fail(-ERANGE, "byte_offset: beyond any region");
	return 0;
}

static size_t name_length(const struct tshare_spec *spec)
{
	return spec->name ? strnlen(spec->name, TSHARE_TENSOR_NAME_MAX + 1) : 0;
}

#define SPEC_SHORTEST SIZED_UPTO(struct tshare_spec, shape)

int spec_read(const struct tshare_spec *spec, struct tshare_spec *known)
{
	if (!spec)
		return fail(-EINVAL, "spec: is NULL");
	return sized_read(spec, "spec.", SPEC_SHORTEST, known, sizeof(*known));
}

/* Puts the spec's place before the stored text. */
static int fail_spec(int err, size_t place)
{
	return fail_within(err, "specs[%zu].", place);
}

int spec_read_element(const struct tshare_spec *specs, size_t i, struct tshare_spec *known)
{
	const struct tshare_spec *spec = (const void *)((const char *)specs + i * specs->size);
	int err;

	if (spec->size != specs->size)
		return fail(-EINVAL, "specs[%zu].size: %zu bytes, but that of specs[0] is %zu", i,
			    spec->size, specs->size);
	err = sized_read(spec, "", SPEC_SHORTEST, known, sizeof(*known));
	return err ? fail_spec(err, i) : 0;
}

/* Checks a spec, and finds the size of its descriptor. */
static int measure(const struct tshare_spec *spec, size_t *size)
{
	size_t name_len = name_length(spec);
	int err;

	err = check_type(spec);
	if (!err)
		err = check_shape(spec);
	if (err)
		return err;
	if (name_len > TSHARE_TENSOR_NAME_MAX)
		return fail(-ENAMETOOLONG, "name: longer than %d bytes", TSHARE_TENSOR_NAME_MAX);
	*size = tshare_desc_size(spec->ndim, name_len);
	return 0;
}

/* Writes a descriptor of the size that measure() has found. */
static int describe(const struct tshare_spec *spec, struct tshare_desc *desc, size_t size,
		    uint64_t *cursor)
{
	size_t dims = spec->ndim * sizeof(int64_t), name_len = name_length(spec);
	int64_t filled[TSHARE_NDIM_LIMIT];
	const int64_t *strides;
	uint64_t start = 0;
	char *to;
	int err;

	err = choose_strides(spec, filled, &strides);
	if (!err)
		err = place(spec, strides, cursor, &start);
	if (err)
		return err;
	memset(desc, 0, size);
	desc->size = size;
	desc->ndim = spec->ndim;
	desc->name_len = name_len;
	desc->byte_offset = start;
	desc->dtype_code = spec->dtype.code;
	desc->dtype_bits = spec->dtype.bits;
	desc->dtype_lanes = spec->dtype.lanes;
	if (!dims && !name_len)
		return 0;
	to = (char *)desc + sizeof(*desc);
	if (dims) {
		memcpy(to, spec->shape, dims);
		memcpy(to + dims, strides, dims);
	}
	if (name_len)
		memcpy(to + 2 * dims, spec->name, name_len);
	return 0;
}

static int measure_all(const struct tshare_spec *specs, size_t count, size_t *total)
{
	struct tshare_spec spec;
	size_t size, i;
	int err;

	*total = 0;
	for (i = 0; i < count; i++) {
		err = spec_read_element(specs, i, &spec);
		if (err)
			return err;
		err = measure(&spec, &size);
		if (err)
			return fail_spec(err, i);
		*total += size;
	}
	if (*total > TSHARE_DESCS_SIZE_MAX)
		return fail(-EINVAL, "specs: shapes and names of %zu bytes are more than %u MiB",
			    *total, TSHARE_DESCS_SIZE_MAX >> 20);
	return 0;
}

int layout_specs(const struct tshare_spec *specs, size_t count, struct desc_list **list,
		 uint64_t *size)
{
	_cleanup_desc_list_ struct desc_list *new = NULL;
	uint64_t cursor = 0, end = 0;
	size_t total, length, at = 0, i;
	struct tshare_spec spec;
	int err;

	err = measure_all(specs, count, &total);
	if (err)
		return err;
	new = desc_list_new(count, total);
	if (!new)
		return fail(-ENOMEM, "specs: out of memory");
	for (i = 0; i < count; i++) {
		new->places[i] = at;
		err = spec_read_element(specs, i, &spec);
		if (err)
			return err;
		length = tshare_desc_size(spec.ndim, name_length(&spec));
		err = describe(&spec, (struct tshare_desc *)(new->records + at), length, &cursor);
		if (err)
			return fail_spec(err, i);
		at += length;
		if (cursor > end)
			end = cursor;
	}
	*size = end;
	*list = no_cleanup(new);
	return 0;
}

int layout_view(const struct tshare_spec *spec, uint64_t region_size, union desc_record *record)
{
	uint64_t cursor = 0;
	const char *why;
	size_t size;
	int err;

	err = measure(spec, &size);
	if (!err)
		err = describe(spec, &record->desc, size, &cursor);
	if (err)
		return err;
	err = tshare_desc_check(&record->desc, size, region_size, &why);
	return err ? fail(err, "%s", why) : 0;
}

/*
 * With strides of zero, any number of elements lies in little memory. Strides that
 * were computed from such a shape may have wrapped around.
 */
static int count_elements(const struct tshare_spec *spec)
{
	int64_t total = element_bits(spec->dtype);
	int32_t i;

	for (i = 0; i < spec->ndim; i++)
		if (spec->shape[i] && __builtin_mul_overflow(total, spec->shape[i], &total))
			return too_large();
	return 0;
}

static int check_place(uintptr_t data, const struct extent *extent, uintptr_t start, uintptr_t size)
{
	uintptr_t low, high;

	if (__builtin_sub_overflow(data, extent->below, &low) ||
	    __builtin_add_overflow(data, extent->above, &high))
		return fail(-ERANGE, "strides: reach beyond the address space");
	if (start && (low < start || high - start > size))
		return fail(-ERANGE, "shape, strides: reach beyond the memory");
	return 0;
}

TSHARE_EXPORT
int tshare_spec_check(const struct tshare_spec *spec, const void *data, const void *memory,
		      size_t size)
{
	int64_t filled[TSHARE_NDIM_LIMIT];
	struct tshare_spec known;
	const int64_t *strides;
	struct extent extent;
	int err;

	err = spec_read(spec, &known);
	if (!err)
		err = check_type(&known);
	if (!err)
		err = check_shape(&known);
	if (!err)
		err = choose_strides(&known, filled, &strides);
	if (!err)
		err = count_elements(&known);
	if (!err && !strides_extent(known.dtype, known.ndim, known.shape, strides, &extent))
		err = too_large();
	if (err || !extent.above)
		return err;
	if (!data)
		return fail(-EINVAL, "data: is NULL");
	return check_place((uintptr_t)data, &extent, (uintptr_t)memory, size);
}
