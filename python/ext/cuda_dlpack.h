/* SPDX-License-Identifier: MIT */
/* DLPack export of a CudaTensor. */
#ifndef TSHARE_EXT_CUDA_DLPACK_H
#define TSHARE_EXT_CUDA_DLPACK_H

#include "ext.h"

PyObject *ts_cuda_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			 PyObject *kwnames);
PyObject *ts_cuda_dlpack_device(PyObject *self, PyObject *unused);

#endif /* TSHARE_EXT_CUDA_DLPACK_H */
