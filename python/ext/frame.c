// SPDX-License-Identifier: MIT
/*
 * tshare.Frame: a frame of a stream, a mapping of its fields' names to tensors.
 *
 * The object and each of its tensors hold a reference to the library's frame. The slot returns with
 * the last of them.
 */
#include "frame.h"

#include <errno.h>
#include <structmember.h>

#include "args.h"
#include "docstrings.h"
#include "errors.h"
#include "gil.h"
#include "mapping.h"
#include "stream.h"
#include "tensor.h"

struct ts_frame {
	PyObject ob_base;
	struct tshare_frame *handle; /* NULL when closed */
	PyObject *names;
	bool queued;			/* a CUDA stream publishes it */
	struct tshare_frame_info known; /* when it was closed */
	PyObject *weakrefs;
};

static PyTypeObject *ts_frame_type;

PyObject *ts_frame_wrap(struct tshare_frame *handle, PyObject *names)
{
	struct ts_frame *self = PyObject_New(struct ts_frame, ts_frame_type);

	if (!self) {
		ts_frame_unref(handle);
		return NULL;
	}
	self->handle = handle;
	self->names = Py_NewRef(names);
	self->queued = false;
	self->known = (struct tshare_frame_info){ .size = sizeof(self->known) };
	self->weakrefs = NULL;
	return (PyObject *)self;
}

/* The handle, borrowed; NULL with ValueError set if the frame is closed. */
static struct tshare_frame *handle_of(PyObject *self)
{
	struct tshare_frame *handle = ((struct ts_frame *)self)->handle;

	if (!handle)
		PyErr_SetString(PyExc_ValueError, "frame is closed");
	return handle;
}

static struct tshare_frame_info info_of(PyObject *self)
{
	struct ts_frame *frame = (struct ts_frame *)self;
	struct tshare_frame_info info = { .size = sizeof(info) };

	/* Fails only for another size. */
	if (frame->handle)
		tshare_frame_get_info(frame->handle, &info);
	else
		info = frame->known;
	return info;
}

/* Whether it is the producer's, to publish. */
static bool is_loaned(PyObject *self)
{
	struct ts_frame *frame = (struct ts_frame *)self;

	return frame->handle && !frame->queued && !info_of(self).number;
}

static void drop(struct ts_frame *frame)
{
	struct tshare_frame *handle = frame->handle;

	frame->known = info_of((PyObject *)frame);
	frame->handle = NULL;
	ts_frame_unref(handle);
}

static void frame_dealloc(PyObject *self)
{
	struct ts_frame *frame = (struct ts_frame *)self;
	struct tshare_frame *handle = frame->handle;
	PyTypeObject *type = Py_TYPE(self);

	if (frame->weakrefs)
		PyObject_ClearWeakRefs(self);
	Py_DECREF(frame->names);
	PyObject_Free(self);
	Py_DECREF(type);
	ts_frame_unref(handle);
}

/* The mapping */

/* The field of that name; -1 if there is none, or with an error set. */
static Py_ssize_t find_field(PyObject *self, PyObject *key)
{
	PyObject *names = ((struct ts_frame *)self)->names;
	Py_ssize_t i, count = PyTuple_Size(names);

	if (!PyUnicode_Check(key))
		return -1;
	for (i = 0; i < count; i++)
		if (!PyUnicode_Compare(PyTuple_GetItem(names, i), key))
			return i;
	return -1;
}

static PyObject *tensor_of(struct tshare_frame *handle, Py_ssize_t field)
{
	struct tshare_tensor *tensor;
	int err;

	err = tshare_frame_get_tensor(handle, field, &tensor);
	return err < 0 ? ts_raise(err, NULL) : ts_tensor_wrap(tensor);
}

static PyObject *frame_subscript(PyObject *self, PyObject *key)
{
	struct tshare_frame *handle = handle_of(self);
	Py_ssize_t field;

	if (!handle)
		return NULL;
	field = find_field(self, key);
	if (field >= 0)
		return tensor_of(handle, field);
	return PyErr_Occurred() ? NULL : ts_raise_key(key);
}

static PyObject *frame_get(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			   PyObject *kwnames)
{
	static const char *const names[] = { "key", "default" };
	struct tshare_frame *handle = handle_of(self);
	PyObject *given[2];
	Py_ssize_t field;

	if (!handle || ts_parse("get", args, nargs, kwnames, names, 2, 2, given) < 0 ||
	    ts_need_arg(given[0], "get", "key") < 0)
		return NULL;
	field = find_field(self, given[0]);
	if (field >= 0)
		return tensor_of(handle, field);
	if (PyErr_Occurred())
		return NULL;
	return Py_NewRef(given[1] ? given[1] : Py_None);
}

