// SPDX-License-Identifier: MIT
/* tshare.Region, a mapping of names to tensors. */
#include "ext.h"

#include <errno.h>
#include <structmember.h>

PyTypeObject *ts_region_type;

PyObject *ts_region_wrap(struct tshare_region *handle)
{
	struct ts_region *self = PyObject_New(struct ts_region, ts_region_type);

	if (!self) {
		tshare_region_unref(handle);
		return NULL;
	}
	self->handle = handle;
	self->weakrefs = NULL;
	return (PyObject *)self;
}

struct tshare_region *ts_region_handle(PyObject *self)
{
	struct tshare_region *handle = ((struct ts_region *)self)->handle;

	if (!handle)
		PyErr_SetString(PyExc_ValueError, "region is closed");
	return handle;
}

static void region_dealloc(PyObject *self)
{
	struct ts_region *region = (struct ts_region *)self;
	PyTypeObject *type = Py_TYPE(self);

	if (region->weakrefs)
		PyObject_ClearWeakRefs(self);
	tshare_region_unref(region->handle);
	PyObject_Free(self);
	Py_DECREF(type);
}

/* Creating one */

/* What a struct tshare_spec points to. */
struct draft {
	PyObject *keep;
	struct ts_source *source; /* what to fill the tensor with, or NULL */
	bool tied;		  /* another tensor's memory is filled with it */
	int64_t shape[TSHARE_NDIM_LIMIT];
	int64_t strides[TSHARE_NDIM_LIMIT];
};

/* Strides are in bytes here, as in NumPy, and in elements there. */
static int parse_strides(PyObject *obj, struct draft *draft, const struct tshare_spec *spec)
{
	Py_ssize_t itemsize = ts_itemsize(spec->dtype);
	int32_t count, i;

	if (ts_dims_arg(obj, "strides", draft->strides, &count) < 0)
		return -1;
	if (count != spec->ndim) {
		PyErr_Format(PyExc_ValueError, "strides: %d of them for %d dimensions", count,
			     spec->ndim);
		return -1;
	}
	if (!itemsize) {
		PyErr_SetString(PyExc_ValueError,
				"strides: an element is not a whole number of bytes");
		return -1;
	}
	for (i = 0; i < count; i++) {
		if (draft->strides[i] % itemsize) {
			PyErr_Format(PyExc_ValueError,
				     "strides: %lld bytes is not a multiple of the element's %zd",
				     (long long)draft->strides[i], itemsize);
			return -1;
		}
		draft->strides[i] /= itemsize;
	}
	return 0;
}

/* A tensor that is filled with another library's. */
static int draft_copy(PyObject *name, PyObject *what, struct draft *draft, struct tshare_spec *spec)
{
	struct ts_source *source = PyMem_Calloc(1, sizeof(*source));

	if (!source) {
		PyErr_NoMemory();
		return -1;
	}
	if (ts_source_open(what, source) < 0) {
		PyMem_Free(source);
		ts_raise_within("tensors: %R: ", name);
		return -1;
	}
	draft->source = source;
	spec->dtype = source->spec.dtype;
	spec->ndim = source->spec.ndim;
	spec->shape = source->shape;
	return ts_source_check_copy(source);
}

/* @item: (name, what), and what is (shape, dtype[, strides[, offset]]) or an array */
static int parse_spec(PyObject *item, struct draft *draft, struct tshare_spec *spec)
{
	PyObject *what;
	Py_ssize_t count;
	int64_t offset;

	if (!PyTuple_Check(item) || PyTuple_Size(item) != 2) {
		PyErr_Format(PyExc_TypeError, "tensors: its items() must be pairs, not %R", item);
		return -1;
	}
	what = PyTuple_GetItem(item, 1);
	spec->name = ts_name_arg(PyTuple_GetItem(item, 0), "tensors", &draft->keep);
	if (!spec->name)
		return -1;
	spec->byte_offset = TSHARE_OFFSET_AUTO;
	if (!PyTuple_Check(what))
		return draft_copy(PyTuple_GetItem(item, 0), what, draft, spec);
	count = PyTuple_Size(what);
	if (count < 2 || count > 4) {
		PyErr_Format(PyExc_TypeError,
			     "tensors: %R: must be an array, or a tuple (shape, dtype, "
			     "strides=None, offset=None)",
			     PyTuple_GetItem(item, 0));
		return -1;
	}
	spec->shape = draft->shape;
	if (ts_dims_arg(PyTuple_GetItem(what, 0), "shape", draft->shape, &spec->ndim) < 0 ||
	    ts_dtype_arg(PyTuple_GetItem(what, 1), &spec->dtype) < 0)
		return -1;
	if (count > 2 && PyTuple_GetItem(what, 2) != Py_None) {
		if (parse_strides(PyTuple_GetItem(what, 2), draft, spec) < 0)
			return -1;
		spec->strides = draft->strides;
	}
	if (count > 3 && PyTuple_GetItem(what, 3) != Py_None) {
		if (ts_int_arg(PyTuple_GetItem(what, 3), "offset", 0, INT64_MAX, &offset) < 0)
			return -1;
		spec->byte_offset = offset;
	}
	return 0;
}

