/* SPDX-License-Identifier: MIT */
/* The memory of a Region as a whole: its bytes, and files that are read into it. */
#ifndef TSHARE_EXT_REGION_MEMORY_H
#define TSHARE_EXT_REGION_MEMORY_H

#include "ext.h"

int ts_region_getbuffer(PyObject *self, Py_buffer *view, int flags);
void ts_region_releasebuffer(PyObject *self, Py_buffer *view);
PyObject *ts_region_read(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			 PyObject *kwnames);

#endif /* TSHARE_EXT_REGION_MEMORY_H */
