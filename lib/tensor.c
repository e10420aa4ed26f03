// SPDX-License-Identifier: MIT
/* Tensors: what a region's descriptors say, with addresses. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "export.h"
#include "names.h"
#include "refcount.h"
#include "region.h"

struct tshare_tensor {
	atomic_uint refs;
	struct tshare_region *region;
	const struct tshare_desc *desc; /* the region's */
	int64_t *strides;		/* in @shape, behind the shape */
	int64_t shape[];
};

static int tensor_new(struct tshare_region *region, size_t index, struct tshare_tensor **tensor)
{
	const struct tshare_desc *desc = &region->handle.descs[index];
	struct tshare_tensor *new;
	uint32_t i;

	new = malloc(sizeof(*new) + 2 * desc->ndim * sizeof(*new->shape));
	if (!new)
		return tshare_fail(-ENOMEM, "tensor: out of memory");
	atomic_init(&new->refs, 1);
	new->region = tshare_region_ref(region);
	new->desc = desc;
	new->strides = new->shape + desc->ndim;
	for (i = 0; i < desc->ndim; i++) {
		new->shape[i] = desc->shape[i];
		new->strides[i] = desc->strides[i];
	}
	*tensor = new;
	return 0;
}

TSHARE_EXPORT
int tshare_region_tensor(struct tshare_region *region, size_t index, struct tshare_tensor **tensor)
{
	size_t count = region->handle.desc_count;

	if (index >= count)
		return tshare_fail(-ENOENT, "index: %zu of %zu tensors", index, count);
	return tensor_new(region, index, tensor);
}

/* Threads may build the index at the same time: one of them leaves it to all. */
static const uint32_t *index_of(struct tshare_region *region)
{
	uint32_t *index, *other = NULL;

	index = atomic_load_explicit(&region->index, memory_order_acquire);
	if (index)
		return index;
	index = tshare_index_new(region->handle.descs, region->handle.desc_count);
	if (!index || atomic_compare_exchange_strong(&region->index, &other, index))
		return index;
	free(index);
	return other;
}

TSHARE_EXPORT
int tshare_region_tensor_by_name(struct tshare_region *region, const char *name,
				 struct tshare_tensor **tensor)
{
	size_t count = region->handle.desc_count, place;
	const uint32_t *index;

	if (!name)
		return tshare_fail(-EINVAL, "name: is NULL");
	index = index_of(region);
	if (!index)
		return tshare_fail(-ENOMEM, "tensor: out of memory");
	place = tshare_index_find(index, region->handle.descs, count, name);
	if (place == count)
		return tshare_fail(-ENOENT, "name: no tensor '%s' among %zu", name, count);
	return tensor_new(region, place, tensor);
}

TSHARE_EXPORT
int tshare_tensor_create(struct tshare_ctx *ctx, const char *name, struct tshare_dtype dtype,
			 int32_t ndim, const int64_t *shape, const struct tshare_options *options,
			 struct tshare_tensor **tensor)
{
	struct tshare_spec spec = {
		.dtype = dtype,
		.ndim = ndim,
		.shape = shape,
		.byte_offset = TSHARE_OFFSET_AUTO,
	};
	struct tshare_region *region;
	int err;

	err = tshare_region_create(ctx, name, 0, &spec, 1, options, &region);
	if (err)
		return err;
	err = tensor_new(region, 0, tensor);
	if (err && name)
		tshare_unlink(ctx, name);
	tshare_region_unref(region);
	return err;
}

TSHARE_EXPORT
int tshare_tensor_open(struct tshare_ctx *ctx, const char *name, uint32_t flags,
		       struct tshare_tensor **tensor)
{
	struct tshare_region *region;
	int err;

	err = tshare_region_open(ctx, name, flags, &region);
	if (err)
		return err;
	if (region->handle.desc_count == 1)
		err = tensor_new(region, 0, tensor);
	else
		err = tshare_fail(-EINVAL, "name: '%s' holds %zu tensors, not one", name,
				  region->handle.desc_count);
	tshare_region_unref(region);
	return err;
}

TSHARE_EXPORT
struct tshare_tensor *tshare_tensor_ref(struct tshare_tensor *tensor)
{
	refcount_get(&tensor->refs);
	return tensor;
}

TSHARE_EXPORT
struct tshare_tensor *tshare_tensor_unref(struct tshare_tensor *tensor)
{
	if (!tensor || !refcount_put(&tensor->refs))
		return NULL;
	tshare_region_unref(tensor->region);
	free(tensor);
	return NULL;
}

TSHARE_EXPORT
struct tshare_region *tshare_tensor_region(const struct tshare_tensor *tensor)
{
	return tensor->region;
}

TSHARE_EXPORT
const char *tshare_tensor_name(const struct tshare_tensor *tensor)
{
	return tensor->desc->name;
}

TSHARE_EXPORT
void *tshare_tensor_data(const struct tshare_tensor *tensor)
{
	return (char *)tensor->region->data + tensor->desc->byte_offset;
}

TSHARE_EXPORT
struct tshare_dtype tshare_tensor_dtype(const struct tshare_tensor *tensor)
{
	const struct tshare_desc *desc = tensor->desc;

	return (struct tshare_dtype){ desc->dtype_code, desc->dtype_bits, desc->dtype_lanes };
}

TSHARE_EXPORT
int32_t tshare_tensor_ndim(const struct tshare_tensor *tensor)
{
	return tensor->desc->ndim;
}

TSHARE_EXPORT
const int64_t *tshare_tensor_shape(const struct tshare_tensor *tensor)
{
	return tensor->shape;
}

TSHARE_EXPORT
const int64_t *tshare_tensor_strides(const struct tshare_tensor *tensor)
{
	return tensor->strides;
}

TSHARE_EXPORT
uint64_t tshare_tensor_byte_offset(const struct tshare_tensor *tensor)
{
	return tensor->desc->byte_offset;
}

TSHARE_EXPORT
uint64_t tshare_tensor_nbytes(const struct tshare_tensor *tensor)
{
	const struct tshare_desc *desc = tensor->desc;
	uint64_t bits = (uint64_t)desc->dtype_bits * desc->dtype_lanes;
	uint32_t i;

	for (i = 0; i < desc->ndim; i++)
		bits *= tensor->shape[i];
	return bits / 8 + !!(bits % 8);
}

TSHARE_EXPORT
bool tshare_tensor_readonly(const struct tshare_tensor *tensor)
{
	return tensor->region->readonly;
}

TSHARE_EXPORT
bool tshare_tensor_is_contiguous(const struct tshare_tensor *tensor)
{
	int64_t expected = 1;
	bool contiguous = true;
	uint32_t i;

	for (i = tensor->desc->ndim; i-- > 0;) {
		if (!tensor->shape[i])
			return true;
		/* Where there is one index only, its stride is never used. */
		if (tensor->shape[i] > 1 && tensor->strides[i] != expected)
			contiguous = false;
		expected *= tensor->shape[i];
	}
	return contiguous;
}
