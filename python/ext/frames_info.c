// SPDX-License-Identifier: MIT
#include "frames_info.h"

#include "docstrings.h"
#include "errors.h"
#include "region.h"

struct tshare_stream *ts_frames_handle(PyObject *self)
{
	struct tshare_stream *handle = ((struct ts_frames *)self)->handle;

	if (!handle)
		PyErr_SetString(PyExc_ValueError, "stream is closed");
	return handle;
}

/* 0, or -1 with an error set. */
static int read_info(PyObject *self, struct tshare_stream_info *info)
{
	struct tshare_stream *handle = ts_frames_handle(self);
	int err;

	if (!handle)
		return -1;
	*info = (struct tshare_stream_info){ .size = sizeof(*info) };
	err = tshare_stream_get_info(handle, info);
	if (err < 0)
		ts_raise(err, NULL);
	return err;
}

static PyObject *get_name(PyObject *self, void *Py_UNUSED(closure))
{
	return Py_NewRef(((struct ts_frames *)self)->name);
}

static PyObject *get_fields(PyObject *self, void *Py_UNUSED(closure))
{
	return Py_NewRef(((struct ts_frames *)self)->fields);
}

PyObject *ts_frames_role(PyObject *self, void *Py_UNUSED(closure))
{
	static const char *const names[] = { "producer", "consumer", "observer" };

	return PyUnicode_FromString(names[((struct ts_frames *)self)->role]);
}

static PyObject *get_closed(PyObject *self, void *Py_UNUSED(closure))
{
	return PyBool_FromLong(!((struct ts_frames *)self)->handle);
}

static PyObject *get_slots(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_stream_info info;

	return read_info(self, &info) < 0 ? NULL : PyLong_FromUnsignedLong(info.slots);
}

static PyObject *get_history(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_stream_info info;

	return read_info(self, &info) < 0 ? NULL : PyLong_FromUnsignedLong(info.history);
}

static PyObject *get_newest(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_stream_info info;

	return read_info(self, &info) < 0 ? NULL : PyLong_FromUnsignedLongLong(info.newest);
}

static PyObject *get_ended(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_stream_info info;

	return read_info(self, &info) < 0 ? NULL : PyBool_FromLong(info.ended);
}

static PyObject *get_seat(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_stream_info info;

	if (read_info(self, &info) < 0)
		return NULL;
	if (info.seat < 0)
		Py_RETURN_NONE;
	return PyLong_FromLong(info.seat);
}

static PyObject *get_region(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_stream *handle = ts_frames_handle(self);

	return handle ? ts_region_wrap(tshare_stream_ref_region(handle)) : NULL;
}

PyGetSetDef ts_frames_getset[] = {
	{ "name", get_name, NULL, DOC_Stream_name, NULL },
	{ "fields", get_fields, NULL, DOC_Stream_fields, NULL },
	{ "role", ts_frames_role, NULL, DOC_Stream_role, NULL },
	{ "slots", get_slots, NULL, DOC_Stream_slots, NULL },
	{ "history", get_history, NULL, DOC_Stream_history, NULL },
	{ "newest", get_newest, NULL, DOC_Stream_newest, NULL },
	{ "ended", get_ended, NULL, DOC_Stream_ended, NULL },
	{ "seat", get_seat, NULL, DOC_Stream_seat, NULL },
	{ "region", get_region, NULL, DOC_Stream_region, NULL },
	{ "closed", get_closed, NULL, DOC_Stream_closed, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};
