// SPDX-License-Identifier: MIT
#include "cuda_memory.h"

#include "args.h"
#include "cuda.h"
#include "errors.h"
#include "gil.h"
#include "session.h"
#include "tensor.h"

/* Takes over the reference to the memory, which the tensor keeps from then on. */
static PyObject *wrap(struct tshare_cuda_memory *named)
{
	struct tshare_cuda_memory_info info = { .size = sizeof(info) };
	struct ts_cuda_memory memory = { .named = named };
	struct tshare_tensor *tensor;
	PyThreadState *state;
	int err;

	tshare_cuda_memory_get_info(named, &info);
	memory.info = (struct tshare_cuda_info){
		.address = info.address,
		.device = info.device,
		.driver_version = info.driver_version,
		.context_created = info.context_created,
	};
	state = PyEval_SaveThread();
	err = tshare_cuda_memory_get_tensor(named, &tensor);
	tshare_cuda_memory_unref(named);
	PyEval_RestoreThread(state);
	return err < 0 ? ts_raise(err, NULL) : ts_cuda_wrap(ts_tensor_wrap(tensor), &memory);
}

PyObject *ts_cuda_create(PyObject *name_arg, const struct tshare_spec *spec,
			 const struct tshare_options *options, PyObject *device)
{
	struct tshare_cuda_options cuda = { .size = sizeof(cuda) };
	struct tshare_ctx *ctx = ts_session();
	struct tshare_cuda_memory *named;
	PyThreadState *state;
	const char *name;
	PyObject *keep;
	int err;

	if (!ctx || ts_device_arg(device, &cuda) < 0)
		return NULL;
	if (ts_none(name_arg)) {
		PyErr_SetString(PyExc_ValueError,
				"name: must be given with device (other processes open a device's "
				"memory by its name)");
		return NULL;
	}
	name = ts_name_arg(name_arg, "name", &keep);
	if (!name)
		return NULL;
	ts_cuda_used = true;
	state = PyEval_SaveThread();
	err = tshare_cuda_memory_create(ctx, name, spec->dtype, spec->ndim, spec->shape, options,
					&cuda, &named);
	PyEval_RestoreThread(state);
	Py_XDECREF(keep);
	return err < 0 ? ts_raise(err, name_arg) : wrap(named);
}

PyObject *ts_cuda_open(struct tshare_region *region, PyObject *device)
{
	struct tshare_cuda_options options = { .size = sizeof(options) };
	struct tshare_cuda_memory *named;
	PyThreadState *state;
	int err;

	if (ts_device_arg(device, &options) < 0)
		return NULL;
	ts_cuda_used = true;
	state = PyEval_SaveThread();
	err = tshare_cuda_memory_open(region, &options, &named);
	PyEval_RestoreThread(state);
	return err < 0 ? ts_raise(err, NULL) : wrap(named);
}
