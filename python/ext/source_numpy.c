// SPDX-License-Identifier: MIT
/* Tensors of other libraries by way of NumPy, and the NumPy arrays that are refused. */
#include "source_numpy.h"

#include "args.h"
#include "call.h"
#include "dtype.h"
#include "source.h"
#include "source_buffer.h"

/* Calls tshare._numpy's function of that name, which raises to refuse @x. */
static int ask_numpy(const char *function, PyObject *x)
{
	PyObject *result = ts_call("tshare._numpy", function, x);

	Py_XDECREF(result);
	return result ? 0 : -1;
}

/* Every protocol exports a masked array's data without the mask. */
int ts_source_check_mask(PyObject *x)
{
	static PyObject *masked;
	int found = ts_source_is_of_type(x, &masked, "numpy.ma", "MaskedArray");

	return found > 0 ? ask_numpy("check_mask", x) : found;
}

/*
 * Refuses NumPy's arrays and scalars of types that no tensor has. A date's buffer would be one of
 * bytes, and each protocol would refuse the others in its own way.
 */
int ts_source_check_numpy(PyObject *x)
{
	static PyObject *array, *scalar;
	int found;

	if (ts_source_check_mask(x) < 0)
		return -1;
	found = ts_source_is_of_type(x, &array, "numpy", "ndarray");
	if (!found)
		found = ts_source_is_of_type(x, &scalar, "numpy", "generic");
	return found > 0 ? ask_numpy("check_dtype", x) : found;
}

/* Whether NumPy is installed to make an array of x; false with an error set. */
static bool have_numpy(PyObject *x)
{
	PyObject *module = PyImport_ImportModule("tshare._numpy");

	if (!module && PyErr_ExceptionMatches(PyExc_ImportError))
		PyErr_Format(PyExc_TypeError,
			     "x: %R has no __dlpack__(), buffer or array interface, and "
			     "NumPy, which might make an array of it, is not installed",
			     Py_TYPE(x));
	Py_XDECREF(module);
	return module;
}

PyObject *ts_numpy_cast(PyObject *x, struct tshare_dtype dtype, bool convert)
{
	PyObject *name, *arguments, *array = NULL;

	if (!have_numpy(x))
		return NULL;
	name = ts_dtype_name(dtype);
	arguments = name ? PyTuple_Pack(3, x, name, convert ? Py_True : Py_False) : NULL;
	if (arguments)
		array = ts_call("tshare._numpy", "cast", arguments);
	Py_XDECREF(name);
	Py_XDECREF(arguments);
	return array;
}

/* Opens NumPy's array of x, with the type and shape to use if the array's own don't fit. */
int ts_source_from_numpy(PyObject *x, struct ts_source *source)
{
	PyObject *result, *array, *dtype, *shape;
	int err = -1;

	if (!have_numpy(x))
		return -1;
	result = ts_call("tshare._numpy", "convert", x);
	if (!result)
		return -1;
	if (PyArg_ParseTuple(result, "OOO", &array, &dtype, &shape) &&
	    !ts_source_from_buffer(array, source)) {
		err = 0;
		if (dtype != Py_None)
			err = ts_dtype_arg(dtype, &source->spec.dtype);
		if (!err && shape != Py_None) {
			err = ts_dims_arg(shape, "shape", source->shape, &source->spec.ndim);
			ts_source_set_c_strides(source);
		}
		if (err)
			ts_source_close(source);
	}
	Py_DECREF(result);
	return err;
}
