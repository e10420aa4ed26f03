// SPDX-License-Identifier: MIT
/*
 * The methods that picklers call. The pickler of multiprocessing asks whether an object is another
 * library's view of a region; every pickler asks a Tensor or Region what to write.
 */
#include "pickling.h"

#include "call.h"
#include "gil.h"
#include "tensor.h"

PyObject *ts_tensor_reduce(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return ts_call("tshare._pickling", "reduce_tensor", self);
}

PyObject *ts_region_reduce(PyObject *self, PyObject *Py_UNUSED(unused))
{
	return ts_call("tshare._pickling", "reduce_region", self);
}

/* Otherwise the module copy would use the pickle, and return another view as a copy. */
PyObject *ts_refuse_copy(PyObject *self, PyObject *Py_UNUSED(unused))
{
	PyErr_Format(
		PyExc_TypeError,
		"%R can't be copied by the module copy (use tshare.asarray(t, copy=True) for a "
		"tensor, tshare.Region.create(None, region) for a region)",
		Py_TYPE(self));
	return NULL;
}

/* A pin and a device's address belong to the process. */
PyObject *ts_refuse_pickle(PyObject *self, PyObject *Py_UNUSED(unused))
{
	PyErr_Format(
		PyExc_TypeError,
		"%R can't be pickled or copied (send the Tensor, the Region or the name, and call "
		"pin(), cuda(), wait_on() or tshare.open() where it arrives)",
		Py_TYPE(self));
	return NULL;
}

static struct tshare_tensor *bytes_at(const void *address, int64_t size)
{
	const struct tshare_spec spec = {
		.size = sizeof(spec),
		.dtype = TSHARE_UINT8,
		.ndim = 1,
		.shape = &size,
	};
	struct tshare_tensor *handle;

	return tshare_tensor_wrap(address, &spec, 0, &handle) < 0 ? NULL : handle;
}

/*
 * Whether the buffer of @array lies in no region: a faster check than by its interface. An array of
 * dates has no buffer.
 */
static bool lies_elsewhere(PyObject *array)
{
	struct tshare_tensor *handle;
	Py_buffer view;

	if (PyObject_GetBuffer(array, &view, PyBUF_STRIDED_RO) < 0) {
		PyErr_Clear();
		return false;
	}
	handle = bytes_at(view.buf, 1);
	PyBuffer_Release(&view);
	ts_tensor_unref(handle);
	return !handle;
}

/*
 * Called for each object of a pickle that is no plain value. Most objects are of other types, and
 * must cost next to nothing.
 */
PyObject *ts_reducer_override(PyObject *Py_UNUSED(module), PyObject *obj)
{
	static struct {
		const char *module, *type, *reduce;
		bool has_buffer;
		PyObject *found;
	} kinds[] = {
		{ "numpy", "ndarray", "reduce_array", true, NULL },
		/* torch.UntypedStorage, which holds the memory of torch.Tensors and their views. */
		{ "torch", "UntypedStorage", "reduce_storage", false, NULL },
	};
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!kinds[i].found)
			kinds[i].found = ts_imported_type(kinds[i].module, kinds[i].type);
		if (!kinds[i].found && PyErr_Occurred())
			return NULL;
		if (!kinds[i].found || !PyObject_TypeCheck(obj, (PyTypeObject *)kinds[i].found))
			continue;
		if (kinds[i].has_buffer && lies_elsewhere(obj))
			break;
		return ts_call("tshare._pickling", kinds[i].reduce, obj);
	}
	Py_INCREF(Py_NotImplemented);
	return Py_NotImplemented;
}

/* (address, size): a Tensor of those bytes, or None if they don't lie in a region. */
PyObject *ts_bytes_at(PyObject *Py_UNUSED(module), PyObject *args)
{
	struct tshare_tensor *handle;
	unsigned long long address;
	long long size;

	if (!PyArg_ParseTuple(args, "KL", &address, &size))
		return NULL;
	handle = bytes_at((const void *)(uintptr_t)address, size);
	if (!handle)
		Py_RETURN_NONE;
	return ts_tensor_wrap(handle);
}
