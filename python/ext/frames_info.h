/* SPDX-License-Identifier: MIT */
/* The object of tshare.Stream, and its attributes. */
#ifndef TSHARE_EXT_FRAMES_INFO_H
#define TSHARE_EXT_FRAMES_INFO_H

#include "ext.h"

enum role { PRODUCER, CONSUMER, OBSERVER };

struct ts_frames {
	PyObject ob_base;
	struct tshare_stream *handle; /* NULL when closed */
	enum role role;
	PyObject *name;
	PyObject *fields; /* a tuple of their names */
	PyObject *weakrefs;
};

/* The handle, borrowed; NULL with ValueError set if the stream is closed. */
struct tshare_stream *ts_frames_handle(PyObject *self);

PyObject *ts_frames_role(PyObject *self, void *closure);

extern PyGetSetDef ts_frames_getset[];

#endif /* TSHARE_EXT_FRAMES_INFO_H */
