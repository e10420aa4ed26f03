/* SPDX-License-Identifier: MIT */
/* CudaTensors in a device's own memory that has a name. */
#ifndef TSHARE_EXT_CUDA_MEMORY_H
#define TSHARE_EXT_CUDA_MEMORY_H

#include "ext.h"

/* Creates one on @device: a new reference, or NULL with an error set. */
PyObject *ts_cuda_create(PyObject *name, const struct tshare_spec *spec,
			 const struct tshare_options *options, PyObject *device);
/* Opens the one that a region names, on @device unless that is NULL or None. */
PyObject *ts_cuda_open(struct tshare_region *region, PyObject *device);

#endif /* TSHARE_EXT_CUDA_MEMORY_H */
