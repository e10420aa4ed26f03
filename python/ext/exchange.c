// SPDX-License-Identifier: MIT
/*
 * Tensor.__dlpack_c_exchange_api__: DLPack 1.3's table of functions, by which
 * libraries in C pass tensors without a call into Python.
 *
 * Exports made here are recognised when they come back, and others by their
 * address, if that is in a region. Exports own a reference to the library's
 * tensor and no Python object.
 */
#include "ext.h"

#include <errno.h>
#include <stdlib.h>

#define CAPSULE_NAME "dlpack_exchange_api"

/* manager_ctx is the library's tensor. */
static void delete_export(DLManagedTensorVersioned *managed)
{
	tshare_tensor_unref(managed->manager_ctx);
	free(managed);
}

/* Shape and strides are the tensor's own arrays and must not be written to. */
static DLTensor describe(const struct tshare_tensor *handle)
{
	struct tshare_dtype dtype = tshare_tensor_get_dtype(handle);

	return (DLTensor){
		.data = tshare_tensor_get_nbytes(handle) ? tshare_tensor_get_data(handle) : NULL,
		.device = { kDLCPU, 0 },
		.ndim = tshare_tensor_get_ndim(handle),
		.dtype = { dtype.code, dtype.bits, dtype.lanes },
		.shape = (int64_t *)tshare_tensor_get_shape(handle),
		.strides = (int64_t *)tshare_tensor_get_strides(handle),
	};
}

/* Takes a reference of its own; NULL if out of memory. Needs no GIL. */
static DLManagedTensorVersioned *new_export(struct tshare_tensor *handle)
{
	DLManagedTensorVersioned *managed = malloc(sizeof(*managed));

	if (managed)
		*managed = (DLManagedTensorVersioned){
			.version = { DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION },
			.manager_ctx = tshare_tensor_ref(handle),
			.deleter = delete_export,
			.flags = tshare_tensor_is_readonly(handle) ? DLPACK_FLAG_BITMASK_READ_ONLY :
								     0,
			.dl_tensor = describe(handle),
		};
	return managed;
}

/* Callers may or may not hold the GIL; only the session needs it. */
static int allocate(DLTensor *prototype, DLManagedTensorVersioned **out, void *error_ctx,
		    void (*set_error)(void *error_ctx, const char *kind, const char *message))
{
	struct tshare_dtype dtype = { prototype->dtype.code, prototype->dtype.bits,
				      prototype->dtype.lanes };
	struct tshare_tensor *handle;
	struct tshare_ctx *ctx;
	PyGILState_STATE state;
	int err;

	if (prototype->device.device_type != kDLCPU) {
		set_error(error_ctx, "BufferError", "device: not the CPU");
		return -1;
	}
	state = PyGILState_Ensure();
	ctx = ts_session();
	if (!ctx)
		PyErr_Clear();
	PyGILState_Release(state);
	if (!ctx) {
		set_error(error_ctx, "RuntimeError", "there is no session with a backend");
		return -1;
	}
	err = tshare_tensor_create(ctx, NULL, dtype, prototype->ndim, prototype->shape, NULL,
				   &handle);
	if (err < 0) {
		set_error(error_ctx, err == -ENOMEM ? "MemoryError" : "BufferError",
			  tshare_error_get());
		return -1;
	}
	*out = new_export(handle);
	tshare_tensor_unref(handle);
	if (!*out) {
		set_error(error_ctx, "MemoryError", "out of memory");
		return -1;
	}
	return 0;
}

static struct tshare_tensor *handle_of(void *py_object)
{
	if (!PyObject_TypeCheck((PyObject *)py_object, ts_tensor_type)) {
		PyErr_Format(PyExc_TypeError, "tensor: must be a tshare.Tensor, not %R",
			     Py_TYPE(py_object));
		return NULL;
	}
	return ts_tensor_handle(py_object);
}

static int export_tensor(void *py_object, DLManagedTensorVersioned **out)
{
	struct tshare_tensor *handle = handle_of(py_object);

	if (!handle)
		return -1;
	*out = new_export(handle);
	if (*out)
		return 0;
	PyErr_NoMemory();
	return -1;
}

static int describe_tensor(void *py_object, DLTensor *out)
{
	struct tshare_tensor *handle = handle_of(py_object);

	if (!handle)
		return -1;
	if (tshare_tensor_is_readonly(handle)) {
		PyErr_SetString(
			PyExc_BufferError,
			"tensor: is read-only, which a DLTensor without flags can't express");
		return -1;
	}
	*out = describe(handle);
	return 0;
}

/* The tensor in shared memory that @managed describes, whichever library exported it, or NULL. */
static struct tshare_tensor *find_tensor(const DLManagedTensorVersioned *managed)
{
	struct tshare_tensor *handle;
	struct tshare_spec spec = { .size = sizeof(spec) };
	const void *data;
	uint32_t flags;

	if (managed->version.major == DLPACK_MAJOR_VERSION && managed->deleter == delete_export)
		return tshare_tensor_ref(managed->manager_ctx);
	if (tshare_spec_from_dlpack(managed, &spec, &data, &flags) < 0 ||
	    tshare_tensor_wrap(data, &spec, flags, &handle) < 0)
		return NULL;
	return handle;
}

static int import_tensor(DLManagedTensorVersioned *managed, void **out_py_object)
{
	struct tshare_tensor *handle = find_tensor(managed);
	PyObject *self;

	if (!handle) {
		PyErr_SetString(PyExc_BufferError,
				"tensor: is outside of shared memory and has to be copied (use "
				"tshare.from_dlpack())");
		return -1;
	}
	self = ts_tensor_wrap(handle);
	if (!self)
		return -1;
	if (managed->deleter)
		managed->deleter(managed);
	*out_py_object = self;
	return 0;
}

static int current_work_stream(DLDeviceType Py_UNUSED(device_type), int32_t Py_UNUSED(device_id),
			       void **out)
{
	*out = NULL;
	return 0;
}

static DLPackExchangeAPI table = {
	.header = { .version = { DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION } },
	.managed_tensor_allocator = allocate,
	.managed_tensor_from_py_object_no_sync = export_tensor,
	.managed_tensor_to_py_object_no_sync = import_tensor,
	.dltensor_from_py_object_no_sync = describe_tensor,
	.current_work_stream = current_work_stream,
};

int ts_exchange_init(void)
{
	PyObject *capsule = PyCapsule_New(&table, CAPSULE_NAME, NULL);
	int err;

	if (!capsule)
		return -1;
	err = PyObject_SetAttrString((PyObject *)ts_tensor_type, "__dlpack_c_exchange_api__",
				     capsule);
	Py_DECREF(capsule);
	return err;
}
