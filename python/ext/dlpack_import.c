// SPDX-License-Identifier: MIT
/* tshare.from_dlpack(): another library's tensor, copied into a region. */
#include "ext.h"

#include <string.h>

/* What a capsule holds, in either form. */
struct source {
	PyObject *capsule;
	DLManagedTensorVersioned *versioned;
	DLManagedTensor *legacy;
	DLTensor *tensor;
};

/* Takes the capsule away from its destructor and deletes what it holds. */
static int consume(struct source *source)
{
	if (PyCapsule_SetName(source->capsule,
			      source->versioned ? "used_dltensor_versioned" : "used_dltensor") < 0)
		return -1;
	if (source->versioned && source->versioned->deleter)
		source->versioned->deleter(source->versioned);
	else if (source->legacy && source->legacy->deleter)
		source->legacy->deleter(source->legacy);
	return 0;
}

static int look_into(PyObject *capsule, struct source *source)
{
	uint32_t major;

	*source = (struct source){ .capsule = capsule };
	if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
		source->versioned = PyCapsule_GetPointer(capsule, "dltensor_versioned");
		if (source->versioned->version.major != DLPACK_MAJOR_VERSION) {
			/* All that is known of such a thing is how to delete it. */
			major = source->versioned->version.major;
			if (!consume(source))
				PyErr_Format(PyExc_BufferError,
					     "x: its DLPack version is %u, not %d", major,
					     DLPACK_MAJOR_VERSION);
			return -1;
		}
		source->tensor = &source->versioned->dl_tensor;
		if (source->versioned->flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) {
			PyErr_SetString(PyExc_BufferError, "x: its elements are padded to bytes");
			return -1;
		}
		return 0;
	}
	if (PyCapsule_IsValid(capsule, "dltensor")) {
		source->legacy = PyCapsule_GetPointer(capsule, "dltensor");
		source->tensor = &source->legacy->dl_tensor;
		return 0;
	}
	PyErr_SetString(PyExc_BufferError, "x: __dlpack__() gave no unused DLPack capsule");
	return -1;
}

static bool is_contiguous(const DLTensor *tensor)
{
	int64_t expected = 1;
	int32_t i;

	if (!tensor->strides)
		return true;
	for (i = tensor->ndim - 1; i >= 0; i--) {
		if (tensor->shape[i] != 1 && tensor->strides[i] != expected)
			return false;
		expected *= tensor->shape[i];
	}
	return true;
}

static PyObject *copy_in(const DLTensor *from)
{
	PyThreadState *state;
	struct tshare_dtype dtype = { from->dtype.code, from->dtype.bits, from->dtype.lanes };
	struct tshare_ctx *ctx = ts_session();
	struct tshare_tensor *handle;
	bool contiguous = is_contiguous(from);
	const char *data = (const char *)from->data + from->byte_offset;
	int err;

	if (!ctx)
		return NULL;
	if (from->device.device_type != kDLCPU && from->device.device_type != kDLCUDAHost) {
		PyErr_SetString(PyExc_BufferError, "x: is not in memory of the CPU");
		return NULL;
	}
	if (!contiguous && !ts_itemsize(dtype)) {
		PyErr_SetString(PyExc_BufferError, "x: is strided, and its elements are packed");
		return NULL;
	}
	state = PyEval_SaveThread();
	err = tshare_tensor_create(ctx, NULL, dtype, from->ndim, from->shape, NULL, &handle);
	if (!err && contiguous && tshare_tensor_nbytes(handle))
		memcpy(tshare_tensor_data(handle), data, tshare_tensor_nbytes(handle));
	else if (!err && !contiguous)
		ts_copy_elements(tshare_tensor_data(handle), data, from->ndim, from->shape,
				 from->strides, ts_itemsize(dtype));
	PyEval_RestoreThread(state);
	return err < 0 ? ts_raise(err, NULL) : ts_tensor_wrap(handle);
}

/* x.__dlpack__(max_version=..., dl_device=...), or without keywords where they're unknown. */
static PyObject *get_capsule(PyObject *x)
{
	PyObject *method, *args, *kwargs, *capsule = NULL;

	method = PyObject_GetAttrString(x, "__dlpack__");
	if (!method) {
		if (PyErr_ExceptionMatches(PyExc_AttributeError))
			PyErr_Format(PyExc_TypeError, "x: %R has no __dlpack__()", Py_TYPE(x));
		return NULL;
	}
	args = PyTuple_New(0);
	kwargs = Py_BuildValue("{s(ii)s(ii)}", "max_version", DLPACK_MAJOR_VERSION,
			       DLPACK_MINOR_VERSION, "dl_device", kDLCPU, 0);
	if (args && kwargs) {
		capsule = PyObject_Call(method, args, kwargs);
		if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
			PyErr_Clear();
			capsule = PyObject_Call(method, args, NULL);
		}
	}
	Py_XDECREF(args);
	Py_XDECREF(kwargs);
	Py_DECREF(method);
	return capsule;
}

/* Only the CPU can be asked for: None, "cpu" or (kDLCPU, 0). */
static int check_device(PyObject *device)
{
	long type, id;

	if (ts_none(device) ||
	    (PyUnicode_Check(device) && !PyUnicode_CompareWithASCIIString(device, "cpu")))
		return 0;
	if (PyTuple_Check(device) && PyArg_ParseTuple(device, "ll", &type, &id) && type == kDLCPU &&
	    !id)
		return 0;
	if (!PyErr_Occurred())
		PyErr_Format(PyExc_ValueError, "device: %R is not the CPU", device);
	return -1;
}

PyObject *ts_from_dlpack(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
			 PyObject *kwnames)
{
	static const char *const names[] = { "x", "device", "copy" };
	PyObject *given[3], *capsule, *result = NULL;
	struct source source;
	bool copy = false;

	(void)module;
	if (ts_parse("from_dlpack", args, nargs, kwnames, names, 1, 3, given) < 0)
		return NULL;
	if (!given[0]) {
		PyErr_SetString(PyExc_TypeError, "from_dlpack() needs the argument 'x'");
		return NULL;
	}
	if (check_device(given[1]) < 0)
		return NULL;
	if (!ts_none(given[2]) && ts_bool_arg(given[2], &copy) < 0)
		return NULL;

	if (!copy && PyObject_TypeCheck(given[0], ts_tensor_type)) {
		if (!ts_tensor_handle(given[0]))
			return NULL;
		Py_INCREF(given[0]);
		return given[0];
	}
	if (!ts_none(given[2]) && !copy) {
		PyErr_SetString(PyExc_BufferError,
				"copy: a tensor outside of shared memory has to be copied");
		return NULL;
	}

	capsule = get_capsule(given[0]);
	if (!capsule)
		return NULL;
	/* Until it is consumed, the capsule's own destructor answers for what it holds. */
	if (!look_into(capsule, &source)) {
		result = copy_in(source.tensor);
		if (result && consume(&source) < 0)
			Py_CLEAR(result);
	}
	Py_DECREF(capsule);
	return result;
}
