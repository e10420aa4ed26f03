/* SPDX-License-Identifier: MIT */
/* The records tshare.RegionInfo and tshare.Limits, and the functions that return them. */
#ifndef TSHARE_EXT_INFO_H
#define TSHARE_EXT_INFO_H

#include "ext.h"

PyObject *ts_info_new(const struct tshare_region_info *info);
PyObject *ts_list(PyObject *module, PyObject *unused);
PyObject *ts_limits(PyObject *module, PyObject *unused);
/* Adds the types to the module: 0, or -1 with an error set. */
int ts_info_init(PyObject *module);

#endif /* TSHARE_EXT_INFO_H */
