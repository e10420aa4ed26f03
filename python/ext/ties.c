// SPDX-License-Identifier: MIT
/*
 * Tied tensors: among tensors that are copied into one region, those whose memory is another's
 * already, such as weights that a model has twice.
 */
#include "ties.h"

#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "source.h"

/* The addresses of a source's elements. */
struct stretch {
	const struct ts_source *source;
	Py_ssize_t index;
	uintptr_t start;
	uintptr_t end;
	bool contiguous;
};

/*
 * Stores the addresses of a source. False for a source without memory to share. A read-only source
 * is a value: two equal constants may have one address, though a change of one isn't to be seen in
 * the other.
 */
static bool measure(const struct ts_source *source, struct stretch *stretch)
{
	const int64_t itemsize = ts_itemsize(source->spec.dtype);
	int64_t below = 0, above = itemsize, span;
	int32_t i;

	if (source->readonly || !itemsize)
		return false;
	for (i = 0; i < source->spec.ndim; i++) {
		if (!source->shape[i])
			return false;
		/* ts_source_open() has checked that this does not overflow. */
		span = (source->shape[i] - 1) * source->strides[i] * itemsize;
		*(span < 0 ? &below : &above) += span;
	}
	stretch->source = source;
	stretch->start = (uintptr_t)source->data + below;
	stretch->end = (uintptr_t)source->data + above;
	stretch->contiguous = ts_source_is_contiguous(source);
	return true;
}

/* Sorts each source after the one that it may lie in. */
static int compare(const void *a, const void *b)
{
	const struct stretch *left = a, *right = b;

	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	if (left->end != right->end)
		return left->end > right->end ? -1 : 1;
	if (left->contiguous != right->contiguous)
		return left->contiguous ? -1 : 1;
	return (left->index > right->index) - (left->index < right->index);
}

static bool is_same(const struct ts_source *a, const struct ts_source *b)
{
	size_t size = a->spec.ndim * sizeof(int64_t);

	return a->data == b->data && a->spec.ndim == b->spec.ndim &&
	       !memcmp(&a->spec.dtype, &b->spec.dtype, sizeof(a->spec.dtype)) &&
	       !memcmp(a->shape, b->shape, size) && !memcmp(a->strides, b->strides, size);
}

int ts_find_ties(struct ts_source *const *sources, Py_ssize_t count, Py_ssize_t *ties)
{
	struct stretch *stretches = PyMem_Calloc(count + 1, sizeof(*stretches));
	const struct stretch *base = NULL, *next;
	Py_ssize_t i, found = 0;

	if (!stretches) {
		PyErr_NoMemory();
		return -1;
	}
	for (i = 0; i < count; i++) {
		ties[i] = -1;
		stretches[found].index = i;
		if (sources[i] && measure(sources[i], &stretches[found]))
			found++;
	}
	qsort(stretches, found, sizeof(*stretches), compare);
	for (next = stretches; next < stretches + found; next++) {
		/* The copy of a source with gaps, or in another order, has another layout. */
		if (base && next->end <= base->end &&
		    (base->contiguous || is_same(base->source, next->source)))
			ties[next->index] = base->index;
		else if (!base || next->end > base->end || !base->contiguous)
			base = next;
	}
	PyMem_Free(stretches);
	return 0;
}
