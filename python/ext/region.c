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
