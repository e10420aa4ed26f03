// SPDX-License-Identifier: MIT
/*
 * A stub of NVIDIA's driver, libcuda.so.1, for tests on machines that have none. It has
 * neither a device nor device memory: what it calls a device address is one of this
 * process. It keeps books of contexts, registrations, imports, allocations and events, and is
 * stricter than the driver: see stub.h for how tests control it, and internal.h for its files.
 *
 * The environment controls it where a test can't call it. TSHARE_STUB_CUDA is a list such
 * as "cuInit=999,version=10020,devices=0,hide=cuMemHostRegister": a function that fails,
 * the driver's version, the number of devices, a function that isn't there; "uuid=7" is the first
 * byte of device 0's number.
 */
#define _GNU_SOURCE 1
#include <stdlib.h>
#include <string.h>

#include "internal.h"

void stub_reset(void)
{
	pthread_mutex_lock(&lock);
	calls_reset();
	driver_reset();
	symbols_reset();
	pointers_reset();
	external_reset();
	registered_reset();
	streams_reset();
	memory_reset();
	ipc_reset();
	events_reset();
	contexts_reset();
	pthread_mutex_unlock(&lock);
}

const char *stub_left(void)
{
	static char text[128];

	text[0] = '\0';
	pthread_mutex_lock(&lock);
	registered_left(text, sizeof(text));
	external_left(text, sizeof(text));
	contexts_left(text, sizeof(text));
	streams_left(text, sizeof(text));
	memory_left(text, sizeof(text));
	ipc_left(text, sizeof(text));
	events_left(text, sizeof(text));
	pthread_mutex_unlock(&lock);
	return text[0] ? text : NULL;
}

__attribute__((constructor)) static void read_environment(void)
{
	char *list = strdup(getenv("TSHARE_STUB_CUDA") ?: ""), *item, *value, *rest;

	stub_reset();
	for (item = strtok_r(list, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
		value = strchr(item, '=');
		if (!value)
			abort();
		*value++ = '\0';
		if (!strcmp(item, "version"))
			stub_set_version(atoi(value));
		else if (!strcmp(item, "devices"))
			stub_set_devices(atoi(value));
		else if (!strcmp(item, "uuid"))
			stub_set_uuid(0, atoi(value));
		else if (!strcmp(item, "hide"))
			stub_hide(value);
		else
			stub_fail(item, 0, atoi(value));
	}
	free(list);
}
