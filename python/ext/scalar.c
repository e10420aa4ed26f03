// SPDX-License-Identifier: MIT
/* Converts one element to a Python number, and back. NumPy converts the types that C lacks. */
#include "scalar.h"

#include <string.h>

#include "call.h"
#include "dtype.h"
#include "errors.h"
#include "tensor.h"
#include "tshare-dlpack.h"

static bool is_native(struct tshare_dtype dtype)
{
	return ts_format(dtype) && !(dtype.code == kDLFloat && dtype.bits == 16);
}

static PyObject *decode(struct tshare_dtype dtype, const unsigned char *element)
{
	union {
		int8_t i8;
		int16_t i16;
		int32_t i32;
		int64_t i64;
		uint8_t u8;
		uint16_t u16;
		uint32_t u32;
		uint64_t u64;
		float f32[2];
		double f64[2];
	} is;
	bool is_signed = dtype.code == kDLInt;

	memcpy(&is, element, dtype.bits / 8);
	switch (dtype.code) {
	case kDLBool:
		return PyBool_FromLong(is.u8);
	case kDLFloat:
		return PyFloat_FromDouble(dtype.bits == 32 ? is.f32[0] : is.f64[0]);
	case kDLComplex:
		return dtype.bits == 64 ? PyComplex_FromDoubles(is.f32[0], is.f32[1]) :
					  PyComplex_FromDoubles(is.f64[0], is.f64[1]);
	}
	switch (dtype.bits) {
	case 8:
		return PyLong_FromLong(is_signed ? is.i8 : is.u8);
	case 16:
		return PyLong_FromLong(is_signed ? is.i16 : is.u16);
	case 32:
		return is_signed ? PyLong_FromLong(is.i32) : PyLong_FromUnsignedLong(is.u32);
	default:
		return is_signed ? PyLong_FromLongLong(is.i64) :
				   PyLong_FromUnsignedLongLong(is.u64);
	}
}

static int64_t count_elements(const struct tshare_tensor *handle)
{
	const int64_t *shape = tshare_tensor_get_shape(handle);
	int64_t count = 1;
	int32_t i;

	/* One of several dimensions may be empty, and the others of any length. */
	for (i = 0; i < tshare_tensor_get_ndim(handle); i++) {
		if (!shape[i])
			return 0;
		count *= shape[i];
	}
	return count;
}

PyObject *ts_tensor_size(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_tensor *handle = ts_tensor_handle(self);

	return handle ? PyLong_FromLongLong(count_elements(handle)) : NULL;
}

/* The only element of a tensor; raises @kind if the tensor has another number of elements. */
static PyObject *item(PyObject *self, PyObject *kind, const char *what)
{
	struct tshare_tensor *handle = ts_tensor_handle(self);
	unsigned char element[TS_NUMBER_MAX];
	struct tshare_dtype dtype;
	int err;

	if (!handle)
		return NULL;
	if (count_elements(handle) != 1) {
		PyErr_Format(kind, "%s of a tensor with %lld elements, not one", what,
			     (long long)count_elements(handle));
		return NULL;
	}
	dtype = tshare_tensor_get_dtype(handle);
	if (!is_native(dtype))
		return ts_call("tshare._numpy", "item", self);
	err = tshare_tensor_read(handle, element);
	return err < 0 ? ts_raise(err, NULL) : decode(dtype, element);
}

PyObject *ts_tensor_item(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return item(self, PyExc_ValueError, "item()");
}

/* Takes over the reference to the element. */
static PyObject *convert(PyObject *element, PyTypeObject *type)
{
	PyObject *number = NULL;

	if (element)
		number = PyObject_CallFunctionObjArgs((PyObject *)type, element, NULL);
	Py_XDECREF(element);
	return number;
}

PyObject *ts_tensor_int(PyObject *self)
{
	return convert(item(self, PyExc_TypeError, "int()"), &PyLong_Type);
}

PyObject *ts_tensor_float(PyObject *self)
{
	return convert(item(self, PyExc_TypeError, "float()"), &PyFloat_Type);
}

PyObject *ts_tensor_complex(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return convert(item(self, PyExc_TypeError, "complex()"), &PyComplex_Type);
}

int ts_tensor_bool(PyObject *self)
{
	struct tshare_tensor *handle = ts_tensor_handle(self);
	PyObject *element;
	int truth;

	if (!handle)
		return -1;
	if (count_elements(handle) != 1) {
		PyErr_Format(PyExc_ValueError,
			     "the truth value of a tensor with %lld elements is ambiguous (use "
			     "t.numpy().any() or t.numpy().all())",
			     (long long)count_elements(handle));
		return -1;
	}
	element = item(self, PyExc_ValueError, "bool()");
	truth = element ? PyObject_IsTrue(element) : -1;
	Py_XDECREF(element);
	return truth;
}

