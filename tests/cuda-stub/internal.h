/* SPDX-License-Identifier: MIT */
/*
 * What the files of the stub share. A file has one subject: its books, the driver's
 * functions for it, and the control of both that stub.h offers.
 *
 * The driver's constants, structs and parameters stand here once more. They aren't shared
 * with lib/cuda/abi.h: where the library declares something wrongly, it and the stub
 * disagree, and a test fails.
 */
#ifndef TSHARE_TESTS_CUDA_INTERNAL_H
#define TSHARE_TESTS_CUDA_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "stub.h"

#define EXPORT __attribute__((visibility("default")))

enum result {
	SUCCESS = 0,
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	NOT_INITIALIZED = 3,
	NO_DEVICE = 100,
	INVALID_DEVICE = 101,
	INVALID_CONTEXT = 201,
	INVALID_HANDLE = 400,
	NOT_FOUND = 500,
	NOT_READY = 600,
	CONTEXT_IS_DESTROYED = 709,
	ALREADY_REGISTERED = 712,
	NOT_REGISTERED = 713,
	NOT_PERMITTED = 800,
	NOT_SUPPORTED = 801,
	CAPTURE_UNSUPPORTED = 900,
};

/* Attributes of devices */
enum {
	ATTRIBUTE_SAME_ADDRESS = 91,
	ATTRIBUTE_READ_ONLY_REGISTER = 113,
	ATTRIBUTE_STREAM_VALUES = 122,
};

#define MAX_RECORDS 256 /* of each kind */

/* Name, symbol, and the version since which cuGetProcAddress() finds that symbol by the name. */
#define FUNCTIONS(X)                                                                   \
	X(cuInit, cuInit, 2000)                                                        \
	X(cuDriverGetVersion, cuDriverGetVersion, 2020)                                \
	X(cuGetErrorName, cuGetErrorName, 6000)                                        \
	X(cuDeviceGet, cuDeviceGet, 2000)                                              \
	X(cuDeviceGetCount, cuDeviceGetCount, 2000)                                    \
	X(cuDeviceGetName, cuDeviceGetName, 2000)                                      \
	X(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000)                            \
	X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000)                    \
	X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 11000)              \
	X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, 11000)                  \
	X(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, 7000)                \
	X(cuCtxCreate, cuCtxCreate_v2, 3020)                                           \
	X(cuCtxDestroy, cuCtxDestroy_v2, 4000)                                         \
	X(cuCtxPushCurrent, cuCtxPushCurrent_v2, 4000)                                 \
	X(cuCtxPopCurrent, cuCtxPopCurrent_v2, 4000)                                   \
	X(cuCtxSetCurrent, cuCtxSetCurrent, 4000)                                      \
	X(cuCtxGetCurrent, cuCtxGetCurrent, 4000)                                      \
	X(cuCtxGetDevice, cuCtxGetDevice, 2000)                                        \
	X(cuMemHostRegister, cuMemHostRegister_v2, 6050)                               \
	X(cuMemHostUnregister, cuMemHostUnregister, 4000)                              \
	X(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2, 3020)               \
	X(cuMemHostGetFlags, cuMemHostGetFlags, 2030)                                  \
	X(cuPointerGetAttribute, cuPointerGetAttribute, 4000)                          \
	X(cuImportExternalMemory, cuImportExternalMemory, 10000)                       \
	X(cuExternalMemoryGetMappedBuffer, cuExternalMemoryGetMappedBuffer, 10000)     \
	X(cuDestroyExternalMemory, cuDestroyExternalMemory, 10000)                     \
	X(cuMemAlloc, cuMemAlloc_v2, 3020)                                             \
	X(cuMemFree, cuMemFree_v2, 3020)                                               \
	X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, 3020)                               \
	X(cuStreamCreate, cuStreamCreate, 2000)                                        \
	X(cuStreamDestroy, cuStreamDestroy_v2, 4000)                                   \
	X(cuStreamSynchronize, cuStreamSynchronize, 2000)                              \
	X(cuStreamQuery, cuStreamQuery, 2000)                                          \
	X(cuStreamGetCtx, cuStreamGetCtx, 9020)                                        \
	X(cuStreamIsCapturing, cuStreamIsCapturing, 10000)                             \
	X(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, 10010) \
	X(cuLaunchHostFunc, cuLaunchHostFunc, 10000)                                   \
	X(cuStreamWaitValue64, cuStreamWaitValue64_v2, 11070)                          \
	X(cuStreamWaitEvent, cuStreamWaitEvent, 3020)                                  \
	X(cuEventCreate, cuEventCreate, 2000)                                          \
	X(cuEventRecord, cuEventRecord, 2000)                                          \
	X(cuEventQuery, cuEventQuery, 2000)                                            \
	X(cuEventDestroy, cuEventDestroy_v2, 4000)                                     \
	X(cuDeviceGetUuid, cuDeviceGetUuid_v2, 11040)                                  \
	X(cuMemsetD8Async, cuMemsetD8Async, 3020)                                      \
	X(cuIpcGetMemHandle, cuIpcGetMemHandle, 4010)                                  \
	X(cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2, 11000)                            \
	X(cuIpcCloseMemHandle, cuIpcCloseMemHandle, 4010)

