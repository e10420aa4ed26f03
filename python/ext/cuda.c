// SPDX-License-Identifier: MIT
/*
 * The object of tshare.CudaTensor: the bytes of a Tensor as a CUDA device sees them, in place, as
 * a copy, or in memory of the device's that has a name.
 *
 * The library maps a region for a device once, and keeps the mapping as long as the region. So a
 * CudaTensor is a Tensor, and what the library returned for its region and device, or for the
 * tensor's copy. The tensor of memory with a name lies on the device alone, and keeps that memory.
 */
#include "cuda.h"

#include "errors.h"
#include "tensor.h"

PyTypeObject *ts_cuda_type;

struct tshare_tensor *ts_cuda_handle(PyObject *self)
{
	return ((struct ts_tensor *)((struct ts_cuda *)self)->tensor)->handle;
}

void *ts_cuda_data(const struct tshare_tensor *handle, const struct ts_cuda_memory *memory)
{
	if (!tshare_tensor_get_nbytes(handle))
		return NULL;
	return (void *)(uintptr_t)(memory->info.address + tshare_tensor_get_byte_offset(handle));
}

bool ts_cuda_is_readonly(const struct tshare_tensor *handle, const struct ts_cuda_memory *memory)
{
	return !memory->copy && tshare_tensor_is_readonly(handle);
}

int ts_cuda_check(const struct ts_cuda_memory *memory)
{
	PyThreadState *state;
	int err;

	if (!memory->named)
		return 0;
	state = PyEval_SaveThread();
	err = tshare_cuda_memory_check(memory->named);
	PyEval_RestoreThread(state);
	if (!err)
		return 0;
	ts_raise(err, NULL);
	return -1;
}

int ts_cuda_await(const struct ts_cuda_memory *memory, struct CUstream_st *stream)
{
	PyThreadState *state;
	int err;

	if (!memory->copy)
		return ts_cuda_check(memory);
	state = PyEval_SaveThread();
	err = tshare_cuda_copy_wait_on(memory->copy, stream);
	PyEval_RestoreThread(state);
	if (!err)
		return 0;
	ts_raise(err, NULL);
	return -1;
}

PyObject *ts_cuda_wrap(PyObject *tensor, const struct ts_cuda_memory *memory)
{
	struct ts_cuda *self = tensor ? PyObject_GC_New(struct ts_cuda, ts_cuda_type) : NULL;

	if (!self) {
		Py_XDECREF(tensor);
		return NULL;
	}
	self->tensor = tensor;
	self->memory = *memory;
	if (memory->copy)
		tshare_cuda_copy_ref(memory->copy);
	Py_XINCREF(memory->stream_owner);
	self->weakrefs = NULL;
	PyObject_GC_Track(self);
	return (PyObject *)self;
}
