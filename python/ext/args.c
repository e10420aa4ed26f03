// SPDX-License-Identifier: MIT
/* Arguments from Python; each error names the argument. */
#include "args.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "errors.h"

int ts_parse(const char *function, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
	     const char *const *names, int positional, int total, PyObject **out)
{
	Py_ssize_t count = kwnames ? PyTuple_Size(kwnames) : 0;
	Py_ssize_t i;
	int j;

	if (nargs > positional) {
		if (positional < total)
			PyErr_Format(PyExc_TypeError,
				     "%s() takes at most %d positional arguments, not %zd (pass "
				     "%s=... by keyword)",
				     function, positional, nargs, names[positional]);
		else
			PyErr_Format(PyExc_TypeError,
				     "%s() takes at most %d positional arguments, not %zd",
				     function, positional, nargs);
		return -1;
	}
	for (j = 0; j < total; j++)
		out[j] = j < nargs ? args[j] : NULL;

	for (i = 0; i < count; i++) {
		PyObject *keyword = PyTuple_GetItem(kwnames, i);

		for (j = 0; j < total; j++)
			if (!PyUnicode_CompareWithASCIIString(keyword, names[j]))
				break;
		if (j == total) {
			PyErr_Format(PyExc_TypeError,
				     "%s() got an unexpected keyword argument '%U'", function,
				     keyword);
			return -1;
		}
		if (out[j]) {
			PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%s'",
				     function, names[j]);
			return -1;
		}
		out[j] = args[nargs + i];
	}
	return 0;
}

int ts_need_arg(PyObject *obj, const char *function, const char *argument)
{
	if (obj)
		return 0;
	PyErr_Format(PyExc_TypeError, "%s() missing required argument '%s'", function, argument);
	return -1;
}

const char *ts_name_arg(PyObject *obj, const char *argument, PyObject **keep)
{
	const char *name;
	Py_ssize_t size;

	*keep = NULL;
	if (!PyUnicode_Check(obj)) {
		PyErr_Format(PyExc_TypeError, "%s: must be a str, not %R", argument, Py_TYPE(obj));
		return NULL;
	}
	name = PyUnicode_AsUTF8AndSize(obj, &size);
	if (!name) {
		/* ts_text() has made surrogates of bytes that aren't UTF-8. */
		PyErr_Clear();
		*keep = PyUnicode_AsEncodedString(obj, "utf-8", "surrogateescape");
		if (!*keep) {
			PyErr_Clear();
			PyErr_Format(PyExc_ValueError,
				     "%s: %R has surrogates, which UTF-8 can't encode", argument,
				     obj);
			return NULL;
		}
		name = PyBytes_AsString(*keep);
		size = PyBytes_Size(*keep);
	}
	if (strlen(name) != (size_t)size) {
		PyErr_Format(PyExc_ValueError, "%s: must not contain a null character", argument);
		Py_CLEAR(*keep);
		return NULL;
	}
	return name;
}

int ts_bool_arg(PyObject *obj, const char *argument, bool *value)
{
	int truth = obj ? PyObject_IsTrue(obj) : 0;

	if (truth < 0) {
		ts_raise_within("%s: ", argument);
		return -1;
	}
	*value = truth;
	return 0;
}

int ts_int_arg(PyObject *obj, const char *argument, int64_t low, int64_t high, int64_t *value)
{
	PyObject *number;
	long long result;
	int overflow;

	if (!PyIndex_Check(obj)) {
		PyErr_Format(PyExc_TypeError, "%s: must be an int, not %R", argument, Py_TYPE(obj));
		return -1;
	}
	number = PyNumber_Index(obj);
	if (!number)
		return -1;
	result = PyLong_AsLongLongAndOverflow(number, &overflow);
	Py_DECREF(number);
	if (result == -1 && PyErr_Occurred())
		return -1;
	if (overflow || result < low || result > high) {
		PyErr_Format(PyExc_ValueError, "%s: must be between %lld and %lld, not %S",
			     argument, (long long)low, (long long)high, obj);
		return -1;
	}
	*value = result;
	return 0;
}

int ts_fd_arg(PyObject *obj, const char *argument)
{
	int64_t fd;

	if (PyLong_Check(obj))
		return ts_int_arg(obj, argument, 0, INT_MAX, &fd) < 0 ? -1 : (int)fd;
	if (!PyObject_HasAttrString(obj, "fileno")) {
		PyErr_Format(PyExc_TypeError, "%s: must be an int or have fileno(), not %R",
			     argument, Py_TYPE(obj));
		return -1;
	}
	return PyObject_AsFileDescriptor(obj);
}

