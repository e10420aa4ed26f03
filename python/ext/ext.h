/* SPDX-License-Identifier: MIT */
/*
 * Declarations that the extension's files share.
 *
 * The module lives once in a process: its types, its session and its constants are plain globals.
 * The module's exec function makes them, and the GIL guards them.
 */
#ifndef TSHARE_EXT_H
#define TSHARE_EXT_H

/* Not for a free-threaded Python, which has no limited API: setup.py decides. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tshare.h"
#include "tshare-dlpack.h"

_Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "a shape is passed on as it is");

struct CUstream_st;

/* Objects */

struct ts_tensor {
	PyObject ob_base;
	struct tshare_tensor *handle; /* NULL when closed, unless it must stay */
	bool closed;
	bool address_given; /* to a consumer that holds the object: keep handle until dealloc */
	Py_ssize_t exports; /* live buffers */
	Py_ssize_t *byte_strides; /* see ts_tensor_byte_strides() */
	PyObject *shape;	  /* tuple, made on first use */
	PyObject *weakrefs;
};

/* The waiters of a region, each with an event descriptor of its own. */
enum { TS_WAIT, TS_WAIT_ASYNC, TS_WAITERS };

struct ts_region {
	PyObject ob_base;
	struct tshare_region *handle;		   /* NULL when closed */
	struct tshare_waiter *waiters[TS_WAITERS]; /* made on first use */
	bool indexed;				   /* a key was looked up */
	PyObject *weakrefs;
};

extern PyTypeObject *ts_tensor_type;
extern PyTypeObject *ts_region_type;

/* Each adds its types to the module: 0, or -1 with an error set. */
int ts_dtype_init(PyObject *module);
int ts_tensor_init(PyObject *module);
int ts_region_init(PyObject *module);
int ts_info_init(PyObject *module);
int ts_pin_init(PyObject *module);
int ts_stream_init(PyObject *module);
int ts_watcher_init(PyObject *module);
int ts_cuda_init(PyObject *module);
int ts_dlpack_init(PyObject *module);
void ts_gil_init(void);
/* Adds the exchange tables to the types Tensor and CudaTensor. */
int ts_exchange_init(void);

/* Wrap a handle and take over the caller's reference to it, on failure too. */
PyObject *ts_tensor_wrap(struct tshare_tensor *handle);
PyObject *ts_region_wrap(struct tshare_region *handle);

/* Drops a closed tensor's handle, unless it has exports or its address was given. */
void ts_tensor_release(struct ts_tensor *tensor);

/* finish() of both types, with the arguments of the method. */
PyObject *ts_finish(struct tshare_region *handle, PyObject *const *args, Py_ssize_t nargs,
		    PyObject *kwnames);
/* unlink() of both types. */
PyObject *ts_unlink(struct tshare_region *handle);

/* pin() of both types. */
PyObject *ts_pin(struct tshare_region *handle, PyObject *const *args, Py_ssize_t nargs,
		 PyObject *kwnames);

/* The handle, borrowed; NULL with ValueError set if the object is closed. */
struct tshare_tensor *ts_tensor_handle(PyObject *self);
struct tshare_region *ts_region_handle(PyObject *self);

