// SPDX-License-Identifier: MIT
/* t[key]: views of a tensor, as NumPy's basic indexing makes them. */
#include "index.h"

#include "args.h"
#include "copy_from.h"
#include "errors.h"
#include "gil.h"
#include "tensor.h"

/* A view that is being made. */
struct view {
	int32_t ndim;
	int64_t shape[TSHARE_NDIM_LIMIT];
	int64_t strides[TSHARE_NDIM_LIMIT]; /* in elements */
	int64_t offset;			    /* in elements, from the tensor's [0, 0, ...] */
};

static int add_dimension(struct view *view, int64_t length, int64_t stride)
{
	if (view->ndim == TSHARE_NDIM_LIMIT) {
		PyErr_Format(PyExc_IndexError, "index: the view has more than %d dimensions",
			     TSHARE_NDIM_LIMIT);
		return -1;
	}
	view->shape[view->ndim] = length;
	view->strides[view->ndim++] = stride;
	return 0;
}

static int take_int(struct view *view, PyObject *item, int32_t dimension, int64_t length,
		    int64_t stride)
{
	Py_ssize_t index = PyNumber_AsSsize_t(item, PyExc_IndexError);

	if (index == -1 && PyErr_Occurred())
		return -1;
	if (index < -length || index >= length) {
		PyErr_Format(PyExc_IndexError,
			     "index: %zd is out of range for dimension %d, which has %lld elements",
			     index, dimension, (long long)length);
		return -1;
	}
	view->offset += (index < 0 ? index + length : index) * stride;
	return 0;
}

static int take_slice(struct view *view, PyObject *item, int64_t length, int64_t stride)
{
	Py_ssize_t start, stop, step;
	Py_ssize_t count;
	int64_t wide;

	if (PySlice_Unpack(item, &start, &stop, &step) < 0)
		return -1;
	count = PySlice_AdjustIndices(length, &start, &stop, step);
	if (count)
		view->offset += start * stride;
	/* If it overflows, the dimension has one element, and its stride is never used. */
	return add_dimension(view, count,
			     __builtin_mul_overflow(stride, step, &wide) ? stride : wide);
}

/* Arrays and masks have an __index__() too, which fails. */
static bool is_int(PyObject *item)
{
	PyObject *number;

	if (PyBool_Check(item) || !PyIndex_Check(item))
		return false;
	number = PyNumber_Index(item);
	if (!number)
		PyErr_Clear();
	Py_XDECREF(number);
	return number;
}

static int unsupported(PyObject *item)
{
	PyErr_Format(
		PyExc_TypeError,
		"index: must be ints, slices, ... or None, not %R (t.numpy()[...] takes arrays "
		"and masks, and copies)",
		Py_TYPE(item));
	return -1;
}

/* The number of the tensor's dimensions that the key indexes; -1 with an error set. */
static int32_t count_named(PyObject *items, int32_t ndim)
{
	Py_ssize_t i, count = PyTuple_Size(items), named = 0;
	bool ellipsis = false;

	for (i = 0; i < count; i++) {
		PyObject *item = PyTuple_GetItem(items, i);

		if (item == Py_Ellipsis && ellipsis) {
			PyErr_SetString(PyExc_IndexError, "index: can have only one ellipsis");
			return -1;
		}
		if (item == Py_Ellipsis)
			ellipsis = true;
		else if (item == Py_None)
			continue;
		else if (PySlice_Check(item) || is_int(item))
			named++;
		else
			return unsupported(item);
	}
	if (named > ndim) {
		PyErr_Format(PyExc_IndexError, "index: too many indices, %zd for %d dimensions",
			     named, ndim);
		return -1;
	}
	return named;
}

