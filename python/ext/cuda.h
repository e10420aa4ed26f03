/* SPDX-License-Identifier: MIT */
/* The object of tshare.CudaTensor. */
#ifndef TSHARE_EXT_CUDA_H
#define TSHARE_EXT_CUDA_H

#include "ext.h"

/*
 * Where a device sees a region's bytes: in the region itself, which the library keeps mapped for
 * the device; in a copy of one of its tensors; or in the device's memory that a region names. With a
 * copy, @info has the address at which the region's first byte would be, so that the address of a
 * view is computed in one way.
 */
struct ts_cuda_memory {
	struct tshare_cuda_info info;
	struct tshare_cuda_copy *copy;	  /* or NULL */
	struct tshare_cuda_memory *named; /* or NULL; the tensor keeps it */
	struct CUstream_st *stream;	  /* which made the copy */
	PyObject *stream_owner;		  /* the object that owns the stream, or NULL */
};

/* A tensor as a CUDA device sees it. */
struct ts_cuda {
	PyObject ob_base;
	PyObject *tensor; /* a Tensor of its own, never closed */
	struct ts_cuda_memory memory;
	PyObject *weakrefs;
};

extern PyTypeObject *ts_cuda_type;

/* The library's tensor, borrowed. */
struct tshare_tensor *ts_cuda_handle(PyObject *self);
/*
 * Makes a CudaTensor. Takes over the reference to the Tensor, which may be NULL with an error set,
 * and takes new references to the objects in @memory.
 */
PyObject *ts_cuda_wrap(PyObject *tensor, const struct ts_cuda_memory *memory);
/* The device's address of element [0, 0, ...]; 0 if there are no elements. */
void *ts_cuda_data(const struct tshare_tensor *handle, const struct ts_cuda_memory *memory);
/* Whether the device may only read the tensor. It may write to a copy. */
bool ts_cuda_is_readonly(const struct tshare_tensor *handle, const struct ts_cuda_memory *memory);
/* Checks that memory with a name may be used: 0, or -1 with an error set. */
int ts_cuda_check(const struct ts_cuda_memory *memory);
/* The same, and makes a stream wait for the end of a copy: 0, or -1 with an error set. */
int ts_cuda_await(const struct ts_cuda_memory *memory, struct CUstream_st *stream);

#endif /* TSHARE_EXT_CUDA_H */