/* The region for the arguments of open() or of from_fd(); NULL with an error set. */
struct tshare_region *ts_open_region(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
struct tshare_region *ts_import_region(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

/*
 * Bytes from one index to the next along each dimension, owned by the object.
 * Only for elements of whole bytes. NULL with an error set if out of memory.
 */
const Py_ssize_t *ts_tensor_byte_strides(PyObject *self);
PyObject *ts_int_tuple(const int64_t *values, int32_t count);
/* New reference to the shape as a tuple. */
PyObject *ts_tensor_shape(PyObject *self);

/* References and the GIL: gil.c */

/* Set by pin() and cuda(). Deleters read it without the GIL. */
extern atomic_bool ts_cuda_used;

PyThreadState *ts_gil_release_if_held(void);
/*
 * Releases the GIL while references are dropped, if that may take long and the caller holds it.
 * Other threads may run any Python code meanwhile, so it must not reach what is dropped. Returns
 * what ts_gil_restore() needs.
 */
static inline PyThreadState *ts_gil_release(void)
{
	return atomic_load_explicit(&ts_cuda_used, memory_order_relaxed) ?
		       ts_gil_release_if_held() :
		       NULL;
}
static inline void ts_gil_restore(PyThreadState *state)
{
	if (state)
		PyEval_RestoreThread(state);
}

/* Callers that may hold the GIL use these in place of the library's own. */
void ts_tensor_unref(struct tshare_tensor *handle);
void ts_region_unref(struct tshare_region *handle);
void ts_pin_unref(struct tshare_pin *handle);
void ts_cuda_copy_unref(struct tshare_cuda_copy *handle);

/* Errors */

/*
 * Sets the exception for a failed call of the library: ValueError for an argument out of its
 * domain, else the OSError of that errno. @filename may be NULL. Returns NULL.
 */
PyObject *ts_raise(int err, PyObject *filename);
/* As ts_raise(), for Region.create(): names each tensor by its key. */
PyObject *ts_raise_of_create(int err, PyObject *filename, const struct tshare_spec *specs,
			     size_t count);
/* Puts a text in front of that of a plain exception that is set, and drops an "x: " there. */
void ts_raise_within(const char *format, ...);
/* A str of the library's text. Names in it may be any bytes: UTF-8 with surrogateescape. */
PyObject *ts_text(const char *text);

/* Session */

/* The process's context, borrowed; opened on first use. NULL with an error set. */
struct tshare_ctx *ts_session(void);

/* Arguments */

/*
 * Sorts a vectorcall's arguments into @out by @names, of which the first
 * @positional may be given by position. Those that weren't given are NULL.
 * 0, or -1 with TypeError set.
 */
int ts_parse(const char *function, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
	     const char *const *names, int positional, int total, PyObject **out);
/* 0, or -1 with TypeError set for an argument that wasn't given. */
int ts_need_arg(PyObject *obj, const char *function, const char *argument);
/* Missing or None. */
static inline bool ts_none(PyObject *obj)
{
	return !obj || obj == Py_None;
}
/*
 * The bytes of a name, UTF-8 without NUL among them. They live as long as @obj
 * and @keep, a new reference or NULL.
 */
const char *ts_name_arg(PyObject *obj, const char *argument, PyObject **keep);
int ts_bool_arg(PyObject *obj, const char *argument, bool *value);
int ts_int_arg(PyObject *obj, const char *argument, int64_t low, int64_t high, int64_t *value);
/* A file descriptor, or an object that has one; -1 with an error set. */
int ts_fd_arg(PyObject *obj, const char *argument);
/* A number of seconds from 0, as nanoseconds; INT64_MAX for longer times. */
int ts_seconds_arg(PyObject *obj, const char *argument, int64_t *ns);
/* One of the names, a str; @value is its index. */
int ts_choice_arg(PyObject *obj, const char *argument, const char *const *names, uint32_t count,
		  uint32_t *value);
/* An int or a sequence of ints, at most TSHARE_NDIM_LIMIT of them. */
int ts_dims_arg(PyObject *obj, const char *argument, int64_t *dims, int32_t *ndim);
int ts_dtype_arg(PyObject *obj, struct tshare_dtype *dtype);
/*
 * The element type that an object stands for: 0; 1 if it stands for none, without an error set; -1
 * with one. @name is the object's own name for the type, a new reference or NULL.
 */
int ts_dtype_find(PyObject *obj, struct tshare_dtype *dtype, PyObject **name);

/* The keyword arguments of create(), Region.create() and asarray(), in this order. */
#define TS_OPTION_NAMES "mode", "lifetime", "draft", "exist_ok", "node", "dma32", "contiguous"
#define TS_OPTION_COUNT 7
int ts_options_arg(PyObject *const *args, struct tshare_options *options);
/* Python's name of a TSHARE_LIFETIME_*: new reference. */
PyObject *ts_lifetime_name(uint32_t lifetime);

/* None, the number of a CUDA device or its name: 0, or -1 with an error set. */
int ts_device_arg(PyObject *obj, struct tshare_cuda_options *options);
/* "cuda:0": new reference. */
PyObject *ts_device_name(int32_t device);

/*
 * None for the legacy default stream, the number of a CUDA stream, or an object that has one:
 * 0, or -1 with an error set. The stream may end with the object.
 */
int ts_stream_arg(PyObject *obj, struct CUstream_st **stream);
#define TS_STREAM_LEGACY ((struct CUstream_st *)1)

/* Value of struct tshare_spec.byte_offset for @offset bytes from the region's start, also 0. */
static inline uint64_t ts_offset(uint64_t bytes)
{
	return bytes ? bytes : TSHARE_OFFSET_START;
}

/* Types of elements */

struct ts_format {
	struct tshare_dtype dtype;
	const char *format;  /* as in the struct module */
	const char *typestr; /* as in the array interface */
};

/* NULL for a type that the struct module and NumPy lack. */
const struct ts_format *ts_format(struct tshare_dtype dtype);
/* The type of a native typestr: 0, or -1 without an error set. */
int ts_typestr(const char *typestr, struct tshare_dtype *dtype);
/* First character of a byte-swapped type, in the struct module and in NumPy. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define TS_FOREIGN_ORDER '>'
#else
#define TS_FOREIGN_ORDER '<'
#endif
/* New reference to the name. */
PyObject *ts_dtype_name(struct tshare_dtype dtype);
/* New reference to the type as a DType. */
PyObject *ts_dtype_wrap(struct tshare_dtype dtype);
/* Bytes of an element; 0 if it isn't a whole number of them. */
static inline Py_ssize_t ts_itemsize(struct tshare_dtype dtype)
{
	return tshare_dtype_get_itemsize(dtype);
}
/* Other libraries' tensors */

/* NumPy's array of x with that type, for ts_tensor_assign(). */
PyObject *ts_numpy_cast(PyObject *x, struct tshare_dtype dtype, bool convert);
/* The result of a module's function with one argument; NULL with an error set. */
PyObject *ts_call(const char *module_name, const char *name, PyObject *x);

/* Calls a module's function. Takes over @args, which may be NULL with an error set. */
PyObject *ts_call_module(const char *module_name, const char *name, PyObject *args);

/*
 * Waits without the GIL, in slices, between which signal handlers run: 0; or what @wait returned,
 * but for -EINTR; or 1 with an error set by a handler.
 */
int ts_wait(int (*wait)(void *call, int64_t timeout), void *call, int64_t timeout);

/* watcher.c */
PyObject *ts_watch(PyObject *module, PyObject *name);
/*
 * New reference to a type of a module; NULL if the process has not imported the module, or with an
 * error set. A module that is just being imported may lack the type until later.
 */
PyObject *ts_imported_type(const char *module_name, const char *name);

/*
 * A tensor elsewhere in memory, held until ts_source_close(). @spec's shape and
 * strides are the source's own arrays: don't move it.
 */
struct ts_source {
	struct tshare_spec spec;
	const void *data; /* element [0, 0, ...] */
	bool readonly;
	int64_t shape[TSHARE_NDIM_LIMIT];
	int64_t strides[TSHARE_NDIM_LIMIT];
	DLManagedTensorVersioned *versioned;
	DLManagedTensor *legacy;
	Py_buffer view;
	PyObject *keep;
};

enum ts_source_use {
	TS_FROM_CPU,
	TS_FROM_ANYWHERE, /* a copy from a GPU will do */
	TS_IN_PLACE,	  /* a copy won't do */
};

/* Open @x by DLPack, or by any protocol: 0, or -1 with an error set and nothing held. */
int ts_source_dlpack(PyObject *x, enum ts_source_use use, struct ts_source *source);
int ts_source_open(PyObject *x, struct ts_source *source);
/* Closes the source; an exception that is set stays set. */
void ts_source_close(struct ts_source *source);
/* Whether its elements can be copied: 0, or -1 with an error set. */
int ts_source_check_copy(const struct ts_source *source);
/* Whether its elements lie in C order without gaps. */
bool ts_source_is_contiguous(const struct ts_source *source);

/*
 * Finds for each source (or NULL) the index of another one whose memory it lies in, or -1. The
 * other one is C-contiguous, or is the same tensor. 0, or -1 with an error set.
 */
int ts_find_ties(struct ts_source *const *sources, Py_ssize_t count, Py_ssize_t *ties);

/* Protocols of a tensor, and what the module offers */

int ts_tensor_getbuffer(PyObject *self, Py_buffer *view, int flags);
void ts_tensor_releasebuffer(PyObject *self, Py_buffer *view);
PyObject *ts_tensor_array_interface(PyObject *self, void *closure);
PyObject *ts_array_interface_of(PyObject *module, PyObject *x);
PyObject *ts_tensor_array(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			  PyObject *kwnames);
PyObject *ts_raw_interface(PyObject *module, PyObject *tensor);
/* The attribute @closure of t.numpy(); AttributeError if NumPy can't make that array. */
PyObject *ts_tensor_of_numpy(PyObject *self, void *closure);
PyObject *ts_tensor_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			   PyObject *kwnames);
PyObject *ts_tensor_dlpack_device(PyObject *self, PyObject *unused);
PyObject *ts_from_dlpack(PyObject *module, PyObject *const *args, Py_ssize_t nargs,
			 PyObject *kwnames);
PyObject *ts_asarray(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *ts_tensor_subscript(PyObject *self, PyObject *key);
int ts_tensor_ass_subscript(PyObject *self, PyObject *key, PyObject *value);
PyObject *ts_tensor_iter(PyObject *self);
/* The view with its dimensions in reverse order. */
PyObject *ts_tensor_transpose(PyObject *self, void *closure);

/* One element as a Python number: scalar.c */
PyObject *ts_tensor_item(PyObject *self, PyObject *unused);
/* The number of elements. */
PyObject *ts_tensor_size(PyObject *self, void *closure);
PyObject *ts_tensor_int(PyObject *self);
PyObject *ts_tensor_float(PyObject *self);
PyObject *ts_tensor_complex(PyObject *self, PyObject *unused);
PyObject *ts_tensor_format(PyObject *self, PyObject *spec);
int ts_tensor_bool(PyObject *self);
/* Whether x is a Python number, which has no element type. */
bool ts_is_number(PyObject *x);
enum { TS_NUMBER_MAX = 16 };
/*
 * The bytes of x as an element: 0; 1 if only NumPy can convert x to the type; -1 with an error set.
 */
int ts_encode(PyObject *x, struct tshare_dtype dtype, bool convert,
	      unsigned char element[static TS_NUMBER_MAX]);

/* Operators of Tensor and CudaTensor: operators.c */
PyObject *ts_tensor_richcompare(PyObject *self, PyObject *other, int op);
Py_hash_t ts_tensor_hash(PyObject *self);
PyObject *ts_refuse_binary(PyObject *a, PyObject *b);
PyObject *ts_refuse_power(PyObject *a, PyObject *b, PyObject *modulus);
PyObject *ts_refuse_unary(PyObject *self);
/* clang-format off */
#define TS_OPERATOR_SLOTS \
	{ Py_tp_richcompare, ts_tensor_richcompare }, \
	{ Py_tp_hash, ts_tensor_hash }, \
	{ Py_nb_add, ts_refuse_binary }, \
	{ Py_nb_subtract, ts_refuse_binary }, \
	{ Py_nb_multiply, ts_refuse_binary }, \
	{ Py_nb_matrix_multiply, ts_refuse_binary }, \
	{ Py_nb_true_divide, ts_refuse_binary }, \
	{ Py_nb_floor_divide, ts_refuse_binary }, \
	{ Py_nb_remainder, ts_refuse_binary }, \
	{ Py_nb_divmod, ts_refuse_binary }, \
	{ Py_nb_lshift, ts_refuse_binary }, \
	{ Py_nb_rshift, ts_refuse_binary }, \
	{ Py_nb_and, ts_refuse_binary }, \
	{ Py_nb_or, ts_refuse_binary }, \
	{ Py_nb_xor, ts_refuse_binary }, \
	{ Py_nb_power, ts_refuse_power }, \
	{ Py_nb_negative, ts_refuse_unary }, \
	{ Py_nb_positive, ts_refuse_unary }, \
	{ Py_nb_absolute, ts_refuse_unary }, \
	{ Py_nb_invert, ts_refuse_unary }
/* clang-format on */
int ts_tensor_contains(PyObject *self, PyObject *value);
PyObject *ts_tensor_copy_from(PyObject *self, PyObject *x);
/* Copies x into the tensor. Converts it like NumPy if @convert, else only if x has no type. */
int ts_tensor_assign(PyObject *self, PyObject *x, bool convert);
/* The range of its region's bytes in which a tensor's elements lie; it must have elements. */
void ts_tensor_extent(const struct tshare_tensor *handle, int64_t *first, int64_t *end);
PyObject *ts_tensor_cuda(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			 PyObject *kwnames);
PyObject *ts_tensor_spec(PyObject *self, void *closure);
PyObject *ts_tensor_rebuild(PyObject *module, PyObject *args);
PyObject *ts_tensor_reduce(PyObject *self, PyObject *unused);
PyObject *ts_region_reduce(PyObject *self, PyObject *unused);
PyObject *ts_refuse_copy(PyObject *self, PyObject *unused);
PyObject *ts_refuse_pickle(PyObject *self, PyObject *unused);
PyObject *ts_reducer_override(PyObject *module, PyObject *obj);
PyObject *ts_bytes_at(PyObject *module, PyObject *args);
PyObject *ts_info_new(const struct tshare_region_info *info);
PyObject *ts_list(PyObject *module, PyObject *unused);
PyObject *ts_limits(PyObject *module, PyObject *unused);

#define TS_FASTCALL(function) ((PyCFunction)(void (*)(void))(function))

#endif /* TSHARE_EXT_H */
