// SPDX-License-Identifier: MIT
/* The pools for the arguments of Pool.create() and Pool.open(). */
#include "pools_open.h"

#include "args.h"
#include "errors.h"
#include "generation.h"
#include "session.h"

enum { NAME, SIZE, SLOTS, MODE, LIFETIME, NODE, DMA32, CONTIGUOUS, OPTIONS };

struct tshare_pool *ts_create_pool(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
				   PyObject **pool_name)
{
	static const char *const names[OPTIONS] = {
		"name", "size", "slots", "mode", "lifetime", "node", "dma32", "contiguous",
	};
	struct tshare_options region = { .size = sizeof(region) };
	struct tshare_pool_options options = { .size = sizeof(options), .region = &region };
	struct tshare_pool *handle = NULL;
	PyObject *given[OPTIONS], *keep;
	int64_t size, slots = 0;
	struct tshare_ctx *ctx;
	PyThreadState *state;
	const char *name;
	int err;

	if (ts_parse("create", args, nargs, kwnames, names, MODE, OPTIONS, given) < 0 ||
	    ts_need_arg(given[NAME], "create", "name") < 0 ||
	    ts_need_arg(given[SIZE], "create", "size") < 0 ||
	    ts_int_arg(given[SIZE], "size", 1, INT64_MAX, &size) < 0 ||
	    (!ts_none(given[SLOTS]) &&
	     ts_int_arg(given[SLOTS], "slots", 1, TSHARE_POOL_SLOTS, &slots) < 0))
		return NULL;
	/* In the order of TS_OPTION_NAMES: a pool has neither drafts nor replacements. */
	if (ts_options_arg((PyObject *const[TS_OPTION_COUNT]){ given[MODE], given[LIFETIME], NULL,
							       NULL, given[NODE], given[DMA32],
							       given[CONTIGUOUS] },
			   &region) < 0)
		return NULL;
	options.slots = slots;
	ctx = ts_session();
	name = ctx ? ts_name_arg(given[NAME], "name", &keep) : NULL;
	if (!name)
		return NULL;
	state = PyEval_SaveThread();
	err = tshare_pool_create(ctx, name, size, &options, &handle);
	PyEval_RestoreThread(state);
	if (err < 0)
		ts_raise(err, given[NAME]);
	Py_XDECREF(keep);
	*pool_name = given[NAME];
	return err < 0 ? NULL : handle;
}

struct open_call {
	struct tshare_ctx *ctx;
	const char *name;
	struct tshare_open_options options;
	bool waits;
	struct tshare_pool *pool;
};

static int open_piece(void *data, int64_t timeout)
{
	struct open_call *call = data;

	call->options.timeout_ns = timeout == INT64_MAX ? -1 : timeout;
	/* Without a timeout the error would be that of a call that doesn't wait. */
	if (call->waits && !timeout)
		call->options.timeout_ns = 1;
	return tshare_pool_open(call->ctx, call->name, &call->options, &call->pool);
}

struct tshare_pool *ts_open_pool(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
				 PyObject **pool_name)
{
	static const char *const names[] = { "name", "readonly", "wait" };
	struct open_call call = { .options.size = sizeof(call.options) };
	PyObject *given[3], *keep;
	int64_t wait = 0;
	bool readonly;
	int err;

	if (ts_parse("open", args, nargs, kwnames, names, 1, 3, given) < 0 ||
	    ts_need_arg(given[0], "open", "name") < 0 ||
	    ts_bool_arg(given[1], "readonly", &readonly) < 0 ||
	    (given[2] && ts_seconds_arg(given[2], "wait", &wait) < 0))
		return NULL;
	call.options.flags = readonly ? TSHARE_READONLY : 0;
	call.waits = wait;
	call.ctx = ts_session();
	call.name = call.ctx ? ts_name_arg(given[0], "name", &keep) : NULL;
	if (!call.name)
		return NULL;
	err = ts_wait(open_piece, &call, wait);
	if (err < 0)
		ts_raise(err, given[0]);
	Py_XDECREF(keep);
	*pool_name = given[0];
	return err ? NULL : call.pool;
}
