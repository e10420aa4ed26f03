// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "region/place.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "ctx.h"
#include "region/mappings.h"
#include "region/object.h"

struct content region_content(const struct tshare_region *region)
{
	return (struct content){
		.prot = region->readonly ? PROT_READ : PROT_READ | PROT_WRITE,
		.flags = MAP_SHARED,
		.fd = region->handle.fd,
		.offset = region->handle.map_offset,
	};
}

int region_fail_map(const struct tshare_region *region)
{
	return fail(-errno, "size: mmap of %" PRIu64 " bytes: %s", region->handle.size,
		    strerror(errno));
}

int region_place(struct tshare_region *region, const struct content *content)
{
	const size_t alignment = region->ctx->huge_page_size;
	const uint64_t size = region->handle.size;
	void *data;

	if (size > SIZE_MAX / 2)
		return fail(-ENOMEM, "size: no room for %" PRIu64 " bytes", size);
	if (alignment > region->ctx->page_size && size >= alignment)
		data = map_aligned(size, alignment, content);
	else
		data = map_content(NULL, size, content, 0);
	if (data == MAP_FAILED)
		return region_fail_map(region);
	region->data = data;
	return mappings_add(region);
}

int region_map(struct tshare_region *region)
{
	const struct content content = region_content(region);

	return region_place(region, &content);
}

void region_unmap(struct tshare_region *region)
{
	if (!region->data)
		return;
	mappings_remove(region);
	unmap_aligned(region->data, region->handle.size, region->ctx->huge_page_size);
}
