/* SPDX-License-Identifier: MIT */
/* References and the GIL. */
#ifndef TSHARE_EXT_GIL_H
#define TSHARE_EXT_GIL_H

#include <stdatomic.h>

#include "ext.h"

/* Set by pin() and cuda(). Deleters read it without the GIL. */
extern atomic_bool ts_cuda_used;

PyThreadState *ts_gil_release_if_held(void);
/*
 * Releases the GIL while references are dropped, if that may take long and the caller holds it.
 * Other threads may run any Python code meanwhile, so it must not reach what is dropped. Returns
 * what ts_gil_restore() needs.
 */
static inline PyThreadState *ts_gil_release(void)
{
	return atomic_load_explicit(&ts_cuda_used, memory_order_relaxed) ?
		       ts_gil_release_if_held() :
		       NULL;
}
static inline void ts_gil_restore(PyThreadState *state)
{
	if (state)
		PyEval_RestoreThread(state);
}

/* Callers that may hold the GIL use these in place of the library's own. */
void ts_tensor_unref(struct tshare_tensor *handle);
void ts_region_unref(struct tshare_region *handle);
void ts_pin_unref(struct tshare_pin *handle);
void ts_cuda_copy_unref(struct tshare_cuda_copy *handle);
void ts_frame_unref(struct tshare_frame *handle);
void ts_stream_unref(struct tshare_stream *handle);
void ts_entry_unref(struct tshare_entry *handle);
void ts_pool_unref(struct tshare_pool *handle);

void ts_gil_init(void);

#endif /* TSHARE_EXT_GIL_H */
