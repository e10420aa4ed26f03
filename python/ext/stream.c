// SPDX-License-Identifier: MIT
/* CUDA streams that publish and that wait; tshare.StreamWait. */
#include "stream.h"

#include <errno.h>
#include <structmember.h>

#include "args.h"
#include "call.h"
#include "docstrings.h"
#include "errors.h"
#include "generation.h"
#include "gil.h"
#include "pickling.h"
#include "region.h"

struct ts_stream_wait {
	PyObject ob_base;
	struct tshare_cuda_wait *handle;
	bool cancelled; /* by cancel(), not by the region's close() */
	PyObject *weakrefs;
};

static PyTypeObject *ts_stream_wait_type;
static bool exiting;

static PyObject *raise_closed(void)
{
	PyErr_SetString(PyExc_ValueError, "region: closed during wait_on()");
	return NULL;
}

static bool is_under_way(const struct tshare_cuda_wait *handle)
{
	uint64_t generation;

	return tshare_cuda_wait_get_result(handle, &generation) == -EINPROGRESS;
}

/* Exit */

/*
 * At finalisation objects release what they have on a device, which may wait for the device's
 * streams. The library's own exit handler runs later.
 */
static PyObject *end_waits(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
	exiting = true;
	tshare_cuda_wait_shutdown();
	Py_RETURN_NONE;
}

static int register_end_waits(void)
{
	static PyMethodDef definition = { "end_waits", end_waits, METH_NOARGS, NULL };
	PyObject *function = PyCFunction_New(&definition, NULL), *result;

	result = function ? ts_call("atexit", "register", function) : NULL;
	Py_XDECREF(function);
	Py_XDECREF(result);
	return result ? 0 : -1;
}

/* Arguments of methods */

/* A stream argument that must be given, and not None: 0, or -1 with an error set. */
static int parse_stream(const char *function, PyObject *obj, struct CUstream_st **stream)
{
	if (ts_need_arg(obj, function, "stream") < 0)
		return -1;
	if (obj != Py_None)
		return ts_stream_arg(obj, stream);
	PyErr_SetString(PyExc_TypeError,
			"stream: must be an int or have __cuda_stream__(), not None");
	return -1;
}

int ts_on_stream_args(const char *function, PyObject *const *args, Py_ssize_t nargs,
		      PyObject *kwnames, struct ts_on_stream *on)
{
	static const char *const names[] = { "stream", "device" };
	PyObject *given[2];

	on->options = (struct tshare_cuda_options){ .size = sizeof(on->options) };
	if (ts_parse(function, args, nargs, kwnames, names, 1, 2, given) < 0 ||
	    parse_stream(function, given[0], &on->stream) < 0)
		return -1;
	return ts_device_arg(given[1], &on->options);
}

PyObject *ts_region_publish_on(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			       PyObject *kwnames)
{
	struct tshare_region *handle;
	struct ts_on_stream on;
	PyThreadState *state;
	int err;

	if (!ts_region_handle(self) ||
	    ts_on_stream_args("publish_on", args, nargs, kwnames, &on) < 0)
		return NULL;
	/* The arguments' methods may have closed the region. */
	handle = ts_region_handle(self);
	if (!handle)
		return NULL;
	/* close() may come while the GIL is released. */
	tshare_region_ref(handle);
	state = PyEval_SaveThread();
	err = tshare_region_publish_on(handle, &on.options, on.stream);
	tshare_region_unref(handle);
	PyEval_RestoreThread(state);
	if (err < 0)
		return ts_raise(err, NULL);
	Py_RETURN_NONE;
}

PyObject *ts_region_wait_on(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			    PyObject *kwnames)
{
	static const char *const names[] = { "stream", "seen", "timeout", "device" };
	enum { STREAM, SEEN, TIMEOUT, DEVICE, COUNT };
	struct tshare_cuda_options options = { .size = sizeof(options) };
	struct tshare_waiter *waiter;
	struct ts_stream_wait *wait;
	struct CUstream_st *stream;
	int64_t seen, timeout;
	PyObject *given[COUNT];
	PyThreadState *state;
	int err;

	if (!ts_region_handle(self) ||
	    ts_parse("wait_on", args, nargs, kwnames, names, DEVICE, COUNT, given) < 0 ||
	    parse_stream("wait_on", given[STREAM], &stream) < 0 ||
	    ts_wait_args("wait_on", &given[SEEN], &seen, &timeout) < 0 ||
	    ts_device_arg(given[DEVICE], &options) < 0)
		return NULL;
	/* The arguments' methods may have closed the region. */
	waiter = ts_region_waiter(self, TS_WAIT);
	/* Made first: a stream mustn't wait without an object that can end the wait. */
	wait = waiter ? PyObject_New(struct ts_stream_wait, ts_stream_wait_type) : NULL;
	if (!wait)
		return NULL;
	wait->handle = NULL;
	wait->cancelled = false;
	wait->weakrefs = NULL;
	/* close() may come while the GIL is released. */
	tshare_waiter_ref(waiter);
	state = PyEval_SaveThread();
	err = tshare_waiter_wait_on(waiter, &options, stream, seen, timeout, &wait->handle);
	tshare_waiter_unref(waiter);
	PyEval_RestoreThread(state);
	if (!err)
		return (PyObject *)wait;
	Py_DECREF(wait);
	return err == -ECANCELED && !exiting ? raise_closed() : ts_raise(err, NULL);
}

