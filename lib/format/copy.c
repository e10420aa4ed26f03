// SPDX-License-Identifier: MIT
/* Strided element copy. */
#include "format/copy.h"

#include <string.h>

#include "tshare.h"

/* One dimension of both sides, strides in bytes. */
struct dim {
	int64_t count;
	int64_t to;
	int64_t from;
};

/*
 * Writes the dimensions that matter to @dims, outermost first, and returns their
 * number. Drops dimensions of one element, and merges two that both sides can walk
 * as one.
 */
static int32_t merge_dims(struct dim *dims, const int64_t *to_strides, const int64_t *from_strides,
			  int32_t ndim, const int64_t *shape, int64_t itemsize)
{
	struct dim *last;
	int32_t used = 0, i;

	for (i = 0; i < ndim; i++) {
		struct dim dim = { .count = shape[i] };

		/* Its stride is never followed, and may be anything. */
		if (dim.count == 1)
			continue;
		dim.to = to_strides[i] * itemsize;
		dim.from = from_strides[i] * itemsize;
		last = used ? &dims[used - 1] : NULL;
		if (last && last->to == dim.to * dim.count && last->from == dim.from * dim.count) {
			dim.count *= last->count;
			*last = dim;
		} else {
			dims[used++] = dim;
		}
	}
	return used;
}

/* With a constant size the compiler makes memcpy() a load and a store. */
#define COPY_EACH(size)                  \
	for (i = 0; i < dim->count; i++) \
	memcpy(to + i * dim->to, from + i * dim->from, (size))

static void copy_line(char *to, const char *from, const struct dim *dim, size_t itemsize)
{
	int64_t i;

	if (dim->to == (int64_t)itemsize && dim->from == dim->to) {
		memcpy(to, from, dim->count * itemsize);
		return;
	}
	switch (itemsize) {
	case 1:
		COPY_EACH(1);
		break;
	case 2:
		COPY_EACH(2);
		break;
	case 4:
		COPY_EACH(4);
		break;
	case 8:
		COPY_EACH(8);
		break;
	default:
		COPY_EACH(itemsize);
	}
}

static void copy_dims(char *to, const char *from, const struct dim *dims, int32_t ndim,
		      size_t itemsize)
{
	int64_t i;

	if (ndim == 1) {
		copy_line(to, from, dims, itemsize);
		return;
	}
	for (i = 0; i < dims->count; i++)
		copy_dims(to + i * dims->to, from + i * dims->from, dims + 1, ndim - 1, itemsize);
}

void copy_elements(void *to, const int64_t *to_strides, const void *from,
		   const int64_t *from_strides, int32_t ndim, const int64_t *shape, size_t itemsize)
{
	struct dim dims[TSHARE_NDIM_LIMIT];
	int32_t used, i;

	for (i = 0; i < ndim; i++)
		if (!shape[i])
			return;
	used = merge_dims(dims, to_strides, from_strides, ndim, shape, itemsize);
	if (used)
		copy_dims(to, from, dims, used, itemsize);
	else
		memcpy(to, from, itemsize);
}
