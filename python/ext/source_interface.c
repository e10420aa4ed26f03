// SPDX-License-Identifier: MIT
/* Tensors of other libraries by NumPy's array interface. */
#include "source_interface.h"

#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "dtype.h"
#include "source.h"

/*
 * @x may have a .dtype that is more exact than the interface's typestr, as NumPy's arrays of
 * ml_dtypes have.
 */
static int interface_dtype(PyObject *x, PyObject *typestr, struct tshare_dtype *dtype)
{
	const char *text =
		typestr && PyUnicode_Check(typestr) ? PyUnicode_AsUTF8AndSize(typestr, NULL) : NULL;
	PyObject *type;
	int err;

	if (!text || strlen(text) < 3) {
		if (!PyErr_Occurred())
			PyErr_SetString(PyExc_BufferError, "x: __array_interface__ has no typestr");
		return -1;
	}
	if (!ts_typestr(text, dtype))
		return 0;
	type = PyObject_GetAttrString(x, "dtype");
	err = type ? ts_dtype_arg(type, dtype) : -1;
	Py_XDECREF(type);
	if (!err && (*text == TS_FOREIGN_ORDER || !ts_itemsize(*dtype) ||
		     ts_itemsize(*dtype) != atoi(text + 2)))
		err = -1;
	if (err && (!PyErr_Occurred() || ts_source_is_unsuited())) {
		PyErr_Clear();
		PyErr_Format(PyExc_BufferError, "x: unsupported typestr '%s' (%s)", text,
			     *text == TS_FOREIGN_ORDER ? "byte-swapped arrays are not supported" :
							 "tensors have no such type");
	}
	return err;
}

static int interface_dims(PyObject *dims, const char *what, int64_t *values, int32_t *count)
{
	Py_ssize_t i, size = PyTuple_Check(dims) ? PyTuple_Size(dims) : -1;

	if (size < 0 || size > TSHARE_NDIM_LIMIT) {
		PyErr_Format(PyExc_BufferError,
			     "x: the %s in __array_interface__ must be a tuple of at most %d ints",
			     what, TSHARE_NDIM_LIMIT);
		return -1;
	}
	for (i = 0; i < size; i++) {
		values[i] = PyLong_AsLongLong(PyTuple_GetItem(dims, i));
		if (values[i] == -1 && PyErr_Occurred())
			return -1;
	}
	*count = size;
	return 0;
}

/* "data" is (address, readonly), an object with a buffer, or None for x itself. */
static int interface_data(PyObject *x, PyObject *data, PyObject *offset, struct ts_source *source)
{
	PyObject *flag;
	long long shift = 0;
	int readonly;

	if (data && PyTuple_Check(data) && PyTuple_Size(data) == 2) {
		flag = PyTuple_GetItem(data, 1);
		source->data = PyLong_AsVoidPtr(PyTuple_GetItem(data, 0));
		readonly = PyErr_Occurred() ? -1 : PyObject_IsTrue(flag);
		source->readonly = readonly > 0;
		return readonly < 0 ? -1 : 0;
	}
	if (PyObject_GetBuffer(data && data != Py_None ? data : x, &source->view, PyBUF_SIMPLE) < 0)
		return -1;
	if (offset)
		shift = PyLong_AsLongLong(offset);
	if (shift == -1 && PyErr_Occurred())
		return -1;
	if (shift < 0 || shift > source->view.len) {
		PyErr_SetString(PyExc_BufferError,
				"x: the offset in __array_interface__ is outside its data");
		return -1;
	}
	source->data = (const char *)source->view.buf + shift;
	source->readonly = source->view.readonly;
	return 0;
}

static int read_interface(PyObject *x, PyObject *interface, struct ts_source *source)
{
	PyObject *shape, *strides;
	int32_t count;

	if (!ts_none(PyDict_GetItemString(interface, "mask"))) {
		PyErr_SetString(PyExc_ValueError,
				"x: masked arrays are not supported (share data and mask)");
		return TS_SOURCE_FINAL;
	}
	shape = PyDict_GetItemString(interface, "shape");
	strides = PyDict_GetItemString(interface, "strides");
	if (interface_dtype(x, PyDict_GetItemString(interface, "typestr"), &source->spec.dtype) < 0)
		return -1;
	if (interface_dims(shape ? shape : Py_None, "shape", source->shape, &source->spec.ndim) < 0)
		return -1;
	if (ts_none(strides)) {
		ts_source_set_c_strides(source);
	} else {
		if (interface_dims(strides, "strides", source->strides, &count) < 0)
			return -1;
		if (count != source->spec.ndim) {
			PyErr_SetString(
				PyExc_BufferError,
				"x: strides and shape in __array_interface__ differ in length");
			return -1;
		}
		if (ts_source_take_byte_strides(source) < 0)
			return -1;
	}
	if (interface_data(x, PyDict_GetItemString(interface, "data"),
			   PyDict_GetItemString(interface, "offset"), source) < 0 ||
	    ts_source_check_extent(source, source->view.buf, source->view.len) < 0)
		return TS_SOURCE_FINAL;
	return 0;
}

int ts_source_from_interface(PyObject *x, struct ts_source *source)
{
	PyObject *interface;
	int err;

	ts_source_start(source);
	interface = PyObject_GetAttrString(x, "__array_interface__");
	if (!interface)
		return -1;
	if (!PyDict_Check(interface)) {
		Py_DECREF(interface);
		PyErr_SetString(PyExc_BufferError, "x: __array_interface__ must be a dict");
		return -1;
	}
	/*
	 * A copy, since asking x for more may run Python code that changes the dict. It is kept,
	 * since it may own the memory.
	 */
	source->keep = PyDict_Copy(interface);
	Py_DECREF(interface);
	if (!source->keep)
		return -1;
	err = read_interface(x, source->keep, source);
	if (err)
		ts_source_close(source);
	return err;
}
