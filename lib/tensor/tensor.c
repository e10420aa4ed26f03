// SPDX-License-Identifier: MIT
/* Tensors: those that a region's descriptors describe, and views. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/export.h"
#include "base/refcount.h"
#include "format/copy.h"
#include "format/desc-list.h"
#include "format/layout.h"
#include "format/strides.h"
#include "region/create.h"
#include "region/descs.h"
#include "region/mappings.h"
#include "region/object.h"
#include "tensor/tensor.h"

struct tshare_tensor {
	atomic_uint refs;
	struct tshare_region *region;
	const struct tshare_desc *desc; /* in the region's list, or a view's own behind @strides */
	bool readonly;
	struct tensor_owner *owner;
	int64_t *strides; /* in @shape, behind the shape */
	int64_t shape[];
};

/* With @own the tensor keeps a copy of its descriptor. */
static int tensor_new(struct tshare_region *region, const struct tshare_desc *desc, bool own,
		      struct tshare_tensor **tensor)
{
	size_t dims = 2 * (size_t)desc->ndim * sizeof(int64_t); /* shape, then strides */
	struct tshare_tensor *new;

	new = malloc(sizeof(*new) + dims + (own ? desc->size : 0));
	if (!new)
		return fail(-ENOMEM, "tensor: out of memory");
	atomic_init(&new->refs, 1);
	new->region = tshare_region_ref(region);
	new->readonly = region->readonly;
	new->owner = NULL;
	new->strides = new->shape + desc->ndim;
	memcpy(new->shape, tshare_desc_shape(desc), dims);
	new->desc = own ? memcpy(new->strides + desc->ndim, desc, desc->size) : desc;
	*tensor = new;
	return 0;
}

static int listed_tensor(struct tshare_region *region, size_t index, struct tshare_tensor **tensor)
{
	struct desc_list *list;
	int err;

	err = region_descs(region, &list);
	return err ? err : tensor_new(region, desc_list_get(list, index), false, tensor);
}

static int check_index(const struct tshare_region *region, size_t index)
{
	size_t count = region->handle.desc_count;

	if (index >= count)
		return fail(-ENOENT, "index: %zu of %zu tensors", index, count);
	return 0;
}

TSHARE_EXPORT
int tshare_region_get_tensor(struct tshare_region *region, size_t index,
			     struct tshare_tensor **tensor)
{
	int err = check_index(region, index);

	return err ? err : listed_tensor(region, index, tensor);
}

TSHARE_EXPORT
int tshare_region_get_tensor_name(struct tshare_region *region, size_t index, const char **name)
{
	struct desc_list *list;
	int err;

	err = check_index(region, index);
	if (!err)
		err = region_descs(region, &list);
	if (!err)
		*name = tshare_desc_name(desc_list_get(list, index));
	return err;
}

TSHARE_EXPORT
int tshare_region_find_tensor(struct tshare_region *region, const char *name,
			      struct tshare_tensor **tensor)
{
	size_t count = region->handle.desc_count, place;
	struct desc_list *list;
	int err = -ENOENT;

	if (!name)
		return fail(-EINVAL, "name: is NULL");
	if (count) {
		err = region_descs(region, &list);
		if (err)
			return err;
		err = desc_list_find(list, name, &place);
	}
	if (err == -ENOENT)
		return fail(err, "name: no tensor '%s' among %zu", name, count);
	return err ? err : tensor_new(region, desc_list_get(list, place), false, tensor);
}

TSHARE_EXPORT
int tshare_tensor_create(struct tshare_ctx *ctx, const char *name, struct tshare_dtype dtype,
			 int32_t ndim, const int64_t *shape, const struct tshare_options *options,
			 struct tshare_tensor **tensor)
{
	struct tshare_spec spec = {
		.size = sizeof(spec),
		.dtype = dtype,
		.ndim = ndim,
		.shape = shape,
	};
	struct tshare_region *region;
	int err;

	err = tshare_region_create(ctx, name, 0, &spec, 1, options, &region);
	/* The spec's members are arguments here. */
	if (err)
		return fail_without(err, "specs[0].");
	err = listed_tensor(region, 0, tensor);
	if (err && name)
		tshare_region_unlink(region);
	tshare_region_unref(region);
	return err;
}