/* The address of the generation, for kernels, apart from publish_on() and wait_on(). */
PyObject *ts_region_cuda_counter(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
				 PyObject *kwnames)
{
	static const char *const names[] = { "device" };
	struct tshare_cuda_options options = { .size = sizeof(options) };
	struct tshare_cuda_info info = { .size = sizeof(info) };
	struct tshare_region *handle;
	PyThreadState *state;
	PyObject *given[1];
	int err;

	if (!ts_region_handle(self) ||
	    ts_parse("cuda_counter", args, nargs, kwnames, names, 1, 1, given) < 0 ||
	    ts_device_arg(given[0], &options) < 0)
		return NULL;
	/* The argument's methods may have closed the region. */
	handle = ts_region_handle(self);
	if (!handle)
		return NULL;
	ts_cuda_used = true;
	/* close() may come while the GIL is released. */
	tshare_region_ref(handle);
	state = PyEval_SaveThread();
	err = tshare_cuda_import_counter(handle, &options, &info);
	tshare_region_unref(handle);
	PyEval_RestoreThread(state);
	return err < 0 ? ts_raise(err, NULL) : PyLong_FromUnsignedLongLong(info.address);
}

/* StreamWait */

/* The library's result: 0, or a negative errno whose text tshare_error_get() returns. */
static int read_result(PyObject *self, uint64_t *generation)
{
	return tshare_cuda_wait_get_result(((struct ts_stream_wait *)self)->handle, generation);
}

static PyObject *wait_result(PyObject *self, PyObject *Py_UNUSED(unused))
{
	uint64_t generation;
	int err = read_result(self, &generation);

	if (!err)
		return PyLong_FromUnsignedLongLong(generation);
	if (err == -ECANCELED && !((struct ts_stream_wait *)self)->cancelled && !exiting)
		return raise_closed();
	return ts_raise(err, NULL);
}

static PyObject *wait_cancel(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct ts_stream_wait *wait = (struct ts_stream_wait *)self;
	PyThreadState *state;

	if (is_under_way(wait->handle))
		wait->cancelled = true;
	state = PyEval_SaveThread();
	tshare_cuda_wait_cancel(wait->handle);
	PyEval_RestoreThread(state);
	Py_RETURN_NONE;
}

static PyObject *get_done(PyObject *self, void *Py_UNUSED(closure))
{
	return PyBool_FromLong(!is_under_way(((struct ts_stream_wait *)self)->handle));
}

static PyObject *wait_repr(PyObject *self)
{
	uint64_t generation;
	int err = read_result(self, &generation);

	if (!err)
		return PyUnicode_FromFormat("<tshare.StreamWait generation=%llu>",
					    (unsigned long long)generation);
	return PyUnicode_FromFormat("<tshare.StreamWait %s>",
				    err == -EINPROGRESS ? "waiting" : "failed");
}

static void wait_dealloc(PyObject *self)
{
	struct ts_stream_wait *wait = (struct ts_stream_wait *)self;
	struct tshare_cuda_wait *handle = wait->handle;
	PyTypeObject *type = Py_TYPE(self);

	if (wait->weakrefs)
		PyObject_ClearWeakRefs(self);
	PyObject_Free(self);
	Py_DECREF(type);
	tshare_cuda_wait_unref(handle);
}

static PyGetSetDef wait_getset[] = {
	{ "done", get_done, NULL, DOC_StreamWait_done, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyMethodDef wait_methods[] = {
	{ "result", wait_result, METH_NOARGS, DOC_StreamWait_result },
	{ "cancel", wait_cancel, METH_NOARGS, DOC_StreamWait_cancel },
	{ "__reduce__", ts_refuse_pickle, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyMemberDef wait_members[] = {
	{ "__weaklistoffset__", T_PYSSIZET, offsetof(struct ts_stream_wait, weakrefs), READONLY,
	  NULL },
	{ NULL, 0, 0, 0, NULL },
};

static PyType_Slot wait_slots[] = {
	{ Py_tp_doc, DOC_StreamWait },
	{ Py_tp_dealloc, wait_dealloc },
	{ Py_tp_repr, wait_repr },
	{ Py_tp_getset, wait_getset },
	{ Py_tp_methods, wait_methods },
	{ Py_tp_members, wait_members },
	{ 0, NULL },
};

static PyType_Spec wait_spec = {
	.name = "tshare.StreamWait",
	.basicsize = sizeof(struct ts_stream_wait),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = wait_slots,
};

int ts_stream_init(PyObject *module)
{
	ts_stream_wait_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &wait_spec, NULL);
	if (!ts_stream_wait_type || PyModule_AddType(module, ts_stream_wait_type) < 0)
		return -1;
	return register_end_waits();
}
