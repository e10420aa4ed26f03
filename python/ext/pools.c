// SPDX-License-Identifier: MIT
/* tshare.Pool: tensors under keys. */
#include "pools.h"

#include <errno.h>
#include <structmember.h>

#include "args.h"
#include "call.h"
#include "docstrings.h"
#include "entry.h"
#include "errors.h"
#include "generation.h"
#include "gil.h"
#include "mapping.h"
#include "pools_open.h"
#include "record.h"
#include "region.h"
#include "specs.h"

struct ts_pool {
	PyObject ob_base;
	struct tshare_pool *handle; /* NULL when closed */
	PyObject *name;
	bool ends; /* the names end with this object */
	PyObject *weakrefs;
};

static PyTypeObject *ts_pool_type;
static PyObject *info_type;

/* Making */

/* Takes over the caller's reference to @handle, on failure too. */
static PyObject *wrap(struct tshare_pool *handle, PyObject *name, bool ends)
{
	struct ts_pool *self = PyObject_New(struct ts_pool, ts_pool_type);

	if (!self) {
		ts_pool_unref(handle);
		return NULL;
	}
	self->handle = handle;
	self->name = Py_NewRef(name);
	self->ends = ends;
	self->weakrefs = NULL;
	return (PyObject *)self;
}

static PyObject *pool_create(PyObject *Py_UNUSED(type), PyObject *const *args, Py_ssize_t nargs,
			     PyObject *kwnames)
{
	struct tshare_pool *handle;
	PyObject *name;
	bool ends;

	handle = ts_create_pool(args, nargs, kwnames, &name, &ends);
	return handle ? wrap(handle, name, ends) : NULL;
}

static PyObject *pool_open(PyObject *Py_UNUSED(type), PyObject *const *args, Py_ssize_t nargs,
			   PyObject *kwnames)
{
	struct tshare_pool *handle;
	PyObject *name;

	handle = ts_open_pool(args, nargs, kwnames, &name);
	return handle ? wrap(handle, name, false) : NULL;
}

/* The handle, borrowed; NULL with ValueError set if the pool is closed. */
static struct tshare_pool *handle_of(PyObject *self)
{
	struct tshare_pool *handle = ((struct ts_pool *)self)->handle;

	if (!handle)
		PyErr_SetString(PyExc_ValueError, "pool is closed");
	return handle;
}

/* Attributes */

static PyObject *get_name(PyObject *self, void *Py_UNUSED(closure))
{
	return Py_NewRef(((struct ts_pool *)self)->name);
}

static PyObject *get_closed(PyObject *self, void *Py_UNUSED(closure))
{
	return PyBool_FromLong(!((struct ts_pool *)self)->handle);
}

static PyObject *get_region(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_pool *handle = handle_of(self);

	return handle ? ts_region_wrap(tshare_region_ref(tshare_pool_get_region(handle))) : NULL;
}

static const struct ts_record_field info_fields[] = {
	{ "slots", DOC_PoolInfo_slots },
	{ "slot_size", DOC_PoolInfo_slot_size },
	{ "entries", DOC_PoolInfo_entries },
	{ "used_slots", DOC_PoolInfo_used_slots },
	{ "held_slots", DOC_PoolInfo_held_slots },
	{ "seat", DOC_PoolInfo_seat },
	{ NULL, NULL },
};

static PyObject *pool_info(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_pool_info info = { .size = sizeof(info) };
	struct tshare_pool *handle = handle_of(self);
	int err;

	if (!handle)
		return NULL;
	err = tshare_pool_get_info(handle, &info);
	if (err < 0)
		return ts_raise(err, NULL);
	return ts_record_new(info_type,
			     (PyObject *[]){
				     PyLong_FromUnsignedLong(info.slots),
				     PyLong_FromUnsignedLongLong(info.slot_size),
				     PyLong_FromUnsignedLong(info.entries),
				     PyLong_FromUnsignedLong(info.used_slots),
				     PyLong_FromUnsignedLong(info.held_slots),
				     PyLong_FromLong(info.seat),
			     },
			     6);
}

/* Keys */

struct key {
	const char *bytes;
	Py_ssize_t size;
};

