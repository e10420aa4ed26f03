// SPDX-License-Identifier: MIT
/*
 * NumPy's array interface, version 3.
 *
 * It tells an address and no more: who reads it must keep the Tensor, which
 * keeps the memory from then on.
 */
#include "ext.h"

/* {"shape": ..., "typestr": ..., "data": (address, readonly), "strides": ..., "version": 3} */
static PyObject *interface(PyObject *self, const char *typestr)
{
	struct ts_tensor *tensor = (struct ts_tensor *)self;
	PyObject *shape, *strides, *result = NULL;

	shape = ts_tensor_shape(self);
	strides = PyObject_GetAttrString(self, "strides");
	if (shape && strides) {
		if (tshare_tensor_is_contiguous(tensor->handle)) {
			Py_DECREF(strides);
			Py_INCREF(Py_None);
			strides = Py_None;
		}
		result = Py_BuildValue("{sOsss(NN)sOsi}", "shape", shape, "typestr", typestr,
				       "data",
				       PyLong_FromVoidPtr(tshare_tensor_data(tensor->handle)),
				       PyBool_FromLong(tshare_tensor_readonly(tensor->handle)),
				       "strides", strides, "version", 3);
	}
	Py_XDECREF(shape);
	Py_XDECREF(strides);
	if (result)
		tensor->pinned = true;
	return result;
}

PyObject *ts_tensor_array_interface(PyObject *self, void *closure)
{
	struct tshare_tensor *handle = ts_tensor_handle(self);
	const struct ts_format *format;
	PyObject *name;

	(void)closure;
	if (!handle)
		return NULL;
	format = ts_format(tshare_tensor_dtype(handle));
	if (format)
		return interface(self, format->typestr);

	name = ts_dtype_name(tshare_tensor_dtype(handle));
	if (name) {
		PyErr_Format(PyExc_AttributeError,
			     "__array_interface__: the array interface has no type for %U", name);
		Py_DECREF(name);
	}
	return NULL;
}

/*
 * The array interface of any tensor of one, two, four or eight whole bytes an
 * element, as unsigned integers; for what NumPy has to be taught.
 */
PyObject *ts_raw_interface(PyObject *module, PyObject *tensor)
{
	struct tshare_tensor *handle;
	const struct ts_format *format;

	(void)module;
	if (!PyObject_TypeCheck(tensor, ts_tensor_type)) {
		PyErr_Format(PyExc_TypeError, "tensor: must be a tshare.Tensor, not %R",
			     Py_TYPE(tensor));
		return NULL;
	}
	handle = ts_tensor_handle(tensor);
	if (!handle)
		return NULL;
	format = ts_format(
		(struct tshare_dtype){ 1, 8 * ts_itemsize(tshare_tensor_dtype(handle)), 1 });
	if (!format) {
		PyErr_SetString(PyExc_TypeError, "no unsigned integer has the elements' size");
		return NULL;
	}
	return interface(tensor, format->typestr);
}

PyObject *ts_tensor_array(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			  PyObject *kwnames)
{
	static const char *const names[] = { "dtype", "copy" };
	PyObject *given[2], *module, *array;

	if (ts_parse("__array__", args, nargs, kwnames, names, 2, 2, given) < 0 ||
	    !ts_tensor_handle(self))
		return NULL;
	module = PyImport_ImportModule("tshare._numpy");
	if (!module)
		return NULL;
	array = PyObject_CallMethod(module, "as_array", "OOO", self, given[0] ? given[0] : Py_None,
				    given[1] ? given[1] : Py_None);
	Py_DECREF(module);
	return array;
}
