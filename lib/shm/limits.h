/* SPDX-License-Identifier: MIT */
/* What room there is for regions. */
#ifndef TSHARE_SHM_LIMITS_H
#define TSHARE_SHM_LIMITS_H

struct backend_request;
struct shm_header;
struct tshare_limits;

int shm_limits(void *opened, struct tshare_limits *limits);

/*
 * Refuses a file that would end the process with a signal instead of an error, and
 * one whose allocation would fail only after it had taken all room from others.
 */
int shm_check_room(const struct backend_request *request, const struct shm_header *header);

/* Fails with -ENOMEM and what is short. */
int shm_fail_no_room(const struct backend_request *request);

#endif /* TSHARE_SHM_LIMITS_H */