/* The bytes of a key, str or bytes, which live as long as @obj: 0, or -1 with an error set. */
static int key_arg(PyObject *obj, struct key *key)
{
	if (PyUnicode_Check(obj)) {
		key->bytes = PyUnicode_AsUTF8AndSize(obj, &key->size);
		if (!key->bytes)
			return -1;
	} else if (PyBytes_Check(obj)) {
		key->bytes = PyBytes_AsString(obj);
		key->size = PyBytes_Size(obj);
	} else {
		PyErr_Format(PyExc_TypeError, "key: must be str or bytes, not %R", Py_TYPE(obj));
		return -1;
	}
	if (key->size >= 1 && key->size <= TSHARE_POOL_KEY_MAX)
		return 0;
	PyErr_Format(PyExc_ValueError, "key: has %zd bytes, not 1 to %d", key->size,
		     TSHARE_POOL_KEY_MAX);
	return -1;
}

/* Getting */

/* The entry, or NULL, without an error set if there is none. */
static PyObject *get_entry(struct tshare_pool *handle, const struct key *key)
{
	struct tshare_entry *entry;
	int err;

	err = tshare_pool_get(handle, key->bytes, key->size, &entry);
	if (err == -ENOENT)
		return NULL;
	return err < 0 ? ts_raise(err, NULL) : ts_entry_wrap(entry);
}

static PyObject *find(PyObject *self, PyObject *obj)
{
	struct tshare_pool *handle;
	struct key key;

	if (key_arg(obj, &key) < 0)
		return NULL;
	handle = handle_of(self);
	return handle ? get_entry(handle, &key) : NULL;
}

static PyObject *pool_subscript(PyObject *self, PyObject *key)
{
	PyObject *entry = find(self, key);

	return entry || PyErr_Occurred() ? entry : ts_raise_key(key);
}

static PyObject *pool_get(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			  PyObject *kwnames)
{
	static const char *const names[] = { "key", "default" };
	PyObject *given[2], *entry;

	if (ts_parse("get", args, nargs, kwnames, names, 2, 2, given) < 0 ||
	    ts_need_arg(given[0], "get", "key") < 0)
		return NULL;
	entry = find(self, given[0]);
	if (entry || PyErr_Occurred())
		return entry;
	return Py_NewRef(given[1] ? given[1] : Py_None);
}

static int pool_contains(PyObject *self, PyObject *key)
{
	PyObject *entry = find(self, key);

	Py_XDECREF(entry);
	return PyErr_Occurred() ? -1 : !!entry;
}

/* Removing */

static int pool_assign(PyObject *self, PyObject *obj, PyObject *value)
{
	struct tshare_pool *handle;
	struct key key;
	int err;

	if (value) {
		PyErr_SetString(PyExc_TypeError,
				"a key can't be assigned to (delete it first, and put() arrays)");
		return -1;
	}
	if (key_arg(obj, &key) < 0)
		return -1;
	handle = handle_of(self);
	if (!handle)
		return -1;
	err = tshare_pool_remove(handle, key.bytes, key.size);
	if (err == -ENOENT)
		ts_raise_key(obj);
	else if (err < 0)
		ts_raise(err, NULL);
	return err < 0 ? -1 : 0;
}

static PyObject *pool_clear(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_pool *handle = handle_of(self);
	int err;

	if (!handle)
		return NULL;
	err = tshare_pool_clear(handle);
	if (err < 0)
		return ts_raise(err, NULL);
	Py_RETURN_NONE;
}

/* Making entries */

struct make_call {
	struct tshare_pool *handle;
	struct key key;
	const struct ts_specs *tensors;
	struct tshare_entry *entry;
};

static int make_piece(void *data, int64_t timeout)
{
	struct make_call *call = data;

	return tshare_pool_make(call->handle, call->key.bytes, call->key.size, call->tensors->specs,
				call->tensors->count, timeout == INT64_MAX ? -1 : timeout,
				&call->entry);
}

/* As ts_wait(), with the arguments of the calls below. */
static int make(PyObject *self, struct make_call *call, int64_t timeout)
{
	struct ts_pool *pool = (struct ts_pool *)self;
	int err;

	call->handle = handle_of(self);
	if (!call->handle)
		return 1;
	/* close() may come while the GIL is released. */
	tshare_pool_ref(call->handle);
	err = ts_wait(make_piece, call, timeout);
	if (err == -ECANCELED && !pool->handle) {
		PyErr_SetString(PyExc_ValueError, "pool: closed during the wait");
		err = 1;
	}
	ts_pool_unref(call->handle);
	return err;
}

