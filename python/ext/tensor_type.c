// SPDX-License-Identifier: MIT
/* The type tshare.Tensor: its attributes and its methods. */
#include "tensor_type.h"

#include <structmember.h>

#include "array_interface.h"
#include "buffer.h"
#include "call.h"
#include "copy_from.h"
#include "cuda_type.h"
#include "dlpack.h"
#include "docstrings.h"
#include "dtype.h"
#include "dtype_object.h"
#include "errors.h"
#include "gil.h"
#include "index.h"
#include "names.h"
#include "operators.h"
#include "pickling.h"
#include "pin.h"
#include "region.h"
#include "scalar.h"
#include "tensor.h"
#include "tensor_spec.h"

static void tensor_dealloc(PyObject *self)
{
	struct ts_tensor *tensor = (struct ts_tensor *)self;
	struct tshare_tensor *handle = tensor->handle;
	PyTypeObject *type = Py_TYPE(self);

	if (tensor->weakrefs)
		PyObject_ClearWeakRefs(self);
	PyMem_Free(tensor->byte_strides);
	Py_XDECREF(tensor->shape);
	PyObject_Free(self);
	Py_DECREF(type);
	ts_tensor_unref(handle);
}

/* Attributes */

static PyObject *get_shape(PyObject *self, void *Py_UNUSED(closure))
{
	return ts_tensor_handle(self) ? ts_tensor_shape(self) : NULL;
}

static PyObject *get_strides(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_tensor *handle = ts_tensor_handle(self);
	const Py_ssize_t *strides;

	if (!handle)
		return NULL;
	if (!ts_itemsize(tshare_tensor_get_dtype(handle)))
		Py_RETURN_NONE;
	strides = ts_tensor_byte_strides(self);
	return strides ? ts_int_tuple(strides, tshare_tensor_get_ndim(handle)) : NULL;
}

static PyObject *get_dtype(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_tensor *handle = ts_tensor_handle(self);

	return handle ? ts_dtype_wrap(tshare_tensor_get_dtype(handle)) : NULL;
}

static PyObject *get_ndim(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_tensor *handle = ts_tensor_handle(self);

	return handle ? PyLong_FromLong(tshare_tensor_get_ndim(handle)) : NULL;
}

static PyObject *get_itemsize(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_tensor *handle = ts_tensor_handle(self);
	struct tshare_dtype dtype;

	if (!handle)
		return NULL;
	dtype = tshare_tensor_get_dtype(handle);
	return PyLong_FromLong(((uint32_t)dtype.bits * dtype.lanes + 7) / 8);
}

static PyObject *get_nbytes(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_tensor *handle = ts_tensor_handle(self);

	return handle ? PyLong_FromUnsignedLongLong(tshare_tensor_get_nbytes(handle)) : NULL;
}

static PyObject *get_byte_offset(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_tensor *handle = ts_tensor_handle(self);

	return handle ? PyLong_FromUnsignedLongLong(tshare_tensor_get_byte_offset(handle)) : NULL;
}

static PyObject *get_readonly(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_tensor *handle = ts_tensor_handle(self);

	return handle ? PyBool_FromLong(tshare_tensor_is_readonly(handle)) : NULL;
}

static PyObject *get_name(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_tensor *handle = ts_tensor_handle(self);
	const char *name;

	if (!handle)
		return NULL;
	name = tshare_tensor_get_name(handle);
	if (!*name)
		name = tshare_region_get_name(tshare_tensor_get_region(handle));
	if (!*name)
		Py_RETURN_NONE;
	return ts_text(name);
}

static PyObject *get_device(PyObject *self, void *Py_UNUSED(closure))
{
	return ts_tensor_handle(self) ? PyUnicode_FromString("cpu") : NULL;
}

static PyObject *get_region(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_tensor *handle = ts_tensor_handle(self);

	return handle ? ts_region_wrap(tshare_region_ref(tshare_tensor_get_region(handle))) : NULL;
}

/* For tshare._pickling. */
static PyObject *get_in_frame(PyObject *self, void *Py_UNUSED(closure))
{
	struct tshare_tensor *handle = ts_tensor_handle(self);

	if (!handle)
		return NULL;
	return PyBool_FromLong(tshare_tensor_get_frame(handle) || tshare_tensor_get_entry(handle));
}

static PyObject *get_closed(PyObject *self, void *Py_UNUSED(closure))
{
	return PyBool_FromLong(((struct ts_tensor *)self)->closed);
}

