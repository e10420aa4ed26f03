// SPDX-License-Identifier: MIT
/*
 * NumPy's array interface, version 3, and Numba's for CUDA.
 *
 * An interface holds an address and no owner: a consumer must keep the Tensor, which keeps the
 * memory from then on.
 */
#include "array_interface.h"

#include "args.h"
#include "cuda.h"
#include "dtype.h"
#include "source.h"
#include "source_dlpack.h"
#include "tensor.h"
#include "tshare-dlpack.h"

/* {"shape": ..., "typestr": ..., "data": (address, readonly), "strides": ..., "version": 3} */
static PyObject *build_interface(const struct ts_format *format, const struct tshare_spec *spec,
				 const void *data, bool readonly, bool contiguous)
{
	int64_t bytes[TSHARE_NDIM_LIMIT];
	PyObject *shape, *strides = NULL;
	int32_t i;

	for (i = 0; !contiguous && i < spec->ndim; i++)
		/* Strides of an empty tensor are never followed, and may be anything. */
		if (__builtin_mul_overflow(spec->strides[i], ts_itemsize(format->dtype), &bytes[i]))
			bytes[i] = ts_itemsize(format->dtype);
	shape = ts_int_tuple(spec->shape, spec->ndim);
	if (contiguous) {
		Py_INCREF(Py_None);
		strides = Py_None;
	} else {
		strides = ts_int_tuple(bytes, spec->ndim);
	}
	/* "N" takes the references over, on failure, too. */
	return Py_BuildValue("{sNsss(NN)sNsi}", "shape", shape, "typestr", format->typestr, "data",
			     PyLong_FromVoidPtr((void *)data), PyBool_FromLong(readonly), "strides",
			     strides, "version", 3);
}

static struct tshare_spec own_spec(const struct tshare_tensor *handle)
{
	return (struct tshare_spec){
		.ndim = tshare_tensor_get_ndim(handle),
		.shape = tshare_tensor_get_shape(handle),
		.strides = tshare_tensor_get_strides(handle),
	};
}

/* The interface of the tensor's memory, with the shape of @spec and the type @format. */
static PyObject *interface(PyObject *self, const struct ts_format *format,
			   const struct tshare_spec *spec)
{
	struct ts_tensor *tensor = (struct ts_tensor *)self;
	PyObject *result;

	result = build_interface(format, spec, tshare_tensor_get_data(tensor->handle),
				 tshare_tensor_is_readonly(tensor->handle),
				 tshare_tensor_is_contiguous(tensor->handle));
	if (result)
		tensor->address_given = true;
	return result;
}

/* AttributeError for a type without typestr; returns NULL. */
static PyObject *no_typestr(const char *attribute, struct tshare_dtype dtype)
{
	PyObject *name = ts_dtype_name(dtype);

	if (name) {
		PyErr_Format(PyExc_AttributeError, "%s: the array interface has no type for %U",
			     attribute, name);
		Py_DECREF(name);
	}
	return NULL;
}

PyObject *ts_tensor_array_interface(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_tensor *handle = ts_tensor_handle(self);
	const struct ts_format *format;
	struct tshare_spec spec;

	if (!handle)
		return NULL;
	format = ts_format(tshare_tensor_get_dtype(handle));
	if (!format)
		return no_typestr("__array_interface__", tshare_tensor_get_dtype(handle));
	spec = own_spec(handle);
	return interface(self, format, &spec);
}

/*
 * The stream that made the copy; none for memory in place. 2 means another stream in each thread,
 * so it becomes 1, the legacy one, which waits for every thread's.
 */
static PyObject *stream_to_wait_for(const struct ts_cuda_memory *memory)
{
	uintptr_t stream = (uintptr_t)memory->stream;

	if (!memory->copy)
		Py_RETURN_NONE;
	return PyLong_FromUnsignedLongLong(stream == 2 ? 1 : stream);
}

