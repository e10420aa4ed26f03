// SPDX-License-Identifier: MIT
/* The object of tshare.Region. */
#include "region.h"

#include <string.h>

#include "gil.h"

PyTypeObject *ts_region_type;

PyObject *ts_region_wrap(struct tshare_region *handle)
{
	struct ts_region *self = PyObject_New(struct ts_region, ts_region_type);

	if (!self) {
		ts_region_unref(handle);
		return NULL;
	}
	self->handle = handle;
	memset(self->waiters, 0, sizeof(self->waiters));
	self->indexed = false;
	self->weakrefs = NULL;
	return (PyObject *)self;
}

struct tshare_region *ts_region_handle(PyObject *self)
{
	struct tshare_region *handle = ((struct ts_region *)self)->handle;

	if (!handle)
		PyErr_SetString(PyExc_ValueError, "region is closed");
	return handle;
}

bool ts_region_is_stream(struct tshare_region *handle)
{
	static const char *const names[] = { ".stream", ".number", ".header", ".shape" };
	const size_t own = sizeof(names) / sizeof(names[0]);
	size_t count = tshare_region_get_tensor_count(handle), i;
	struct tshare_tensor *tensor;

	/* A search of a long list would index it first. */
	if (count <= own || count > own + TSHARE_STREAM_FIELDS)
		return false;
	for (i = 0; i < own; i++) {
		if (tshare_region_find_tensor(handle, names[i], &tensor) < 0)
			return false;
		ts_tensor_unref(tensor);
	}
	return true;
}