#define ENUMERATE(base, symbol, version) F_##base,

enum { FUNCTIONS(ENUMERATE) N_FUNCTIONS };

/* Calls, calls.c */

enum needs { NOTHING, INIT, CONTEXT };

/* Counts the call and, unless it returns an error, leaves with the lock held. */
int begin(int function, enum needs needs);
int end(int result);

#define BEGIN(name, needs)                           \
	do {                                         \
		int begin_ = begin(F_##name, needs); \
                                                     \
		if (begin_)                          \
			return begin_;               \
	} while (0)

/* The F_ of the name. */
int function_of(const char *name);

/* Guards the books. What follows is called with it held. */
extern pthread_mutex_t lock;

/* Keeps the first call that the real driver forbids and needn't refuse. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

void calls_reset(void);

/* The driver, driver.c */

extern atomic_int initialised_by; /* the process that called cuInit() */
extern int driver_version;

void driver_reset(void);

/* Devices and contexts, contexts.c */

struct context {
	int device;
	bool primary;
	bool alive;
};

extern int device_count;

/* The thread's context; NULL if it has none. */
struct context *current(void);
int device_attribute(int device, int attribute);
void contexts_reset(void);
/* Each function of this name writes what is left, if anything is. */
void contexts_left(char *text, size_t size);

/* What pointers lead to, pointers.c */

struct pointed {
	struct context *context;
	unsigned int type; /* TYPE_HOST or TYPE_DEVICE */
	uint64_t address;  /* the device's */
	uintptr_t host;	   /* 0 if it has none */
	uint64_t id;
	uint64_t start; /* of the memory, on the device */
	size_t bytes;
};

enum {
	TYPE_HOST = 1,
	TYPE_DEVICE = 2,
};

/* The same of @bytes of a device's memory at @start. */
struct pointed pointed_on_device(struct context *context, uint64_t address, uint64_t id,
				 const void *start, size_t bytes);

/* The number of memory that a context gets. None is used twice. */
uint64_t new_id(void);
void pointers_reset(void);

/* Registered memory, registered.c */

/* Whether it is the address of registered memory, the host's or a device's. */
bool registered_find(uint64_t address, struct pointed *found);
/* Whether all of the range is mapped in the process, and may be written if @writable. */
bool registered_is_mapped(uintptr_t start, size_t bytes, bool writable);
/* What was registered in a context goes with it. */
void registered_end(const struct context *context);
void registered_reset(void);
void registered_left(char *text, size_t size);

/* External memory, external.c */

/* Whether it is the address of a buffer that is mapped. */
bool external_find(uint64_t address, struct pointed *found);
/* What was imported in a context goes with it. */
void external_end(const struct context *context);
/* cuMemFree() of such a buffer. */
int external_unmap(uint64_t address);
void external_reset(void);
void external_left(char *text, size_t size);

/* Streams, streams.c */

/* Whether the thread is in a host function, which must not use the driver. */
bool in_host_function(void);
/* Whether the thread must not allocate or wait, since a stream is captured in global mode. */
bool capture_forbids(void);
/* What is still to be done on the streams of a context is not done any more. */
void streams_end(const struct context *context);
void streams_reset(void);
/* Waits until all work is done. A process that takes too long for that ends with 99. */
void streams_await_exit(void);
void streams_left(char *text, size_t size);

struct stream;

/* What is on a stream: a host function, or else what is asked whether it is done. */
struct work {
	STAILQ_ENTRY(work) entry;
	void (*function)(void *data);
	bool (*done)(const struct work *work); /* with the lock held */
	void *data;
	uint64_t address; /* the device's */
	uint64_t value;
	uint64_t source; /* of a copy to the address */
	size_t bytes;
};

int streams_put(struct stream *handle, struct work work);
/* Whether there is a copy to do from or to the memory, or a filling of it. */
bool streams_use(uint64_t start, size_t bytes);

/* Memory of devices and events, memory.c and events.c */

/* Whether it is the address of memory that was allocated on a device. */
bool memory_find(uint64_t address, struct pointed *found);
/* What was allocated or created in a context goes with it. */
void memory_end(const struct context *context);
void memory_reset(void);
void memory_left(char *text, size_t size);

/*
 * Makes an allocation shared, so that another process can map the file of it: a descriptor, which
 * belongs to the allocation; -1 if the address isn't where one begins.
 */
int memory_share(uint64_t address, size_t *bytes);

/* Memory of other processes, ipc.c */

/* Whether another process has the memory of this file open. */
bool ipc_is_open(int fd);

/* Whether it is the address of memory that was opened. */
bool ipc_find(uint64_t address, struct pointed *found);
/* Closes all memory that was opened in a context, which ends. */
void ipc_end(const struct context *context);
void ipc_reset(void);
void ipc_left(char *text, size_t size);

void events_end(const struct context *context);
void events_reset(void);
void events_left(char *text, size_t size);

/* Symbols, symbols.c */

void symbols_reset(void);

#endif /* TSHARE_TESTS_CUDA_INTERNAL_H */
