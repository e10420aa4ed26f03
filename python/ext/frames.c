// SPDX-License-Identifier: MIT
/* tshare.Stream: frames from a producer to consumers and observers. */
#include "frames.h"

#include <errno.h>
#include <structmember.h>

#include "args.h"
#include "call.h"
#include "docstrings.h"
#include "errors.h"
#include "frame.h"
#include "frames_info.h"
#include "frames_open.h"
#include "generation.h"
#include "gil.h"
#include "seats.h"

static PyTypeObject *ts_frames_type;
static PyObject *frame_lost;

/* Making */

/* Takes over the caller's reference to @handle, on failure too. */
static PyObject *wrap(struct tshare_stream *handle, enum role role, PyObject *name)
{
	PyObject *fields = ts_stream_fields(tshare_stream_get_region(handle));
	struct ts_frames *self = fields ? PyObject_New(struct ts_frames, ts_frames_type) : NULL;

	if (!self) {
		Py_XDECREF(fields);
		ts_stream_unref(handle);
		return NULL;
	}
	self->handle = handle;
	self->role = role;
	self->name = Py_NewRef(name);
	self->fields = fields;
	self->weakrefs = NULL;
	return (PyObject *)self;
}

static PyObject *frames_create(PyObject *Py_UNUSED(type), PyObject *const *args, Py_ssize_t nargs,
			       PyObject *kwnames)
{
	struct tshare_stream *handle;
	PyObject *name;

	handle = ts_create_stream(args, nargs, kwnames, &name);
	return handle ? wrap(handle, PRODUCER, name) : NULL;
}

static PyObject *frames_open(PyObject *Py_UNUSED(type), PyObject *const *args, Py_ssize_t nargs,
			     PyObject *kwnames)
{
	struct tshare_stream *handle;
	PyObject *name;
	bool observe;

	handle = ts_open_stream(args, nargs, kwnames, &name, &observe);
	return handle ? wrap(handle, observe ? OBSERVER : CONSUMER, name) : NULL;
}

/* Frames */

typedef int (*frame_function)(struct tshare_stream *stream, int64_t timeout_ns,
			      struct tshare_frame **frame);

struct frame_call {
	struct tshare_stream *handle;
	frame_function function;
	struct tshare_frame *frame;
};

static int frame_piece(void *data, int64_t timeout)
{
	struct frame_call *call = data;

	return call->function(call->handle, timeout, &call->frame);
}

/* As ts_wait(), but the frame comes with 0. */
static int wait_for_frame(PyObject *self, frame_function function, int64_t timeout,
			  PyObject **frame)
{
	struct ts_frames *frames = (struct ts_frames *)self;
	struct frame_call call = { ts_frames_handle(self), function, NULL };
	int err;

	if (!call.handle)
		return 1;
	/* close() may come while the GIL is released. */
	tshare_stream_ref(call.handle);
	err = ts_wait(frame_piece, &call, timeout);
	if (!err)
		*frame = ts_frame_wrap(call.frame, frames->fields);
	if (err == -ECANCELED && !frames->handle) {
		PyErr_SetString(PyExc_ValueError, "stream: closed during the wait");
		err = 1;
	}
	ts_stream_unref(call.handle);
	return err || *frame ? err : 1;
}

/* The argument timeout, also as @given: 0, or -1 with an error set. */
static int parse_timeout(const char *method, PyObject *const *args, Py_ssize_t nargs,
			 PyObject *kwnames, PyObject **given, int64_t *timeout)
{
	static const char *const names[] = { "timeout" };

	if (ts_parse(method, args, nargs, kwnames, names, 1, 1, given) < 0)
		return -1;
	*timeout = INT64_MAX;
	return ts_none(*given) ? 0 : ts_seconds_arg(*given, "timeout", timeout);
}

