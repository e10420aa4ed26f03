// SPDX-License-Identifier: MIT
/*
 * Types of elements: what Python's libraries call them, and what the struct
 * module and NumPy's array interface do.
 */
#include "ext.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define TYPESTR(type) "<" type
#else
#define TYPESTR(type) ">" type
#endif

_Static_assert(sizeof(int) == 4 && sizeof(long) == 8, "int32 is 'i' and int64 is 'l'");

static const struct ts_format formats[] = {
	{ { 1, 8, 1 }, "B", "|u1" },		 /* uint8 */
	{ { 2, 32, 1 }, "f", TYPESTR("f4") },	 /* float32 */
	{ { 2, 64, 1 }, "d", TYPESTR("f8") },	 /* float64 */
	{ { 2, 16, 1 }, "e", TYPESTR("f2") },	 /* float16 */
	{ { 0, 64, 1 }, "l", TYPESTR("i8") },	 /* int64 */
	{ { 0, 32, 1 }, "i", TYPESTR("i4") },	 /* int32 */
	{ { 0, 16, 1 }, "h", TYPESTR("i2") },	 /* int16 */
	{ { 0, 8, 1 }, "b", "|i1" },		 /* int8 */
	{ { 1, 16, 1 }, "H", TYPESTR("u2") },	 /* uint16 */
	{ { 1, 32, 1 }, "I", TYPESTR("u4") },	 /* uint32 */
	{ { 1, 64, 1 }, "L", TYPESTR("u8") },	 /* uint64 */
	{ { 6, 8, 1 }, "?", "|b1" },		 /* bool */
	{ { 5, 64, 1 }, "Zf", TYPESTR("c8") },	 /* complex64 */
	{ { 5, 128, 1 }, "Zd", TYPESTR("c16") }, /* complex128 */
};

#define FORMAT_COUNT (sizeof(formats) / sizeof(formats[0]))

const struct ts_format *ts_format(struct tshare_dtype dtype)
{
	size_t i;

	for (i = 0; i < FORMAT_COUNT; i++)
		if (formats[i].dtype.code == dtype.code && formats[i].dtype.bits == dtype.bits &&
		    formats[i].dtype.lanes == dtype.lanes)
			return &formats[i];
	return NULL;
}

PyObject *ts_dtype_name(struct tshare_dtype dtype)
{
	char name[TSHARE_DTYPE_NAME_LEN];

	if (!tshare_dtype_name(dtype, name))
		return PyUnicode_FromString(name);
	/* From a peer that knows more types than this library. */
	return PyUnicode_FromFormat("dlpack(%d, %d, %d)", dtype.code, dtype.bits, dtype.lanes);
}

/* NumPy's other spellings: "<f4", "f4", "|u1", and names that end in "_". */
int ts_typestr(const char *name, struct tshare_dtype *dtype)
{
	const char *type = name + (*name && strchr("<>=|", *name) != NULL);
	size_t i;

	if (*name == TS_FOREIGN_ORDER && *type && strcmp(type + 1, "1"))
		return -1;
	for (i = 0; *type && i < FORMAT_COUNT; i++)
		if (!strcmp(formats[i].typestr + 1, type)) {
			*dtype = formats[i].dtype;
			return 0;
		}
	return -1;
}

