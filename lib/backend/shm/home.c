// SPDX-License-Identifier: MIT
/* The directory of all names, and each region's home in it: opened, made, removed. */
#define _GNU_SOURCE 1
#include "backend/shm/home.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"

#define DEFAULT_DIR "/dev/shm"

/* A new home's name is the prefix and 16 hexadecimal digits. */
_Static_assert(SHM_NEW_HOME_LEN == sizeof(SHM_HIDDEN_PREFIX) + 16, "a new home's name fits");

/* Every account may look for the file, which has a mode of its own. */
#define HOME_MODE 0755

const char *shm_directory(void)
{
	const char *dir = secure_getenv("TSHARE_SHM_DIR");

	return dir && *dir ? dir : DEFAULT_DIR;
}

int shm_directory_open(void)
{
	const char *dir = shm_directory();
	int fd;

	if (dir[0] != '/')
		return fail(-EINVAL, "TSHARE_SHM_DIR: '%s' must be an absolute path", dir);
	fd = fd_open(dir, O_PATH | O_DIRECTORY);
	if (fd >= 0)
		return fd;
	if (errno == ENOENT || errno == ENOTDIR)
		return fail(-ENODEV, "%s: no such directory", dir);
	return fail(-errno, "%s: %s", dir, strerror(errno));
}

void shm_home_name(char file[SHM_HOME_NAME_LEN], const char *name)
{
	stpcpy(stpcpy(file, SHM_HOME_PREFIX), name);
}

bool shm_home_is_hidden(const char *file)
{
	return !strncmp(file, SHM_HIDDEN_PREFIX, sizeof(SHM_HIDDEN_PREFIX) - 1) ||
	       !strcmp(file, SHM_CLAIM);
}

/* Opening */

bool shm_is_shortage(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM;
}

/*
 * Opens a path that stays on the directory's own file system and has no symbolic link. Accounts
 * may mount FUSE on their own directories, and a FUSE server may never answer.
 */
static int open_here(int dir, const char *path, int flags)
{
	const struct open_how how = {
		.flags = flags | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};
	int fd;

	fd = fd_move_up(syscall(SYS_openat2, dir, path, &how, sizeof(how)));
	return fd < 0 ? -errno : fd;
}

/* As open_here(), for one component. Mounts are crossed if openat2() is unknown or filtered out. */
static int open_entry(int dir, const char *entry, int flags)
{
	int fd = open_here(dir, entry, flags);

	if (fd != -ENOSYS && fd != -EPERM)
		return fd == -EXDEV ? -EPROTO : fd;
	fd = fd_open_at(dir, entry, flags | O_NOFOLLOW, 0);
	return fd < 0 ? -errno : fd;
}

bool shm_stat(int dir, const char *entry, struct statx *st)
{
	return !statx(dir, entry, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		      STATX_BASIC_STATS, st);
}

bool shm_is_same_device(const struct statx *one, const struct statx *other)
{
	return one->stx_dev_major == other->stx_dev_major &&
	       one->stx_dev_minor == other->stx_dev_minor;
}

int shm_home_open(int dir, const char *file)
{
	int fd = open_entry(dir, file, O_PATH | O_DIRECTORY);

	return fd == -ENOTDIR || fd == -ELOOP ? -EPROTO : fd;
}

int shm_claim_open(int dir, const char *file)
{
	char path[SHM_HOME_NAME_LEN + sizeof(SHM_CLAIM)];
	_cleanup_close_ int home = -1;
	int fd;

	stpcpy(stpcpy(path, file), "/" SHM_CLAIM);
	fd = open_here(dir, path, O_PATH | O_DIRECTORY);
	if (fd >= 0)
		return fd;
	/* Opening step by step finds the error to report. */
	home = shm_home_open(dir, file);
	return home < 0 ? home : shm_home_open(home, SHM_CLAIM);
}

static int open_file_called(int home, const char *entry, int access)
{
	int fd = open_entry(home, entry, access | O_NONBLOCK | O_NOCTTY);

	return fd == -ELOOP || fd == -EISDIR || fd == -ENXIO || fd == -ENODEV ? -EPROTO : fd;
}

/*
 * Names of a region's file, in the order in which it is renamed. Only a maker whose finish fails
 * at the last moment renames it back, so two rounds find it.
 */
