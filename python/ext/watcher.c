// SPDX-License-Identifier: MIT
/* tshare.Watcher: waiting until a name leads to another region. */
#include "watcher.h"

#include <errno.h>
#include <structmember.h>

#include "args.h"
#include "call.h"
#include "docstrings.h"
#include "errors.h"
#include "generation.h"
#include "pickling.h"
#include "session.h"

struct ts_watcher {
	PyObject ob_base;
	struct tshare_watcher *handle; /* NULL when closed */
	PyObject *name;
	PyObject *weakrefs;
};

static PyTypeObject *ts_watcher_type;

PyObject *ts_watch(PyObject *Py_UNUSED(module), PyObject *name)
{
	struct ts_watcher *watcher;
	PyThreadState *state;
	PyObject *keep;
	const char *bytes = ts_name_arg(name, "name", &keep);
	struct tshare_ctx *ctx = bytes ? ts_session() : NULL;
	int err;

	watcher = ctx ? PyObject_New(struct ts_watcher, ts_watcher_type) : NULL;
	if (!watcher) {
		Py_XDECREF(keep);
		return NULL;
	}
	watcher->handle = NULL;
	watcher->name = Py_NewRef(name);
	watcher->weakrefs = NULL;
	state = PyEval_SaveThread();
	err = tshare_ctx_watch(ctx, bytes, &watcher->handle);
	PyEval_RestoreThread(state);
	Py_XDECREF(keep);
	if (!err)
		return (PyObject *)watcher;
	Py_DECREF(watcher);
	return ts_raise(err, name);
}

/* The handle, borrowed; NULL with ValueError set if the watcher is closed. */
static struct tshare_watcher *handle_of(PyObject *self)
{
	struct tshare_watcher *handle = ((struct ts_watcher *)self)->handle;

	if (!handle)
		PyErr_SetString(PyExc_ValueError, "watcher: is closed");
	return handle;
}

/* An id, or None for no region: 0, or -1 with an error set. */
static int seen_arg(PyObject *obj, uint64_t *seen)
{
	PyObject *number;

	*seen = 0;
	if (ts_none(obj))
		return 0;
	number = PyNumber_Index(obj);
	if (!number)
		return -1;
	*seen = PyLong_AsUnsignedLongLong(number);
	Py_DECREF(number);
	if (!PyErr_Occurred())
		return 0;
	PyErr_Format(PyExc_OverflowError, "seen: must be an id, of 64 bits, not %R", obj);
	return -1;
}

/* The arguments seen and timeout: 0, or -1 with an error set. */
static int parse_wait(const char *function, PyObject *const *args, Py_ssize_t nargs,
		      PyObject *kwnames, PyObject **given, uint64_t *seen, int64_t *timeout)
{
	static const char *const names[] = { "seen", "timeout" };

	if (ts_parse(function, args, nargs, kwnames, names, 2, 2, given) < 0 ||
	    seen_arg(given[0], seen) < 0)
		return -1;
	*timeout = INT64_MAX;
	return ts_none(given[1]) ? 0 : ts_seconds_arg(given[1], "timeout", timeout);
}

struct watch_call {
	struct tshare_watcher *handle;
	uint64_t seen;
	uint64_t id;
};

static int watch_piece(void *data, int64_t timeout)
{
	struct watch_call *call = data;

	return tshare_watcher_wait(call->handle, call->seen, timeout, &call->id);
}

static PyObject *watcher_wait(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			      PyObject *kwnames)
{
	struct ts_watcher *watcher = (struct ts_watcher *)self;
	struct watch_call call = { NULL, 0, 0 };
	PyObject *given[2];
	int64_t timeout;
	int err;

	if (parse_wait("wait", args, nargs, kwnames, given, &call.seen, &timeout) < 0)
		return NULL;
	call.handle = handle_of(self);
	if (!call.handle)
		return NULL;
	/* close() may come while the GIL is released. */
	tshare_watcher_ref(call.handle);
	err = ts_wait(watch_piece, &call, timeout);
	tshare_watcher_unref(call.handle);
	if (err == -ECANCELED && !watcher->handle) {
		PyErr_SetString(PyExc_ValueError, "watcher: closed during wait()");
		return NULL;
	}
	if (err)
		return err < 0 ? ts_raise(err, NULL) : NULL;
	if (!call.id)
		Py_RETURN_NONE;
	return PyLong_FromUnsignedLongLong(call.id);
}

/* Refuses wrong arguments now, before there is a coroutine that may never run. */
static PyObject *watcher_wait_async(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
				    PyObject *kwnames)
{
	PyObject *given[2];
	int64_t timeout;
	uint64_t seen;

	if (parse_wait("wait_async", args, nargs, kwnames, given, &seen, &timeout) < 0 ||
	    !handle_of(self))
		return NULL;
	return ts_call_module("tshare._waiting", "watch_async",
			      Py_BuildValue("OOO", self, given[0] ? given[0] : Py_None,
					    given[1] ? given[1] : Py_None));
}

