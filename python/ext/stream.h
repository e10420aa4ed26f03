/* SPDX-License-Identifier: MIT */
/* CUDA streams that publish and that wait; tshare.StreamWait. */
#ifndef TSHARE_EXT_STREAM_H
#define TSHARE_EXT_STREAM_H

#include "ext.h"

/* The arguments of publish_on() and the like: 0, or -1 with an error set. */
struct ts_on_stream {
	struct CUstream_st *stream;
	struct tshare_cuda_options options;
};
int ts_on_stream_args(const char *function, PyObject *const *args, Py_ssize_t nargs,
		      PyObject *kwnames, struct ts_on_stream *on);

PyObject *ts_region_publish_on(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			       PyObject *kwnames);
PyObject *ts_region_cuda_counter(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
				 PyObject *kwnames);
PyObject *ts_region_wait_on(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
			    PyObject *kwnames);

/* Adds the type to the module: 0, or -1 with an error set. */
int ts_stream_init(PyObject *module);

#endif /* TSHARE_EXT_STREAM_H */
