// SPDX-License-Identifier: MIT
/* Tensors of other libraries: what all ways to open one need. A way is a file of its own. */
#include "source.h"

#include <string.h>

#include "call.h"
#include "dtype.h"

bool ts_source_is_contiguous(const struct ts_source *source)
{
	int64_t expected = 1;
	bool contiguous = true;
	int32_t i;

	for (i = source->spec.ndim; i-- > 0;) {
		if (!source->shape[i])
			return true;
		if (source->shape[i] != 1 && source->strides[i] != expected)
			contiguous = false;
		/* If this overflows, an earlier dimension has no elements. */
		expected = (int64_t)((uint64_t)expected * (uint64_t)source->shape[i]);
	}
	return contiguous;
}

void ts_source_start(struct ts_source *source)
{
	memset(source, 0, sizeof(*source));
	source->spec.size = sizeof(source->spec);
	source->spec.shape = source->shape;
	source->spec.strides = source->strides;
}

bool ts_source_is_unsuited(void)
{
	return PyErr_ExceptionMatches(PyExc_BufferError) ||
	       PyErr_ExceptionMatches(PyExc_TypeError) ||
	       PyErr_ExceptionMatches(PyExc_ValueError) ||
	       PyErr_ExceptionMatches(PyExc_RuntimeError) ||
	       PyErr_ExceptionMatches(PyExc_AttributeError);
}

int ts_source_check_extent(const struct ts_source *source, const void *memory, size_t size)
{
	if (!tshare_spec_check(&source->spec, source->data, memory, size))
		return 0;
	PyErr_Format(PyExc_BufferError, "x: %s", tshare_error_get());
	return -1;
}

void ts_source_set_c_strides(struct ts_source *source)
{
	int64_t step = 1;
	int32_t i;

	for (i = source->spec.ndim; i-- > 0;) {
		source->strides[i] = step;
		/* If this overflows, the source is refused later for its size. */
		step = (int64_t)((uint64_t)step * (uint64_t)source->shape[i]);
	}
}

/* A stride along a dimension of one element is never followed, and may be anything. */
int ts_source_take_byte_strides(struct ts_source *source)
{
	Py_ssize_t itemsize = ts_itemsize(source->spec.dtype);
	bool empty = false;
	int32_t i;

	for (i = 0; i < source->spec.ndim; i++)
		empty |= !source->shape[i];
	if (empty) {
		ts_source_set_c_strides(source);
		return 0;
	}
	for (i = 0; i < source->spec.ndim; i++) {
		if (source->shape[i] > 1 && source->strides[i] % itemsize) {
			PyErr_SetString(
				PyExc_BufferError,
				"x: unsupported strides (not multiples of the element size)");
			return -1;
		}
		source->strides[i] /= itemsize;
	}
	return 0;
}

int ts_source_is_of_type(PyObject *x, PyObject **type, const char *module, const char *name)
{
	if (!*type)
		*type = ts_imported_type(module, name);
	if (!*type)
		return PyErr_Occurred() ? -1 : 0;
	return PyObject_TypeCheck(x, (PyTypeObject *)*type);
}

void ts_source_close(struct ts_source *source)
{
	PyObject *type, *value, *traceback;

	/* A deleter, or the release of a buffer, may be Python code. */
	PyErr_Fetch(&type, &value, &traceback);
	if (source->versioned && source->versioned->deleter)
		source->versioned->deleter(source->versioned);
	if (source->legacy && source->legacy->deleter)
		source->legacy->deleter(source->legacy);
	if (source->view.obj)
		PyBuffer_Release(&source->view);
	Py_CLEAR(source->keep);
	source->versioned = NULL;
	source->legacy = NULL;
	PyErr_Restore(type, value, traceback);
}

int ts_source_check_copy(const struct ts_source *source)
{
	if (ts_itemsize(source->spec.dtype) || ts_source_is_contiguous(source))
		return 0;
	PyErr_SetString(PyExc_BufferError,
			"x: unsupported strides (packed elements must be C-contiguous)");
	return -1;
}