int ts_seconds_arg(PyObject *obj, const char *argument, int64_t *ns)
{
	double seconds = PyFloat_AsDouble(obj);

	if (seconds == -1.0 && PyErr_Occurred()) {
		if (PyErr_ExceptionMatches(PyExc_TypeError))
			PyErr_Format(PyExc_TypeError, "%s: must be a number of seconds, not %R",
				     argument, Py_TYPE(obj));
		return -1;
	}
	/* Negated, so that NaN is refused, too. */
	if (!(seconds >= 0)) {
		PyErr_Format(PyExc_ValueError, "%s: must be 0 seconds or more, not %S", argument,
			     obj);
		return -1;
	}
	*ns = seconds < INT64_MAX / 1e9 ? (int64_t)(seconds * 1e9) : INT64_MAX;
	/* A tiny timeout must not become 0, which doesn't sleep at all. */
	if (!*ns && seconds > 0)
		*ns = 1;
	return 0;
}

int ts_dims_arg(PyObject *obj, const char *argument, int64_t *dims, int32_t *ndim)
{
	PyObject *items;
	Py_ssize_t count, i;
	int err = 0;

	/* An array of ints has __index__() and is a sequence, too. */
	if (PyIndex_Check(obj) && !PySequence_Check(obj)) {
		*ndim = 1;
		return ts_int_arg(obj, argument, INT64_MIN, INT64_MAX, dims);
	}
	if (!PySequence_Check(obj) || PyUnicode_Check(obj) || PyBytes_Check(obj)) {
		PyErr_Format(PyExc_TypeError, "%s: must be an int or a sequence of ints, not %R",
			     argument, Py_TYPE(obj));
		return -1;
	}
	items = PySequence_Tuple(obj);
	if (!items)
		return -1;
	count = PyTuple_Size(items);
	if (count > TSHARE_NDIM_LIMIT) {
		PyErr_Format(PyExc_ValueError, "%s: %zd dimensions, more than %d", argument, count,
			     TSHARE_NDIM_LIMIT);
		err = -1;
	}
	for (i = 0; !err && i < count; i++)
		err = ts_int_arg(PyTuple_GetItem(items, i), argument, INT64_MIN, INT64_MAX,
				 &dims[i]);
	Py_DECREF(items);
	*ndim = count;
	return err;
}

/* ValueError that lists all valid names. */
static void raise_choice(PyObject *obj, const char *argument, const char *const *names,
			 uint32_t count)
{
	PyObject *text, *longer;
	uint32_t i;

	text = PyUnicode_FromFormat("%s: %R is none of '%s'", argument, obj, names[0]);
	for (i = 1; text && i < count; i++) {
		longer = PyUnicode_FromFormat("%U, '%s'", text, names[i]);
		Py_DECREF(text);
		text = longer;
	}
	if (text)
		PyErr_SetObject(PyExc_ValueError, text);
	Py_XDECREF(text);
}

int ts_choice_arg(PyObject *obj, const char *argument, const char *const *names, uint32_t count,
		  uint32_t *value)
{
	uint32_t i;

	if (!PyUnicode_Check(obj)) {
		PyErr_Format(PyExc_TypeError, "%s: must be a str, not %R", argument, Py_TYPE(obj));
		return -1;
	}
	for (i = 0; i < count; i++) {
		if (PyUnicode_CompareWithASCIIString(obj, names[i]))
			continue;
		*value = i;
		return 0;
	}
	raise_choice(obj, argument, names, count);
	return -1;
}

static const char *const lifetime_names[] = {
	[TSHARE_LIFETIME_MAKER] = "maker",
	[TSHARE_LIFETIME_USERS] = "users",
	[TSHARE_LIFETIME_PERSIST] = "persist",
};

PyObject *ts_lifetime_name(uint32_t lifetime)
{
	return PyUnicode_FromString(lifetime_names[lifetime]);
}

static int mode_arg(PyObject *obj, uint32_t *mode)
{
	PyObject *octal;
	int64_t number;

	if (ts_int_arg(obj, "mode", INT64_MIN, INT64_MAX, &number) < 0)
		return -1;
	if (number & ~INT64_C(0666)) {
		octal = PyNumber_ToBase(obj, 8);
		if (octal)
			PyErr_Format(PyExc_ValueError,
				     "mode: must have no bits beyond 0o666, unlike %U", octal);
		Py_XDECREF(octal);
		return -1;
	}
	*mode = number ? number : TSHARE_MODE_NONE;
	return 0;
}

int ts_options_arg(PyObject *const *args, struct tshare_options *options)
{
	static const char *const names[] = { TS_OPTION_NAMES };
	enum { MODE, LIFETIME, DRAFT, EXIST_OK, NODE, DMA32, CONTIGUOUS };
	static const uint32_t flags[TS_OPTION_COUNT] = {
		[DRAFT] = TSHARE_DRAFT,
		[EXIST_OK] = TSHARE_REPLACE,
		[DMA32] = TSHARE_DMA32,
		[CONTIGUOUS] = TSHARE_CONTIGUOUS,
	};
	int64_t number;
	bool set;
	int i;

	if (args[MODE] && mode_arg(args[MODE], &options->mode) < 0)
		return -1;
	if (args[LIFETIME] && ts_choice_arg(args[LIFETIME], names[LIFETIME], lifetime_names,
					    TSHARE_LIFETIME_PERSIST + 1, &options->lifetime) < 0)
		return -1;
	if (!ts_none(args[NODE])) {
		if (ts_int_arg(args[NODE], "node", 0, INT32_MAX, &number) < 0)
			return -1;
		options->flags |= TSHARE_NODE;
		options->node = number;
	}
	for (i = 0; i < TS_OPTION_COUNT; i++) {
		if (!flags[i])
			continue;
		if (ts_bool_arg(args[i], names[i], &set) < 0)
			return -1;
		if (set)
			options->flags |= flags[i];
	}
	return 0;
}