static int apply(PyObject *items, const struct tshare_tensor *handle, struct view *view)
{
	const int64_t *strides = tshare_tensor_get_strides(handle);
	const int64_t *shape = tshare_tensor_get_shape(handle);
	int32_t ndim = tshare_tensor_get_ndim(handle), at = 0, named, rest;
	Py_ssize_t i, count = PyTuple_Size(items);
	int err = 0;

	named = count_named(items, ndim);
	if (named < 0)
		return -1;
	rest = ndim - named;
	for (i = 0; !err && i < count; i++) {
		PyObject *item = PyTuple_GetItem(items, i);

		if (item == Py_None) {
			err = add_dimension(view, 1, 1);
		} else if (item == Py_Ellipsis) {
			for (; !err && rest; rest--, at++)
				err = add_dimension(view, shape[at], strides[at]);
		} else if (PySlice_Check(item)) {
			err = take_slice(view, item, shape[at], strides[at]);
			at++;
		} else {
			err = take_int(view, item, at, shape[at], strides[at]);
			at++;
		}
	}
	for (; !err && at < ndim; at++)
		err = add_dimension(view, shape[at], strides[at]);
	return err;
}

static PyObject *make(struct tshare_tensor *handle, const struct view *view)
{
	struct tshare_dtype dtype = tshare_tensor_get_dtype(handle);
	struct tshare_spec spec = {
		.size = sizeof(spec),
		.dtype = dtype,
		.ndim = view->ndim,
		.shape = view->shape,
		.strides = view->strides,
	};
	/* The tensor was checked to lie in its region: this can't overflow. */
	int64_t bits = view->offset * dtype.bits * dtype.lanes;
	struct tshare_tensor *made;
	int err;

	if (bits % 8) {
		PyErr_SetString(PyExc_BufferError,
				"index: a view of packed elements must begin at a whole byte");
		return NULL;
	}
	spec.byte_offset = ts_offset(tshare_tensor_get_byte_offset(handle) + bits / 8);
	err = tshare_tensor_view(handle, &spec, 0, &made);
	return err < 0 ? ts_raise(err, NULL) : ts_tensor_wrap(made);
}

PyObject *ts_tensor_subscript(PyObject *self, PyObject *key)
{
	struct tshare_tensor *handle = ts_tensor_handle(self);
	PyObject *items, *result = NULL;
	struct view view = { 0 };

	if (!handle)
		return NULL;
	if (PyTuple_Check(key)) {
		Py_INCREF(key);
		items = key;
	} else {
		items = PyTuple_Pack(1, key);
	}
	if (!items)
		return NULL;
	/* An __index__() may be Python code that closes the tensor. */
	tshare_tensor_ref(handle);
	if (!apply(items, handle, &view))
		result = make(handle, &view);
	ts_tensor_unref(handle);
	Py_DECREF(items);
	return result;
}

/* t[key] = x and del t[key] */
int ts_tensor_ass_subscript(PyObject *self, PyObject *key, PyObject *value)
{
	PyObject *view;
	int err;

	if (!value) {
		PyErr_SetString(PyExc_TypeError, "tshare.Tensor does not support item deletion");
		return -1;
	}
	view = ts_tensor_subscript(self, key);
	err = view ? ts_tensor_assign(view, value, true) : -1;
	Py_XDECREF(view);
	return err;
}

PyObject *ts_tensor_transpose(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_tensor *handle = ts_tensor_handle(self);
	struct view view = { 0 };
	int32_t i;

	if (!handle)
		return NULL;
	for (i = tshare_tensor_get_ndim(handle); i-- > 0; view.ndim++) {
		view.shape[view.ndim] = tshare_tensor_get_shape(handle)[i];
		view.strides[view.ndim] = tshare_tensor_get_strides(handle)[i];
	}
	return make(handle, &view);
}

/* The views t[0], t[1] and so on. */
PyObject *ts_tensor_iter(PyObject *self)
{
	PyObject *get, *range, *iterator = NULL;
	Py_ssize_t count = PyObject_Size(self);

	if (count < 0)
		return NULL;
	get = PyObject_GetAttrString(self, "__getitem__");
	range = PyObject_CallFunction((PyObject *)&PyRange_Type, "n", count);
	if (get && range)
		iterator = PyObject_CallFunctionObjArgs((PyObject *)&PyMap_Type, get, range, NULL);
	Py_XDECREF(get);
	Py_XDECREF(range);
	return iterator;
}

int ts_tensor_contains(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(value))
{
	PyErr_SetString(PyExc_TypeError,
			"tshare.Tensor does not support 'in' (use x in t.numpy())");
	return -1;
}
