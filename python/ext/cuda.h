/* SPDX-License-Identifier: MIT */
/* The methods and slots of tshare.CudaTensor that have a file of their own. */
#ifndef TSHARE_EXT_CUDA_H
#define TSHARE_EXT_CUDA_H

#include "ext.h"

/*
 * Where a device has a region's bytes: in the region, which the library keeps mapped for the
 * device as long as it has that; or in a copy, of one tensor of the region. Also that has an
 * address for the region's first byte, so that all views are found in one way.
 */
struct ts_cuda_memory {
	struct tshare_cuda_info info;
	struct tshare_cuda_copy *copy; /* or NULL */
	struct CUstream_st *stream;    /* that has made the copy */
	PyObject *stream_owner;	       /* the object that the stream is from, or NULL */
};

/* A tensor as a CUDA device sees it. */
struct ts_cuda {
	PyObject ob_base;
	PyObject *tensor; /* a Tensor of its own, which nobody closes */
	struct ts_cuda_memory memory;
	PyObject *weakrefs;
};

extern PyTypeObject *ts_cuda_type;

/* The library's tensor, borrowed. */
struct tshare_tensor *ts_cuda_handle(PyObject *self);
/*
 * A CudaTensor that takes over the reference to the Tensor, which may be NULL with an error set,
 * and takes references of its own to what is in @memory.
 */
PyObject *ts_cuda_wrap(PyObject *tensor, const struct ts_cuda_memory *memory);
/* Where the device has element [0, 0, ...]; 0 if there are no elements. */
void *ts_cuda_data(const struct tshare_tensor *handle, const struct ts_cuda_memory *memory);
/* Whether the device may only read the tensor: a copy is memory of its own. */
bool ts_cuda_is_readonly(const struct tshare_tensor *handle, const struct ts_cuda_memory *memory);
/* Has a stream wait until a copy has ended: 0, or -1 with an error set. */
int ts_cuda_await(const struct ts_cuda_memory *memory, struct CUstream_st *stream);

/* cuda_dlpack.c */
PyObject *ts_cuda_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			 PyObject *kwnames);
PyObject *ts_cuda_dlpack_device(PyObject *self, PyObject *unused);
/* array_interface.c */
PyObject *ts_cuda_array_interface(PyObject *self, void *closure);

#endif /* TSHARE_EXT_CUDA_H */
