// SPDX-License-Identifier: MIT
/* C strides, contiguity, extent. Errors and their texts are the callers'. */
#include "format/strides.h"

bool strides_count(int32_t ndim, const int64_t *shape, int64_t *count)
{
	int32_t i;

	*count = 1;
	for (i = 0; i < ndim; i++)
		if (!shape[i])
			*count = 0;
	for (i = 0; *count && i < ndim; i++)
		if (__builtin_mul_overflow(*count, shape[i], count))
			return false;
	return true;
}

bool strides_fill(int32_t ndim, const int64_t *shape, int64_t *strides)
{
	int64_t stride = 1;
	bool fits = true;
	int32_t i;

	for (i = ndim; i-- > 0;) {
		strides[i] = stride;
		if (shape[i] && __builtin_mul_overflow(stride, shape[i], &stride))
			fits = false;
	}
	return fits;
}

bool strides_are_contiguous(int32_t ndim, const int64_t *shape, const int64_t *strides)
{
	int64_t expected = 1;
	bool contiguous = true;
	int32_t i;

	for (i = ndim; i-- > 0;) {
		if (!shape[i])
			return true;
		/* The stride of a single index is never used. */
		if (shape[i] > 1 && strides[i] != expected)
			contiguous = false;
		expected *= shape[i];
	}
	return contiguous;
}

/* In elements first, relative to element [0, 0, ...], then in whole bytes. */
bool strides_extent(struct tshare_dtype dtype, int32_t ndim, const int64_t *shape,
		    const int64_t *strides, struct extent *extent)
{
	uint64_t before = 0, behind = 1, bits = element_bits(dtype), span, stride;
	int32_t i;

	*extent = (struct extent){ 0, 0 };
	for (i = 0; i < ndim; i++)
		if (!shape[i])
			return true;
	for (i = 0; i < ndim; i++) {
		stride = strides[i];
		if (strides[i] < 0)
			stride = -stride;
		if (__builtin_mul_overflow(shape[i] - 1, stride, &span) ||
		    (strides[i] < 0 ? __builtin_add_overflow(before, span, &before) :
				      __builtin_add_overflow(behind, span, &behind)))
			return false;
	}
	if (__builtin_mul_overflow(before, bits, &before) ||
	    __builtin_mul_overflow(behind, bits, &behind))
		return false;
	extent->below = bytes_of_bits(before);
	extent->above = bytes_of_bits(behind);
	return true;
}

bool strides_slice(int64_t start, int64_t stop, int64_t step, int64_t *length, int64_t *stride,
		   int64_t *offset)
{
	uint64_t span = 0, magnitude = step;

	if (!step)
		return false;
	if (step > 0 && start < stop)
		span = stop - start;
	if (step < 0 && start > stop)
		span = start - stop;
	if (step < 0)
		magnitude = -magnitude;
	*offset = span ? start * *stride : 0;
	*length = span / magnitude + !!(span % magnitude);
	/* The stride of a single index is never used, and may have any value. */
	if (*length > 1)
		*stride *= step;
	return true;
}

/* A run of dimensions that one stride walks: each stride steps over all of the next dimension. */
struct run {
	int64_t length;
	int64_t stride;
};

/* Finds the longest runs, innermost first, without dimensions of one index. */
static int32_t find_runs(int32_t ndim, const int64_t *shape, const int64_t *strides,
			 struct run *runs)
{
	int32_t i, count = 0;
	int64_t next;

	for (i = ndim; i-- > 0;) {
		if (shape[i] == 1)
			continue;
		if (count &&
		    !__builtin_mul_overflow(runs[count - 1].stride, runs[count - 1].length,
					    &next) &&
		    strides[i] == next)
			runs[count - 1].length *= shape[i];
		else
			runs[count++] = (struct run){ shape[i], strides[i] };
	}
	return count;
}

bool strides_reshape(int32_t ndim, const int64_t *shape, const int64_t *strides, int32_t new_ndim,
		     const int64_t *new_shape, int64_t *new_strides)
{
	struct run runs[TSHARE_NDIM_LIMIT];
	struct run *run = runs, *last;
	int32_t i;

	last = runs + find_runs(ndim, shape, strides, runs) - 1;
	if (last < runs)
		*run = (struct run){ 1, 1 };
	/* Each new dimension is a part of one run: across two it would need two strides. */
	for (i = new_ndim; i-- > 0;) {
		if (run->length == 1 && new_shape[i] > 1 && run < last)
			run++;
		new_strides[i] = run->stride;
		if (run->length % new_shape[i])
			return false;
		run->length /= new_shape[i];
		if (run->length > 1)
			run->stride *= new_shape[i];
	}
	return true;
}
