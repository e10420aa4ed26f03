// SPDX-License-Identifier: MIT
/* Calls of the driver: they are counted, checked, and fail where a test wants it. */
#define _GNU_SOURCE 1
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

struct function {
	const char *name;
	atomic_uint calls;
	unsigned int fail_in; /* calls until it fails; 0 for none */
	bool fail_always;
	int result;
	void (*hook)(void *data);
	void *hook_data;
};

#define NAME(base, symbol, version) { .name = #base },

static struct function functions[] = { FUNCTIONS(NAME) };
static struct function any; /* for failures: one of those that make something */

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char complaint[256];

/* Control */

int function_of(const char *name)
{
	int i;

	for (i = 0; i < N_FUNCTIONS; i++)
		if (!strcmp(functions[i].name, name))
			return i;
	fprintf(stderr, "stub: there is no function %s\n", name);
	abort();
}

void calls_reset(void)
{
	int i;

	for (i = 0; i < N_FUNCTIONS; i++) {
		atomic_store(&functions[i].calls, 0);
		functions[i].fail_in = 0;
		functions[i].fail_always = false;
		functions[i].hook = NULL;
	}
	any = (struct function){ 0 };
	complaint[0] = '\0';
}

void stub_fail(const char *function, unsigned int nth, int result)
{
	struct function *failing = function ? &functions[function_of(function)] : &any;

	pthread_mutex_lock(&lock);
	failing->fail_in = nth;
	failing->fail_always = !nth;
	failing->result = result;
	pthread_mutex_unlock(&lock);
}

void stub_set_hook(const char *function, void (*hook)(void *data), void *data)
{
	struct function *hooked = &functions[function_of(function)];

	pthread_mutex_lock(&lock);
	hooked->hook = hook;
	hooked->hook_data = data;
	pthread_mutex_unlock(&lock);
}

unsigned int stub_calls(const char *function)
{
	unsigned int calls = 0;
	int i;

	if (function)
		return atomic_load(&functions[function_of(function)].calls);
	for (i = 0; i < N_FUNCTIONS; i++)
		calls += atomic_load(&functions[i].calls);
	return calls;
}

const char *stub_complaint(void)
{
	bool complained;

	pthread_mutex_lock(&lock);
	complained = complaint[0];
	pthread_mutex_unlock(&lock);
	return complained ? complaint : NULL;
}

/* Calls */

void complain(const char *format, ...)
{
	va_list args;

	if (complaint[0])
		return;
	va_start(args, format);
	vsnprintf(complaint, sizeof(complaint), format, args);
	va_end(args);
}

static bool undoes(const struct function *function)
{
	switch (function - functions) {
	case F_cuDevicePrimaryCtxRelease:
	case F_cuCtxPopCurrent:
	case F_cuMemHostUnregister:
	case F_cuDestroyExternalMemory:
	case F_cuMemFree:
	case F_cuIpcCloseMemHandle:
	case F_cuStreamSynchronize:
	case F_cuEventQuery:
	case F_cuEventDestroy:
	case F_cuThreadExchangeStreamCaptureMode:
		return true;
	default:
		return false;
	}
}

/* CUDA calls some functions "potentially unsafe" for captures, but doesn't list them. */
static bool is_unsafe(const struct function *function)
{
	switch (function - functions) {
	case F_cuDevicePrimaryCtxRetain:
	case F_cuDevicePrimaryCtxRelease:
	case F_cuMemHostRegister:
	case F_cuMemHostUnregister:
	case F_cuImportExternalMemory:
	case F_cuExternalMemoryGetMappedBuffer:
	case F_cuDestroyExternalMemory:
	case F_cuMemAlloc:
	case F_cuMemFree:
	case F_cuIpcGetMemHandle:
	case F_cuIpcOpenMemHandle:
	case F_cuIpcCloseMemHandle:
	case F_cuStreamSynchronize:
	case F_cuEventQuery:
		return true;
	default:
		return false;
	}
}

static bool fails(struct function *function)
{
	return function->fail_always || (function->fail_in && !--function->fail_in);
}

static int check(struct function *function, enum needs needs)
{
	int process = atomic_load(&initialised_by);

	if (in_host_function()) {
		complain("%s: in a host function", function->name);
		return NOT_PERMITTED;
	}
	if (fails(function))
		return function->result;
	if (!undoes(function) && fails(&any))
		return any.result;
	if (is_unsafe(function) && capture_forbids()) {
		complain("%s: ends the capture of a stream", function->name);
		return CAPTURE_UNSUPPORTED;
	}
	if (needs != NOTHING && !process) {
		complain("%s: before cuInit", function->name);
		return NOT_INITIALIZED;
	}
	if (needs != CONTEXT)
		return SUCCESS;
	if (!current())
		return INVALID_CONTEXT;
	return current()->alive ? SUCCESS : CONTEXT_IS_DESTROYED;
}

int begin(int index, enum needs needs)
{
	struct function *function = &functions[index];
	int process = atomic_load(&initialised_by), result;
	void (*hook)(void *data);
	void *data;

	atomic_fetch_add(&function->calls, 1);
	/* The lock may be held by a thread that the child doesn't have. */
	if (process && process != getpid())
		return NOT_INITIALIZED;
	pthread_mutex_lock(&lock);
	hook = function->hook;
	data = function->hook_data;
	if (hook) {
		pthread_mutex_unlock(&lock);
		hook(data);
		pthread_mutex_lock(&lock);
	}
	result = check(function, needs);
	if (result)
		pthread_mutex_unlock(&lock);
	return result;
}

int end(int result)
{
	pthread_mutex_unlock(&lock);
	return result;
}
