/* SPDX-License-Identifier: MIT */
/* tshare.asarray() and from_dlpack() */
#ifndef TSHARE_EXT_ASARRAY_H
#define TSHARE_EXT_ASARRAY_H

#include "ext.h"

PyObject *ts_from_dlpack(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
			 PyObject *kwnames);
PyObject *ts_asarray(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

#endif /* TSHARE_EXT_ASARRAY_H */
