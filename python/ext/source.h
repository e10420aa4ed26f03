/* SPDX-License-Identifier: MIT */
/* For the files that open another library's tensor; callers of ts_source_open() see ext.h. */
#ifndef TSHARE_EXT_SOURCE_H
#define TSHARE_EXT_SOURCE_H

#include "ext.h"

/*
 * The ways to open a tensor. Each fills @source from @x and holds what keeps the memory alive: 0.
 * With an error set and nothing held: -1, or TS_SOURCE_FINAL if no other way may be tried, because
 * NumPy would overlook the error.
 */
#define TS_SOURCE_FINAL (-2)
int ts_source_from_dlpack(PyObject *x, struct ts_source *source);
int ts_source_from_buffer(PyObject *x, struct ts_source *source);
int ts_source_from_interface(PyObject *x, struct ts_source *source);
/* By np.asarray(x). */
int ts_source_from_numpy(PyObject *x, struct ts_source *source);

/* For the ways (source.c) */

/* Clears @source, and points @source->spec at its arrays. */
void ts_source_start(struct ts_source *source);
/* Whether another way may be tried after the error that is set. */
bool ts_source_is_unsuited(void);
/*
 * Checks that the elements are in the @size bytes at @memory or, if @memory is NULL, in the address
 * space: 0, or -1 with an error set.
 */
int ts_source_check_extent(const struct ts_source *source, const void *memory, size_t size);
/*
 * Turns strides in bytes, as all protocols but DLPack have, into elements: 0, or -1 with an error
 * set.
 */
int ts_source_take_byte_strides(struct ts_source *source);
void ts_source_set_c_strides(struct ts_source *source);
/*
 * Whether @x is of the type @module.@name; 0 if the process has not imported the module, or -1 with
 * an error set. @type caches the type.
 */
int ts_source_is_of_type(PyObject *x, PyObject **type, const char *module, const char *name);

/* Refusals before any way is tried: 0, or -1 with an error set */

/* source_numpy.c: masked arrays; arrays and scalars of NumPy whose dtype no tensor has. */
int ts_source_check_mask(PyObject *x);
int ts_source_check_numpy(PyObject *x);
/* source_dlpack.c: tensors on another device than the CPU. */
int ts_source_check_device(PyObject *x);

#endif /* TSHARE_EXT_SOURCE_H */
