/* SPDX-License-Identifier: MIT */
/* Where this process has regions mapped: from an address to the region. */
#ifndef TSHARE_MAPPINGS_H
#define TSHARE_MAPPINGS_H

struct tshare_region;

/* Enters a region that is mapped. 0 or -ENOMEM. */
int tshare_mappings_add(struct tshare_region *region);

/* Takes it out, before it is unmapped. Nothing happens if it wasn't in. */
void tshare_mappings_remove(struct tshare_region *region);

/*
 * The region whose mapping holds @address, with a reference; NULL if there is
 * none, or if its last reference was just dropped.
 */
struct tshare_region *tshare_mappings_find(const void *address);

#endif /* TSHARE_MAPPINGS_H */
