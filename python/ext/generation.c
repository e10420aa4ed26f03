// SPDX-License-Identifier: MIT
/* Generations of a region: publishing and waiting. */
#include "ext.h"

#include <errno.h>
#include <time.h>

/*
 * How long to stay in the library without looking for signals. One that arrives
 * just before the sleep, or in another thread, doesn't end it.
 */
#define SLICE_NS (100 * 1000 * 1000)

PyObject *ts_region_generation(PyObject *self, void *closure)
{
	struct tshare_region *handle = ts_region_handle(self);
	uint64_t generation;
	int err;

	(void)closure;
	if (!handle)
		return NULL;
	err = tshare_region_generation(handle, &generation);
	return err < 0 ? ts_raise(err, NULL) : PyLong_FromUnsignedLongLong(generation);
}

/* Takes a microsecond, which is less than to take the GIL again can cost. */
PyObject *ts_region_publish(PyObject *self, PyObject *unused)
{
	struct tshare_region *handle = ts_region_handle(self);
	uint64_t generation;
	int err;

	(void)unused;
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

static PyObject *wait_for(struct tshare_region *handle, uint64_t seen, int64_t timeout,
			  int64_t spin)
{
	int64_t start = clock_ns(), left, piece;
	PyThreadState *state;
	uint64_t generation;
	int err;

	for (;;) {
		left = left_of(timeout, start);
		piece = left < SLICE_NS ? left : SLICE_NS;
		state = PyEval_SaveThread();
		err = tshare_region_wait(handle, seen, piece, left_of(spin, start), &generation);
		PyEval_RestoreThread(state);
		if (!err)
			return PyLong_FromUnsignedLongLong(generation);
		if (err != -EINTR && (err != -ETIMEDOUT || piece == left))
			return ts_raise(err, NULL);
		if (PyErr_CheckSignals() < 0)
			return NULL;
	}
}

PyObject *ts_region_wait(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
	static const char *const names[] = { "seen", "timeout", "spin" };
	struct tshare_region *handle = ts_region_handle(self);
	int64_t seen, timeout = INT64_MAX, spin = 0;
	PyObject *given[3], *generation;

	if (!handle || ts_parse("wait", args, nargs, kwnames, names, 2, 3, given) < 0)
		return NULL;
	if (ts_int_arg(given[0] ? given[0] : Py_None, "seen", 0, INT64_MAX, &seen) < 0 ||
	    (!ts_none(given[1]) && ts_seconds_arg(given[1], "timeout", &timeout) < 0) ||
	    (given[2] && ts_seconds_arg(given[2], "spin", &spin) < 0))
		return NULL;
	/* close() may come while the GIL is released. */
	tshare_region_ref(handle);
	generation = wait_for(handle, seen, timeout, spin);
	tshare_region_unref(handle);
	return generation;
}
