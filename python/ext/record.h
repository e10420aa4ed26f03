/* SPDX-License-Identifier: MIT */
/* Named tuples with docstrings. */
#ifndef TSHARE_EXT_RECORD_H
#define TSHARE_EXT_RECORD_H

#include "ext.h"

/* The last one's name is NULL. */
struct ts_record_field {
	const char *name;
	const char *doc;
};

/* collections.namedtuple(name, fields, module="tshare"), with docstrings: new reference. */
PyObject *ts_record_type(const char *name, const char *doc, const struct ts_record_field *fields);
/* A record of @count new references, which it takes over; NULL if one of them is NULL. */
PyObject *ts_record_new(PyObject *type, PyObject **values, int count);

#endif /* TSHARE_EXT_RECORD_H */
