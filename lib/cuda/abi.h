/* SPDX-License-Identifier: MIT */
/*
 * The part of the NVIDIA driver's API that the library uses, under the names of CUDA's cuda.h.
 * So nobody needs that header to build the library. The tests compare the two.
 */
#ifndef TSHARE_CUDA_ABI_H
#define TSHARE_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

enum {
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_NOT_INITIALIZED = 3,
	CUDA_ERROR_DEINITIALIZED = 4,
	CUDA_ERROR_STUB_LIBRARY = 34,
	CUDA_ERROR_NO_DEVICE = 100,
	CUDA_ERROR_NOT_READY = 600,
	CUDA_ERROR_ILLEGAL_ADDRESS = 700,
	CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
	CUDA_ERROR_LAUNCH_FAILED = 719,
	CUDA_ERROR_NOT_SUPPORTED = 801,
};

enum {
	CU_MEMHOSTREGISTER_PORTABLE = 1,
	CU_MEMHOSTREGISTER_DEVICEMAP = 2,
	CU_MEMHOSTREGISTER_READ_ONLY = 8,
};

enum {
	CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS = 88,
	CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED = 113,
	CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS = 122,
};

enum {
	CU_POINTER_ATTRIBUTE_CONTEXT = 1,
	CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
	CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
	CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
	CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
};

enum { CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD = 9 };

enum { CU_STREAM_CAPTURE_STATUS_NONE = 0 };

enum { CU_STREAM_CAPTURE_MODE_RELAXED = 2 };

enum { CU_STREAM_WAIT_VALUE_GEQ = 0 };

enum { CU_EVENT_DISABLE_TIMING = 2 };

enum { CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1 };

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUextMemory_st *CUexternalMemory;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef void (*CUhostFn)(void *data);

#define CU_STREAM_LEGACY     ((CUstream)1)
#define CU_STREAM_PER_THREAD ((CUstream)2)

typedef struct {
	int type;
	union {
		int fd;
		struct {
			void *handle;
			const void *name;
		} win32;
	} handle;
	unsigned long long size;
	unsigned int flags;
	unsigned int reserved[16];
} CUDA_EXTERNAL_MEMORY_HANDLE_DESC;

typedef struct {
	unsigned long long offset;
	unsigned long long size;
	unsigned int flags;
	unsigned int reserved[16];
} CUDA_EXTERNAL_MEMORY_BUFFER_DESC;

typedef struct {
	char bytes[16];
} CUuuid;

typedef struct {
	char reserved[64];
} CUipcMemHandle;

/* Each function by its name, its symbol, and the version since which the name means that symbol. */
#define CUDA_FUNCTIONS(X)                                                                     \
	X(cuInit, cuInit, 2000, (unsigned int flags))                                         \
	X(cuGetErrorName, cuGetErrorName, 6000, (CUresult result, const char **name))         \
	X(cuDeviceGetCount, cuDeviceGetCount, 2000, (int *count))                             \
	X(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000,                                   \
	  (int *value, int attribute, CUdevice device))                                       \
	X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000,                           \
	  (CUcontext * context, CUdevice device))                                             \
	X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 11000, (CUdevice device))  \
	X(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, 7000,                       \
	  (CUdevice device, unsigned int *flags, int *active))                                \
	X(cuCtxGetCurrent, cuCtxGetCurrent, 4000, (CUcontext * context))                      \
	X(cuCtxGetDevice, cuCtxGetDevice, 2000, (CUdevice * device))                          \
	X(cuCtxPushCurrent, cuCtxPushCurrent_v2, 4000, (CUcontext context))                   \
	X(cuCtxPopCurrent, cuCtxPopCurrent_v2, 4000, (CUcontext * context))                   \
	X(cuMemHostRegister, cuMemHostRegister_v2, 6050,                                      \
	  (void *start, size_t bytes, unsigned int flags))                                    \
	X(cuMemHostUnregister, cuMemHostUnregister, 4000, (void *start))                      \
	X(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2, 3020,                      \
	  (CUdeviceptr * address, void *host, unsigned int flags))                            \
	X(cuPointerGetAttribute, cuPointerGetAttribute, 4000,                                 \
	  (void *data, int attribute, CUdeviceptr address))                                   \
	X(cuImportExternalMemory, cuImportExternalMemory, 10000,                              \
	  (CUexternalMemory * memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc))          \
	X(cuExternalMemoryGetMappedBuffer, cuExternalMemoryGetMappedBuffer, 10000,            \
	  (CUdeviceptr * address, CUexternalMemory memory,                                    \
	   const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc))                                     \
	X(cuMemAlloc, cuMemAlloc_v2, 3020, (CUdeviceptr * address, size_t bytes))             \
	X(cuMemFree, cuMemFree_v2, 3020, (CUdeviceptr address))                               \
	X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, 3020,                                      \
	  (CUdeviceptr address, const void *source, size_t bytes, CUstream stream))           \
	X(cuDestroyExternalMemory, cuDestroyExternalMemory, 10000, (CUexternalMemory memory)) \
	X(cuStreamGetCtx, cuStreamGetCtx, 9020, (CUstream stream, CUcontext * context))       \
	X(cuStreamIsCapturing, cuStreamIsCapturing, 10000, (CUstream stream, int *status))    \
	X(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, 10010,        \
	  (int *mode))                                                                        \
	X(cuLaunchHostFunc, cuLaunchHostFunc, 10000,                                          \
	  (CUstream stream, CUhostFn function, void *data))                                   \
	X(cuStreamSynchronize, cuStreamSynchronize, 2000, (CUstream stream))                  \
	X(cuStreamWaitEvent, cuStreamWaitEvent, 3020,                                         \
	  (CUstream stream, CUevent event, unsigned int flags))                               \
	X(cuEventCreate, cuEventCreate, 2000, (CUevent * event, unsigned int flags))          \
	X(cuEventRecord, cuEventRecord, 2000, (CUevent event, CUstream stream))               \
	X(cuEventQuery, cuEventQuery, 2000, (CUevent event))                                  \
	X(cuEventDestroy, cuEventDestroy_v2, 4000, (CUevent event))

/* Likewise, functions that a driver may lack. */
#define CUDA_NEWER_FUNCTIONS(X)                                                         \
	X(cuStreamWaitValue64, cuStreamWaitValue64_v2, 11070,                           \
	  (CUstream stream, CUdeviceptr address, uint64_t value, unsigned int flags))   \
	X(cuDeviceGetUuid, cuDeviceGetUuid_v2, 11040, (CUuuid * uuid, CUdevice device)) \
	X(cuMemsetD8Async, cuMemsetD8Async, 3020,                                       \
	  (CUdeviceptr address, unsigned char value, size_t bytes, CUstream stream))    \
	X(cuIpcGetMemHandle, cuIpcGetMemHandle, 4010,                                   \
	  (CUipcMemHandle * handle, CUdeviceptr address))                               \
	X(cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2, 11000,                             \
	  (CUdeviceptr * address, CUipcMemHandle handle, unsigned int flags))           \
	X(cuIpcCloseMemHandle, cuIpcCloseMemHandle, 4010, (CUdeviceptr address))

#endif /* TSHARE_CUDA_ABI_H */
