// SPDX-License-Identifier: MIT
/* Tensors of other libraries by the buffer protocol. */
#include "source_buffer.h"

#include <string.h>

#include "dtype.h"
#include "source.h"
#include "tshare-dlpack.h"

static int check_ndim(int ndim)
{
	if (ndim >= 0 && ndim <= TSHARE_NDIM_LIMIT)
		return 0;
	PyErr_Format(PyExc_BufferError, "x: has %d dimensions, more than %d", ndim,
		     TSHARE_NDIM_LIMIT);
	return -1;
}

/*
 * The type of a format of one character. Its size is the item's: "l" has four bytes or eight, not
 * always as its prefix says. No other size will do, since ctypes calls unions of any size "B".
 */
static int format_dtype(const char *format, Py_ssize_t itemsize, struct tshare_dtype *dtype)
{
	static const struct {
		char format;
		uint8_t code;
		uint8_t sizes; /* or-ed */
	} kinds[] = {
		{ '?', kDLBool, 1 },  { 'b', kDLInt, 1 },     { 'B', kDLUInt, 1 },
		{ 'h', kDLInt, 2 },   { 'H', kDLUInt, 2 },    { 'i', kDLInt, 4 },
		{ 'I', kDLUInt, 4 },  { 'l', kDLInt, 4 | 8 }, { 'L', kDLUInt, 4 | 8 },
		{ 'q', kDLInt, 8 },   { 'Q', kDLUInt, 8 },    { 'n', kDLInt, 8 },
		{ 'N', kDLUInt, 8 },  { 'e', kDLFloat, 2 },   { 'f', kDLFloat, 4 },
		{ 'd', kDLFloat, 8 }, { 'f', kDLComplex, 8 }, { 'd', kDLComplex, 16 },
	};
	bool foreign, complex;
	size_t i;

	if (!format)
		format = "B";
	foreign = *format == TS_FOREIGN_ORDER || (*format == '!' && TS_FOREIGN_ORDER == '>');
	if (foreign && itemsize > 1)
		return -1;
	if (*format && strchr("@=<>!|", *format))
		format++;
	complex = *format == 'Z';
	if (complex)
		format++;
	if (!*format || format[1])
		return -1;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].format == *format && (kinds[i].code == kDLComplex) == complex &&
		    (itemsize == 1 || itemsize == 2 || itemsize == 4 || itemsize == 8 ||
		     itemsize == 16) &&
		    kinds[i].sizes & itemsize) {
			*dtype = (struct tshare_dtype){ kinds[i].code, 8 * itemsize, 1 };
			return 0;
		}
	return -1;
}

int ts_source_from_buffer(PyObject *x, struct ts_source *source)
{
	Py_buffer *view = &source->view;
	int32_t i;

	ts_source_start(source);
	if (PyObject_GetBuffer(x, view, PyBUF_STRIDED_RO | PyBUF_FORMAT) < 0)
		return -1;
	if (check_ndim(view->ndim) < 0)
		goto err;
	if (format_dtype(view->format, view->itemsize, &source->spec.dtype) < 0) {
		PyErr_Format(PyExc_BufferError,
			     "x: unsupported buffer format '%s' (tensors have no such type)",
			     view->format);
		goto err;
	}
	source->data = view->buf;
	source->readonly = view->readonly;
	source->spec.ndim = view->ndim;
	for (i = 0; i < view->ndim; i++)
		source->shape[i] = view->shape[i];
	/* ctypes gives no strides, even if PyBUF_STRIDES requests them. */
	if (!view->strides) {
		ts_source_set_c_strides(source);
	} else {
		for (i = 0; i < view->ndim; i++)
			source->strides[i] = view->strides[i];
		if (ts_source_take_byte_strides(source) < 0)
			goto err;
	}
	if (!ts_source_check_extent(source, NULL, 0))
		return 0;
err:
	ts_source_close(source);
	return -1;
}
