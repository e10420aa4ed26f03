// SPDX-License-Identifier: MIT
/* The streams for the arguments of Stream.create() and Stream.open(). */
#include "frames_open.h"

#include "args.h"
#include "errors.h"
#include "generation.h"
#include "session.h"
#include "specs.h"

/* Creation */

static struct tshare_stream *create(PyObject *name_arg, const struct ts_specs *fields,
				    const struct tshare_stream_options *options)
{
	struct tshare_ctx *ctx = ts_session();
	struct tshare_stream *stream = NULL;
	PyThreadState *state;
	const char *name;
	PyObject *keep;
	int err;

	name = ctx ? ts_name_arg(name_arg, "name", &keep) : NULL;
	if (!name)
		return NULL;
	state = PyEval_SaveThread();
	err = tshare_stream_create(ctx, name, fields->specs, fields->count, options, &stream);
	PyEval_RestoreThread(state);
	if (err < 0)
		ts_raise_of_create(err, name_arg, "fields", fields->specs, fields->count);
	Py_XDECREF(keep);
	return err < 0 ? NULL : stream;
}

static int count_arg(PyObject *obj, const char *argument, int64_t low, uint32_t *count)
{
	int64_t number = 0;

	if (obj && ts_int_arg(obj, argument, low, TSHARE_STREAM_SLOTS, &number) < 0)
		return -1;
	*count = number;
	return 0;
}

enum { NAME, FIELDS, SLOTS, HISTORY, KEEP_ALL, MODE, EXIST_OK, NODE, DMA32, CONTIGUOUS, OPTIONS };

static int options_arg(PyObject *const *given, struct tshare_stream_options *options,
		       struct tshare_options *region)
{
	/* In the order of TS_OPTION_NAMES: a stream has neither lifetime nor drafts. */
	PyObject *const of_region[TS_OPTION_COUNT] = {
		given[MODE],	   NULL, NULL, given[EXIST_OK], given[NODE], given[DMA32],
		given[CONTIGUOUS],
	};
	bool keep_all;

	if (count_arg(given[SLOTS], "slots", 2, &options->slots) < 0 ||
	    count_arg(given[HISTORY], "history", 1, &options->history) < 0 ||
	    ts_bool_arg(given[KEEP_ALL], "keep_all", &keep_all) < 0 ||
	    ts_options_arg(of_region, region) < 0)
		return -1;
	options->flags = keep_all ? TSHARE_KEEP_ALL : 0;
	options->region = region;
	return 0;
}

struct tshare_stream *ts_create_stream(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
				       PyObject **name)
{
	static const char *const names[OPTIONS] = {
		"name", "fields",   "slots", "history", "keep_all",
		"mode", "exist_ok", "node",  "dma32",	"contiguous",
	};
	struct tshare_options region = { .size = sizeof(region) };
	struct tshare_stream_options options = { .size = sizeof(options) };
	struct tshare_stream *stream;
	PyObject *given[OPTIONS];
	struct ts_specs fields;

	if (ts_parse("create", args, nargs, kwnames, names, MODE, OPTIONS, given) < 0 ||
	    ts_need_arg(given[NAME], "create", "name") < 0 ||
	    ts_need_arg(given[FIELDS], "create", "fields") < 0 ||
	    options_arg(given, &options, &region) < 0 ||
	    ts_specs_open(given[FIELDS], "fields", &fields) < 0)
		return NULL;
	stream = create(given[NAME], &fields, &options);
	ts_specs_close(&fields);
	*name = given[NAME];
	return stream;
}

/* Opening */

struct open_call {
	struct tshare_ctx *ctx;
	const char *name;
	struct tshare_stream_open_options options;
	struct tshare_open_options wait;
	struct tshare_stream *stream;
};

static int open_stream(void *data)
{
	struct open_call *call = data;

	call->options.timeout_ns = call->wait.timeout_ns;
	call->options.check = call->wait.check;
	call->options.check_ns = call->wait.check_ns;
	call->options.data = call->wait.data;
	return tshare_stream_open(call->ctx, call->name, &call->options, &call->stream);
}

struct tshare_stream *ts_open_stream(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
				     PyObject **name, bool *observe)
{
	static const char *const names[] = { "name",	"keep_all", "history", "hold",
					     "observe", "wait",	    "follow" };
	struct open_call call = { .options.size = sizeof(call.options) };
	int64_t history = 0;
	PyObject *given[7], *keep;
	bool keep_all, follow;
	int err;

	if (ts_parse("open", args, nargs, kwnames, names, 4, 7, given) < 0 ||
	    ts_need_arg(given[0], "open", "name") < 0 ||
	    ts_bool_arg(given[1], "keep_all", &keep_all) < 0 ||
	    (given[2] && ts_int_arg(given[2], "history", 0, UINT32_MAX, &history) < 0) ||
	    count_arg(ts_none(given[3]) ? NULL : given[3], "hold", 1, &call.options.hold) < 0 ||
	    ts_bool_arg(given[4], "observe", observe) < 0 ||
	    (given[5] && ts_seconds_arg(given[5], "wait", &call.wait.timeout_ns) < 0) ||
	    ts_bool_arg(given[6], "follow", &follow) < 0)
		return NULL;
	call.options.flags = (keep_all ? TSHARE_KEEP_ALL : 0) | (*observe ? TSHARE_OBSERVE : 0) |
			     (follow ? TSHARE_FOLLOW : 0);
	call.options.history = history;
	call.name = ts_name_arg(given[0], "name", &keep);
	if (!call.name)
		return NULL;
	call.ctx = ts_hold_session();
	err = call.ctx ? ts_wait_open(open_stream, &call, &call.wait) : 1;
	if (err < 0)
		ts_raise(err, given[0]);
	tshare_ctx_unref(call.ctx);
	Py_XDECREF(keep);
	*name = given[0];
	return err ? NULL : call.stream;
}

PyObject *ts_stream_fields(struct tshare_region *region)
{
	size_t count = tshare_region_get_tensor_count(region), i;
	PyObject *names = PyList_New(0), *name, *tuple;
	const char *text;
	int err;

	for (i = 0; names && i < count; i++) {
		err = tshare_region_get_tensor_name(region, i, &text);
		if (!err && *text == '.')
			continue;
		name = err < 0 ? ts_raise(err, NULL) : ts_text(text);
		if (!name || PyList_Append(names, name) < 0)
			Py_CLEAR(names);
		Py_XDECREF(name);
	}
	tuple = names ? PyList_AsTuple(names) : NULL;
	Py_XDECREF(names);
	return tuple;
}
