/* SPDX-License-Identifier: MIT */
/* Mappings at addresses where the processor can map huge pages. */
#ifndef TSHARE_BASE_MAP_H
#define TSHARE_BASE_MAP_H

#include <stddef.h>
#include <sys/types.h>

/* A mapping's content. */
struct content {
	int prot;
	int flags;
	int fd;
	off_t offset;
};

/* Nothing: room that no other mapping takes. */
extern const struct content content_none;

/* mmap(). */
void *map_content(void *address, size_t size, const struct content *content, int flags);

/*
 * Maps at a multiple of @alignment, which is a power of two and at most @size. MAP_FAILED with
 * errno set, when room for it may stay mapped.
 */
void *map_aligned(size_t size, size_t alignment, const struct content *content);

/* munmap(). The next aligned mapping is tried there, if @size is at least @alignment. */
void unmap_aligned(void *data, size_t size, size_t alignment);

#endif /* TSHARE_BASE_MAP_H */
