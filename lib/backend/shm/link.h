/* SPDX-License-Identifier: MIT */
/* How a new region gets its name: see backend/shm.c. */
#ifndef TSHARE_BACKEND_SHM_LINK_H
#define TSHARE_BACKEND_SHM_LINK_H

#include <stdbool.h>

#include "backend/shm/held.h"

struct backend_finish;
struct backend_request;
struct shm_session;

/* Gives a complete region its name. */
int shm_link(const struct shm_session *session, const struct shm_name *name,
	     const struct backend_request *request);

/* Takes the claim to a draft's name. The draft is complete but for its memory. */
int shm_claim(const struct shm_session *session, struct shm_name *name,
	      const struct backend_request *request);

int shm_finish(void *opened, const struct backend_finish *finishing, size_t count);

/* Fails because the home called @file has the name: -EEXIST, or a shortage for SHM_NAME_UNSEEN. */
int shm_fail_taken(int dir, const char *file, enum shm_name_state state, const char *name);

#endif /* TSHARE_BACKEND_SHM_LINK_H */
