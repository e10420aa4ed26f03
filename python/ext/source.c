// SPDX-License-Identifier: MIT
/*
 * Tensors of other libraries: what they look like, by whichever protocol they
 * speak, for as long as they are held.
 */
#include "ext.h"

#include <stdlib.h>
#include <string.h>

bool ts_source_is_contiguous(const struct ts_source *source)
{
	int64_t expected = 1;
	bool contiguous = true;
	int32_t i;

	for (i = source->spec.ndim; i-- > 0;) {
		if (!source->shape[i])
			return true;
		if (source->shape[i] != 1 && source->strides[i] != expected)
			contiguous = false;
		/* Where it would overflow, a dimension before has no elements. */
		expected = (int64_t)((uint64_t)expected * (uint64_t)source->shape[i]);
	}
	return contiguous;
}

static void start(struct ts_source *source)
{
	memset(source, 0, sizeof(*source));
	source->spec.shape = source->shape;
	source->spec.strides = source->strides;
	source->spec.byte_offset = TSHARE_OFFSET_AUTO;
}

/* Whether an error means that @x is not to be had in this way, but perhaps in another. */
static bool is_unsuited(void)
{
	return PyErr_ExceptionMatches(PyExc_BufferError) ||
	       PyErr_ExceptionMatches(PyExc_TypeError) ||
	       PyErr_ExceptionMatches(PyExc_ValueError) ||
	       PyErr_ExceptionMatches(PyExc_RuntimeError) ||
	       PyErr_ExceptionMatches(PyExc_AttributeError);
}

static int check_ndim(long ndim)
{
	if (ndim >= 0 && ndim <= TSHARE_NDIM_LIMIT)
		return 0;
	PyErr_Format(PyExc_BufferError, "x: has %ld dimensions, more than %d", ndim,
		     TSHARE_NDIM_LIMIT);
	return -1;
}

/* Whether its elements can be where it says, and, if @memory is known, inside that. */
static int check_extent(const struct ts_source *source, const void *memory, size_t size)
{
	if (!tshare_spec_check(&source->spec, source->data, memory, size))
		return 0;
	PyErr_Format(PyExc_BufferError, "x: %s", tshare_last_error());
	return -1;
}

static void c_strides(struct ts_source *source)
{
	int64_t step = 1;
	int32_t i;

	for (i = source->spec.ndim; i-- > 0;) {
		source->strides[i] = step;
		/* Where it would overflow, the source is refused later for its size. */
		step = (int64_t)((uint64_t)step * (uint64_t)source->shape[i]);
	}
}

/*
 * From strides in bytes, as all protocols but DLPack have them. Where there is
 * no second index they may be anything.
 */
static int take_byte_strides(struct ts_source *source)
{
	Py_ssize_t itemsize = ts_itemsize(source->spec.dtype);
	bool empty = false;
	int32_t i;

	for (i = 0; i < source->spec.ndim; i++)
		empty |= !source->shape[i];
	if (empty) {
		c_strides(source);
		return 0;
	}
	for (i = 0; i < source->spec.ndim; i++) {
		if (source->shape[i] > 1 && source->strides[i] % itemsize) {
			PyErr_SetString(PyExc_BufferError, "x: its strides are not whole elements");
			return -1;
		}
		source->strides[i] /= itemsize;
	}
	return 0;
}

/* DLPack */

static bool is_host(long type)
{
	return type == kDLCPU || type == kDLCUDAHost || type == kDLCUDAManaged;
}

