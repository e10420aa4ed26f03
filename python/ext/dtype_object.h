/* SPDX-License-Identifier: MIT */
/* tshare.DType */
#ifndef TSHARE_EXT_DTYPE_OBJECT_H
#define TSHARE_EXT_DTYPE_OBJECT_H

#include "ext.h"

/* New reference to the type as a DType. */
PyObject *ts_dtype_wrap(struct tshare_dtype dtype);
/* Adds the type to the module: 0, or -1 with an error set. */
int ts_dtype_init(PyObject *module);

#endif /* TSHARE_EXT_DTYPE_OBJECT_H */
