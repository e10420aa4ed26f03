/* SPDX-License-Identifier: MIT */
/* Generations of a region: publishing and waiting. */
#ifndef TSHARE_EXT_GENERATION_H
#define TSHARE_EXT_GENERATION_H

#include "ext.h"

PyObject *ts_region_generation(PyObject *self, void *closure);
PyObject *ts_region_announce(PyObject *self, PyObject *unused);
PyObject *ts_region_publish(PyObject *self, PyObject *unused);
PyObject *ts_region_publish_once(PyObject *self, PyObject *unused);
PyObject *ts_region_has_publishers(PyObject *self, PyObject *unused);
PyObject *ts_region_wait(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			 PyObject *kwnames);
PyObject *ts_region_event_fileno(PyObject *self, PyObject *unused);
PyObject *ts_region_dup_async_fd(PyObject *self, PyObject *unused);
PyObject *ts_region_generations(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
				PyObject *kwnames);
PyObject *ts_region_wait_async(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			       PyObject *kwnames);
/* The region's waiter for @use, borrowed; NULL with an error set. */
struct tshare_waiter *ts_region_waiter(PyObject *self, int use);
/* The arguments seen and timeout, in this order: 0, or -1 with an error set. */
int ts_wait_args(const char *function, PyObject *const *given, int64_t *seen, int64_t *timeout);

/*
 * Waits without the GIL, in slices, between which signal handlers run: 0; or what @wait returned,
 * but for -EINTR; or 1 with an error set by a handler.
 */
int ts_wait(int (*wait)(void *call, int64_t timeout), void *call, int64_t timeout);
/*
 * The same for a function that opens a name with @options. It stays in the library, which
 * reports the end of a draft that it has seen.
 */
int ts_wait_open(int (*attempt)(void *call), void *call, struct tshare_open_options *options);

#endif /* TSHARE_EXT_GENERATION_H */
