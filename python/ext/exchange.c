// SPDX-License-Identifier: MIT
/*
 * __dlpack_c_exchange_api__ of Tensor and of CudaTensor: DLPack 1.3's table of functions, by which
 * libraries in C pass tensors without a call into Python.
 *
 * Exports made here are recognised when they come back. An export of CPU memory by another library
 * is found by its address, if that is in a region. Addresses on a device can't be looked up.
 * Exports own a reference to the library's tensor and no Python object.
 */
#include "exchange.h"

#include <errno.h>
#include <stdlib.h>

#include "args.h"
#include "cuda.h"
#include "gil.h"
#include "session.h"
#include "tensor.h"
#include "tshare-dlpack.h"

#define CAPSULE_NAME "dlpack_exchange_api"

/* manager_ctx is the library's tensor. */
static void delete_export(DLManagedTensorVersioned *managed)
{
	ts_tensor_unref(managed->manager_ctx);
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

static void fill(DLManagedTensorVersioned *managed, struct tshare_tensor *handle)
{
	*managed = (DLManagedTensorVersioned){
		.version = { DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION },
		.manager_ctx = tshare_tensor_ref(handle),
		.deleter = delete_export,
		.flags = tshare_tensor_is_readonly(handle) ? DLPACK_FLAG_BITMASK_READ_ONLY : 0,
		.dl_tensor = describe(handle),
	};
}

/* Takes a reference to the tensor; NULL if out of memory. Needs no GIL. */
static DLManagedTensorVersioned *new_export(struct tshare_tensor *handle)
{
	DLManagedTensorVersioned *managed = malloc(sizeof(*managed));

	if (managed)
		fill(managed, handle);
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

static void refuse_readonly(void)
{
	PyErr_SetString(PyExc_BufferError,
			"tensor: is read-only, which a DLTensor without flags can't express");
}

static int describe_tensor(void *py_object, DLTensor *out)
{
	struct tshare_tensor *handle = handle_of(py_object);

	if (!handle)
		return -1;
	if (tshare_tensor_is_readonly(handle)) {
		refuse_readonly();
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

/*
 * NULL: no stream on the CPU, and a device's default one. The library has no stream of its own, and
 * makes the default one wait for each copy that is exported.
 */
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

/* CudaTensor */

/* The exported CudaTensor's memory, without a reference to its stream's object. */
struct cuda_export {
	DLManagedTensorVersioned managed;
	struct ts_cuda_memory memory;
};

static int allocate_cuda(DLTensor *Py_UNUSED(prototype), DLManagedTensorVersioned **Py_UNUSED(out),
			 void *error_ctx,
			 void (*set_error)(void *error_ctx, const char *kind, const char *message))
{
	set_error(error_ctx, "BufferError",
		  "device: tshare creates tensors in the CPU's memory alone");
	return -1;
}

static const struct ts_cuda_memory *memory_of(void *py_object)
{
	if (PyObject_TypeCheck((PyObject *)py_object, ts_cuda_type))
		return &((struct ts_cuda *)py_object)->memory;
	PyErr_Format(PyExc_TypeError, "tensor: must be a tshare.CudaTensor, not %R",
		     Py_TYPE(py_object));
	return NULL;
}

static void move_to_device(DLTensor *tensor, const struct tshare_tensor *handle,
			   const struct ts_cuda_memory *memory)
{
	tensor->device = (DLDevice){ kDLCUDA, memory->info.device };
	tensor->data = ts_cuda_data(handle, memory);
}

/* Not delete_export(), as the deleter tells this export from a Tensor's. */
static void delete_cuda_export(DLManagedTensorVersioned *managed)
{
	struct tshare_cuda_copy *copy = ((struct cuda_export *)managed)->memory.copy;

	if (copy)
		ts_cuda_copy_unref(copy);
	delete_export(managed);
}

/* The stream of current_work_stream() waits until the elements are in place. */
static int export_cuda(void *py_object, DLManagedTensorVersioned **out)
{
	const struct ts_cuda_memory *memory = memory_of(py_object);
	struct tshare_tensor *handle;
	struct cuda_export *export;

	if (!memory || ts_cuda_await(memory, TS_STREAM_LEGACY) < 0)
		return -1;
	export = malloc(sizeof(*export));
	if (!export) {
		PyErr_NoMemory();
		return -1;
	}
	handle = ts_cuda_handle(py_object);
	fill(&export->managed, handle);
	move_to_device(&export->managed.dl_tensor, handle, memory);
	if (!ts_cuda_is_readonly(handle, memory))
		export->managed.flags = 0;
	export->managed.deleter = delete_cuda_export;
	export->memory = *memory;
	export->memory.stream = TS_STREAM_LEGACY;
	export->memory.stream_owner = NULL;
	if (memory->copy)
		tshare_cuda_copy_ref(memory->copy);
	*out = &export->managed;
	return 0;
}

static int describe_cuda(void *py_object, DLTensor *out)
{
	const struct ts_cuda_memory *memory = memory_of(py_object);
	struct tshare_tensor *handle;

	if (!memory)
		return -1;
	handle = ts_cuda_handle(py_object);
	if (ts_cuda_is_readonly(handle, memory)) {
		refuse_readonly();
		return -1;
	}
	if (ts_cuda_await(memory, TS_STREAM_LEGACY) < 0)
		return -1;
	*out = describe(handle);
	move_to_device(out, handle, memory);
	return 0;
}

static int import_cuda(DLManagedTensorVersioned *managed, void **out_py_object)
{
	PyObject *tensor;

	if (managed->version.major != DLPACK_MAJOR_VERSION ||
	    managed->deleter != delete_cuda_export) {
		PyErr_SetString(
			PyExc_BufferError,
			"tensor: is not one that tshare has exported (copy it into a tensor "
			"of shared memory)");
		return -1;
	}
	tensor = ts_tensor_wrap(tshare_tensor_ref(managed->manager_ctx));
	*out_py_object = ts_cuda_wrap(tensor, &((struct cuda_export *)managed)->memory);
	if (!*out_py_object)
		return -1;
	managed->deleter(managed);
	return 0;
}

static DLPackExchangeAPI cuda_table = {
	.header = { .version = { DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION } },
	.managed_tensor_allocator = allocate_cuda,
	.managed_tensor_from_py_object_no_sync = export_cuda,
	.managed_tensor_to_py_object_no_sync = import_cuda,
	.dltensor_from_py_object_no_sync = describe_cuda,
	.current_work_stream = current_work_stream,
};

static int add_table(PyTypeObject *type, DLPackExchangeAPI *api)
{
	PyObject *capsule = PyCapsule_New(api, CAPSULE_NAME, NULL);
	int err;

	if (!capsule)
		return -1;
	err = PyObject_SetAttrString((PyObject *)type, "__dlpack_c_exchange_api__", capsule);
	Py_DECREF(capsule);
	return err;
}

int ts_exchange_init(void)
{
	int err = add_table(ts_tensor_type, &table);

	return err ? err : add_table(ts_cuda_type, &cuda_table);
}
