/* SPDX-License-Identifier: MIT */
/* NumPy's array interface, and Numba's for CUDA. */
#ifndef TSHARE_EXT_ARRAY_INTERFACE_H
#define TSHARE_EXT_ARRAY_INTERFACE_H

#include "ext.h"

PyObject *ts_tensor_array_interface(PyObject *self, void *closure);
PyObject *ts_cuda_array_interface(PyObject *self, void *closure);
PyObject *ts_array_interface_of(PyObject *module, PyObject *x);
PyObject *ts_tensor_array(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			  PyObject *kwnames);
PyObject *ts_raw_interface(PyObject *module, PyObject *tensor);
/* The attribute @closure of t.numpy(); AttributeError if NumPy can't make that array. */
PyObject *ts_tensor_of_numpy(PyObject *self, void *closure);

#endif /* TSHARE_EXT_ARRAY_INTERFACE_H */
