// SPDX-License-Identifier: MIT
#include "mapping.h"

#include "call.h"

PyObject *ts_mapping_keys(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return ts_call("collections.abc", "KeysView", self);
}

PyObject *ts_mapping_values(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return ts_call("collections.abc", "ValuesView", self);
}

PyObject *ts_mapping_items(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return ts_call("collections.abc", "ItemsView", self);
}

PyObject *ts_raise_key(PyObject *key)
{
	/* In a tuple: an exception would take a key that is a tuple for its arguments. */
	PyObject *arguments = PyTuple_Pack(1, key);

	if (arguments)
		PyErr_SetObject(PyExc_KeyError, arguments);
	Py_XDECREF(arguments);
	return NULL;
}
