// SPDX-License-Identifier: MIT
/*
 * tshare.Pin: a region's memory, page-locked for CUDA until release().
 *
 * The library counts the pins of a region and registers its memory once.
 */
#include "pin.h"

#include <structmember.h>

#include "args.h"
#include "docstrings.h"
#include "errors.h"
#include "gil.h"
#include "pickling.h"
#include "region.h"

struct ts_pin {
	PyObject ob_base;
	struct tshare_pin *handle; /* NULL when released */
	PyObject *weakrefs;
};

static PyTypeObject *ts_pin_type;

PyObject *ts_pin(struct tshare_region *region, PyObject *const *args, Py_ssize_t nargs,
		 PyObject *kwnames)
{
	static const char *const names[] = { "device" };
	struct tshare_cuda_options options = { .size = sizeof(options) };
	PyThreadState *state;
	struct tshare_pin *handle;
	struct ts_pin *self;
	PyObject *given[1];
	int err;

	/* close() may come from the argument's __index__(), and while the GIL is released. */
	tshare_region_ref(region);
	if (ts_parse("pin", args, nargs, kwnames, names, 1, 1, given) < 0 ||
	    ts_device_arg(given[0], &options) < 0) {
		ts_region_unref(region);
		return NULL;
	}
	ts_cuda_used = true;
	state = PyEval_SaveThread();
	err = tshare_region_pin(region, &options, &handle);
	tshare_region_unref(region);
	PyEval_RestoreThread(state);
	if (err < 0)
		return ts_raise(err, NULL);
	self = PyObject_New(struct ts_pin, ts_pin_type);
	if (!self) {
		ts_pin_unref(handle);
		return NULL;
	}
	self->handle = handle;
	self->weakrefs = NULL;
	return (PyObject *)self;
}

static struct tshare_pin *handle_of(PyObject *self)
{
	struct tshare_pin *handle = ((struct ts_pin *)self)->handle;

	if (!handle)
		PyErr_SetString(PyExc_ValueError, "pin is released");
	return handle;
}

static PyObject *pin_release(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct ts_pin *pin = (struct ts_pin *)self;
	struct tshare_pin *handle = pin->handle;

	pin->handle = NULL;
	ts_pin_unref(handle);
	Py_RETURN_NONE;
}

static void pin_dealloc(PyObject *self)
{
	struct ts_pin *pin = (struct ts_pin *)self;
	struct tshare_pin *handle = pin->handle;
	PyTypeObject *type = Py_TYPE(self);

	if (pin->weakrefs)
		PyObject_ClearWeakRefs(self);
	PyObject_Free(self);
	Py_DECREF(type);
	ts_pin_unref(handle);
}

/* Attributes */

/* Reads the pin's properties: 0, or -1 with an error set. */
static int read_info(PyObject *self, struct tshare_pin_info *info)
{
	struct tshare_pin *handle = handle_of(self);
	int err;

	if (!handle)
		return -1;
	info->size = sizeof(*info);
	err = tshare_pin_get_info(handle, info);
	if (err < 0)
		ts_raise(err, NULL);
	return err;
}

static PyObject *get_region(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_pin *handle = handle_of(self);

	return handle ? ts_region_wrap(tshare_region_ref(tshare_pin_get_region(handle))) : NULL;
}

static PyObject *get_device(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_pin_info info;

	return read_info(self, &info) < 0 ? NULL : ts_device_name(info.device);
}

static PyObject *get_readonly(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_pin_info info;

	return read_info(self, &info) < 0 ? NULL : PyBool_FromLong(info.readonly);
}

static PyObject *get_piece_bytes(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_pin_info info;

	return read_info(self, &info) < 0 ? NULL : PyLong_FromUnsignedLongLong(info.piece_bytes);
}

static PyObject *get_driver_version(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_pin_info info;

	return read_info(self, &info) < 0 ? NULL : PyLong_FromLong(info.driver_version);
}

static PyObject *get_context_created(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_pin_info info;

	return read_info(self, &info) < 0 ? NULL : PyBool_FromLong(info.context_created);
}

static PyObject *get_released(PyObject *self, void *Py_UNUSED(closure))
{
	return PyBool_FromLong(!((struct ts_pin *)self)->handle);
}

static PyGetSetDef pin_getset[] = {
	{ "region", get_region, NULL, DOC_Pin_region, NULL },
	{ "device", get_device, NULL, DOC_Pin_device, NULL },
	{ "readonly", get_readonly, NULL, DOC_Pin_readonly, NULL },
	{ "piece_bytes", get_piece_bytes, NULL, DOC_Pin_piece_bytes, NULL },
	{ "driver_version", get_driver_version, NULL, DOC_Pin_driver_version, NULL },
	{ "context_created", get_context_created, NULL, DOC_Pin_context_created, NULL },
	{ "released", get_released, NULL, DOC_Pin_released, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

/* Methods */

static PyObject *pin_enter(PyObject *self, PyObject *Py_UNUSED(unused))
{
	if (!handle_of(self))
		return NULL;
	Py_INCREF(self);
	return self;
}

static PyObject *pin_exit(PyObject *self, PyObject *Py_UNUSED(args))
{
	return pin_release(self, NULL);
}

static PyObject *pin_repr(PyObject *self)
{
	struct tshare_pin_info info;
	PyObject *region, *device, *repr = NULL;

	if (!((struct ts_pin *)self)->handle)
		return PyUnicode_FromString("<tshare.Pin released>");
	if (read_info(self, &info) < 0)
		return NULL;
	region = get_region(self, NULL);
	device = ts_device_name(info.device);
	if (region && device)
		repr = PyUnicode_FromFormat("<tshare.Pin device=%R region=%R>", device, region);
	Py_XDECREF(region);
	Py_XDECREF(device);
	return repr;
}

static PyMethodDef pin_methods[] = {
	{ "release", pin_release, METH_NOARGS, DOC_Pin_release },
	{ "__enter__", pin_enter, METH_NOARGS, DOC_Pin___enter__ },
	{ "__exit__", pin_exit, METH_VARARGS, DOC_Pin___exit__ },
	{ "__reduce__", ts_refuse_pickle, METH_NOARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

static PyMemberDef pin_members[] = {
	{ "__weaklistoffset__", T_PYSSIZET, offsetof(struct ts_pin, weakrefs), READONLY, NULL },
	{ NULL, 0, 0, 0, NULL },
};

static PyType_Slot pin_slots[] = {
	{ Py_tp_doc, DOC_Pin },
	{ Py_tp_dealloc, pin_dealloc },
	{ Py_tp_repr, pin_repr },
	{ Py_tp_getset, pin_getset },
	{ Py_tp_methods, pin_methods },
	{ Py_tp_members, pin_members },
	{ 0, NULL },
};

static PyType_Spec pin_spec = {
	.name = "tshare.Pin",
	.basicsize = sizeof(struct ts_pin),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = pin_slots,
};

int ts_pin_init(PyObject *module)
{
	ts_pin_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &pin_spec, NULL);
	return ts_pin_type ? PyModule_AddType(module, ts_pin_type) : -1;
}
