/* SPDX-License-Identifier: MIT */
/* Arguments from Python; each error names the argument. */
#ifndef TSHARE_EXT_ARGS_H
#define TSHARE_EXT_ARGS_H

#include "ext.h"

/*
 * Sorts a vectorcall's arguments into @out by @names, of which the first
 * @positional may be given by position. Arguments that weren't given are NULL.
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

#endif /* TSHARE_EXT_ARGS_H */
