// SPDX-License-Identifier: MIT
/*
 * DLPack export of a CudaTensor.
 *
 * The consumer's stream waits for a copy that the library made on another stream. It waits for
 * nothing else: the library can't see the work of other streams.
 */
#include "cuda_dlpack.h"

#include "args.h"
#include "cuda.h"
#include "dlpack.h"
#include "tshare-dlpack.h"

static DLDevice device_of(PyObject *self)
{
	return (DLDevice){ kDLCUDA, ((struct ts_cuda *)self)->memory.info.device };
}

/* Whether the stream is -1: the consumer has no stream that could wait. */
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
	const struct ts_cuda_memory *memory = &((struct ts_cuda *)self)->memory;
	struct tshare_tensor *handle = ts_cuda_handle(self);
	struct ts_dlpack_memory exported = {
		.device = device_of(self),
		.data = ts_cuda_data(handle, memory),
		.readonly = ts_cuda_is_readonly(handle, memory),
	};
	struct ts_dlpack_request request;
	struct CUstream_st *stream = NULL;

	if (ts_dlpack_parse(args, nargs, kwnames, &request) < 0)
		return NULL;
	if (!is_no_stream(request.stream) && ts_stream_arg(request.stream, &stream) < 0)
		return NULL;
	if (request.device_given && (request.device_type != exported.device.device_type ||
				     request.device_id != exported.device.device_id))
		return ts_dlpack_refuse_device(
			&request, exported.device,
			memory->named ? " (the memory is on that device alone)" :
			memory->copy  ? " (what it was copied from is g.tensor)" :
					" (the CPU's view is g.tensor, another "
					"device's g.tensor.cuda(...))");
	if (request.copy) {
		PyErr_SetString(PyExc_BufferError,
				"copy: the memory is exported as it is (let the library that takes "
				"the tensor copy it, or take g.tensor.cuda(copy=True))");
		return NULL;
	}
	if ((stream ? ts_cuda_await(memory, stream) : ts_cuda_check(memory)) < 0)
		return NULL;
	if (memory->copy)
		exported.cuda_copy = tshare_cuda_copy_ref(memory->copy);
	return ts_dlpack_export_at(handle, request.versioned, &exported);
}

PyObject *ts_cuda_dlpack_device(PyObject *self, PyObject *Py_UNUSED(unused))
{
	DLDevice device = device_of(self);

	return Py_BuildValue("ii", (int)device.device_type, (int)device.device_id);
}
