/* SPDX-License-Identifier: MIT */
/* Work that lasts until a test ends it, so that a stream comes to what is behind it only then. */
#ifndef TSHARE_TESTS_CUDA_HOLD_H
#define TSHARE_TESTS_CUDA_HOLD_H

#include <stdatomic.h>

#include "../partner.h"
#include "other.h"

struct hold {
	atomic_bool begun;
	atomic_bool ended;
};

static inline void hold_stream(void *data)
{
	struct hold *hold = data;

	atomic_store(&hold->begun, true);
	while (!atomic_load(&hold->ended))
		sleep_ns(MS);
}

static inline void begin_hold(struct hold *hold, struct CUstream_st *stream)
{
	atomic_init(&hold->begun, false);
	atomic_init(&hold->ended, false);
	CHECK(!cuLaunchHostFunc(stream, hold_stream, hold));
	while (!atomic_load(&hold->begun))
		sleep_ns(MS);
}

static inline void end_hold(struct hold *hold)
{
	atomic_store(&hold->ended, true);
}

#endif /* TSHARE_TESTS_CUDA_HOLD_H */
