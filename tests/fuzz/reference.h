/* SPDX-License-Identifier: MIT */
/*
 * Where a tensor's elements lie, computed once more: plainly, in 128 bits, and without a look
 * at how the library does it.
 */
#ifndef TSHARE_TESTS_FUZZ_REFERENCE_H
#define TSHARE_TESTS_FUZZ_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

typedef __int128 wide;

/* Beyond all that can be asked for, and so small that a sum of them doesn't overflow. */
#define FAR ((wide)1 << 100)

static inline wide limited(wide value)
{
	if (value > FAR)
		return FAR;
	return value < -FAR ? -FAR : value;
}

/* Bits from element [0, 0, ...], at which the elements begin and end. */
struct reach {
	bool empty;
	bool countable; /* @bits fits in an int64_t */
	wide bits;	/* of all elements, empty dimensions left out */
	wide low;
	wide high;
};

/* In C order if @strides is NULL. Nothing in @shape is negative. */
static inline struct reach reach_of(uint32_t bits, int32_t ndim, const int64_t *shape,
				    const int64_t *strides)
{
	struct reach reach = { .countable = true, .bits = bits };
	wide stride = 1, span, low = 0, high = 0;
	int32_t i;

	for (i = ndim; i-- > 0;) {
		span = limited((shape[i] - (wide)1) * (strides ? strides[i] : stride));
		if (span < 0)
			low += span;
		else
			high += span;
		if (!shape[i]) {
			reach.empty = true;
			continue;
		}
		reach.bits *= shape[i];
		if (reach.bits > INT64_MAX) {
			reach.countable = false;
			reach.bits = (wide)INT64_MAX + 1;
		}
		stride = reach.bits / bits;
	}
	reach.low = limited(low) * bits;
	reach.high = (limited(high) + 1) * bits;
	return reach;
}

#endif /* TSHARE_TESTS_FUZZ_REFERENCE_H */
