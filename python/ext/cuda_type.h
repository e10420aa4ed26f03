/* SPDX-License-Identifier: MIT */
/* The type tshare.CudaTensor, and Tensor.cuda(), which makes one. */
#ifndef TSHARE_EXT_CUDA_TYPE_H
#define TSHARE_EXT_CUDA_TYPE_H

#include "ext.h"

PyObject *ts_tensor_cuda(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			 PyObject *kwnames);
/* Adds the type to the module: 0, or -1 with an error set. */
int ts_cuda_init(PyObject *module);

#endif /* TSHARE_EXT_CUDA_TYPE_H */
