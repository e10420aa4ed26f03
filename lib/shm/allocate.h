/* SPDX-License-Identifier: MIT */
/* The memory of a new region's file. */
#ifndef TSHARE_SHM_ALLOCATE_H
#define TSHARE_SHM_ALLOCATE_H

#include <stdint.h>

struct shm_session;

/*
 * Allocates all pages now, since a write into a mapping could only fail with SIGBUS. Return: 0 or
 * a negative errno, when some of them may be there.
 */
int shm_allocate(const struct shm_session *session, int fd, uint64_t offset, uint64_t size);

#endif /* TSHARE_SHM_ALLOCATE_H */
