/* SPDX-License-Identifier: MIT */
/* A Region as a mapping of its tensors' names to them. */
#ifndef TSHARE_EXT_REGION_MAPPING_H
#define TSHARE_EXT_REGION_MAPPING_H

#include "ext.h"

Py_ssize_t ts_region_length(PyObject *self);
PyObject *ts_region_subscript(PyObject *self, PyObject *key);
int ts_region_contains(PyObject *self, PyObject *key);
PyObject *ts_region_iter(PyObject *self);
PyObject *ts_region_get(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

#endif /* TSHARE_EXT_REGION_MAPPING_H */
