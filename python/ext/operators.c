// SPDX-License-Identifier: MIT
/*
 * Refuses comparison and arithmetic, whatever the other operand is: the libraries that a tensor is
 * shared with have them. t == 0 would be False, since an int isn't that object, and t += array
 * would bind t to a new array, and leave the memory alone. An array on the left uses its own
 * operator on a Tensor.
 */
#include "operators.h"

#include "cuda.h"
#include "tensor.h"

/* Raises TypeError. Returns NULL. */
static PyObject *refuse(PyObject *self, const char *what)
{
	if (PyObject_TypeCheck(self, ts_tensor_type))
		PyErr_Format(PyExc_TypeError,
			     "tshare.Tensor has no %s (use t.numpy() or t.torch(), or t.item() for "
			     "one element)",
			     what);
	else
		PyErr_Format(PyExc_TypeError,
			     "tshare.CudaTensor has no %s (use torch.from_dlpack(g) or "
			     "cupy.from_dlpack(g))",
			     what);
	return NULL;
}

static bool is_ours(PyObject *x)
{
	return PyObject_TypeCheck(x, ts_tensor_type) || PyObject_TypeCheck(x, ts_cuda_type);
}

/* Tensors are equal if they are one object, as their hash demands. None is never equal. */
PyObject *ts_tensor_richcompare(PyObject *self, PyObject *other, int op)
{
	if ((op != Py_EQ && op != Py_NE) || (other != Py_None && !is_ours(other)))
		return refuse(self, "comparison with values");
	Py_INCREF(Py_NotImplemented);
	return Py_NotImplemented;
}

Py_hash_t ts_tensor_hash(PyObject *self)
{
	/* Never -1, which means an error: the lowest bits of an address are 0. */
	return (Py_hash_t)((uintptr_t)self >> 4);
}

/* Either operand may be the tensor. */
PyObject *ts_refuse_binary(PyObject *a, PyObject *b)
{
	return refuse(is_ours(a) ? a : b, "arithmetic");
}

PyObject *ts_refuse_power(PyObject *a, PyObject *b, PyObject *Py_UNUSED(modulus))
{
	return ts_refuse_binary(a, b);
}

PyObject *ts_refuse_unary(PyObject *self)
{
	return ts_refuse_binary(self, self);
}
