// SPDX-License-Identifier: MIT
/* Generations of a region: publishing and waiting. */
#include "generation.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "args.h"
#include "call.h"
#include "clock.h"
#include "errors.h"
#include "gil.h"
#include "region.h"

/*
 * Longest time that the main thread, which runs Python's signal handlers, stays in the library
 * before it looks for signals. A signal just before the sleep, or in another thread, doesn't end
 * the sleep.
 */
#define SLICE_NS (100 * 1000 * 1000)

PyObject *ts_region_generation(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_region *handle = ts_region_handle(self);
	uint64_t generation;
	int err;

	if (!handle)
		return NULL;
	err = tshare_region_get_generation(handle, &generation);
	return err < 0 ? ts_raise(err, NULL) : PyLong_FromUnsignedLongLong(generation);
}

/* Keeps the GIL: publishing takes a microsecond, less than getting the GIL back can take. */
static PyObject *publish(PyObject *self, int (*add_one)(struct tshare_region *, uint64_t *))
{
	struct tshare_region *handle = ts_region_handle(self);
	uint64_t generation;
	int err;

	if (!handle)
		return NULL;
	err = add_one(handle, &generation);
	return err < 0 ? ts_raise(err, NULL) : PyLong_FromUnsignedLongLong(generation);
}

PyObject *ts_region_publish(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return publish(self, tshare_region_publish);
}

PyObject *ts_region_publish_once(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return publish(self, tshare_region_publish_once);
}

PyObject *ts_region_has_publishers(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_region *handle = ts_region_handle(self);
	bool has;
	int err;

	if (!handle)
		return NULL;
	err = tshare_region_has_publishers(handle, &has);
	return err < 0 ? ts_raise(err, NULL) : PyBool_FromLong(has);
}

PyObject *ts_region_announce(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_region *handle = ts_region_handle(self);
	int err;

	if (!handle)
		return NULL;
	err = tshare_region_announce(handle);
	if (err < 0)
		return ts_raise(err, NULL);
	Py_RETURN_NONE;
}

/* The rest of @duration, which began at @start. */
static int64_t left_of(int64_t duration, int64_t start)
{
	int64_t passed = ts_clock_ns() - start;

	return duration == INT64_MAX ? INT64_MAX : passed < duration ? duration - passed : 0;
}

struct tshare_waiter *ts_region_waiter(PyObject *self, int use)
{
	struct tshare_waiter **waiter = &((struct ts_region *)self)->waiters[use];
	struct tshare_region *handle = ts_region_handle(self);
	int err;

	if (!handle)
		return NULL;
	err = *waiter ? 0 : tshare_waiter_new(handle, waiter);
	if (err < 0)
		ts_raise(err, NULL);
	return *waiter;
}

/* Whether threading.main_thread() is the caller's: a program may run Python in any thread. */
static bool is_python_s_main_thread(void)
{
	PyObject *threading = PyImport_ImportModule("threading"), *thread = NULL, *ident = NULL;
	bool is = false;

	if (threading)
		thread = PyObject_CallMethod(threading, "main_thread", NULL);
	if (thread)
		ident = PyObject_GetAttrString(thread, "ident");
	if (ident)
		is = PyLong_AsUnsignedLong(ident) == PyThread_get_thread_ident();
	Py_XDECREF(ident);
	Py_XDECREF(thread);
	Py_XDECREF(threading);
	PyErr_Clear();
	return is;
}

static bool is_main_thread(void)
{
	return syscall(SYS_gettid) == getpid() || is_python_s_main_thread();
}

/* The result after close(): a newer generation that was published before, or an error. */
static PyObject *end_of_closed(struct tshare_region *handle, uint64_t seen)
{
	uint64_t generation;

	if (!tshare_region_get_generation(handle, &generation) && generation > seen)
		return PyLong_FromUnsignedLongLong(generation);
	PyErr_SetString(PyExc_ValueError, "region: closed during wait()");
	return NULL;
}

int ts_wait(int (*wait)(void *call, int64_t timeout), void *call, int64_t timeout)
{
	int64_t start = ts_clock_ns(), slice = SLICE_NS, left, piece;
	PyThreadState *state;
	int err;

	for (;;) {
		left = left_of(timeout, start);
		piece = left < slice ? left : slice;
		state = PyEval_SaveThread();
		err = wait(call, piece);
		PyEval_RestoreThread(state);
		if (err != -EINTR && (err != -ETIMEDOUT || piece == left))
			return err;
		if (PyErr_CheckSignals() < 0)
			return 1;
		if (!is_main_thread())
			slice = INT64_MAX;
	}
}

static int check_signals(void *data)
{
	PyThreadState **state = data;
	int err;

	PyEval_RestoreThread(*state);
	err = PyErr_CheckSignals();
	*state = PyEval_SaveThread();
	return err;
}

/* Another thread runs no handlers. Without the GIL, which ends threads while Python exits. */
static int check_nothing(void *Py_UNUSED(data))
{
	return 0;
}

int ts_wait_open(int (*attempt)(void *call), void *call, struct tshare_open_options *options)
{
	bool main_thread = options->timeout_ns && is_main_thread();
	PyThreadState *state;
	int err;

	options->check = main_thread ? check_signals : check_nothing;
	options->check_ns = main_thread ? SLICE_NS : 0;
	options->data = &state;
	state = PyEval_SaveThread();
	err = attempt(call);
	PyEval_RestoreThread(state);
	return err == -ECANCELED ? 1 : err;
}

