// SPDX-License-Identifier: MIT
/*
 * DLPack export of a CudaTensor.
 *
 * The consumer's stream has nothing to wait for: the library puts no work on any stream, and
 * can't see what others have put on theirs.
 */
#include "cuda.h"
#include "dlpack.h"

static DLDevice device_of(PyObject *self)
{
	return (DLDevice){ kDLCUDA, ((struct ts_cuda *)self)->info.device };
}

/* Whether it is -1: the consumer has no stream that could wait. */
static bool is_no_stream(PyObject *obj)
{
	Py_ssize_t number = 0;

	if (obj && PyIndex_Check(obj))
		number = PyNumber_AsSsize_t(obj, NULL);
	if (number != -1)
		return false;
	if (!PyErr_Occurred())
		return true;
	PyErr_Clear();
	return false;
}

PyObject *ts_cuda_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
	struct tshare_tensor *handle = ts_cuda_handle(self);
	DLDevice device = device_of(self);
	struct ts_dlpack_request request;
	struct CUstream_st *stream = NULL;

	if (ts_dlpack_parse(args, nargs, kwnames, &request) < 0)
		return NULL;
	if (!is_no_stream(request.stream) && ts_stream_arg(request.stream, &stream) < 0)
		return NULL;
	if (request.device_given &&
	    (request.device_type != device.device_type || request.device_id != device.device_id))
		return ts_dlpack_refuse_device(&request, device,
					       " (the CPU's view is g.tensor, another device's "
					       "g.tensor.cuda(...))");
	if (request.copy) {
		PyErr_SetString(
			PyExc_BufferError,
			"copy: tshare makes no copy on a device (let the library that takes "
			"the tensor copy it)");
		return NULL;
	}
	return ts_dlpack_export_at(handle, request.versioned, device,
				   ts_cuda_data(handle, &((struct ts_cuda *)self)->info), NULL);
}

PyObject *ts_cuda_dlpack_device(PyObject *self, PyObject *Py_UNUSED(unused))
{
	DLDevice device = device_of(self);

	return Py_BuildValue("ii", (int)device.device_type, (int)device.device_id);
}