static Py_ssize_t frame_length(PyObject *self)
{
	return PyTuple_Size(((struct ts_frame *)self)->names);
}

static int frame_contains(PyObject *self, PyObject *key)
{
	return PySequence_Contains(((struct ts_frame *)self)->names, key);
}

static PyObject *frame_iter(PyObject *self)
{
	return PyObject_GetIter(((struct ts_frame *)self)->names);
}

/* Attributes */

static PyObject *get_number(PyObject *self, void *Py_UNUSED(closure))
{
	return PyLong_FromUnsignedLongLong(info_of(self).number);
}

static PyObject *get_lost(PyObject *self, void *Py_UNUSED(closure))
{
	return PyLong_FromUnsignedLongLong(info_of(self).lost);
}

static PyObject *get_epoch(PyObject *self, void *Py_UNUSED(closure))
{
	return PyLong_FromUnsignedLong(info_of(self).epoch);
}

static PyObject *get_captured(PyObject *self, void *Py_UNUSED(closure))
{
	int64_t captured = info_of(self).captured_ns;

	if (!captured)
		Py_RETURN_NONE;
	return PyLong_FromLongLong(captured);
}

static PyObject *get_published(PyObject *self, void *Py_UNUSED(closure))
{
	return PyLong_FromLongLong(info_of(self).published_ns);
}

static PyObject *get_sequence(PyObject *self, void *Py_UNUSED(closure))
{
	return PyLong_FromUnsignedLongLong(info_of(self).sequence);
}

static PyObject *get_flags(PyObject *self, void *Py_UNUSED(closure))
{
	return PyLong_FromUnsignedLongLong(info_of(self).flags);
}

static PyObject *get_slot(PyObject *self, void *Py_UNUSED(closure))
{
	return PyLong_FromUnsignedLong(info_of(self).slot);
}

static PyObject *get_closed(PyObject *self, void *Py_UNUSED(closure))
{
	return PyBool_FromLong(!((struct ts_frame *)self)->handle);
}

/* For the producer, until it publishes the frame */

static int no_deletion(PyObject *value, const char *attribute)
{
	if (value)
		return 0;
	PyErr_Format(PyExc_AttributeError, "%s can't be deleted", attribute);
	return -1;
}

static int set_info(PyObject *self, const struct tshare_frame_info *info)
{
	struct tshare_frame *handle = handle_of(self);
	int err;

	if (!handle)
		return -1;
	err = tshare_frame_set_info(handle, info);
	if (err < 0)
		ts_raise(err, NULL);
	return err;
}

static int set_captured(PyObject *self, PyObject *value, void *Py_UNUSED(closure))
{
	struct tshare_frame_info info = info_of(self);

	info.captured_ns = 0;
	if (no_deletion(value, "captured") < 0 ||
	    (value != Py_None &&
	     ts_int_arg(value, "captured", 0, INT64_MAX, &info.captured_ns) < 0))
		return -1;
	return set_info(self, &info);
}

static int uint64_arg(PyObject *obj, const char *argument, uint64_t *value)
{
	PyObject *number;

	if (no_deletion(obj, argument) < 0)
		return -1;
	if (!PyIndex_Check(obj)) {
		PyErr_Format(PyExc_TypeError, "%s: must be an int, not %R", argument, Py_TYPE(obj));
		return -1;
	}
	number = PyNumber_Index(obj);
	if (!number)
		return -1;
	*value = PyLong_AsUnsignedLongLong(number);
	Py_DECREF(number);
	if (!PyErr_Occurred())
		return 0;
	if (PyErr_ExceptionMatches(PyExc_OverflowError))
		PyErr_Format(PyExc_ValueError, "%s: must be between 0 and %llu, not %S", argument,
			     (unsigned long long)UINT64_MAX, obj);
	return -1;
}

static int set_sequence(PyObject *self, PyObject *value, void *Py_UNUSED(closure))
{
	struct tshare_frame_info info = info_of(self);

	return uint64_arg(value, "sequence", &info.sequence) < 0 ? -1 : set_info(self, &info);
}

static int set_flags(PyObject *self, PyObject *value, void *Py_UNUSED(closure))
{
	struct tshare_frame_info info = info_of(self);

	return uint64_arg(value, "flags", &info.flags) < 0 ? -1 : set_info(self, &info);
}

