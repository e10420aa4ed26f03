// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "region/fill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/limited.h"
#include "ctx.h"
#include "region/object.h"

/* A buffer lies in one huge page if there is one: a disk reads into it in fewer pieces. */
#define BUFFER_ALIGNMENT (2ULL << 20)
#define MAPPING_SIZE	 (2 * BUFFER_ALIGNMENT)

/*
 * Huge pages, which the file of a tmpfs with "huge=" reports as its blocks, are better touched by a
 * device: a touch takes as long as touches of a few small pages. Elsewhere, huge pages that the
 * region was made of count as touched.
 */
static bool has_small_pages(const struct tshare_region *region)
{
	struct stat file;

	return !fstat(region->handle.fd, &file) && S_ISREG(file.st_mode) &&
	       (uint64_t)file.st_blksize <= region->ctx->page_size;
}

/*
 * Opens another description of the region's file. Others may share the region's own, and set
 * O_APPEND at any time: pwrite() would append, and ignore the offset.
 */
static int open_own(const struct tshare_region *region)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", region->handle.fd);
	return fd_open(path, O_RDWR | O_NONBLOCK);
}

void fill_init(struct fill *fill, const struct tshare_region *region, uint64_t length)
{
	bool usable = length >= FILL_SIZE && !region->backend->has_dmabufs &&
		      has_small_pages(region);

	fill->region = region;
	fill->own = usable ? open_own(region) : -1;
	atomic_init(&fill->fd, fill->own);
}

void fill_end(struct fill *fill)
{
	if (fill->own >= 0)
		close(fill->own);
}

/*
 * Asks about one page, which stands for all: not the first page of 2 MiB, which was zeroed even if
 * the kernel couldn't make a huge page of it. To a process that may not write the file, mincore()
 * reports each page as touched.
 */
static bool is_untouched(const struct tshare_region *region, uint64_t offset)
{
	char *page = (char *)region->data + (offset & ~(uint64_t)(region->ctx->page_size - 1));
	unsigned char resident;

	return !mincore(page, 1, &resident) && !(resident & 1);
}

static bool allocate(struct fill_buffer *buffer)
{
	char *start;

	if (buffer->data)
		return true;
	start = mmap(NULL, MAPPING_SIZE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (start == MAP_FAILED)
		return false;
	buffer->mapping = start;
	buffer->data = start + (-(uintptr_t)start & (BUFFER_ALIGNMENT - 1));
	madvise(buffer->data, BUFFER_ALIGNMENT, MADV_HUGEPAGE);
	return true;
}

bool fill_prepare(const struct fill *fill, uint64_t offset, uint64_t length,
		  struct fill_buffer *buffer)
{
	return atomic_load_explicit(&fill->fd, memory_order_relaxed) >= 0 && length >= FILL_SIZE &&
	       is_untouched(fill->region, offset + length - 1) && allocate(buffer);
}

size_t fill_write(struct fill *fill, const struct fill_buffer *buffer, size_t length,
		  uint64_t offset)
{
	const int fd = atomic_load_explicit(&fill->fd, memory_order_relaxed);
	const off_t start = fill->region->handle.map_offset + offset;
	size_t done = 0;
	ssize_t count;

	while (fd >= 0 && done < length) {
		count = limited_write(fd, (char *)buffer->data + done, length - done, start + done);
		if (count > 0) {
			done += count;
		} else if (count != -EINTR) {
			atomic_store_explicit(&fill->fd, -1, memory_order_relaxed);
			break;
		}
	}
	return done;
}

void fill_buffer_free(struct fill_buffer *buffer)
{
	if (buffer->mapping)
		munmap(buffer->mapping, MAPPING_SIZE);
}
