/* SPDX-License-Identifier: MIT */
/* DLPack export of a Tensor, and what that of a CudaTensor has in common with it. */
#ifndef TSHARE_EXT_DLPACK_H
#define TSHARE_EXT_DLPACK_H

#include "ext.h"
#include "tshare-dlpack.h"

/* The arguments of __dlpack__(). */
struct ts_dlpack_request {
	PyObject *stream; /* borrowed, or NULL */
	bool versioned;
	bool device_given;
	int64_t device_type, device_id; /* if @device_given */
	bool copy;
};

/* 0, or -1 with an error set. */
int ts_dlpack_parse(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
		    struct ts_dlpack_request *request);
/* BufferError for the device of the request; returns NULL. */
PyObject *ts_dlpack_refuse_device(const struct ts_dlpack_request *request, DLDevice own,
				  const char *remedy);
/* The memory that is exported, and what keeps it alive beside the tensor itself. */
struct ts_dlpack_memory {
	DLDevice device;
	void *data;
	bool readonly;
	struct tshare_pin *pin;		    /* or NULL */
	struct tshare_cuda_copy *cuda_copy; /* or NULL */
};

/* A capsule of the tensor in @memory. Takes over the references in @memory, on failure, too. */
PyObject *ts_dlpack_export_at(struct tshare_tensor *handle, bool versioned,
			      const struct ts_dlpack_memory *memory);

PyObject *ts_tensor_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			   PyObject *kwnames);
PyObject *ts_tensor_dlpack_device(PyObject *self, PyObject *unused);
/* 0, or -1 with an error set. */
int ts_dlpack_init(PyObject *module);

#endif /* TSHARE_EXT_DLPACK_H */
