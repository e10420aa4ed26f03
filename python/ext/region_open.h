/* SPDX-License-Identifier: MIT */
/* The regions for the arguments of open() and of from_fd(). */
#ifndef TSHARE_EXT_REGION_OPEN_H
#define TSHARE_EXT_REGION_OPEN_H

#include "ext.h"

/* A new reference, or NULL with an error set. @device may be NULL, to take no argument of it. */
struct tshare_region *ts_open_region(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
				     PyObject **device);
struct tshare_region *ts_import_region(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

#endif /* TSHARE_EXT_REGION_OPEN_H */