/* The number of the field's dimensions; -1 with an error set. */
static int32_t ndim_of(struct tshare_frame *handle, Py_ssize_t field)
{
	struct tshare_tensor *tensor;
	int32_t ndim;
	int err;

	err = tshare_frame_get_tensor(handle, field, &tensor);
	if (err < 0) {
		ts_raise(err, NULL);
		return -1;
	}
	ndim = tshare_tensor_get_ndim(tensor);
	ts_tensor_unref(tensor);
	return ndim;
}

static PyObject *frame_set_shape(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
				 PyObject *kwnames)
{
	static const char *const names[] = { "name", "shape" };
	int64_t shape[TSHARE_NDIM_LIMIT];
	struct tshare_frame *handle;
	PyObject *given[2];
	int32_t count, ndim;
	Py_ssize_t field;
	int err;

	if (ts_parse("set_shape", args, nargs, kwnames, names, 2, 2, given) < 0 ||
	    ts_need_arg(given[0], "set_shape", "name") < 0 ||
	    ts_need_arg(given[1], "set_shape", "shape") < 0 ||
	    ts_dims_arg(given[1], "shape", shape, &count) < 0)
		return NULL;
	field = find_field(self, given[0]);
	if (field < 0)
		return PyErr_Occurred() ? NULL : ts_raise_key(given[0]);
	handle = handle_of(self);
	ndim = handle ? ndim_of(handle, field) : -1;
	if (ndim < 0)
		return NULL;
	if (count != ndim) {
		PyErr_Format(PyExc_ValueError, "shape: has %d dimensions, the field %d", count,
			     ndim);
		return NULL;
	}
	err = tshare_frame_set_shape(handle, field, shape);
	if (err < 0)
		return ts_raise(err, NULL);
	Py_RETURN_NONE;
}

static PyObject *raise_unpublished(int err)
{
	if (err != -ENODATA)
		return ts_raise(err, NULL);
	PyErr_SetString(PyExc_ValueError, "stream is closed");
	return NULL;
}

static PyObject *frame_publish(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_frame *handle = handle_of(self);
	int err;

	if (!handle)
		return NULL;
	err = tshare_frame_publish(handle);
	return err < 0 ? raise_unpublished(err) : Py_NewRef(Py_None);
}

typedef int (*on_stream)(struct tshare_frame *frame, const struct tshare_cuda_options *options,
			 struct CUstream_st *stream);

/* 0, a negative errno, or 1 with an error set. The function may keep a reference of its own. */
static int call_on_stream(PyObject *self, const struct ts_on_stream *on, on_stream function)
{
	/* The arguments' methods may have closed the frame. */
	struct tshare_frame *handle = handle_of(self);
	PyThreadState *state;
	int err;

	if (!handle)
		return 1;
	/* close() may come while the GIL is released. */
	tshare_frame_ref(handle);
	state = PyEval_SaveThread();
	err = function(handle, &on->options, on->stream);
	PyEval_RestoreThread(state);
	if (err || function == tshare_frame_publish_on)
		ts_frame_unref(handle);
	return err;
}

static PyObject *frame_publish_on(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
				  PyObject *kwnames)
{
	struct ts_on_stream on;
	int err;

	if (!handle_of(self) || ts_on_stream_args("publish_on", args, nargs, kwnames, &on) < 0)
		return NULL;
	err = call_on_stream(self, &on, tshare_frame_publish_on);
	if (err)
		return err < 0 ? raise_unpublished(err) : NULL;
	((struct ts_frame *)self)->queued = true;
	Py_RETURN_NONE;
}

/* The end */

static PyObject *frame_check(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_frame *handle = handle_of(self);
	int err;

	if (!handle)
		return NULL;
	err = tshare_frame_check(handle);
	if (err < 0)
		return ts_raise(err, NULL);
	Py_RETURN_NONE;
}

/* The CUDA stream gets a reference beside the object's, which ends here. */
static PyObject *frame_release_on(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
				  PyObject *kwnames)
{
	struct ts_on_stream on;
	int err;

	if (!handle_of(self) || ts_on_stream_args("release_on", args, nargs, kwnames, &on) < 0)
		return NULL;
	err = call_on_stream(self, &on, tshare_frame_release_on);
	if (err)
		return err < 0 ? ts_raise(err, NULL) : NULL;
	drop((struct ts_frame *)self);
	Py_RETURN_NONE;
}

static PyObject *frame_close(PyObject *self, PyObject *Py_UNUSED(unused))
{
	drop((struct ts_frame *)self);
	Py_RETURN_NONE;
}

static PyObject *frame_enter(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return handle_of(self) ? Py_NewRef(self) : NULL;
}

