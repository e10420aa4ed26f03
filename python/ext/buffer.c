// SPDX-License-Identifier: MIT
/* The buffer protocol of a Tensor. */
#include "buffer.h"

#include "dtype.h"
#include "tensor.h"

static bool is_f_contiguous(const struct tshare_tensor *tensor)
{
	const int64_t *shape = tshare_tensor_get_shape(tensor);
	const int64_t *strides = tshare_tensor_get_strides(tensor);
	int64_t expected = 1;
	int32_t i;

	for (i = 0; i < tshare_tensor_get_ndim(tensor); i++)
		if (!shape[i])
			return true;
	for (i = 0; i < tshare_tensor_get_ndim(tensor); i++) {
		if (shape[i] != 1 && strides[i] != expected)
			return false;
		expected *= shape[i];
	}
	return true;
}

static bool asks(int flags, int what)
{
	return (flags & what) == what;
}

/* Why the tensor can't give a buffer with these flags; NULL if it can. */
static const char *refusal(const struct tshare_tensor *tensor, const struct ts_format *format,
			   int flags)
{
	bool c = tshare_tensor_is_contiguous(tensor);

	if (asks(flags, PyBUF_WRITABLE) && tshare_tensor_is_readonly(tensor))
		return "the tensor is read-only";
	if (asks(flags, PyBUF_FORMAT) && !format)
		return "the tensor's dtype has no format of the struct module";
	if (asks(flags, PyBUF_ND) && !ts_itemsize(tshare_tensor_get_dtype(tensor)))
		return "the tensor's elements are not whole bytes";
	if (asks(flags, PyBUF_C_CONTIGUOUS) && !c)
		return "the tensor is not C-contiguous";
	if (asks(flags, PyBUF_F_CONTIGUOUS) && !is_f_contiguous(tensor))
		return "the tensor is not Fortran-contiguous";
	if (asks(flags, PyBUF_ANY_CONTIGUOUS) && !c && !is_f_contiguous(tensor))
		return "the tensor is not contiguous";
	if (!asks(flags, PyBUF_STRIDES) && !c)
		return "the tensor is not C-contiguous, and strides were not asked for";
	return NULL;
}

int ts_tensor_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
	struct ts_tensor *tensor = (struct ts_tensor *)self;
	const struct ts_format *format;
	struct tshare_tensor *handle;
	const char *why;

	view->obj = NULL;
	handle = ts_tensor_handle(self);
	if (!handle)
		return -1;
	format = ts_format(tshare_tensor_get_dtype(handle));
	why = refusal(handle, format, flags);
	if (why) {
		PyErr_SetString(PyExc_BufferError, why);
		return -1;
	}

	view->buf = tshare_tensor_get_data(handle);
	view->len = tshare_tensor_get_nbytes(handle);
	view->readonly = tshare_tensor_is_readonly(handle);
	view->itemsize = ts_itemsize(tshare_tensor_get_dtype(handle));
	view->ndim = 1;
	view->format = NULL;
	view->shape = NULL;
	view->strides = NULL;
	view->suboffsets = NULL;
	view->internal = NULL;
	if (!view->itemsize)
		view->itemsize = 1;
	if (asks(flags, PyBUF_FORMAT))
		view->format = (char *)format->format;
	if (asks(flags, PyBUF_ND)) {
		view->ndim = tshare_tensor_get_ndim(handle);
		view->shape = (Py_ssize_t *)tshare_tensor_get_shape(handle);
	}
	if (asks(flags, PyBUF_STRIDES)) {
		view->strides = (Py_ssize_t *)ts_tensor_byte_strides(self);
		if (!view->strides)
			return -1;
	}

	Py_INCREF(self);
	view->obj = self;
	tensor->exports++;
	return 0;
}

void ts_tensor_releasebuffer(PyObject *self, Py_buffer *Py_UNUSED(view))
{
	struct ts_tensor *tensor = (struct ts_tensor *)self;

	tensor->exports--;
	ts_tensor_release(tensor);
}
