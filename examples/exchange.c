// SPDX-License-Identifier: MIT
/*
 * A library in C that takes tensors of any Python library and adds up their
 * elements. It calls the tensor's library through the exchange table of the
 * tensor's type, which DLPack has since 1.3, so it needs no headers but
 * DLPack's. exchange.py calls it.
 *
 *	cc -shared -fPIC exchange.c $(pkg-config --cflags tshare) -o exchange.so
 */
#include <stdbool.h>

#include <tshare-dlpack.h>

enum {
	PYTHON_ERROR = -1, /* a Python exception is set */
	OTHER_VERSION = -2,
	OTHER_DEVICE = -3,
	OTHER_TYPE = -4,
};

int sum_elements(const DLPackExchangeAPI *api, void *object, double *sum);

/* Adds up the elements from @first on, along dimension @dim and those after it. */
static double sum_from(const DLTensor *t, int32_t dim, const char *first)
{
	int64_t stride = 1;
	double sum = 0;

	if (dim == t->ndim)
		return t->dtype.bits == 32 ? *(const float *)first : *(const double *)first;
	/* Without strides the elements lie in C order. */
	if (t->strides)
		stride = t->strides[dim];
	else
		for (int32_t i = dim + 1; i < t->ndim; i++)
			stride *= t->shape[i];
	for (int64_t i = 0; i < t->shape[dim]; i++)
		sum += sum_from(t, dim + 1, first + i * stride * (t->dtype.bits / 8));
	return sum;
}

static int sum_tensor(const DLTensor *t, double *sum)
{
	bool reachable = t->device.device_type == kDLCPU || t->device.device_type == kDLCUDAHost ||
			 t->device.device_type == kDLCUDAManaged;

	if (!reachable)
		return OTHER_DEVICE;
	if (t->dtype.code != kDLFloat || t->dtype.lanes != 1 ||
	    (t->dtype.bits != 32 && t->dtype.bits != 64))
		return OTHER_TYPE;
	*sum = sum_from(t, 0, (const char *)t->data + t->byte_offset);
	return 0;
}

/*
 * @object is a PyObject * of the type that @api is from; the caller holds the
 * GIL.
 */
int sum_elements(const DLPackExchangeAPI *api, void *object, double *sum)
{
	DLManagedTensorVersioned *managed;
	int err;

	/* A table of a later major version may have a link to an earlier one. */
	while (api && api->header.version.major != DLPACK_MAJOR_VERSION)
		api = (const DLPackExchangeAPI *)api->header.prev_api;
	if (!api)
		return OTHER_VERSION;

	/*
	 * An export, which could be kept after this call. Faster, but valid only
	 * during the call, would be dltensor_from_py_object_no_sync(). Not all
	 * tables have it, and it can't express that a tensor is read-only.
	 */
	if (api->managed_tensor_from_py_object_no_sync(object, &managed) < 0)
		return PYTHON_ERROR;
	err = sum_tensor(&managed->dl_tensor, sum);
	if (managed->deleter)
		managed->deleter(managed);
	return err;
}
