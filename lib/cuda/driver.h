/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA's driver, libcuda.so.1, which is loaded when it is first needed. Only driver.c,
 * driver-ipc.c and load.c know CUDA's names and numbers. Unless they say otherwise, functions
 * that return an int return the driver's result (CUresult), 0 for success. cuda_errno() and
 * cuda_fail() turn it into an errno.
 *
 * A forked child can't use the driver that its parent has started: cuda_start() returns
 * -EOPNOTSUPP there, and cuda_is_forked() true. No other function may be called there, or
 * before cuda_start() has returned 0.
 */
#ifndef TSHARE_CUDA_DRIVER_H
#define TSHARE_CUDA_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/load.h"

int cuda_count_devices(int *count);

/* The device of the thread's current context; 0 if it has none. A device is its ordinal. */
int cuda_current_device(void);

bool cuda_reads_pageable_memory(int device);
bool cuda_registers_readonly(int device);

/*
 * A scope is the code from cuda_enter*() to cuda_leave(), with a context of @device current:
 * the caller's own, or else the primary one. cuda_enter() retains it if it is the primary one.
 *
 * In a scope the thread's capture mode is relaxed. In the default mode, allocating or
 * registering memory would invalidate stream captures, those of other threads, too.
 */
struct cuda_scope {
	int device;
	int capture_mode; /* the thread's before */
	bool retained;	  /* the scope retains the primary context */
	bool pushed;
	bool created; /* there was no primary context before */
};

int cuda_enter(struct cuda_scope *scope, int device);

/*
 * The same to undo what was done in an earlier scope, whose context may be gone: any current
 * context serves.
 */
int cuda_enter_to_undo(struct cuda_scope *scope, int device);

/*
 * Enters the context in which the device's memory at @address was allocated, as the driver
 * reports it. So a thread without a context can ask for an event of that context.
 */
int cuda_enter_memory(struct cuda_scope *scope, uint64_t address);

/* Makes the previous context current again. */
void cuda_leave(struct cuda_scope *scope);

/*
 * Whether the scope retains the primary context. If so, the reference passes to the caller,
 * who calls cuda_release().
 */
bool cuda_keep_context(struct cuda_scope *scope);
void cuda_release(int device);

/* Retains the scope's context, if it is the primary one and is not retained yet. */
void cuda_retain_context(struct cuda_scope *scope);

/* In a scope: stores a key that identifies its context. */
int cuda_current_context(const void **context);

/*
 * Streams, by the driver's handle. Each device has two default ones, whose handles are 1
 * and 2.
 */
struct CUstream_st;

bool cuda_stream_is_default(const struct CUstream_st *stream);

/*
 * Enters a stream's own context. A default stream's is the current context if it is of
 * @device, else the device's primary one: -ENOENT if there is none.
 */
int cuda_enter_stream(struct cuda_scope *scope, struct CUstream_st *stream, int device);

/* In the scope of a stream: whether its work is captured into a graph. */
int cuda_stream_is_capturing(struct CUstream_st *stream, bool *capturing);

/* Whether cuda_stream_wait() works. */
bool cuda_streams_wait_for_values(int device);

/* In the scope of a stream: makes it wait until *@address is at least @value. */
int cuda_stream_wait(struct CUstream_st *stream, uint64_t address, uint64_t value);

/* In the scope of a stream: makes it call @function, which must not use CUDA. */
int cuda_stream_call(struct CUstream_st *stream, void (*function)(void *data), void *data);

/*
 * In the scope of a stream: makes it copy @size bytes, from @offset on of the mapping at
 * @start, to the device. The mapping may be registered in pieces of @piece bytes. A failure
 * may leave some of the copies on the stream.
 */
int cuda_stream_copy(struct CUstream_st *stream, uint64_t address, const void *start,
		     uint64_t offset, uint64_t size, uint64_t piece);

/* In the scope of a stream: waits until it is idle. */
int cuda_stream_finish(struct CUstream_st *stream);

/* Events: an event is over when the stream has ended its work up to where it was recorded. */
struct CUevent_st;

int cuda_event_new(struct CUevent_st **event);
int cuda_event_record(struct CUevent_st *event, struct CUstream_st *stream);
int cuda_stream_wait_event(struct CUstream_st *stream, struct CUevent_st *event);
/* Whether the stream has reached it, or never will. */
bool cuda_event_is_over(struct CUevent_st *event);
void cuda_event_free(struct CUevent_st *event);

/*
 * Returns a number, never used again, of the registration, import or allocation at an address,
 * the host's or a device's. UINT64_MAX if the driver can't tell. 0 if there is none any more:
 * it ends with its context.
 */
uint64_t cuda_memory_id(uint64_t address);

/* Whether the address still has the memory of that number, as far as the driver tells. */
bool cuda_memory_is(uint64_t address, uint64_t id);

/*
 * Whether the context of that memory has ended, or has had an error after which it runs nothing
 * any more, as far as the driver tells.
 */
bool cuda_context_is_lost(uint64_t address, uint64_t id);

/* In a scope: the device's own memory. */
int cuda_allocate(uint64_t size, uint64_t *address);
void cuda_free(uint64_t address);

/* Whether the driver has what the rest of this part needs: memory of one process in another. */
bool cuda_shares_memory(void);

/* A device's number, which it has in every process. */
#define CUDA_UUID_BYTES 16
int cuda_device_uuid(int device, uint8_t uuid[CUDA_UUID_BYTES]);

/* The handle by which another process opens allocated memory, and may write to it. */
#define CUDA_HANDLE_BYTES 64
int cuda_export_memory(uint64_t address, uint8_t handle[CUDA_HANDLE_BYTES]);

/* In a scope: opens such memory, once in a process, and not in the one that has allocated it. */
int cuda_open_memory(const uint8_t handle[CUDA_HANDLE_BYTES], uint64_t *address);
void cuda_close_memory(uint64_t address);

/* Stores how many bytes of its allocation there are from the address on. */
int cuda_memory_from(uint64_t address, uint64_t *bytes);

/*
 * In a scope: fills the device's memory with zeros, and waits for that. -EOPNOTSUPP if the thread's
 * default stream, which does so, is being captured.
 */
int cuda_clear(uint64_t address, uint64_t size);

/*
 * Bytes of the pieces in which @size bytes are registered: @size itself if one call can
 * register them.
 */
uint64_t cuda_piece_bytes(uint64_t size);

/* In a scope: registers @size bytes, in pieces, as portable and mapped: all pieces or none. */
int cuda_register(void *start, uint64_t size, bool readonly);
int cuda_unregister(void *start, uint64_t size);

/*
 * In a scope: the device address of registered memory. -EFBIG if its pieces have addresses
 * that aren't contiguous.
 */
int cuda_get_address(void *start, uint64_t size, uint64_t *address);

/* An imported dma-buf. */
struct cuda_dmabuf {
	void *memory; /* CUexternalMemory */
	uint64_t address;
};

/* In a scope: maps @size bytes of a writable dma-buf, from @offset on. The caller keeps @fd. */
int cuda_import_dmabuf(int fd, uint64_t offset, uint64_t size, struct cuda_dmabuf *dmabuf);
void cuda_release_dmabuf(const struct cuda_dmabuf *dmabuf);

#endif /* TSHARE_CUDA_DRIVER_H */
