/* SPDX-License-Identifier: MIT */
/* The methods and slots of tshare.CudaTensor that have a file of their own. */
#ifndef TSHARE_EXT_CUDA_H
#define TSHARE_EXT_CUDA_H

#include "ext.h"

/* A tensor as a CUDA device sees it. The library keeps what it found as long as the region. */
struct ts_cuda {
	PyObject ob_base;
	PyObject *tensor; /* a Tensor of its own, which nobody closes */
	struct tshare_cuda_info info;
	PyObject *weakrefs;
};

extern PyTypeObject *ts_cuda_type;

/* The library's tensor, borrowed. */
struct tshare_tensor *ts_cuda_handle(PyObject *self);
/* A CudaTensor that takes over the reference to the Tensor, which may be NULL with an error set. */
PyObject *ts_cuda_wrap(PyObject *tensor, const struct tshare_cuda_info *info);
/* Where the device has element [0, 0, ...]; 0 if there are no elements. */
void *ts_cuda_data(const struct tshare_tensor *handle, const struct tshare_cuda_info *info);

/* cuda_dlpack.c */
PyObject *ts_cuda_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			 PyObject *kwnames);
PyObject *ts_cuda_dlpack_device(PyObject *self, PyObject *unused);
/* array_interface.c */
PyObject *ts_cuda_array_interface(PyObject *self, void *closure);

#endif /* TSHARE_EXT_CUDA_H */
