// SPDX-License-Identifier: MIT
/* tshare.asarray() and from_dlpack(): other libraries' tensors in shared memory. */
#include "asarray.h"

#include <string.h>

#include "args.h"
#include "errors.h"
#include "gil.h"
#include "session.h"
#include "source.h"
#include "source_dlpack.h"
#include "source_open.h"
#include "tensor.h"
#include "tshare-dlpack.h"

enum copy { COPY_IF_NEEDED, COPY_ALWAYS, COPY_NEVER };

/* Whether open() of that name now leads to this tensor's region, with one tensor in it. */
static bool is_called(struct tshare_tensor *handle, const char *name)
{
	struct tshare_region_info info = { .size = sizeof(info) };

	return !tshare_region_get_info(tshare_tensor_get_region(handle), &info) &&
	       !strcmp(info.name, name) && info.tensor_count == 1;
}

/* A tensor over the source's memory if that is in the region @name, or in any without @name. */
static struct tshare_tensor *wrap(const struct ts_source *source, const char *name)
{
	struct tshare_tensor *handle;

	if (tshare_tensor_wrap(source->data, &source->spec, source->readonly ? TSHARE_READONLY : 0,
			       &handle) < 0)
		return NULL;
	if (!name || is_called(handle, name))
		return handle;
	ts_tensor_unref(handle);
	return NULL;
}

/* A Tensor over the source's memory if that is in a region, else over a copy in a new one. */
static PyObject *take(const struct ts_source *source, PyObject *name_arg,
		      const struct tshare_options *options, enum copy copy)
{
	PyThreadState *state;
	struct tshare_tensor *handle = NULL;
	PyObject *keep = NULL, *self = NULL;
	const char *name = NULL;
	struct tshare_ctx *ctx;
	int err;

	if (!ts_none(name_arg)) {
		name = ts_name_arg(name_arg, "name", &keep);
		if (!name)
			return NULL;
	}
	if (copy != COPY_ALWAYS)
		handle = wrap(source, name);
	if (handle) {
		self = ts_tensor_wrap(handle);
	} else if (copy == COPY_NEVER && name) {
		PyErr_Format(PyExc_BufferError,
			     "x: is outside of the region %R and has to be copied (copy=False "
			     "forbids it)",
			     name_arg);
	} else if (copy == COPY_NEVER) {
		PyErr_SetString(PyExc_BufferError,
				"x: is outside of shared memory and has to be copied (copy=False "
				"forbids it)");
	} else if (!ts_source_check_copy(source)) {
		ctx = ts_session();
		if (ctx) {
			state = PyEval_SaveThread();
			err = tshare_tensor_copy(ctx, name, source->data, &source->spec, options,
						 &handle);
			PyEval_RestoreThread(state);
			self = err < 0 ? ts_raise(err, name ? name_arg : NULL) :
					 ts_tensor_wrap(handle);
		}
	}
	Py_XDECREF(keep);
	return self;
}

static int copy_arg(PyObject *obj, enum copy *copy)
{
	bool always;

	*copy = COPY_IF_NEEDED;
	if (ts_none(obj))
		return 0;
	if (ts_bool_arg(obj, "copy", &always) < 0)
		return -1;
	*copy = always ? COPY_ALWAYS : COPY_NEVER;
	return 0;
}

/* @x itself, if it is a Tensor and in the region of that name; else NULL, maybe with an error set. */
static PyObject *as_it_is(PyObject *x, PyObject *name_arg)
{
	struct tshare_tensor *handle;
	const char *name;
	PyObject *keep;
	bool same;

	if (!PyObject_TypeCheck(x, ts_tensor_type))
		return NULL;
	handle = ts_tensor_handle(x);
	if (!handle)
		return NULL;
	if (!ts_none(name_arg)) {
		name = ts_name_arg(name_arg, "name", &keep);
		if (!name)
			return NULL;
		same = is_called(handle, name);
		Py_XDECREF(keep);
		if (!same)
			return NULL;
	}
	Py_INCREF(x);
	return x;
}

/* The device can only be the CPU: None, "cpu", (kDLCPU, 0) or (kDLCPU, None). */
static int device_arg(PyObject *device)
{
	PyObject *id;
	long type;

	if (ts_none(device) ||
	    (PyUnicode_Check(device) && !PyUnicode_CompareWithASCIIString(device, "cpu")))
		return 0;
	if (PyTuple_Check(device) && PyArg_ParseTuple(device, "lO", &type, &id) && type == kDLCPU &&
	    (id == Py_None || (PyLong_Check(id) && !PyLong_AsLong(id))))
		return 0;
	if (!PyErr_Occurred())
		PyErr_Format(PyExc_ValueError, "device: must be the CPU, not %R", device);
	return -1;
}

PyObject *ts_from_dlpack(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs,
			 PyObject *kwnames)
{
	static const char *const names[] = { "x", "device", "copy" };
	struct ts_source source;
	PyObject *given[3], *result;
	enum copy copy;

	if (ts_parse("from_dlpack", args, nargs, kwnames, names, 1, 3, given) < 0 ||
	    ts_need_arg(given[0], "from_dlpack", "x") < 0)
		return NULL;
	if (device_arg(given[1]) < 0 || copy_arg(given[2], &copy) < 0)
		return NULL;
	if (copy != COPY_ALWAYS) {
		result = as_it_is(given[0], NULL);
		if (result || PyErr_Occurred())
			return result;
	}
	if (ts_source_dlpack(given[0], ts_none(given[1]) ? TS_FROM_CPU : TS_FROM_ANYWHERE,
			     &source) < 0)
		return NULL;
	result = take(&source, NULL, NULL, copy);
	ts_source_close(&source);
	return result;
}

/*
 * NumPy's asarray() has the type in the place of the name, which would give the copy a name that
 * nobody meant, and the type of @x. By keyword a region may have that name.
 */
static int check_second(PyObject *name)
{
	struct tshare_dtype dtype;
	const char *text;

	if (!PyUnicode_Check(name))
		return 0;
	text = PyUnicode_AsUTF8AndSize(name, NULL);
	if (!text)
		PyErr_Clear();
	if (!text || tshare_dtype_parse(text, &dtype) < 0)
		return 0;
	PyErr_Format(PyExc_TypeError,
		     "name: %R is the name of a type, and asarray() doesn't convert (convert x "
		     "first, as by numpy.asarray(x, %R), or pass name=%R by keyword)",
		     name, name, name);
	return -1;
}

PyObject *ts_asarray(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs,
		     PyObject *kwnames)
{
	static const char *const names[] = { "x", "name", "copy", TS_OPTION_NAMES };
	struct tshare_options options = { .size = sizeof(options) };
	PyObject *given[3 + TS_OPTION_COUNT], *result;
	struct ts_source source;
	enum copy copy;

	if (ts_parse("asarray", args, nargs, kwnames, names, 2, 3 + TS_OPTION_COUNT, given) < 0 ||
	    ts_need_arg(given[0], "asarray", "x") < 0)
		return NULL;
	if (nargs > 1 && check_second(args[1]) < 0)
		return NULL;
	if (copy_arg(given[2], &copy) < 0 || ts_options_arg(given + 3, &options) < 0)
		return NULL;
	if (copy != COPY_ALWAYS) {
		result = as_it_is(given[0], given[1]);
		if (result || PyErr_Occurred())
			return result;
	}
	if (ts_source_open(given[0], &source) < 0)
		return NULL;
	result = take(&source, given[1], &options, copy);
	ts_source_close(&source);
	return result;
}
