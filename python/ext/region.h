/* SPDX-License-Identifier: MIT */
/* The methods and slots of tshare.Region that have a file of their own. */
#ifndef TSHARE_EXT_REGION_H
#define TSHARE_EXT_REGION_H

#include "ext.h"

/* region_create.c */
PyObject *ts_region_create(PyObject *type, PyObject *const *args, Py_ssize_t nargs,
			   PyObject *kwnames);

/* region_mapping.c */
Py_ssize_t ts_region_length(PyObject *self);
PyObject *ts_region_subscript(PyObject *self, PyObject *key);
int ts_region_contains(PyObject *self, PyObject *key);
PyObject *ts_region_iter(PyObject *self);
PyObject *ts_region_get(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *ts_region_keys(PyObject *self, PyObject *unused);
PyObject *ts_region_values(PyObject *self, PyObject *unused);
PyObject *ts_region_items(PyObject *self, PyObject *unused);

/* region_memory.c */
int ts_region_getbuffer(PyObject *self, Py_buffer *view, int flags);
void ts_region_releasebuffer(PyObject *self, Py_buffer *view);
PyObject *ts_region_read(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			 PyObject *kwnames);

/* generation.c */
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

/* stream.c */
PyObject *ts_region_publish_on(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			       PyObject *kwnames);
PyObject *ts_region_cuda_counter(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
				 PyObject *kwnames);
PyObject *ts_region_wait_on(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			    PyObject *kwnames);

#endif /* TSHARE_EXT_REGION_H */
