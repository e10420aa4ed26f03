/* SPDX-License-Identifier: MIT */
/* The library's errors as Python's. */
#ifndef TSHARE_EXT_ERRORS_H
#define TSHARE_EXT_ERRORS_H

#include "ext.h"

/*
 * Sets the exception for a failed call of the library: ValueError for an argument out of its
 * domain, else the OSError of that errno. @filename may be NULL. Returns NULL.
 */
PyObject *ts_raise(int err, PyObject *filename);
/* Sets an exception of @type with the library's text. Returns NULL. */
PyObject *ts_raise_as(PyObject *type);
/* As ts_raise(), for what was made of the tensors in @argument: names each by its key. */
PyObject *ts_raise_of_create(int err, PyObject *filename, const char *argument,
			     const struct tshare_spec *specs, size_t count);
/* Puts a text in front of that of a plain exception that is set, and drops an "x: " there. */
void ts_raise_within(const char *format, ...);
/* A str of the library's text. Names in it may be any bytes: UTF-8 with surrogateescape. */
PyObject *ts_text(const char *text);

#endif /* TSHARE_EXT_ERRORS_H */
