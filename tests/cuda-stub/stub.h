/* SPDX-License-Identifier: MIT */
/*
 * Control of the stub of CUDA's driver, see stub.c. C tests link the stub; others dlopen()
 * it by its path before they load what they test. Functions are named without the
 * suffixes _v2 of their symbols.
 */
#ifndef TSHARE_TESTS_CUDA_STUB_H
#define TSHARE_TESTS_CUDA_STUB_H

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(default)

/*
 * Forgets what the driver holds, calls, failures, hooks and complaints, and sets version,
 * devices and attributes to those of an H200. What cuInit() has done stays, as the
 * library calls it once.
 */
void stub_reset(void);

void stub_set_version(int version);
void stub_set_devices(int count);

/* Of one device, or of all if @device is -1. */
void stub_set_attribute(int device, int attribute, int value);

/* The first byte of a device's number, which is another for each device of the machine. */
void stub_set_uuid(int device, unsigned char first);

/* Whether cuImportExternalMemory() takes dma-bufs; it does. */
void stub_set_dmabuf(bool supported);

/* Whether memory has a buffer id; it has. The driver's documentation promises that for some alone. */
void stub_set_ids(bool supported);

/* Whether memory with PROT_NONE can be registered, so that tests can use large ranges. */
void stub_allow_inaccessible(bool allowed);

/* cuGetProcAddress() doesn't find the function. */
void stub_hide(const char *function);

/*
 * The @nth next call fails with @result, 1 for the next one; each if @nth is 0. With NULL
 * for @function, calls of all functions count that don't undo something.
 */
void stub_fail(const char *function, unsigned int nth, int result);

/* @hook is called in @function before it does anything, in the calling thread; NULL ends that. */
void stub_set_hook(const char *function, void (*hook)(void *data), void *data);

/* Whether the work of a stream goes into a graph, in global mode; with its context current. */
void stub_set_capturing(void *stream, bool capturing);

/* How often @function was called in this process; all functions if it is NULL. */
unsigned int stub_calls(const char *function);

/* Registrations, and whether one of them has exactly these bytes. */
unsigned int stub_registrations(void);
bool stub_is_registered(const void *start, size_t bytes);

/* The flags of the registration that holds the address; 0 if there is none. */
unsigned int stub_flags(const void *address);

/* Pages that were not in the page table when they were registered. */
size_t stub_unpopulated(void);

/* Streams that have work. */
unsigned int stub_busy(void);

/* References to a device's primary context. */
unsigned int stub_references(int device);

/*
 * Names all that is left: registrations, imports, contexts, work of streams, memory of devices and
 * of other processes, events. NULL if nothing is.
 */
const char *stub_left(void);

/* The first call that the real driver forbids and needn't refuse; NULL if there was none. */
const char *stub_complaint(void);

#pragma GCC visibility pop

#endif /* TSHARE_TESTS_CUDA_STUB_H */
