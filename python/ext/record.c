// SPDX-License-Identifier: MIT
/* Named tuples: a struct sequence would lack _replace(), _asdict() and so on. */
#include "record.h"

PyObject *ts_record_new(PyObject *type, PyObject **values, int count)
{
	PyObject *arguments = PyTuple_New(count), *self = NULL;
	bool failed = !arguments;
	int i;

	for (i = 0; i < count; i++) {
		failed |= !values[i];
		if (arguments)
			PyTuple_SetItem(arguments, i, values[i]);
		else
			Py_XDECREF(values[i]);
	}
	if (!failed)
		self = PyObject_Call(type, arguments, NULL);
	Py_XDECREF(arguments);
	return self;
}

static int set_doc(PyObject *object, const char *text)
{
	PyObject *doc = PyUnicode_FromString(text);
	int err;

	err = doc ? PyObject_SetAttrString(object, "__doc__", doc) : -1;
	Py_XDECREF(doc);
	return err;
}

static int document(PyObject *type, const char *doc, const struct ts_record_field *fields)
{
	int err;

	err = set_doc(type, doc);
	for (; !err && fields->name; fields++) {
		PyObject *field = PyObject_GetAttrString(type, fields->name);

		err = field ? set_doc(field, fields->doc) : -1;
		Py_XDECREF(field);
	}
	return err;
}

static PyObject *names_of(const struct ts_record_field *fields)
{
	PyObject *names = PyList_New(0);

	for (; names && fields->name; fields++) {
		PyObject *name = PyUnicode_FromString(fields->name);

		if (!name || PyList_Append(names, name) < 0)
			Py_CLEAR(names);
		Py_XDECREF(name);
	}
	return names;
}

PyObject *ts_record_type(const char *name, const char *doc, const struct ts_record_field *fields)
{
	PyObject *collections = PyImport_ImportModule("collections");
	PyObject *make = NULL, *arguments = NULL, *keywords = NULL, *type = NULL;

	if (collections)
		make = PyObject_GetAttrString(collections, "namedtuple");
	arguments = Py_BuildValue("(sN)", name, names_of(fields));
	keywords = Py_BuildValue("{ss}", "module", "tshare");
	if (make && arguments && keywords)
		type = PyObject_Call(make, arguments, keywords);
	if (type && document(type, doc, fields) < 0)
		Py_CLEAR(type);
	Py_XDECREF(keywords);
	Py_XDECREF(arguments);
	Py_XDECREF(make);
	Py_XDECREF(collections);
	return type;
}
