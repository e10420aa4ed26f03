// SPDX-License-Identifier: MIT
/* What the driver knows of an address, whichever kind of memory it leads to. */
#include "internal.h"

/* Attributes of pointers */
enum {
	POINTER_CONTEXT = 1,
	POINTER_TYPE = 2,
	POINTER_DEVICE_ADDRESS = 3,
	POINTER_HOST_ADDRESS = 4,
	POINTER_ID = 7,
	POINTER_DEVICE = 9,
	POINTER_RANGE_START = 11,
	POINTER_RANGE_SIZE = 12,
};

static bool has_ids;
static uint64_t last_id;

void pointers_reset(void)
{
	has_ids = true;
}

void stub_set_ids(bool supported)
{
	pthread_mutex_lock(&lock);
	has_ids = supported;
	pthread_mutex_unlock(&lock);
}

struct pointed pointed_on_device(struct context *context, uint64_t address, uint64_t id,
				 const void *start, size_t bytes)
{
	return (struct pointed){
		.context = context,
		.type = TYPE_DEVICE,
		.address = address,
		.id = id,
		.start = (uintptr_t)start,
		.bytes = bytes,
	};
}

uint64_t new_id(void)
{
	return ++last_id;
}

static int pointer_attribute(void *data, int attribute, uint64_t address)
{
	struct pointed found;

	if (!registered_find(address, &found) && !external_find(address, &found) &&
	    !memory_find(address, &found) && !ipc_find(address, &found))
		return INVALID_VALUE;
	switch (attribute) {
	case POINTER_CONTEXT:
		*(struct context **)data = found.context;
		return SUCCESS;
	case POINTER_TYPE:
		*(unsigned int *)data = found.type;
		return SUCCESS;
	case POINTER_DEVICE_ADDRESS:
		*(uint64_t *)data = found.address;
		return SUCCESS;
	case POINTER_HOST_ADDRESS:
		if (!found.host)
			return INVALID_VALUE;
		*(uintptr_t *)data = found.host;
		return SUCCESS;
	case POINTER_ID:
		if (!has_ids)
			return INVALID_VALUE;
		*(uint64_t *)data = found.id;
		return SUCCESS;
	case POINTER_DEVICE:
		*(int *)data = found.context->device;
		return SUCCESS;
	case POINTER_RANGE_START:
		*(uint64_t *)data = found.start;
		return SUCCESS;
	case POINTER_RANGE_SIZE:
		*(size_t *)data = found.bytes;
		return SUCCESS;
	default:
		return INVALID_VALUE;
	}
}

EXPORT int cuPointerGetAttribute(void *data, int attribute, unsigned long long address)
{
	BEGIN(cuPointerGetAttribute, INIT);
	return end(pointer_attribute(data, attribute, address));
}
