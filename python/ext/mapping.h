/* SPDX-License-Identifier: MIT */
/* Common parts of mappings of names to tensors. */
#ifndef TSHARE_EXT_MAPPING_H
#define TSHARE_EXT_MAPPING_H

#include "ext.h"

/* The views of collections.abc, which use the mapping alone. */
PyObject *ts_mapping_keys(PyObject *self, PyObject *unused);
PyObject *ts_mapping_values(PyObject *self, PyObject *unused);
PyObject *ts_mapping_items(PyObject *self, PyObject *unused);

/* Sets KeyError for a key that is in no mapping. Returns NULL. */
PyObject *ts_raise_key(PyObject *key);

#endif /* TSHARE_EXT_MAPPING_H */
