// SPDX-License-Identifier: MIT
/*
 * DLPack export.
 *
 * A capsule holds only C objects: its deleter needs neither the GIL nor an interpreter.
 */
#include "dlpack.h"

#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "dtype.h"
#include "errors.h"
#include "gil.h"
#include "tensor.h"

#define LEGACY_NAME    "dltensor"
#define VERSIONED_NAME "dltensor_versioned"

/* A consumer renames the capsule. A capsule with its first name has no consumer to delete it. */
static void destroy_versioned(PyObject *capsule)
{
	PyObject *type, *value, *traceback;
	DLManagedTensorVersioned *managed;

	if (!PyCapsule_IsValid(capsule, VERSIONED_NAME))
		return;
	PyErr_Fetch(&type, &value, &traceback);
	managed = PyCapsule_GetPointer(capsule, VERSIONED_NAME);
	if (managed->deleter)
		managed->deleter(managed);
	PyErr_Restore(type, value, traceback);
}

static void destroy_legacy(PyObject *capsule)
{
	PyObject *type, *value, *traceback;
	DLManagedTensor *managed;

	if (!PyCapsule_IsValid(capsule, LEGACY_NAME))
		return;
	PyErr_Fetch(&type, &value, &traceback);
	managed = PyCapsule_GetPointer(capsule, LEGACY_NAME);
	if (managed->deleter)
		managed->deleter(managed);
	PyErr_Restore(type, value, traceback);
}

static PyObject *wrap_versioned(DLManagedTensorVersioned *managed)
{
	PyObject *capsule = PyCapsule_New(managed, VERSIONED_NAME, destroy_versioned);

	if (!capsule)
		managed->deleter(managed);
	return capsule;
}

static PyObject *wrap_legacy(DLManagedTensor *managed)
{
	PyObject *capsule = PyCapsule_New(managed, LEGACY_NAME, destroy_legacy);

	if (!capsule)
		managed->deleter(managed);
	return capsule;
}

/* Exports */

/* An export in either form of DLPack. */
struct dlpack_export {
	union {
		DLManagedTensorVersioned versioned;
		DLManagedTensor legacy;
	};
	void *copy;			    /* own memory, or NULL */
	struct tshare_tensor *handle;	    /* the tensor that has the memory, or NULL */
	struct tshare_pin *pin;		    /* or NULL */
	struct tshare_cuda_copy *cuda_copy; /* or NULL */
	int64_t dims[];			    /* the shape, then the strides */
};

static void free_export(struct dlpack_export *export)
{
	PyThreadState *state = ts_gil_release();

	tshare_tensor_unref(export->handle);
	tshare_pin_unref(export->pin);
	tshare_cuda_copy_unref(export->cuda_copy);
	ts_gil_restore(state);
	free(export->copy);
	free(export);
}

static void delete_versioned(DLManagedTensorVersioned *managed)
{
	free_export(managed->manager_ctx);
}

static void delete_legacy(DLManagedTensor *managed)
{
	free_export(managed->manager_ctx);
}

/* With the tensor's shape; the caller sets the strides. NULL if out of memory. */
static struct dlpack_export *new_export(const struct tshare_tensor *handle)
{
	int32_t ndim = tshare_tensor_get_ndim(handle);
	struct dlpack_export *export = malloc(sizeof(*export) + 2 * ndim * sizeof(int64_t));

	if (!export)
		return NULL;
	export->copy = NULL;
	export->handle = NULL;
	export->pin = NULL;
	export->cuda_copy = NULL;
	memcpy(export->dims, tshare_tensor_get_shape(handle), ndim * sizeof(int64_t));
	return export;
}

static PyObject *wrap_export(struct dlpack_export *export, const struct tshare_tensor *handle,
			     bool versioned, DLDevice device, void *data, uint64_t flags)
{
	struct tshare_dtype dtype = tshare_tensor_get_dtype(handle);
	int32_t ndim = tshare_tensor_get_ndim(handle);
	DLTensor *tensor = versioned ? &export->versioned.dl_tensor : &export->legacy.dl_tensor;

	tensor->data = tshare_tensor_get_nbytes(handle) ? data : NULL;
	tensor->device = device;
	tensor->ndim = ndim;
	tensor->dtype = (DLDataType){ dtype.code, dtype.bits, dtype.lanes };
	tensor->shape = export->dims;
	tensor->strides = ndim ? export->dims + ndim : NULL;
	tensor->byte_offset = 0;
	if (!versioned) {
		export->legacy.manager_ctx = export;
		export->legacy.deleter = delete_legacy;
		return wrap_legacy(&export->legacy);
	}
	export->versioned.version = (DLPackVersion){ DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION };
	export->versioned.manager_ctx = export;
	export->versioned.deleter = delete_versioned;
	export->versioned.flags = flags;
	return wrap_versioned(&export->versioned);
}