/* CUDA devices */

PyObject *ts_device_name(int32_t device)
{
	return PyUnicode_FromFormat("cuda:%d", (int)device);
}

/* The device's number; -1 for a text that ts_device_name() doesn't write. */
static int parse_device_name(PyObject *obj)
{
	const char *text = PyUnicode_AsUTF8AndSize(obj, NULL);
	int device;
	PyObject *name;

	if (!text)
		return -1;
	if (sscanf(text, "cuda:%9d", &device) != 1 || device < 0)
		return -1;
	name = ts_device_name(device);
	if (!name || PyUnicode_Compare(name, obj))
		device = -1;
	Py_XDECREF(name);
	return device;
}

static int fail_device(PyObject *type, PyObject *given)
{
	PyErr_Format(type, "device: must be a number or 'cuda:' and a number, not %R", given);
	return -1;
}

int ts_device_arg(PyObject *obj, struct tshare_cuda_options *options)
{
	int64_t device;

	if (ts_none(obj))
		return 0;
	if (PyUnicode_Check(obj)) {
		device = parse_device_name(obj);
		if (device < 0) {
			PyErr_Clear();
			return fail_device(PyExc_ValueError, obj);
		}
	} else if (PyBool_Check(obj)) {
		/* As an int, True is 1. */
		return fail_device(PyExc_TypeError, obj);
	} else if (!PyIndex_Check(obj)) {
		return fail_device(PyExc_TypeError, (PyObject *)Py_TYPE(obj));
	} else if (ts_int_arg(obj, "device", 0, INT32_MAX, &device) < 0) {
		return -1;
	}
	options->flags |= TSHARE_CUDA_DEVICE;
	options->device = device;
	return 0;
}

/* CUDA streams */

/* Reads __cuda_stream__(): the protocol's version and a handle, 0 for the legacy default stream. */
static int stream_of_object(PyObject *method, int64_t *handle)
{
	PyObject *pair;
	int64_t version;
	int err = -1;

	if (!PyCallable_Check(method)) {
		PyErr_Format(PyExc_TypeError, "stream: __cuda_stream__ must be a method, not %R",
			     Py_TYPE(method));
		return -1;
	}
	pair = PyObject_CallObject(method, NULL);
	if (!pair)
		return -1;
	if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2)
		PyErr_Format(PyExc_TypeError,
			     "stream: __cuda_stream__() must return a tuple of two ints, not %R",
			     pair);
	else if (!ts_int_arg(PyTuple_GetItem(pair, 0), "stream", INT64_MIN, INT64_MAX, &version) &&
		 !ts_int_arg(PyTuple_GetItem(pair, 1), "stream", 0, INT64_MAX, handle))
		err = 0;
	if (!err && version) {
		PyErr_Format(PyExc_ValueError,
			     "stream: __cuda_stream__() has version %lld; tshare knows 0",
			     (long long)version);
		err = -1;
	}
	Py_DECREF(pair);
	return err;
}

static int stream_of_number(PyObject *obj, int64_t *handle)
{
	PyObject *number;
	int overflow;

	if (!PyIndex_Check(obj)) {
		PyErr_Format(PyExc_TypeError,
			     "stream: must be an int or have __cuda_stream__(), not %R",
			     Py_TYPE(obj));
		return -1;
	}
	number = PyNumber_Index(obj);
	if (!number)
		return -1;
	/* -1 in case of overflow. */
	*handle = PyLong_AsLongLongAndOverflow(number, &overflow);
	Py_DECREF(number);
	/* As an int, True is 1. */
	if (*handle > 0 && !PyBool_Check(obj))
		return 0;
	PyErr_Format(PyExc_ValueError,
		     "stream: must be 1 (the legacy default stream), 2 (the thread's) or a "
		     "stream's handle, up to %lld, not %S",
		     (long long)INT64_MAX, obj);
	return -1;
}

int ts_stream_arg(PyObject *obj, struct CUstream_st **stream)
{
	PyObject *method;
	int64_t handle = 0;
	int err = 0;

	if (!ts_none(obj)) {
		method = PyObject_GetAttrString(obj, "__cuda_stream__");
		if (!method && !PyErr_ExceptionMatches(PyExc_AttributeError))
			return -1;
		PyErr_Clear();
		err = method ? stream_of_object(method, &handle) : stream_of_number(obj, &handle);
		Py_XDECREF(method);
	}
	*stream = handle ? (struct CUstream_st *)(uintptr_t)handle : TS_STREAM_LEGACY;
	return err;
}
