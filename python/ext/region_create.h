/* SPDX-License-Identifier: MIT */
/* Region.create() */
#ifndef TSHARE_EXT_REGION_CREATE_H
#define TSHARE_EXT_REGION_CREATE_H

#include "ext.h"

PyObject *ts_region_create(PyObject *type, PyObject *const *args, Py_ssize_t nargs,
			   PyObject *kwnames);

#endif /* TSHARE_EXT_REGION_CREATE_H */
