/* SPDX-License-Identifier: MIT */
/* What room there is for regions. */
#ifndef TSHARE_SHM_LIMITS_H
#define TSHARE_SHM_LIMITS_H

#include <stdint.h>

struct backend_request;
struct shm_header;
struct tshare_limits;

int shm_limits(void *opened, struct tshare_limits *limits);

/* Refuses a file that would end the process with a signal instead of an error. */
int shm_check_limit(const struct shm_header *header);

/*
 * Refuses one of whose memory or descriptors the next step takes what is not there. To try would
 * take all room from others first, and in a memory cgroup end the process with a signal.
 */
int shm_check_room(int dir, const struct backend_request *request, uint64_t size,
		   uint64_t descs_size);

/* Fails with -ENOMEM and what is short. */
int shm_fail_no_room(int dir, const struct backend_request *request);

#endif /* TSHARE_SHM_LIMITS_H */
