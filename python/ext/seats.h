/* SPDX-License-Identifier: MIT */
/* Consumers of a stream, as their producer sees them. */
#ifndef TSHARE_EXT_SEATS_H
#define TSHARE_EXT_SEATS_H

#include "ext.h"

int ts_seats_init(PyObject *module);

/* A list of tshare.StreamSeat. */
PyObject *ts_seats_list(struct tshare_stream *handle);

/* The arguments of Stream.evict(): 0, or -1 with an error set. */
int ts_seats_parse(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, int32_t *seat,
		   int32_t *pid);
PyObject *ts_seats_evict(struct tshare_stream *handle, int32_t seat, int32_t pid);

#endif /* TSHARE_EXT_SEATS_H */
