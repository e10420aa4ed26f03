/* SPDX-License-Identifier: MIT */
/* tshare.Frame */
#ifndef TSHARE_EXT_FRAME_H
#define TSHARE_EXT_FRAME_H

#include "ext.h"

/*
 * Wraps a handle, and takes over the caller's reference to it, on failure too. @names are those of
 * the fields, as a tuple.
 */
PyObject *ts_frame_wrap(struct tshare_frame *handle, PyObject *names);
/* Adds the type to the module: 0, or -1 with an error set. */
int ts_frame_init(PyObject *module);

#endif /* TSHARE_EXT_FRAME_H */