static PyObject *frame_for(PyObject *self, const char *method, frame_function function,
			   PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
	PyObject *given, *frame = NULL;
	int64_t timeout;
	int err;

	if (parse_timeout(method, args, nargs, kwnames, &given, &timeout) < 0)
		return NULL;
	err = wait_for_frame(self, function, timeout, &frame);
	if (err == -ENODATA && ((struct ts_frames *)self)->role == PRODUCER)
		PyErr_SetString(PyExc_ValueError, "stream is closed");
	else if (err == -ENODATA)
		PyErr_SetString(PyExc_EOFError, "stream: the producer has closed it");
	else if (err < 0)
		ts_raise(err, NULL);
	return err ? NULL : frame;
}

static PyObject *frames_loan(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			     PyObject *kwnames)
{
	return frame_for(self, "loan", tshare_stream_loan, args, nargs, kwnames);
}

static PyObject *frames_take(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			     PyObject *kwnames)
{
	return frame_for(self, "take", tshare_stream_take, args, nargs, kwnames);
}

static PyObject *frames_latest(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			       PyObject *kwnames)
{
	return frame_for(self, "latest", tshare_stream_take_latest, args, nargs, kwnames);
}

/* Refuses wrong arguments now, before there is a coroutine that may never run. */
static PyObject *frames_take_async(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
				   PyObject *kwnames)
{
	PyObject *given;
	int64_t timeout;

	if (parse_timeout("take_async", args, nargs, kwnames, &given, &timeout) < 0 ||
	    !ts_frames_handle(self))
		return NULL;
	return ts_call_module("tshare._waiting", "take_async",
			      Py_BuildValue("OO", self, given ? given : Py_None));
}

static PyObject *frames_next(PyObject *self)
{
	PyObject *frame = NULL;
	int err;

	err = wait_for_frame(self, tshare_stream_take, INT64_MAX, &frame);
	/* Without an error set it is the end of the iteration. */
	if (err < 0 && err != -ENODATA)
		ts_raise(err, NULL);
	return err ? NULL : frame;
}

static PyObject *frames_anext(PyObject *self)
{
	if (!ts_frames_handle(self))
		return NULL;
	return ts_call_module("tshare._waiting", "next_async", Py_BuildValue("(O)", self));
}

static PyObject *frames_subscript(PyObject *self, PyObject *key)
{
	struct ts_frames *frames = (struct ts_frames *)self;
	struct tshare_stream *handle;
	struct tshare_frame *frame;
	PyThreadState *state;
	int64_t number;
	int err;

	if (ts_int_arg(key, "number", 0, INT64_MAX, &number) < 0)
		return NULL;
	handle = ts_frames_handle(self);
	if (!handle)
		return NULL;
	/* It may call CUDA, and close() may come while the GIL is released. */
	tshare_stream_ref(handle);
	state = PyEval_SaveThread();
	err = tshare_stream_get(handle, number, &frame);
	tshare_stream_unref(handle);
	PyEval_RestoreThread(state);
	if (!err)
		return ts_frame_wrap(frame, frames->fields);
	return err == -ENOENT ? ts_raise_as(frame_lost) : ts_raise(err, NULL);
}

/* Polling */

static PyObject *frames_fileno(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_stream *handle = ts_frames_handle(self);
	int fd, err;

	if (!handle)
		return NULL;
	err = tshare_stream_get_event_fd(handle, &fd);
	return err < 0 ? ts_raise(err, NULL) : PyLong_FromLong(fd);
}

/* For tshare.wait(). */
static PyObject *frames_is_ready(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_stream *handle = ts_frames_handle(self);
	bool ready;
	int err;

	if (!handle)
		return NULL;
	err = tshare_stream_is_ready(handle, &ready);
	return err < 0 ? ts_raise(err, NULL) : PyBool_FromLong(ready);
}

static void drop_hold(PyObject *hold)
{
	ts_stream_unref(PyCapsule_GetPointer(hold, NULL));
}

/*
 * For tshare._waiting: an object that keeps the descriptor open and, after close(), readable for
 * those who wait for it.
 */