/* Copies what the drafts bring along. Called without the GIL. */
static int fill(struct tshare_region *region, const struct draft *drafts, Py_ssize_t count)
{
	struct tshare_tensor *tensor;
	Py_ssize_t i;
	int err = 0;

	for (i = 0; i < count && !err; i++) {
		if (!drafts[i].source || drafts[i].tied)
			continue;
		err = tshare_region_tensor(region, i, &tensor);
		if (!err) {
			err = tshare_tensor_write(tensor, drafts[i].source->data,
						  drafts[i].source->strides);
			tshare_tensor_unref(tensor);
		}
	}
	return err;
}

/* Gives all tensors their places, those that are tied in another's. */
static int place(struct draft *drafts, struct tshare_spec *specs, Py_ssize_t count,
		 const Py_ssize_t *ties, struct tshare_spec *bases, uint64_t *offsets)
{
	const struct ts_source *base;
	Py_ssize_t i, found = 0;
	int err;

	for (i = 0; i < count; i++)
		if (ties[i] < 0)
			bases[found++] = specs[i];
	err = tshare_region_layout(bases, found, offsets, NULL);
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
		base = drafts[ties[i]].source;
		drafts[i].tied = true;
		specs[i].byte_offset = specs[ties[i]].byte_offset;
		specs[i].byte_offset += (uintptr_t)drafts[i].source->data - (uintptr_t)base->data;
		/* The copy of one that isn't contiguous is; this is the same then. */
		if (ts_source_is_contiguous(base))
			specs[i].strides = drafts[i].source->strides;
	}
	return 0;
}

/* Finds those drafts that share memory, and leaves all as they are if none do. */
static int tie(struct draft *drafts, struct tshare_spec *specs, Py_ssize_t count)
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
		sources[i] = drafts[i].source;
	err = ts_find_ties(sources, count, ties);
	for (i = 0; !err && i < count; i++)
		tied |= ties[i] >= 0;
	if (!err && tied)
		err = place(drafts, specs, count, ties, bases, offsets);
out:
	PyMem_Free(sources);
	PyMem_Free(ties);
	PyMem_Free(bases);
	PyMem_Free(offsets);
	return err;
}

