/* SPDX-License-Identifier: MIT */
/* For tests of leases: a context with a stream of CUDA's, and a name. */
#ifndef TSHARE_TESTS_CUDA_LEASES_H
#define TSHARE_TESTS_CUDA_LEASES_H

#include "hold.h"

/* The context of a test, with a stream of it; current in the test's thread. */
static CUcontext context;
static struct CUstream_st *cuda;
static const char *name;

static inline void open_cuda(const char *stem)
{
	CHECK(!cuInit(0) && !cuCtxCreate_v2(&context, 0, 0));
	CHECK(!cuStreamCreate(&cuda, 0));
	name = unique(stem);
}

static inline void replace_context(void)
{
	CHECK(!cuCtxDestroy_v2(context) && !cuCtxCreate_v2(&context, 0, 0));
	CHECK(!cuStreamCreate(&cuda, 0));
}

static inline bool has_name(void)
{
	struct tshare_region *region;

	if (tshare_region_open(ctx, name, NULL, &region))
		return false;
	tshare_region_unref(region);
	return true;
}

/* A thread of the library's drops references that it holds for a CUDA stream. */
static inline bool name_goes(void)
{
	int i;

	for (i = 0; i < 30000 && has_name(); i++)
		sleep_ns(MS);
	return !has_name();
}

/* The name's maker is gone, as far as the test is concerned. */
static inline void close_cuda(void)
{
	int i;

	CHECK(name_goes());
	CHECK(!cuStreamDestroy_v2(cuda) && !cuCtxDestroy_v2(context));
	for (i = 0; i < 30000 && stub_left(); i++)
		sleep_ns(MS);
	CHECK(nothing_is_left());
}

#endif /* TSHARE_TESTS_CUDA_LEASES_H */
