// SPDX-License-Identifier: MIT
/* Functions and types of Python modules, the package's own among them. */
#include "call.h"

PyObject *ts_call(const char *module_name, const char *name, PyObject *x)
{
	PyObject *module = PyImport_ImportModule(module_name), *function, *result = NULL;

	function = module ? PyObject_GetAttrString(module, name) : NULL;
	/* The format "O" would make several arguments of a tuple. */
	if (function)
		result = PyObject_CallFunctionObjArgs(function, x, NULL);
	Py_XDECREF(function);
	Py_XDECREF(module);
	return result;
}

PyObject *ts_call_module(const char *module_name, const char *name, PyObject *args)
{
	PyObject *module = args ? PyImport_ImportModule(module_name) : NULL;
	PyObject *callable = module ? PyObject_GetAttrString(module, name) : NULL;
	PyObject *result = callable ? PyObject_CallObject(callable, args) : NULL;

	Py_XDECREF(callable);
	Py_XDECREF(module);
	Py_XDECREF(args);
	return result;
}

PyObject *ts_imported_type(const char *module_name, const char *name)
{
	PyObject *key, *module, *type = NULL;

	key = PyUnicode_InternFromString(module_name);
	if (!key)
		return NULL;
	module = PyImport_GetModule(key);
	Py_DECREF(key);
	if (!module)
		return NULL;
	type = PyObject_GetAttrString(module, name);
	Py_DECREF(module);
	/* A stand-in for an absent library may raise an ImportError. */
	if (!type && PyErr_ExceptionMatches(PyExc_Exception))
		PyErr_Clear();
	if (type && !PyType_Check(type))
		Py_CLEAR(type);
	return type;
}
