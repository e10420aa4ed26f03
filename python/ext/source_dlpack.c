// SPDX-License-Identifier: MIT
/* Tensors of other libraries by DLPack. */
#include "source_dlpack.h"

#include <string.h>

#include "args.h"
#include "call.h"
#include "cuda.h"
#include "source.h"
#include "source_numpy.h"
#include "tshare-dlpack.h"

static bool is_host(long type)
{
	return type == kDLCPU || type == kDLCUDAHost || type == kDLCUDAManaged;
}

/* Raises the library's error, with its argument "managed" as "x". Returns -1. */
static int fail_dlpack(void)
{
	static const char managed[] = "managed: ";
	const char *text = tshare_error_get();

	if (!strncmp(text, managed, strlen(managed)))
		text += strlen(managed);
	PyErr_Format(PyExc_BufferError, "x: %s", text);
	return -1;
}

/* @spec was checked. Its arrays are copied, as the producer might change them later. */
static void take_spec(struct ts_source *source, const struct tshare_spec *spec, const void *data)
{
	size_t size = spec->ndim * sizeof(int64_t);

	source->data = data;
	source->spec.dtype = spec->dtype;
	source->spec.ndim = spec->ndim;
	if (size)
		memcpy(source->shape, spec->shape, size);
	if (size && spec->strides)
		memcpy(source->strides, spec->strides, size);
	else
		ts_source_set_c_strides(source);
}

static int take_versioned(struct ts_source *source, enum ts_source_use use)
{
	struct tshare_spec spec = { .size = sizeof(spec) };
	const void *data;
	uint32_t flags;

	if (tshare_spec_from_dlpack(source->versioned, &spec, &data, &flags) < 0)
		return fail_dlpack();
	if (use == TS_IN_PLACE && source->versioned->flags & DLPACK_FLAG_BITMASK_IS_COPIED) {
		PyErr_SetString(PyExc_BufferError,
				"x: __dlpack__() returned a copy, not the memory of x");
		return -1;
	}
	source->readonly = flags & TSHARE_READONLY;
	take_spec(source, &spec, data);
	return 0;
}

static int take_legacy(struct ts_source *source)
{
	struct tshare_spec spec = { .size = sizeof(spec) };
	const void *data;

	if (tshare_spec_from_dlpack_legacy(source->legacy, &spec, &data) < 0)
		return fail_dlpack();
	take_spec(source, &spec, data);
	return 0;
}

/* Moves the capsule's content to the source, which calls the deleter, on failure too. */
static int take_capsule(struct ts_source *source, enum ts_source_use use, PyObject *capsule)
{
	if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
		source->versioned = PyCapsule_GetPointer(capsule, "dltensor_versioned");
		if (PyCapsule_SetName(capsule, "used_dltensor_versioned") < 0) {
			source->versioned = NULL;
			return -1;
		}
		return take_versioned(source, use);
	}
	if (PyCapsule_IsValid(capsule, "dltensor")) {
		source->legacy = PyCapsule_GetPointer(capsule, "dltensor");
		if (PyCapsule_SetName(capsule, "used_dltensor") < 0) {
			source->legacy = NULL;
			return -1;
		}
		return take_legacy(source);
	}
	PyErr_SetString(PyExc_BufferError, "x: __dlpack__() returned no unused DLPack capsule");
	return -1;
}

/* Replaces the producer's error if tshare knows a remedy. */
static void raise_remedy(PyObject *x)
{
	PyObject *type, *value, *traceback, *result;

	if (!ts_source_is_unsuited())
		return;
	PyErr_Fetch(&type, &value, &traceback);
	result = ts_call("tshare._remedies", "check_exportable", x);
	if (result) {
		Py_DECREF(result);
		PyErr_Restore(type, value, traceback);
		return;
	}
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(traceback);
}

/*
 * Whether x reports memory elsewhere than the CPU's: 0 or 1, or -1 with an error set. The device's
 * id is ignored: in some libraries it is None.
 */
static int is_elsewhere(PyObject *x, PyObject **device)
{
	long type;

	*device = NULL;
	if (!PyObject_HasAttrString(x, "__dlpack_device__"))
		return 0;
	*device = PyObject_CallMethod(x, "__dlpack_device__", NULL);
	if (!*device) {
		raise_remedy(x);
		return -1;
	}
	if (!PyTuple_Check(*device) || PyTuple_Size(*device) != 2) {
		PyErr_SetString(PyExc_TypeError,
				"x: __dlpack_device__() must return a tuple of two ints");
		Py_CLEAR(*device);
		return -1;
	}
	type = PyLong_AsLong(PyTuple_GetItem(*device, 0));
	if (type == -1 && PyErr_Occurred()) {
		Py_CLEAR(*device);
		return -1;
	}
	return !is_host(type);
}

