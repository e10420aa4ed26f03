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

/*
 * 1 is the legacy default stream, 2 that of the thread, what is above a handle, and -1
 * no stream. 0 could be either of the first two.
 */
static int check_stream(PyObject *stream)
{
	int64_t number;

	if (ts_none(stream))
		return 0;
	/* As an int, True is 1. */
	if (!PyBool_Check(stream)) {
		if (ts_int_arg(stream, "stream", INT64_MIN, INT64_MAX, &number) < 0)
			return -1;
		if (number > 0 || number == -1)
			return 0;
	}
	PyErr_Format(PyExc_ValueError,
		     "stream: must be 1 (the legacy default stream), 2 (the thread's), a stream's "
		     "handle or -1 (none), not %S",
		     stream);
	return -1;
}

PyObject *ts_cuda_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
	struct tshare_tensor *handle = ts_cuda_handle(self);
	DLDevice device = device_of(self);
	struct ts_dlpack_request request;

	if (ts_dlpack_parse(args, nargs, kwnames, &request) < 0 || check_stream(request.stream) < 0)
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
