// SPDX-License-Identifier: MIT
/* The pools for the arguments of Pool.create() and Pool.open(). */
#include "pools_open.h"

#include <errno.h>

#include "args.h"
#include "errors.h"
#include "generation.h"
#include "session.h"

struct open_call {
	struct tshare_ctx *ctx;
	const char *name;
	struct tshare_open_options options;
	struct tshare_pool *pool;
};

static int open_pool(void *data)
{
	struct open_call *call = data;

	return tshare_pool_open(call->ctx, call->name, &call->options, &call->pool);
}

/* How soon a process that finds the name taken sees that its creator has died. */
#define EXIST_NS INT64_C(1000000000)

struct create_call {
	int64_t size;
	struct tshare_pool_options options;
	bool exist_ok;
	bool created;
	struct open_call open; /* with the context, name and pool */
};

/*
 * Creates the pool, or opens one of that name: 0 or an error, or 1 with an error set. Another process
 * may be creating it, and may die meanwhile.
 */
static int create(struct create_call *call)
{
	struct open_call *open = &call->open;
	PyThreadState *state;
	int err;

	do {
		state = PyEval_SaveThread();
		err = tshare_pool_create(open->ctx, open->name, call->size, &call->options,
					 &open->pool);
		PyEval_RestoreThread(state);
		call->created = !err;
		if (err != -EEXIST || !call->exist_ok)
			return err;
		err = ts_wait_open(open_pool, open, &open->options);
	} while (err == -ETIMEDOUT || err == -ENOENT);
	return err;
}

enum { NAME, SIZE, SLOTS, MODE, LIFETIME, EXIST_OK, NODE, DMA32, CONTIGUOUS, OPTIONS };

struct tshare_pool *ts_create_pool(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
				   PyObject **pool_name, bool *ends)
{
	static const char *const names[OPTIONS] = {
		"name",	    "size", "slots", "mode",	   "lifetime",
		"exist_ok", "node", "dma32", "contiguous",
	};
	struct tshare_options region = { .size = sizeof(region) };
	struct create_call call = {
		.options = { .size = sizeof(call.options), .region = &region },
		.open.options = { .size = sizeof(call.open.options), .timeout_ns = EXIST_NS },
	};
	PyObject *given[OPTIONS], *keep;
	int64_t slots = 0;
	int err;

	if (ts_parse("create", args, nargs, kwnames, names, MODE, OPTIONS, given) < 0 ||
	    ts_need_arg(given[NAME], "create", "name") < 0 ||
	    ts_need_arg(given[SIZE], "create", "size") < 0 ||
	    ts_int_arg(given[SIZE], "size", 1, INT64_MAX, &call.size) < 0 ||
	    (!ts_none(given[SLOTS]) &&
	     ts_int_arg(given[SLOTS], "slots", 1, TSHARE_POOL_SLOTS, &slots) < 0) ||
	    ts_bool_arg(given[EXIST_OK], "exist_ok", &call.exist_ok) < 0)
		return NULL;
	/* In the order of TS_OPTION_NAMES: a pool has neither drafts nor replacements. */
	if (ts_options_arg((PyObject *const[TS_OPTION_COUNT]){ given[MODE], given[LIFETIME], NULL,
							       NULL, given[NODE], given[DMA32],
							       given[CONTIGUOUS] },
			   &region) < 0)
		return NULL;
	call.options.slots = slots;
	call.open.name = ts_name_arg(given[NAME], "name", &keep);
	if (!call.open.name)
		return NULL;
	call.open.ctx = ts_hold_session();
	err = call.open.ctx ? create(&call) : 1;
	if (err < 0)
		ts_raise(err, given[NAME]);
	tshare_ctx_unref(call.open.ctx);
	Py_XDECREF(keep);
	*pool_name = given[NAME];
	*ends = call.created && region.lifetime == TSHARE_LIFETIME_MAKER;
	return err ? NULL : call.open.pool;
}

struct tshare_pool *ts_open_pool(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
				 PyObject **pool_name)
{
	static const char *const names[] = { "name", "readonly", "wait" };
	struct open_call call = { .options.size = sizeof(call.options) };
	PyObject *given[3], *keep;
	bool readonly;
	int err;

	if (ts_parse("open", args, nargs, kwnames, names, 1, 3, given) < 0 ||
	    ts_need_arg(given[0], "open", "name") < 0 ||
	    ts_bool_arg(given[1], "readonly", &readonly) < 0 ||
	    (given[2] && ts_seconds_arg(given[2], "wait", &call.options.timeout_ns) < 0))
		return NULL;
	call.options.flags = readonly ? TSHARE_READONLY : 0;
	call.name = ts_name_arg(given[0], "name", &keep);
	if (!call.name)
		return NULL;
	call.ctx = ts_hold_session();
	err = call.ctx ? ts_wait_open(open_pool, &call, &call.options) : 1;
	if (err < 0)
		ts_raise(err, given[0]);
	tshare_ctx_unref(call.ctx);
	Py_XDECREF(keep);
	*pool_name = given[0];
	return err ? NULL : call.pool;
}
