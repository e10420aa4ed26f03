/* SPDX-License-Identifier: MIT */
/* The pools for the arguments of Pool.create() and Pool.open(). */
#ifndef TSHARE_EXT_POOLS_OPEN_H
#define TSHARE_EXT_POOLS_OPEN_H

#include "ext.h"

/*
 * Store the argument name, borrowed, and whether the pool's names end with its object. NULL with an
 * error set.
 */
struct tshare_pool *ts_create_pool(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
				   PyObject **pool_name, bool *ends);
struct tshare_pool *ts_open_pool(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
				 PyObject **pool_name);

#endif /* TSHARE_EXT_POOLS_OPEN_H */
