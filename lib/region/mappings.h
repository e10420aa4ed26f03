/* SPDX-License-Identifier: MIT */
/* Finds the region that this process has mapped at an address. */
#ifndef TSHARE_REGION_MAPPINGS_H
#define TSHARE_REGION_MAPPINGS_H

struct tshare_region;

/* Adds a region that is mapped. 0 or -ENOMEM. */
int mappings_add(struct tshare_region *region);

/* Removes a region before it is unmapped. Does nothing if it wasn't added. */
void mappings_remove(struct tshare_region *region);

/*
 * The region whose mapping holds @address, with a reference; NULL if there is
 * none, if its last reference was just dropped, or if it is still being created.
 */
struct tshare_region *mappings_find(const void *address);

#endif /* TSHARE_REGION_MAPPINGS_H */
