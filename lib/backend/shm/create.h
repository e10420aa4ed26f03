/* SPDX-License-Identifier: MIT */
/* New regions. */
#ifndef TSHARE_BACKEND_SHM_CREATE_H
#define TSHARE_BACKEND_SHM_CREATE_H

struct backend_region;
struct backend_request;

int shm_create(void *opened, const struct backend_request *request, struct backend_region *region);

#endif /* TSHARE_BACKEND_SHM_CREATE_H */
