// SPDX-License-Identifier: MIT
/* Generations of a region: publishing and waiting. */
#include "region.h"

#include <errno.h>
#include <time.h>

/*
 * How long to stay in the library before the next look for signals and for
 * close(). A signal that arrives just before the sleep, or in another thread,
 * doesn't end the sleep; nor does close(), which knows of no sleeper.
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

/* Takes a microsecond, which is less than to take the GIL again can cost. */
PyObject *ts_region_publish(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_region *handle = ts_region_handle(self);
	uint64_t generation;
	int err;

	if (!handle)
		return NULL;
	err = tshare_region_publish(handle, &generation);
	return err < 0 ? ts_raise(err, NULL) : PyLong_FromUnsignedLongLong(generation);
}

static int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* How much of @duration is left, which began at @start. */
static int64_t left_of(int64_t duration, int64_t start)
{
	int64_t passed = clock_ns() - start;

	return duration == INT64_MAX ? INT64_MAX : passed < duration ? duration - passed : 0;
}

/* @handle is the caller's reference, which close() leaves alone. */
static PyObject *wait_for(PyObject *self, struct tshare_region *handle, uint64_t seen,
			  int64_t timeout, int64_t spin)
{
	int64_t start = clock_ns(), left, piece;
	PyThreadState *state;
	uint64_t generation;
	bool closed;
	int err;

	for (;;) {
		/* What was published before the close() counts: look once more. */
		closed = !((struct ts_region *)self)->handle;
		left = closed ? 0 : left_of(timeout, start);
		piece = left < SLICE_NS ? left : SLICE_NS;
		state = PyEval_SaveThread();
		err = tshare_region_wait(handle, seen, piece, left_of(spin, start), &generation);
		PyEval_RestoreThread(state);
		if (!err)
			return PyLong_FromUnsignedLongLong(generation);
		if (closed) {
			PyErr_SetString(PyExc_ValueError, "region: closed during wait()");
			return NULL;
		}
		if (err != -EINTR && (err != -ETIMEDOUT || piece == left))
			return ts_raise(err, NULL);
		if (PyErr_CheckSignals() < 0)
			return NULL;
	}
}

/* The arguments seen and timeout, and spin where @total is 3: 0, or -1 with an error set. */
static int parse_wait(const char *function, int total, PyObject *const *args, Py_ssize_t nargs,
		      PyObject *kwnames, PyObject **given, int64_t *seen, int64_t *timeout)
{
	static const char *const names[] = { "seen", "timeout", "spin" };

	if (ts_parse(function, args, nargs, kwnames, names, 2, total, given) < 0 ||
	    ts_int_arg(given[0] ? given[0] : Py_None, "seen", 0, INT64_MAX, seen) < 0)
		return -1;
	*timeout = INT64_MAX;
	return ts_none(given[1]) ? 0 : ts_seconds_arg(given[1], "timeout", timeout);
}

PyObject *ts_region_wait(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
	struct tshare_region *handle = ts_region_handle(self);
	int64_t seen, timeout, spin = 0;
	PyObject *given[3], *generation;

	if (!handle || parse_wait("wait", 3, args, nargs, kwnames, given, &seen, &timeout) < 0 ||
	    (given[2] && ts_seconds_arg(given[2], "spin", &spin) < 0))
		return NULL;
	/* close() may come while the GIL is released. */
	tshare_region_ref(handle);
	generation = wait_for(self, handle, seen, timeout, spin);
	tshare_region_unref(handle);
	return generation;
}

/* Wrong arguments are refused here, before there is a coroutine that may never run. */
PyObject *ts_region_wait_async(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			       PyObject *kwnames)
{
	PyObject *given[2], *module, *coroutine;
	int64_t seen, timeout;

	if (!ts_region_handle(self) ||
	    parse_wait("wait_async", 2, args, nargs, kwnames, given, &seen, &timeout) < 0)
		return NULL;
	module = PyImport_ImportModule("tshare._waiting");
	if (!module)
		return NULL;
	coroutine = PyObject_CallMethod(module, "wait_async", "OOO", self, given[0],
					given[1] ? given[1] : Py_None);
	Py_DECREF(module);
	return coroutine;
}