/* A call of wait(). Its caller holds the references, which close() leaves alone. */
struct wait_call {
	struct tshare_waiter *waiter;
	uint64_t seen;
	int64_t spin;
	int64_t start;
	uint64_t generation;
};

static int wait_piece(void *data, int64_t timeout)
{
	struct wait_call *call = data;

	return tshare_waiter_wait(call->waiter, call->seen, timeout,
				  left_of(call->spin, call->start), &call->generation);
}

static PyObject *wait_for(struct tshare_region *handle, struct wait_call *call, int64_t timeout)
{
	int err = ts_wait(wait_piece, call, timeout);

	if (err == -ECANCELED)
		return end_of_closed(handle, call->seen);
	if (err)
		return err < 0 ? ts_raise(err, NULL) : NULL;
	return PyLong_FromUnsignedLongLong(call->generation);
}

int ts_wait_args(const char *function, PyObject *const *given, int64_t *seen, int64_t *timeout)
{
	if (ts_need_arg(given[0], function, "seen") < 0 ||
	    ts_int_arg(given[0], "seen", 0, INT64_MAX, seen) < 0)
		return -1;
	*timeout = INT64_MAX;
	return ts_none(given[1]) ? 0 : ts_seconds_arg(given[1], "timeout", timeout);
}

/* The arguments seen and timeout, and spin where @total is 3: 0, or -1 with an error set. */
static int parse_wait(const char *function, int total, PyObject *const *args, Py_ssize_t nargs,
		      PyObject *kwnames, PyObject **given, int64_t *seen, int64_t *timeout)
{
	static const char *const names[] = { "seen", "timeout", "spin" };

	if (ts_parse(function, args, nargs, kwnames, names, 2, total, given) < 0)
		return -1;
	return ts_wait_args(function, given, seen, timeout);
}

PyObject *ts_region_wait(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
	struct tshare_region *handle = ts_region_handle(self);
	struct tshare_waiter *waiter;
	int64_t seen, timeout, spin = 0;
	PyObject *given[3], *generation;
	struct wait_call call;
	PyThreadState *state;

	if (!handle || parse_wait("wait", 3, args, nargs, kwnames, given, &seen, &timeout) < 0 ||
	    (given[2] && ts_seconds_arg(given[2], "spin", &spin) < 0))
		return NULL;
	waiter = ts_region_waiter(self, TS_WAIT);
	if (!waiter)
		return NULL;
	/* close() may come while the GIL is released. */
	tshare_region_ref(handle);
	tshare_waiter_ref(waiter);
	call = (struct wait_call){ waiter, seen, spin, ts_clock_ns(), 0 };
	generation = wait_for(handle, &call, timeout);
	state = ts_gil_release();
	tshare_waiter_unref(waiter);
	tshare_region_unref(handle);
	ts_gil_restore(state);
	return generation;
}

/* The event descriptor of the region's waiter for @use; -1 with an error set. */
static int event_fd(PyObject *self, int use)
{
	struct tshare_waiter *waiter = ts_region_waiter(self, use);
	int fd, err;

	if (!waiter)
		return -1;
	err = tshare_waiter_get_event_fd(waiter, &fd);
	if (err < 0) {
		ts_raise(err, NULL);
		return -1;
	}
	return fd;
}

PyObject *ts_region_event_fileno(PyObject *self, PyObject *Py_UNUSED(unused))
{
	int fd = event_fd(self, TS_WAIT);

	return fd < 0 ? NULL : PyLong_FromLong(fd);
}

/*
 * For tshare._waiting: a duplicate, which the caller closes, of a descriptor apart from wait()'s,
 * since a read of one takes the news from all its readers. Another thread needs the GIL to close
 * the original, so the duplicate is made before.
 */
PyObject *ts_region_dup_async_fd(PyObject *self, PyObject *Py_UNUSED(unused))
{
	int fd = event_fd(self, TS_WAIT_ASYNC);

	if (fd < 0)
		return NULL;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return fd < 0 ? PyErr_SetFromErrno(PyExc_OSError) : PyLong_FromLong(fd);
}

/* Refuses wrong arguments now, before there is a coroutine that may never run. */
PyObject *ts_region_wait_async(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			       PyObject *kwnames)
{
	int64_t seen, timeout;
	PyObject *given[2];

	if (!ts_region_handle(self) ||
	    parse_wait("wait_async", 2, args, nargs, kwnames, given, &seen, &timeout) < 0)
		return NULL;
	return ts_call_module("tshare._waiting", "wait_async",
			      Py_BuildValue("OOO", self, given[0], given[1] ? given[1] : Py_None));
}

PyObject *ts_region_generations(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
				PyObject *kwnames)
{
	static const char *const names[] = { "seen" };
	PyObject *given;
	int64_t seen;

	if (!ts_region_handle(self) ||
	    ts_parse("generations", args, nargs, kwnames, names, 1, 1, &given) < 0)
		return NULL;
	if (ts_none(given))
		given = NULL;
	else if (ts_int_arg(given, "seen", 0, INT64_MAX, &seen) < 0)
		return NULL;
	return ts_call_module("tshare._generations", "Generations",
			      given ? Py_BuildValue("OO", self, given) :
				      Py_BuildValue("ON", self, ts_region_generation(self, NULL)));
}