/* A C-contiguous copy in memory of its own. */
static struct dlpack_export *new_copy(const struct tshare_tensor *handle)
{
	uint64_t nbytes = tshare_tensor_get_nbytes(handle);
	int32_t ndim = tshare_tensor_get_ndim(handle);
	struct dlpack_export *export = new_export(handle);
	int64_t step = 1;
	int32_t i;

	if (!export || posix_memalign(&export->copy, 64, nbytes ? nbytes : 1)) {
		free(export);
		return NULL;
	}
	for (i = ndim - 1; i >= 0; i--) {
		export->dims[ndim + i] = step;
		step *= export->dims[i];
	}
	tshare_tensor_read(handle, export->copy);
	return export;
}

static PyObject *export_copy(struct tshare_tensor *handle, bool versioned)
{
	PyThreadState *state;
	struct dlpack_export *export;
	PyObject *capsule;

	if (!ts_itemsize(tshare_tensor_get_dtype(handle)) && !tshare_tensor_is_contiguous(handle)) {
		PyErr_SetString(PyExc_BufferError,
				"copy: a strided tensor of packed elements can't be copied");
		return NULL;
	}
	tshare_tensor_ref(handle);
	state = PyEval_SaveThread();
	export = new_copy(handle);
	PyEval_RestoreThread(state);
	capsule = export ? wrap_export(export, handle, versioned, (DLDevice){ kDLCPU, 0 },
				       export->copy, DLPACK_FLAG_BITMASK_IS_COPIED) :
			   PyErr_NoMemory();
	ts_tensor_unref(handle);
	return capsule;
}

static void raise_need_of_version(void)
{
	PyErr_SetString(PyExc_BufferError,
			"max_version: a read-only tensor needs DLPack (1, 0) or later");
}

PyObject *ts_dlpack_export_at(struct tshare_tensor *handle, bool versioned,
			      const struct ts_dlpack_memory *memory)
{
	int32_t ndim = tshare_tensor_get_ndim(handle);
	struct dlpack_export *export = NULL;

	if (memory->readonly && !versioned)
		raise_need_of_version();
	else
		export = new_export(handle);
	if (!export) {
		ts_pin_unref(memory->pin);
		ts_cuda_copy_unref(memory->cuda_copy);
		return PyErr_Occurred() ? NULL : PyErr_NoMemory();
	}
	memcpy(export->dims + ndim, tshare_tensor_get_strides(handle), ndim * sizeof(int64_t));
	export->handle = tshare_tensor_ref(handle);
	export->pin = memory->pin;
	export->cuda_copy = memory->cuda_copy;
	return wrap_export(export, handle, versioned, memory->device, memory->data,
			   memory->readonly ? DLPACK_FLAG_BITMASK_READ_ONLY : 0);
}

/* __dlpack__ */

/* @second may be None, as some libraries call the CPU's device id; it is then 0. */
static int parse_pair(PyObject *obj, const char *argument, bool optional, int64_t *first,
		      int64_t *second)
{
	PyObject *last;

	if (!PyTuple_Check(obj) || PyTuple_Size(obj) != 2) {
		PyErr_Format(PyExc_TypeError, "%s: must be a tuple of two ints, not %R", argument,
			     obj);
		return -1;
	}
	if (ts_int_arg(PyTuple_GetItem(obj, 0), argument, INT64_MIN, INT64_MAX, first) < 0)
		return -1;
	last = PyTuple_GetItem(obj, 1);
	*second = 0;
	if (optional && last == Py_None)
		return 0;
	return ts_int_arg(last, argument, INT64_MIN, INT64_MAX, second);
}

int ts_dlpack_parse(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
		    struct ts_dlpack_request *request)
{
	static const char *const names[] = { "stream", "max_version", "dl_device", "copy" };
	int64_t major = 0, minor;
	PyObject *given[4];

