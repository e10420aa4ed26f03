// SPDX-License-Identifier: MIT
/* External memory: dma-bufs, and the buffers that are mapped of them. */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

#define DMABUF_FD 9

struct handle_desc {
	int type;
	union {
		int fd;
		struct {
			void *handle;
			const void *name;
		} win32;
	} handle;
	unsigned long long size;
	unsigned int flags;
	unsigned int reserved[16];
};

struct buffer_desc {
	unsigned long long offset;
	unsigned long long size;
	unsigned int flags;
	unsigned int reserved[16];
};

/* What cuImportExternalMemory() has made, and the buffer that is mapped of it. */
struct external {
	int fd;
	uint64_t bytes;
	struct context *context; /* NULL for an unused record */
	uint64_t id;
	void *mapped;
	size_t mapped_bytes;
};

static struct external externals[MAX_RECORDS];
static bool takes_dmabufs;

/* Control */

static void release_external(struct external *external)
{
	if (external->mapped)
		munmap(external->mapped, external->mapped_bytes);
	close(external->fd);
	*external = (struct external){ 0 };
}

void external_reset(void)
{
	int i;

	for (i = 0; i < MAX_RECORDS; i++)
		if (externals[i].context)
			release_external(&externals[i]);
	takes_dmabufs = true;
}

void stub_set_dmabuf(bool supported)
{
	pthread_mutex_lock(&lock);
	takes_dmabufs = supported;
	pthread_mutex_unlock(&lock);
}

void external_left(char *text, size_t size)
{
	int i;

	for (i = 0; i < MAX_RECORDS; i++)
		if (externals[i].context)
			snprintf(text, size, "external memory of %" PRIu64 " bytes",
				 externals[i].bytes);
}

/* Importing */

void external_end(const struct context *context)
{
	int i;

	for (i = 0; i < MAX_RECORDS; i++)
		if (externals[i].context == context)
			release_external(&externals[i]);
}

static bool all_zero(const unsigned int reserved[16])
{
	static const unsigned int zero[16];

	return !memcmp(reserved, zero, sizeof(zero));
}

static bool is_writable_dmabuf(int fd)
{
	char path[32], target[64] = "";
	int flags = fcntl(fd, F_GETFL);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return flags >= 0 && (flags & O_ACCMODE) == O_RDWR &&
	       readlink(path, target, sizeof(target) - 1) > 0 && !strncmp(target, "/dmabuf:", 8);
}

static int import_external(struct external **result, const struct handle_desc *desc)
{
	int i;

	if (desc->flags || !all_zero(desc->reserved)) {
		complain("cuImportExternalMemory: flags or reserved fields are set");
		return INVALID_VALUE;
	}
	if (desc->type != DMABUF_FD || !takes_dmabufs)
		return NOT_SUPPORTED;
	if (!desc->size || !is_writable_dmabuf(desc->handle.fd) ||
	    (off_t)desc->size > lseek(desc->handle.fd, 0, SEEK_END))
		return INVALID_VALUE;
	for (i = 0; i < MAX_RECORDS && externals[i].context; i++)
		;
	if (i == MAX_RECORDS)
		return OUT_OF_MEMORY;
	externals[i] = (struct external){
		.fd = fcntl(desc->handle.fd, F_DUPFD_CLOEXEC, 0),
		.bytes = desc->size,
		.context = current(),
		.id = new_id(),
	};
	*result = &externals[i];
	return SUCCESS;
}

EXPORT int cuImportExternalMemory(struct external **memory, const struct handle_desc *desc)
{
	BEGIN(cuImportExternalMemory, CONTEXT);
	return end(import_external(memory, desc));
}

static int map_external(unsigned long long *address, struct external *memory,
			const struct buffer_desc *desc)
{
	void *mapped;

	if (desc->flags || !all_zero(desc->reserved)) {
		complain("cuExternalMemoryGetMappedBuffer: flags or reserved fields are set");
		return INVALID_VALUE;
	}
	if (!memory->context || memory->mapped)
		return INVALID_HANDLE;
	if (!desc->size || desc->offset > memory->bytes ||
	    desc->size > memory->bytes - desc->offset)
		return INVALID_VALUE;
	mapped = mmap(NULL, desc->size, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd,
		      desc->offset);
	if (mapped == MAP_FAILED)
		return OUT_OF_MEMORY;
	memory->mapped = mapped;
	memory->mapped_bytes = desc->size;
	*address = (uintptr_t)mapped;
	return SUCCESS;
}

EXPORT int cuExternalMemoryGetMappedBuffer(unsigned long long *address, struct external *memory,
					   const struct buffer_desc *desc)
{
	BEGIN(cuExternalMemoryGetMappedBuffer, CONTEXT);
	return end(map_external(address, memory, desc));
}

static struct external *find_mapped(uintptr_t address)
{
	int i;

	for (i = 0; i < MAX_RECORDS; i++)
		if (externals[i].mapped &&
		    address - (uintptr_t)externals[i].mapped < externals[i].mapped_bytes)
			return &externals[i];
	return NULL;
}

bool external_find(uint64_t address, struct pointed *found)
{
	const struct external *of = find_mapped(address);

	if (!of)
		return false;
	*found = pointed_on_device(of->context, address, of->id, of->mapped, of->mapped_bytes);
	return true;
}

int external_unmap(uint64_t address)
{
	struct external *mapped = find_mapped(address);

	if (!mapped || (uintptr_t)mapped->mapped != address)
		return INVALID_VALUE;
	munmap(mapped->mapped, mapped->mapped_bytes);
	mapped->mapped = NULL;
	return SUCCESS;
}

EXPORT int cuDestroyExternalMemory(struct external *memory)
{
	BEGIN(cuDestroyExternalMemory, CONTEXT);
	if (!memory->context) {
		complain("cuDestroyExternalMemory: it is gone");
		return end(INVALID_HANDLE);
	}
	if (memory->mapped)
		complain("cuDestroyExternalMemory: its buffer is still mapped");
	release_external(memory);
	return end(SUCCESS);
}
