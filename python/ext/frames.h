/* SPDX-License-Identifier: MIT */
/* tshare.Stream, tshare.StreamSeat and tshare.FrameLost */
#ifndef TSHARE_EXT_FRAMES_H
#define TSHARE_EXT_FRAMES_H

#include "ext.h"

/* Adds the types to the module: 0, or -1 with an error set. */
int ts_frames_init(PyObject *module);

#endif /* TSHARE_EXT_FRAMES_H */