/* Key, tensors and timeout: 0, or -1 with an error set. The caller closes the tensors. */
static int make_args(const char *method, const char *argument, PyObject *const *args,
		     Py_ssize_t nargs, PyObject *kwnames, struct key *key, struct ts_specs *tensors,
		     int64_t *timeout)
{
	const char *const names[] = { "key", argument, "timeout" };
	PyObject *given[3];

	if (ts_parse(method, args, nargs, kwnames, names, 3, 3, given) < 0 ||
	    ts_need_arg(given[0], method, "key") < 0 ||
	    ts_need_arg(given[1], method, argument) < 0 || key_arg(given[0], key) < 0)
		return -1;
	*timeout = INT64_MAX;
	if (!ts_none(given[2]) && ts_seconds_arg(given[2], "timeout", timeout) < 0)
		return -1;
	return ts_specs_open(given[1], argument, tensors);
}

static PyObject *raise_make(int err, const char *argument, const struct ts_specs *tensors)
{
	if (err > 0)
		return NULL;
	return ts_raise_of_create(err, NULL, argument, tensors->specs, tensors->count);
}

static PyObject *pool_make(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			   PyObject *kwnames)
{
	struct make_call call = { NULL };
	struct ts_specs tensors;
	PyObject *entry;
	int64_t timeout;
	int err;

	if (make_args("make", "tensors", args, nargs, kwnames, &call.key, &tensors, &timeout) < 0)
		return NULL;
	call.tensors = &tensors;
	err = make(self, &call, timeout);
	entry = err ? raise_make(err, "tensors", &tensors) : ts_entry_wrap(call.entry);
	ts_specs_close(&tensors);
	return entry;
}

/* Copies the arrays into a new entry. Called without the GIL. */
static int fill(struct tshare_entry *entry, const struct ts_specs *arrays)
{
	struct tshare_tensor *tensor;
	Py_ssize_t i;
	int err = 0;

	for (i = 0; i < arrays->count && !err; i++) {
		err = tshare_entry_get_tensor(entry, i, &tensor);
		if (err)
			break;
		err = tshare_tensor_write(tensor, arrays->entries[i].source->data,
					  arrays->entries[i].source->strides);
		tshare_tensor_unref(tensor);
	}
	return err ? err : tshare_entry_finish(entry);
}

static int need_arrays(const struct ts_specs *arrays)
{
	Py_ssize_t i;

	for (i = 0; i < arrays->count; i++) {
		if (arrays->entries[i].source)
			continue;
		PyErr_Format(PyExc_TypeError, "arrays: '%s' must be an array, not a tuple",
			     arrays->specs[i].name);
		return -1;
	}
	return 0;
}

/* Returns the entry that somebody else makes, or has made, or one that it makes itself. */
static PyObject *put(PyObject *self, struct make_call *call, int64_t timeout)
{
	struct tshare_pool *handle;
	PyThreadState *state;
	PyObject *entry;
	int err;

	/* An entry may come and go between two calls. */
	do {
		handle = handle_of(self);
		entry = handle ? get_entry(handle, &call->key) : NULL;
		if (entry || PyErr_Occurred())
			return entry;
		err = make(self, call, timeout);
	} while (err == -EEXIST);
	if (err)
		return raise_make(err, "arrays", call->tensors);
	state = PyEval_SaveThread();
	err = fill(call->entry, call->tensors);
	PyEval_RestoreThread(state);
	if (!err)
		return ts_entry_wrap(call->entry);
	ts_raise(err, NULL);
	ts_entry_unref(call->entry);
	return NULL;
}

static PyObject *pool_put(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			  PyObject *kwnames)
{
	struct make_call call = { NULL };
	PyObject *entry = NULL;
	struct ts_specs arrays;
	int64_t timeout;

	if (make_args("put", "arrays", args, nargs, kwnames, &call.key, &arrays, &timeout) < 0)
		return NULL;
	call.tensors = &arrays;
	if (!need_arrays(&arrays))
		entry = put(self, &call, timeout);
	ts_specs_close(&arrays);
	return entry;
}

/* The end */

static PyObject *pool_unlink(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_pool *handle = handle_of(self);
	int err;

	if (!handle)
		return NULL;
	err = tshare_pool_unlink(handle);
	if (err < 0)
		return ts_raise(err, ((struct ts_pool *)self)->name);
	Py_RETURN_NONE;
}

static PyObject *pool_cancel(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_pool *handle = handle_of(self);

	if (!handle)
		return NULL;
	tshare_pool_cancel(handle);
	Py_RETURN_NONE;
}

static PyObject *pool_close(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct ts_pool *pool = (struct ts_pool *)self;
	struct tshare_pool *handle = pool->handle;
	PyThreadState *state;

	pool->handle = NULL;
	if (handle) {
		state = PyEval_SaveThread();
		/* The names may be gone already. Entries keep the handle. */
		if (pool->ends)
			tshare_pool_unlink(handle);
		tshare_pool_cancel(handle);
		tshare_pool_unref(handle);
		PyEval_RestoreThread(state);
	}
	Py_RETURN_NONE;
}

