// SPDX-License-Identifier: MIT
/*
 * tshare.Entry: an entry of a pool, a mapping of names to tensors.
 *
 * The object and each of its tensors hold a reference to the library's entry. The pool may reuse its
 * memory after the last of them.
 */
#include "entry.h"

#include <errno.h>
#include <structmember.h>

#include "args.h"
#include "docstrings.h"
#include "errors.h"
#include "gil.h"
#include "mapping.h"
#include "stream.h"
#include "tensor.h"

struct ts_entry {
	PyObject ob_base;
	struct tshare_entry *handle; /* NULL when closed */
	bool queued;		     /* a CUDA stream finishes it */
	PyObject *weakrefs;
};

static PyTypeObject *ts_entry_type;

PyObject *ts_entry_wrap(struct tshare_entry *handle)
{
	struct ts_entry *self = PyObject_New(struct ts_entry, ts_entry_type);

	if (!self) {
		ts_entry_unref(handle);
		return NULL;
	}
	self->handle = handle;
	self->queued = false;
	self->weakrefs = NULL;
	return (PyObject *)self;
}

/* The handle, borrowed; NULL with ValueError set if the entry is closed. */
static struct tshare_entry *handle_of(PyObject *self)
{
	struct tshare_entry *handle = ((struct ts_entry *)self)->handle;

	if (!handle)
		PyErr_SetString(PyExc_ValueError, "entry is closed");
	return handle;
}

static void drop(struct ts_entry *entry)
{
	struct tshare_entry *handle = entry->handle;

	entry->handle = NULL;
	ts_entry_unref(handle);
}

static void entry_dealloc(PyObject *self)
{
	struct ts_entry *entry = (struct ts_entry *)self;
	struct tshare_entry *handle = entry->handle;
	PyTypeObject *type = Py_TYPE(self);

	if (entry->weakrefs)
		PyObject_ClearWeakRefs(self);
	PyObject_Free(self);
	Py_DECREF(type);
	ts_entry_unref(handle);
}

/* The mapping */

/* The tensor of that name; NULL without an error set if there is none. */
static PyObject *find(struct tshare_entry *handle, PyObject *key)
{
	struct tshare_tensor *tensor;
	PyObject *keep = NULL;
	const char *name;
	int err;

	if (!PyUnicode_Check(key))
		return NULL;
	name = ts_name_arg(key, "key", &keep);
	if (!name) {
		/* No tensor has a name with NUL in it. */
		if (PyErr_ExceptionMatches(PyExc_ValueError))
			PyErr_Clear();
		return NULL;
	}
	err = tshare_entry_find_tensor(handle, name, &tensor);
	Py_XDECREF(keep);
	if (err == -ENOENT)
		return NULL;
	return err < 0 ? ts_raise(err, NULL) : ts_tensor_wrap(tensor);
}

static PyObject *entry_subscript(PyObject *self, PyObject *key)
{
	struct tshare_entry *handle = handle_of(self);
	PyObject *tensor = handle ? find(handle, key) : NULL;

	return tensor || PyErr_Occurred() ? tensor : ts_raise_key(key);
}

static PyObject *entry_get(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			   PyObject *kwnames)
{
	static const char *const names[] = { "key", "default" };
	struct tshare_entry *handle = handle_of(self);
	PyObject *given[2], *tensor;

	if (!handle || ts_parse("get", args, nargs, kwnames, names, 2, 2, given) < 0 ||
	    ts_need_arg(given[0], "get", "key") < 0)
		return NULL;
	tensor = find(handle, given[0]);
	if (tensor || PyErr_Occurred())
		return tensor;
	return Py_NewRef(given[1] ? given[1] : Py_None);
}

static Py_ssize_t entry_length(PyObject *self)
{
	struct tshare_entry *handle = handle_of(self);

	return handle ? (Py_ssize_t)tshare_entry_get_tensor_count(handle) : -1;
}

/* New reference to a tuple of the tensors' names. */
static PyObject *names_of(struct tshare_entry *handle)
{
	size_t count = tshare_entry_get_tensor_count(handle), i;
	PyObject *names = PyTuple_New(count), *name;
	const char *text;

	for (i = 0; names && i < count; i++) {
		/* Fails only for another index. */
		tshare_entry_get_tensor_name(handle, i, &text);
		name = ts_text(text);
		if (!name || PyTuple_SetItem(names, i, name) < 0)
			Py_CLEAR(names);
	}
	return names;
}

static int entry_contains(PyObject *self, PyObject *key)
{
	struct tshare_entry *handle = handle_of(self);
	PyObject *tensor = handle ? find(handle, key) : NULL;

	Py_XDECREF(tensor);
	return PyErr_Occurred() ? -1 : !!tensor;
}

static PyObject *entry_iter(PyObject *self)
{
	struct tshare_entry *handle = handle_of(self);
	PyObject *names = handle ? names_of(handle) : NULL;
	PyObject *iterator = names ? PyObject_GetIter(names) : NULL;

	Py_XDECREF(names);
	return iterator;
}

static PyObject *get_closed(PyObject *self, void *Py_UNUSED(closure))
{
	return PyBool_FromLong(!((struct ts_entry *)self)->handle);
}

/* The end */

static PyObject *entry_finish(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_entry *handle = handle_of(self);
	int err;

	if (!handle)
		return NULL;
	err = tshare_entry_finish(handle);
	if (err < 0)
		return ts_raise(err, NULL);
	Py_RETURN_NONE;
}

typedef int (*on_stream)(struct tshare_entry *entry, const struct tshare_cuda_options *options,
			 struct CUstream_st *stream);

