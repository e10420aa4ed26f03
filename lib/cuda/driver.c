// SPDX-License-Identifier: MIT
/* How the driver's functions are called. */
#include "cuda/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

#include "base/export.h"
#include "base/sized.h"
#include "cuda/functions.h"
#include "tshare.h"

TSHARE_EXPORT
int tshare_cuda_get_driver(struct tshare_cuda_driver *driver)
{
	struct tshare_cuda_driver known = { 0 };
	int err, result;

	err = sized_check(driver, "driver.", SIZED_UPTO(struct tshare_cuda_driver, device_count));
	if (!err)
		err = cuda_start();
	if (err)
		return err;
	known.version = libcuda.version;
	result = cuda_count_devices(&known.device_count);
	if (result)
		return cuda_fail(result, "CUDA: devices");
	sized_fill(driver, &known, sizeof(known));
	return 0;
}

/* Devices */

int cuda_count_devices(int *count)
{
	return libcuda.cuDeviceGetCount(count);
}

/* False if no context is current, or the current one has been destroyed. */
static bool find_current_device(int *device)
{
	return !libcuda.cuCtxGetDevice(device);
}

int cuda_current_device(void)
{
	int device;

	return find_current_device(&device) ? device : 0;
}

/* An attribute that the driver doesn't know is unsupported. */
static bool has_attribute(int device, int attribute)
{
	int value;

	return !libcuda.cuDeviceGetAttribute(&value, attribute, device) && value;
}

bool cuda_reads_pageable_memory(int device)
{
	return has_attribute(device, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
}

bool cuda_registers_readonly(int device)
{
	return has_attribute(device, CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED);
}

/* Contexts */

static bool is_active(int device)
{
	unsigned int flags;
	int active;

	return !libcuda.cuDevicePrimaryCtxGetState(device, &flags, &active) && active;
}

/*
 * Retains the device's primary context if it is current: whoever made it current may
 * release it before the library has undone its work there.
 */
static void retain_if_current(struct cuda_scope *scope)
{
	CUcontext current, primary;

	if (!is_active(scope->device) || libcuda.cuCtxGetCurrent(&current) ||
	    libcuda.cuDevicePrimaryCtxRetain(&primary, scope->device))
		return;
	if (primary == current)
		scope->retained = true;
	else
		cuda_release(scope->device);
}

static void begin_scope(struct cuda_scope *scope, int device)
{
	*scope = (struct cuda_scope){
		.device = device,
		.capture_mode = CU_STREAM_CAPTURE_MODE_RELAXED,
	};
	libcuda.cuThreadExchangeStreamCaptureMode(&scope->capture_mode);
}

/* Leaves the scope again if it couldn't be entered. */
static int scope_entered(struct cuda_scope *scope, int result)
{
	if (result)
		cuda_leave(scope);
	return result;
}

static int push_primary(struct cuda_scope *scope)
{
	bool active = is_active(scope->device);
	CUcontext primary;
	CUresult result;

	result = libcuda.cuDevicePrimaryCtxRetain(&primary, scope->device);
	if (result)
		return result;
	result = libcuda.cuCtxPushCurrent(primary);
	if (result) {
		cuda_release(scope->device);
		return result;
	}
	scope->retained = true;
	scope->pushed = true;
	scope->created = !active;
	return 0;
}

int cuda_enter(struct cuda_scope *scope, int device)
{
	int current;

	begin_scope(scope, device);
	if (!find_current_device(&current) || current != device)
		return scope_entered(scope, push_primary(scope));
	retain_if_current(scope);
	return 0;
}

int cuda_enter_to_undo(struct cuda_scope *scope, int device)
{
	int current;

	begin_scope(scope, device);
	if (find_current_device(&current))
		return 0;
	return scope_entered(scope, push_primary(scope));
}

int cuda_enter_memory(struct cuda_scope *scope, uint64_t address)
{
	CUcontext context;
	CUresult result;

	begin_scope(scope, 0);
	result = libcuda.cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, address);
	if (!result)
		result = libcuda.cuCtxPushCurrent(context);
	scope->pushed = !result;
	return scope_entered(scope, result);
}

void cuda_leave(struct cuda_scope *scope)
{
	CUcontext popped;

	if (scope->pushed)
		libcuda.cuCtxPopCurrent(&popped);
	if (scope->retained)
		cuda_release(scope->device);
	if (scope->capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED)
		libcuda.cuThreadExchangeStreamCaptureMode(&scope->capture_mode);
}

