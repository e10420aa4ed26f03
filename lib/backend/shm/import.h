/* SPDX-License-Identifier: MIT */
/* Descriptors that another process sent. */
#ifndef TSHARE_BACKEND_SHM_IMPORT_H
#define TSHARE_BACKEND_SHM_IMPORT_H

#include <stdbool.h>

struct backend_region;

int shm_import(void *opened, int fd, bool readonly, struct backend_region *region);

#endif /* TSHARE_BACKEND_SHM_IMPORT_H */
