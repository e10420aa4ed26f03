/* SPDX-License-Identifier: MIT */
/*
 * Names: how long each lives, and which of them a session holds. A name lives while
 * a session holds the lock SHM_LIFE of its file, or for good if the header says so.
 */
#ifndef TSHARE_SHM_NAME_H
#define TSHARE_SHM_NAME_H

#include "shm/home.h"

struct shm_session;

/* Removes a name whose maker has exited, unless the region persists. */
enum shm_name_state shm_name_unlink_if_dead(int dir, const char *file);

/* The same for a home that is open. */
enum shm_name_state shm_home_unlink_if_dead(int dir, const char *file, int home);

/*
 * Removes all names and drafts of dead makers, whose memory would stay until somebody
 * asks for the name, and returns how many those were.
 */
unsigned int shm_names_sweep(int dir);

/*
 * Link a locked file under @file: until the session ends, which then owns @fd; or
 * for good.
 */
int shm_name_link_for_session(struct shm_session *session, int fd, const char *file,
			      const char *text);
int shm_name_link_for_good(const struct shm_session *session, int fd, const char *file,
			   const char *name);

/* Fails with -EEXIST. */
int shm_name_fail_taken(enum shm_name_state state, const char *name);

/* Closes the file of a name that was unlinked: the lock would keep only its memory. */
void shm_name_drop_if_unlinked(struct shm_session *session, const char *file);

/*
 * Does the same for names that other processes have unlinked. Looks at a few in turn,
 * so that to create many regions stays linear in their number.
 */
void shm_names_drop_some_unlinked(struct shm_session *session);

/* Removes the session's names, but for those that another process holds since a fork(). */
void shm_names_end(struct shm_session *session);

#endif /* TSHARE_SHM_NAME_H */
