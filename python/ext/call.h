/* SPDX-License-Identifier: MIT */
/* Functions and types of Python modules, the package's own among them. */
#ifndef TSHARE_EXT_CALL_H
#define TSHARE_EXT_CALL_H

#include "ext.h"

/* The result of a module's function with one argument; NULL with an error set. */
PyObject *ts_call(const char *module_name, const char *name, PyObject *x);

/* Calls a module's function. Takes over @args, which may be NULL with an error set. */
PyObject *ts_call_module(const char *module_name, const char *name, PyObject *args);

/*
 * New reference to a type of a module; NULL if the process has not imported the module, or with an
 * error set. A module that is just being imported may lack the type until later.
 */
PyObject *ts_imported_type(const char *module_name, const char *name);

#endif /* TSHARE_EXT_CALL_H */
