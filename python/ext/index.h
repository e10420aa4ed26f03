/* SPDX-License-Identifier: MIT */
/* t[key], iteration and the transpose: views of a tensor. */
#ifndef TSHARE_EXT_INDEX_H
#define TSHARE_EXT_INDEX_H

#include "ext.h"

PyObject *ts_tensor_subscript(PyObject *self, PyObject *key);
int ts_tensor_ass_subscript(PyObject *self, PyObject *key, PyObject *value);
PyObject *ts_tensor_iter(PyObject *self);
/* The view with its dimensions in reverse order. */
PyObject *ts_tensor_transpose(PyObject *self, void *closure);
int ts_tensor_contains(PyObject *self, PyObject *value);

#endif /* TSHARE_EXT_INDEX_H */
