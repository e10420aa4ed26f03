/* SPDX-License-Identifier: MIT */
/* One element as a Python number, and back. */
#ifndef TSHARE_EXT_SCALAR_H
#define TSHARE_EXT_SCALAR_H

#include "ext.h"

PyObject *ts_tensor_item(PyObject *self, PyObject *unused);
/* The number of elements. */
PyObject *ts_tensor_size(PyObject *self, void *closure);
PyObject *ts_tensor_int(PyObject *self);
PyObject *ts_tensor_float(PyObject *self);
PyObject *ts_tensor_complex(PyObject *self, PyObject *unused);
PyObject *ts_tensor_format(PyObject *self, PyObject *spec);
int ts_tensor_bool(PyObject *self);
/* Whether x is a Python number, which has no element type. */
bool ts_is_number(PyObject *x);
enum { TS_NUMBER_MAX = 16 };
/*
 * The bytes of x as an element: 0; 1 if only NumPy can convert x to the type; -1 with an error set.
 */
int ts_encode(PyObject *x, struct tshare_dtype dtype, bool convert,
	      unsigned char element[static TS_NUMBER_MAX]);

#endif /* TSHARE_EXT_SCALAR_H */
