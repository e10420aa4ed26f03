/* SPDX-License-Identifier: MIT */
/* A tensor as a tuple, from which a process that has the region makes the tensor again. */
#ifndef TSHARE_EXT_TENSOR_SPEC_H
#define TSHARE_EXT_TENSOR_SPEC_H

#include "ext.h"

PyObject *ts_tensor_spec(PyObject *self, void *closure);
PyObject *ts_tensor_rebuild(PyObject *module, PyObject *args);

#endif /* TSHARE_EXT_TENSOR_SPEC_H */
