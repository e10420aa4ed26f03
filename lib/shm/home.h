/* SPDX-License-Identifier: MIT */
/*
 * The directory of all names, and the home that each named region has in it: see
 * backend-shm.c for why. What is in a home is opened, and never trusted, here.
 */
#ifndef TSHARE_SHM_HOME_H
#define TSHARE_SHM_HOME_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>

#include <linux/tshare.h>

#define SHM_HOME_PREFIX	  "tshare."
#define SHM_HOME_NAME_LEN (sizeof(SHM_HOME_PREFIX) - 1 + TSHARE_NAME_LEN)
#define SHM_DRAFT_LEN	  25

/* The file in a home. */
#define SHM_REGION_FILE "region"

/* How often other processes may come in between before that is an error. */
#define SHM_MAX_TRIES 1000

enum shm_name_state {
	SHM_NAME_GONE,	 /* there is none now */
	SHM_NAME_TAKEN,	 /* by a living maker, a persistent region, or what is no region of ours */
	SHM_NAME_STUCK,	 /* dead, but not ours to remove */
	SHM_NAME_UNSEEN, /* there is no descriptor or no memory left to look at it with */
};

/* The directory's path, and a descriptor of it. */
const char *shm_directory(void);
int shm_directory_open(void);

/* The directory's entries, from the first; NULL with errno set. */
DIR *shm_directory_stream(int dir);

/* The next name that may be a region's or, with @drafts, a draft's; NULL at the end. */
const char *shm_directory_next(DIR *stream, bool drafts);

/* Opens the region's file in the home called @file. */
int shm_directory_open_file(int dir, const char *file, int access);

/* Looks at an entry, or with "" at the file itself, without asking a server of its file system. */
bool shm_stat(int dir, const char *entry, struct statx *st);
bool shm_is_same_device(const struct statx *one, const struct statx *other);

/* What the home of the region @name is called. */
void shm_home_name(char file[SHM_HOME_NAME_LEN], const char *name);

/* Opens a home: -EPROTO if it is no directory, or one of another file system. */
int shm_home_open(int dir, const char *file);

/* Opens the region's file in it: -EPROTO if it is none, or one of another file system. */
int shm_home_open_file(int home, int access);

/* Whether the file in a home is the one behind @fd. */
bool shm_home_has(int home, int fd);

/* Makes a home that has the file behind @fd. It is called @draft, until renamed. */
int shm_home_make(int dir, int fd, char draft[SHM_DRAFT_LEN]);

/* Removes a home that is empty. What else is in there is not ours. */
enum shm_name_state shm_home_remove_if_empty(int dir, const char *file, int home);

/* Removes the region that is in a home, and then the home. */
enum shm_name_state shm_home_clear(int dir, const char *file, int home);

#endif /* TSHARE_SHM_HOME_H */
