// SPDX-License-Identifier: MIT
/*
 * tshare.DType: the name of an element type, a str that equals other libraries' types of that name.
 * The hash is the name's: the hashes of other libraries' types have no value in common.
 */
#include "dtype_object.h"

#include "docstrings.h"
#include "dtype.h"
#include "source.h"

static PyTypeObject *dtype_type;

PyObject *ts_dtype_wrap(struct tshare_dtype dtype)
{
	PyObject *name = ts_dtype_name(dtype), *args, *self;
	newfunc make;

	args = name ? PyTuple_Pack(1, name) : NULL;
	make = (newfunc)PyType_GetSlot(&PyUnicode_Type, Py_tp_new);
	self = args ? make(dtype_type, args, NULL) : NULL;
	Py_XDECREF(name);
	Py_XDECREF(args);
	return self;
}

static PyObject *dtype_new(PyTypeObject *Py_UNUSED(type), PyObject *args, PyObject *kwargs)
{
	struct tshare_dtype dtype;
	PyObject *x;

	if (kwargs && PyDict_Size(kwargs)) {
		PyErr_SetString(PyExc_TypeError, "DType() takes no keyword arguments");
		return NULL;
	}
	if (!PyArg_ParseTuple(args, "O:DType", &x) || ts_dtype_arg(x, &dtype) < 0)
		return NULL;
	return ts_dtype_wrap(dtype);
}

/* The type of that name; false for a newer peer's type. */
static bool parse(PyObject *self, struct tshare_dtype *dtype)
{
	const char *name = PyUnicode_AsUTF8AndSize(self, NULL);

	if (!name)
		PyErr_Clear();
	return name && !tshare_dtype_parse(name, dtype);
}

/* Compares with a str as a str does. */
static PyObject *dtype_richcompare(PyObject *self, PyObject *other, int op)
{
	richcmpfunc compare = (richcmpfunc)PyType_GetSlot(&PyUnicode_Type, Py_tp_richcompare);
	struct tshare_dtype ours, theirs;
	PyObject *name;
	bool same;
	int missing;

	if (PyUnicode_Check(other) || (op != Py_EQ && op != Py_NE))
		return compare(self, other, op);
	missing = ts_dtype_find(other, &theirs, &name);
	Py_XDECREF(name);
	if (missing < 0 && !ts_source_is_unsuited())
		return NULL;
	PyErr_Clear();
	/* An unknown object may know how to compare itself with a DType. */
	if (missing) {
		Py_INCREF(Py_NotImplemented);
		return Py_NotImplemented;
	}
	same = parse(self, &ours) && ours.code == theirs.code && ours.bits == theirs.bits &&
	       ours.lanes == theirs.lanes;
	return PyBool_FromLong(same == (op == Py_EQ));
}

static Py_hash_t dtype_hash(PyObject *self)
{
	return ((hashfunc)PyType_GetSlot(&PyUnicode_Type, Py_tp_hash))(self);
}

static PyObject *get_name(PyObject *self, void *Py_UNUSED(closure))
{
	return PyUnicode_FromObject(self);
}

static PyObject *get_itemsize(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_dtype dtype = { 0 };

	parse(self, &dtype);
	return PyLong_FromLong(((uint32_t)dtype.bits * dtype.lanes + 7) / 8);
}

static PyObject *get_byteorder(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_dtype dtype;

	return PyUnicode_FromString(parse(self, &dtype) && dtype.bits <= 8 ? "|" : "=");
}

static PyObject *get_kind(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_dtype dtype;
	const struct ts_format *format = parse(self, &dtype) ? ts_format(dtype) : NULL;

	return PyUnicode_FromStringAndSize(format ? format->typestr + 1 : "V", 1);
}

/* Protocols 0 and 1 would make the object by str.__new__(), which refuses. */
static PyObject *dtype_reduce(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return Py_BuildValue("O(N)", dtype_type, PyUnicode_FromObject(self));
}

static PyMethodDef dtype_methods[] = {
	{ "__reduce__", dtype_reduce, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyGetSetDef dtype_getset[] = {
	{ "name", get_name, NULL, DOC_DType_name, NULL },
	{ "itemsize", get_itemsize, NULL, DOC_DType_itemsize, NULL },
	{ "byteorder", get_byteorder, NULL, DOC_DType_byteorder, NULL },
	{ "kind", get_kind, NULL, DOC_DType_kind, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot dtype_slots[] = {
	{ Py_tp_doc, DOC_DType },
	{ Py_tp_new, dtype_new },
	{ Py_tp_richcompare, dtype_richcompare },
	{ Py_tp_hash, dtype_hash },
	{ Py_tp_methods, dtype_methods },
	{ Py_tp_getset, dtype_getset },
	{ 0, NULL },
};

static PyType_Spec dtype_spec = {
	.name = "tshare.DType",
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = dtype_slots,
};

int ts_dtype_init(PyObject *module)
{
	dtype_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &dtype_spec,
							      (PyObject *)&PyUnicode_Type);
	return dtype_type ? PyModule_AddType(module, dtype_type) : -1;
}
