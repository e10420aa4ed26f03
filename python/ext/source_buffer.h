/* SPDX-License-Identifier: MIT */
/* Tensors of other libraries by the buffer protocol. */
#ifndef TSHARE_EXT_SOURCE_BUFFER_H
#define TSHARE_EXT_SOURCE_BUFFER_H

#include "source.h"

int ts_source_from_buffer(PyObject *x, struct ts_source *source);

#endif /* TSHARE_EXT_SOURCE_BUFFER_H */
