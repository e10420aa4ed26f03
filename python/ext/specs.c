// SPDX-License-Identifier: MIT
/* Arguments that describe several tensors by their names, as the library takes them. */
#include "specs.h"

#include <string.h>

#include "args.h"
#include "call.h"
#include "dtype.h"
#include "errors.h"
#include "source_open.h"

/* Converts NumPy's strides in bytes to the elements of a struct tshare_spec. */
static int parse_strides(PyObject *obj, const struct tshare_spec *spec, int64_t *strides)
{
	Py_ssize_t itemsize = ts_itemsize(spec->dtype);
	int32_t count, i;

	if (ts_dims_arg(obj, "strides", strides, &count) < 0)
		return -1;
	if (count != spec->ndim) {
		PyErr_Format(PyExc_ValueError, "strides: %d strides for %d dimensions", count,
			     spec->ndim);
		return -1;
	}
	if (!itemsize) {
		PyErr_SetString(PyExc_ValueError,
				"strides: packed elements must be C-contiguous (pass None)");
		return -1;
	}
	for (i = 0; i < count; i++) {
		if (strides[i] % itemsize) {
			PyErr_Format(
				PyExc_ValueError,
				"strides: %lld is not a multiple of the element size, %zd bytes",
				(long long)strides[i], itemsize);
			return -1;
		}
		strides[i] /= itemsize;
	}
	return 0;
}

/* Gives a spec its own copy of its dimensions, as small as possible. */
static int keep_dims(const int64_t *shape, const int64_t *strides, struct ts_spec_entry *entry,
		     struct tshare_spec *spec)
{
	size_t size = spec->ndim * sizeof(*shape);

	if (!size)
		return 0;
	entry->dims = PyMem_Malloc(strides ? 2 * size : size);
	if (!entry->dims) {
		PyErr_NoMemory();
		return -1;
	}
	spec->shape = memcpy(entry->dims, shape, size);
	if (strides)
		spec->strides = memcpy(entry->dims + spec->ndim, strides, size);
	return 0;
}

/* Describes a tensor that is filled from another library's. */
static int entry_of_array(PyObject *what, struct ts_spec_entry *entry, struct tshare_spec *spec)
{
	struct ts_source *source = PyMem_Calloc(1, sizeof(*source));

	if (!source) {
		PyErr_NoMemory();
		return -1;
	}
	if (ts_source_open(what, source) < 0) {
		PyMem_Free(source);
		return -1;
	}
	entry->source = source;
	spec->dtype = source->spec.dtype;
	spec->ndim = source->spec.ndim;
	spec->shape = source->shape;
	return ts_source_check_copy(source);
}

/* @what: (shape, dtype[, strides[, offset]]) or an array */
static int parse_what(PyObject *what, struct ts_spec_entry *entry, struct tshare_spec *spec)
{
	int64_t shape[TSHARE_NDIM_LIMIT], strides[TSHARE_NDIM_LIMIT], offset;
	bool strided = false;
	Py_ssize_t count;

	if (!PyTuple_Check(what))
		return entry_of_array(what, entry, spec);
	count = PyTuple_Size(what);
	if (count < 2 || count > 4) {
		PyErr_SetString(PyExc_TypeError, "must be an array, or a tuple (shape, dtype, "
						 "strides=None, offset=None)");
		return -1;
	}
	if (ts_dims_arg(PyTuple_GetItem(what, 0), "shape", shape, &spec->ndim) < 0 ||
	    ts_dtype_arg(PyTuple_GetItem(what, 1), &spec->dtype) < 0)
		return -1;
	if (count > 2 && PyTuple_GetItem(what, 2) != Py_None) {
		if (parse_strides(PyTuple_GetItem(what, 2), spec, strides) < 0)
			return -1;
		strided = true;
	}
	if (count > 3 && PyTuple_GetItem(what, 3) != Py_None) {
		if (ts_int_arg(PyTuple_GetItem(what, 3), "offset", 0, INT64_MAX, &offset) < 0)
			return -1;
		spec->byte_offset = ts_offset(offset);
	}
	return keep_dims(shape, strided ? strides : NULL, entry, spec);
}

/* @item: (key, what) */
static int parse_spec(PyObject *item, const char *argument, struct ts_spec_entry *entry,
		      struct tshare_spec *spec)
{
	PyObject *key;

	if (!PyTuple_Check(item) || PyTuple_Size(item) != 2) {
		PyErr_Format(PyExc_TypeError, "%s: its items() must be pairs, not %R", argument,
			     item);
		return -1;
	}
	spec->size = sizeof(*spec);
	key = PyTuple_GetItem(item, 0);
	spec->name = ts_name_arg(key, "key", &entry->keep);
	if (!spec->name) {
		ts_raise_within("%s: ", argument);
		return -1;
	}
	if (parse_what(PyTuple_GetItem(item, 1), entry, spec) < 0) {
		ts_raise_within("%s: %R: ", argument, key);
		return -1;
	}
	return 0;
}

int ts_specs_open(PyObject *mapping, const char *argument, struct ts_specs *specs)
{
	PyObject *items;
	Py_ssize_t i;

	*specs = (struct ts_specs){ 0 };
	items = ts_call_module("tshare._nested", "flatten",
			       Py_BuildValue("(Os)", mapping, argument));
	if (!items)
		return -1;
	specs->items = items;
	specs->count = PyList_Size(items);
	specs->entries = PyMem_Calloc(specs->count + 1, sizeof(*specs->entries));
	specs->specs = PyMem_Calloc(specs->count + 1, sizeof(*specs->specs));
	if (!specs->entries || !specs->specs) {
		PyErr_NoMemory();
		ts_specs_close(specs);
		return -1;
	}
	for (i = 0; i < specs->count; i++) {
		if (parse_spec(PyList_GetItem(items, i), argument, &specs->entries[i],
			       &specs->specs[i]) < 0) {
			ts_specs_close(specs);
			return -1;
		}
	}
	return 0;
}

void ts_specs_close(struct ts_specs *specs)
{
	Py_ssize_t i;

	for (i = 0; specs->entries && i < specs->count; i++) {
		Py_XDECREF(specs->entries[i].keep);
		PyMem_Free(specs->entries[i].dims);
		if (specs->entries[i].source) {
			ts_source_close(specs->entries[i].source);
			PyMem_Free(specs->entries[i].source);
		}
	}
	PyMem_Free(specs->entries);
	PyMem_Free(specs->specs);
	Py_XDECREF(specs->items);
}
