/* SPDX-License-Identifier: MIT */
/*
 * The names that a session holds. A name lives while a session holds the lock SHM_LIFE of its
 * file, or for good if the header has SHM_PERSIST.
 */
#ifndef TSHARE_BACKEND_SHM_HELD_H
#define TSHARE_BACKEND_SHM_HELD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "backend/shm/home.h"

struct backend_region;
struct backend_request;
struct shm_session;

/*
 * A name that a session holds. While a thread makes the region, only that thread drops the name,
 * or a child of fork(), which doesn't have the thread.
 */
struct shm_name {
	TAILQ_ENTRY(shm_name) entry;
	int fd;	    /* has the SHM_LIFE lock */
	int file;   /* the region's own description while it is being made, or -1 */
	int home;   /* the claim of a draft which is being made, or -1 */
	void *user; /* the user of a region that is being made, or NULL */
	bool draft;
	int maker; /* the read end of a draft's pipe, or -1 */
	uint32_t lifetime;
	char name[TSHARE_NAME_LEN];
};

/* Opens the home that has the name's file, or the claim with it; -ENOENT if there is none. */
int shm_name_open_home(const struct shm_session *session, const struct shm_name *name, bool *claim);

/* Removes a claim to a name, and the home that it is in if that has nothing else. */
void shm_claim_clear(int dir, const char *name, int claim);

/*
 * Makes an empty file for a new region, without a name in the directory. The session holds it, and
 * a child of a fork() drops it.
 */
int shm_name_begin(struct shm_session *session, const struct backend_request *request,
		   struct shm_name **begun);

/* Undoes a failed creation, and gives up the claim to the name. */
void shm_name_abandon(struct shm_session *session, struct shm_name *name);

/* Ends the creation: returns the region's file and stores its user; the caller owns both. */
int shm_name_complete(struct shm_session *session, struct shm_name *name, void **user);

/* Closes the files of a name that the session holds, which releases the lock. */
void shm_name_drop(struct shm_session *session, struct shm_name *name);

/* Ends a region's user, and what the session holds of a draft that no object has open any more. */
void shm_release(void *opened, struct backend_region *region);

/* Drops each name called @name that has been unlinked: its lock would keep only the memory. */
void shm_name_drop_if_unlinked(struct shm_session *session, const char *name);

/*
 * Closes the pipe of the draft called @name. Waiters then wait only for the other processes that
 * have the draft since a fork(). With the process's lock held.
 */
void shm_name_leave_draft(struct shm_session *session, const char *name);

/* Closes a draft's pipe, if it is still open. */
void shm_name_close_maker(struct shm_name *name);

/*
 * Drops names that other processes have unlinked. Each call looks at a few, in turn: so the time
 * to create many regions stays linear in their number.
 */
void shm_names_drop_some_unlinked(struct shm_session *session);

/* In a child of fork(): drops names that another thread was making or removing. */
void shm_names_drop_in_child(struct shm_session *session);

/*
 * Remove the session's names, but for those that another process holds since a fork(): when it is
 * closed, or at exit() with the process's lock held.
 */
void shm_names_close(struct shm_session *session);
void shm_names_exit(struct shm_session *session);

#endif /* TSHARE_BACKEND_SHM_HELD_H */
