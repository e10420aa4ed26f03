// SPDX-License-Identifier: MIT
/* The type tshare.Region: its attributes and its methods. */
#include "region_type.h"

#include <string.h>
#include <structmember.h>

#include "args.h"
#include "docstrings.h"
#include "errors.h"
#include "generation.h"
#include "gil.h"
#include "info.h"
#include "mapping.h"
#include "names.h"
#include "pickling.h"
#include "pin.h"
#include "region.h"
#include "region_create.h"
#include "region_mapping.h"
#include "region_memory.h"
#include "region_open.h"
#include "stream.h"

static void region_dealloc(PyObject *self)
{
	struct ts_region *region = (struct ts_region *)self;
	struct tshare_region *handle = region->handle;
	struct tshare_waiter *waiters[TS_WAITERS];
	PyTypeObject *type = Py_TYPE(self);
	PyThreadState *state;
	int i;

	if (region->weakrefs)
		PyObject_ClearWeakRefs(self);
	memcpy(waiters, region->waiters, sizeof(waiters));
	PyObject_Free(self);
	Py_DECREF(type);
	state = ts_gil_release();
	for (i = 0; i < TS_WAITERS; i++)
		tshare_waiter_unref(waiters[i]);
	tshare_region_unref(handle);
	ts_gil_restore(state);
}

/* Opening a region */

static PyObject *region_open(PyObject *Py_UNUSED(type), PyObject *const *args, Py_ssize_t nargs,
			     PyObject *kwnames)
{
	struct tshare_region *region = ts_open_region(args, nargs, kwnames, NULL);

	return region ? ts_region_wrap(region) : NULL;
}

static PyObject *region_from_fd(PyObject *Py_UNUSED(type), PyObject *const *args, Py_ssize_t nargs,
				PyObject *kwnames)
{
	struct tshare_region *region = ts_import_region(args, nargs, kwnames);

	return region ? ts_region_wrap(region) : NULL;
}

/* Attributes and other methods */

static PyObject *get_name(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_region *handle = ts_region_handle(self);

	if (!handle)
		return NULL;
	if (!*tshare_region_get_name(handle))
		Py_RETURN_NONE;
	return ts_text(tshare_region_get_name(handle));
}

static PyObject *get_size(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_region *handle = ts_region_handle(self);

	return handle ? PyLong_FromUnsignedLongLong(tshare_region_get_size(handle)) : NULL;
}

static PyObject *get_id(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_region *handle = ts_region_handle(self);

	return handle ? PyLong_FromUnsignedLongLong(tshare_region_get_id(handle)) : NULL;
}

static PyObject *get_readonly(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_region *handle = ts_region_handle(self);

	return handle ? PyBool_FromLong(tshare_region_is_readonly(handle)) : NULL;
}

static PyObject *get_backend(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_region *handle = ts_region_handle(self);

	return handle ? PyUnicode_FromString(tshare_region_get_backend(handle)) : NULL;
}

static PyObject *get_closed(PyObject *self, void *Py_UNUSED(closure))
{
	return PyBool_FromLong(!((struct ts_region *)self)->handle);
}

static PyObject *region_fileno(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_region *handle = ts_region_handle(self);

	return handle ? PyLong_FromLong(tshare_region_get_fd(handle)) : NULL;
}

static PyObject *region_export(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			       PyObject *kwnames)
{
	static const char *const names[] = { "offset", "size", "readonly" };
	struct tshare_region *handle = ts_region_handle(self);
	int64_t offset = 0, size = 0;
	PyObject *given[3];
	bool readonly;
	int fd, err;

	if (!handle)
		return NULL;
	/* The arguments may run Python code that closes the region. */
	tshare_region_ref(handle);
	if (ts_parse("export", args, nargs, kwnames, names, 2, 3, given) < 0 ||
	    (given[0] && ts_int_arg(given[0], "offset", 0, INT64_MAX, &offset) < 0) ||
	    (!ts_none(given[1]) && ts_int_arg(given[1], "size", 1, INT64_MAX, &size) < 0) ||
	    ts_bool_arg(given[2], "readonly", &readonly) < 0) {
		ts_region_unref(handle);
		return NULL;
	}
	err = tshare_region_export(handle, offset, size, readonly ? TSHARE_READONLY : 0, &fd);
	ts_region_unref(handle);
	return err < 0 ? ts_raise(err, NULL) : PyLong_FromLong(fd);
}