static PyGetSetDef tensor_getset[] = {
	{ "shape", get_shape, NULL, DOC_Tensor_shape, NULL },
	{ "strides", get_strides, NULL, DOC_Tensor_strides, NULL },
	{ "dtype", get_dtype, NULL, DOC_Tensor_dtype, NULL },
	{ "ndim", get_ndim, NULL, DOC_Tensor_ndim, NULL },
	{ "itemsize", get_itemsize, NULL, DOC_Tensor_itemsize, NULL },
	{ "nbytes", get_nbytes, NULL, DOC_Tensor_nbytes, NULL },
	{ "size", ts_tensor_size, NULL, DOC_Tensor_size, NULL },
	{ "T", ts_tensor_transpose, NULL, DOC_Tensor_T, NULL },
	{ "byte_offset", get_byte_offset, NULL, DOC_Tensor_byte_offset, NULL },
	{ "readonly", get_readonly, NULL, DOC_Tensor_readonly, NULL },
	{ "name", get_name, NULL, DOC_Tensor_name, NULL },
	{ "device", get_device, NULL, DOC_Tensor_device, NULL },
	{ "region", get_region, NULL, DOC_Tensor_region, NULL },
	{ "closed", get_closed, NULL, DOC_Tensor_closed, NULL },
	{ "astype", ts_tensor_of_numpy, NULL, DOC_Tensor_astype, "astype" },
	{ "ctypes", ts_tensor_of_numpy, NULL, DOC_Tensor_ctypes, "ctypes" },
	{ "ravel", ts_tensor_of_numpy, NULL, DOC_Tensor_ravel, "ravel" },
	{ "_spec", ts_tensor_spec, NULL, NULL, NULL },
	{ "_in_frame", get_in_frame, NULL, NULL, NULL },
	{ "__array_interface__", ts_tensor_array_interface, NULL, DOC_Tensor___array_interface__,
	  NULL },
	{ NULL, NULL, NULL, NULL, NULL },
};

/* Methods */

static PyObject *tensor_close(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct ts_tensor *tensor = (struct ts_tensor *)self;

	if (tensor->exports && !tensor->closed) {
		PyErr_SetString(PyExc_BufferError, "cannot close a tensor that has live views");
		return NULL;
	}
	tensor->closed = true;
	ts_tensor_release(tensor);
	Py_RETURN_NONE;
}

static PyObject *tensor_fileno(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_tensor *handle = ts_tensor_handle(self);

	return handle ? PyLong_FromLong(tshare_region_get_fd(tshare_tensor_get_region(handle))) :
			NULL;
}

static PyObject *tensor_unlink(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_tensor *handle = ts_tensor_handle(self);

	return handle ? ts_unlink(tshare_tensor_get_region(handle)) : NULL;
}

static PyObject *tensor_finish(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			       PyObject *kwnames)
{
	struct tshare_tensor *handle = ts_tensor_handle(self);

	return handle ? ts_finish(tshare_tensor_get_region(handle), args, nargs, kwnames) : NULL;
}

static PyObject *tensor_pin(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			    PyObject *kwnames)
{
	struct tshare_tensor *handle = ts_tensor_handle(self);

	return handle ? ts_pin(tshare_tensor_get_region(handle), args, nargs, kwnames) : NULL;
}

static PyObject *tensor_enter(PyObject *self, PyObject *Py_UNUSED(unused))
{
	if (!ts_tensor_handle(self))
		return NULL;
	Py_INCREF(self);
	return self;
}

/* An error here would replace the block's own exception. */
static PyObject *tensor_exit(PyObject *self, PyObject *Py_UNUSED(args))
{
	struct ts_tensor *tensor = (struct ts_tensor *)self;

	tensor->closed = true;
	ts_tensor_release(tensor);
	Py_RETURN_NONE;
}

/* Calls a module of the package to convert the tensor for another library. */
static PyObject *convert(PyObject *self, const char *module_name)
{
	return ts_tensor_handle(self) ? ts_call(module_name, "as_array", self) : NULL;
}

static PyObject *tensor_jax_array(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return convert(self, "tshare._jax");
}

static PyObject *tensor_torch(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return convert(self, "tshare._torch");
}

/* Of a type that NumPy has, so that it takes the buffer itself. Other types need Python code. */
static PyObject *array_over_buffer(PyObject *self)
{
	/* Kept for good: with cold caches an import takes as long as the call. */
	static PyObject *asarray;
	PyObject *module;

	if (!asarray) {
		module = PyImport_ImportModule("numpy");
		asarray = module ? PyObject_GetAttrString(module, "asarray") : NULL;
		Py_XDECREF(module);
	}
	return asarray ? PyObject_CallFunctionObjArgs(asarray, self, NULL) : NULL;
}

static PyObject *tensor_numpy(PyObject *self, PyObject *Py_UNUSED(unused))
{
	struct tshare_tensor *handle = ts_tensor_handle(self);
	PyObject *names, *array = NULL;

	if (!handle)
		return NULL;
	if (ts_format(tshare_tensor_get_dtype(handle)))
		return array_over_buffer(self);
	names = Py_BuildValue("(s)", "copy");
	if (names)
		array = ts_tensor_array(self, (PyObject *[]){ Py_False }, 0, names);
	Py_XDECREF(names);
	return array;
}