TSHARE_EXPORT
int tshare_tensor_open(struct tshare_ctx *ctx, const char *name,
		       const struct tshare_open_options *options, struct tshare_tensor **tensor)
{
	struct tshare_region *region;
	int err;

	err = tshare_region_open(ctx, name, options, &region);
	if (err)
		return err;
	if (region->handle.desc_count == 1)
		err = listed_tensor(region, 0, tensor);
	else
		err = fail(-EINVAL, "name: '%s' holds %zu tensors, not one", name,
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
	if (tensor->owner)
		tensor->owner->unref(tensor->owner);
	tshare_region_unref(tensor->region);
	free(tensor);
	return NULL;
}

void tensor_set_owner(struct tshare_tensor *tensor, struct tensor_owner *owner)
{
	owner->ref(owner);
	tensor->owner = owner;
}

struct tensor_owner *tensor_get_owner(const struct tshare_tensor *tensor)
{
	return tensor->owner;
}

void tensor_share_owner(struct tshare_tensor *tensor, const struct tshare_tensor *of)
{
	if (of->owner)
		tensor_set_owner(tensor, of->owner);
}

TSHARE_EXPORT
struct tshare_region *tshare_tensor_get_region(const struct tshare_tensor *tensor)
{
	return tensor->region;
}

TSHARE_EXPORT
const char *tshare_tensor_get_name(const struct tshare_tensor *tensor)
{
	return tshare_desc_name(tensor->desc);
}

TSHARE_EXPORT
void *tshare_tensor_get_data(const struct tshare_tensor *tensor)
{
	/* A device's memory has no address on the host. */
	return region_is_on_device(tensor->region) ?
		       NULL :
		       (char *)tensor->region->data + tensor->desc->byte_offset;
}

TSHARE_EXPORT
struct tshare_dtype tshare_tensor_get_dtype(const struct tshare_tensor *tensor)
{
	const struct tshare_desc *desc = tensor->desc;

	return (struct tshare_dtype){ desc->dtype_code, desc->dtype_bits, desc->dtype_lanes };
}

TSHARE_EXPORT
int32_t tshare_tensor_get_ndim(const struct tshare_tensor *tensor)
{
	return tensor->desc->ndim;
}

TSHARE_EXPORT
const int64_t *tshare_tensor_get_shape(const struct tshare_tensor *tensor)
{
	return tensor->shape;
}

TSHARE_EXPORT
const int64_t *tshare_tensor_get_strides(const struct tshare_tensor *tensor)
{
	return tensor->strides;
}

TSHARE_EXPORT
uint64_t tshare_tensor_get_byte_offset(const struct tshare_tensor *tensor)
{
	return tensor->desc->byte_offset;
}

TSHARE_EXPORT
uint64_t tshare_tensor_get_nbytes(const struct tshare_tensor *tensor)
{
	int64_t count;

	/* The elements and their bits were counted when the descriptor was checked. */
	strides_count(tensor->desc->ndim, tensor->shape, &count);
	return bytes_of_bits((uint64_t)count * element_bits(tshare_tensor_get_dtype(tensor)));
}

TSHARE_EXPORT
bool tshare_tensor_is_readonly(const struct tshare_tensor *tensor)
{
	return tensor->readonly;
}

TSHARE_EXPORT
bool tshare_tensor_is_contiguous(const struct tshare_tensor *tensor)
{
	return strides_are_contiguous(tensor->desc->ndim, tensor->shape, tensor->strides);
}

/* Views */

TSHARE_EXPORT
int tshare_region_view(struct tshare_region *region, const struct tshare_spec *spec, uint32_t flags,
		       struct tshare_tensor **tensor)
{
	union desc_record record;
	struct tshare_spec known;
	int err;

	err = spec_read(spec, &known);
	if (err)
		return err;
	if (flags & ~TSHARE_READONLY)
		return fail(-EINVAL, "flags: unknown flag in %#" PRIx32, flags);
	err = layout_view(&known, region->handle.size, &record);
	if (!err)
		err = tensor_new(region, &record.desc, true, tensor);
	if (!err && flags & TSHARE_READONLY)
		(*tensor)->readonly = true;
	return err;
}

TSHARE_EXPORT
int tshare_tensor_wrap(const void *data, const struct tshare_spec *spec, uint32_t flags,
		       struct tshare_tensor **tensor)
{
	struct tensor_owner *frame = NULL;
	struct tshare_region *region;
	struct tshare_spec placed;
	int err;

	err = spec_read(spec, &placed);
	if (err)
		return err;
	region = mappings_find(data);
	if (!region)
		return fail(-ENOENT, "data: %p is in no region of this process", data);
	if (region->frames.find)
		err = region->frames.find(region, data, &frame);
	placed.byte_offset = (const char *)data - (const char *)region->data;
	if (!placed.byte_offset)
		placed.byte_offset = TSHARE_OFFSET_START;
	if (!err)
		err = tshare_region_view(region, &placed, flags, tensor);
	if (!err)
		(*tensor)->owner = frame;
	else if (frame)
		frame->unref(frame);
	tshare_region_unref(region);
	return err;
}

/* Copies */

/* @strides, or those of a C-contiguous tensor of that shape, in @buffer. */
static const int64_t *or_contiguous(const int64_t *strides, const struct tshare_tensor *tensor,
				    int64_t *buffer)
{
	if (strides)
		return strides;
	/* It overflows only if there are no elements. */
	strides_fill(tensor->desc->ndim, tensor->shape, buffer);
	return buffer;
}

static int fail_packed(void)
{
	return fail(-EINVAL, "strides: packed elements can't be copied one by one");
}

/* Copies between a tensor and memory with strides, or NULL for C-contiguous. */
static int copy(const struct tshare_tensor *tensor, void *to, const int64_t *to_strides,
		const void *from, const int64_t *from_strides)
{
	int64_t to_buffer[TSHARE_NDIM_LIMIT], from_buffer[TSHARE_NDIM_LIMIT];
	const uint32_t bits = element_bits(tshare_tensor_get_dtype(tensor));
	const struct tshare_desc *desc = tensor->desc;

	if (region_is_on_device(tensor->region))
		return fail(-EOPNOTSUPP, "tensor: its memory is on a device");
	to_strides = or_contiguous(to_strides, tensor, to_buffer);
	from_strides = or_contiguous(from_strides, tensor, from_buffer);
	if (bits % 8 == 0)
		copy_elements(to, to_strides, from, from_strides, desc->ndim, tensor->shape,
			      bits / 8);
	else if (!tshare_tensor_get_nbytes(tensor))
		return 0;
	else if (strides_are_contiguous(desc->ndim, tensor->shape, to_strides) &&
		 strides_are_contiguous(desc->ndim, tensor->shape, from_strides))
		memcpy(to, from, tshare_tensor_get_nbytes(tensor));
	else
		return fail_packed();
	return 0;
}

TSHARE_EXPORT
int tshare_tensor_read(const struct tshare_tensor *tensor, void *buffer)
{
	return copy(tensor, buffer, NULL, tshare_tensor_get_data(tensor), tensor->strides);
}

/* Checks the source before the copy is created. */
static int check_source(const struct tshare_spec *spec, const void *data)
{
	int err;

	err = tshare_spec_check(spec, data, NULL, 0);
	if (err)
		return err;
	/* The elements can be counted, as strides_are_contiguous() does. */
	if (element_bits(spec->dtype) % 8 && spec->strides &&
	    !strides_are_contiguous(spec->ndim, spec->shape, spec->strides))
		return fail_packed();
	return 0;
}

TSHARE_EXPORT
int tshare_tensor_write(struct tshare_tensor *tensor, const void *data, const int64_t *strides)
{
	struct tshare_spec source = {
		.size = sizeof(source),
		.dtype = tshare_tensor_get_dtype(tensor),
		.ndim = tensor->desc->ndim,
		.shape = tensor->shape,
		.strides = strides,
	};
	int err;

	if (tensor->readonly)
		return fail(-EACCES, "tensor: is read-only");
	err = check_source(&source, data);
	if (err)
		return err;
	return copy(tensor, tshare_tensor_get_data(tensor), tensor->strides, data, strides);
}

TSHARE_EXPORT
int tshare_tensor_copy(struct tshare_ctx *ctx, const char *name, const void *data,
		       const struct tshare_spec *spec, const struct tshare_options *options,
		       struct tshare_tensor **tensor)
{
	struct tshare_options draft;
	struct tshare_tensor *new;
	struct tshare_spec known;
	bool finish;
	int err;

	err = spec_read(spec, &known);
	if (!err)
		err = check_source(&known, data);
	if (!err)
		err = options_read(options, &draft);
	if (err)
		return err;
	/* A draft, so that no opener sees half a copy. */
	finish = name && !(draft.flags & TSHARE_DRAFT);
	if (finish)
		draft.flags |= TSHARE_DRAFT;
	err = tshare_tensor_create(ctx, name, known.dtype, known.ndim, known.shape, &draft, &new);
	if (err)
		return err;
	err = tshare_tensor_write(new, data, known.strides);
	if (!err && finish)
		err = tshare_region_finish(new->region, 0);
	if (err) {
		if (name)
			tshare_region_unlink(new->region);
		tshare_tensor_unref(new);
		return err;
	}
	*tensor = new;
	return 0;
}