static int take_dltensor(struct ts_source *source, const DLTensor *tensor)
{
	int32_t i;

	if (!is_host(tensor->device.device_type)) {
		PyErr_Format(PyExc_BufferError, "x: is on device (%d, %d), not in the CPU's memory",
			     (int)tensor->device.device_type, (int)tensor->device.device_id);
		return -1;
	}
	if (check_ndim(tensor->ndim) < 0)
		return -1;
	if (tensor->ndim && !tensor->shape) {
		PyErr_SetString(PyExc_BufferError, "x: has dimensions, but no shape");
		return -1;
	}
	if (!tensor->dtype.bits || !tensor->dtype.lanes) {
		PyErr_SetString(PyExc_BufferError, "x: its elements have no bits");
		return -1;
	}
	source->spec.dtype = (struct tshare_dtype){ tensor->dtype.code, tensor->dtype.bits,
						    tensor->dtype.lanes };
	source->spec.ndim = tensor->ndim;
	if (tensor->data)
		source->data = (const char *)tensor->data + tensor->byte_offset;
	for (i = 0; i < tensor->ndim; i++)
		source->shape[i] = tensor->shape[i];
	if (tensor->ndim && tensor->strides)
		memcpy(source->strides, tensor->strides, tensor->ndim * sizeof(int64_t));
	else
		c_strides(source);
	return check_extent(source, NULL, 0);
}

/* From here on the source answers for what the capsule holds. */
static int take_capsule(struct ts_source *source, enum ts_source_use use, PyObject *capsule)
{
	DLManagedTensorVersioned *versioned;

	if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
		versioned = PyCapsule_GetPointer(capsule, "dltensor_versioned");
		if (PyCapsule_SetName(capsule, "used_dltensor_versioned") < 0)
			return -1;
		source->versioned = versioned;
		/* Of another major version, all that is known is how to delete it. */
		if (versioned->version.major != DLPACK_MAJOR_VERSION) {
			PyErr_Format(PyExc_BufferError, "x: its DLPack version is %u, not %d",
				     versioned->version.major, DLPACK_MAJOR_VERSION);
			return -1;
		}
		if (versioned->flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) {
			PyErr_SetString(PyExc_BufferError, "x: its elements are padded to bytes");
			return -1;
		}
		if (use == TS_IN_PLACE && versioned->flags & DLPACK_FLAG_BITMASK_IS_COPIED) {
			PyErr_SetString(PyExc_BufferError,
					"x: gives a copy, and not its own memory");
			return -1;
		}
		source->readonly = versioned->flags & DLPACK_FLAG_BITMASK_READ_ONLY;
		return take_dltensor(source, &versioned->dl_tensor);
	}
	if (PyCapsule_IsValid(capsule, "dltensor")) {
		source->legacy = PyCapsule_GetPointer(capsule, "dltensor");
		if (PyCapsule_SetName(capsule, "used_dltensor") < 0) {
			source->legacy = NULL;
			return -1;
		}
		return take_dltensor(source, &source->legacy->dl_tensor);
	}
	PyErr_SetString(PyExc_BufferError, "x: __dlpack__() gave no unused DLPack capsule");
	return -1;
}

/*
 * Whether x says that it is elsewhere than in the CPU's memory: 0 or 1, or -1
 * with an error set. The device's id is nobody's business here, and is None in
 * some libraries.
 */