static int parse_name(const char *name, struct tshare_dtype *dtype)
{
	static const char *const aliases[][2] = {
		{ "bool_", "bool" },
		{ "longlong", "int64" },
		{ "ulonglong", "uint64" },
	};
	char buffer[2 * TSHARE_DTYPE_NAME_LEN];
	size_t i;
	char *lanes;

	/* What str() makes of PyTorch's types. */
	if (!strncmp(name, "torch.", 6))
		name += 6;
	if (!tshare_dtype_parse(name, dtype) || !ts_typestr(name, dtype))
		return 0;
	for (i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (!strcmp(name, aliases[i][0]))
			return tshare_dtype_parse(aliases[i][1], dtype);

	/* PyTorch sets the lanes apart: float4_e2m1fn_x2. */
	if (strlen(name) >= sizeof(buffer))
		return -1;
	strcpy(buffer, name);
	lanes = strstr(buffer, "_x");
	if (!lanes || !isdigit((unsigned char)lanes[2]))
		return -1;
	memmove(lanes, lanes + 1, strlen(lanes));
	return tshare_dtype_parse(buffer, dtype);
}

static int get_optional(PyObject *obj, const char *name, PyObject **value)
{
	*value = PyObject_GetAttrString(obj, name);
	if (*value)
		return 0;
	if (!PyErr_ExceptionMatches(PyExc_AttributeError))
		return -1;
	PyErr_Clear();
	return 0;
}

/* Whether an attribute of a dtype says that its elements are in the other byte order. */
static int is_foreign(PyObject *obj)
{
	PyObject *order;
	int result;

	if (get_optional(obj, "byteorder", &order) < 0)
		return -1;
	if (!order)
		return 0;
	result = PyUnicode_Check(order) &&
		 !PyUnicode_CompareWithASCIIString(order, (const char[]){ TS_FOREIGN_ORDER, '\0' });
	Py_DECREF(order);
	return result;
}

/*
 * The name of a type that is not a str already: a NumPy dtype has .name, JAX's
 * scalar types have .dtype, PyTorch's types have a str(), and NumPy's scalar
 * types and those of ml_dtypes are classes. New reference; NULL without an
 * error set if it is none of these.
 */
static PyObject *type_name(PyObject *obj)
{
	PyObject *name, *inner;
	int foreign;

	if (obj == (PyObject *)&PyFloat_Type)
		return PyUnicode_FromString("float64");
	if (obj == (PyObject *)&PyLong_Type)
		return PyUnicode_FromString("int64");
	if (obj == (PyObject *)&PyComplex_Type)
		return PyUnicode_FromString("complex128");

	if (get_optional(obj, "name", &name) < 0)
		return NULL;
	if (name && PyUnicode_Check(name)) {
		foreign = is_foreign(obj);
		if (foreign > 0)
			PyErr_Format(PyExc_ValueError, "dtype: %R is not in native byte order",
				     obj);
		if (foreign)
			Py_CLEAR(name);
		return name;
	}
	Py_XDECREF(name);

	if (get_optional(obj, "dtype", &inner) < 0)
		return NULL;
	if (inner) {
		if (get_optional(inner, "name", &name) < 0) {
			Py_DECREF(inner);
			return NULL;
		}
		Py_DECREF(inner);
		if (name && PyUnicode_Check(name))
			return name;
		Py_XDECREF(name);
	}

	if (PyType_Check(obj))
		return PyType_GetName((PyTypeObject *)obj);

	name = PyType_GetName(Py_TYPE(obj));
	if (!name)
		return NULL;
	foreign = PyUnicode_CompareWithASCIIString(name, "dtype");
	Py_DECREF(name);
	return foreign ? NULL : PyObject_Str(obj);
}

int ts_dtype_arg(PyObject *obj, struct tshare_dtype *dtype)
{
	PyObject *name;
	const char *text;
	int err;

	if (PyUnicode_Check(obj)) {
		Py_INCREF(obj);
		name = obj;
	} else {
		name = type_name(obj);
		if (!name) {
			if (!PyErr_Occurred())
				PyErr_Format(PyExc_TypeError, "dtype: %R is not a type of elements",
					     obj);
			return -1;
		}
	}
	text = PyUnicode_AsUTF8AndSize(name, NULL);
	if (!text) {
		Py_DECREF(name);
		return -1;
	}
	err = parse_name(text, dtype);
	if (err)
		PyErr_Format(PyExc_ValueError, "dtype: %R is not a type that tensors can have",
			     obj);
	Py_DECREF(name);
	return err ? -1 : 0;
}