static const char *const file_names[] = { SHM_DRAFT_FILE, SHM_NEW_FILE, SHM_REGION_FILE };

#define FINISHED   ((size_t)2)
#define FILE_NAMES (FINISHED + 1)

static int open_file_before(int home, size_t end, int access)
{
	int fd = -ENOENT;
	size_t i;

	for (i = 0; i < 2 * end && fd == -ENOENT; i++)
		fd = open_file_called(home, file_names[i % end], access);
	return fd;
}

int shm_home_open_unfinished(int home, int access)
{
	return open_file_before(home, FINISHED, access);
}

int shm_home_open_file(int home, int access)
{
	int fd = open_file_called(home, SHM_REGION_FILE, access);

	return fd == -ENOENT ? open_file_before(home, FILE_NAMES, access) : fd;
}

int shm_home_open_maker(int home)
{
	struct statx st;

	/* Opening anything else for writing could have effects. */
	if (!shm_stat(home, SHM_MAKER_FILE, &st))
		return -errno;
	if (!S_ISFIFO(st.stx_mode))
		return -EPROTO;
	return open_entry(home, SHM_MAKER_FILE, O_WRONLY | O_NONBLOCK | O_NOCTTY);
}

bool shm_home_stat_file(int home, struct statx *st)
{
	size_t i;

	if (shm_stat(home, SHM_REGION_FILE, st))
		return true;
	for (i = 0; i < 2 * FILE_NAMES; i++)
		if (shm_stat(home, file_names[i % FILE_NAMES], st))
			return true;
	return false;
}

static bool is_same_file(const struct statx *one, const struct statx *other)
{
	return shm_is_same_device(one, other) && one->stx_ino == other->stx_ino;
}

bool shm_is_same_file(int one, int other)
{
	struct statx here, there;

	return shm_stat(one, "", &here) && shm_stat(other, "", &there) &&
	       is_same_file(&here, &there);
}

bool shm_home_is_at(int dir, const char *file, int home)
{
	struct statx here, there;

	return shm_stat(home, "", &here) && shm_stat(dir, file, &there) &&
	       is_same_file(&here, &there);
}

int shm_directory_open_file(int dir, const char *file, int access)
{
	char path[SHM_HOME_NAME_LEN + sizeof(SHM_REGION_FILE)];
	_cleanup_close_ int home = -1;
	int tries = 0, fd;

	stpcpy(stpcpy(path, file), "/" SHM_REGION_FILE);
	fd = open_here(dir, path, access | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0)
		return fd;
	/* Opening step by step finds the error to report. */
	do {
		if (home >= 0)
			close(home);
		home = shm_home_open(dir, file);
		if (home < 0)
			return home;
		fd = shm_home_open_file(home, access);
		/* Another region may have taken the name over. */
	} while (fd == -ENOENT && !shm_home_is_at(dir, file, home) && ++tries < SHM_MAX_TRIES);
	return fd;
}

bool shm_home_has_file(int home, const struct statx *file)
{
	struct statx there;

	return shm_home_stat_file(home, &there) && is_same_file(file, &there);
}

bool shm_home_has(int home, int fd)
{
	struct statx here;

	return shm_stat(fd, "", &here) && shm_home_has_file(home, &here);
}

/* Listing */

DIR *shm_directory_stream(int dir)
{
	_cleanup_close_ int fd = fd_open_at(dir, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);

	if (stream)
		(void)no_cleanup(fd); /* now the stream's */
	return stream;
}

const char *shm_directory_next(DIR *stream, bool hidden)
{
	struct dirent *entry;

	while ((entry = readdir(stream)))
		if (!strncmp(entry->d_name, SHM_HOME_PREFIX, sizeof(SHM_HOME_PREFIX) - 1) ||
		    (hidden && shm_home_is_hidden(entry->d_name)))
			return entry->d_name;
	return NULL;
}

/* Making and removing */

enum shm_name_state shm_home_remove_if_empty(int dir, const char *file, int home)
{
	struct statx st;

	if (!unlinkat(dir, file, AT_REMOVEDIR))
		return SHM_NAME_GONE;
	if (errno == EPERM || errno == EACCES)
		return SHM_NAME_STUCK;
	/* A home that was removed or replaced meanwhile has no links. */
	return errno == ENOTEMPTY && shm_stat(home, "", &st) && st.stx_nlink ? SHM_NAME_TAKEN :
									       SHM_NAME_GONE;
}

