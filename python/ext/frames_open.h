/* SPDX-License-Identifier: MIT */
/* The streams for the arguments of Stream.create() and Stream.open(). */
#ifndef TSHARE_EXT_FRAMES_OPEN_H
#define TSHARE_EXT_FRAMES_OPEN_H

#include "ext.h"

/* A new stream, and @name, a borrowed reference to its argument; NULL with an error set. */
struct tshare_stream *ts_create_stream(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
				       PyObject **name);
/* The same for open(); @observe says whether it is an observer. */
struct tshare_stream *ts_open_stream(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
				     PyObject **name, bool *observe);

/* The names of the fields, without those of the stream's own tensors: new reference. */
PyObject *ts_stream_fields(struct tshare_region *region);

#endif /* TSHARE_EXT_FRAMES_OPEN_H */
