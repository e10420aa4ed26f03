/* SPDX-License-Identifier: MIT */
/* The object of tshare.Region. */
#ifndef TSHARE_EXT_REGION_H
#define TSHARE_EXT_REGION_H

#include "ext.h"

/* The waiters of a region, each with an event descriptor of its own. */
enum { TS_WAIT, TS_WAIT_ASYNC, TS_WAITERS };

struct ts_region {
	PyObject ob_base;
	struct tshare_region *handle;		   /* NULL when closed */
	struct tshare_waiter *waiters[TS_WAITERS]; /* made on first use */
	bool indexed;				   /* a key was looked up */
	PyObject *weakrefs;
};

extern PyTypeObject *ts_region_type;

/* Wraps a handle and takes over the caller's reference to it, on failure too. */
PyObject *ts_region_wrap(struct tshare_region *handle);
/* The handle, borrowed; NULL with ValueError set if the object is closed. */
struct tshare_region *ts_region_handle(PyObject *self);

#endif /* TSHARE_EXT_REGION_H */
