/* SPDX-License-Identifier: MIT */
/* Limits, and whether there is room for a region. */
#ifndef TSHARE_BACKEND_SHM_LIMITS_H
#define TSHARE_BACKEND_SHM_LIMITS_H

#include <stdint.h>

struct backend_request;
struct shm_header;
struct tshare_limits;

int shm_limits(void *opened, struct tshare_limits *limits);

/* Refuses a file beyond RLIMIT_FSIZE: writing it would end the process with a signal. */
int shm_check_limit(const struct shm_header *header);

/*
 * Refuses a region if memory is short for @size bytes and @descs_size of descriptors. To try would
 * take all room from others first and, in a memory cgroup, end the process with a signal.
 */
int shm_check_room(int dir, const struct backend_request *request, uint64_t size,
		   uint64_t descs_size);

/* Fails with -ENOMEM and names what is short. */
int shm_fail_no_room(int dir, const struct backend_request *request);

/* The same if a file, a directory or a link can't be made. */
int shm_fail_no_file(void);

#endif /* TSHARE_BACKEND_SHM_LIMITS_H */
