// SPDX-License-Identifier: MIT
/* unlink() and finish() of Region and of Tensor. */
#include "names.h"

#include "args.h"
#include "errors.h"
#include "gil.h"

/* Raises what a call on a region has returned, with its name. Returns NULL. */
static PyObject *raise_of_region(int err, struct tshare_region *handle)
{
	PyObject *name = ts_text(tshare_region_get_name(handle));

	if (name)
		ts_raise(err, name);
	Py_XDECREF(name);
	return NULL;
}

PyObject *ts_unlink(struct tshare_region *handle)
{
	PyThreadState *state;
	int err;

	if (!*tshare_region_get_name(handle)) {
		PyErr_SetString(PyExc_ValueError, "region: has no name");
		return NULL;
	}
	/* close() may come while the GIL is released. */
	tshare_region_ref(handle);
	state = PyEval_SaveThread();
	err = tshare_region_unlink(handle);
	PyEval_RestoreThread(state);
	if (err < 0)
		raise_of_region(err, handle);
	ts_region_unref(handle);
	if (err < 0)
		return NULL;
	Py_RETURN_NONE;
}

PyObject *ts_finish(struct tshare_region *handle, PyObject *const *args, Py_ssize_t nargs,
		    PyObject *kwnames)
{
	static const char *const names[] = { "replace" };
	PyThreadState *state;
	PyObject *given[1];
	bool replace;
	int err;

	/* close() may come from the argument's __bool__(), and while the GIL is released. */
	tshare_region_ref(handle);
	if (ts_parse("finish", args, nargs, kwnames, names, 0, 1, given) < 0 ||
	    ts_bool_arg(given[0], "replace", &replace) < 0) {
		ts_region_unref(handle);
		return NULL;
	}
	state = PyEval_SaveThread();
	err = tshare_region_finish(handle, replace ? TSHARE_REPLACE : 0);
	PyEval_RestoreThread(state);
	if (err < 0)
		raise_of_region(err, handle);
	ts_region_unref(handle);
	if (err < 0)
		return NULL;
	Py_RETURN_NONE;
}
