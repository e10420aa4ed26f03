/* SPDX-License-Identifier: MIT */
/* The methods that picklers call. */
#ifndef TSHARE_EXT_PICKLING_H
#define TSHARE_EXT_PICKLING_H

#include "ext.h"

PyObject *ts_tensor_reduce(PyObject *self, PyObject *unused);
PyObject *ts_region_reduce(PyObject *self, PyObject *unused);
PyObject *ts_refuse_copy(PyObject *self, PyObject *unused);
PyObject *ts_refuse_pickle(PyObject *self, PyObject *unused);
PyObject *ts_reducer_override(PyObject *module, PyObject *obj);
PyObject *ts_bytes_at(PyObject *module, PyObject *args);

#endif /* TSHARE_EXT_PICKLING_H */