static int is_elsewhere(PyObject *x, PyObject **device)
{
	long type;

	*device = NULL;
	if (!PyObject_HasAttrString(x, "__dlpack_device__"))
		return 0;
	*device = PyObject_CallMethod(x, "__dlpack_device__", NULL);
	if (!*device)
		return -1;
	if (!PyTuple_Check(*device) || PyTuple_Size(*device) != 2) {
		PyErr_SetString(PyExc_TypeError, "x: __dlpack_device__() gave no tuple of two");
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

/* tshare._numpy's function of that name, for what only NumPy is to be asked about. */
static int ask_numpy(const char *function, PyObject *x)
{
	PyObject *module, *result;

	module = PyImport_ImportModule("tshare._numpy");
	result = module ? PyObject_CallMethod(module, function, "O", x) : NULL;
	Py_XDECREF(module);
	Py_XDECREF(result);
	return result ? 0 : -1;
}

/* Whether @x is of a type of another library's, if that is there; or -1 with an error set. */
static int is_of_type(PyObject *x, PyObject **type, const char *module, const char *name)
{
	if (!*type)
		*type = ts_imported_type(module, name);
	if (!*type)
		return PyErr_Occurred() ? -1 : 0;
	return PyObject_TypeCheck(x, (PyTypeObject *)*type);
}

/* NumPy's masked arrays, by whichever protocol, are those of their data alone. */
static int check_mask(PyObject *x)
{
	static PyObject *masked;
	int found = is_of_type(x, &masked, "numpy.ma", "MaskedArray");

	return found > 0 ? ask_numpy("check_mask", x) : found;
}

/*
 * Refuses arrays and scalars of NumPy's of types that no tensor has. The buffer of
 * a date is one of bytes; the others would be refused in as many ways as there are.
 */
static int check_numpy(PyObject *x)
{
	static PyObject *array, *scalar;
	int found;

	if (check_mask(x) < 0)
		return -1;
	found = is_of_type(x, &array, "numpy", "ndarray");
	if (!found)
		found = is_of_type(x, &scalar, "numpy", "generic");
	return found > 0 ? ask_numpy("check_dtype", x) : found;
}

/* Asked first, since __dlpack__() of a tensor on a GPU may wait, or copy. */
static int check_device(PyObject *x)
{
	PyObject *device;
	int elsewhere = is_elsewhere(x, &device);

	if (elsewhere > 0)
		PyErr_Format(PyExc_BufferError,
			     "x: is on device %S, not in the CPU's memory: copy it there first, "
			     "with .cpu() or device='cpu'",
			     device);
	Py_XDECREF(device);
	return elsewhere ? -1 : 0;
}

/*
 * x.__dlpack__() with the keywords, or without them where they are unknown. No
 * keyword is passed that isn't needed: some libraries refuse those that say
 * what holds anyway.
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
 * PyTorch negates lazily, such as in z.conj().imag, and exports the elements as
 * they were before, by DLPack and by all else.
 */
static int check_negated(PyObject *x)
{
	static PyObject *tensor;
	int found = is_of_type(x, &tensor, "torch", "Tensor");
	PyObject *negated;
	bool is_negated;

	if (found <= 0 || !PyObject_HasAttrString(x, "is_neg"))
		return found < 0 ? -1 : 0;
	negated = PyObject_CallMethod(x, "is_neg", NULL);
	found = negated ? ts_bool_arg(negated, &is_negated) : -1;
	Py_XDECREF(negated);
	if (found < 0 || !is_negated)
		return found;
	PyErr_SetString(PyExc_BufferError,
			"x: has its negative bit set, which a tensor can't keep: share "
			"x.resolve_neg()");
	return -1;
}

static int open_capsule(PyObject *x, enum ts_source_use use, bool bring_here,
			struct ts_source *source)
{
	PyObject *capsule;
	int err;

	start(source);
	if (check_negated(x) < 0)
		return -1;
	capsule = get_capsule(x, bring_here, use == TS_IN_PLACE);
	if (!capsule)
		return -1;
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
	if (check_mask(x) < 0)
		return -1;
	if (use == TS_FROM_ANYWHERE) {
		elsewhere = is_elsewhere(x, &device);
		Py_XDECREF(device);
		if (elsewhere < 0)
			return -1;
	} else if (check_device(x) < 0) {
		return -1;
	}
	return open_capsule(x, use, elsewhere, source);
}

/* The buffer protocol */

/*
 * Of a format of one character. Its size is the item's: "l" has four bytes or
 * eight, not always as its prefix says. Nothing else may differ, since ctypes
 * calls unions of any size "B".
 */
static int format_dtype(const char *format, Py_ssize_t itemsize, struct tshare_dtype *dtype)
{
	static const struct {
		char format;
		uint8_t code;
		uint8_t sizes; /* or-ed */
	} kinds[] = {
		{ '?', kDLBool, 1 },  { 'b', kDLInt, 1 },     { 'B', kDLUInt, 1 },
		{ 'h', kDLInt, 2 },   { 'H', kDLUInt, 2 },    { 'i', kDLInt, 4 },
		{ 'I', kDLUInt, 4 },  { 'l', kDLInt, 4 | 8 }, { 'L', kDLUInt, 4 | 8 },
		{ 'q', kDLInt, 8 },   { 'Q', kDLUInt, 8 },    { 'n', kDLInt, 8 },
		{ 'N', kDLUInt, 8 },  { 'e', kDLFloat, 2 },   { 'f', kDLFloat, 4 },
		{ 'd', kDLFloat, 8 }, { 'f', kDLComplex, 8 }, { 'd', kDLComplex, 16 },
	};
	bool foreign, complex;
	size_t i;

	if (!format)
		format = "B";
	foreign = *format == TS_FOREIGN_ORDER || (*format == '!' && TS_FOREIGN_ORDER == '>');
	if (foreign && itemsize > 1)
		return -1;
	if (*format && strchr("@=<>!|", *format))
		format++;
	complex = *format == 'Z';
	if (complex)
		format++;
	if (!*format || format[1])
		return -1;
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].format == *format && (kinds[i].code == kDLComplex) == complex &&
		    (itemsize == 1 || itemsize == 2 || itemsize == 4 || itemsize == 8 ||
		     itemsize == 16) &&
		    kinds[i].sizes & itemsize) {
			*dtype = (struct tshare_dtype){ kinds[i].code, 8 * itemsize, 1 };
			return 0;
		}
	return -1;
}