static PyObject *frames_hold(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_stream *handle = ts_frames_handle(self);
	PyObject *hold = handle ? PyCapsule_New(handle, NULL, drop_hold) : NULL;

	if (hold)
		tshare_stream_ref(handle);
	return hold;
}

/* Consumers, as their producer sees them */

static PyObject *frames_seats(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_stream *handle = ts_frames_handle(self);

	return handle ? ts_seats_list(handle) : NULL;
}

static PyObject *frames_evict(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			      PyObject *kwnames)
{
	struct tshare_stream *handle;
	int32_t seat, pid;

	if (ts_seats_parse(args, nargs, kwnames, &seat, &pid) < 0)
		return NULL;
	handle = ts_frames_handle(self);
	return handle ? ts_seats_evict(handle, seat, pid) : NULL;
}

/* The end */

static PyObject *frames_cancel(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_stream *handle = ts_frames_handle(self);

	if (!handle)
		return NULL;
	tshare_stream_cancel(handle);
	Py_RETURN_NONE;
}

static int close_piece(void *data, int64_t timeout)
{
	return tshare_stream_close(data, timeout);
}

/* Ends a producer's stream: 0, or -1 with an error set. */
static int end_stream(struct ts_frames *frames, int64_t drain)
{
	struct tshare_stream *handle = frames->handle;
	int err;

	tshare_stream_ref(handle);
	err = ts_wait(close_piece, handle, drain);
	ts_stream_unref(handle);
	/* In a child of fork() the stream is the parent's. Another thread's close() ends the wait. */
	if (!err || err == -EOPNOTSUPP || (err == -ECANCELED && !frames->handle))
		return 0;
	if (err < 0)
		ts_raise(err, NULL);
	return -1;
}

static PyObject *close_draining(PyObject *self, int64_t drain)
{
	struct ts_frames *frames = (struct ts_frames *)self;
	struct tshare_stream *handle = frames->handle;
	PyThreadState *state;

	if (handle && frames->role == PRODUCER && end_stream(frames, drain) < 0)
		return NULL;
	/* Another thread may have closed it meanwhile. */
	handle = frames->handle;
	frames->handle = NULL;
	if (handle) {
		state = PyEval_SaveThread();
		tshare_stream_cancel(handle);
		tshare_stream_unref(handle);
		PyEval_RestoreThread(state);
	}
	Py_RETURN_NONE;
}

static PyObject *frames_close(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			      PyObject *kwnames)
{
	static const char *const names[] = { "drain" };
	PyObject *given;
	int64_t drain = 0;

	if (ts_parse("close", args, nargs, kwnames, names, 1, 1, &given) < 0 ||
	    (given && ts_seconds_arg(given, "drain", &drain) < 0))
		return NULL;
	if (drain && ((struct ts_frames *)self)->role != PRODUCER) {
		PyErr_SetString(PyExc_ValueError,
				"drain: is for the producer, which waits for consumers");
		return NULL;
	}
	return close_draining(self, drain);
}

static PyObject *frames_enter(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return ts_frames_handle(self) ? Py_NewRef(self) : NULL;
}

static PyObject *frames_exit(PyObject *self, PyObject *Py_UNUSED(args))
{
	return close_draining(self, 0);
}

static PyObject *frames_reduce(PyObject *self, PyObject *Py_UNUSED(unused))
{
	PyErr_Format(PyExc_TypeError,
		     "%R can't be pickled or copied (open the stream by its name where it is "
		     "needed)",
		     Py_TYPE(self));
	return NULL;
}

static PyObject *frames_repr(PyObject *self)
{
	struct ts_frames *frames = (struct ts_frames *)self;
	PyObject *role = ts_frames_role(self, NULL), *repr = NULL;

	if (role)
		repr = PyUnicode_FromFormat("<tshare.Stream %R %U fields=%R%s>", frames->name, role,
					    frames->fields, frames->handle ? "" : " closed");
	Py_XDECREF(role);
	return repr;
}