PyObject *ts_tensor_format(PyObject *self, PyObject *spec)
{
	PyObject *element, *text;

	if (!PyUnicode_Check(spec) || !PyUnicode_GetLength(spec))
		return PyObject_Str(self);
	element = item(self, PyExc_TypeError, "format");
	text = element ? PyObject_Format(element, spec) : NULL;
	Py_XDECREF(element);
	return text;
}

/* Numbers */

/* Excludes subclasses of float and complex: NumPy's scalars, which have a type. */
bool ts_is_number(PyObject *x)
{
	return PyLong_Check(x) || PyFloat_CheckExact(x) || PyComplex_CheckExact(x);
}

/* Each type includes the ones before. */
enum { BOOL, INT, FLOAT, COMPLEX };

static int kind_of_number(PyObject *x)
{
	if (PyBool_Check(x))
		return BOOL;
	if (PyLong_Check(x))
		return INT;
	return PyFloat_CheckExact(x) ? FLOAT : COMPLEX;
}

static int kind_of_dtype(struct tshare_dtype dtype)
{
	switch (dtype.code) {
	case kDLBool:
		return BOOL;
	case kDLInt:
	case kDLUInt:
		return INT;
	case kDLComplex:
		return COMPLEX;
	default:
		return FLOAT;
	}
}

static int raise_out_of_range(PyObject *x, struct tshare_dtype dtype)
{
	PyObject *name = ts_dtype_name(dtype);

	if (name)
		PyErr_Format(PyExc_OverflowError, "x: %R is out of range for %U", x, name);
	Py_XDECREF(name);
	return -1;
}

static int encode_int(PyObject *x, struct tshare_dtype dtype, unsigned char *element)
{
	PyObject *number = PyNumber_Long(x);
	int64_t value, high;
	uint64_t wide;
	int overflow;

	if (!number)
		return -1;
	value = PyLong_AsLongLongAndOverflow(number, &overflow);
	wide = value;
	if (overflow > 0 && dtype.code == kDLUInt && dtype.bits == 64) {
		wide = PyLong_AsUnsignedLongLong(number);
		overflow = PyErr_Occurred() != NULL;
		PyErr_Clear();
	} else if (dtype.code == kDLUInt) {
		overflow |= value < 0 || (dtype.bits < 64 && value >> dtype.bits);
	} else {
		high = INT64_MAX >> (64 - dtype.bits);
		overflow |= value < -high - 1 || value > high;
	}
	Py_DECREF(number);
	if (overflow)
		return raise_out_of_range(x, dtype);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	wide <<= 64 - dtype.bits;
#endif
	memcpy(element, &wide, dtype.bits / 8);
	return 0;
}

static int encode_floats(PyObject *x, struct tshare_dtype dtype, unsigned char *element)
{
	bool is_complex = dtype.code == kDLComplex;
	double wide[2] = { is_complex ? PyComplex_RealAsDouble(x) : PyFloat_AsDouble(x), 0 };
	float narrow[2];

	if (wide[0] == -1 && PyErr_Occurred())
		return -1;
	if (is_complex)
		wide[1] = PyComplex_ImagAsDouble(x);
	narrow[0] = wide[0];
	narrow[1] = wide[1];
	if (dtype.bits == (is_complex ? 64 : 32))
		memcpy(element, narrow, dtype.bits / 8);
	else
		memcpy(element, wide, dtype.bits / 8);
	return 0;
}

int ts_encode(PyObject *x, struct tshare_dtype dtype, bool convert,
	      unsigned char element[static TS_NUMBER_MAX])
{
	int truth;

	if (!convert && kind_of_number(x) > kind_of_dtype(dtype)) {
		PyObject *name = ts_dtype_name(dtype);

		if (name)
			PyErr_Format(PyExc_TypeError,
				     "x: %R would be changed to fit %U (t[...] = x converts)", x,
				     name);
		Py_XDECREF(name);
		return -1;
	}
	if (!is_native(dtype))
		return 1;
	switch (kind_of_dtype(dtype)) {
	case BOOL:
		truth = PyObject_IsTrue(x);
		element[0] = truth > 0;
		return truth < 0 ? -1 : 0;
	case INT:
		return encode_int(x, dtype, element);
	default:
		return encode_floats(x, dtype, element);
	}
}