static PyObject *create(PyObject *arg, uint64_t size, PyObject *items,
			const struct tshare_options *options)
{
	PyThreadState *state;
	Py_ssize_t count = items ? PyList_Size(items) : 0;
	struct draft *drafts = PyMem_Calloc(count + 1, sizeof(*drafts));
	struct tshare_spec *specs = PyMem_Calloc(count + 1, sizeof(*specs));
	struct tshare_ctx *ctx = ts_session();
	PyObject *keep = NULL, *self = NULL;
	struct tshare_region *region;
	const char *name = NULL;
	Py_ssize_t i;
	int err;

	if (!drafts || !specs) {
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
		if (parse_spec(PyList_GetItem(items, i), &drafts[i], &specs[i]) < 0)
			goto out;
	if (tie(drafts, specs, count) < 0)
		goto out;

	state = PyEval_SaveThread();
	err = tshare_region_create(ctx, name, size, specs, count, options, &region);
	if (!err) {
		err = fill(region, drafts, count);
		if (err && name)
			tshare_unlink(ctx, name);
		if (err)
			tshare_region_unref(region);
	}
	PyEval_RestoreThread(state);
	self = err < 0 ? ts_raise_of(err, name ? arg : NULL, specs, count) : ts_region_wrap(region);
out:
	for (i = 0; drafts && i < count; i++) {
		Py_XDECREF(drafts[i].keep);
		if (drafts[i].source) {
			ts_source_close(drafts[i].source);
			PyMem_Free(drafts[i].source);
		}
	}
	PyMem_Free(drafts);
	PyMem_Free(specs);
	Py_XDECREF(keep);
	return self;
}

/* The items of a mapping and of those in it, whose keys are paths then. */
static PyObject *flat_items(PyObject *mapping)
{
	PyObject *module, *items;

	module = PyImport_ImportModule("tshare._nested");
	if (!module)
		return NULL;
	items = PyObject_CallMethod(module, "flatten", "O", mapping);
	Py_DECREF(module);
	return items;
}

static PyObject *region_create(PyObject *type, PyObject *const *args, Py_ssize_t nargs,
			       PyObject *kwnames)
{
	static const char *const names[] = { "name", "tensors", "size", TS_OPTION_NAMES };
	struct tshare_options options = TSHARE_OPTIONS_INIT;
	PyObject *given[3 + TS_OPTION_COUNT], *items = NULL, *self;
	int64_t size = 0;

	(void)type;
	if (ts_parse("create", args, nargs, kwnames, names, 2, 3 + TS_OPTION_COUNT, given) < 0)
		return NULL;
	if (!ts_none(given[2]) && ts_int_arg(given[2], "size", 1, INT64_MAX, &size) < 0)
		return NULL;
	if (ts_options_arg(given + 3, &options) < 0)
		return NULL;
	if (!ts_none(given[1])) {
		if (!PyDict_Check(given[1]) && !PyObject_HasAttrString(given[1], "items")) {
			PyErr_Format(PyExc_TypeError, "tensors: must be a mapping, not %R",
				     Py_TYPE(given[1]));
			return NULL;
		}
		items = flat_items(given[1]);
		if (!items)
			return NULL;
	}
	self = create(given[0], size, items, &options);
	Py_XDECREF(items);
	return self;
}

/* Finding one */

int ts_parse_open(const char *function, const char *by, PyObject *const *args, Py_ssize_t nargs,
		  PyObject *kwnames, PyObject **what, bool *readonly)
{
	const char *const names[] = { by, "readonly" };
	PyObject *given[2];

	if (ts_parse(function, args, nargs, kwnames, names, 1, 2, given) < 0)
		return -1;
	*what = given[0] ? given[0] : Py_None;
	return ts_bool_arg(given[1], readonly);
}

struct tshare_region *ts_open_region(PyObject *name_arg, bool readonly)
{
	PyThreadState *state;
	struct tshare_region *region = NULL;
	struct tshare_ctx *ctx;
	PyObject *keep;
	const char *name = ts_name_arg(name_arg, "name", &keep);
	int err;

	if (!name)
		return NULL;
	ctx = ts_session();
	if (ctx) {
		state = PyEval_SaveThread();
		err = tshare_region_open(ctx, name, readonly ? TSHARE_READONLY : 0, &region);
		PyEval_RestoreThread(state);
		if (err < 0)
			ts_raise(err, name_arg);
	}
	Py_XDECREF(keep);
	return region;
}

struct tshare_region *ts_import_region(int fd, bool readonly)
{
	PyThreadState *state;
	struct tshare_region *region = NULL;
	struct tshare_ctx *ctx = ts_session();
	int err;

	if (!ctx)
		return NULL;
	state = PyEval_SaveThread();
	err = tshare_region_import(ctx, fd, readonly ? TSHARE_READONLY : 0, &region);
	PyEval_RestoreThread(state);
	if (err < 0)
		ts_raise(err, NULL);
	return region;
}

static PyObject *region_open(PyObject *type, PyObject *const *args, Py_ssize_t nargs,
			     PyObject *kwnames)
{
	struct tshare_region *region;
	PyObject *name;
	bool readonly;

	(void)type;
	if (ts_parse_open("open", "name", args, nargs, kwnames, &name, &readonly) < 0)
		return NULL;
	region = ts_open_region(name, readonly);
	return region ? ts_region_wrap(region) : NULL;
}

static PyObject *region_from_fd(PyObject *type, PyObject *const *args, Py_ssize_t nargs,
				PyObject *kwnames)
{
	struct tshare_region *region;
	PyObject *file;
	bool readonly;
	int fd;

	(void)type;
	if (ts_parse_open("from_fd", "fd", args, nargs, kwnames, &file, &readonly) < 0)
		return NULL;
	fd = PyObject_AsFileDescriptor(file);
	region = fd < 0 ? NULL : ts_import_region(fd, readonly);
	return region ? ts_region_wrap(region) : NULL;
}

/* The mapping */

static Py_ssize_t region_length(PyObject *self)
{
	struct tshare_region *handle = ts_region_handle(self);

	return handle ? (Py_ssize_t)tshare_region_tensor_count(handle) : -1;
}

/* 1 and @tensor, 0 if there is none of that name, or -1 with an error set. */
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
		/* No name at all is no tensor's name either. */
		if (!PyErr_ExceptionMatches(PyExc_ValueError))
			return -1;
		PyErr_Clear();
		return 0;
	}
	err = tshare_region_tensor_by_name(handle, name, tensor);
	Py_XDECREF(keep);
	if (err == -ENOENT || err == -EINVAL || err == -ENAMETOOLONG)
		return 0;
	if (err < 0) {
		ts_raise(err, NULL);
		return -1;
	}
	return 1;
}

