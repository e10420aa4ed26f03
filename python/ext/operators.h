/* SPDX-License-Identifier: MIT */
/* Operators of Tensor and of CudaTensor, most of which refuse. */
#ifndef TSHARE_EXT_OPERATORS_H
#define TSHARE_EXT_OPERATORS_H

#include "ext.h"

PyObject *ts_tensor_richcompare(PyObject *self, PyObject *other, int op);
Py_hash_t ts_tensor_hash(PyObject *self);
PyObject *ts_refuse_binary(PyObject *a, PyObject *b);
PyObject *ts_refuse_power(PyObject *a, PyObject *b, PyObject *modulus);
PyObject *ts_refuse_unary(PyObject *self);
/* clang-format off */
#define TS_OPERATOR_SLOTS \
	{ Py_tp_richcompare, ts_tensor_richcompare }, \
	{ Py_tp_hash, ts_tensor_hash }, \
	{ Py_nb_add, ts_refuse_binary }, \
	{ Py_nb_subtract, ts_refuse_binary }, \
	{ Py_nb_multiply, ts_refuse_binary }, \
	{ Py_nb_matrix_multiply, ts_refuse_binary }, \
	{ Py_nb_true_divide, ts_refuse_binary }, \
	{ Py_nb_floor_divide, ts_refuse_binary }, \
	{ Py_nb_remainder, ts_refuse_binary }, \
	{ Py_nb_divmod, ts_refuse_binary }, \
	{ Py_nb_lshift, ts_refuse_binary }, \
	{ Py_nb_rshift, ts_refuse_binary }, \
	{ Py_nb_and, ts_refuse_binary }, \
	{ Py_nb_or, ts_refuse_binary }, \
	{ Py_nb_xor, ts_refuse_binary }, \
	{ Py_nb_power, ts_refuse_power }, \
	{ Py_nb_negative, ts_refuse_unary }, \
	{ Py_nb_positive, ts_refuse_unary }, \
	{ Py_nb_absolute, ts_refuse_unary }, \
	{ Py_nb_invert, ts_refuse_unary }
/* clang-format on */

#endif /* TSHARE_EXT_OPERATORS_H */
