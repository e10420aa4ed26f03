// SPDX-License-Identifier: MIT
/* t.copy_from(x), and what t[key] = x needs beyond it. */
#include "copy_from.h"

#include <stdlib.h>

#include "dtype.h"
#include "errors.h"
#include "gil.h"
#include "scalar.h"
#include "source.h"
#include "source_numpy.h"
#include "source_open.h"
#include "tensor.h"

/* The strides of @spec in the tensor's shape, as NumPy broadcasts: 0, or -1 with an error set. */
static int broadcast(const struct tshare_spec *spec, const struct tshare_tensor *handle,
		     int64_t *strides)
{
	int32_t ndim = tshare_tensor_get_ndim(handle), ahead = ndim - spec->ndim, i;
	const int64_t *shape = tshare_tensor_get_shape(handle);
	PyObject *theirs, *ours;

	for (i = 0; i < ahead; i++)
		strides[i] = 0;
	for (i = 0; ahead >= 0 && i < spec->ndim; i++) {
		if (spec->shape[i] != shape[ahead + i] && spec->shape[i] != 1)
			break;
		strides[ahead + i] = spec->shape[i] == 1 ? 0 : spec->strides[i];
	}
	if (ahead >= 0 && i == spec->ndim)
		return 0;
	theirs = ts_int_tuple(spec->shape, spec->ndim);
	ours = ts_int_tuple(shape, ndim);
	if (theirs && ours)
		PyErr_Format(PyExc_ValueError,
			     "x: shape %S can't be broadcast to the tensor's shape, %S", theirs,
			     ours);
	Py_XDECREF(theirs);
	Py_XDECREF(ours);
	return -1;
}

static bool is_dtype(const struct ts_source *source, struct tshare_dtype dtype)
{
	return source->spec.dtype.code == dtype.code && source->spec.dtype.bits == dtype.bits &&
	       source->spec.dtype.lanes == dtype.lanes;
}

static int check_dtype(const struct ts_source *source, const struct tshare_tensor *handle)
{
	struct tshare_dtype ours = tshare_tensor_get_dtype(handle), theirs = source->spec.dtype;
	PyObject *our_name, *their_name;

	if (is_dtype(source, ours))
		return 0;
	our_name = ts_dtype_name(ours);
	their_name = ts_dtype_name(theirs);
	if (our_name && their_name)
		PyErr_Format(PyExc_TypeError,
			     "x: type %U differs from the tensor's, %U (convert x first, or assign "
			     "t[...] = x, which converts)",
			     their_name, our_name);
	Py_XDECREF(our_name);
	Py_XDECREF(their_name);
	return -1;
}

/* Whether two tensors may have memory in common, even if each has a mapping of its own. */
static bool may_overlap(const struct tshare_tensor *a, const struct tshare_tensor *b)
{
	int64_t a_first, a_end, b_first, b_end;

	if (tshare_region_get_id(tshare_tensor_get_region(a)) !=
	    tshare_region_get_id(tshare_tensor_get_region(b)))
		return false;
	ts_tensor_extent(a, &a_first, &a_end);
	ts_tensor_extent(b, &b_first, &b_end);
	return a_first < b_end && b_first < a_end;
}

/* Copies through a temporary copy of the source in C order. */
static int copy_aside(struct tshare_tensor *handle, const struct ts_source *source,
		      const struct tshare_tensor *same)
{
	int64_t order[TSHARE_NDIM_LIMIT], strides[TSHARE_NDIM_LIMIT], step = 1;
	struct tshare_spec aside = source->spec;
	void *data = malloc(tshare_tensor_get_nbytes(same));
	int32_t i;
	int err;

	if (!data) {
		PyErr_NoMemory();
		return -1;
	}
	for (i = aside.ndim; i-- > 0; step *= aside.shape[i])
		order[i] = step;
	aside.strides = order;
	err = broadcast(&aside, handle, strides);
	if (!err) {
		PyThreadState *state = PyEval_SaveThread();

		err = tshare_tensor_read(same, data);
		if (!err)
			err = tshare_tensor_write(handle, data, strides);
		PyEval_RestoreThread(state);
		if (err)
			ts_raise(err, NULL);
	}
	free(data);
	return err;
}

static int copy_in(struct tshare_tensor *handle, const struct ts_source *source)
{
	int64_t strides[TSHARE_NDIM_LIMIT];
	struct tshare_tensor *same;
	PyThreadState *state;
	int err;

	if (check_dtype(source, handle) < 0 || broadcast(&source->spec, handle, strides) < 0)
		return -1;
	if (!tshare_tensor_get_nbytes(handle))
		return 0;
	if (!tshare_tensor_wrap(source->data, &source->spec, TSHARE_READONLY, &same)) {
		if (may_overlap(handle, same)) {
			err = copy_aside(handle, source, same);
			ts_tensor_unref(same);
			return err;
		}
		ts_tensor_unref(same);
	}
	state = PyEval_SaveThread();
	err = tshare_tensor_write(handle, source->data, strides);
	PyEval_RestoreThread(state);
	if (err)
		ts_raise(err, NULL);
	return err;
}

/* Copies one element to all. */
static int fill(struct tshare_tensor *handle, const unsigned char *element)
{
	int64_t strides[TSHARE_NDIM_LIMIT] = { 0 };
	PyThreadState *state;
	int err = 0;

	if (tshare_tensor_get_nbytes(handle)) {
		state = PyEval_SaveThread();
		err = tshare_tensor_write(handle, element, strides);
		PyEval_RestoreThread(state);
	}
	if (err)
		ts_raise(err, NULL);
	return err;
}

static int copy_array(struct tshare_tensor *handle, PyObject *x, bool convert)
{
	struct tshare_dtype dtype = tshare_tensor_get_dtype(handle);
	struct ts_source source;
	PyObject *array;
	int err;

	if (ts_source_open(x, &source) < 0)
		return -1;
	if (convert && !is_dtype(&source, dtype)) {
		ts_source_close(&source);
		array = ts_numpy_cast(x, dtype, convert);
		err = array ? copy_array(handle, array, false) : -1;
		Py_XDECREF(array);
		return err;
	}
	err = copy_in(handle, &source);
	ts_source_close(&source);
	return err;
}

/* Python's numbers, and lists of them, have no type, and take the tensor's. */
static int copy_any(struct tshare_tensor *handle, PyObject *x, bool convert)
{
	struct tshare_dtype dtype = tshare_tensor_get_dtype(handle);
	unsigned char element[TS_NUMBER_MAX];
	PyObject *array;
	int err = 1;

	if (ts_is_number(x)) {
		err = ts_encode(x, dtype, convert, element);
		if (err <= 0)
			return err ? -1 : fill(handle, element);
	} else if (!PyList_Check(x) && !PyTuple_Check(x)) {
		return copy_array(handle, x, convert);
	}
	array = ts_numpy_cast(x, dtype, convert);
	err = array ? copy_array(handle, array, false) : -1;
	Py_XDECREF(array);
	return err;
}

int ts_tensor_assign(PyObject *self, PyObject *x, bool convert)
{
	struct tshare_tensor *handle = ts_tensor_handle(self);
	int err;

	if (!handle)
		return -1;
	/* Opening x may run Python code that closes the tensor. */
	tshare_tensor_ref(handle);
	err = copy_any(handle, x, convert);
	ts_tensor_unref(handle);
	return err ? -1 : 0;
}

PyObject *ts_tensor_copy_from(PyObject *self, PyObject *x)
{
	if (ts_tensor_assign(self, x, false) < 0)
		return NULL;
	Py_RETURN_NONE;
}
