// SPDX-License-Identifier: MIT
/* The library's errors as Python's. */
#include "ext.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

PyObject *ts_text(const char *text)
{
	return PyUnicode_DecodeUTF8(text, strlen(text), "surrogateescape");
}

/*
 * Where the library's text names members of its structures, they are arguments
 * here: "options.flags: TSHARE_DMA32 is not supported" becomes "dma32: is
 * not supported", and "byte_offset: " "offset: ". New reference.
 */
static PyObject *in_words_of_python(const char *text)
{
	static const char options[] = "options.", flag[] = "flags: TSHARE_", place[] = "byte_";
	static const char replace[] = "REPLACE ";
	PyObject *name, *lower, *rest, *result = NULL;
	size_t length;

	if (!strncmp(text, place, strlen(place)))
		return ts_text(text + strlen(place));
	if (strncmp(text, options, strlen(options)))
		return ts_text(text);
	text += strlen(options);
	if (strncmp(text, flag, strlen(flag)))
		return ts_text(text);
	text += strlen(flag);
	length = strcspn(text, " ");
	if (!strncmp(text, replace, strlen(replace)))
		name = PyUnicode_FromString("exist_ok");
	else
		name = PyUnicode_FromStringAndSize(text, length);
	lower = name ? PyObject_CallMethod(name, "lower", NULL) : NULL;
	rest = ts_text(text + length);
	if (lower && rest)
		result = PyUnicode_FromFormat("%U:%U", lower, rest);
	Py_XDECREF(name);
	Py_XDECREF(lower);
	Py_XDECREF(rest);
	return result;
}

/* Appends the limit that was reached to the text. Takes over the reference. */
static PyObject *say_how_many_files(PyObject *text)
{
	PyObject *longer;
	struct rlimit limit;

	if (!text || getrlimit(RLIMIT_NOFILE, &limit))
		return text;
	longer = PyUnicode_FromFormat("%U: all that RLIMIT_NOFILE allows, %llu, are in use", text,
				      (unsigned long long)limit.rlim_cur);
	Py_DECREF(text);
	return longer;
}

/* Takes over the reference to the text; NULL if that couldn't be made. Returns NULL. */
static PyObject *raise_text(int err, PyObject *text, PyObject *filename)
{
	PyObject *error;

	if (err == -EMFILE)
		text = say_how_many_files(text);
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

PyObject *ts_raise(int err, PyObject *filename)
{
	const char *reason = tshare_error_get();

	return raise_text(err, in_words_of_python(*reason ? reason : strerror(-err)), filename);
}

PyObject *ts_raise_of(int err, PyObject *filename, const struct tshare_spec *specs, size_t count)
{
	const char *reason = tshare_error_get();
	PyObject *name, *what, *text = NULL;
	int length = 0;
	size_t i;

	if (sscanf(reason, "specs[%zu].%n", &i, &length) != 1 || !length || i >= count)
		return ts_raise(err, filename);
	what = in_words_of_python(reason + length);
	name = ts_text(specs[i].name);
	if (what && name)
		text = PyUnicode_FromFormat("tensors: %R: %U", name, what);
	Py_XDECREF(what);
	Py_XDECREF(name);
	return raise_text(err, text, filename);
}

void ts_raise_within(const char *format, PyObject *what)
{
	PyObject *type, *value, *traceback, *prefix, *text;

	PyErr_Fetch(&type, &value, &traceback);
	/* Other exceptions may have more than a text, or come from elsewhere. */
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
