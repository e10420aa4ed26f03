// SPDX-License-Identifier: MIT
/* The type tshare.CudaTensor, and Tensor.cuda(), which makes one. */
#include "cuda_type.h"

#include <structmember.h>

#include "args.h"
#include "array_interface.h"
#include "cuda.h"
#include "cuda_dlpack.h"
#include "docstrings.h"
#include "errors.h"
#include "gil.h"
#include "index.h"
#include "operators.h"
#include "pickling.h"
#include "region.h"
#include "tensor.h"

/* The stream's object may refer to the copy. */
static int cuda_traverse(PyObject *self, visitproc visit, void *arg)
{
	Py_VISIT(((struct ts_cuda *)self)->memory.stream_owner);
	Py_VISIT(Py_TYPE(self));
	return 0;
}

static void cuda_dealloc(PyObject *self)
{
	struct ts_cuda *cuda = (struct ts_cuda *)self;
	const struct ts_cuda_memory memory = cuda->memory;
	PyObject *tensor = cuda->tensor;
	PyTypeObject *type = Py_TYPE(self);

	PyObject_GC_UnTrack(self);
	if (cuda->weakrefs)
		PyObject_ClearWeakRefs(self);
	PyObject_GC_Del(self);
	Py_DECREF(type);
	if (memory.copy)
		ts_cuda_copy_unref(memory.copy);
	Py_XDECREF(memory.stream_owner);
	Py_DECREF(tensor);
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

static PyObject *import_tensor(struct tshare_tensor *handle,
			       const struct tshare_cuda_options *options)
{
	struct ts_cuda_memory memory = { .info.size = sizeof(memory.info) };
	struct tshare_region *region = NULL;
	PyThreadState *state;
	int err;

	/* An empty tensor needs no mapping of its region, which may be large. */
	if (tshare_tensor_get_nbytes(handle))
		region = tshare_tensor_get_region(handle);
	state = PyEval_SaveThread();
	err = tshare_cuda_import(region, options, &memory.info);
	PyEval_RestoreThread(state);
	if (err)
		return ts_raise(err, NULL);
	return ts_cuda_wrap(ts_tensor_wrap(tshare_tensor_ref(handle)), &memory);
}

static PyObject *copy_tensor(struct tshare_tensor *handle,
			     const struct tshare_cuda_options *options, PyObject *stream)
{
	struct tshare_cuda_copy_info info = { .size = sizeof(info) };
	struct ts_cuda_memory memory = { 0 };
	PyThreadState *state;
	PyObject *result;
	int err;

	if (ts_stream_arg(stream, &memory.stream) < 0)
		return NULL;
	/* The stream may end with the object. */
	memory.stream_owner = ts_none(stream) ? NULL : stream;
	state = PyEval_SaveThread();
	err = tshare_cuda_copy_new(handle, options, memory.stream, &memory.copy);
	PyEval_RestoreThread(state);
	if (err)
		return ts_raise(err, NULL);
	tshare_cuda_copy_get_info(memory.copy, &info);
	memory.info = (struct tshare_cuda_info){
		.address = info.address - tshare_tensor_get_byte_offset(handle),
		.device = info.device,
		.driver_version = info.driver_version,
		.context_created = info.context_created,
	};
	result = ts_cuda_wrap(ts_tensor_wrap(tshare_tensor_ref(handle)), &memory);
	ts_cuda_copy_unref(memory.copy);
	return result;
}

static int refuse_without_effect(PyObject *path, bool copy, PyObject *stream)
{
	if (copy && !ts_none(path)) {
		PyErr_SetString(
			PyExc_ValueError,
			"path: is for the tensor's own memory; leave it out with copy=True");
		return -1;
	}
	if (!copy && !ts_none(stream)) {
		PyErr_SetString(PyExc_ValueError,
				"stream: has nothing to do without copy=True; leave it out");
		return -1;
	}
	return 0;
}

PyObject *ts_tensor_cuda(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
	static const char *const names[] = { "device", "path", "copy", "stream" };
	enum { DEVICE, PATH, COPY, STREAM };
	struct tshare_cuda_options options = { .size = sizeof(options) };
	struct tshare_tensor *handle = ts_tensor_handle(self);
	PyObject *given[4], *result = NULL;
	bool copy;

	if (!handle)
		return NULL;
	/* close() may come from the device's __index__(), and while the GIL is released. */
	tshare_tensor_ref(handle);
	ts_cuda_used = true;
	if (ts_parse("cuda", args, nargs, kwnames, names, 1, 4, given) == 0 &&
	    ts_device_arg(given[DEVICE], &options) == 0 &&
	    path_arg(given[PATH], &options.path) == 0 &&
	    ts_bool_arg(given[COPY], "copy", &copy) == 0 &&
	    refuse_without_effect(given[PATH], copy, given[STREAM]) == 0)
		result = copy ? copy_tensor(handle, &options, given[STREAM]) :
				import_tensor(handle, &options);
	ts_tensor_unref(handle);
	return result;
}

/* Attributes */

/* An attribute of the Tensor, by its name. */
static PyObject *get_of_tensor(PyObject *self, void *name)
{
	return PyObject_GetAttrString(((struct ts_cuda *)self)->tensor, name);
}

/* The region that names the memory, or that the bytes lie in. */
static PyObject *get_region(PyObject *self, void *name)
{
	const struct ts_cuda_memory *memory = &((struct ts_cuda *)self)->memory;

	if (!memory->named)
		return get_of_tensor(self, name);
	return ts_region_wrap(tshare_region_ref(tshare_cuda_memory_get_region(memory->named)));
}

static PyObject *get_tensor(PyObject *self, void *Py_UNUSED(closure))
{
	if (((struct ts_cuda *)self)->memory.named) {
		PyErr_SetString(PyExc_AttributeError,
				"tensor: the memory is on the device alone (copy it, as by "
				"torch.from_dlpack(g).cpu())");
		return NULL;
	}
	return ts_tensor_wrap(tshare_tensor_ref(ts_cuda_handle(self)));
}

static PyObject *get_readonly(PyObject *self, void *Py_UNUSED(closure))
{
	return PyBool_FromLong(
		ts_cuda_is_readonly(ts_cuda_handle(self), &((struct ts_cuda *)self)->memory));
}

static PyObject *get_device(PyObject *self, void *Py_UNUSED(closure))
{
	return ts_device_name(((struct ts_cuda *)self)->memory.info.device);
}

static PyObject *get_path(PyObject *self, void *Py_UNUSED(closure))
{
	const struct ts_cuda_memory *memory = &((struct ts_cuda *)self)->memory;
	const char *name = memory->named ? "device" :
			   memory->copy	 ? "copy" :
					   path_names[memory->info.path];

	if (!name)
		Py_RETURN_NONE;
	return PyUnicode_FromString(name);
}

static PyObject *get_failures(PyObject *self, void *Py_UNUSED(closure))
{
	const struct tshare_cuda_info *info = &((struct ts_cuda *)self)->memory.info;
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
	return PyLong_FromLong(((struct ts_cuda *)self)->memory.info.driver_version);
}

static PyObject *get_context_created(PyObject *self, void *Py_UNUSED(closure))
{
	return PyBool_FromLong(((struct ts_cuda *)self)->memory.info.context_created);
}

static PyGetSetDef cuda_getset[] = {
	{ "shape", get_of_tensor, NULL, DOC_CudaTensor_shape, "shape" },
	{ "strides", get_of_tensor, NULL, DOC_CudaTensor_strides, "strides" },
	{ "dtype", get_of_tensor, NULL, DOC_CudaTensor_dtype, "dtype" },
	{ "ndim", get_of_tensor, NULL, DOC_CudaTensor_ndim, "ndim" },
	{ "itemsize", get_of_tensor, NULL, DOC_CudaTensor_itemsize, "itemsize" },
	{ "nbytes", get_of_tensor, NULL, DOC_CudaTensor_nbytes, "nbytes" },
	{ "readonly", get_readonly, NULL, DOC_CudaTensor_readonly, NULL },
	{ "region", get_region, NULL, DOC_CudaTensor_region, "region" },
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
static PyObject *cuda_array(PyObject *self, PyObject *const *Py_UNUSED(args),
			    Py_ssize_t Py_UNUSED(nargs), PyObject *Py_UNUSED(kwnames))
{
	PyErr_Format(
		PyExc_TypeError, "a tshare.CudaTensor can't be converted to a NumPy array (%s)",
		((struct ts_cuda *)self)->memory.copy || ((struct ts_cuda *)self)->memory.named ?
			"copy it back, as by torch.from_dlpack(g).cpu()" :
			"use g.tensor.numpy()");
	return NULL;
}

static PyMethodDef cuda_methods[] = {
	{ "__array__", TS_FASTCALL(cuda_array), METH_FASTCALL | METH_KEYWORDS,
	  DOC_CudaTensor___array__ },
	{ "__reduce__", ts_refuse_pickle, METH_NOARGS, NULL },
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

	return ts_cuda_wrap(ts_tensor_subscript(cuda->tensor, key), &cuda->memory);
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
			ts_cuda_is_readonly(ts_cuda_handle(self), &cuda->memory) ? " readonly" :
										   "");
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
	{ Py_tp_traverse, cuda_traverse }, /* no tp_clear: the stream's object breaks cycles */
	{ Py_tp_repr, cuda_repr },
	{ Py_tp_getset, cuda_getset },
	{ Py_tp_methods, cuda_methods },
	{ Py_tp_members, cuda_members },
	{ Py_tp_iter, ts_tensor_iter },
	{ Py_mp_length, cuda_length },
	{ Py_mp_subscript, cuda_subscript },
	{ Py_sq_contains, cuda_contains },
	TS_OPERATOR_SLOTS,
	{ 0, NULL },
};

static PyType_Spec cuda_spec = {
	.name = "tshare.CudaTensor",
	.basicsize = sizeof(struct ts_cuda),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = cuda_slots,
};

int ts_cuda_init(PyObject *module)
{
	ts_cuda_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &cuda_spec, NULL);
	return ts_cuda_type ? PyModule_AddType(module, ts_cuda_type) : -1;
}