static int open_buffer(PyObject *x, struct ts_source *source)
{
	Py_buffer *view = &source->view;
	int32_t i;

	start(source);
	if (PyObject_GetBuffer(x, view, PyBUF_STRIDED_RO | PyBUF_FORMAT) < 0)
		return -1;
	if (check_ndim(view->ndim) < 0)
		goto err;
	if (format_dtype(view->format, view->itemsize, &source->spec.dtype) < 0) {
		PyErr_Format(PyExc_BufferError, "x: its buffer's format, '%s', is none of tensors",
			     view->format);
		goto err;
	}
	source->data = view->buf;
	source->readonly = view->readonly;
	source->spec.ndim = view->ndim;
	for (i = 0; i < view->ndim; i++)
		source->shape[i] = view->shape[i];
	/* ctypes has none, even for those who ask. */
	if (!view->strides) {
		c_strides(source);
	} else {
		for (i = 0; i < view->ndim; i++)
			source->strides[i] = view->strides[i];
		if (take_byte_strides(source) < 0)
			goto err;
	}
	if (!check_extent(source, NULL, 0))
		return 0;
err:
	ts_source_close(source);
	return -1;
}

/* The array interface */

/*
 * @x may have a .dtype that says more than the typestr of the interface, as
 * NumPy's arrays of ml_dtypes have.
 */
static int interface_dtype(PyObject *x, PyObject *typestr, struct tshare_dtype *dtype)
{
	const char *text =
		typestr && PyUnicode_Check(typestr) ? PyUnicode_AsUTF8AndSize(typestr, NULL) : NULL;
	PyObject *type;
	int err;

	if (!text || strlen(text) < 3) {
		if (!PyErr_Occurred())
			PyErr_SetString(PyExc_BufferError, "x: its interface has no typestr");
		return -1;
	}
	if (!ts_typestr(text, dtype))
		return 0;
	type = PyObject_GetAttrString(x, "dtype");
	err = type ? ts_dtype_arg(type, dtype) : -1;
	Py_XDECREF(type);
	if (!err && (*text == TS_FOREIGN_ORDER || !ts_itemsize(*dtype) ||
		     ts_itemsize(*dtype) != atoi(text + 2)))
		err = -1;
	if (err && (!PyErr_Occurred() || is_unsuited())) {
		PyErr_Clear();
		PyErr_Format(PyExc_BufferError, "x: its typestr, '%s', is none of tensors", text);
	}
	return err;
}

