/* SPDX-License-Identifier: MIT */
/* A region's place in the process's memory. */
#ifndef TSHARE_REGION_PLACE_H
#define TSHARE_REGION_PLACE_H

#include "base/map.h"

struct tshare_region;

/* The content of a region's mapping: its file, from the region's offset on. */
struct content region_content(const struct tshare_region *region);

/* Fails with errno's error of mmap(). */
int region_fail_map(const struct tshare_region *region);

/*
 * Maps a region, aligned if it is large enough for huge pages: the kernel aligns
 * neither dma-bufs nor shared memory.
 */
int region_place(struct tshare_region *region, const struct content *content);

/* The same with the region's own content. */
int region_map(struct tshare_region *region);

/* Does nothing to a region that isn't mapped. */
void region_unmap(struct tshare_region *region);

#endif /* TSHARE_REGION_PLACE_H */
