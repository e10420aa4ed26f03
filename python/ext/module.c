// SPDX-License-Identifier: MIT
/* The module tshare._tshare: its functions and its initialisation. */
#include "args.h"
#include "array_interface.h"
#include "asarray.h"
#include "cuda_memory.h"
#include "cuda_type.h"
#include "dlpack.h"
#include "docstrings.h"
#include "dtype.h"
#include "dtype_object.h"
#include "errors.h"
#include "exchange.h"
#include "frames.h"
#include "gil.h"
#include "info.h"
#include "pickling.h"
#include "pin.h"
#include "pools.h"
#include "region_open.h"
#include "region_type.h"
#include "session.h"
#include "stream.h"
#include "tensor.h"
#include "tensor_spec.h"
#include "tensor_type.h"
#include "watcher.h"

static PyObject *module_create(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs,
			       PyObject *kwnames)
{
	PyThreadState *state;
	static const char *const names[] = { "name", "shape", "dtype", TS_OPTION_NAMES, "device" };
	struct tshare_options options = { .size = sizeof(options) };
	struct tshare_dtype dtype = TSHARE_UINT8;
	PyObject *given[4 + TS_OPTION_COUNT], *keep = NULL, *self = NULL;
	const char *name = NULL;
	int64_t shape[TSHARE_NDIM_LIMIT];
	struct tshare_tensor *handle;
	struct tshare_ctx *ctx;
	int32_t ndim;
	int err;

	if (ts_parse("create", args, nargs, kwnames, names, 3, 4 + TS_OPTION_COUNT, given) < 0 ||
	    ts_need_arg(given[1], "create", "shape") < 0)
		return NULL;
	if (!ts_none(given[0]) && !PyUnicode_Check(given[0])) {
		PyErr_Format(PyExc_TypeError,
			     "name: must be a str, not %R (create(None, shape, dtype) makes a "
			     "tensor without a name)",
			     Py_TYPE(given[0]));
		return NULL;
	}
	if (ts_dims_arg(given[1], "shape", shape, &ndim) < 0)
		return NULL;
	if (given[2] && ts_dtype_arg(given[2], &dtype) < 0)
		return NULL;
	if (ts_options_arg(given + 3, &options) < 0)
		return NULL;
	if (!ts_none(given[3 + TS_OPTION_COUNT])) {
		const struct tshare_spec spec = { .dtype = dtype, .ndim = ndim, .shape = shape };

		return ts_cuda_create(given[0], &spec, &options, given[3 + TS_OPTION_COUNT]);
	}
	if (!ts_none(given[0])) {
		name = ts_name_arg(given[0], "name", &keep);
		if (!name)
			return NULL;
	}
	ctx = ts_session();
	if (ctx) {
		state = PyEval_SaveThread();
		err = tshare_tensor_create(ctx, name, dtype, ndim, shape, &options, &handle);
		PyEval_RestoreThread(state);
		self = err < 0 ? ts_raise(err, name ? given[0] : NULL) : ts_tensor_wrap(handle);
	}
	Py_XDECREF(keep);
	return self;
}

/*
 * The only tensor of a region, or the one in a device's memory that it names, which must be on
 * @device if that isn't NULL or None. Takes over the reference to the region, to which @argument
 * led; Region's method @other opens one of several tensors.
 */
static PyObject *sole_tensor(struct tshare_region *region, const char *argument, const char *other,
			     PyObject *device)
{
	size_t count = tshare_region_get_tensor_count(region);
	struct tshare_tensor *handle;
	PyObject *self = NULL;
	int err;

	if (tshare_cuda_memory_is(region)) {
		self = ts_cuda_open(region, device);
	} else if (!ts_none(device)) {
		PyErr_Format(PyExc_ValueError,
			     "device: the region is in the host's memory (open it without device, "
			     "and call cuda())");
	} else if (count != 1) {
		PyErr_Format(PyExc_ValueError,
			     "%s: the region holds %zu tensors, not one (use tshare.Region.%s())",
			     argument, count, other);
	} else {
		err = tshare_region_get_tensor(region, 0, &handle);
		self = err < 0 ? ts_raise(err, NULL) : ts_tensor_wrap(handle);
	}
	ts_region_unref(region);
	return self;
}

static PyObject *module_open(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs,
			     PyObject *kwnames)
{
	PyObject *device;
	struct tshare_region *region = ts_open_region(args, nargs, kwnames, &device);

	return region ? sole_tensor(region, "name", "open", device) : NULL;
}

static PyObject *module_from_fd(PyObject *Py_UNUSED(module), PyObject *const *args,
				Py_ssize_t nargs, PyObject *kwnames)
{
	struct tshare_region *region = ts_import_region(args, nargs, kwnames);

	return region ? sole_tensor(region, "fd", "from_fd", NULL) : NULL;
}

