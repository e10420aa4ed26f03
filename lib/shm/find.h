/* SPDX-License-Identifier: MIT */
/* Regions that are found by their names. */
#ifndef TSHARE_SHM_FIND_H
#define TSHARE_SHM_FIND_H

struct backend_find;
struct backend_region;

int shm_lookup(void *opened, const char *name, const struct backend_find *how,
	       struct backend_region *region);

#endif /* TSHARE_SHM_FIND_H */
