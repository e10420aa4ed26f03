/* SPDX-License-Identifier: MIT */
/* The object of tshare.Tensor. */
#ifndef TSHARE_EXT_TENSOR_H
#define TSHARE_EXT_TENSOR_H

#include "ext.h"

struct ts_tensor {
	PyObject ob_base;
	struct tshare_tensor *handle; /* NULL when closed, unless it must stay */
	bool closed;
	bool address_given; /* to a consumer that holds the object: keep handle until dealloc */
	Py_ssize_t exports; /* live buffers */
	Py_ssize_t *byte_strides; /* see ts_tensor_byte_strides() */
	PyObject *shape;	  /* tuple, made on first use */
	PyObject *weakrefs;
};

extern PyTypeObject *ts_tensor_type;

/* Wraps a handle and takes over the caller's reference to it, on failure too. */
PyObject *ts_tensor_wrap(struct tshare_tensor *handle);
/* The handle, borrowed; NULL with ValueError set if the object is closed. */
struct tshare_tensor *ts_tensor_handle(PyObject *self);
/* Drops a closed tensor's handle, unless it has exports or its address was given. */
void ts_tensor_release(struct ts_tensor *tensor);

/*
 * Bytes from one index to the next along each dimension, owned by the object.
 * Only for elements of whole bytes. NULL with an error set if out of memory.
 */
const Py_ssize_t *ts_tensor_byte_strides(PyObject *self);
PyObject *ts_int_tuple(const int64_t *values, int32_t count);
/* New reference to the shape as a tuple. */
PyObject *ts_tensor_shape(PyObject *self);
/* The range of its region's bytes in which a tensor's elements lie; it must have elements. */
void ts_tensor_extent(const struct tshare_tensor *handle, int64_t *first, int64_t *end);

#endif /* TSHARE_EXT_TENSOR_H */