static PyObject *watcher_cancel(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_watcher *handle = handle_of(self);

	if (!handle)
		return NULL;
	tshare_watcher_cancel(handle);
	Py_RETURN_NONE;
}

static PyObject *watcher_fileno(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_watcher *handle = handle_of(self);

	return handle ? PyLong_FromLong(tshare_watcher_get_event_fd(handle)) : NULL;
}

static PyObject *watcher_close(PyObject *self, PyObject *Py_UNUSED(args))
{
	struct ts_watcher *watcher = (struct ts_watcher *)self;
	struct tshare_watcher *handle = watcher->handle;

	watcher->handle = NULL;
	if (handle)
		tshare_watcher_cancel(handle);
	tshare_watcher_unref(handle);
	Py_RETURN_NONE;
}

static void drop_hold(PyObject *hold)
{
	tshare_watcher_unref(PyCapsule_GetPointer(hold, NULL));
}

/*
 * For tshare._waiting: an object that keeps the descriptor open and, after close(), readable for
 * coroutines that wait for it.
 */
static PyObject *watcher_hold(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_watcher *handle = handle_of(self);
	PyObject *hold = handle ? PyCapsule_New(handle, NULL, drop_hold) : NULL;

	if (hold)
		tshare_watcher_ref(handle);
	return hold;
}

static PyObject *watcher_enter(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return handle_of(self) ? Py_NewRef(self) : NULL;
}

static PyObject *get_closed(PyObject *self, void *Py_UNUSED(closure))
{
	return PyBool_FromLong(!((struct ts_watcher *)self)->handle);
}

static PyObject *get_name(PyObject *self, void *Py_UNUSED(closure))
{
	return Py_NewRef(((struct ts_watcher *)self)->name);
}

static PyObject *watcher_repr(PyObject *self)
{
	struct ts_watcher *watcher = (struct ts_watcher *)self;

	return PyUnicode_FromFormat("<tshare.Watcher %R%s>", watcher->name,
				    watcher->handle ? "" : " closed");
}

static void watcher_dealloc(PyObject *self)
{
	struct ts_watcher *watcher = (struct ts_watcher *)self;
	struct tshare_watcher *handle = watcher->handle;
	PyTypeObject *type = Py_TYPE(self);

	if (watcher->weakrefs)
		PyObject_ClearWeakRefs(self);
	Py_DECREF(watcher->name);
	PyObject_Free(self);
	Py_DECREF(type);
	tshare_watcher_unref(handle);
}

static PyGetSetDef watcher_getset[] = {
	{ "closed", get_closed, NULL, DOC_Watcher_closed, NULL },
	{ "name", get_name, NULL, DOC_Watcher_name, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyMethodDef watcher_methods[] = {
	{ "wait", TS_FASTCALL(watcher_wait), METH_FASTCALL | METH_KEYWORDS, DOC_Watcher_wait },
	{ "wait_async", TS_FASTCALL(watcher_wait_async), METH_FASTCALL | METH_KEYWORDS,
	  DOC_Watcher_wait_async },
	{ "cancel", watcher_cancel, METH_NOARGS, DOC_Watcher_cancel },
	{ "fileno", watcher_fileno, METH_NOARGS, DOC_Watcher_fileno },
	{ "close", watcher_close, METH_NOARGS, DOC_Watcher_close },
	{ "_hold", watcher_hold, METH_NOARGS, NULL },
	{ "__enter__", watcher_enter, METH_NOARGS, DOC_Watcher___enter__ },
	{ "__exit__", watcher_close, METH_VARARGS, DOC_Watcher___exit__ },
	{ "__reduce__", ts_refuse_pickle, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyMemberDef watcher_members[] = {
	{ "__weaklistoffset__", T_PYSSIZET, offsetof(struct ts_watcher, weakrefs), READONLY, NULL },
	{ NULL, 0, 0, 0, NULL },
};

static PyType_Slot watcher_slots[] = {
	{ Py_tp_doc, DOC_Watcher },
	{ Py_tp_dealloc, watcher_dealloc },
	{ Py_tp_repr, watcher_repr },
	{ Py_tp_getset, watcher_getset },
	{ Py_tp_methods, watcher_methods },
	{ Py_tp_members, watcher_members },
	{ 0, NULL },
};

static PyType_Spec watcher_spec = {
	.name = "tshare.Watcher",
	.basicsize = sizeof(struct ts_watcher),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = watcher_slots,
};

int ts_watcher_init(PyObject *module)
{
	ts_watcher_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &watcher_spec, NULL);
	return ts_watcher_type ? PyModule_AddType(module, ts_watcher_type) : -1;
}
