/* SPDX-License-Identifier: MIT */
/* Opening regions by their names, and watching names. */
#ifndef TSHARE_BACKEND_SHM_FIND_H
#define TSHARE_BACKEND_SHM_FIND_H

#include <stdint.h>

struct backend_find;
struct backend_region;

int shm_lookup(void *opened, const char *name, const struct backend_find *how,
	       struct backend_region *region);

int shm_watch(void *opened, const char *name, int epoll, void **watch);
void shm_unwatch(void *data);
int shm_watch_look(void *data, uint64_t *id);

#endif /* TSHARE_BACKEND_SHM_FIND_H */
