// SPDX-License-Identifier: MIT
/* Region.create(): tensors of zeros and copies of arrays, laid out in a new region. */
#include "region_create.h"

#include "args.h"
#include "errors.h"
#include "region.h"
#include "session.h"
#include "source.h"
#include "specs.h"
#include "ties.h"

/* Copies the entries' sources into the region. Called without the GIL. */
static int fill(struct tshare_region *region, const struct ts_spec_entry *entries, Py_ssize_t count)
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
static int place(struct ts_spec_entry *entries, struct tshare_spec *specs, Py_ssize_t count,
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
static int tie(struct ts_spec_entry *entries, struct tshare_spec *specs, Py_ssize_t count)
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
static PyObject *create(PyObject *arg, uint64_t size, int dmabuf, struct ts_specs *tensors,
			const struct tshare_options *options)
{
	struct tshare_ctx *ctx = ts_session();
	struct tshare_options draft = *options;
	struct tshare_region *region;
	PyObject *keep = NULL, *self;
	const char *name = NULL;
	PyThreadState *state;
	bool finish;
	int err;

	if (!ctx)
		return NULL;
	if (!ts_none(arg)) {
		name = ts_name_arg(arg, "name", &keep);
		if (!name)
			return NULL;
	}
	/* A draft, so that no process opens the region before it is filled. */
	finish = name && !(options->flags & TSHARE_DRAFT);
	if (finish)
		draft.flags |= TSHARE_DRAFT;
	state = PyEval_SaveThread();
	if (dmabuf < 0)
		err = tshare_region_create(ctx, name, size, tensors->specs, tensors->count, &draft,
					   &region);
	else
		err = tshare_region_create_dmabuf(ctx, name, dmabuf, tensors->specs, tensors->count,
						  &draft, &region);
	if (!err) {
		err = fill(region, tensors->entries, tensors->count);
		if (!err && finish)
			err = tshare_region_finish(region, options->flags & TSHARE_REPLACE);
		if (err && name)
			tshare_region_unlink(region);
		if (err)
			tshare_region_unref(region);
	}
	PyEval_RestoreThread(state);
	self = err < 0 ? ts_raise_of_create(err, name ? arg : NULL, "tensors", tensors->specs,
					    tensors->count) :
			 ts_region_wrap(region);
	Py_XDECREF(keep);
	return self;
}

PyObject *ts_region_create(PyObject *Py_UNUSED(type), PyObject *const *args, Py_ssize_t nargs,
			   PyObject *kwnames)
{
	static const char *const names[] = { "name", "tensors", "size", "dmabuf", TS_OPTION_NAMES };
	struct tshare_options options = { .size = sizeof(options) };
	PyObject *given[4 + TS_OPTION_COUNT], *self = NULL;
	struct ts_specs tensors = { 0 };
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
	if (!ts_none(given[1]) && ts_specs_open(given[1], "tensors", &tensors) < 0)
		return NULL;
	if (!tie(tensors.entries, tensors.specs, tensors.count))
		self = create(given[0], size, dmabuf, &tensors, &options);
	ts_specs_close(&tensors);
	return self;
}
