/* SPDX-License-Identifier: MIT */
/* Tensors of other libraries by DLPack. */
#ifndef TSHARE_EXT_SOURCE_DLPACK_H
#define TSHARE_EXT_SOURCE_DLPACK_H

#include "source.h"

enum ts_source_use {
	TS_FROM_CPU,
	TS_FROM_ANYWHERE, /* a copy from a GPU will do */
	TS_IN_PLACE,	  /* a copy won't do */
};

/* Opens @x: 0, or -1 with an error set and nothing held. */
int ts_source_dlpack(PyObject *x, enum ts_source_use use, struct ts_source *source);
/* The way of ts_source_open(). */
int ts_source_from_dlpack(PyObject *x, struct ts_source *source);
/* Refuses a tensor on another device than the CPU: 0, or -1 with an error set. */
int ts_source_check_device(PyObject *x);

#endif /* TSHARE_EXT_SOURCE_DLPACK_H */