static int interface_dims(PyObject *dims, const char *what, int64_t *values, int32_t *count)
{
	Py_ssize_t i, size = PyTuple_Check(dims) ? PyTuple_Size(dims) : -1;

	if (size < 0 || size > TSHARE_NDIM_LIMIT) {
		PyErr_Format(PyExc_BufferError,
			     "x: the %s of its interface must be a tuple of at most %d", what,
			     TSHARE_NDIM_LIMIT);
		return -1;
	}
	for (i = 0; i < size; i++) {
		values[i] = PyLong_AsLongLong(PyTuple_GetItem(dims, i));
		if (values[i] == -1 && PyErr_Occurred())
			return -1;
	}
	*count = size;
	return 0;
}

/* "data" is (address, readonly), an object with a buffer, or None for x itself. */
static int interface_data(PyObject *x, PyObject *data, PyObject *offset, struct ts_source *source)
{
	PyObject *flag;
	long long shift = 0;
	int readonly;

	if (data && PyTuple_Check(data) && PyTuple_Size(data) == 2) {
		flag = PyTuple_GetItem(data, 1);
		source->data = PyLong_AsVoidPtr(PyTuple_GetItem(data, 0));
		readonly = PyErr_Occurred() ? -1 : PyObject_IsTrue(flag);
		source->readonly = readonly > 0;
		return readonly < 0 ? -1 : 0;
	}
	if (PyObject_GetBuffer(data && data != Py_None ? data : x, &source->view, PyBUF_SIMPLE) < 0)
		return -1;
	if (offset)
		shift = PyLong_AsLongLong(offset);
	if (shift == -1 && PyErr_Occurred())
		return -1;
	if (shift < 0 || shift > source->view.len) {
		PyErr_SetString(PyExc_BufferError,
				"x: the offset of its interface is not in its data");
		return -1;
	}
	source->data = (const char *)source->view.buf + shift;
	source->readonly = source->view.readonly;
	return 0;
}

/* Nothing else is to be tried: NumPy would overlook what is wrong. */
#define FINAL (-2)

static int read_interface(PyObject *x, PyObject *interface, struct ts_source *source)
{
	PyObject *shape, *strides;
	int32_t count;

	if (!ts_none(PyDict_GetItemString(interface, "mask"))) {
		PyErr_SetString(PyExc_ValueError, "x: has a mask, which tensors lack");
		return FINAL;
	}
	shape = PyDict_GetItemString(interface, "shape");
	strides = PyDict_GetItemString(interface, "strides");
	if (interface_dtype(x, PyDict_GetItemString(interface, "typestr"), &source->spec.dtype) < 0)
		return -1;
	if (interface_dims(shape ? shape : Py_None, "shape", source->shape, &source->spec.ndim) < 0)
		return -1;
	if (ts_none(strides)) {
		c_strides(source);
	} else {
		if (interface_dims(strides, "strides", source->strides, &count) < 0)
			return -1;
		if (count != source->spec.ndim) {
			PyErr_SetString(PyExc_BufferError,
					"x: its interface has other strides than dimensions");
			return -1;
		}
		if (take_byte_strides(source) < 0)
			return -1;
	}
	if (interface_data(x, PyDict_GetItemString(interface, "data"),
			   PyDict_GetItemString(interface, "offset"), source) < 0 ||
	    check_extent(source, source->view.buf, source->view.len) < 0)
		return FINAL;
	return 0;
}

static int open_interface(PyObject *x, struct ts_source *source)
{
	PyObject *interface;
	int err;

	start(source);
	interface = PyObject_GetAttrString(x, "__array_interface__");
	if (!interface)
		return -1;
	if (!PyDict_Check(interface)) {
		Py_DECREF(interface);
		PyErr_SetString(PyExc_BufferError, "x: __array_interface__ is no dict");
		return -1;
	}
	/*
	 * A copy, since to ask x for more may be Python code that changes x's own;
	 * to be kept, since it may own the memory.
	 */
	source->keep = PyDict_Copy(interface);
	Py_DECREF(interface);
	if (!source->keep)
		return -1;
	err = read_interface(x, source->keep, source);
	if (err)
		ts_source_close(source);
	return err;
}

