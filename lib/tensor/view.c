// SPDX-License-Identifier: MIT
/* Tensors over the elements of another one: selections, slices, other orders and shapes. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/export.h"
#include "format/strides.h"
#include "tensor/tensor.h"
#include "tshare.h"

/* A view in the making. */
struct view {
	int32_t ndim;
	int64_t shape[TSHARE_NDIM_LIMIT];
	int64_t strides[TSHARE_NDIM_LIMIT];
	int64_t offset; /* in elements, from the tensor's [0, 0, ...] */
};

TSHARE_EXPORT
int tshare_tensor_view(struct tshare_tensor *tensor, const struct tshare_spec *spec, uint32_t flags,
		       struct tshare_tensor **view)
{
	int err;

	if (tshare_tensor_is_readonly(tensor))
		flags |= TSHARE_READONLY;
	err = tshare_region_view(tshare_tensor_get_region(tensor), spec, flags, view);
	if (!err)
		tensor_share_owner(*view, tensor);
	return err;
}

static void view_of(const struct tshare_tensor *tensor, struct view *view)
{
	size_t size;

	view->ndim = tshare_tensor_get_ndim(tensor);
	view->offset = 0;
	size = view->ndim * sizeof(*view->shape);
	memcpy(view->shape, tshare_tensor_get_shape(tensor), size);
	memcpy(view->strides, tshare_tensor_get_strides(tensor), size);
}

static void remove_dim(struct view *view, int32_t dim)
{
	size_t behind = (view->ndim - dim - 1) * sizeof(*view->shape);

	memmove(view->shape + dim, view->shape + dim + 1, behind);
	memmove(view->strides + dim, view->strides + dim + 1, behind);
	view->ndim--;
}

static int make(struct tshare_tensor *tensor, const struct view *view, struct tshare_tensor **made)
{
	struct tshare_spec spec = {
		.size = sizeof(spec),
		.dtype = tshare_tensor_get_dtype(tensor),
		.ndim = view->ndim,
		.shape = view->shape,
		.strides = view->strides,
	};
	/* The tensor was checked to lie in its region: this can't overflow. */
	int64_t bits = view->offset * element_bits(spec.dtype);

	if (bits % 8)
		return fail(-EINVAL, "start: element %" PRId64 " begins within a byte",
			    view->offset);
	spec.byte_offset = tshare_tensor_get_byte_offset(tensor) + bits / 8;
	if (!spec.byte_offset)
		spec.byte_offset = TSHARE_OFFSET_START;
	return tshare_tensor_view(tensor, &spec, 0, made);
}

static int check_dim(const struct tshare_tensor *tensor, int32_t dim)
{
	int32_t ndim = tshare_tensor_get_ndim(tensor);

	if (dim < 0 || dim >= ndim)
		return fail(-EINVAL, "dim: %" PRId32 " of a tensor with %" PRId32, dim, ndim);
	return 0;
}

static int check_index(const char *argument, int64_t index, int64_t least, int64_t most)
{
	if (index < least || index > most)
		return fail(-ERANGE, "%s: %" PRId64 " is not %" PRId64 " to %" PRId64, argument,
			    index, least, most);
	return 0;
}

TSHARE_EXPORT
int tshare_tensor_select(struct tshare_tensor *tensor, int32_t dim, int64_t index,
			 struct tshare_tensor **view)
{
	struct view new;
	int err;

	err = check_dim(tensor, dim);
	if (err)
		return err;
	view_of(tensor, &new);
	err = check_index("index", index, 0, new.shape[dim] - 1);
	if (err)
		return err;
	new.offset = new.strides[dim] * index;
	remove_dim(&new, dim);
	return make(tensor, &new, view);
}

TSHARE_EXPORT
int tshare_tensor_slice(struct tshare_tensor *tensor, int32_t dim, int64_t start, int64_t stop,
			int64_t step, struct tshare_tensor **view)
{
	int64_t before = step < 0; /* one more before the first, and one less behind the last */
	struct view new;
	int err;

	err = check_dim(tensor, dim);
	if (err)
		return err;
	view_of(tensor, &new);
	err = check_index("start", start, -before, new.shape[dim] - before);
	if (!err)
		err = check_index("stop", stop, -before, new.shape[dim] - before);
	if (err)
		return err;
	if (!strides_slice(start, stop, step, &new.shape[dim], &new.strides[dim], &new.offset))
		return fail(-EINVAL, "step: is 0");
	return make(tensor, &new, view);
}

TSHARE_EXPORT
int tshare_tensor_permute(struct tshare_tensor *tensor, const int32_t *dims,
			  struct tshare_tensor **view)
{
	struct view old, new;
	uint32_t taken = 0;
	int32_t i, dim;
	int err;

	view_of(tensor, &old);
	new = old;
	for (i = 0; i < old.ndim; i++) {
		dim = dims ? dims[i] : old.ndim - 1 - i;
		err = check_dim(tensor, dim);
		if (err)
			return fail_within(err, "dims[%" PRId32 "]: ", i);
		if (taken & 1U << dim)
			return fail(-EINVAL, "dims[%" PRId32 "]: %" PRId32 " appears twice", i,
				    dim);
		taken |= 1U << dim;
		new.shape[i] = old.shape[dim];
		new.strides[i] = old.strides[dim];
	}
	return make(tensor, &new, view);
}

static int count_elements(int32_t ndim, const int64_t *shape, int64_t *count)
{
	int32_t i;

	for (i = 0; i < ndim; i++)
		if (shape[i] < 0)
			return fail(-EINVAL, "shape[%" PRId32 "]: %" PRId64 " is negative", i,
				    shape[i]);
	if (!strides_count(ndim, shape, count))
		return fail(-EINVAL, "shape: more elements than can be counted");
	return 0;
}

TSHARE_EXPORT
int tshare_tensor_reshape(struct tshare_tensor *tensor, int32_t ndim, const int64_t *shape,
			  struct tshare_tensor **view)
{
	struct view old, new = { .ndim = ndim };
	int64_t before, after;
	int err;

	if (ndim < 0 || ndim > TSHARE_NDIM_LIMIT)
		return fail(-EINVAL, "ndim: %" PRId32 " is not 0 to %d", ndim, TSHARE_NDIM_LIMIT);
	if (ndim && !shape)
		return fail(-EINVAL, "shape: is NULL");
	view_of(tensor, &old);
	err = count_elements(old.ndim, old.shape, &before);
	if (!err)
		err = count_elements(ndim, shape, &after);
	if (err)
		return err;
	if (before != after)
		return fail(-EINVAL, "shape: has %" PRId64 " elements, the tensor %" PRId64, after,
			    before);
	if (ndim)
		memcpy(new.shape, shape, ndim * sizeof(*shape));
	if (!after && !strides_fill(ndim, shape, new.strides))
		return fail(-EINVAL, "shape: more elements than can be counted");
	if (after && !strides_reshape(old.ndim, old.shape, old.strides, ndim, shape, new.strides))
		return fail(-EINVAL, "shape: needs a copy, since the elements have gaps or another "
				     "order; tshare_tensor_read() makes one");
	return make(tensor, &new, view);
}
