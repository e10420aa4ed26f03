/* SPDX-License-Identifier: MIT */
/*
 * The directory of all names, and each named region's home in it; backend/shm.c explains homes.
 * Files in a home are untrusted: callers validate them.
 */
#ifndef TSHARE_BACKEND_SHM_HOME_H
#define TSHARE_BACKEND_SHM_HOME_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>

#include <linux/tshare.h>

#define SHM_HOME_PREFIX	  "tshare."
#define SHM_HIDDEN_PREFIX ".tshare."

/* Bytes of a home's file name, with the terminating NUL. */
#define SHM_HOME_NAME_LEN (sizeof(SHM_HOME_PREFIX) - 1 + TSHARE_NAME_LEN)
#define SHM_NEW_HOME_LEN  25

/*
 * The claim to a home's name: a directory in the home, with the file of the region that gets the
 * name next.
 */
#define SHM_CLAIM "next"

/*
 * Files in a home or a claim. The region's file is called "draft" or "new" first, and "region" in
 * the end, see backend/shm.c. "maker" is the pipe whose read end the maker of a draft holds, for
 * processes that wait for the draft.
 */
#define SHM_DRAFT_FILE	"draft"
#define SHM_NEW_FILE	"new"
#define SHM_REGION_FILE "region"
#define SHM_MAKER_FILE	"maker"

/* Tries that other processes may disturb before an operation fails. */
#define SHM_MAX_TRIES 1000

enum shm_name_state {
	SHM_NAME_GONE,	 /* no home is there now */
	SHM_NAME_TAKEN,	 /* kept by a maker, by users or as persistent; or no region of ours */
	SHM_NAME_STUCK,	 /* dead, but this process may not remove it */
	SHM_NAME_UNSEEN, /* no descriptor or memory is left to look at it */
};

/* Whether @err says that the process or the system has no descriptor or memory left. */
bool shm_is_shortage(int err);

/* The directory's path, and a descriptor of it. */
const char *shm_directory(void);
int shm_directory_open(void);

/* The directory's entries, from the first; NULL with errno set. */
DIR *shm_directory_stream(int dir);

/* The next home of a name or, with @hidden, also one without a name; NULL at the end. */
const char *shm_directory_next(DIR *stream, bool hidden);

/* Opens the region's file in the home called @file. */
int shm_directory_open_file(int dir, const char *file, int access);

/* Describes an entry or, with "", @dir itself, without asking the server of a file system. */
bool shm_stat(int dir, const char *entry, struct statx *st);
bool shm_is_same_device(const struct statx *one, const struct statx *other);

bool shm_is_same_file(int one, int other);

/* The file name of the home of the region @name. */
void shm_home_name(char file[SHM_HOME_NAME_LEN], const char *name);

/* Whether @file is a maker's own home or a claim, which aren't opened as a region's. */
bool shm_home_is_hidden(const char *file);

/* Opens a home, or a claim in one: -EPROTO if it is no directory, or one of another file system. */
int shm_home_open(int dir, const char *file);

/* Opens the claim in the home called @file; where openat2() works, no second descriptor is used. */
int shm_claim_open(int dir, const char *file);

/*
 * Open the region's file in a home, or only an unfinished region's. -EPROTO if it can't be a
 * region's file, or is on another file system.
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
 * Makes a home with the file behind @fd or, for a draft, with a claim that has the file: then
 * @claim isn't NULL. The home is called @file until it is renamed.
 */
int shm_home_make(int dir, int fd, int *claim, char file[SHM_NEW_HOME_LEN]);

/* Gives the file behind @fd a name in a home or a claim. */
int shm_home_link(int home, int fd, const char *entry);

/* Makes a claim in a home, with the file behind @fd. */
int shm_claim_make(int home, int fd);

/* Makes the pipe of a draft's maker in a claim that has a file, and returns its read end. */
int shm_claim_make_maker(int claim);

/*
 * Marks the pipe as finished before the draft gets the name. A process that has the pipe open and
 * finds neither draft nor name then knows that the draft was finished.
 */
void shm_claim_mark_maker(int claim, bool finished);
bool shm_maker_has_finished(int maker);

/*
 * Makes inotify report that the home called @file has lost its region. Without a region the home
 * stays only for a claim in it.
 */
void shm_home_report(int dir, const char *file);

/* Removes a home if it is empty. This library removes no other files from it. */
enum shm_name_state shm_home_remove_if_empty(int dir, const char *file, int home);

/* Removes the region that is in a home, and then the home. */
enum shm_name_state shm_home_clear(int dir, const char *file, int home);

#endif /* TSHARE_BACKEND_SHM_HOME_H */
