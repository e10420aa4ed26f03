/* SPDX-License-Identifier: MIT */
/* A session of the shm backend: its directory, and the names that it holds. */
#ifndef TSHARE_BACKEND_SHM_SESSION_H
#define TSHARE_BACKEND_SHM_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct shm_name;

struct shm_session {
	LIST_ENTRY(shm_session) entry; /* in backend/shm.c's list of sessions */
	int dir;		       /* O_PATH, of all names */
	uint32_t page_size;
	uint32_t huge_page_size;
	TAILQ_HEAD(shm_name_list, shm_name) names; /* of held.c, under the process's lock */
	int64_t opened_at;			   /* nanoseconds of the monotonic clock */
	atomic_llong swept_at;			   /* start of the last sweep; 0 before the first */
	atomic_llong sweep_took;		   /* nanoseconds */
	atomic_flag sweeping;			   /* a thread of this process sweeps */
	bool ends;				   /* is being closed; under the process's lock */
};

#endif /* TSHARE_BACKEND_SHM_SESSION_H */