static void frames_dealloc(PyObject *self)
{
	struct ts_frames *frames = (struct ts_frames *)self;
	struct tshare_stream *handle = frames->handle;
	PyTypeObject *type = Py_TYPE(self);

	if (frames->weakrefs)
		PyObject_ClearWeakRefs(self);
	Py_DECREF(frames->name);
	Py_DECREF(frames->fields);
	PyObject_Free(self);
	Py_DECREF(type);
	ts_stream_unref(handle);
}

static PyMethodDef frames_methods[] = {
	{ "create", TS_FASTCALL(frames_create), METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
	  DOC_Stream_create },
	{ "open", TS_FASTCALL(frames_open), METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
	  DOC_Stream_open },
	{ "loan", TS_FASTCALL(frames_loan), METH_FASTCALL | METH_KEYWORDS, DOC_Stream_loan },
	{ "take", TS_FASTCALL(frames_take), METH_FASTCALL | METH_KEYWORDS, DOC_Stream_take },
	{ "latest", TS_FASTCALL(frames_latest), METH_FASTCALL | METH_KEYWORDS, DOC_Stream_latest },
	{ "take_async", TS_FASTCALL(frames_take_async), METH_FASTCALL | METH_KEYWORDS,
	  DOC_Stream_take_async },
	/* The type's own __getitem__() would have no docstring. */
	{ "__getitem__", frames_subscript, METH_O | METH_COEXIST, DOC_Stream___getitem__ },
	{ "seats", frames_seats, METH_NOARGS, DOC_Stream_seats },
	{ "evict", TS_FASTCALL(frames_evict), METH_FASTCALL | METH_KEYWORDS, DOC_Stream_evict },
	{ "fileno", frames_fileno, METH_NOARGS, DOC_Stream_fileno },
	{ "_is_ready", frames_is_ready, METH_NOARGS, NULL },
	{ "_hold", frames_hold, METH_NOARGS, NULL },
	{ "cancel", frames_cancel, METH_NOARGS, DOC_Stream_cancel },
	{ "close", TS_FASTCALL(frames_close), METH_FASTCALL | METH_KEYWORDS, DOC_Stream_close },
	{ "__enter__", frames_enter, METH_NOARGS, DOC_Stream___enter__ },
	{ "__exit__", frames_exit, METH_VARARGS, DOC_Stream___exit__ },
	{ "__reduce__", frames_reduce, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyMemberDef frames_members[] = {
	{ "__weaklistoffset__", T_PYSSIZET, offsetof(struct ts_frames, weakrefs), READONLY, NULL },
	{ NULL, 0, 0, 0, NULL },
};

static PyType_Slot frames_slots[] = {
	{ Py_tp_doc, DOC_Stream },
	{ Py_tp_dealloc, frames_dealloc },
	{ Py_tp_repr, frames_repr },
	{ Py_tp_getset, ts_frames_getset },
	{ Py_tp_methods, frames_methods },
	{ Py_tp_members, frames_members },
	{ Py_tp_iter, PyObject_SelfIter },
	{ Py_tp_iternext, frames_next },
	{ Py_am_aiter, PyObject_SelfIter },
	{ Py_am_anext, frames_anext },
	{ Py_mp_subscript, frames_subscript },
	{ 0, NULL },
};

static PyType_Spec frames_spec = {
	.name = "tshare.Stream",
	.basicsize = sizeof(struct ts_frames),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = frames_slots,
};

int ts_frames_init(PyObject *module)
{
	if (ts_frame_init(module) < 0)
		return -1;
	ts_frames_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &frames_spec, NULL);
	if (!ts_frames_type || PyModule_AddType(module, ts_frames_type) < 0)
		return -1;
	frame_lost = PyErr_NewExceptionWithDoc("tshare.FrameLost", DOC_FrameLost, PyExc_LookupError,
					       NULL);
	if (!frame_lost || PyModule_AddObjectRef(module, "FrameLost", frame_lost) < 0)
		return -1;
	return ts_seats_init(module);
}
