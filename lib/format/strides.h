/* SPDX-License-Identifier: MIT */
/*
 * The library's arithmetic of elements, shapes and strides: sizes, C strides, contiguity,
 * and how far a tensor extends. Strides count elements.
 */
#ifndef TSHARE_FORMAT_STRIDES_H
#define TSHARE_FORMAT_STRIDES_H

#include <stdbool.h>
#include <stdint.h>

#include "tshare.h"

/* Bits of an element; some take less than a byte. */
static inline uint32_t element_bits(struct tshare_dtype dtype)
{
	return (uint32_t)dtype.bits * dtype.lanes;
}

/* Bytes that so many bits take. */
static inline uint64_t bytes_of_bits(uint64_t bits)
{
	return bits / 8 + !!(bits % 8);
}

/* How many elements there are; false if they can't be counted. */
bool strides_count(int32_t ndim, const int64_t *shape, int64_t *count);

/*
 * Fills @strides with those of a C-contiguous tensor. Dimensions of zero count as one,
 * so that the strides of an empty tensor are the usual ones. False if the number of
 * elements overflows.
 */
bool strides_fill(int32_t ndim, const int64_t *shape, int64_t *strides);

/* Whether a tensor whose elements can be counted is C-contiguous. Empty ones always are. */
bool strides_are_contiguous(int32_t ndim, const int64_t *shape, const int64_t *strides);

/* Bytes that a tensor takes before and from its element [0, 0, ...]. */
struct extent {
	uint64_t below;
	uint64_t above;
};

/* The extent of a tensor with checked shape; false if it overflows. */
bool strides_extent(struct tshare_dtype dtype, int32_t ndim, const int64_t *shape,
		    const int64_t *strides, struct extent *extent);

/*
 * Takes every @step-th index of a dimension from @start to before @stop, which are in it
 * or beside it. @length and @stride become the slice's, and @offset the number of elements
 * from the dimension's first to the slice's first. False for a step of 0.
 */
bool strides_slice(int64_t start, int64_t stop, int64_t step, int64_t *length, int64_t *stride,
		   int64_t *offset);

/*
 * Finds strides that give a tensor's elements another shape, in C order. Both shapes have
 * the same number of elements, at least one. False if no strides do.
 */
bool strides_reshape(int32_t ndim, const int64_t *shape, const int64_t *strides, int32_t new_ndim,
		     const int64_t *new_shape, int64_t *new_strides);

#endif /* TSHARE_FORMAT_STRIDES_H */