/* Publishes a loaned frame, unless the block has published, closed or failed it. */
static PyObject *frame_exit(PyObject *self, PyObject *args)
{
	struct ts_frame *frame = (struct ts_frame *)self;
	bool failed = PyTuple_Size(args) > 0 && PyTuple_GetItem(args, 0) != Py_None;
	PyObject *result;

	if (is_loaned(self) && !failed)
		result = frame_publish(self, NULL);
	else
		result = Py_NewRef(Py_None);
	drop(frame);
	return result;
}

static PyObject *frame_reduce(PyObject *self, PyObject *Py_UNUSED(unused))
{
	PyErr_Format(PyExc_TypeError,
		     "%R can't be pickled or copied (send copies of its arrays, or open the stream "
		     "where they are needed)",
		     Py_TYPE(self));
	return NULL;
}

static PyObject *frame_repr(PyObject *self)
{
	struct ts_frame *frame = (struct ts_frame *)self;
	struct tshare_frame_info info = info_of(self);
	const char *state = "";

	if (!frame->handle)
		state = " closed";
	else if (!info.number)
		state = frame->queued ? " queued" : " loaned";
	return PyUnicode_FromFormat("<tshare.Frame number=%llu slot=%u fields=%R%s>",
				    (unsigned long long)info.number, info.slot, frame->names,
				    state);
}

static PyGetSetDef frame_getset[] = {
	{ "number", get_number, NULL, DOC_Frame_number, NULL },
	{ "lost", get_lost, NULL, DOC_Frame_lost, NULL },
	{ "epoch", get_epoch, NULL, DOC_Frame_epoch, NULL },
	{ "captured", get_captured, set_captured, DOC_Frame_captured, NULL },
	{ "published", get_published, NULL, DOC_Frame_published, NULL },
	{ "sequence", get_sequence, set_sequence, DOC_Frame_sequence, NULL },
	{ "flags", get_flags, set_flags, DOC_Frame_flags, NULL },
	{ "slot", get_slot, NULL, DOC_Frame_slot, NULL },
	{ "closed", get_closed, NULL, DOC_Frame_closed, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

static PyMethodDef frame_methods[] = {
	{ "keys", ts_mapping_keys, METH_NOARGS, DOC_Frame_keys },
	{ "values", ts_mapping_values, METH_NOARGS, DOC_Frame_values },
	{ "items", ts_mapping_items, METH_NOARGS, DOC_Frame_items },
	{ "get", TS_FASTCALL(frame_get), METH_FASTCALL | METH_KEYWORDS, DOC_Frame_get },
	{ "set_shape", TS_FASTCALL(frame_set_shape), METH_FASTCALL | METH_KEYWORDS,
	  DOC_Frame_set_shape },
	{ "publish", frame_publish, METH_NOARGS, DOC_Frame_publish },
	{ "publish_on", TS_FASTCALL(frame_publish_on), METH_FASTCALL | METH_KEYWORDS,
	  DOC_Frame_publish_on },
	{ "check", frame_check, METH_NOARGS, DOC_Frame_check },
	{ "release_on", TS_FASTCALL(frame_release_on), METH_FASTCALL | METH_KEYWORDS,
	  DOC_Frame_release_on },
	{ "close", frame_close, METH_NOARGS, DOC_Frame_close },
	{ "__enter__", frame_enter, METH_NOARGS, DOC_Frame___enter__ },
	{ "__exit__", frame_exit, METH_VARARGS, DOC_Frame___exit__ },
	{ "__reduce__", frame_reduce, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyMemberDef frame_members[] = {
	{ "__weaklistoffset__", T_PYSSIZET, offsetof(struct ts_frame, weakrefs), READONLY, NULL },
	{ NULL, 0, 0, 0, NULL },
};

static PyType_Slot frame_slots[] = {
	{ Py_tp_doc, DOC_Frame },
	{ Py_tp_dealloc, frame_dealloc },
	{ Py_tp_repr, frame_repr },
	{ Py_tp_getset, frame_getset },
	{ Py_tp_methods, frame_methods },
	{ Py_tp_members, frame_members },
	{ Py_tp_iter, frame_iter },
	{ Py_mp_length, frame_length },
	{ Py_mp_subscript, frame_subscript },
	{ Py_sq_contains, frame_contains },
	{ 0, NULL },
};

static PyType_Spec frame_spec = {
	.name = "tshare.Frame",
	.basicsize = sizeof(struct ts_frame),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = frame_slots,
};

int ts_frame_init(PyObject *module)
{
	ts_frame_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &frame_spec, NULL);
	return ts_frame_type ? PyModule_AddType(module, ts_frame_type) : -1;
}
