// SPDX-License-Identifier: MIT
/*
 * Memory of devices: of this process in truth, so that tests can read it. A copy is made when
 * the stream comes to it, also where a driver may copy by a staging buffer at once.
 */
#define _GNU_SOURCE 1
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

struct allocation {
	void *start;
	size_t bytes;
	struct context *context; /* NULL for an unused record */
	uint64_t id;
	int fd; /* of memory that other processes may open; else 0 */
};

static struct allocation allocations[MAX_RECORDS];

/* Control */

static void release(struct allocation *allocation)
{
	munmap(allocation->start, allocation->bytes);
	if (allocation->fd) {
		if (ipc_is_open(allocation->fd))
			complain("memory is freed that another process has open");
		close(allocation->fd);
	}
	*allocation = (struct allocation){ 0 };
}

void memory_end(const struct context *context)
{
	int i;

	for (i = 0; i < MAX_RECORDS; i++)
		if (allocations[i].context && allocations[i].context == context)
			release(&allocations[i]);
}

void memory_reset(void)
{
	int i;

	for (i = 0; i < MAX_RECORDS; i++)
		if (allocations[i].context)
			release(&allocations[i]);
}

void memory_left(char *text, size_t size)
{
	int i;

	for (i = 0; i < MAX_RECORDS; i++)
		if (allocations[i].context)
			snprintf(text, size, "%zu bytes of a device's memory",
				 allocations[i].bytes);
}

/* Allocating */

static struct allocation *find_allocation(uint64_t address)
{
	int i;

	for (i = 0; i < MAX_RECORDS; i++)
		if (allocations[i].context &&
		    address - (uintptr_t)allocations[i].start < allocations[i].bytes)
			return &allocations[i];
	return NULL;
}

bool memory_find(uint64_t address, struct pointed *found)
{
	const struct allocation *of = find_allocation(address);

	if (!of)
		return false;
	*found = pointed_on_device(of->context, address, of->id, of->start, of->bytes);
	return true;
}

static int allocate(unsigned long long *address, size_t bytes)
{
	void *start;
	int i;

	if (!bytes)
		return INVALID_VALUE;
	for (i = 0; i < MAX_RECORDS && allocations[i].context; i++)
		;
	start = i == MAX_RECORDS ? MAP_FAILED :
				   mmap(NULL, bytes, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (start == MAP_FAILED)
		return OUT_OF_MEMORY;
	allocations[i] = (struct allocation){ start, bytes, current(), new_id(), 0 };
	*address = (uintptr_t)start;
	return SUCCESS;
}

EXPORT int cuMemAlloc_v2(unsigned long long *address, size_t bytes)
{
	BEGIN(cuMemAlloc, CONTEXT);
	return end(allocate(address, bytes));
}

int memory_share(uint64_t address, size_t *bytes)
{
	struct allocation *found = find_allocation(address);
	int fd;

	if (!found || (uintptr_t)found->start != address)
		return -1;
	*bytes = found->bytes;
	if (found->fd)
		return found->fd;
	fd = memfd_create("tshare-stub", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, found->bytes) ||
	    write(fd, found->start, found->bytes) != (ssize_t)found->bytes ||
	    mmap(found->start, found->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		 0) == MAP_FAILED) {
		close(fd);
		return -1;
	}
	found->fd = fd;
	return fd;
}

static int release_at(uint64_t address)
{
	struct allocation *found = find_allocation(address);

	if (!found)
		return external_unmap(address);
	if ((uintptr_t)found->start != address)
		return INVALID_VALUE;
	if (streams_use((uintptr_t)found->start, found->bytes))
		complain("cuMemFree: work on %#" PRIx64 " is under way", address);
	release(found);
	return SUCCESS;
}

EXPORT int cuMemFree_v2(unsigned long long address)
{
	BEGIN(cuMemFree, CONTEXT);
	return end(release_at(address));
}

/* Filling */

static bool fill(const struct work *work)
{
	if (find_allocation(work->address))
		memset((void *)(uintptr_t)work->address, work->value, work->bytes);
	return true;
}

static int put_fill(uint64_t address, unsigned char value, size_t bytes, struct stream *stream)
{
	const struct allocation *target = find_allocation(address);

	if (!target || bytes > (uintptr_t)target->start + target->bytes - address)
		return INVALID_VALUE;
	return streams_put(stream, (struct work){
					   .done = fill,
					   .address = address,
					   .value = value,
					   .bytes = bytes,
				   });
}

EXPORT int cuMemsetD8Async(unsigned long long address, unsigned char value, size_t bytes,
			   struct stream *stream)
{
	BEGIN(cuMemsetD8Async, CONTEXT);
	if ((uintptr_t)stream != 2)
		complain("cuMemsetD8Async: on a stream that others may be waiting for");
	return end(put_fill(address, value, bytes, stream));
}

/* Copying */

/* What is at the device's address may have gone: then its context has, too. */
static bool copy(const struct work *work)
{
	if (!find_allocation(work->address))
		return true;
	if (registered_is_mapped(work->source, work->bytes, false))
		memcpy((void *)(uintptr_t)work->address, (void *)(uintptr_t)work->source,
		       work->bytes);
	else
		complain("a copy from %#" PRIx64 ", which is not mapped any more", work->source);
	return true;
}

static int put_copy(uint64_t address, uint64_t source, size_t bytes, struct stream *stream)
{
	const struct allocation *target = find_allocation(address);
	struct pointed pointed;

	if (!target || bytes > (uintptr_t)target->start + target->bytes - address ||
	    !registered_is_mapped(source, bytes, false))
		return INVALID_VALUE;
	/* One copy can't cross from one registration to the next. */
	if (registered_find(source, &pointed) &&
	    bytes > pointed.bytes - (pointed.address - pointed.start))
		return INVALID_VALUE;
	return streams_put(stream, (struct work){
					   .done = copy,
					   .address = address,
					   .source = source,
					   .bytes = bytes,
				   });
}

EXPORT int cuMemcpyHtoDAsync_v2(unsigned long long address, const void *source, size_t bytes,
				struct stream *stream)
{
	BEGIN(cuMemcpyHtoDAsync, CONTEXT);
	return end(put_copy(address, (uintptr_t)source, bytes, stream));
}
