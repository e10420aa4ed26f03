// SPDX-License-Identifier: MIT
/* A tensor as a tuple, from which a process that has the region makes the tensor again. */
#include "tensor_spec.h"

#include "args.h"
#include "errors.h"
#include "region.h"
#include "tensor.h"

/* (name, (code, bits, lanes), shape, strides in elements, byte offset, readonly) */
PyObject *ts_tensor_spec(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_tensor *handle = ts_tensor_handle(self);
	struct tshare_dtype dtype;
	PyObject *name;

	if (!handle)
		return NULL;
	name = ts_text(tshare_tensor_get_name(handle));
	if (!name)
		return NULL;
	dtype = tshare_tensor_get_dtype(handle);
	return Py_BuildValue(
		"(N(iii)NNKO)", name, dtype.code, dtype.bits, dtype.lanes, ts_tensor_shape(self),
		ts_int_tuple(tshare_tensor_get_strides(handle), tshare_tensor_get_ndim(handle)),
		(unsigned long long)tshare_tensor_get_byte_offset(handle),
		tshare_tensor_is_readonly(handle) ? Py_True : Py_False);
}

/* (region, spec): spec comes from a peer, and is checked like any other. */
PyObject *ts_tensor_rebuild(PyObject *Py_UNUSED(module), PyObject *args)
{
	int64_t dims[TSHARE_NDIM_LIMIT], steps[TSHARE_NDIM_LIMIT];
	PyObject *object, *name, *shape, *strides, *keep, *self = NULL;
	struct tshare_spec spec = { .size = sizeof(spec), .shape = dims, .strides = steps };
	struct tshare_tensor *handle;
	struct tshare_region *region;
	int code, bits, lanes, readonly, err;
	unsigned long long offset;
	int32_t count;

	if (!PyArg_ParseTuple(args, "O!(O(iii)OOKp)", ts_region_type, &object, &name, &code, &bits,
			      &lanes, &shape, &strides, &offset, &readonly))
		return NULL;
	spec.dtype = (struct tshare_dtype){ code, bits, lanes };
	spec.byte_offset = ts_offset(offset);
	if (ts_dims_arg(shape, "shape", dims, &spec.ndim) < 0 ||
	    ts_dims_arg(strides, "strides", steps, &count) < 0)
		return NULL;
	if (count != spec.ndim) {
		PyErr_SetString(PyExc_ValueError, "strides: not one for each dimension");
		return NULL;
	}
	spec.name = ts_name_arg(name, "name", &keep);
	if (!spec.name)
		return NULL;
	region = ts_region_handle(object);
	if (region) {
		err = tshare_region_view(region, &spec, readonly ? TSHARE_READONLY : 0, &handle);
		self = err < 0 ? ts_raise(err, NULL) : ts_tensor_wrap(handle);
	}
	Py_XDECREF(keep);
	return self;
}
