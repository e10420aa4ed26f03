// SPDX-License-Identifier: MIT
/* The library's errors as Python's. */
#include "ext.h"

#include <errno.h>
#include <string.h>

PyObject *ts_text(const char *text)
{
	return PyUnicode_DecodeUTF8(text, strlen(text), "surrogateescape");
}

PyObject *ts_raise(int err, PyObject *filename)
{
	const char *reason = tshare_last_error();
	PyObject *text, *error;

	text = ts_text(*reason ? reason : strerror(-err));
	if (!text)
		return NULL;

	switch (-err) {
	case EINVAL:
	case ENAMETOOLONG:
	case ERANGE:
		PyErr_SetObject(PyExc_ValueError, text);
		break;
	default:
		/* OSError picks its subclass by errno: FileNotFoundError and so on. */
		error = PyObject_CallFunction(PyExc_OSError, filename ? "iOO" : "iO", -err, text,
					      filename);
		if (error) {
			PyErr_SetObject((PyObject *)Py_TYPE(error), error);
			Py_DECREF(error);
		}
	}
	Py_DECREF(text);
	return NULL;
}

void ts_raise_within(const char *format, PyObject *what)
{
	PyObject *type, *value, *traceback, *prefix, *text;

	PyErr_Fetch(&type, &value, &traceback);
	/* Others may carry more than a text, or be none of this call's. */
	if (type != PyExc_BufferError && type != PyExc_TypeError && type != PyExc_ValueError) {
		PyErr_Restore(type, value, traceback);
		return;
	}
	prefix = PyUnicode_FromFormat(format, what);
	text = prefix ? PyObject_Str(value ? value : type) : NULL;
	if (text)
		PyErr_Format(type, "%U%U", prefix, text);
	Py_XDECREF(prefix);
	Py_XDECREF(text);
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(traceback);
}
