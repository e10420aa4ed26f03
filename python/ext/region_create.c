// SPDX-License-Identifier: MIT
/* Region.create(): tensors of zeros and copies of arrays, laid out in a new region. */
#include "region_create.h"

#include <string.h>

#include "args.h"
#include "call.h"
#include "dtype.h"
#include "errors.h"
#include "region.h"
#include "session.h"
#include "source.h"
#include "source_open.h"
#include "ties.h"

/* The memory that a struct tshare_spec points to. */
struct entry {
	PyObject *keep;
	struct ts_source *source; /* source that fills the tensor, or NULL */
	bool tied;		  /* the tensor whose memory it shares fills it */
	int64_t *dims;		  /* the shape, and the strides if any; NULL for none */
};

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
static int keep_dims(const int64_t *shape, const int64_t *strides, struct entry *entry,
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
static int entry_of_array(PyObject *what, struct entry *entry, struct tshare_spec *spec)
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
static int parse_what(PyObject *what, struct entry *entry, struct tshare_spec *spec)
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
static int parse_spec(PyObject *item, struct entry *entry, struct tshare_spec *spec)
{
	PyObject *key;

	if (!PyTuple_Check(item) || PyTuple_Size(item) != 2) {
		PyErr_Format(PyExc_TypeError, "tensors: its items() must be pairs, not %R", item);
		return -1;
	}
	spec->size = sizeof(*spec);
	key = PyTuple_GetItem(item, 0);
	spec->name = ts_name_arg(key, "key", &entry->keep);
	if (!spec->name) {
		ts_raise_within("tensors: ");
		return -1;
	}
	if (parse_what(PyTuple_GetItem(item, 1), entry, spec) < 0) {
		ts_raise_within("tensors: %R: ", key);
		return -1;
	}
	return 0;
}

/* Copies the entries' sources into the region. Called without the GIL. */
static int fill(struct tshare_region *region, const struct entry *entries, Py_ssize_t count)
{
	struct tshare_tensor *tensor;
	Py_ssize_t i;
	int err = 0;

	for (i = 0; i < count && !err; i++) {
		if (!entries[i].source || entries[i].tied)
			continue;
		err = tshare_region_get_tensor(region, i, &tensor);
		if (!err) {
			err = tshare_tensor_write(tensor, entries[i].source->data,
						  entries[i].source->strides);
			tshare_tensor_unref(tensor);
		}
	}
	return err;
}

/* Lays all tensors out; tied ones share another's place. */
static int place(struct entry *entries, struct tshare_spec *specs, Py_ssize_t count,
		 const Py_ssize_t *ties, struct tshare_spec *bases, uint64_t *offsets)
{
	const struct ts_source *base;
	Py_ssize_t i, found = 0;
	int err;

	for (i = 0; i < count; i++)
		if (ties[i] < 0)
			bases[found++] = specs[i];
	err = tshare_region_compute_layout(bases, found, offsets, NULL);
	if (err < 0) {
		ts_raise(err, NULL);
		return -1;
	}
	for (i = found = 0; i < count; i++)
		if (ties[i] < 0)
			specs[i].byte_offset = offsets[found++];
	for (i = 0; i < count; i++) {
		if (ties[i] < 0)
			continue;
		base = entries[ties[i]].source;
		entries[i].tied = true;
		specs[i].byte_offset = specs[ties[i]].byte_offset;
		specs[i].byte_offset += (uintptr_t)entries[i].source->data - (uintptr_t)base->data;
		/* The copy of a source with gaps is contiguous, and so is the copy of its twin. */
		if (ts_source_is_contiguous(base))
			specs[i].strides = entries[i].source->strides;
	}
	for (i = 0; i < count; i++)
		specs[i].byte_offset = ts_offset(specs[i].byte_offset);
	return 0;
}

/* Marks entries that share memory. Without such entries, changes nothing. */
static int tie(struct entry *entries, struct tshare_spec *specs, Py_ssize_t count)
{
	struct ts_source **sources = PyMem_Calloc(count + 1, sizeof(*sources));
	Py_ssize_t *ties = PyMem_Calloc(count + 1, sizeof(*ties));
	struct tshare_spec *bases = PyMem_Calloc(count + 1, sizeof(*bases));
	uint64_t *offsets = PyMem_Calloc(count + 1, sizeof(*offsets));
	bool tied = false;
	Py_ssize_t i;
	int err = -1;

	if (!sources || !ties || !bases || !offsets) {
		PyErr_NoMemory();
		goto out;
	}
	for (i = 0; i < count; i++)
		sources[i] = entries[i].source;
	err = ts_find_ties(sources, count, ties);
	for (i = 0; !err && i < count; i++)
		tied |= ties[i] >= 0;
	if (!err && tied)
		err = place(entries, specs, count, ties, bases, offsets);
out:
	PyMem_Free(sources);
	PyMem_Free(ties);
	PyMem_Free(bases);
	PyMem_Free(offsets);
	return err;
}

/* Makes a region of @dmabuf, or of new memory if that is -1. */
static PyObject *create(PyObject *arg, uint64_t size, int dmabuf, PyObject *items,
			const struct tshare_options *options)
{
	PyThreadState *state;
	Py_ssize_t count = items ? PyList_Size(items) : 0;
	struct entry *entries = PyMem_Calloc(count + 1, sizeof(*entries));
	struct tshare_spec *specs = PyMem_Calloc(count + 1, sizeof(*specs));
	struct tshare_ctx *ctx = ts_session();
	struct tshare_options draft = *options;
	PyObject *keep = NULL, *self = NULL;
	struct tshare_region *region;
	const char *name = NULL;
	Py_ssize_t i;
	bool finish;
	int err;

	if (!entries || !specs) {
		PyErr_NoMemory();
		goto out;
	}
	if (!ctx)
		goto out;
	if (!ts_none(arg)) {
		name = ts_name_arg(arg, "name", &keep);
		if (!name)
			goto out;
	}
	for (i = 0; i < count; i++)
		if (parse_spec(PyList_GetItem(items, i), &entries[i], &specs[i]) < 0)
			goto out;
	if (tie(entries, specs, count) < 0)
		goto out;

	/* A draft, so that no process opens the region before it is filled. */
	finish = name && !(options->flags & TSHARE_DRAFT);
	if (finish)
		draft.flags |= TSHARE_DRAFT;
	state = PyEval_SaveThread();
	if (dmabuf < 0)
		err = tshare_region_create(ctx, name, size, specs, count, &draft, &region);
	else
		err = tshare_region_create_dmabuf(ctx, name, dmabuf, specs, count, &draft, &region);
	if (!err) {
		err = fill(region, entries, count);
		if (!err && finish)
			err = tshare_region_finish(region, options->flags & TSHARE_REPLACE);
		if (err && name)
			tshare_region_unlink(region);
		if (err)
			tshare_region_unref(region);
	}
	PyEval_RestoreThread(state);
	self = err < 0 ? ts_raise_of_create(err, name ? arg : NULL, specs, count) :
			 ts_region_wrap(region);
out:
	for (i = 0; entries && i < count; i++) {
		Py_XDECREF(entries[i].keep);
		PyMem_Free(entries[i].dims);
		if (entries[i].source) {
			ts_source_close(entries[i].source);
			PyMem_Free(entries[i].source);
		}
	}
	PyMem_Free(entries);
	PyMem_Free(specs);
	Py_XDECREF(keep);
	return self;
}

PyObject *ts_region_create(PyObject *Py_UNUSED(type), PyObject *const *args, Py_ssize_t nargs,
			   PyObject *kwnames)
{
	static const char *const names[] = { "name", "tensors", "size", "dmabuf", TS_OPTION_NAMES };
	struct tshare_options options = { .size = sizeof(options) };
	PyObject *given[4 + TS_OPTION_COUNT], *items = NULL, *self;
	int64_t size = 0;
	int dmabuf = -1;

	if (ts_parse("create", args, nargs, kwnames, names, 2, 4 + TS_OPTION_COUNT, given) < 0)
		return NULL;
	if (!ts_none(given[3])) {
		dmabuf = ts_fd_arg(given[3], "dmabuf");
		if (dmabuf < 0)
			return NULL;
		if (!ts_none(given[2])) {
			PyErr_SetString(PyExc_ValueError, "size: is the dma-buf's (pass None)");
			return NULL;
		}
	}
	if (!ts_none(given[2]) && ts_int_arg(given[2], "size", 1, INT64_MAX, &size) < 0)
		return NULL;
	if (ts_options_arg(given + 4, &options) < 0)
		return NULL;
	if (!ts_none(given[1])) {
		items = ts_call("tshare._nested", "flatten", given[1]);
		if (!items)
			return NULL;
	}
	self = create(given[0], size, dmabuf, items, &options);
	Py_XDECREF(items);
	return self;
}