static PyObject *region_info(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_region *handle = ts_region_handle(self);
	struct tshare_region_info info = { .size = sizeof(info) };
	int err;

	if (!handle)
		return NULL;
	err = tshare_region_get_info(handle, &info);
	return err < 0 ? ts_raise(err, NULL) : ts_info_new(&info);
}

static PyObject *region_unlink(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_region *handle = ts_region_handle(self);

	return handle ? ts_unlink(handle) : NULL;
}

static PyObject *region_finish(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			       PyObject *kwnames)
{
	struct tshare_region *handle = ts_region_handle(self);

	return handle ? ts_finish(handle, args, nargs, kwnames) : NULL;
}

static PyObject *region_pin(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			    PyObject *kwnames)
{
	struct tshare_region *handle = ts_region_handle(self);

	return handle ? ts_pin(handle, args, nargs, kwnames) : NULL;
}

static PyObject *region_close(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_waiter *waiters[TS_WAITERS];
	PyThreadState *state;
	struct ts_region *region = (struct ts_region *)self;
	struct tshare_region *handle = region->handle;
	int i;

	region->handle = NULL;
	memcpy(waiters, region->waiters, sizeof(waiters));
	memset(region->waiters, 0, sizeof(region->waiters));
	state = PyEval_SaveThread();
	for (i = 0; i < TS_WAITERS; i++) {
		if (waiters[i])
			tshare_waiter_cancel(waiters[i]);
		tshare_waiter_unref(waiters[i]);
	}
	tshare_region_unref(handle);
	PyEval_RestoreThread(state);
	Py_RETURN_NONE;
}

static PyObject *region_enter(PyObject *self, PyObject *Py_UNUSED(unused))
{
	if (!ts_region_handle(self))
		return NULL;
	Py_INCREF(self);
	return self;
}

static PyObject *region_exit(PyObject *self, PyObject *Py_UNUSED(args))
{
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
				    (unsigned long long)tshare_region_get_size(handle),
				    tshare_region_get_tensor_count(handle),
				    tshare_region_is_readonly(handle) ? " readonly" : "");
	Py_DECREF(name);
	return repr;
}