	if (ts_parse("__dlpack__", args, nargs, kwnames, names, 0, 4, given) < 0)
		return -1;
	if (!ts_none(given[1]) && parse_pair(given[1], "max_version", false, &major, &minor) < 0)
		return -1;
	request->stream = given[0];
	request->versioned = major >= 1;
	request->device_given = !ts_none(given[2]);
	if (request->device_given &&
	    parse_pair(given[2], "dl_device", true, &request->device_type, &request->device_id) < 0)
		return -1;
	request->copy = false;
	return ts_none(given[3]) ? 0 : ts_bool_arg(given[3], "copy", &request->copy);
}

PyObject *ts_dlpack_refuse_device(const struct ts_dlpack_request *request, DLDevice own,
				  const char *remedy)
{
	PyErr_Format(PyExc_BufferError,
		     "dl_device: (%lld, %lld) is not where the tensor is, (%d, %d)%s",
		     (long long)request->device_type, (long long)request->device_id,
		     (int)own.device_type, (int)own.device_id, remedy);
	return NULL;
}

static PyObject *export_memory(struct tshare_tensor *handle, bool versioned)
{
	const struct ts_dlpack_memory memory = {
		.device = { kDLCPU, 0 },
		.data = tshare_tensor_get_data(handle),
		.readonly = tshare_tensor_is_readonly(handle),
	};

	return ts_dlpack_export_at(handle, versioned, &memory);
}

/*
 * Exports page-locked memory, which the export's pin keeps so. Only consumers that ask for it get
 * this type: PyTorch and CuPy refuse it.
 */
static PyObject *export_pinned(struct tshare_tensor *handle,
			       const struct ts_dlpack_request *request)
{
	struct tshare_region *region = tshare_tensor_get_region(handle);
	struct ts_dlpack_memory memory = {
		.device = { kDLCUDAHost, 0 },
		.data = tshare_tensor_get_data(handle),
		.readonly = tshare_tensor_is_readonly(handle),
	};
	PyThreadState *state;
	PyObject *capsule;
	int err;

	if (request->copy) {
		PyErr_SetString(PyExc_BufferError, "copy: a copy would not be page-locked");
		return NULL;
	}
	if (!tshare_region_is_pinned(region))
		return ts_dlpack_refuse_device(request, (DLDevice){ kDLCPU, 0 },
					       " (pin it first, by t.pin())");
	/* close() may come while the GIL is released; another thread may have unpinned it. */
	tshare_tensor_ref(handle);
	state = PyEval_SaveThread();
	err = tshare_region_pin(region, NULL, &memory.pin);
	PyEval_RestoreThread(state);
	capsule = err < 0 ? ts_raise(err, NULL) :
			    ts_dlpack_export_at(handle, request->versioned, &memory);
	ts_tensor_unref(handle);
	return capsule;
}

PyObject *ts_tensor_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			   PyObject *kwnames)
{
	struct ts_dlpack_request request;
	struct tshare_tensor *handle;

	if (ts_dlpack_parse(args, nargs, kwnames, &request) < 0)
		return NULL;
	if (!ts_none(request.stream)) {
		PyErr_SetString(PyExc_ValueError, "stream: must be None for a tensor on the CPU");
		return NULL;
	}
	handle = ts_tensor_handle(self);
	if (!handle)
		return NULL;
	if (request.device_given && request.device_type == kDLCUDAHost && !request.device_id)
		return export_pinned(handle, &request);
	if (request.device_given && (request.device_type != kDLCPU || request.device_id))
		return ts_dlpack_refuse_device(&request, (DLDevice){ kDLCPU, 0 }, "");
	return request.copy ? export_copy(handle, request.versioned) :
			      export_memory(handle, request.versioned);
}

static PyObject *cpu_device;

PyObject *ts_tensor_dlpack_device(PyObject *self, PyObject *Py_UNUSED(unused))
{
	if (!ts_tensor_handle(self))
		return NULL;
	Py_INCREF(cpu_device);
	return cpu_device;
}

int ts_dlpack_init(PyObject *Py_UNUSED(module))
{
	cpu_device = Py_BuildValue("ii", kDLCPU, 0);
	return cpu_device ? 0 : -1;
}
