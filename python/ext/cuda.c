// SPDX-License-Identifier: MIT
/*
 * tshare.CudaTensor: the bytes of a Tensor as a CUDA device sees them.
 *
 * The library maps a region for a device once, and keeps that as long as the region. So
 * a CudaTensor is a Tensor, and what the library returned for its region and device.
 */
#include "cuda.h"
#include "docstrings.h"

#include <structmember.h>

PyTypeObject *ts_cuda_type;

struct tshare_tensor *ts_cuda_handle(PyObject *self)
{
	return ((struct ts_tensor *)((struct ts_cuda *)self)->tensor)->handle;
}

void *ts_cuda_data(const struct tshare_tensor *handle, const struct tshare_cuda_info *info)
{
	if (!tshare_tensor_get_nbytes(handle))
		return NULL;
	return (void *)(uintptr_t)(info->address + tshare_tensor_get_byte_offset(handle));
}

PyObject *ts_cuda_wrap(PyObject *tensor, const struct tshare_cuda_info *info)
{
	struct ts_cuda *self = tensor ? PyObject_New(struct ts_cuda, ts_cuda_type) : NULL;

	if (!self) {
		Py_XDECREF(tensor);
		return NULL;
	}
	self->tensor = tensor;
	self->info = *info;
	self->weakrefs = NULL;
	return (PyObject *)self;
}

static void cuda_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	if (((struct ts_cuda *)self)->weakrefs)
		PyObject_ClearWeakRefs(self);
	Py_DECREF(((struct ts_cuda *)self)->tensor);
	PyObject_Free(self);
	Py_DECREF(type);
}

/* Arguments */

static const char *const path_names[TSHARE_CUDA_PATHS] = {
	[TSHARE_CUDA_DMABUF] = "dmabuf",
	[TSHARE_CUDA_REGISTERED] = "registered",
	[TSHARE_CUDA_PAGEABLE] = "pageable",
};

/* TSHARE_CUDA_ANY has no name. */
static int path_arg(PyObject *obj, uint32_t *path)
{
	uint32_t place;

	if (ts_none(obj))
		return 0;
	if (ts_choice_arg(obj, "path", path_names + 1, TSHARE_CUDA_PATHS - 1, &place) < 0)
		return -1;
	*path = place + 1;
	return 0;
}

PyObject *ts_tensor_cuda(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
	static const char *const names[] = { "device", "path" };
	struct tshare_cuda_options options = { .size = sizeof(options) };
	struct tshare_cuda_info info = { .size = sizeof(info) };
	struct tshare_tensor *handle = ts_tensor_handle(self);
	struct tshare_region *region = NULL;
	PyThreadState *state;
	PyObject *given[2];
	int err;

	if (!handle)
		return NULL;
	/* close() may come from the device's __index__(), and while the GIL is released. */
	tshare_tensor_ref(handle);
	if (ts_parse("cuda", args, nargs, kwnames, names, 1, 2, given) < 0 ||
	    ts_device_arg(given[0], &options) < 0 || path_arg(given[1], &options.path) < 0) {
		tshare_tensor_unref(handle);
		return NULL;
	}
	/* An empty tensor needs nothing of its region, which may be large. */
	if (tshare_tensor_get_nbytes(handle))
		region = tshare_tensor_get_region(handle);
	state = PyEval_SaveThread();
	err = tshare_cuda_import(region, &options, &info);
	PyEval_RestoreThread(state);
	if (!err)
		return ts_cuda_wrap(ts_tensor_wrap(handle), &info);
	tshare_tensor_unref(handle);
	return ts_raise(err, NULL);
}

/* Attributes */

/* An attribute of the Tensor, by its name. */
static PyObject *get_of_tensor(PyObject *self, void *name)
{
	return PyObject_GetAttrString(((struct ts_cuda *)self)->tensor, name);
}

static PyObject *get_tensor(PyObject *self, void *Py_UNUSED(closure))
{
	return ts_tensor_wrap(tshare_tensor_ref(ts_cuda_handle(self)));
}

static PyObject *get_device(PyObject *self, void *Py_UNUSED(closure))
{
	return ts_device_name(((struct ts_cuda *)self)->info.device);
}

static PyObject *get_path(PyObject *self, void *Py_UNUSED(closure))
{
	const char *name = path_names[((struct ts_cuda *)self)->info.path];

	if (!name)
		Py_RETURN_NONE;
	return PyUnicode_FromString(name);
}

static PyObject *get_failures(PyObject *self, void *Py_UNUSED(closure))
{
	const struct tshare_cuda_info *info = &((struct ts_cuda *)self)->info;
	PyObject *failures = PyDict_New(), *result;
	uint32_t path;

	for (path = 1; failures && path < TSHARE_CUDA_PATHS; path++) {
		if (!info->results[path])
			continue;
		result = PyLong_FromLong(info->results[path]);
		if (!result || PyDict_SetItemString(failures, path_names[path], result) < 0)
			Py_CLEAR(failures);
		Py_XDECREF(result);
	}
	return failures;
}

static PyObject *get_driver_version(PyObject *self, void *Py_UNUSED(closure))
{
	return PyLong_FromLong(((struct ts_cuda *)self)->info.driver_version);
}

static PyObject *get_context_created(PyObject *self, void *Py_UNUSED(closure))
{
	return PyBool_FromLong(((struct ts_cuda *)self)->info.context_created);
}

