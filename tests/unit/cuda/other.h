/* SPDX-License-Identifier: MIT */
/* What a test calls of the driver as another of its users in the process, such as PyTorch. */
#ifndef TSHARE_TESTS_CUDA_OTHER_H
#define TSHARE_TESTS_CUDA_OTHER_H

#include <stddef.h>

#include "../util.h"
#include "stub.h"

typedef struct CUctx_st *CUcontext;

int cuInit(unsigned int flags);
int cuDevicePrimaryCtxRetain(CUcontext *context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuDevicePrimaryCtxReset_v2(int device);
int cuCtxCreate_v2(CUcontext *context, unsigned int flags, int device);
int cuCtxDestroy_v2(CUcontext context);
int cuCtxPushCurrent_v2(CUcontext context);
int cuCtxPopCurrent_v2(CUcontext *context);
int cuCtxGetCurrent(CUcontext *context);
int cuMemHostRegister_v2(void *start, size_t bytes, unsigned int flags);
int cuMemHostUnregister(void *start);
int cuMemAlloc_v2(unsigned long long *address, size_t bytes);
int cuMemFree_v2(unsigned long long address);
int cuStreamCreate(struct CUstream_st **stream, unsigned int flags);
int cuStreamDestroy_v2(struct CUstream_st *stream);
int cuStreamSynchronize(struct CUstream_st *stream);
int cuStreamQuery(struct CUstream_st *stream);
int cuThreadExchangeStreamCaptureMode(int *mode);
int cuLaunchHostFunc(struct CUstream_st *stream, void (*function)(void *data), void *data);

#define LEGACY	   ((struct CUstream_st *)1)
#define PER_THREAD ((struct CUstream_st *)2)

#define NOT_READY 600

/* Flags of cuMemHostRegister(). */
#define PORTABLE   1
#define DEVICE_MAP 2
#define READ_ONLY  8

/* Opens the test's context, with a stub as new. */
static inline void start(void)
{
	stub_reset();
	open_context();
}

/* Whether the driver has nothing left of the test's, and was used as is allowed. */
static inline bool nothing_is_left(void)
{
	const char *left = stub_left(), *complaint = stub_complaint();

	if (left)
		printf("# left: %s\n", left);
	if (complaint)
		printf("# complaint: %s\n", complaint);
	return !left && !complaint;
}

/* Ends a test with its only region. */
static inline void end(struct tshare_region *region)
{
	tshare_region_unref(region);
	CHECK(nothing_is_left());
}

static inline struct tshare_region *region_of(uint64_t size)
{
	struct tshare_region *region;

	CHECK(!tshare_region_create(ctx, NULL, size, NULL, 0, NULL, &region));
	return region;
}

/* The same memory once more, read-only. */
static inline struct tshare_region *readonly_region_of(uint64_t size)
{
	struct tshare_region *writable = region_of(size), *region;

	CHECK(!tshare_region_import(ctx, tshare_region_get_fd(writable), TSHARE_READONLY, &region));
	tshare_region_unref(writable);
	return region;
}

static inline struct tshare_cuda_options on_device(int device)
{
	return (struct tshare_cuda_options){
		.size = sizeof(struct tshare_cuda_options),
		.flags = TSHARE_CUDA_DEVICE,
		.device = device,
	};
}

#endif /* TSHARE_TESTS_CUDA_OTHER_H */
