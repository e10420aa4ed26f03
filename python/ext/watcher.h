/* SPDX-License-Identifier: MIT */
/* tshare.Watcher */
#ifndef TSHARE_EXT_WATCHER_H
#define TSHARE_EXT_WATCHER_H

#include "ext.h"

PyObject *ts_watch(PyObject *module, PyObject *name);
/* Adds the type to the module: 0, or -1 with an error set. */
int ts_watcher_init(PyObject *module);

#endif /* TSHARE_EXT_WATCHER_H */
