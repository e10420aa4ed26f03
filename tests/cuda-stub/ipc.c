// SPDX-License-Identifier: MIT
/*
 * Memory of other processes (CUDA IPC). A handle names a process and a file that it has open; so it
 * leads nowhere when the process has ended.
 *
 * As NVIDIA's documentation has it: a context that opens a handle again gets the same address, and
 * has to close it once more; one context of a process may open what a process has on a device; and
 * to free memory that others have open is undefined, so the stub complains. A process that has memory
 * open holds a lock of its file.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

#define LAZY_ENABLE_PEER_ACCESS 1

struct handle {
	int pid;
	int fd;
	int device;
	unsigned int offset; /* of the address from the memory's start: 0, unless forged */
	uint64_t bytes;
	unsigned char unused[40];
};

_Static_assert(sizeof(struct handle) == 64, "the driver's");

struct opened {
	struct handle handle;
	void *start;
	struct context *context; /* NULL for an unused record */
	uint64_t id;
	unsigned int count; /* of opens */
	int fd;		    /* has the lock */
};

static struct opened opened[MAX_RECORDS];
static unsigned char uuids[8];

/* Control */

static void close_opened(struct opened *of)
{
	munmap(of->start, of->handle.bytes);
	close(of->fd);
	*of = (struct opened){ 0 };
}

static struct flock lock_of(short type)
{
	return (struct flock){ .l_type = type, .l_whence = SEEK_SET, .l_len = 1 };
}

bool ipc_is_open(int fd)
{
	struct flock request = lock_of(F_WRLCK);

	return !fcntl(fd, F_OFD_GETLK, &request) && request.l_type != F_UNLCK;
}

void ipc_end(const struct context *context)
{
	int i;

	for (i = 0; i < MAX_RECORDS; i++)
		if (opened[i].context && opened[i].context == context)
			close_opened(&opened[i]);
}

void ipc_reset(void)
{
	int i;

	for (i = 0; i < MAX_RECORDS; i++)
		if (opened[i].context)
			close_opened(&opened[i]);
	for (i = 0; i < 8; i++)
		uuids[i] = i + 1;
}

void ipc_left(char *text, size_t size)
{
	int i;

	for (i = 0; i < MAX_RECORDS; i++)
		if (opened[i].context)
			snprintf(text, size, "%" PRIu64 " bytes of another process's memory",
				 opened[i].handle.bytes);
}

void stub_set_uuid(int device, unsigned char first)
{
	pthread_mutex_lock(&lock);
	uuids[device] = first;
	pthread_mutex_unlock(&lock);
}

/* Devices */

EXPORT int cuDeviceGetUuid_v2(unsigned char uuid[16], int device)
{
	BEGIN(cuDeviceGetUuid, INIT);
	if (device < 0 || device >= device_count)
		return end(INVALID_DEVICE);
	memset(uuid, 0, 16);
	uuid[0] = uuids[device];
	return end(SUCCESS);
}

/* Handles */

EXPORT int cuIpcGetMemHandle(struct handle *handle, unsigned long long address)
{
	size_t bytes;
	int fd;

	BEGIN(cuIpcGetMemHandle, CONTEXT);
	fd = memory_share(address, &bytes);
	if (fd < 0)
		return end(INVALID_VALUE);
	if (bytes % (2 << 20))
		complain("cuIpcGetMemHandle: other memory of its block goes with it");
	*handle = (struct handle){ getpid(), fd, current()->device, 0, bytes, { 0 } };
	return end(SUCCESS);
}

/* Memory that this process has open of the handle's maker and device; of the handle itself, if any. */
static struct opened *find_by_maker(const struct handle *handle)
{
	struct opened *found = NULL;
	int i;

	for (i = 0; i < MAX_RECORDS; i++) {
		if (!opened[i].context || opened[i].handle.pid != handle->pid ||
		    opened[i].handle.device != handle->device)
			continue;
		found = &opened[i];
		if (!memcmp(&found->handle, handle, sizeof(*handle)))
			break;
	}
	return found;
}

static int map_memory(struct opened *of)
{
	struct flock request = lock_of(F_RDLCK);
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", of->handle.pid, of->handle.fd);
	of->fd = open(path, O_RDWR | O_CLOEXEC);
	if (of->fd < 0)
		return INVALID_VALUE;
	of->start =
		fcntl(of->fd, F_OFD_SETLK, &request) ?
			MAP_FAILED :
			mmap(NULL, of->handle.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, of->fd, 0);
	if (of->start != MAP_FAILED)
		return SUCCESS;
	close(of->fd);
	return INVALID_VALUE;
}

static int open_handle(unsigned long long *address, const struct handle *handle)
{
	struct opened *of = find_by_maker(handle), new = { *handle };
	int i, result;

	if (handle->pid == getpid()) {
		complain("cuIpcOpenMemHandle: in the process that has made the handle");
		return INVALID_CONTEXT;
	}
	if (of && of->context != current())
		return INVALID_CONTEXT;
	if (!of || memcmp(&of->handle, handle, sizeof(*handle))) {
		for (i = 0; i < MAX_RECORDS && opened[i].context; i++)
			;
		if (i == MAX_RECORDS)
			return OUT_OF_MEMORY;
		result = map_memory(&new);
		if (result)
			return result;
		new.context = current();
		new.id = new_id();
		of = &opened[i];
		*of = new;
	}
	of->count++;
	*address = (uintptr_t)of->start + handle->offset;
	return SUCCESS;
}

EXPORT int cuIpcOpenMemHandle_v2(unsigned long long *address, struct handle handle,
				 unsigned int flags)
{
	BEGIN(cuIpcOpenMemHandle, CONTEXT);
	return end(flags == LAZY_ENABLE_PEER_ACCESS ? open_handle(address, &handle) :
						      INVALID_VALUE);
}

static struct opened *find_opened(uint64_t address)
{
	int i;

	for (i = 0; i < MAX_RECORDS; i++)
		if (opened[i].context &&
		    address - (uintptr_t)opened[i].start < opened[i].handle.bytes)
			return &opened[i];
	return NULL;
}

bool ipc_find(uint64_t address, struct pointed *found)
{
	const struct opened *of = find_opened(address);

	if (!of)
		return false;
	*found = pointed_on_device(of->context, address, of->id, of->start, of->handle.bytes);
	return true;
}

EXPORT int cuIpcCloseMemHandle(unsigned long long address)
{
	struct opened *of;

	BEGIN(cuIpcCloseMemHandle, CONTEXT);
	of = find_opened(address);
	if (!of || (uintptr_t)of->start + of->handle.offset != address) {
		complain("cuIpcCloseMemHandle: nothing is open there");
		return end(INVALID_VALUE);
	}
	if (of->context != current())
		complain("cuIpcCloseMemHandle: in another context");
	if (!--of->count)
		close_opened(of);
	return end(SUCCESS);
}
