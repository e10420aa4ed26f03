/* SPDX-License-Identifier: MIT */
/* Names of the dead: whose makers have ended, and which nothing else keeps. */
#ifndef TSHARE_BACKEND_SHM_DEAD_H
#define TSHARE_BACKEND_SHM_DEAD_H

#include <stdint.h>

#include "backend/shm/home.h"

struct shm_session;

/* Removes a home whose region has neither maker nor users and doesn't persist. */
enum shm_name_state shm_name_unlink_if_dead(int dir, const char *file);

/* As shm_name_unlink_if_dead(), for an open home. */
enum shm_name_state shm_home_unlink_if_dead(int dir, const char *file, int home);

/*
 * Removes all names and drafts of dead makers, and returns their number. Otherwise their memory
 * would stay until a process asks for the name.
 */
unsigned int shm_names_sweep(int dir);

/* Least time between a session's sweeps: while it creates or lists regions, and while it waits. */
#define SHM_SWEEP_PAUSE_NS INT64_C(1000000000)
#define SHM_LOOK_PAUSE_NS  (10 * SHM_SWEEP_PAUSE_NS)

/*
 * Sweeps if @pause has passed since @since and the session's last sweep; after a slow one, 100
 * times its duration for each second of @pause. Returns when the next sweep is due.
 */
int64_t shm_sweep_if_due(struct shm_session *session, int64_t since, int64_t pause);

/* Applies the rule of the sticky bit to a directory without it: 0, -EPERM, or -ENOENT. */
int shm_check_owner(int dir, const char *entry);

#endif /* TSHARE_BACKEND_SHM_DEAD_H */
