/* SPDX-License-Identifier: MIT */
/* tshare.Pool, tshare.PoolInfo and tshare.Entry */
#ifndef TSHARE_EXT_POOLS_H
#define TSHARE_EXT_POOLS_H

#include "ext.h"

/* Adds the types to the module: 0, or -1 with an error set. */
int ts_pools_init(PyObject *module);

#endif /* TSHARE_EXT_POOLS_H */
