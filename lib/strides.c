// SPDX-License-Identifier: MIT
/* C strides, contiguity, extent. Errors and their texts are the callers'. */
#include "strides.h"

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
		/* Where there is one index only, its stride is never used. */
		if (shape[i] > 1 && strides[i] != expected)
			contiguous = false;
		expected *= shape[i];
	}
	return contiguous;
}

/* In elements first, relative to element [0, 0, ...], then in whole bytes. */
bool strides_extent(uint64_t element_bits, int32_t ndim, const int64_t *shape,
		    const int64_t *strides, struct extent *extent)
{
	uint64_t before = 0, behind = 1, span, stride;
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
	if (__builtin_mul_overflow(before, element_bits, &before) ||
	    __builtin_mul_overflow(behind, element_bits, &behind))
		return false;
	extent->below = before / 8 + !!(before % 8);
	extent->above = behind / 8 + !!(behind % 8);
	return true;
}
