/* SPDX-License-Identifier: MIT */
/*
 * Names: how long each lives, and which of them a session holds. A name lives while
 * a session holds the lock SHM_LIFE of its file, or for good if the header has
 * SHM_PERSIST.
 */
#ifndef TSHARE_SHM_NAME_H
#define TSHARE_SHM_NAME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "shm/home.h"

struct backend_request;
struct shm_session;

/*
 * A name that a session holds. While a thread makes the region, nobody else drops the name, but
 * a child of fork(), which doesn't have that thread.
 */
struct shm_name {
	TAILQ_ENTRY(shm_name) entry;
	int fd;	    /* has the SHM_LIFE lock */
	int file;   /* the region's own description while it is being made, or -1 */
	int home;   /* the claim of a draft which is being made, or -1 */
	void *user; /* of a region that is being made, or NULL */
	bool draft;
	int maker; /* the read end of a draft's pipe, or -1 */
	uint32_t lifetime;
	char name[TSHARE_NAME_LEN];
};

/* Removes a home whose region has neither maker nor users and doesn't persist. */
enum shm_name_state shm_name_unlink_if_dead(int dir, const char *file);

/* The same for a home that is open. */
enum shm_name_state shm_home_unlink_if_dead(int dir, const char *file, int home);

/*
 * Removes all names and drafts of dead makers, whose memory would else stay until a
 * process asks for the name, and returns their number.
 */
unsigned int shm_names_sweep(int dir);

/* The least time between two sweeps of a session that creates regions, and of one that doesn't. */
#define SHM_SWEEP_PAUSE_NS INT64_C(1000000000)
#define SHM_LOOK_PAUSE_NS  (10 * SHM_SWEEP_PAUSE_NS)

/*
 * Sweeps, unless the session has done so since @since, or in the last @pause or, for each second
 * of that, a hundred times as long as it took. Returns when the next sweep will be due.
 */
int64_t shm_sweep_if_due(struct shm_session *session, int64_t since, int64_t pause);

/* The rule of the sticky bit, for a directory that has none: 0, -EPERM, or -ENOENT. */
int shm_check_owner(int dir, const char *entry);

/* Opens the home that has the name's file, or the claim with it; -ENOENT if there is none. */
int shm_name_open_home(const struct shm_session *session, const struct shm_name *name, bool *claim);

/* Removes a claim to a name, and the home that it is in if that has nothing else. */
void shm_claim_clear(int dir, const char *name, int claim);

/*
 * Makes an empty file for a new region, which the session holds, without a name in the
 * directory. No child of a fork() has any of it.
 */
int shm_name_begin(struct shm_session *session, const struct backend_request *request,
		   struct shm_name **begun);

/* Drops a region whose making has failed, with the claim to its name. */
void shm_name_abandon(struct shm_session *session, struct shm_name *name);

/* Ends the making: returns the region's file and user, which then are the caller's. */
int shm_name_complete(struct shm_session *session, struct shm_name *name, void **user);

/* Closes the files of a name that the session holds, which releases the lock. */
void shm_name_drop(struct shm_session *session, struct shm_name *name);

/* The same, of each that has been unlinked: the lock would keep only its memory. */
void shm_name_drop_if_unlinked(struct shm_session *session, const char *name);

/*
 * Leaves the draft of that name to the other processes that have it since a fork(): those
 * that wait for its maker wait for them alone. With the process's lock held.
 */
void shm_name_leave_draft(struct shm_session *session, const char *name);

/* Closes a draft's pipe, if it is open still. */
void shm_name_close_maker(struct shm_name *name);

/*
 * Does the same for names that other processes have unlinked. Looks at a few in turn,
 * so that to create many regions stays linear in their number.
 */
void shm_names_drop_some_unlinked(struct shm_session *session);

/* Drops those that a thread was making or removing which a child of fork() doesn't have. */
void shm_names_drop_in_child(struct shm_session *session);

/*
 * Removes the session's names, but for those that another process holds since a fork(): when it is
 * closed, or at exit() with the process's lock held.
 */
void shm_names_close(struct shm_session *session);
void shm_names_exit(struct shm_session *session);

#endif /* TSHARE_SHM_NAME_H */
