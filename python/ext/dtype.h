/* SPDX-License-Identifier: MIT */
/* Element types, and their names in the struct module and in NumPy's array interface. */
#ifndef TSHARE_EXT_DTYPE_H
#define TSHARE_EXT_DTYPE_H

#include "ext.h"

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
/* Bytes of an element; 0 if it isn't a whole number of them. */
static inline Py_ssize_t ts_itemsize(struct tshare_dtype dtype)
{
	return tshare_dtype_get_itemsize(dtype);
}
/* The element type for an argument: 0, or -1 with an error set. */
int ts_dtype_arg(PyObject *obj, struct tshare_dtype *dtype);
/*
 * The element type that an object stands for: 0; 1 if it stands for none, without an error set; -1
 * with one. @name is the object's own name for the type, a new reference or NULL.
 */
int ts_dtype_find(PyObject *obj, struct tshare_dtype *dtype, PyObject **name);

#endif /* TSHARE_EXT_DTYPE_H */
