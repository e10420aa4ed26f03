// SPDX-License-Identifier: MIT
/* Registered memory: the process's own, which devices reach. */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

#define PORTABLE   1U
#define DEVICE_MAP 2U
#define READ_ONLY  8U

/* Device addresses lie from here on where they differ from the host's. */
#define DEVICE_OFFSET (1ULL << 47)

/* From this size on newer drivers refuse to register memory in one call. */
#define REGISTER_LIMIT (512ULL << 30)

struct registration {
	uintptr_t start;
	size_t bytes;
	unsigned int flags;
	struct context *context; /* NULL for an unused record */
	uint64_t id;
};

static struct registration registrations[MAX_RECORDS];
static size_t unpopulated;
static bool takes_inaccessible;

/* Control */

void registered_reset(void)
{
	memset(registrations, 0, sizeof(registrations));
	unpopulated = 0;
	takes_inaccessible = false;
}

void stub_allow_inaccessible(bool allowed)
{
	pthread_mutex_lock(&lock);
	takes_inaccessible = allowed;
	pthread_mutex_unlock(&lock);
}

static unsigned int count_registrations(void)
{
	unsigned int count = 0;
	int i;

	for (i = 0; i < MAX_RECORDS; i++)
		count += !!registrations[i].context;
	return count;
}

unsigned int stub_registrations(void)
{
	unsigned int count;

	pthread_mutex_lock(&lock);
	count = count_registrations();
	pthread_mutex_unlock(&lock);
	return count;
}

bool stub_is_registered(const void *start, size_t bytes)
{
	bool found = false;
	int i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < MAX_RECORDS; i++)
		if (registrations[i].context && registrations[i].start == (uintptr_t)start)
			found = registrations[i].bytes == bytes;
	pthread_mutex_unlock(&lock);
	return found;
}

static struct registration *find_registration(uintptr_t address)
{
	int i;

	for (i = 0; i < MAX_RECORDS; i++)
		if (registrations[i].context &&
		    address - registrations[i].start < registrations[i].bytes)
			return &registrations[i];
	return NULL;
}

unsigned int stub_flags(const void *address)
{
	struct registration *found;
	unsigned int flags;

	pthread_mutex_lock(&lock);
	found = find_registration((uintptr_t)address);
	flags = found ? found->flags : 0;
	pthread_mutex_unlock(&lock);
	return flags;
}

size_t stub_unpopulated(void)
{
	size_t bytes;

	pthread_mutex_lock(&lock);
	bytes = unpopulated;
	pthread_mutex_unlock(&lock);
	return bytes;
}

void registered_left(char *text, size_t size)
{
	unsigned int count = count_registrations();

	if (count)
		snprintf(text, size, "%u registrations", count);
}

/* Registering */

void registered_end(const struct context *context)
{
	int i;

	for (i = 0; i < MAX_RECORDS; i++)
		if (registrations[i].context == context)
			registrations[i].context = NULL;
}

bool registered_is_mapped(uintptr_t start, size_t bytes, bool writable)
{
	uintptr_t from, to, position = start, stop = start + bytes;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512], access[5];

	if (!maps)
		return false;
	while (position < stop && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, access) != 3)
			continue;
		if (from > position)
			break;
		if (to <= position)
			continue;
		if (!takes_inaccessible && (access[0] != 'r' || (writable && access[1] != 'w')))
			break;
		position = to;
	}
	fclose(maps);
	return position >= stop;
}

static size_t count_unpopulated(uintptr_t start, size_t bytes)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	size_t page = sysconf(_SC_PAGESIZE), i, count = 0;
	uint64_t entry;

	for (i = 0; fd >= 0 && !takes_inaccessible && i < bytes / page; i++)
		if (pread(fd, &entry, sizeof(entry), (start / page + i) * sizeof(entry)) ==
		    sizeof(entry))
			count += !(entry >> 63);
	close(fd);
	return count;
}

