// SPDX-License-Identifier: MIT
/* A Region as a mapping of its tensors' names to them. */
#include "region_mapping.h"

#include <errno.h>

#include "args.h"
#include "errors.h"
#include "gil.h"
#include "mapping.h"
#include "region.h"
#include "tensor.h"

Py_ssize_t ts_region_length(PyObject *self)
{
	struct tshare_region *handle = ts_region_handle(self);

	return handle ? (Py_ssize_t)tshare_region_get_tensor_count(handle) : -1;
}

/* From this number of tensors on, the GIL is released while the library reads their list. */
#define LONG_LIST 1000

/* The first lookup makes the library check and index the list, which can take milliseconds. */
static int find(PyObject *self, struct tshare_region *handle, const char *name,
		struct tshare_tensor **tensor)
{
	struct ts_region *region = (struct ts_region *)self;
	PyThreadState *state;
	int err;

	if (region->indexed || tshare_region_get_tensor_count(handle) < LONG_LIST)
		return tshare_region_find_tensor(handle, name, tensor);
	/* close() may come while the GIL is released. */
	tshare_region_ref(handle);
	state = PyEval_SaveThread();
	err = tshare_region_find_tensor(handle, name, tensor);
	tshare_region_unref(handle);
	PyEval_RestoreThread(state);
	region->indexed = true;
	return err;
}

/* 1 and @tensor; 0 if no tensor has that name; or -1 with an error set. */
static int lookup(PyObject *self, PyObject *key, struct tshare_tensor **tensor)
{
	struct tshare_region *handle = ts_region_handle(self);
	const char *name;
	PyObject *keep;
	int err;

	if (!handle)
		return -1;
	if (!PyUnicode_Check(key))
		return 0;
	name = ts_name_arg(key, "key", &keep);
	if (!name) {
		/* A key that isn't a valid name is no tensor's name either. */
		if (!PyErr_ExceptionMatches(PyExc_ValueError))
			return -1;
		PyErr_Clear();
		return 0;
	}
	err = find(self, handle, name, tensor);
	Py_XDECREF(keep);
	if (err == -ENOENT || err == -EINVAL || err == -ENAMETOOLONG)
		return 0;
	if (err < 0) {
		ts_raise(err, NULL);
		return -1;
	}
	return 1;
}

PyObject *ts_region_subscript(PyObject *self, PyObject *key)
{
	struct tshare_tensor *tensor;
	int found = lookup(self, key, &tensor);

	if (found > 0)
		return ts_tensor_wrap(tensor);
	return found ? NULL : ts_raise_key(key);
}

int ts_region_contains(PyObject *self, PyObject *key)
{
	struct tshare_tensor *tensor;
	int found = lookup(self, key, &tensor);

	if (found > 0)
		ts_tensor_unref(tensor);
	return found;
}

PyObject *ts_region_get(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
	static const char *const names[] = { "key", "default" };
	struct tshare_tensor *tensor;
	PyObject *given[2], *other;
	int found;

	if (ts_parse("get", args, nargs, kwnames, names, 2, 2, given) < 0 ||
	    ts_need_arg(given[0], "get", "key") < 0)
		return NULL;
	found = lookup(self, given[0], &tensor);
	if (found > 0)
		return ts_tensor_wrap(tensor);
	if (found < 0)
		return NULL;
	other = given[1] ? given[1] : Py_None;
	Py_INCREF(other);
	return other;
}

/* The names as a tuple. Reading the first makes the library check the list, as in find(). */
static PyObject *list_names(struct tshare_region *handle)
{
	size_t count = tshare_region_get_tensor_count(handle), i;
	PyObject *names, *name;
	PyThreadState *state;
	const char *text;
	int err;

	if (count >= LONG_LIST) {
		state = PyEval_SaveThread();
		tshare_region_get_tensor_name(handle, 0, &text);
		PyEval_RestoreThread(state);
	}
	names = PyTuple_New(count);
	for (i = 0; names && i < count; i++) {
		err = tshare_region_get_tensor_name(handle, i, &text);
		name = err < 0 ? ts_raise(err, NULL) : ts_text(text);
		if (!name || PyTuple_SetItem(names, i, name) < 0)
			Py_CLEAR(names);
	}
	return names;
}

PyObject *ts_region_iter(PyObject *self)
{
	struct tshare_region *handle = ts_region_handle(self);
	PyObject *names, *iterator;

	if (!handle)
		return NULL;
	/* close() may come while the GIL is released. */
	tshare_region_ref(handle);
	names = list_names(handle);
	ts_region_unref(handle);
	if (!names)
		return NULL;
	iterator = PyObject_GetIter(names);
	Py_DECREF(names);
	return iterator;
}
