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
#define SHM_HIDDEN_PREFIX ".tshare."

/* Room for what a home may be called. */
#define SHM_HOME_NAME_LEN (sizeof(SHM_HOME_PREFIX) - 1 + TSHARE_NAME_LEN)
#define SHM_NEW_HOME_LEN  25

/*
 * The claim to a home's name: a home inside the home, with the file of the region that gets
 * the name next.
 */
#define SHM_CLAIM "next"

/*
 * The files in a home or a claim: the region's, which is first a draft's or a new one's and in
 * the end a region's, see backend-shm.c; and the pipe that the maker of a draft holds, for
 * those that wait for it.
 */
#define SHM_DRAFT_FILE	"draft"
#define SHM_NEW_FILE	"new"
#define SHM_REGION_FILE "region"
#define SHM_MAKER_FILE	"maker"

/* How often other processes may come in between before that is an error. */
#define SHM_MAX_TRIES 1000

enum shm_name_state {
	SHM_NAME_GONE,	 /* there is none now */
	SHM_NAME_TAKEN,	 /* by a living maker, a persistent region, or what is no region of ours */
	SHM_NAME_STUCK,	 /* dead, but not ours to remove */
	SHM_NAME_UNSEEN, /* there is no descriptor or no memory left to look at it with */
};

/* Whether it was the process or the system that had nothing left to open a file with. */
bool shm_is_shortage(int err);

/* The directory's path, and a descriptor of it. */
const char *shm_directory(void);
int shm_directory_open(void);

/* The directory's entries, from the first; NULL with errno set. */
DIR *shm_directory_stream(int dir);

/* The next home of a name or, with @hidden, of none yet; NULL at the end. */
const char *shm_directory_next(DIR *stream, bool hidden);

/* Opens the region's file in the home called @file. */
int shm_directory_open_file(int dir, const char *file, int access);

/* Looks at an entry, or with "" at the file itself, without asking a server of its file system. */
bool shm_stat(int dir, const char *entry, struct statx *st);
bool shm_is_same_device(const struct statx *one, const struct statx *other);

bool shm_is_same_file(int one, int other);

/* What the home of the region @name is called. */
void shm_home_name(char file[SHM_HOME_NAME_LEN], const char *name);

/* Whether a home of that name can't be opened as a region's: a maker's own, or a claim. */
bool shm_home_is_hidden(const char *file);

/* Opens a home, or a claim in one: -EPROTO if it is no directory, or one of another file system. */
int shm_home_open(int dir, const char *file);

/* Opens the claim in the home called @file, by one descriptor. */
int shm_claim_open(int dir, const char *file);

/*
 * Opens the region's file in it, or only if the region is not finished: -EPROTO if it
 * is none, or one of another file system.
 */
int shm_home_open_file(int home, int access);
int shm_home_open_unfinished(int home, int access);

/* Opens the pipe of a draft's maker for writing: -ENXIO if the maker is gone. */
int shm_home_open_maker(int home);

/* Describes the region's file. */
bool shm_home_stat_file(int home, struct statx *st);

/* Whether the home is called @file now. */
bool shm_home_is_at(int dir, const char *file, int home);

/* Whether the file in a home is the one behind @fd. */
bool shm_home_has(int home, int fd);
bool shm_home_has_file(int home, const struct statx *file);

/*
 * Makes a home that has the file behind @fd, or with @claim one that has a claim with it: a
 * draft's. It is called @file, until renamed.
 */
int shm_home_make(int dir, int fd, int *claim, char file[SHM_NEW_HOME_LEN]);

/* Gives the file behind @fd a name in a home or a claim. */
int shm_home_link(int home, int fd, const char *entry);

/* Makes a claim in a home, with the file behind @fd. */
int shm_claim_make(int home, int fd);

/* Makes the pipe of a draft's maker in a claim that has a file, and returns its read end. */
int shm_claim_make_maker(int claim);

/*
 * Marks the pipe before the draft gets the name, so that a process
 * that has the pipe open and finds neither knows that the draft was finished.
 */
void shm_claim_mark_maker(int claim, bool finished);
bool shm_maker_has_finished(int maker);

/*
 * Reports to those that watch the directory that the home called @file has lost its region, if it
 * stays for a claim in it.
 */
void shm_home_report(int dir, const char *file);

/* Removes a home that is empty. What else is in there is not ours. */
enum shm_name_state shm_home_remove_if_empty(int dir, const char *file, int home);

/* Removes the region that is in a home, and then the home. */
enum shm_name_state shm_home_clear(int dir, const char *file, int home);

#endif /* TSHARE_SHM_HOME_H */
