// SPDX-License-Identifier: MIT
/*
 * tshare.bench._exchange: what an exchange through DLPack's table of functions
 * costs a consumer in C, without a call into Python for each.
 *
 * Takes any library's table, so that ours can be held against theirs.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <time.h>

#include "tshare-dlpack.h"

/* The members of dlpack.h's DLPackExchangeAPI that are used here. */
struct exchange_api {
	DLPackVersion version;
	void *prev_api;
	void *managed_tensor_allocator;
	int (*managed_tensor_from_py_object_no_sync)(void *py_object,
						     DLManagedTensorVersioned **out);
	void *managed_tensor_to_py_object_no_sync;
	int (*dltensor_from_py_object_no_sync)(void *py_object, DLTensor *out);
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

/* The arguments of both functions; NULL with an error set if they are not right. */
static const struct exchange_api *parse(PyObject *args, PyObject **tensor, Py_ssize_t *count)
{
	const struct exchange_api *api;
	PyObject *capsule;

	if (!PyArg_ParseTuple(args, "OOn", &capsule, tensor, count))
		return NULL;
	api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
	if (api && api->version.major != DLPACK_MAJOR_VERSION) {
		PyErr_Format(PyExc_ValueError, "the table is of version %u", api->version.major);
		return NULL;
	}
	return api;
}

static PyObject *exchange(PyObject *Py_UNUSED(module), PyObject *args)
{
	DLManagedTensorVersioned *managed;
	const struct exchange_api *api;
	Py_ssize_t count, i;
	PyObject *tensor;
	double start;

	api = parse(args, &tensor, &count);
	if (!api)
		return NULL;
	start = now();
	for (i = 0; i < count; i++) {
		if (api->managed_tensor_from_py_object_no_sync(tensor, &managed))
			return NULL;
		managed->deleter(managed);
	}
	return PyFloat_FromDouble(now() - start);
}

static PyObject *describe(PyObject *Py_UNUSED(module), PyObject *args)
{
	const struct exchange_api *api;
	Py_ssize_t count, i;
	PyObject *tensor;
	DLTensor out;
	double start;

	api = parse(args, &tensor, &count);
	if (!api)
		return NULL;
	start = now();
	for (i = 0; i < count; i++)
		if (api->dltensor_from_py_object_no_sync(tensor, &out))
			return NULL;
	return PyFloat_FromDouble(now() - start);
}

static PyMethodDef methods[] = {
	{ "exchange", exchange, METH_VARARGS,
	  PyDoc_STR("exchange(table, tensor, count, /)\n--\n\n"
		    "The seconds that it takes to export the tensor and to delete the export,\n"
		    "count times.") },
	{ "describe", describe, METH_VARARGS,
	  PyDoc_STR("describe(table, tensor, count, /)\n--\n\n"
		    "The seconds that it takes to fill in a borrowed DLTensor, count times.") },
	{ 0 },
};

static struct PyModuleDef module_def = {
	PyModuleDef_HEAD_INIT,
	.m_name = "tshare.bench._exchange",
	.m_methods = methods,
};

PyMODINIT_FUNC PyInit__exchange(void)
{
	return PyModuleDef_Init(&module_def);
}
