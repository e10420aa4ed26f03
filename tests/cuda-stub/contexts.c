// SPDX-License-Identifier: MIT
/* Devices and their contexts, which threads have stacks of. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <string.h>

#include "internal.h"

#define STUB_NAME "tshare's stub, no real device"

#define MAX_DEVICES    8
#define MAX_ATTRIBUTES 256
#define MAX_CONTEXTS   256
#define MAX_STACK      16

int device_count;
static int attributes[MAX_DEVICES][MAX_ATTRIBUTES];
static struct context primaries[MAX_DEVICES], created[MAX_CONTEXTS];
static unsigned int references[MAX_DEVICES], created_count;

static _Thread_local struct context *stack[MAX_STACK];
static _Thread_local unsigned int depth;

/* Control */

void contexts_reset(void)
{
	static const int supported[] = { 19, 41, 91, 99, 113, 122, 124 };
	size_t i, device;

	device_count = 1;
	memset(attributes, 0, sizeof(attributes));
	for (device = 0; device < MAX_DEVICES; device++)
		for (i = 0; i < sizeof(supported) / sizeof(supported[0]); i++)
			attributes[device][supported[i]] = 1;
	memset(references, 0, sizeof(references));
	memset(primaries, 0, sizeof(primaries));
	memset(created, 0, sizeof(created));
	created_count = 0;
	depth = 0;
}

void stub_set_devices(int count)
{
	pthread_mutex_lock(&lock);
	device_count = count;
	pthread_mutex_unlock(&lock);
}

void stub_set_attribute(int device, int attribute, int value)
{
	int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < MAX_DEVICES; i++)
		if (device < 0 || device == i)
			attributes[i][attribute] = value;
	pthread_mutex_unlock(&lock);
}

unsigned int stub_references(int device)
{
	unsigned int count;

	pthread_mutex_lock(&lock);
	count = references[device];
	pthread_mutex_unlock(&lock);
	return count;
}

void contexts_left(char *text, size_t size)
{
	int i;

	for (i = 0; i < MAX_DEVICES; i++)
		if (references[i])
			snprintf(text, size, "%u references to device %d's primary context",
				 references[i], i);
	if (depth)
		snprintf(text, size, "%u contexts on the thread's stack", depth);
}

/* Devices */

static int device_exists(int device)
{
	return device >= 0 && device < device_count;
}

int device_attribute(int device, int attribute)
{
	return attributes[device][attribute];
}

EXPORT int cuDeviceGet(int *device, int ordinal)
{
	BEGIN(cuDeviceGet, INIT);
	if (!device_exists(ordinal))
		return end(INVALID_DEVICE);
	*device = ordinal;
	return end(SUCCESS);
}

EXPORT int cuDeviceGetCount(int *count)
{
	BEGIN(cuDeviceGetCount, INIT);
	*count = device_count;
	return end(SUCCESS);
}

EXPORT int cuDeviceGetName(char *name, int size, int device)
{
	BEGIN(cuDeviceGetName, INIT);
	if (!device_exists(device))
		return end(INVALID_DEVICE);
	snprintf(name, size, "%s", STUB_NAME);
	return end(SUCCESS);
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	BEGIN(cuDeviceGetAttribute, INIT);
	if (!device_exists(device))
		return end(INVALID_DEVICE);
	if (attribute <= 0 || attribute >= MAX_ATTRIBUTES)
		return end(INVALID_VALUE);
	*value = attributes[device][attribute];
	return end(SUCCESS);
}

/* Contexts */

struct context *current(void)
{
	return depth ? stack[depth - 1] : NULL;
}

static void context_end(struct context *context)
{
	context->alive = false;
	streams_end(context);
	registered_end(context);
	external_end(context);
	memory_end(context);
	ipc_end(context);
	events_end(context);
}

EXPORT int cuDevicePrimaryCtxRetain(struct context **context, int device)
{
	BEGIN(cuDevicePrimaryCtxRetain, INIT);
	if (!device_exists(device))
		return end(INVALID_DEVICE);
	references[device]++;
	primaries[device] = (struct context){ .device = device, .primary = true, .alive = true };
	*context = &primaries[device];
	return end(SUCCESS);
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
	BEGIN(cuDevicePrimaryCtxRelease, INIT);
	if (!device_exists(device))
		return end(INVALID_DEVICE);
	if (!references[device]) {
		complain("cuDevicePrimaryCtxRelease: device %d's was not retained", device);
		return end(INVALID_CONTEXT);
	}
	if (!--references[device])
		context_end(&primaries[device]);
	return end(SUCCESS);
}

EXPORT int cuDevicePrimaryCtxReset_v2(int device)
{
	BEGIN(cuDevicePrimaryCtxReset, INIT);
	if (!device_exists(device))
		return end(INVALID_DEVICE);
	references[device] = 0;
	context_end(&primaries[device]);
	return end(SUCCESS);
}

EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned int *flags, int *active)
{
	BEGIN(cuDevicePrimaryCtxGetState, INIT);
	if (!device_exists(device))
		return end(INVALID_DEVICE);
	*flags = 0;
	*active = references[device] > 0;
	return end(SUCCESS);
}

static int push(struct context *context)
{
	if (!context->alive) {
		complain("a context that is gone was made current");
		return CONTEXT_IS_DESTROYED;
	}
	if (depth == MAX_STACK)
		return INVALID_VALUE;
	stack[depth++] = context;
	return SUCCESS;
}

EXPORT int cuCtxCreate_v2(struct context **context, unsigned int flags, int device)
{
	BEGIN(cuCtxCreate, INIT);
	if (flags || !device_exists(device))
		return end(flags ? INVALID_VALUE : INVALID_DEVICE);
	if (created_count == MAX_CONTEXTS)
		return end(OUT_OF_MEMORY);
	*context = &created[created_count++];
	**context = (struct context){ .device = device, .alive = true };
	return end(push(*context));
}

EXPORT int cuCtxDestroy_v2(struct context *context)
{
	BEGIN(cuCtxDestroy, INIT);
	if (!context || context->primary || !context->alive)
		return end(INVALID_CONTEXT);
	context_end(context);
	if (current() == context)
		depth--;
	return end(SUCCESS);
}

EXPORT int cuCtxPushCurrent_v2(struct context *context)
{
	BEGIN(cuCtxPushCurrent, INIT);
	return end(context ? push(context) : INVALID_CONTEXT);
}

EXPORT int cuCtxPopCurrent_v2(struct context **context)
{
	BEGIN(cuCtxPopCurrent, INIT);
	if (!depth) {
		complain("cuCtxPopCurrent: the stack is empty");
		return end(INVALID_CONTEXT);
	}
	if (context)
		*context = current();
	depth--;
	return end(SUCCESS);
}

EXPORT int cuCtxSetCurrent(struct context *context)
{
	BEGIN(cuCtxSetCurrent, INIT);
	if (depth)
		depth--;
	return end(context ? push(context) : SUCCESS);
}

EXPORT int cuCtxGetCurrent(struct context **context)
{
	BEGIN(cuCtxGetCurrent, INIT);
	*context = current();
	return end(SUCCESS);
}

EXPORT int cuCtxGetDevice(int *device)
{
	BEGIN(cuCtxGetDevice, CONTEXT);
	*device = current()->device;
	return end(SUCCESS);
}
