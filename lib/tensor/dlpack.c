// SPDX-License-Identifier: MIT
/* Tensors as DLPack structures, with one allocation for each. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/export.h"
#include "base/sized.h"
#include "region/object.h"
#include "tshare-dlpack.h"
#include "tshare.h"

/* Each export has its own shape and strides: a consumer may write them. */
struct export
{
	DLManagedTensorVersioned managed;
	int64_t dims[];
};

struct legacy_export {
	DLManagedTensor managed;
	int64_t dims[];
};

static size_t dims_size(const struct tshare_tensor *tensor)
{
	return 2 * sizeof(int64_t) * tshare_tensor_get_ndim(tensor);
}

/* A tensor without elements has no address, but its device. */
static void locate(DLTensor *dl, const struct tshare_tensor *tensor)
{
	const struct tshare_region *region = tshare_tensor_get_region(tensor);
	const struct device_memory *on = &region->on_device;
	void *data = tshare_tensor_get_data(tensor);

	if (region_is_on_device(region)) {
		dl->device = (DLDevice){ kDLCUDA, on->device };
		data = (void *)(uintptr_t)(on->address + tshare_tensor_get_byte_offset(tensor));
	}
	dl->data = tshare_tensor_get_nbytes(tensor) ? data : NULL;
}

static void fill(DLTensor *dl, int64_t *dims, const struct tshare_tensor *tensor)
{
	struct tshare_dtype dtype = tshare_tensor_get_dtype(tensor);
	int32_t ndim = tshare_tensor_get_ndim(tensor);

	memcpy(dims, tshare_tensor_get_shape(tensor), ndim * sizeof(*dims));
	memcpy(dims + ndim, tshare_tensor_get_strides(tensor), ndim * sizeof(*dims));
	*dl = (DLTensor){
		.device = { kDLCPU, 0 },
		.ndim = ndim,
		.dtype = { dtype.code, dtype.bits, dtype.lanes },
		.shape = dims,
		.strides = ndim ? dims + ndim : NULL,
	};
	locate(dl, tensor);
}

static void delete_export(DLManagedTensorVersioned *self)
{
	tshare_tensor_unref(self->manager_ctx);
	free(self);
}

static void delete_legacy_export(DLManagedTensor *self)
{
	tshare_tensor_unref(self->manager_ctx);
	free(self);
}

TSHARE_EXPORT
int tshare_tensor_to_dlpack(struct tshare_tensor *tensor, struct DLManagedTensorVersioned **managed)
{
	struct export *export;

	export = malloc(sizeof(*export) + dims_size(tensor));
	if (!export)
		return fail(-ENOMEM, "tensor: out of memory");
	export->managed = (DLManagedTensorVersioned){
		.version = { DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION },
		.manager_ctx = tshare_tensor_ref(tensor),
		.deleter = delete_export,
		.flags = tshare_tensor_is_readonly(tensor) ? DLPACK_FLAG_BITMASK_READ_ONLY : 0,
	};
	fill(&export->managed.dl_tensor, export->dims, tensor);
	*managed = &export->managed;
	return 0;
}

TSHARE_EXPORT
int tshare_tensor_to_dlpack_legacy(struct tshare_tensor *tensor, struct DLManagedTensor **managed)
{
	struct legacy_export *export;

	if (tshare_tensor_is_readonly(tensor))
		return fail(-EACCES, "tensor: read-only is unsupported by legacy DLPack");
	export = malloc(sizeof(*export) + dims_size(tensor));
	if (!export)
		return fail(-ENOMEM, "tensor: out of memory");
	export->managed = (DLManagedTensor){
		.manager_ctx = tshare_tensor_ref(tensor),
		.deleter = delete_legacy_export,
	};
	fill(&export->managed.dl_tensor, export->dims, tensor);
	*managed = &export->managed;
	return 0;
}

/* Import */

