/* SPDX-License-Identifier: MIT */
/*
 * The headers and the macro that all files of the extension share.
 *
 * The module lives once in a process: its types, its session and its constants are plain globals.
 * The module's exec function makes them, and the GIL guards them.
 */
#ifndef TSHARE_EXT_H
#define TSHARE_EXT_H

/* Not for a free-threaded Python, which has no limited API: setup.py decides. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include "tshare.h"

_Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "a shape is passed on as it is");

#define TS_FASTCALL(function) ((PyCFunction)(void (*)(void))(function))

#endif /* TSHARE_EXT_H */
