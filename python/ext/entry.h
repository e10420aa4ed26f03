/* SPDX-License-Identifier: MIT */
/* tshare.Entry */
#ifndef TSHARE_EXT_ENTRY_H
#define TSHARE_EXT_ENTRY_H

#include "ext.h"

/* Wraps a handle, and takes over the caller's reference to it, on failure too. */
PyObject *ts_entry_wrap(struct tshare_entry *handle);
/* Adds the type to the module: 0, or -1 with an error set. */
int ts_entry_init(PyObject *module);

#endif /* TSHARE_EXT_ENTRY_H */
