/* SPDX-License-Identifier: MIT */
/* Arguments that describe several tensors by their names, as the library takes them. */
#ifndef TSHARE_EXT_SPECS_H
#define TSHARE_EXT_SPECS_H

#include "ext.h"
#include "source.h"

/* The memory that a struct tshare_spec points to. */
struct ts_spec_entry {
	PyObject *keep;
	struct ts_source *source; /* source that fills the tensor, or NULL */
	bool tied;		  /* the tensor whose memory it shares fills it */
	int64_t *dims;		  /* the shape, and the strides if any; NULL for none */
};

struct ts_specs {
	Py_ssize_t count;
	struct ts_spec_entry *entries;
	struct tshare_spec *specs; /* what the entries, and @items, have the memory of */
	PyObject *items;
};

/*
 * Parses a mapping of names to (shape, dtype[, strides[, offset]]) or arrays: 0, or -1 with an error
 * set that names @argument. The caller closes what it has opened.
 */
int ts_specs_open(PyObject *mapping, const char *argument, struct ts_specs *specs);
void ts_specs_close(struct ts_specs *specs);

#endif /* TSHARE_EXT_SPECS_H */
