// SPDX-License-Identifier: MIT
/*
 * The object of tshare.Tensor.
 *
 * A Tensor holds a reference to the library's tensor. Buffers count as exports: while there are
 * any, close() fails, as with mmap, and a tensor closed by a with block stays mapped. DLPack
 * exports hold references of their own.
 *
 * A consumer of the array interface has a bare address, and holds the Tensor. So once the interface
 * was read, the memory stays mapped until the Tensor is deallocated, closed or not.
 */
#include "tensor.h"

#include "dtype.h"
#include "gil.h"

PyTypeObject *ts_tensor_type;

PyObject *ts_tensor_wrap(struct tshare_tensor *handle)
{
	struct ts_tensor *self = PyObject_New(struct ts_tensor, ts_tensor_type);

	if (!self) {
		ts_tensor_unref(handle);
		return NULL;
	}
	self->handle = handle;
	self->closed = false;
	self->address_given = false;
	self->exports = 0;
	self->byte_strides = NULL;
	self->shape = NULL;
	self->weakrefs = NULL;
	return (PyObject *)self;
}

struct tshare_tensor *ts_tensor_handle(PyObject *self)
{
	struct ts_tensor *tensor = (struct ts_tensor *)self;

	if (tensor->closed) {
		PyErr_SetString(PyExc_ValueError, "tensor is closed");
		return NULL;
	}
	return tensor->handle;
}

void ts_tensor_release(struct ts_tensor *tensor)
{
	PyThreadState *state;
	struct tshare_tensor *handle = tensor->handle;

	if (!tensor->closed || tensor->address_given || tensor->exports)
		return;
	tensor->handle = NULL;
	state = PyEval_SaveThread();
	tshare_tensor_unref(handle);
	PyEval_RestoreThread(state);
}

PyObject *ts_int_tuple(const int64_t *values, int32_t count)
{
	PyObject *tuple = PyTuple_New(count);
	int32_t i;

	for (i = 0; tuple && i < count; i++) {
		PyObject *item = PyLong_FromLongLong(values[i]);

		if (!item || PyTuple_SetItem(tuple, i, item) < 0)
			Py_CLEAR(tuple);
	}
	return tuple;
}

PyObject *ts_tensor_shape(PyObject *self)
{
	struct ts_tensor *tensor = (struct ts_tensor *)self;

	if (!tensor->shape)
		tensor->shape = ts_int_tuple(tshare_tensor_get_shape(tensor->handle),
					     tshare_tensor_get_ndim(tensor->handle));
	Py_XINCREF(tensor->shape);
	return tensor->shape;
}

const Py_ssize_t *ts_tensor_byte_strides(PyObject *self)
{
	struct ts_tensor *tensor = (struct ts_tensor *)self;
	const int64_t *strides = tshare_tensor_get_strides(tensor->handle);
	int32_t ndim = tshare_tensor_get_ndim(tensor->handle);
	Py_ssize_t itemsize = ts_itemsize(tshare_tensor_get_dtype(tensor->handle));
	int32_t i;

	if (tensor->byte_strides)
		return tensor->byte_strides;
	tensor->byte_strides = PyMem_Malloc((ndim + 1) * sizeof(Py_ssize_t));
	if (!tensor->byte_strides) {
		PyErr_NoMemory();
		return NULL;
	}
	for (i = 0; i < ndim; i++)
		/* Strides of an empty tensor are never followed, and may be anything. */
		if (__builtin_mul_overflow(strides[i], itemsize, &tensor->byte_strides[i]))
			tensor->byte_strides[i] = itemsize;
	return tensor->byte_strides;
}

void ts_tensor_extent(const struct tshare_tensor *handle, int64_t *first, int64_t *end)
{
	struct tshare_dtype dtype = tshare_tensor_get_dtype(handle);
	int64_t bits = (int64_t)dtype.bits * dtype.lanes, below = 0, above = 1, span;
	const int64_t *strides = tshare_tensor_get_strides(handle);
	const int64_t *shape = tshare_tensor_get_shape(handle);
	int32_t i;

	for (i = 0; i < tshare_tensor_get_ndim(handle); i++) {
		span = shape[i] > 1 ? (shape[i] - 1) * strides[i] : 0;
		*(span < 0 ? &below : &above) += span;
	}
	*first = tshare_tensor_get_byte_offset(handle) + (below * bits - 7) / 8;
	*end = tshare_tensor_get_byte_offset(handle) + (above * bits + 7) / 8;
}
