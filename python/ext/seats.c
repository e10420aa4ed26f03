// SPDX-License-Identifier: MIT
#include "seats.h"

#include <errno.h>

#include "args.h"
#include "docstrings.h"
#include "errors.h"
#include "record.h"

static PyObject *seat_type;

static const struct ts_record_field seat_fields[] = {
	{ "seat", DOC_StreamSeat_seat },
	{ "pid", DOC_StreamSeat_pid },
	{ "held", DOC_StreamSeat_held },
	{ "keeps_all", DOC_StreamSeat_keeps_all },
	{ "evicted", DOC_StreamSeat_evicted },
	{ "command", DOC_StreamSeat_command },
	{ NULL, NULL },
};

struct seats {
	int count;
	struct tshare_stream_seat items[TSHARE_STREAM_CONSUMERS];
};

static int gather(const struct tshare_stream_seat *seat, void *data)
{
	struct seats *seats = data;

	seats->items[seats->count++] = *seat;
	return 0;
}

static PyObject *seat_new(const struct tshare_stream_seat *seat)
{
	PyObject *values[] = {
		PyLong_FromLong(seat->seat),	     PyLong_FromLong(seat->pid),
		PyLong_FromUnsignedLong(seat->held), PyBool_FromLong(seat->keeps_all),
		PyBool_FromLong(seat->evicted),	     ts_text(seat->command),
	};

	return ts_record_new(seat_type, values, sizeof(values) / sizeof(values[0]));
}

PyObject *ts_seats_list(struct tshare_stream *handle)
{
	struct seats seats = { .count = 0 };
	PyObject *list, *item;
	int i, err;

	err = tshare_stream_list_seats(handle, gather, &seats);
	if (err < 0)
		return ts_raise(err, NULL);
	list = PyList_New(seats.count);
	for (i = 0; list && i < seats.count; i++) {
		item = seat_new(&seats.items[i]);
		if (!item || PyList_SetItem(list, i, item) < 0)
			Py_CLEAR(list);
	}
	return list;
}

int ts_seats_parse(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, int32_t *seat,
		   int32_t *pid)
{
	static const char *const names[] = { "seat", "pid" };
	PyObject *given[2];
	int64_t number, process = 0;

	if (ts_parse("evict", args, nargs, kwnames, names, 2, 2, given) < 0 ||
	    ts_need_arg(given[0], "evict", "seat") < 0 ||
	    ts_int_arg(given[0], "seat", 0, TSHARE_STREAM_CONSUMERS - 1, &number) < 0 ||
	    (!ts_none(given[1]) && ts_int_arg(given[1], "pid", 1, INT32_MAX, &process) < 0))
		return -1;
	*seat = number;
	*pid = process;
	return 0;
}

PyObject *ts_seats_evict(struct tshare_stream *handle, int32_t seat, int32_t pid)
{
	int err = tshare_stream_evict(handle, seat, pid);

	if (!err)
		Py_RETURN_NONE;
	return err == -ENOENT ? ts_raise_as(PyExc_LookupError) : ts_raise(err, NULL);
}

int ts_seats_init(PyObject *module)
{
	seat_type = ts_record_type("StreamSeat", DOC_StreamSeat, seat_fields);
	return seat_type ? PyModule_AddObjectRef(module, "StreamSeat", seat_type) : -1;
}