static PyObject *region_subscript(PyObject *self, PyObject *key)
{
	struct tshare_tensor *tensor;
	int found = lookup(self, key, &tensor);

	if (found > 0)
		return ts_tensor_wrap(tensor);
	if (!found)
		PyErr_SetObject(PyExc_KeyError, key);
	return NULL;
}

static int region_contains(PyObject *self, PyObject *key)
{
	struct tshare_tensor *tensor;
	int found = lookup(self, key, &tensor);

	if (found > 0)
		tshare_tensor_unref(tensor);
	return found;
}

static PyObject *region_get(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			    PyObject *kwnames)
{
	static const char *const names[] = { "key", "default" };
	struct tshare_tensor *tensor;
	PyObject *given[2], *other;
	int found;

	if (ts_parse("get", args, nargs, kwnames, names, 2, 2, given) < 0)
		return NULL;
	found = lookup(self, given[0] ? given[0] : Py_None, &tensor);
	if (found > 0)
		return ts_tensor_wrap(tensor);
	if (found < 0)
		return NULL;
	other = given[1] ? given[1] : Py_None;
	Py_INCREF(other);
	return other;
}

static PyObject *region_iter(PyObject *self)
{
	struct tshare_region *handle = ts_region_handle(self);
	struct tshare_tensor *tensor;
	PyObject *names, *name, *iterator;
	size_t count, i;
	int err;

	if (!handle)
		return NULL;
	count = tshare_region_tensor_count(handle);
	names = PyTuple_New(count);
	for (i = 0; names && i < count; i++) {
		err = tshare_region_tensor(handle, i, &tensor);
		if (err < 0) {
			ts_raise(err, NULL);
			name = NULL;
		} else {
			name = ts_text(tshare_tensor_name(tensor));
			tshare_tensor_unref(tensor);
		}
		if (!name || PyTuple_SetItem(names, i, name) < 0)
			Py_CLEAR(names);
	}
	if (!names)
		return NULL;
	iterator = PyObject_GetIter(names);
	Py_DECREF(names);
	return iterator;
}

/* One of the views of collections.abc, which need no more than the mapping. */
static PyObject *view(PyObject *self, const char *name)
{
	PyObject *module, *result;

	module = PyImport_ImportModule("collections.abc");
	if (!module)
		return NULL;
	result = PyObject_CallMethod(module, name, "O", self);
	Py_DECREF(module);
	return result;
}

static PyObject *region_keys(PyObject *self, PyObject *unused)
{
	(void)unused;
	return view(self, "KeysView");
}

static PyObject *region_values(PyObject *self, PyObject *unused)
{
	(void)unused;
	return view(self, "ValuesView");
}

static PyObject *region_items(PyObject *self, PyObject *unused)
{
	(void)unused;
	return view(self, "ItemsView");
}

/* Attributes and other methods */

static PyObject *get_name(PyObject *self, void *closure)
{
	struct tshare_region *handle = ts_region_handle(self);

	(void)closure;
	if (!handle)
		return NULL;
	if (!*tshare_region_name(handle))
		Py_RETURN_NONE;
	return ts_text(tshare_region_name(handle));
}

static PyObject *get_size(PyObject *self, void *closure)
{
	struct tshare_region *handle = ts_region_handle(self);

	(void)closure;
	return handle ? PyLong_FromUnsignedLongLong(tshare_region_size(handle)) : NULL;
}

static PyObject *get_id(PyObject *self, void *closure)
{
	struct tshare_region *handle = ts_region_handle(self);

	(void)closure;
	return handle ? PyLong_FromUnsignedLongLong(tshare_region_id(handle)) : NULL;
}

