/* SPDX-License-Identifier: MIT */
/* Tensors of other libraries by NumPy's array interface. */
#ifndef TSHARE_EXT_SOURCE_INTERFACE_H
#define TSHARE_EXT_SOURCE_INTERFACE_H

#include "source.h"

int ts_source_from_interface(PyObject *x, struct ts_source *source);

#endif /* TSHARE_EXT_SOURCE_INTERFACE_H */