static PyGetSetDef cuda_getset[] = {
	{ "shape", get_of_tensor, NULL, DOC_CudaTensor_shape, "shape" },
	{ "strides", get_of_tensor, NULL, DOC_CudaTensor_strides, "strides" },
	{ "dtype", get_of_tensor, NULL, DOC_CudaTensor_dtype, "dtype" },
	{ "ndim", get_of_tensor, NULL, DOC_CudaTensor_ndim, "ndim" },
	{ "itemsize", get_of_tensor, NULL, DOC_CudaTensor_itemsize, "itemsize" },
	{ "nbytes", get_of_tensor, NULL, DOC_CudaTensor_nbytes, "nbytes" },
	{ "readonly", get_of_tensor, NULL, DOC_CudaTensor_readonly, "readonly" },
	{ "region", get_of_tensor, NULL, DOC_CudaTensor_region, "region" },
	{ "tensor", get_tensor, NULL, DOC_CudaTensor_tensor, NULL },
	{ "device", get_device, NULL, DOC_CudaTensor_device, NULL },
	{ "path", get_path, NULL, DOC_CudaTensor_path, NULL },
	{ "failures", get_failures, NULL, DOC_CudaTensor_failures, NULL },
	{ "driver_version", get_driver_version, NULL, DOC_CudaTensor_driver_version, NULL },
	{ "context_created", get_context_created, NULL, DOC_CudaTensor_context_created, NULL },
	{ "__cuda_array_interface__", ts_cuda_array_interface, NULL,
	  DOC_CudaTensor___cuda_array_interface__, NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

/* Methods */

/* NumPy would otherwise take a CudaTensor for a sequence, or for a single object. */
static PyObject *cuda_array(PyObject *Py_UNUSED(self), PyObject *const *Py_UNUSED(args),
			    Py_ssize_t Py_UNUSED(nargs), PyObject *Py_UNUSED(kwnames))
{
	PyErr_SetString(PyExc_TypeError,
			"a tshare.CudaTensor can't be converted to a NumPy array (use "
			"g.tensor.numpy())");
	return NULL;
}

static PyMethodDef cuda_methods[] = {
	{ "__array__", TS_FASTCALL(cuda_array), METH_FASTCALL | METH_KEYWORDS,
	  DOC_CudaTensor___array__ },
	{ "__reduce_ex__", ts_refuse_pickle, METH_O, NULL },
	{ "__dlpack__", TS_FASTCALL(ts_cuda_dlpack), METH_FASTCALL | METH_KEYWORDS,
	  DOC_CudaTensor___dlpack__ },
	{ "__dlpack_device__", ts_cuda_dlpack_device, METH_NOARGS,
	  DOC_CudaTensor___dlpack_device__ },
	{ NULL, NULL, 0, NULL },
};

static Py_ssize_t cuda_length(PyObject *self)
{
	return PyObject_Size(((struct ts_cuda *)self)->tensor);
}

static PyObject *cuda_subscript(PyObject *self, PyObject *key)
{
	struct ts_cuda *cuda = (struct ts_cuda *)self;

	return ts_cuda_wrap(ts_tensor_subscript(cuda->tensor, key), &cuda->info);
}

static int cuda_contains(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(value))
{
	PyErr_SetString(PyExc_TypeError, "tshare.CudaTensor does not support 'in'");
	return -1;
}

static PyObject *cuda_repr(PyObject *self)
{
	const struct ts_cuda *cuda = (struct ts_cuda *)self;
	PyObject *device, *path, *shape, *dtype, *repr = NULL;

	device = get_device(self, NULL);
	path = get_path(self, NULL);
	shape = get_of_tensor(self, "shape");
	dtype = get_of_tensor(self, "dtype");
	if (device && path && shape && dtype)
		repr = PyUnicode_FromFormat(
			"<tshare.CudaTensor device=%R path=%R shape=%R dtype=%S%s>", device, path,
			shape, dtype,
			tshare_tensor_is_readonly(ts_cuda_handle(self)) ? " readonly" : "");
	Py_XDECREF(device);
	Py_XDECREF(path);
	Py_XDECREF(shape);
	Py_XDECREF(dtype);
	return repr;
}

static PyMemberDef cuda_members[] = {
	{ "__weaklistoffset__", T_PYSSIZET, offsetof(struct ts_cuda, weakrefs), READONLY, NULL },
	{ NULL, 0, 0, 0, NULL },
};

static PyType_Slot cuda_slots[] = {
	{ Py_tp_doc, DOC_CudaTensor },
	{ Py_tp_dealloc, cuda_dealloc },
	{ Py_tp_repr, cuda_repr },
	{ Py_tp_getset, cuda_getset },
	{ Py_tp_methods, cuda_methods },
	{ Py_tp_members, cuda_members },
	{ Py_tp_iter, ts_tensor_iter },
	{ Py_mp_length, cuda_length },
	{ Py_mp_subscript, cuda_subscript },
	{ Py_sq_contains, cuda_contains },
	{ 0, NULL },
};

static PyType_Spec cuda_spec = {
	.name = "tshare.CudaTensor",
	.basicsize = sizeof(struct ts_cuda),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = cuda_slots,
};

int ts_cuda_init(PyObject *module)
{
	ts_cuda_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &cuda_spec, NULL);
	return ts_cuda_type ? PyModule_AddType(module, ts_cuda_type) : -1;
}