bool cuda_keep_context(struct cuda_scope *scope)
{
	bool retained = scope->retained;

	scope->retained = false;
	return retained;
}

/* Relaxed, as in a scope, since it may end the context. */
void cuda_release(int device)
{
	int mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	libcuda.cuThreadExchangeStreamCaptureMode(&mode);
	libcuda.cuDevicePrimaryCtxRelease(device);
	libcuda.cuThreadExchangeStreamCaptureMode(&mode);
}

void cuda_retain_context(struct cuda_scope *scope)
{
	if (!scope->retained)
		retain_if_current(scope);
}

int cuda_current_context(const void **context)
{
	CUcontext current;
	CUresult result = libcuda.cuCtxGetCurrent(&current);

	*context = result ? NULL : current;
	return result;
}

/* Streams */

bool cuda_stream_is_default(const struct CUstream_st *stream)
{
	return stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

/* If the device has no context, nothing can be on its default streams. */
static int enter_default_stream(struct cuda_scope *scope, int device)
{
	int current;

	begin_scope(scope, device);
	if (find_current_device(&current) && current == device)
		return 0;
	return scope_entered(scope, is_active(device) ? push_primary(scope) : -ENOENT);
}

int cuda_enter_stream(struct cuda_scope *scope, struct CUstream_st *stream, int device)
{
	CUcontext context, current;
	CUresult result;

	if (cuda_stream_is_default(stream))
		return enter_default_stream(scope, device);
	begin_scope(scope, 0);
	result = libcuda.cuStreamGetCtx(stream, &context);
	if (!result && (libcuda.cuCtxGetCurrent(&current) || current != context)) {
		result = libcuda.cuCtxPushCurrent(context);
		scope->pushed = !result;
	}
	if (!result)
		result = libcuda.cuCtxGetDevice(&scope->device);
	return scope_entered(scope, result);
}

int cuda_stream_is_capturing(struct CUstream_st *stream, bool *capturing)
{
	CUresult result;
	int status;

	result = libcuda.cuStreamIsCapturing(stream, &status);
	*capturing = !result && status != CU_STREAM_CAPTURE_STATUS_NONE;
	return result;
}

bool cuda_streams_wait_for_values(int device)
{
	return libcuda.cuStreamWaitValue64 &&
	       has_attribute(device, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
}

int cuda_stream_wait(struct CUstream_st *stream, uint64_t address, uint64_t value)
{
	return libcuda.cuStreamWaitValue64(stream, address, value, CU_STREAM_WAIT_VALUE_GEQ);
}

int cuda_stream_call(struct CUstream_st *stream, void (*function)(void *data), void *data)
{
	return libcuda.cuLaunchHostFunc(stream, function, data);
}

int cuda_stream_copy(struct CUstream_st *stream, uint64_t address, const void *start,
		     uint64_t offset, uint64_t size, uint64_t piece)
{
	const uint64_t stop = offset + size;
	uint64_t length;
	CUresult result;

	for (; offset < stop; offset += length) {
		length = piece - offset % piece;
		if (length > stop - offset)
			length = stop - offset;
		result = libcuda.cuMemcpyHtoDAsync(address, (const char *)start + offset, length,
						   stream);
		if (result)
			return result;
		address += length;
	}
	return 0;
}

int cuda_stream_finish(struct CUstream_st *stream)
{
	return libcuda.cuStreamSynchronize(stream);
}

/* Events */

int cuda_event_new(struct CUevent_st **event)
{
	return libcuda.cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
}

int cuda_event_record(struct CUevent_st *event, struct CUstream_st *stream)
{
	return libcuda.cuEventRecord(event, stream);
}

int cuda_stream_wait_event(struct CUstream_st *stream, struct CUevent_st *event)
{
	return libcuda.cuStreamWaitEvent(stream, event, 0);
}

bool cuda_event_is_over(struct CUevent_st *event)
{
	return libcuda.cuEventQuery(event) != CUDA_ERROR_NOT_READY;
}

void cuda_event_free(struct CUevent_st *event)
{
	libcuda.cuEventDestroy(event);
}

/* Memory */

#define UNKNOWN_ID UINT64_MAX

uint64_t cuda_memory_id(uint64_t address)
{
	unsigned long long id;
	unsigned int type;
	CUresult result;

	/* Documented only for memory that CUDA has allocated. */
	result = libcuda.cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address);
	if (!result && id)
		return id;
	result = libcuda.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
	if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_DEINITIALIZED)
		return 0;
	return UNKNOWN_ID;
}

