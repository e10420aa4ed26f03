/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA's driver, libcuda.so.1, which is loaded when it is first needed. lib/cuda.c alone
 * knows CUDA's names and numbers. Functions that return an int return the driver's result
 * (CUresult), 0 for success, unless they say otherwise; cuda_errno() and cuda_fail() turn
 * it into an errno.
 *
 * A forked child can't use the driver that its parent has started: cuda_start() returns
 * -EOPNOTSUPP there, and cuda_is_forked() true. Nothing else here may be called then, nor
 * before cuda_start() has returned 0.
 */
#ifndef TSHARE_CUDA_H
#define TSHARE_CUDA_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Loads and initialises the driver, unless that was done. 0, or -EOPNOTSUPP with a text of
 * what is missing; a later call then tries again.
 */
int cuda_start(void);

bool cuda_is_forked(void);

/* As cuDriverGetVersion() has it. */
int cuda_driver_version(void);

int cuda_count_devices(int *count);

/* The device of the thread's current context; 0 if it has none. A device is its ordinal. */
int cuda_current_device(void);

bool cuda_reads_pageable_memory(int device);
bool cuda_registers_readonly(int device);

/*
 * A stretch of code with a context of @device current: the caller's own, or the primary one,
 * which is retained for as long. Also the caller's is retained if it is the primary one.
 *
 * What is done there has no part in captures of streams, and leaves them whole: allocating or
 * registering memory would end those of other threads, too, in the mode that is the default.
 */
struct cuda_scope {
	int device;
	int capture_mode; /* the thread's before */
	bool retained;	  /* the primary context is, by this scope */
	bool pushed;
	bool created; /* there was no primary context before */
};

int cuda_enter(struct cuda_scope *scope, int device);

/*
 * The same to undo what was done in a scope: any context that is current serves, and that
 * of the earlier scope may be gone.
 */
int cuda_enter_to_undo(struct cuda_scope *scope, int device);

/*
 * The scope of the context that the device's memory at @address was allocated in. The driver
 * names it: a thread without a context needs no other one to ask for an event of it.
 */
int cuda_enter_memory(struct cuda_scope *scope, uint64_t address);

/* Makes current again what was so before. */
void cuda_leave(struct cuda_scope *scope);

/*
 * Whether the scope has retained the primary context. If so that is the caller's from now
 * on, who has to call cuda_release().
 */
bool cuda_keep_context(struct cuda_scope *scope);
void cuda_release(int device);

/* Retains the scope's context, too, if it is the primary one and is not retained yet. */
void cuda_retain_context(struct cuda_scope *scope);

/* In a scope: what its context can be told from others by. */
int cuda_current_context(const void **context);

/*
 * Streams, by the driver's handle. Each device has two default ones, whose handles are 1
 * and 2.
 */
struct CUstream_st;

bool cuda_stream_is_default(const struct CUstream_st *stream);

/*
 * The scope of a stream's own context. That of a default stream is the current one if it is
 * of @device, and else the device's primary one; -ENOENT if that has none.
 */
int cuda_enter_stream(struct cuda_scope *scope, struct CUstream_st *stream, int device);

/* In the scope of a stream: whether its work goes into a graph. */
int cuda_stream_is_capturing(struct CUstream_st *stream, bool *capturing);

/* Whether cuda_stream_wait() works. */
bool cuda_streams_wait_for_values(int device);

/* In the scope of a stream: has it wait until *@address is at least @value. */
int cuda_stream_wait(struct CUstream_st *stream, uint64_t address, uint64_t value);

/* In the scope of a stream: has it call @function, which must not use CUDA. */
int cuda_stream_call(struct CUstream_st *stream, void (*function)(void *data), void *data);

/*
 * In the scope of a stream: has it copy the @size bytes from @offset on of what is mapped at
 * @start, and may be registered in pieces of @piece bytes, to the device. A failure may leave
 * some of the copies on the stream.
 */
int cuda_stream_copy(struct CUstream_st *stream, uint64_t address, const void *start,
		     uint64_t offset, uint64_t size, uint64_t piece);

/* In the scope of a stream: waits for all that is on it. */
int cuda_stream_finish(struct CUstream_st *stream);

/* Events: what was put on a stream before one was recorded there can be waited for. */
struct CUevent_st;

int cuda_event_new(struct CUevent_st **event);
int cuda_event_record(struct CUevent_st *event, struct CUstream_st *stream);
int cuda_stream_wait_event(struct CUstream_st *stream, struct CUevent_st *event);
/* Whether the stream has come to it, or won't any more. */
bool cuda_event_is_over(struct CUevent_st *event);
void cuda_event_free(struct CUevent_st *event);

/*
 * A number for the registration, import or allocation that has the address, a host's or a
 * device's: never the same again, or UINT64_MAX where the driver can't tell. 0 if there is
 * none: it goes with the context that it was made in.
 */
uint64_t cuda_memory_id(uint64_t address);

/* Whether the address still has the memory of that number, as far as is known. */
bool cuda_memory_is(uint64_t address, uint64_t id);

/* In a scope: memory of the device's own. */
int cuda_allocate(uint64_t size, uint64_t *address);
void cuda_free(uint64_t address);

/*
 * Bytes of the pieces in which @size bytes are registered: @size itself where one call can
 * take that.
 */
uint64_t cuda_piece_bytes(uint64_t size);

/* In a scope: registers @size bytes, in pieces, as portable and mapped. All of it or none. */
int cuda_register(void *start, uint64_t size, bool readonly);
int cuda_unregister(void *start, uint64_t size);

/*
 * In a scope: the device address of registered memory. -EFBIG if its pieces have addresses
 * that aren't contiguous.
 */
int cuda_get_address(void *start, uint64_t size, uint64_t *address);

/* A dma-buf as a device sees it. */
struct cuda_dmabuf {
	void *memory; /* CUexternalMemory */
	uint64_t address;
};

/* In a scope: maps @size bytes of a writable dma-buf, from @offset on. The caller keeps @fd. */
int cuda_import_dmabuf(int fd, uint64_t offset, uint64_t size, struct cuda_dmabuf *dmabuf);
void cuda_release_dmabuf(const struct cuda_dmabuf *dmabuf);

/* The errno for a result, which may be one already, and the name or text of either. */
int cuda_errno(int result);
const char *cuda_result_name(int result);

/* Stores "@what: <name of the result>" as the error, and returns its errno. */
int cuda_fail(int result, const char *what);

#endif /* TSHARE_CUDA_H */
