// SPDX-License-Identifier: MIT
/*
 * Element types: their names in Python's libraries, in the struct module and in NumPy's array
 * interface.
 */
#include "dtype.h"

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

	if (!tshare_dtype_get_name(dtype, name))
		return PyUnicode_FromString(name);
	/* The tensor is from a peer whose library has more types. */
	return PyUnicode_FromFormat("dlpack(%d, %d, %d)", dtype.code, dtype.bits, dtype.lanes);
}

/* NumPy's spellings: "<f4", "f4", "|u1", and names that end in "_". */
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

/*
 * Other names of types. Where libraries disagree, a name without a prefix is NumPy's and Python's:
 * "float" has 64 bits. A name that means two types even there isn't here: "byte", "char", "f16".
 */
static const char *const aliases[][2] = {
	/* NumPy, Python and C */
	{ "bool_", "bool" },
	{ "half", "float16" },
	{ "single", "float32" },
	{ "double", "float64" },
	{ "float", "float64" },
	{ "csingle", "complex64" },
	{ "cdouble", "complex128" },
	{ "complex", "complex128" },
	{ "ubyte", "uint8" },
	{ "short", "int16" },
	{ "ushort", "uint16" },
	{ "intc", "int32" },
	{ "uintc", "uint32" },
	{ "int", "int64" },
	{ "uint", "uint64" },
	{ "intp", "int64" },
	{ "uintp", "uint64" },
	{ "int_", "int64" },
	{ "long", "int64" },
	{ "ulong", "uint64" },
	{ "longlong", "int64" },
	{ "ulonglong", "uint64" },
	/* Common abbreviations */
	{ "bf16", "bfloat16" },
	{ "fp16", "float16" },
	{ "fp32", "float32" },
	{ "fp64", "float64" },
	/* safetensors */
	{ "BOOL", "bool" },
	{ "U8", "uint8" },
	{ "U16", "uint16" },
	{ "U32", "uint32" },
	{ "U64", "uint64" },
	{ "I8", "int8" },
	{ "I16", "int16" },
	{ "I32", "int32" },
	{ "I64", "int64" },
	{ "F16", "float16" },
	{ "BF16", "bfloat16" },
	{ "F32", "float32" },
	{ "F64", "float64" },
	{ "C64", "complex64" },
	{ "F8_E4M3", "float8_e4m3fn" },
	{ "F8_E4M3FNUZ", "float8_e4m3fnuz" },
	{ "F8_E5M2", "float8_e5m2" },
	{ "F8_E5M2FNUZ", "float8_e5m2fnuz" },
	{ "F8_E8M0", "float8_e8m0fnu" },
	{ "F6_E2M3", "float6_e2m3fn" },
	{ "F6_E3M2", "float6_e3m2fn" },
	{ "F4", "float4_e2m1fn" },
};

#define ALIAS_COUNT (sizeof(aliases) / sizeof(aliases[0]))

/* PyTorch's other names, after "torch.". */
static const char *const torch_aliases[][2] = {
	{ "float", "float32" }, { "int", "int32" },	   { "byte", "uint8" },
	{ "char", "int8" },	{ "cfloat", "complex64" }, { "chalf", "complex32" },
};

static int parse_alias(const char *const table[][2], size_t count, const char *name,
		       struct tshare_dtype *dtype)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (!strcmp(name, table[i][0]))
			return tshare_dtype_parse(table[i][1], dtype);
	return -1;
}

/* PyTorch writes the lanes after "_x": float4_e2m1fn_x2. */
static int parse_lanes_apart(const char *name, struct tshare_dtype *dtype)
{
	char buffer[2 * TSHARE_DTYPE_NAME_LEN];
	char *lanes;

	if (strlen(name) >= sizeof(buffer))
		return -1;
	strcpy(buffer, name);
	lanes = strstr(buffer, "_x");
	if (!lanes || !isdigit((unsigned char)lanes[2]))
		return -1;
	memmove(lanes, lanes + 1, strlen(lanes));
	return tshare_dtype_parse(buffer, dtype);
}

/* ONNX and Paddle write FLOAT32, and Polars Float32. */
static int parse_in_capitals(const char *name, struct tshare_dtype *dtype)
{
	char buffer[TSHARE_DTYPE_NAME_LEN];
	size_t i;

	if (strlen(name) >= sizeof(buffer))
		return -1;
	for (i = 0; i <= strlen(name); i++)
		buffer[i] = tolower((unsigned char)name[i]);
	return tshare_dtype_parse(buffer, dtype);
}

