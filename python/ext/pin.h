/* SPDX-License-Identifier: MIT */
/* tshare.Pin, and pin() of Region and of Tensor. */
#ifndef TSHARE_EXT_PIN_H
#define TSHARE_EXT_PIN_H

#include "ext.h"

/* With the arguments of the method. */
PyObject *ts_pin(struct tshare_region *handle, PyObject *const *args, Py_ssize_t nargs,
		 PyObject *kwnames);
/* Adds the type to the module: 0, or -1 with an error set. */
int ts_pin_init(PyObject *module);

#endif /* TSHARE_EXT_PIN_H */