/* 0, or -1 with an error set. The function may keep a reference of its own. */
static int call_on_stream(PyObject *self, const struct ts_on_stream *on, on_stream function)
{
	/* The arguments' methods may have closed the entry. */
	struct tshare_entry *handle = handle_of(self);
	PyThreadState *state;
	int err;

	if (!handle)
		return -1;
	/* close() may come while the GIL is released. */
	tshare_entry_ref(handle);
	state = PyEval_SaveThread();
	err = function(handle, &on->options, on->stream);
	PyEval_RestoreThread(state);
	if (err)
		ts_raise(err, NULL);
	if (err || function == tshare_entry_finish_on)
		ts_entry_unref(handle);
	return err ? -1 : 0;
}

static PyObject *entry_finish_on(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
				 PyObject *kwnames)
{
	struct ts_on_stream on;

	if (!handle_of(self) || ts_on_stream_args("finish_on", args, nargs, kwnames, &on) < 0 ||
	    call_on_stream(self, &on, tshare_entry_finish_on) < 0)
		return NULL;
	((struct ts_entry *)self)->queued = true;
	Py_RETURN_NONE;
}

/* The CUDA stream gets a reference beside the object's, which ends here. */
static PyObject *entry_release_on(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
				  PyObject *kwnames)
{
	struct ts_on_stream on;

	if (!handle_of(self) || ts_on_stream_args("release_on", args, nargs, kwnames, &on) < 0 ||
	    call_on_stream(self, &on, tshare_entry_release_on) < 0)
		return NULL;
	drop((struct ts_entry *)self);
	Py_RETURN_NONE;
}

static PyObject *entry_close(PyObject *self, PyObject *Py_UNUSED(unused))
{
	drop((struct ts_entry *)self);
	Py_RETURN_NONE;
}

static PyObject *entry_enter(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return handle_of(self) ? Py_NewRef(self) : NULL;
}

/* Finishes an entry that is made, unless the block has finished, closed or failed it. */
static PyObject *entry_exit(PyObject *self, PyObject *args)
{
	struct ts_entry *entry = (struct ts_entry *)self;
	bool failed = PyTuple_Size(args) > 0 && PyTuple_GetItem(args, 0) != Py_None;
	int err = 0;

	if (entry->handle && !failed && !entry->queued && !tshare_entry_is_finished(entry->handle))
		err = tshare_entry_finish(entry->handle);
	if (err < 0)
		ts_raise(err, NULL);
	drop(entry);
	return err < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *entry_reduce(PyObject *self, PyObject *Py_UNUSED(unused))
{
	PyErr_Format(PyExc_TypeError,
		     "%R can't be pickled or copied (send its key, and open the pool where it is "
		     "needed)",
		     Py_TYPE(self));
	return NULL;
}

static PyObject *entry_repr(PyObject *self)
{
	struct ts_entry *entry = (struct ts_entry *)self;
	PyObject *names, *repr;
	const char *state = "";

	if (!entry->handle)
		return PyUnicode_FromString("<tshare.Entry closed>");
	if (!tshare_entry_is_finished(entry->handle))
		state = entry->queued ? " queued" : " unfinished";
	names = names_of(entry->handle);
	repr = names ? PyUnicode_FromFormat("<tshare.Entry %R%s>", names, state) : NULL;
	Py_XDECREF(names);
	return repr;
}

static PyGetSetDef entry_getset[] = {
	{ "closed", get_closed, NULL, DOC_Entry_closed, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyMethodDef entry_methods[] = {
	{ "keys", ts_mapping_keys, METH_NOARGS, DOC_Entry_keys },
	{ "values", ts_mapping_values, METH_NOARGS, DOC_Entry_values },
	{ "items", ts_mapping_items, METH_NOARGS, DOC_Entry_items },
	{ "get", TS_FASTCALL(entry_get), METH_FASTCALL | METH_KEYWORDS, DOC_Entry_get },
	{ "finish", entry_finish, METH_NOARGS, DOC_Entry_finish },
	{ "finish_on", TS_FASTCALL(entry_finish_on), METH_FASTCALL | METH_KEYWORDS,
	  DOC_Entry_finish_on },
	{ "release_on", TS_FASTCALL(entry_release_on), METH_FASTCALL | METH_KEYWORDS,
	  DOC_Entry_release_on },
	{ "close", entry_close, METH_NOARGS, DOC_Entry_close },
	{ "__enter__", entry_enter, METH_NOARGS, DOC_Entry___enter__ },
	{ "__exit__", entry_exit, METH_VARARGS, DOC_Entry___exit__ },
	{ "__reduce__", entry_reduce, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyMemberDef entry_members[] = {
	{ "__weaklistoffset__", T_PYSSIZET, offsetof(struct ts_entry, weakrefs), READONLY, NULL },
	{ NULL, 0, 0, 0, NULL },
};

static PyType_Slot entry_slots[] = {
	{ Py_tp_doc, DOC_Entry },
	{ Py_tp_dealloc, entry_dealloc },
	{ Py_tp_repr, entry_repr },
	{ Py_tp_getset, entry_getset },
	{ Py_tp_methods, entry_methods },
	{ Py_tp_members, entry_members },
	{ Py_tp_iter, entry_iter },
	{ Py_mp_length, entry_length },
	{ Py_mp_subscript, entry_subscript },
	{ Py_sq_contains, entry_contains },
	{ 0, NULL },
};

static PyType_Spec entry_spec = {
	.name = "tshare.Entry",
	.basicsize = sizeof(struct ts_entry),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = entry_slots,
};

int ts_entry_init(PyObject *module)
{
	ts_entry_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &entry_spec, NULL);
	return ts_entry_type ? PyModule_AddType(module, ts_entry_type) : -1;
}