/* All of them */

/* NumPy's array of x, and where it isn't one of tensors, what to take it for. */
static int open_converted(PyObject *x, struct ts_source *source)
{
	PyObject *module, *result, *array, *dtype, *shape;
	int err = -1;

	module = PyImport_ImportModule("tshare._numpy");
	if (!module) {
		if (PyErr_ExceptionMatches(PyExc_ImportError))
			PyErr_Format(PyExc_TypeError,
				     "x: %R has no __dlpack__(), buffer or array interface, and "
				     "NumPy, which might make an array of it, is not installed",
				     Py_TYPE(x));
		return -1;
	}
	result = PyObject_CallMethod(module, "convert", "O", x);
	Py_DECREF(module);
	if (!result)
		return -1;
	if (PyArg_ParseTuple(result, "OOO", &array, &dtype, &shape) &&
	    !open_buffer(array, source)) {
		err = 0;
		if (dtype != Py_None)
			err = ts_dtype_arg(dtype, &source->spec.dtype);
		if (!err && shape != Py_None) {
			err = ts_dims_arg(shape, "shape", source->shape, &source->spec.ndim);
			c_strides(source);
		}
		if (err)
			ts_source_close(source);
	}
	Py_DECREF(result);
	return err;
}

static int open_dlpack(PyObject *x, struct ts_source *source)
{
	/* Where x is was looked at before. */
	return open_capsule(x, TS_FROM_CPU, false, source);
}

/* The ways to what @x is, best first; none is tried that @x doesn't offer. */
static const struct {
	const char *attribute; /* NULL for none */
	int (*open)(PyObject *x, struct ts_source *source);
} ways[] = {
	{ "__dlpack__", open_dlpack },
	{ NULL, open_buffer },
	{ "__array_interface__", open_interface },
	{ NULL, open_converted },
};

static bool offers(PyObject *x, size_t way)
{
	if (ways[way].open == open_buffer)
		return PyObject_CheckBuffer(x);
	return !ways[way].attribute || PyObject_HasAttrString(x, ways[way].attribute);
}

int ts_source_open(PyObject *x, struct ts_source *source)
{
	PyObject *type = NULL, *value = NULL, *traceback = NULL;
	int err = -1;
	size_t i;

	if (check_numpy(x) < 0 || check_device(x) < 0)
		return -1;
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]) && err == -1; i++) {
		if (!offers(x, i))
			continue;
		err = ways[i].open(x, source);
		if (err == -1 && !is_unsuited())
			err = FINAL;
		/* What the best way says is what is told. */
		if (err == -1 && !type)
			PyErr_Fetch(&type, &value, &traceback);
		else if (err == -1)
			PyErr_Clear();
	}
	if (err == -1) {
		PyErr_Restore(type, value, traceback);
		return -1;
	}
	Py_XDECREF(type);
	Py_XDECREF(value);
	Py_XDECREF(traceback);
	return err ? -1 : 0;
}

void ts_source_close(struct ts_source *source)
{
	PyObject *type, *value, *traceback;

	/* A deleter, or the release of a buffer, may be Python code. */
	PyErr_Fetch(&type, &value, &traceback);
	if (source->versioned && source->versioned->deleter)
		source->versioned->deleter(source->versioned);
	if (source->legacy && source->legacy->deleter)
		source->legacy->deleter(source->legacy);
	if (source->view.obj)
		PyBuffer_Release(&source->view);
	Py_CLEAR(source->keep);
	source->versioned = NULL;
	source->legacy = NULL;
	PyErr_Restore(type, value, traceback);
}

int ts_source_check_copy(const struct ts_source *source)
{
	if (ts_itemsize(source->spec.dtype) || ts_source_is_contiguous(source))
		return 0;
	PyErr_SetString(PyExc_BufferError, "x: is strided, and its elements are packed");
	return -1;
}
