/* SPDX-License-Identifier: MIT */
/* The users of drafts, and of regions whose names live as long as they have users. */
#ifndef TSHARE_BACKEND_SHM_USERS_H
#define TSHARE_BACKEND_SHM_USERS_H

#include <stdbool.h>
#include <stdint.h>

struct backend_region;
struct shm_header;

/*
 * Adds a user of the region behind @fd: -ESTALE if another process is about to remove the name.
 * @dir is the name's directory, or negative; the caller keeps it open as long as the user exists.
 */
int shm_user_new(int dir, int fd, const struct shm_header *header, void **user);

/* Ends the user of a draft that is finished now, unless the name lives as long as its users. */
void shm_user_finish(struct backend_region *region, uint32_t lifetime);

/* Ends the user of a failed creation, or NULL. With the process's lock held. */
void shm_user_drop(void *ending);

/* Gives @dir to the user of a region without a session, which closes it in the end. */
void shm_user_keep_directory(void *keeping, int dir);

/* Ends a user, or NULL. With @unlink, removes the name if no user is left. */
void shm_user_free(void *ending, bool unlink);

/* Whether a user, or NULL, is one of a draft. */
bool shm_user_has_draft(const void *asked);

/* Whether an object of this process has that draft open. With the process's lock held. */
bool shm_users_have_draft(const char *name);

#endif /* TSHARE_BACKEND_SHM_USERS_H */