static PyObject *module_unlink(PyObject *Py_UNUSED(module), PyObject *arg)
{
	PyThreadState *state;
	PyObject *keep;
	const char *name = ts_name_arg(arg, "name", &keep);
	struct tshare_ctx *ctx;
	int err;

	if (!name)
		return NULL;
	ctx = ts_session();
	if (!ctx) {
		Py_XDECREF(keep);
		return NULL;
	}
	state = PyEval_SaveThread();
	err = tshare_ctx_unlink(ctx, name);
	PyEval_RestoreThread(state);
	Py_XDECREF(keep);
	if (err < 0)
		return ts_raise(err, arg);
	Py_RETURN_NONE;
}

static PyObject *module_backend(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
	struct tshare_ctx *ctx = ts_session();

	return ctx ? PyUnicode_FromString(tshare_ctx_get_backend(ctx)) : NULL;
}

static PyObject *module_host_id(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
	char id[TSHARE_HOST_ID_MAX + 1];
	struct tshare_ctx *ctx = ts_session();
	int err;

	if (!ctx)
		return NULL;
	err = tshare_ctx_get_host_id(ctx, id);
	return err < 0 ? ts_raise(err, NULL) : PyUnicode_FromString(id);
}

static PyMethodDef methods[] = {
	{ "create", TS_FASTCALL(module_create), METH_FASTCALL | METH_KEYWORDS, DOC_create },
	{ "open", TS_FASTCALL(module_open), METH_FASTCALL | METH_KEYWORDS, DOC_open },
	{ "from_fd", TS_FASTCALL(module_from_fd), METH_FASTCALL | METH_KEYWORDS, DOC_from_fd },
	{ "from_dlpack", TS_FASTCALL(ts_from_dlpack), METH_FASTCALL | METH_KEYWORDS,
	  DOC_from_dlpack },
	{ "asarray", TS_FASTCALL(ts_asarray), METH_FASTCALL | METH_KEYWORDS, DOC_asarray },
	{ "array_interface", ts_array_interface_of, METH_O, DOC_array_interface },
	{ "unlink", module_unlink, METH_O, DOC_unlink },
	{ "watch", ts_watch, METH_O, DOC_watch },
	{ "list", ts_list, METH_NOARGS, DOC_list },
	{ "limits", ts_limits, METH_NOARGS, DOC_limits },
	{ "backend", module_backend, METH_NOARGS, DOC_backend },
	{ "host_id", module_host_id, METH_NOARGS, DOC_host_id },
	{ "raw_interface", ts_raw_interface, METH_O, NULL },
	{ "rebuild", ts_tensor_rebuild, METH_VARARGS, NULL },
	{ "reducer_override", ts_reducer_override, METH_O, NULL },
	{ "bytes_at", ts_bytes_at, METH_VARARGS, NULL },
	{ NULL, NULL, 0, NULL },
};

/*
 * Only the main interpreter, whose id is 0, has the module. The types and the session belong to the
 * process, and the end of a subinterpreter would take them from the others.
 */
static int exec(PyObject *module)
{
	if (PyInterpreterState_GetID(PyInterpreterState_Get())) {
		PyErr_SetString(PyExc_ImportError,
				"tshare can be imported only by the main interpreter, not by a "
				"subinterpreter");
		return -1;
	}
	if (ts_tensor_type) {
		PyErr_SetString(PyExc_ImportError, "tshare can be imported only once in a process");
		return -1;
	}
	ts_gil_init();
	if (ts_dtype_init(module) < 0 || ts_tensor_init(module) < 0 || ts_region_init(module) < 0)
		return -1;
	if (ts_info_init(module) < 0)
		return -1;
	if (ts_pin_init(module) < 0 || ts_cuda_init(module) < 0 || ts_stream_init(module) < 0 ||
	    ts_watcher_init(module) < 0)
		return -1;
	if (ts_frames_init(module) < 0 || ts_pools_init(module) < 0)
		return -1;
	if (ts_dlpack_init(module) < 0)
		return -1;
	if (PyModule_AddStringConstant(module, "__version__", tshare_version()) < 0)
		return -1;
	return ts_exchange_init();
}

static PyModuleDef_Slot slots[] = {
	{ Py_mod_exec, exec },
#ifdef Py_GIL_DISABLED
	/* Objects, caches and the session are guarded by the GIL: import enables it. */
	{ Py_mod_gil, Py_MOD_GIL_USED },
#endif
	{ 0, NULL },
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "tshare._tshare",
	.m_methods = methods,
	.m_slots = slots,
};

PyMODINIT_FUNC PyInit__tshare(void);

PyMODINIT_FUNC PyInit__tshare(void)
{
	return PyModuleDef_Init(&definition);
}
