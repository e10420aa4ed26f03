/* SPDX-License-Identifier: MIT */
/* The type tshare.Region. */
#ifndef TSHARE_EXT_REGION_TYPE_H
#define TSHARE_EXT_REGION_TYPE_H

#include "ext.h"

/* Adds the type to the module: 0, or -1 with an error set. */
int ts_region_init(PyObject *module);

#endif /* TSHARE_EXT_REGION_TYPE_H */
