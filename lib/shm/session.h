/* SPDX-License-Identifier: MIT */
/* A session of the backend. */
#ifndef TSHARE_SHM_SESSION_H
#define TSHARE_SHM_SESSION_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/queue.h>

struct shm_name;

struct shm_session {
	LIST_ENTRY(shm_session) entry; /* of backend-shm.c */
	int dir;		       /* O_PATH, of all names */
	uint32_t page_size;
	uint32_t huge_page_size;
	TAILQ_HEAD(shm_name_list, shm_name) names; /* of name.c, under the process's lock */
	atomic_llong next_sweep;		   /* nanoseconds of the monotonic clock */
};

#endif /* TSHARE_SHM_SESSION_H */