static int register_range(uintptr_t start, size_t bytes, unsigned int flags)
{
	struct registration *unused = NULL;
	int i;

	if (!start || !bytes || bytes > UINTPTR_MAX - start)
		return INVALID_VALUE;
	if (flags & ~(PORTABLE | DEVICE_MAP | READ_ONLY)) {
		complain("cuMemHostRegister: flags %#x", flags);
		return INVALID_VALUE;
	}
	if (bytes >= REGISTER_LIMIT)
		return OUT_OF_MEMORY;
	if (flags & READ_ONLY && !device_attribute(current()->device, ATTRIBUTE_READ_ONLY_REGISTER))
		return NOT_SUPPORTED;
	for (i = 0; i < MAX_RECORDS; i++) {
		if (!registrations[i].context)
			unused = &registrations[i];
		else if (start < registrations[i].start + registrations[i].bytes &&
			 registrations[i].start < start + bytes)
			return ALREADY_REGISTERED;
	}
	if (!registered_is_mapped(start, bytes, !(flags & READ_ONLY)))
		return INVALID_VALUE;
	if (!unused)
		return OUT_OF_MEMORY;
	unpopulated += count_unpopulated(start, bytes);
	*unused = (struct registration){ start, bytes, flags, current(), new_id() };
	return SUCCESS;
}

EXPORT int cuMemHostRegister_v2(void *start, size_t bytes, unsigned int flags)
{
	BEGIN(cuMemHostRegister, CONTEXT);
	return end(register_range((uintptr_t)start, bytes, flags));
}

EXPORT int cuMemHostUnregister(void *start)
{
	struct registration *found;

	BEGIN(cuMemHostUnregister, CONTEXT);
	found = find_registration((uintptr_t)start);
	if (!found || found->start != (uintptr_t)start) {
		complain("cuMemHostUnregister: %p is not registered", start);
		return end(NOT_REGISTERED);
	}
	if (!registered_is_mapped(found->start, found->bytes, false))
		complain("cuMemHostUnregister: %p is not mapped any more", start);
	found->context = NULL;
	return end(SUCCESS);
}

/* Addresses that differ from the host's are contiguous for no two registrations. */
static uint64_t device_address(const struct registration *found, uintptr_t host)
{
	if (device_attribute(found->context->device, ATTRIBUTE_SAME_ADDRESS))
		return host;
	return host + DEVICE_OFFSET + (found - registrations) * REGISTER_LIMIT;
}

static struct registration *find_registration_by_device(uint64_t address)
{
	int i;

	for (i = 0; i < MAX_RECORDS; i++)
		if (registrations[i].context &&
		    address - device_address(&registrations[i], registrations[i].start) <
			    registrations[i].bytes)
			return &registrations[i];
	return NULL;
}

EXPORT int cuMemHostGetDevicePointer_v2(unsigned long long *address, void *host, unsigned int flags)
{
	struct registration *found;

	BEGIN(cuMemHostGetDevicePointer, CONTEXT);
	found = find_registration((uintptr_t)host);
	if (flags || !found || !(found->flags & DEVICE_MAP) ||
	    (!(found->flags & PORTABLE) && found->context != current()))
		return end(INVALID_VALUE);
	*address = device_address(found, (uintptr_t)host);
	return end(SUCCESS);
}

EXPORT int cuMemHostGetFlags(unsigned int *flags, void *host)
{
	struct registration *found;

	BEGIN(cuMemHostGetFlags, CONTEXT);
	found = find_registration((uintptr_t)host);
	if (!found)
		return end(INVALID_VALUE);
	*flags = found->flags;
	return end(SUCCESS);
}

bool registered_find(uint64_t address, struct pointed *found)
{
	const struct registration *of = find_registration(address);
	uintptr_t host = address;

	if (!of) {
		of = find_registration_by_device(address);
		if (!of)
			return false;
		host = of->start + (address - device_address(of, of->start));
	}
	*found = (struct pointed){
		.context = of->context,
		.type = TYPE_HOST,
		.address = device_address(of, host),
		.host = host,
		.id = of->id,
		.start = device_address(of, of->start),
		.bytes = of->bytes,
	};
	return true;
}
