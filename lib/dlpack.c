// SPDX-License-Identifier: MIT
/* Tensors as DLPack structures, with one allocation for each. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "export.h"
#include "tshare-dlpack.h"
#include "tshare.h"

/* Consumers get a shape and strides of their own: the pointers aren't const. */
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
	return 2 * sizeof(int64_t) * tshare_tensor_ndim(tensor);
}

static void fill(DLTensor *dl, int64_t *dims, const struct tshare_tensor *tensor)
{
	struct tshare_dtype dtype = tshare_tensor_dtype(tensor);
	int32_t ndim = tshare_tensor_ndim(tensor);

	memcpy(dims, tshare_tensor_shape(tensor), ndim * sizeof(*dims));
	memcpy(dims + ndim, tshare_tensor_strides(tensor), ndim * sizeof(*dims));
	*dl = (DLTensor){
		.data = tshare_tensor_nbytes(tensor) ? tshare_tensor_data(tensor) : NULL,
		.device = { kDLCPU, 0 },
		.ndim = ndim,
		.dtype = { dtype.code, dtype.bits, dtype.lanes },
		.shape = dims,
		.strides = ndim ? dims + ndim : NULL,
	};
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
		return tshare_fail(-ENOMEM, "tensor: out of memory");
	export->managed = (DLManagedTensorVersioned){
		.version = { DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION },
		.manager_ctx = tshare_tensor_ref(tensor),
		.deleter = delete_export,
		.flags = tshare_tensor_readonly(tensor) ? DLPACK_FLAG_BITMASK_READ_ONLY : 0,
	};
	fill(&export->managed.dl_tensor, export->dims, tensor);
	*managed = &export->managed;
	return 0;
}

TSHARE_EXPORT
int tshare_tensor_to_dlpack_legacy(struct tshare_tensor *tensor, struct DLManagedTensor **managed)
{
	struct legacy_export *export;

	if (tshare_tensor_readonly(tensor))
		return tshare_fail(-EACCES, "tensor: read-only, which legacy DLPack can't say");
	export = malloc(sizeof(*export) + dims_size(tensor));
	if (!export)
		return tshare_fail(-ENOMEM, "tensor: out of memory");
	export->managed = (DLManagedTensor){
		.manager_ctx = tshare_tensor_ref(tensor),
		.deleter = delete_legacy_export,
	};
	fill(&export->managed.dl_tensor, export->dims, tensor);
	*managed = &export->managed;
	return 0;
}