bool cuda_memory_is(uint64_t address, uint64_t id)
{
	uint64_t current = cuda_memory_id(address);

	return current && (current == id || current == UNKNOWN_ID || id == UNKNOWN_ID);
}

/* Any call in a context that has had such an error returns it. Of these only they do here. */
static bool is_fatal(CUresult result)
{
	return result >= CUDA_ERROR_ILLEGAL_ADDRESS && result <= CUDA_ERROR_LAUNCH_FAILED;
}

bool cuda_context_is_lost(uint64_t address, uint64_t id)
{
	struct cuda_scope scope;
	CUresult result;
	CUevent event;

	if (!cuda_memory_is(address, id))
		return true;
	result = cuda_enter_memory(&scope, address);
	if (result)
		return is_fatal(result);
	result = libcuda.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
	if (!result)
		libcuda.cuEventDestroy(event);
	cuda_leave(&scope);
	return is_fatal(result);
}

int cuda_allocate(uint64_t size, uint64_t *address)
{
	CUdeviceptr allocated;
	CUresult result = libcuda.cuMemAlloc(&allocated, size);

	*address = result ? 0 : allocated;
	return result;
}

void cuda_free(uint64_t address)
{
	libcuda.cuMemFree(address);
}

/* Registered memory */

/* From 512 GiB on the driver's table of pages exceeds one allocation of the kernel's. */
#define WHOLE_LIMIT (512ULL << 30)
#define PIECE	    (64ULL << 30)

uint64_t cuda_piece_bytes(uint64_t size)
{
	return size < WHOLE_LIMIT ? size : PIECE;
}

static int unregister_before(char *start, uint64_t stop, uint64_t piece)
{
	CUresult result = 0, first = 0;
	uint64_t offset;

	for (offset = 0; offset < stop; offset += piece) {
		result = libcuda.cuMemHostUnregister(start + offset);
		if (!first)
			first = result;
	}
	return first;
}

int cuda_register(void *start, uint64_t size, bool readonly)
{
	const uint64_t piece = cuda_piece_bytes(size);
	unsigned int flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
	uint64_t offset, left;
	CUresult result;

	if (readonly)
		flags |= CU_MEMHOSTREGISTER_READ_ONLY;
	for (offset = 0; offset < size; offset += piece) {
		left = size - offset;
		result = libcuda.cuMemHostRegister((char *)start + offset,
						   left < piece ? left : piece, flags);
		if (result) {
			unregister_before(start, offset, piece);
			return result;
		}
	}
	return 0;
}

int cuda_unregister(void *start, uint64_t size)
{
	return unregister_before(start, size, cuda_piece_bytes(size));
}

int cuda_get_address(void *start, uint64_t size, uint64_t *address)
{
	const uint64_t piece = cuda_piece_bytes(size);
	CUdeviceptr first = 0, next;
	CUresult result;
	uint64_t offset;

	for (offset = 0; offset < size; offset += piece) {
		result = libcuda.cuMemHostGetDevicePointer(&next, (char *)start + offset, 0);
		if (result)
			return result;
		if (!offset)
			first = next;
		if (next != first + offset)
			return -EFBIG;
	}
	*address = first;
	return 0;
}

int cuda_import_dmabuf(int fd, uint64_t offset, uint64_t size, struct cuda_dmabuf *dmabuf)
{
	const CUDA_EXTERNAL_MEMORY_HANDLE_DESC handle = {
		.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD,
		.handle.fd = fd,
		.size = offset + size,
	};
	const CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = { .offset = offset, .size = size };
	CUexternalMemory memory;
	CUdeviceptr address;
	CUresult result;

	result = libcuda.cuImportExternalMemory(&memory, &handle);
	if (result)
		return result;
	result = libcuda.cuExternalMemoryGetMappedBuffer(&address, memory, &buffer);
	if (result) {
		libcuda.cuDestroyExternalMemory(memory);
		return result;
	}
	*dmabuf = (struct cuda_dmabuf){ .memory = memory, .address = address };
	return 0;
}

void cuda_release_dmabuf(const struct cuda_dmabuf *dmabuf)
{
	libcuda.cuMemFree(dmabuf->address);
	libcuda.cuDestroyExternalMemory(dmabuf->memory);
}
