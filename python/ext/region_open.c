// SPDX-License-Identifier: MIT
/* The regions for the arguments of open() and of from_fd(). */
#include "region_open.h"

#include "args.h"
#include "errors.h"
#include "generation.h"
#include "gil.h"
#include "region.h"
#include "session.h"
#include "tensor.h"

/* A reference to the region of a Region or Tensor; NULL for None, or with an error set. */
static int other_arg(PyObject *obj, struct tshare_region **other)
{
	struct tshare_tensor *tensor;

	*other = NULL;
	if (ts_none(obj))
		return 0;
	if (PyObject_TypeCheck(obj, ts_region_type)) {
		*other = ts_region_handle(obj);
	} else if (PyObject_TypeCheck(obj, ts_tensor_type)) {
		tensor = ts_tensor_handle(obj);
		*other = tensor ? tshare_tensor_get_region(tensor) : NULL;
	} else {
		PyErr_Format(PyExc_TypeError, "other_than: must be a Region or a Tensor, not %R",
			     Py_TYPE(obj));
	}
	if (!*other)
		return -1;
	tshare_region_ref(*other);
	return 0;
}

struct open_call {
	struct tshare_ctx *ctx;
	const char *name;
	struct tshare_open_options *options;
	struct tshare_region *region;
};

static int open_region(void *data)
{
	struct open_call *call = data;

	return tshare_region_open(call->ctx, call->name, call->options, &call->region);
}

static struct tshare_region *open_named(PyObject *name_arg, struct tshare_open_options *options)
{
	struct open_call call = { .options = options };
	PyObject *keep;
	int err;

	call.name = ts_name_arg(name_arg, "name", &keep);
	if (!call.name)
		return NULL;
	call.ctx = ts_hold_session();
	if (call.ctx) {
		err = ts_wait_open(open_region, &call, options);
		if (err < 0)
			ts_raise(err, name_arg);
		tshare_ctx_unref(call.ctx);
	}
	Py_XDECREF(keep);
	return call.region;
}

struct tshare_region *ts_open_region(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
				     PyObject **device)
{
	static const char *const names[] = { "name", "readonly", "wait", "other_than", "device" };
	struct tshare_open_options options = { .size = sizeof(options) };
	struct tshare_region *other, *region;
	PyObject *given[5];
	bool readonly;

	if (ts_parse("open", args, nargs, kwnames, names, 1, device ? 5 : 4, given) < 0 ||
	    ts_need_arg(given[0], "open", "name") < 0 ||
	    ts_bool_arg(given[1], "readonly", &readonly) < 0)
		return NULL;
	if (given[2] && ts_seconds_arg(given[2], "wait", &options.timeout_ns) < 0)
		return NULL;
	if (other_arg(given[3], &other) < 0)
		return NULL;
	if (device)
		*device = given[4];
	options.flags = readonly ? TSHARE_READONLY : 0;
	options.other_than = other;
	region = open_named(given[0], &options);
	ts_region_unref(other);
	return region;
}

struct tshare_region *ts_import_region(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
	static const char *const names[] = { "fd", "readonly" };
	struct tshare_region *region = NULL;
	struct tshare_ctx *ctx;
	PyThreadState *state;
	PyObject *given[2];
	bool readonly;
	int fd, err;

	if (ts_parse("from_fd", args, nargs, kwnames, names, 1, 2, given) < 0 ||
	    ts_need_arg(given[0], "from_fd", "fd") < 0 ||
	    ts_bool_arg(given[1], "readonly", &readonly) < 0)
		return NULL;
	fd = ts_fd_arg(given[0], "fd");
	ctx = fd < 0 ? NULL : ts_session();
	if (!ctx)
		return NULL;
	state = PyEval_SaveThread();
	err = tshare_region_import(ctx, fd, readonly ? TSHARE_READONLY : 0, &region);
	PyEval_RestoreThread(state);
	if (err < 0)
		ts_raise(err, NULL);
	return region;
}
