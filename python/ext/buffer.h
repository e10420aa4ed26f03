/* SPDX-License-Identifier: MIT */
/* The buffer protocol of a Tensor. */
#ifndef TSHARE_EXT_BUFFER_H
#define TSHARE_EXT_BUFFER_H

#include "ext.h"

int ts_tensor_getbuffer(PyObject *self, Py_buffer *view, int flags);
void ts_tensor_releasebuffer(PyObject *self, Py_buffer *view);

#endif /* TSHARE_EXT_BUFFER_H */
