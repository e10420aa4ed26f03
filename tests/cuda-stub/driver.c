// SPDX-License-Identifier: MIT
/* The driver itself: its start, its version, and its results' names. */
#define _GNU_SOURCE 1
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

static const struct {
	int result;
	const char *name;
} result_names[] = {
	{ SUCCESS, "CUDA_SUCCESS" },
	{ INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE" },
	{ OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY" },
	{ NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED" },
	{ 4, "CUDA_ERROR_DEINITIALIZED" },
	{ 34, "CUDA_ERROR_STUB_LIBRARY" },
	{ NO_DEVICE, "CUDA_ERROR_NO_DEVICE" },
	{ INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE" },
	{ INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT" },
	{ 304, "CUDA_ERROR_OPERATING_SYSTEM" },
	{ INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE" },
	{ NOT_FOUND, "CUDA_ERROR_NOT_FOUND" },
	{ NOT_READY, "CUDA_ERROR_NOT_READY" },
	{ 700, "CUDA_ERROR_ILLEGAL_ADDRESS" },
	{ CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED" },
	{ ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED" },
	{ NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED" },
	{ NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED" },
	{ NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED" },
	{ 803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" },
	{ 999, "CUDA_ERROR_UNKNOWN" },
};

atomic_int initialised_by;
int driver_version;

void driver_reset(void)
{
	driver_version = 13000;
}

void stub_set_version(int version)
{
	pthread_mutex_lock(&lock);
	driver_version = version;
	pthread_mutex_unlock(&lock);
}

EXPORT int cuInit(unsigned int flags)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");

	BEGIN(cuInit, NOTHING);
	if (flags)
		return end(INVALID_VALUE);
	if (!device_count || (visible && (!*visible || !strcmp(visible, "-1"))))
		return end(NO_DEVICE);
	if (atomic_exchange(&initialised_by, getpid()) != getpid())
		atexit(streams_await_exit);
	return end(SUCCESS);
}

EXPORT int cuDriverGetVersion(int *version)
{
	BEGIN(cuDriverGetVersion, NOTHING);
	*version = driver_version;
	return end(SUCCESS);
}

EXPORT int cuGetErrorName(int result, const char **name)
{
	size_t i;

	BEGIN(cuGetErrorName, NOTHING);
	for (i = 0; i < sizeof(result_names) / sizeof(result_names[0]); i++) {
		if (result_names[i].result != result)
			continue;
		*name = result_names[i].name;
		return end(SUCCESS);
	}
	*name = NULL;
	return end(INVALID_VALUE);
}