static int parse_name(const char *name, struct tshare_dtype *dtype)
{
	static const char *const prefixes[] = { "np.", "numpy.", "jnp.", "ml_dtypes." };
	size_t i;

	/* The prefix that str() of PyTorch's types has. */
	if (!strncmp(name, "torch.", 6)) {
		name += 6;
		if (!parse_alias(torch_aliases, sizeof(torch_aliases) / sizeof(torch_aliases[0]),
				 name, dtype))
			return 0;
	}
	for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i]))) {
			name += strlen(prefixes[i]);
			break;
		}
	if (!tshare_dtype_parse(name, dtype) || !ts_typestr(name, dtype) ||
	    !parse_alias(aliases, ALIAS_COUNT, name, dtype) || !parse_lanes_apart(name, dtype))
		return 0;
	return parse_in_capitals(name, dtype);
}

/* Errors */

static int append(PyObject *list, PyObject *item)
{
	int err = item ? PyList_Append(list, item) : -1;

	Py_XDECREF(item);
	return err;
}

/* The names of the library's types. The library has no list of them, so this tries all codes. */
static PyObject *list_names(void)
{
	static const uint8_t bits[] = { 2, 4, 6, 8, 16, 32, 64, 128 };
	/* DLPack's codes; some are not for numbers. */
	static const int last_code = 32;
	PyObject *names = PyList_New(0);
	char name[TSHARE_DTYPE_NAME_LEN];
	size_t i;
	int code;

	for (code = 0; names && code <= last_code; code++)
		for (i = 0; names && i < sizeof(bits); i++)
			if (!tshare_dtype_get_name((struct tshare_dtype){ code, bits[i], 1 },
						   name) &&
			    append(names, PyUnicode_FromString(name)) < 0)
				Py_CLEAR(names);
	return names;
}

/* ": did you mean float32?", or "." if nothing is like it. */
static PyObject *suggest(PyObject *name, PyObject *names)
{
	PyObject *module = PyImport_ImportModule("difflib"), *known, *close = NULL, *text = NULL;
	PyObject *separator, *joined;
	size_t i;

	known = PySequence_List(names);
	for (i = 0; known && i < ALIAS_COUNT; i++)
		if (append(known, PyUnicode_FromString(aliases[i][0])) < 0)
			Py_CLEAR(known);
	if (module && known)
		close = PyObject_CallMethod(module, "get_close_matches", "OO", name, known);
	if (close && !PyList_Size(close)) {
		text = PyUnicode_FromString(".");
	} else if (close) {
		separator = PyUnicode_FromString(" or ");
		joined = separator ? PyUnicode_Join(separator, close) : NULL;
		text = joined ? PyUnicode_FromFormat(": did you mean %U?", joined) : NULL;
		Py_XDECREF(separator);
		Py_XDECREF(joined);
	}
	Py_XDECREF(module);
	Py_XDECREF(known);
	Py_XDECREF(close);
	return text;
}

/* Raises ValueError with similar names and the list of all names. */
static void raise_unknown(PyObject *obj, PyObject *name)
{
	PyObject *names = list_names(), *like, *separator, *all;

	like = names ? suggest(name, names) : NULL;
	separator = PyUnicode_FromString(", ");
	all = names && separator ? PyUnicode_Join(separator, names) : NULL;
	if (like && all)
		PyErr_Format(PyExc_ValueError,
			     "dtype: %R is not a supported type%U Supported are %U, and the names "
			     "that NumPy, PyTorch, JAX and safetensors have for them",
			     obj, like, all);
	Py_XDECREF(names);
	Py_XDECREF(like);
	Py_XDECREF(separator);
	Py_XDECREF(all);
}

/* Attributes of objects */

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

/* Whether the attributes of a dtype show that its elements are byte-swapped. */
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
 * The name of a type that is not a str. A NumPy dtype has .name, JAX's scalar types have .dtype,
 * PyTorch's types have a str(), and the scalar types of NumPy and ml_dtypes are classes. New
 * reference; NULL without an error set if it is none of these.
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
			PyErr_Format(
				PyExc_ValueError,
				"dtype: unsupported %R (byte-swapped elements are not supported)",
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

int ts_dtype_find(PyObject *obj, struct tshare_dtype *dtype, PyObject **name)
{
	const char *text;

	*name = PyUnicode_Check(obj) ? PyUnicode_FromObject(obj) : type_name(obj);
	if (!*name)
		return PyErr_Occurred() ? -1 : 1;
	text = PyUnicode_AsUTF8AndSize(*name, NULL);
	if (!text) {
		Py_CLEAR(*name);
		return -1;
	}
	return parse_name(text, dtype) ? 1 : 0;
}

int ts_dtype_arg(PyObject *obj, struct tshare_dtype *dtype)
{
	PyObject *name;
	int missing = ts_dtype_find(obj, dtype, &name);

	if (missing > 0 && name)
		raise_unknown(obj, name);
	else if (missing > 0)
		PyErr_Format(PyExc_TypeError,
			     "dtype: must be a name such as 'float32', a type of NumPy, PyTorch, "
			     "JAX or ml_dtypes, or float, int, bool or complex, not %R",
			     obj);
	Py_XDECREF(name);
	return missing ? -1 : 0;
}
