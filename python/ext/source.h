/* SPDX-License-Identifier: MIT */
/* Tensors of other libraries: one that was opened, and what all ways to open one need. */
#ifndef TSHARE_EXT_SOURCE_H
#define TSHARE_EXT_SOURCE_H

#include "ext.h"
#include "tshare-dlpack.h"

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

/* Closes the source; an exception that is set stays set. */
void ts_source_close(struct ts_source *source);
/* Whether its elements can be copied: 0, or -1 with an error set. */
int ts_source_check_copy(const struct ts_source *source);
/* Whether its elements lie in C order without gaps. */
bool ts_source_is_contiguous(const struct ts_source *source);

/*
 * For the ways to open a tensor. A way fills the source from @x and holds what keeps the memory
 * alive: 0. With an error set and nothing held: -1, or TS_SOURCE_FINAL if no other way may be
 * tried, because NumPy would overlook the error.
 */
#define TS_SOURCE_FINAL (-2)

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

#endif /* TSHARE_EXT_SOURCE_H */