static PyGetSetDef region_getset[] = {
	{ "name", get_name, NULL, DOC_Region_name, NULL },
	{ "size", get_size, NULL, DOC_Region_size, NULL },
	{ "id", get_id, NULL, DOC_Region_id, NULL },
	{ "readonly", get_readonly, NULL, DOC_Region_readonly, NULL },
	{ "backend", get_backend, NULL, DOC_Region_backend, NULL },
	{ "generation", ts_region_generation, NULL, DOC_Region_generation, NULL },
	{ "closed", get_closed, NULL, DOC_Region_closed, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyMethodDef region_methods[] = {
	{ "create", TS_FASTCALL(ts_region_create), METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
	  DOC_Region_create },
	{ "open", TS_FASTCALL(region_open), METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
	  DOC_Region_open },
	{ "from_fd", TS_FASTCALL(region_from_fd), METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
	  DOC_Region_from_fd },
	{ "keys", ts_mapping_keys, METH_NOARGS, DOC_Region_keys },
	{ "values", ts_mapping_values, METH_NOARGS, DOC_Region_values },
	{ "items", ts_mapping_items, METH_NOARGS, DOC_Region_items },
	{ "get", TS_FASTCALL(ts_region_get), METH_FASTCALL | METH_KEYWORDS, DOC_Region_get },
	{ "fileno", region_fileno, METH_NOARGS, DOC_Region_fileno },
	{ "export", TS_FASTCALL(region_export), METH_FASTCALL | METH_KEYWORDS, DOC_Region_export },
	{ "read", TS_FASTCALL(ts_region_read), METH_FASTCALL | METH_KEYWORDS, DOC_Region_read },
	{ "info", region_info, METH_NOARGS, DOC_Region_info },
	{ "announce", ts_region_announce, METH_NOARGS, DOC_Region_announce },
	{ "publish", ts_region_publish, METH_NOARGS, DOC_Region_publish },
	{ "publish_once", ts_region_publish_once, METH_NOARGS, DOC_Region_publish_once },
	{ "has_publishers", ts_region_has_publishers, METH_NOARGS, DOC_Region_has_publishers },
	{ "wait", TS_FASTCALL(ts_region_wait), METH_FASTCALL | METH_KEYWORDS, DOC_Region_wait },
	{ "publish_on", TS_FASTCALL(ts_region_publish_on), METH_FASTCALL | METH_KEYWORDS,
	  DOC_Region_publish_on },
	{ "cuda_counter", TS_FASTCALL(ts_region_cuda_counter), METH_FASTCALL | METH_KEYWORDS,
	  DOC_Region_cuda_counter },
	{ "wait_on", TS_FASTCALL(ts_region_wait_on), METH_FASTCALL | METH_KEYWORDS,
	  DOC_Region_wait_on },
	{ "generations", TS_FASTCALL(ts_region_generations), METH_FASTCALL | METH_KEYWORDS,
	  DOC_Region_generations },
	{ "event_fileno", ts_region_event_fileno, METH_NOARGS, DOC_Region_event_fileno },
	{ "_dup_async_fd", ts_region_dup_async_fd, METH_NOARGS, NULL },
	{ "wait_async", TS_FASTCALL(ts_region_wait_async), METH_FASTCALL | METH_KEYWORDS,
	  DOC_Region_wait_async },
	{ "finish", TS_FASTCALL(region_finish), METH_FASTCALL | METH_KEYWORDS, DOC_Region_finish },
	{ "unlink", region_unlink, METH_NOARGS, DOC_Region_unlink },
	{ "pin", TS_FASTCALL(region_pin), METH_FASTCALL | METH_KEYWORDS, DOC_Region_pin },
	{ "close", region_close, METH_NOARGS, DOC_Region_close },
	{ "__enter__", region_enter, METH_NOARGS, DOC_Region___enter__ },
	{ "__exit__", region_exit, METH_VARARGS, DOC_Region___exit__ },
	{ "__reduce__", ts_region_reduce, METH_NOARGS, NULL },
	{ "__copy__", ts_refuse_copy, METH_NOARGS, NULL },
	{ "__deepcopy__", ts_refuse_copy, METH_O, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyMemberDef region_members[] = {
	{ "__weaklistoffset__", T_PYSSIZET, offsetof(struct ts_region, weakrefs), READONLY, NULL },
	{ NULL, 0, 0, 0, NULL },
};

static PyType_Slot region_slots[] = {
	{ Py_tp_doc, DOC_Region },
	{ Py_tp_dealloc, region_dealloc },
	{ Py_tp_repr, region_repr },
	{ Py_tp_getset, region_getset },
	{ Py_tp_methods, region_methods },
	{ Py_tp_members, region_members },
	{ Py_tp_iter, ts_region_iter },
	{ Py_bf_getbuffer, ts_region_getbuffer },
	{ Py_bf_releasebuffer, ts_region_releasebuffer },
	{ Py_mp_length, ts_region_length },
	{ Py_mp_subscript, ts_region_subscript },
	{ Py_sq_contains, ts_region_contains },
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
