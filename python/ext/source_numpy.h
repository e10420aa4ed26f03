/* SPDX-License-Identifier: MIT */
/* Tensors of other libraries by way of NumPy, and the NumPy arrays that are refused. */
#ifndef TSHARE_EXT_SOURCE_NUMPY_H
#define TSHARE_EXT_SOURCE_NUMPY_H

#include "source.h"

/* By np.asarray(x). */
int ts_source_from_numpy(PyObject *x, struct ts_source *source);
/* NumPy's array of x with that type, for ts_tensor_assign(). */
PyObject *ts_numpy_cast(PyObject *x, struct tshare_dtype dtype, bool convert);

/* Refusals before any way is tried: 0, or -1 with an error set */

/* Masked arrays. */
int ts_source_check_mask(PyObject *x);
/* Arrays and scalars of NumPy whose dtype no tensor has, and masked ones. */
int ts_source_check_numpy(PyObject *x);

#endif /* TSHARE_EXT_SOURCE_NUMPY_H */
