// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "base/map.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

const struct content content_none = {
	.prot = PROT_NONE,
	.flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
	.fd = -1,
};

/*
 * The next aligned mapping is tried below this address: the start of the last
 * mapping, or the end of one that was unmapped since. A good guess saves the
 * system calls that aligning an address takes.
 */
static atomic_uintptr_t aligned_edge;

/*
 * Reserves an address for @size bytes with MAP_FIXED, aligned to @alignment: maps
 * more, and unmaps what lies around.
 */
static void *reserve_aligned(size_t size, size_t alignment)
{
	char *start, *aligned;
	size_t before;

	start = map_content(NULL, size + alignment, &content_none, 0);
	if (start == MAP_FAILED)
		return MAP_FAILED;
	before = -(uintptr_t)start & (alignment - 1);
	aligned = start + before;
	if (before)
		munmap(start, before);
	munmap(aligned + size, alignment - before);
	return aligned;
}

void *map_content(void *address, size_t size, const struct content *content, int flags)
{
	return mmap(address, size, content->prot, content->flags | flags, content->fd,
		    content->offset);
}

static void *map_at_edge(size_t size, size_t alignment, const struct content *content)
{
	uintptr_t edge = atomic_load_explicit(&aligned_edge, memory_order_relaxed);
	void *hint, *data;

	if (edge <= size)
		return MAP_FAILED;
	hint = (void *)((edge - size) & ~(uintptr_t)(alignment - 1));
	data = map_content(hint, size, content, MAP_FIXED_NOREPLACE);
	/* A kernel before Linux 4.17 takes the address as a hint. */
	if (data != MAP_FAILED && data != hint) {
		munmap(data, size);
		return MAP_FAILED;
	}
	return data;
}

void *map_aligned(size_t size, size_t alignment, const struct content *content)
{
	void *data;

	data = map_at_edge(size, alignment, content);
	if (data == MAP_FAILED) {
		data = reserve_aligned(size, alignment);
		if (data == MAP_FAILED)
			return MAP_FAILED;
		if (content != &content_none)
			data = map_content(data, size, content, MAP_FIXED);
		/*
		 * The kernel may have unmapped the room before it failed, and another
		 * thread may have mapped something there. So the room is not unmapped.
		 */
		if (data == MAP_FAILED)
			return MAP_FAILED;
	}
	atomic_store_explicit(&aligned_edge, (uintptr_t)data, memory_order_relaxed);
	return data;
}

void unmap_aligned(void *data, size_t size, size_t alignment)
{
	uintptr_t end = (uintptr_t)data + size;

	munmap(data, size);
	if (size >= alignment)
		atomic_store_explicit(&aligned_edge, (end + alignment - 1) & ~(alignment - 1),
				      memory_order_relaxed);
}