/* The callers check the flags and the version, which only one form has. */
static int describe(const DLTensor *dl, struct tshare_spec *spec, const void **data)
{
	const struct tshare_spec described = {
		.size = sizeof(described),
		.dtype = { dl->dtype.code, dl->dtype.bits, dl->dtype.lanes },
		.ndim = dl->ndim,
		.shape = dl->shape,
		.strides = dl->strides,
	};
	uintptr_t address = (uintptr_t)dl->data;
	int err;

	switch (dl->device.device_type) {
	case kDLCPU:
	case kDLCUDAHost:
	case kDLCUDAManaged:
		break;
	default:
		return fail(-EOPNOTSUPP, "managed: is on device (%d, %d), not in the CPU's memory",
			    dl->device.device_type, dl->device.device_id);
	}
	/* If data is NULL, byte_offset is ignored. */
	if (address && __builtin_add_overflow(address, dl->byte_offset, &address))
		return fail(-ERANGE, "managed: byte_offset: beyond the address space");
	err = sized_check(spec, "spec.", SIZED_UPTO(struct tshare_spec, byte_offset));
	if (!err)
		err = tshare_spec_check(&described, (const void *)address, NULL, 0);
	if (err)
		return err;
	sized_fill(spec, &described, sizeof(described));
	*data = (const void *)address;
	return 0;
}

TSHARE_EXPORT
int tshare_spec_from_dlpack(const struct DLManagedTensorVersioned *managed,
			    struct tshare_spec *spec, const void **data, uint32_t *flags)
{
	int err;

	if (managed->version.major != DLPACK_MAJOR_VERSION)
		return fail(-EPROTO, "managed: DLPack version %u is not supported, only %d",
			    managed->version.major, DLPACK_MAJOR_VERSION);
	if (managed->flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED)
		return fail(-EOPNOTSUPP,
			    "managed: elements padded to whole bytes are not supported");
	err = describe(&managed->dl_tensor, spec, data);
	if (err)
		return err;
	*flags = managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY ? TSHARE_READONLY : 0;
	return 0;
}

TSHARE_EXPORT
int tshare_spec_from_dlpack_legacy(const struct DLManagedTensor *managed, struct tshare_spec *spec,
				   const void **data)
{
	return describe(&managed->dl_tensor, spec, data);
}

/* Wraps a region's memory only if the caller asks for no property of a new region. */
static int wrap_or_copy(struct tshare_ctx *ctx, const char *name, const void *data,
			const struct tshare_spec *spec, uint32_t flags,
			const struct tshare_options *options, struct tshare_tensor **tensor)
{
	if (!name && !options) {
		if (!tshare_tensor_wrap(data, spec, flags, tensor))
			return 0;
		error_clear();
	}
	return tshare_tensor_copy(ctx, name, data, spec, options, tensor);
}

TSHARE_EXPORT
int tshare_tensor_from_dlpack(struct tshare_ctx *ctx, const char *name,
			      const struct DLManagedTensorVersioned *managed,
			      const struct tshare_options *options, struct tshare_tensor **tensor)
{
	struct tshare_spec spec = { .size = sizeof(spec) };
	const void *data;
	uint32_t flags;
	int err;

	err = tshare_spec_from_dlpack(managed, &spec, &data, &flags);
	if (err)
		return err;
	return wrap_or_copy(ctx, name, data, &spec, flags, options, tensor);
}

TSHARE_EXPORT
int tshare_tensor_from_dlpack_legacy(struct tshare_ctx *ctx, const char *name,
				     const struct DLManagedTensor *managed,
				     const struct tshare_options *options,
				     struct tshare_tensor **tensor)
{
	struct tshare_spec spec = { .size = sizeof(spec) };
	const void *data;
	int err;

	err = tshare_spec_from_dlpack_legacy(managed, &spec, &data);
	if (err)
		return err;
	return wrap_or_copy(ctx, name, data, &spec, 0, options, tensor);
}
