/* SPDX-License-Identifier: MIT */
/* Scopes (see driver.h) to put work on a caller's stream. */
#ifndef TSHARE_CUDA_SCOPE_H
#define TSHARE_CUDA_SCOPE_H

#include "cuda/driver.h"
#include "tshare.h"

/* Checks the stream and the options, and chooses the device of a default stream. */
int stream_read(const struct tshare_cuda_options *options, const struct CUstream_st *stream,
		struct tshare_cuda_options *known, int *device);

/*
 * Checks the stream and the options that a caller gave, and enters the scope of the stream:
 * 0, or a negative errno with a text. cuda_leave() ends it.
 */
int stream_enter(struct cuda_scope *scope, const struct tshare_cuda_options *options,
		 struct CUstream_st *stream);

/*
 * The same to make an object that stays in the stream's context. Gives the device of a default
 * stream a primary context if it has none. Retains a primary context that is the stream's:
 * see cuda_keep_context().
 */
int stream_enter_to_make(struct cuda_scope *scope, const struct tshare_cuda_options *options,
			 struct CUstream_st *stream);

#endif /* TSHARE_CUDA_SCOPE_H */