void shm_home_report(int dir, const char *file)
{
	utimensat(dir, file, NULL, AT_SYMLINK_NOFOLLOW);
}

enum shm_name_state shm_home_clear(int dir, const char *file, int home)
{
	enum shm_name_state state;
	bool had_file = false;
	size_t i;

	if (unlinkat(home, SHM_MAKER_FILE, 0) && errno != ENOENT)
		return SHM_NAME_STUCK;
	for (i = 0; i < FILE_NAMES; i++) {
		if (!unlinkat(home, file_names[i], 0))
			had_file = true;
		else if (errno != ENOENT)
			return SHM_NAME_STUCK;
	}
	state = shm_home_remove_if_empty(dir, file, home);
	if (had_file && state == SHM_NAME_TAKEN)
		shm_home_report(dir, file);
	return state;
}

/* Makes an empty directory. The umask is ignored. */
static int new_directory(int dir, const char *entry)
{
	char path[32];
	struct stat st;
	int home, err;

	if (mkdirat(dir, entry, HOME_MODE))
		return -errno;
	home = shm_home_open(dir, entry);
	if (home < 0) {
		unlinkat(dir, entry, AT_REMOVEDIR);
		return home;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", home);
	if (fstat(home, &st) || ((st.st_mode & 0777) != HOME_MODE && chmod(path, HOME_MODE))) {
		err = -errno;
		unlinkat(dir, entry, AT_REMOVEDIR);
		close(home);
		return err;
	}
	return home;
}

/* Makes an empty home, called @file until it is renamed. */
static int new_home(int dir, char file[SHM_NEW_HOME_LEN])
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -errno;
	snprintf(file, SHM_NEW_HOME_LEN, SHM_HIDDEN_PREFIX "%016" PRIx64, number);
	return new_directory(dir, file);
}

int shm_home_link(int home, int fd, const char *entry)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, home, entry, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

int shm_claim_make(int home, int fd)
{
	int claim = new_directory(home, SHM_CLAIM), err;

	if (claim < 0)
		return claim;
	err = shm_home_link(claim, fd, SHM_NEW_FILE);
	if (!err)
		return claim;
	unlinkat(home, SHM_CLAIM, AT_REMOVEDIR);
	close(claim);
	return err;
}

static int fill_home(int home, int fd, int *claim)
{
	if (!claim)
		return shm_home_link(home, fd, SHM_NEW_FILE);
	*claim = shm_claim_make(home, fd);
	return *claim < 0 ? *claim : 0;
}

/*
 * Other processes take a home without a file for a dead process's, and remove it. Then the loop
 * makes another.
 */
int shm_home_make(int dir, int fd, int *claim, char file[SHM_NEW_HOME_LEN])
{
	int home, tries = 0, err;

	do {
		home = new_home(dir, file);
		err = home < 0 ? home : fill_home(home, fd, claim);
		if (!err)
			return home;
		if (home >= 0) {
			unlinkat(dir, file, AT_REMOVEDIR);
			close(home);
		}
	} while (err == -ENOENT && ++tries < SHM_MAX_TRIES);
	return err;
}

/* Any process may wait for the maker, so any may open the pipe for writing. */
#define MAKER_MODE 0622

/* Mode bits that have no meaning for a pipe, and that only its owner can set. */
#define MAKER_FINISHED 0111

int shm_claim_make_maker(int claim)
{
	int fd;

	if (mkfifoat(claim, SHM_MAKER_FILE, MAKER_MODE))
		return -errno;
	/* The umask is ignored. */
	if (fchmodat(claim, SHM_MAKER_FILE, MAKER_MODE, 0))
		return -errno;
	fd = fd_open_at(claim, SHM_MAKER_FILE, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
	return fd < 0 ? -errno : fd;
}

void shm_claim_mark_maker(int claim, bool finished)
{
	fchmodat(claim, SHM_MAKER_FILE, finished ? MAKER_MODE | MAKER_FINISHED : MAKER_MODE, 0);
}

bool shm_maker_has_finished(int maker)
{
	struct statx st;

	return shm_stat(maker, "", &st) && (st.stx_mode & MAKER_FINISHED);
}
