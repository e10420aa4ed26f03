/* SPDX-License-Identifier: MIT */
/* The users of drafts, and of regions whose names live as long as they have users. */
#ifndef TSHARE_SHM_USERS_H
#define TSHARE_SHM_USERS_H

#include <stdbool.h>
#include <stdint.h>

struct backend_region;
struct shm_header;

/*
 * Makes the process a user of the region behind @fd: -ESTALE if another process is just
 * about to remove its name. The name is in @dir, which may be negative, and is kept open by the
 * caller as long as there is the user.
 */
int shm_user_new(int dir, int fd, const struct shm_header *header, void **user);

/* Ends the user of a draft that is finished now, unless the name lives as long as its users. */
void shm_user_finish(struct backend_region *region, uint32_t lifetime);

/* Ends that of a region that is being made; may be NULL. With the process's lock held. */
void shm_user_drop(void *ending);

/* Has the user of a region without a session close that directory in the end. */
void shm_user_keep_directory(void *keeping, int dir);

/* Ends that of @ending, which may be NULL, and with @unlink removes the name if no user is left. */
void shm_user_free(void *ending, bool unlink);

/* Ends all of the process, under its lock. */
void shm_users_end(void);

void shm_release(void *opened, struct backend_region *region);

#endif /* TSHARE_SHM_USERS_H */