static PyObject *pool_enter(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return handle_of(self) ? Py_NewRef(self) : NULL;
}

static PyObject *pool_exit(PyObject *self, PyObject *Py_UNUSED(args))
{
	return pool_close(self, NULL);
}

/* The same pool is opened where it arrives. */
static PyObject *pool_reduce(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return handle_of(self) ? ts_call("tshare._pickling", "reduce_pool", self) : NULL;
}

static PyObject *pool_repr(PyObject *self)
{
	struct ts_pool *pool = (struct ts_pool *)self;

	return PyUnicode_FromFormat("<tshare.Pool %R%s>", pool->name,
				    pool->handle ? "" : " closed");
}

static void pool_dealloc(PyObject *self)
{
	struct ts_pool *pool = (struct ts_pool *)self;
	struct tshare_pool *handle = pool->handle;
	PyTypeObject *type = Py_TYPE(self);

	if (pool->weakrefs)
		PyObject_ClearWeakRefs(self);
	Py_DECREF(pool->name);
	PyObject_Free(self);
	Py_DECREF(type);
	ts_pool_unref(handle);
}

static PyGetSetDef pool_getset[] = {
	{ "name", get_name, NULL, DOC_Pool_name, NULL },
	{ "region", get_region, NULL, DOC_Pool_region, NULL },
	{ "closed", get_closed, NULL, DOC_Pool_closed, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyMethodDef pool_methods[] = {
	{ "create", TS_FASTCALL(pool_create), METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
	  DOC_Pool_create },
	{ "open", TS_FASTCALL(pool_open), METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
	  DOC_Pool_open },
	{ "info", pool_info, METH_NOARGS, DOC_Pool_info },
	/* The type's own __getitem__() would have no docstring. */
	{ "__getitem__", pool_subscript, METH_O | METH_COEXIST, DOC_Pool___getitem__ },
	{ "get", TS_FASTCALL(pool_get), METH_FASTCALL | METH_KEYWORDS, DOC_Pool_get },
	{ "make", TS_FASTCALL(pool_make), METH_FASTCALL | METH_KEYWORDS, DOC_Pool_make },
	{ "put", TS_FASTCALL(pool_put), METH_FASTCALL | METH_KEYWORDS, DOC_Pool_put },
	{ "clear", pool_clear, METH_NOARGS, DOC_Pool_clear },
	{ "unlink", pool_unlink, METH_NOARGS, DOC_Pool_unlink },
	{ "cancel", pool_cancel, METH_NOARGS, DOC_Pool_cancel },
	{ "close", pool_close, METH_NOARGS, DOC_Pool_close },
	{ "__enter__", pool_enter, METH_NOARGS, DOC_Pool___enter__ },
	{ "__exit__", pool_exit, METH_VARARGS, DOC_Pool___exit__ },
	{ "__reduce__", pool_reduce, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyMemberDef pool_members[] = {
	{ "__weaklistoffset__", T_PYSSIZET, offsetof(struct ts_pool, weakrefs), READONLY, NULL },
	{ NULL, 0, 0, 0, NULL },
};

static PyType_Slot pool_slots[] = {
	{ Py_tp_doc, DOC_Pool },
	{ Py_tp_dealloc, pool_dealloc },
	{ Py_tp_repr, pool_repr },
	{ Py_tp_getset, pool_getset },
	{ Py_tp_methods, pool_methods },
	{ Py_tp_members, pool_members },
	/* Keys are in no order, and entries come and go: there is no iteration. */
	{ Py_mp_subscript, pool_subscript },
	{ Py_mp_ass_subscript, pool_assign },
	{ Py_sq_contains, pool_contains },
	{ 0, NULL },
};

static PyType_Spec pool_spec = {
	.name = "tshare.Pool",
	.basicsize = sizeof(struct ts_pool),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = pool_slots,
};

int ts_pools_init(PyObject *module)
{
	if (ts_entry_init(module) < 0)
		return -1;
	ts_pool_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &pool_spec, NULL);
	if (!ts_pool_type || PyModule_AddType(module, ts_pool_type) < 0)
		return -1;
	info_type = ts_record_type("PoolInfo", DOC_PoolInfo, info_fields);
	return info_type ? PyModule_AddObjectRef(module, "PoolInfo", info_type) : -1;
}
