/* SPDX-License-Identifier: MIT */
/* What the ways to another library's tensor share; callers of ts_source_open() see ext.h. */
#ifndef TSHARE_EXT_SOURCE_H
#define TSHARE_EXT_SOURCE_H

#include "ext.h"

/*
 * The ways. Each fills @source from @x and holds what keeps the memory alive: 0, or
 * an error is set and nothing is held: -1, or TS_SOURCE_FINAL where no other way may
 * be tried, because NumPy would overlook what is wrong.
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
 * Elements must be in the @size bytes at @memory, or in the address space if that is
 * NULL: 0, or -1 with an error set.
 */
int ts_source_check_extent(const struct ts_source *source, const void *memory, size_t size);
/*
 * Turns strides in bytes, which all protocols but DLPack have, into elements: 0, or -1
 * with an error set.
 */
int ts_source_take_byte_strides(struct ts_source *source);
void ts_source_set_c_strides(struct ts_source *source);
/*
 * Whether @x is of the type that @module calls @name; 0 if the process has not imported
 * that module, or -1 with an error set. @type caches the type.
 */
int ts_source_is_of_type(PyObject *x, PyObject **type, const char *module, const char *name);

/* Refusals before any way is tried: 0, or -1 with an error set */

/* source_numpy.c: NumPy's masked arrays, and of its arrays and scalars those without a dtype of ours. */
int ts_source_check_mask(PyObject *x);
int ts_source_check_numpy(PyObject *x);
/* source_dlpack.c: tensors on another device than the CPU. */
int ts_source_check_device(PyObject *x);

#endif /* TSHARE_EXT_SOURCE_H */