static PyMethodDef tensor_methods[] = {
	{ "close", tensor_close, METH_NOARGS, DOC_Tensor_close },
	{ "fileno", tensor_fileno, METH_NOARGS, DOC_Tensor_fileno },
	{ "finish", TS_FASTCALL(tensor_finish), METH_FASTCALL | METH_KEYWORDS, DOC_Tensor_finish },
	{ "unlink", tensor_unlink, METH_NOARGS, DOC_Tensor_unlink },
	{ "numpy", tensor_numpy, METH_NOARGS, DOC_Tensor_numpy },
	{ "torch", tensor_torch, METH_NOARGS, DOC_Tensor_torch },
	{ "copy_from", ts_tensor_copy_from, METH_O, DOC_Tensor_copy_from },
	{ "item", ts_tensor_item, METH_NOARGS, DOC_Tensor_item },
	{ "pin", TS_FASTCALL(tensor_pin), METH_FASTCALL | METH_KEYWORDS, DOC_Tensor_pin },
	{ "cuda", TS_FASTCALL(ts_tensor_cuda), METH_FASTCALL | METH_KEYWORDS, DOC_Tensor_cuda },
	{ "__enter__", tensor_enter, METH_NOARGS, DOC_Tensor___enter__ },
	{ "__exit__", tensor_exit, METH_VARARGS, DOC_Tensor___exit__ },
	{ "__complex__", ts_tensor_complex, METH_NOARGS, NULL },
	{ "__format__", ts_tensor_format, METH_O, NULL },
	{ "__reduce__", ts_tensor_reduce, METH_NOARGS, NULL },
	{ "__copy__", ts_refuse_copy, METH_NOARGS, NULL },
	{ "__deepcopy__", ts_refuse_copy, METH_O, NULL },
	{ "__array__", TS_FASTCALL(ts_tensor_array), METH_FASTCALL | METH_KEYWORDS,
	  DOC_Tensor___array__ },
	{ "__jax_array__", tensor_jax_array, METH_NOARGS, DOC_Tensor___jax_array__ },
	{ "__dlpack__", TS_FASTCALL(ts_tensor_dlpack), METH_FASTCALL | METH_KEYWORDS,
	  DOC_Tensor___dlpack__ },
	{ "__dlpack_device__", ts_tensor_dlpack_device, METH_NOARGS, DOC_Tensor___dlpack_device__ },
	{ NULL, NULL, 0, NULL },
};

static Py_ssize_t tensor_length(PyObject *self)
{
	struct tshare_tensor *handle = ts_tensor_handle(self);

	if (!handle)
		return -1;
	if (!tshare_tensor_get_ndim(handle)) {
		PyErr_SetString(PyExc_TypeError, "len() of a tensor without dimensions");
		return -1;
	}
	return tshare_tensor_get_shape(handle)[0];
}

static PyObject *tensor_repr(PyObject *self)
{
	struct ts_tensor *tensor = (struct ts_tensor *)self;
	PyObject *name = NULL, *shape = NULL, *dtype = NULL, *repr = NULL;

	if (tensor->closed)
		return PyUnicode_FromString("<tshare.Tensor closed>");
	name = get_name(self, NULL);
	shape = ts_tensor_shape(self);
	dtype = get_dtype(self, NULL);
	if (name && shape && dtype)
		repr = PyUnicode_FromFormat(
			"<tshare.Tensor name=%R shape=%R dtype=%S%s>", name, shape, dtype,
			tshare_tensor_is_readonly(tensor->handle) ? " readonly" : "");
	Py_XDECREF(name);
	Py_XDECREF(shape);
	Py_XDECREF(dtype);
	return repr;
}

static PyMemberDef tensor_members[] = {
	{ "__weaklistoffset__", T_PYSSIZET, offsetof(struct ts_tensor, weakrefs), READONLY, NULL },
	{ NULL, 0, 0, 0, NULL },
};

static PyType_Slot tensor_slots[] = {
	{ Py_tp_doc, DOC_Tensor },
	{ Py_tp_dealloc, tensor_dealloc },
	{ Py_tp_repr, tensor_repr },
	{ Py_tp_getset, tensor_getset },
	{ Py_tp_methods, tensor_methods },
	{ Py_tp_members, tensor_members },
	{ Py_tp_iter, ts_tensor_iter },
	{ Py_mp_length, tensor_length },
	{ Py_mp_subscript, ts_tensor_subscript },
	{ Py_mp_ass_subscript, ts_tensor_ass_subscript },
	{ Py_sq_contains, ts_tensor_contains },
	{ Py_nb_bool, ts_tensor_bool },
	{ Py_nb_int, ts_tensor_int },
	{ Py_nb_float, ts_tensor_float },
	/* No nb_index: bytes() and bytearray() would take the tensor for a number of zeros. */
	TS_OPERATOR_SLOTS,
	{ Py_bf_getbuffer, ts_tensor_getbuffer },
	{ Py_bf_releasebuffer, ts_tensor_releasebuffer },
	{ 0, NULL },
};

static PyType_Spec tensor_spec = {
	.name = "tshare.Tensor",
	.basicsize = sizeof(struct ts_tensor),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = tensor_slots,
};

int ts_tensor_init(PyObject *module)
{
	ts_tensor_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &tensor_spec, NULL);
	return ts_tensor_type ? PyModule_AddType(module, ts_tensor_type) : -1;
}
