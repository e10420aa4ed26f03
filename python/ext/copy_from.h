/* SPDX-License-Identifier: MIT */
/* t.copy_from(x), and what t[key] = x needs beyond it. */
#ifndef TSHARE_EXT_COPY_FROM_H
#define TSHARE_EXT_COPY_FROM_H

#include "ext.h"

PyObject *ts_tensor_copy_from(PyObject *self, PyObject *x);
/* Copies x into the tensor. Converts it like NumPy if @convert, else only if x has no type. */
int ts_tensor_assign(PyObject *self, PyObject *x, bool convert);

#endif /* TSHARE_EXT_COPY_FROM_H */