PyObject *ts_cuda_array_interface(PyObject *self, void *Py_UNUSED(closure))
{
	const struct ts_cuda_memory *memory = &((struct ts_cuda *)self)->memory;
	const struct tshare_tensor *handle = ts_cuda_handle(self);
	const struct ts_format *format = ts_format(tshare_tensor_get_dtype(handle));
	const struct tshare_spec spec = own_spec(handle);
	PyObject *result, *stream;

	if (!format)
		return no_typestr("__cuda_array_interface__", tshare_tensor_get_dtype(handle));
	if (ts_cuda_check(memory) < 0)
		return NULL;
	result = build_interface(format, &spec, ts_cuda_data(handle, memory),
				 ts_cuda_is_readonly(handle, memory),
				 tshare_tensor_is_contiguous(handle));
	stream = stream_to_wait_for(memory);
	if (result && (!stream || PyDict_SetItemString(result, "stream", stream) < 0))
		Py_CLEAR(result);
	Py_XDECREF(stream);
	return result;
}

/*
 * The array interface of a tensor's elements as unsigned integers of their size, or of its bytes if
 * elements are packed: for types that NumPy lacks.
 */
PyObject *ts_raw_interface(PyObject *Py_UNUSED(module), PyObject *tensor)
{
	struct tshare_tensor *handle;
	const struct ts_format *format;
	struct tshare_dtype dtype;
	struct tshare_spec spec;
	Py_ssize_t itemsize;
	int64_t nbytes;

	if (!PyObject_TypeCheck(tensor, ts_tensor_type)) {
		PyErr_Format(PyExc_TypeError, "tensor: must be a tshare.Tensor, not %R",
			     Py_TYPE(tensor));
		return NULL;
	}
	handle = ts_tensor_handle(tensor);
	if (!handle)
		return NULL;
	itemsize = ts_itemsize(tshare_tensor_get_dtype(handle));
	dtype = (struct tshare_dtype){ kDLUInt, itemsize ? 8 * itemsize : 8, 1 };
	format = ts_format(dtype);
	if (!format) {
		PyErr_SetString(PyExc_TypeError,
				"tensor: no unsigned integer has the size of an element");
		return NULL;
	}
	spec = own_spec(handle);
	if (!itemsize) {
		if (!tshare_tensor_is_contiguous(handle)) {
			PyErr_SetString(PyExc_TypeError,
					"tensor: packed elements with strides are not whole bytes");
			return NULL;
		}
		nbytes = tshare_tensor_get_nbytes(handle);
		spec.ndim = 1;
		spec.shape = &nbytes;
	}
	return interface(tensor, format, &spec);
}

/* AttributeError makes hasattr() and NumPy treat the attribute as missing. */
static void become_attribute_error(void)
{
	PyObject *type, *value, *traceback, *text;

	if (!PyErr_ExceptionMatches(PyExc_BufferError) &&
	    !PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError) &&
	    !PyErr_ExceptionMatches(PyExc_RuntimeError))
		return;
	PyErr_Fetch(&type, &value, &traceback);
	text = PyObject_Str(value ? value : type);
	if (text)
		PyErr_Format(PyExc_AttributeError, "__array_interface__: %U", text);
	Py_XDECREF(text);
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(traceback);
}

PyObject *ts_array_interface_of(PyObject *Py_UNUSED(module), PyObject *x)
{
	const struct ts_format *format;
	struct ts_source source;
	PyObject *result;

	if (PyObject_TypeCheck(x, ts_tensor_type))
		return ts_tensor_array_interface(x, NULL);
	if (ts_source_dlpack(x, TS_IN_PLACE, &source) < 0) {
		become_attribute_error();
		return NULL;
	}
	format = ts_format(source.spec.dtype);
	if (!format)
		result = no_typestr("__array_interface__", source.spec.dtype);
	else
		result = build_interface(format, &source.spec, source.data, source.readonly,
					 ts_source_is_contiguous(&source));
	ts_source_close(&source);
	return result;
}

PyObject *ts_tensor_of_numpy(PyObject *self, void *closure)
{
	PyObject *array, *value;

	if (!ts_tensor_handle(self))
		return NULL;
	array = PyObject_CallMethod(self, "numpy", NULL);
	value = array ? PyObject_GetAttrString(array, closure) : NULL;
	Py_XDECREF(array);
	if (!value &&
	    (PyErr_ExceptionMatches(PyExc_ImportError) || PyErr_ExceptionMatches(PyExc_TypeError) ||
	     PyErr_ExceptionMatches(PyExc_ValueError)))
		PyErr_Format(PyExc_AttributeError, "%s: NumPy has no array of the tensor's memory",
			     (const char *)closure);
	return value;
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
