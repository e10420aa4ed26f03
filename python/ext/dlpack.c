// SPDX-License-Identifier: MIT
/*
 * DLPack export.
 *
 * What a capsule holds is pure C, the library's or this file's own copy: its
 * deleter needs neither the GIL nor an interpreter.
 */
#include "ext.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEGACY_NAME    "dltensor"
#define VERSIONED_NAME "dltensor_versioned"

/* A consumer renames the capsule; one with its first name has to be deleted here. */
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

/* Copies */

/* A C-contiguous copy in memory of its own, in either form. */
struct copy {
	union {
		DLManagedTensorVersioned versioned;
		DLManagedTensor legacy;
	};
	void *data;
	int64_t dims[]; /* the shape, then the strides */
};

static void free_copy(struct copy *copy)
{
	free(copy->data);
	free(copy);
}

static void delete_versioned(DLManagedTensorVersioned *managed)
{
	free_copy(managed->manager_ctx);
}

static void delete_legacy(DLManagedTensor *managed)
{
	free_copy(managed->manager_ctx);
}

static struct copy *new_copy(const struct tshare_tensor *handle, DLTensor *tensor)
{
	struct tshare_dtype dtype = tshare_tensor_get_dtype(handle);
	uint64_t nbytes = tshare_tensor_get_nbytes(handle);
	int32_t ndim = tshare_tensor_get_ndim(handle);
	struct copy *copy;
	int64_t step = 1;
	int32_t i;

	copy = calloc(1, sizeof(*copy) + 2 * ndim * sizeof(int64_t));
	if (!copy || posix_memalign(&copy->data, 64, nbytes ? nbytes : 1)) {
		free(copy);
		return NULL;
	}
	memcpy(copy->dims, tshare_tensor_get_shape(handle), ndim * sizeof(int64_t));
	for (i = ndim - 1; i >= 0; i--) {
		copy->dims[ndim + i] = step;
		step *= copy->dims[i];
	}
	tshare_tensor_read(handle, copy->data);

	tensor->data = nbytes ? copy->data : NULL;
	tensor->device = (DLDevice){ kDLCPU, 0 };
	tensor->ndim = ndim;
	tensor->dtype = (DLDataType){ dtype.code, dtype.bits, dtype.lanes };
	tensor->shape = copy->dims;
	tensor->strides = copy->dims + ndim;
	tensor->byte_offset = 0;
	return copy;
}

static PyObject *export_copy(struct tshare_tensor *handle, bool versioned)
{
	PyThreadState *state;
	DLTensor tensor;
	struct copy *copy;

	if (!ts_itemsize(tshare_tensor_get_dtype(handle)) && !tshare_tensor_is_contiguous(handle)) {
		PyErr_SetString(PyExc_BufferError,
				"copy: a strided tensor of packed elements can't be copied");
		return NULL;
	}
	tshare_tensor_ref(handle);
	state = PyEval_SaveThread();
	copy = new_copy(handle, &tensor);
	tshare_tensor_unref(handle);
	PyEval_RestoreThread(state);
	if (!copy)
		return PyErr_NoMemory();

	if (!versioned) {
		copy->legacy = (DLManagedTensor){ tensor, copy, delete_legacy };
		return wrap_legacy(&copy->legacy);
	}
	copy->versioned = (DLManagedTensorVersioned){
		.version = { DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION },
		.manager_ctx = copy,
		.deleter = delete_versioned,
		.flags = DLPACK_FLAG_BITMASK_IS_COPIED,
		.dl_tensor = tensor,
	};
	return wrap_versioned(&copy->versioned);
}

/* __dlpack__ */

/* @second may be None, which some libraries call the CPU's device id: it is 0 then. */
static int parse_pair(PyObject *obj, const char *argument, bool optional, long *first, long *second)
{
	PyObject *last;

	if (!PyTuple_Check(obj) || PyTuple_Size(obj) != 2) {
		PyErr_Format(PyExc_TypeError, "%s: must be a tuple of two ints, not %R", argument,
			     obj);
		return -1;
	}
	*first = PyLong_AsLong(PyTuple_GetItem(obj, 0));
	if (*first == -1 && PyErr_Occurred())
		return -1;
	last = PyTuple_GetItem(obj, 1);
	*second = optional && last == Py_None ? 0 : PyLong_AsLong(last);
	if (*second == -1 && PyErr_Occurred())
		return -1;
	return 0;
}

static PyObject *export(struct tshare_tensor *handle, bool versioned)
{
	DLManagedTensorVersioned *managed;
	DLManagedTensor *legacy;
	int err;

	if (versioned) {
		err = tshare_tensor_to_dlpack(handle, &managed);
		if (!err)
			return wrap_versioned(managed);
	} else {
		err = tshare_tensor_to_dlpack_legacy(handle, &legacy);
		if (!err)
			return wrap_legacy(legacy);
	}
	if (err == -ENOMEM)
		return PyErr_NoMemory();
	if (err == -EACCES)
		PyErr_SetString(PyExc_BufferError,
				"max_version: a read-only tensor needs DLPack (1, 0) or later");
	else
		ts_raise(err, NULL);
	return NULL;
}

PyObject *ts_tensor_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			   PyObject *kwnames)
{
	static const char *const names[] = { "stream", "max_version", "dl_device", "copy" };
	struct tshare_tensor *handle;
	PyObject *given[4];
	long major = 0, minor, type, id;
	bool copy = false;

	if (ts_parse("__dlpack__", args, nargs, kwnames, names, 0, 4, given) < 0)
		return NULL;
	if (!ts_none(given[1]) && parse_pair(given[1], "max_version", false, &major, &minor) < 0)
		return NULL;
	if (!ts_none(given[2])) {
		if (parse_pair(given[2], "dl_device", true, &type, &id) < 0)
			return NULL;
		if (type != kDLCPU || id) {
			PyErr_Format(PyExc_BufferError,
				     "dl_device: (%ld, %ld) is not where the tensor is, (%d, 0)",
				     type, id, kDLCPU);
			return NULL;
		}
	}
	if (!ts_none(given[3]) && ts_bool_arg(given[3], "copy", &copy) < 0)
		return NULL;
	if (!ts_none(given[0])) {
		PyErr_SetString(PyExc_ValueError, "stream: must be None for a tensor on the CPU");
		return NULL;
	}
	handle = ts_tensor_handle(self);
	if (!handle)
		return NULL;
	return copy ? export_copy(handle, major >= 1) : export(handle, major >= 1);
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
