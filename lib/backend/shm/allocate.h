/* SPDX-License-Identifier: MIT */
/* The memory of a new region's file. */
#ifndef TSHARE_BACKEND_SHM_ALLOCATE_H
#define TSHARE_BACKEND_SHM_ALLOCATE_H

#include <stdint.h>

struct shm_session;

/*
 * Allocates all pages now: a write to a page that can't be allocated raises SIGBUS. Return: 0 or a
 * negative errno, when some pages may be allocated.
 */
int shm_allocate(const struct shm_session *session, int fd, uint64_t offset, uint64_t size);

#endif /* TSHARE_BACKEND_SHM_ALLOCATE_H */
