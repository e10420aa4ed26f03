/* SPDX-License-Identifier: MIT */
/* A session of the backend. */
#ifndef TSHARE_SHM_SESSION_H
#define TSHARE_SHM_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct shm_name;

struct shm_session {
	LIST_ENTRY(shm_session) entry; /* of backend-shm.c */
	int dir;		       /* O_PATH, of all names */
	uint32_t page_size;
	uint32_t huge_page_size;
	TAILQ_HEAD(shm_name_list, shm_name) names; /* of name.c, under the process's lock */
	int64_t opened_at;			   /* nanoseconds of the monotonic clock */
	atomic_llong swept_at;			   /* the same; 0 before the first sweep */
	atomic_llong sweep_took;		   /* nanoseconds */
	atomic_flag sweeping;			   /* by a thread of this process */
	bool ends;				   /* under the process's lock */
};

#endif /* TSHARE_SHM_SESSION_H */