/* Called first, since __dlpack__() of a tensor on a GPU may wait, or copy. */
int ts_source_check_device(PyObject *x)
{
	PyObject *device;
	int elsewhere = is_elsewhere(x, &device);

	if (elsewhere > 0 && PyObject_TypeCheck(x, ts_cuda_type))
		PyErr_SetString(
			PyExc_BufferError,
			((struct ts_cuda *)x)->memory.named ?
				"x: is in a GPU's memory (copy it first, as by "
				"torch.from_dlpack(x).cpu())" :
			((struct ts_cuda *)x)->memory.copy ?
				"x: is a copy in a GPU's memory (copy it back first, as by "
				"torch.from_dlpack(x).cpu())" :
				"x: is a device's view of a tensor (pass x.tensor, the CPU's)");
	else if (elsewhere > 0)
		PyErr_Format(PyExc_BufferError,
			     "x: is on device %S, not the CPU (copy it first, by x.cpu() or "
			     "device='cpu')",
			     device);
	Py_XDECREF(device);
	return elsewhere ? -1 : 0;
}

/*
 * Calls x.__dlpack__() with keywords, or without them if x doesn't know them. Passes only keywords
 * that are needed: some libraries refuse a keyword even if it states what holds anyway.
 */
static PyObject *get_capsule(PyObject *x, bool bring_here, bool never_copy)
{
	PyObject *method, *args, *kwargs, *cpu, *capsule = NULL;

	method = PyObject_GetAttrString(x, "__dlpack__");
	if (!method)
		return NULL;
	args = PyTuple_New(0);
	kwargs =
		Py_BuildValue("{s(ii)}", "max_version", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION);
	if (kwargs && bring_here) {
		cpu = Py_BuildValue("(ii)", kDLCPU, 0);
		if (!cpu || PyDict_SetItemString(kwargs, "dl_device", cpu) < 0)
			Py_CLEAR(kwargs);
		Py_XDECREF(cpu);
	}
	if (kwargs && never_copy && PyDict_SetItemString(kwargs, "copy", Py_False) < 0)
		Py_CLEAR(kwargs);
	if (args && kwargs) {
		capsule = PyObject_Call(method, args, kwargs);
		if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
			PyErr_Clear();
			capsule = PyObject_Call(method, args, NULL);
		}
	}
	Py_XDECREF(args);
	Py_XDECREF(kwargs);
	Py_DECREF(method);
	return capsule;
}

/*
 * PyTorch negates lazily, as in z.conj().imag. DLPack, like every other protocol, exports such
 * elements as they were before.
 */
static int check_negated(PyObject *x)
{
	static PyObject *tensor;
	int found = ts_source_is_of_type(x, &tensor, "torch", "Tensor");
	PyObject *negated;
	bool is_negated;

	if (found <= 0 || !PyObject_HasAttrString(x, "is_neg"))
		return found < 0 ? -1 : 0;
	negated = PyObject_CallMethod(x, "is_neg", NULL);
	found = negated ? ts_bool_arg(negated, "x", &is_negated) : -1;
	Py_XDECREF(negated);
	if (found < 0 || !is_negated)
		return found;
	PyErr_SetString(PyExc_BufferError,
			"x: lazily negated tensors are not supported (share x.resolve_neg())");
	return -1;
}

static int open_capsule(PyObject *x, enum ts_source_use use, bool bring_here,
			struct ts_source *source)
{
	PyObject *capsule;
	int err;

	ts_source_start(source);
	if (check_negated(x) < 0)
		return -1;
	capsule = get_capsule(x, bring_here, use == TS_IN_PLACE);
	if (!capsule) {
		raise_remedy(x);
		return -1;
	}
	err = take_capsule(source, use, capsule);
	Py_DECREF(capsule);
	if (err)
		ts_source_close(source);
	return err;
}

int ts_source_dlpack(PyObject *x, enum ts_source_use use, struct ts_source *source)
{
	PyObject *device;
	int elsewhere = 0;

	if (!PyObject_HasAttrString(x, "__dlpack__")) {
		PyErr_Format(PyExc_TypeError, "x: %R has no __dlpack__()", Py_TYPE(x));
		return -1;
	}
	if (ts_source_check_mask(x) < 0)
		return -1;
	if (use == TS_FROM_ANYWHERE) {
		elsewhere = is_elsewhere(x, &device);
		Py_XDECREF(device);
		if (elsewhere < 0)
			return -1;
	} else if (ts_source_check_device(x) < 0) {
		return -1;
	}
	return open_capsule(x, use, elsewhere, source);
}

int ts_source_from_dlpack(PyObject *x, struct ts_source *source)
{
	/* ts_source_open() has checked the device. */
	return open_capsule(x, TS_FROM_CPU, false, source);
}
