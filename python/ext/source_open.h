/* SPDX-License-Identifier: MIT */
/* Tensors of other libraries by any protocol. */
#ifndef TSHARE_EXT_SOURCE_OPEN_H
#define TSHARE_EXT_SOURCE_OPEN_H

#include "source.h"

/* Opens @x: 0, or -1 with an error set and nothing held. */
int ts_source_open(PyObject *x, struct ts_source *source);

#endif /* TSHARE_EXT_SOURCE_OPEN_H */
