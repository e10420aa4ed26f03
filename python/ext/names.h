/* SPDX-License-Identifier: MIT */
/* unlink() and finish() of Region and of Tensor. */
#ifndef TSHARE_EXT_NAMES_H
#define TSHARE_EXT_NAMES_H

#include "ext.h"

PyObject *ts_unlink(struct tshare_region *handle);
/* With the arguments of the method. */
PyObject *ts_finish(struct tshare_region *handle, PyObject *const *args, Py_ssize_t nargs,
		    PyObject *kwnames);

#endif /* TSHARE_EXT_NAMES_H */