static PyObject *get_readonly(PyObject *self, void *closure)
{
	struct tshare_region *handle = ts_region_handle(self);

	(void)closure;
	return handle ? PyBool_FromLong(tshare_region_readonly(handle)) : NULL;
}

static PyObject *get_backend(PyObject *self, void *closure)
{
	struct tshare_region *handle = ts_region_handle(self);

	(void)closure;
	return handle ? PyUnicode_FromString(tshare_region_backend(handle)) : NULL;
}

static PyObject *get_closed(PyObject *self, void *closure)
{
	(void)closure;
	return PyBool_FromLong(!((struct ts_region *)self)->handle);
}

static PyObject *region_fileno(PyObject *self, PyObject *unused)
{
	struct tshare_region *handle = ts_region_handle(self);

	(void)unused;
	return handle ? PyLong_FromLong(tshare_region_fd(handle)) : NULL;
}

static PyObject *region_info(PyObject *self, PyObject *unused)
{
	struct tshare_region *handle = ts_region_handle(self);
	struct tshare_region_info info;
	int err;

	(void)unused;
	if (!handle)
		return NULL;
	err = tshare_region_get_info(handle, &info);
	return err < 0 ? ts_raise(err, NULL) : ts_info_new(&info);
}

static PyObject *region_unlink(PyObject *self, PyObject *unused)
{
	PyThreadState *state;
	struct tshare_region *handle = ts_region_handle(self);
	struct tshare_ctx *ctx;
	PyObject *name;
	int err;

	(void)unused;
	if (!handle)
		return NULL;
	ctx = ts_session();
	if (!ctx)
		return NULL;
	if (!*tshare_region_name(handle)) {
		PyErr_SetString(PyExc_ValueError, "name: the region has none");
		return NULL;
	}
	/* close() may come while the GIL is released. */
	tshare_region_ref(handle);
	state = PyEval_SaveThread();
	err = tshare_unlink(ctx, tshare_region_name(handle));
	PyEval_RestoreThread(state);
	if (err < 0) {
		name = ts_text(tshare_region_name(handle));
		if (name)
			ts_raise(err, name);
		Py_XDECREF(name);
	}
	tshare_region_unref(handle);
	if (err < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *region_close(PyObject *self, PyObject *unused)
{
	PyThreadState *state;
	struct ts_region *region = (struct ts_region *)self;
	struct tshare_region *handle = region->handle;

	(void)unused;
	region->handle = NULL;
	state = PyEval_SaveThread();
	tshare_region_unref(handle);
	PyEval_RestoreThread(state);
	Py_RETURN_NONE;
}

static PyObject *region_enter(PyObject *self, PyObject *unused)
{
	(void)unused;
	if (!ts_region_handle(self))
		return NULL;
	Py_INCREF(self);
	return self;
}

static PyObject *region_exit(PyObject *self, PyObject *args)
{
	(void)args;
	return region_close(self, NULL);
}

static PyObject *region_repr(PyObject *self)
{
	struct tshare_region *handle = ((struct ts_region *)self)->handle;
	PyObject *name, *repr;

	if (!handle)
		return PyUnicode_FromString("<tshare.Region closed>");
	name = get_name(self, NULL);
	if (!name)
		return NULL;
	repr = PyUnicode_FromFormat("<tshare.Region name=%R size=%llu tensors=%zu%s>", name,
				    (unsigned long long)tshare_region_size(handle),
				    tshare_region_tensor_count(handle),
				    tshare_region_readonly(handle) ? " readonly" : "");
	Py_DECREF(name);
	return repr;
}

static PyGetSetDef region_getset[] = {
	{ "name", get_name, NULL, "Name at the time of create() or open(), or None.", NULL },
	{ "size", get_size, NULL, "Bytes, a multiple of the page size.", NULL },
	{ "id", get_id, NULL, "Unique among the backend's regions alive.", NULL },
	{ "readonly", get_readonly, NULL, "Whether this process may not write the memory.", NULL },
	{ "backend", get_backend, NULL, "Whose the descriptor is: \"kmod\" or \"shm\".", NULL },
	{ "generation", ts_region_generation, NULL, "How often publish() was called so far.",
	  NULL },
	{ "closed", get_closed, NULL, "Whether close() was called.", NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyMethodDef region_methods[] = {
	{ "create", TS_FASTCALL(region_create), METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
	  "create(name=None, tensors=None, *, size=None, mode=0o600, persist=False, node=None, "
	  "dma32=False, contiguous=False)\n--\n\n"
	  "Make a region of tensors.\n\n"
	  "tensors maps each name to (shape, dtype, strides=None, offset=None), the last two in\n"
	  "bytes, of a tensor of zeros, to an array that is copied, or to a mapping of such, whose\n"
	  "keys become \"name/key\". Arrays that share memory share it in the region. By default\n"
	  "tensors follow one another and the region is as large as they need." },
	{ "open", TS_FASTCALL(region_open), METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
	  "open(name, *, readonly=False)\n--\n\nThe region of that name." },
	{ "from_fd", TS_FASTCALL(region_from_fd), METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
	  "from_fd(fd, *, readonly=False)\n--\n\n"
	  "The region behind another process's descriptor, which stays the caller's." },
	{ "keys", region_keys, METH_NOARGS, "keys($self, /)\n--\n\nThe names of the tensors." },
	{ "values", region_values, METH_NOARGS, "values($self, /)\n--\n\nThe tensors." },
	{ "items", region_items, METH_NOARGS, "items($self, /)\n--\n\nNames and tensors." },
	{ "get", TS_FASTCALL(region_get), METH_FASTCALL | METH_KEYWORDS,
	  "get($self, key, default=None)\n--\n\nThe tensor of that name, or default." },
	{ "fileno", region_fileno, METH_NOARGS,
	  "fileno($self, /)\n--\n\n"
	  "The file descriptor that another process can import; owned by the region." },
	{ "info", region_info, METH_NOARGS,
	  "info($self, /)\n--\n\nWhat the backend knows of it now, a RegionInfo." },
	{ "publish", ts_region_publish, METH_NOARGS,
	  "publish($self, /)\n--\n\n"
	  "Tell all who wait that there is something new; the new generation." },
	{ "wait", TS_FASTCALL(ts_region_wait), METH_FASTCALL | METH_KEYWORDS,
	  "wait($self, /, seen, timeout=None, *, spin=0.0)\n--\n\n"
	  "Sleep until the generation is above seen, and return it.\n\n"
	  "Raises TimeoutError after timeout seconds, and OSError with errno EOWNERDEAD when all\n"
	  "other publishers are gone, and ValueError when close() is called meanwhile. Looks again\n"
	  "and again for the first spin seconds." },
	{ "wait_async", TS_FASTCALL(ts_region_wait_async), METH_FASTCALL | METH_KEYWORDS,
	  "wait_async($self, /, seen, timeout=None)\n--\n\n"
	  "wait() for asyncio: to be awaited, and cancelled like any other task." },
	{ "unlink", region_unlink, METH_NOARGS,
	  "unlink($self, /)\n--\n\nRemove the name; the memory stays for its users." },
	{ "close", region_close, METH_NOARGS,
	  "close($self, /)\n--\n\n"
	  "Let go of the region. Tensors that were taken from it stay as they are; a wait() of\n"
	  "another thread on this object ends with ValueError." },
	{ "__enter__", region_enter, METH_NOARGS, NULL },
	{ "__exit__", region_exit, METH_VARARGS, NULL },
	{ "__reduce_ex__", ts_region_reduce, METH_O, NULL },
	{ "__copy__", ts_refuse_copy, METH_NOARGS, NULL },
	{ "__deepcopy__", ts_refuse_copy, METH_O, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyMemberDef region_members[] = {
	{ "__weaklistoffset__", T_PYSSIZET, offsetof(struct ts_region, weakrefs), READONLY, NULL },
	{ NULL, 0, 0, 0, NULL },
};

static PyType_Slot region_slots[] = {
	{ Py_tp_doc, "Shared memory that holds tensors, a mapping of their names to them." },
	{ Py_tp_dealloc, region_dealloc },
	{ Py_tp_repr, region_repr },
	{ Py_tp_getset, region_getset },
	{ Py_tp_methods, region_methods },
	{ Py_tp_members, region_members },
	{ Py_tp_iter, region_iter },
	{ Py_mp_length, region_length },
	{ Py_mp_subscript, region_subscript },
	{ Py_sq_contains, region_contains },
	{ 0, NULL },
};

static PyType_Spec region_spec = {
	.name = "tshare.Region",
	.basicsize = sizeof(struct ts_region),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = region_slots,
};

int ts_region_init(PyObject *module)
{
	ts_region_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &region_spec, NULL);
	return ts_region_type ? PyModule_AddType(module, ts_region_type) : -1;
}
