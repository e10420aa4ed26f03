/* SPDX-License-Identifier: MIT */
/* Tensors whose memory is another's. */
#ifndef TSHARE_EXT_TIES_H
#define TSHARE_EXT_TIES_H

#include "source.h"

/*
 * Finds for each source (or NULL) the index of another one whose memory it lies in, or -1. The
 * other one is C-contiguous, or is the same tensor. 0, or -1 with an error set.
 */
int ts_find_ties(struct ts_source *const *sources, Py_ssize_t count, Py_ssize_t *ties);

#endif /* TSHARE_EXT_TIES_H */
