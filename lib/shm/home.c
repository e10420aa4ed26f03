// SPDX-License-Identifier: MIT
/* The directory of all names, and each region's home in it: opened, made, removed. */
#define _GNU_SOURCE 1
#include "shm/home.h"

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

#include "cleanup.h"
#include "error.h"

#define DEFAULT_DIR "/dev/shm"

/* What a home is called until it gets its name, with 16 hexadecimal digits. */
#define DRAFT_PREFIX ".tshare."

_Static_assert(SHM_DRAFT_LEN == sizeof(DRAFT_PREFIX) + 16, "a draft's name fits");

/* Everybody may look for the file, which has a mode of its own. */
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
		return tshare_fail(-EINVAL, "TSHARE_SHM_DIR: '%s' is no absolute path", dir);
	fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	if (errno == ENOENT || errno == ENOTDIR)
		return tshare_fail(-ENODEV, "%s: no such directory", dir);
	return tshare_fail(-errno, "%s: %s", dir, strerror(errno));
}

void shm_home_name(char file[SHM_HOME_NAME_LEN], const char *name)
{
	stpcpy(stpcpy(file, SHM_HOME_PREFIX), name);
}

/* Opening */

/*
 * Opens what is on the file system of the directory itself, and not behind a symbolic
 * link. Users may mount FUSE on what is theirs, and its server need never answer.
 */
static int open_here(int dir, const char *path, int flags)
{
	const struct open_how how = {
		.flags = flags | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};
	int fd;

	fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

/* The same for one component; mounts are crossed where openat2() is unknown or filtered out. */
static int open_entry(int dir, const char *entry, int flags)
{
	int fd = open_here(dir, entry, flags);

	if (fd != -ENOSYS && fd != -EPERM)
		return fd == -EXDEV ? -EPROTO : fd;
	fd = openat(dir, entry, flags | O_NOFOLLOW | O_CLOEXEC);
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

int shm_home_open_file(int home, int access)
{
	int fd = open_entry(home, SHM_REGION_FILE, access | O_NONBLOCK | O_NOCTTY);

	return fd == -ELOOP || fd == -EISDIR || fd == -ENXIO || fd == -ENODEV ? -EPROTO : fd;
}

int shm_directory_open_file(int dir, const char *file, int access)
{
	char path[SHM_HOME_NAME_LEN + sizeof(SHM_REGION_FILE)];
	_cleanup_close_ int home = -1;
	int fd;

	stpcpy(stpcpy(path, file), "/" SHM_REGION_FILE);
	fd = open_here(dir, path, access | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0)
		return fd;
	/* These steps fail for the reason that is to be reported. */
	home = shm_home_open(dir, file);
	if (home < 0)
		return home;
	return shm_home_open_file(home, access);
}

bool shm_home_has(int home, int fd)
{
	struct statx here, there;

	return shm_stat(fd, "", &here) && shm_stat(home, SHM_REGION_FILE, &there) &&
	       shm_is_same_device(&here, &there) && here.stx_ino == there.stx_ino;
}

/* Listing */

DIR *shm_directory_stream(int dir)
{
	_cleanup_close_ int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);

	if (stream)
		(void)no_cleanup(fd); /* now the stream's */
	return stream;
}

static bool is_draft(const char *file)
{
	return !strncmp(file, DRAFT_PREFIX, sizeof(DRAFT_PREFIX) - 1);
}

const char *shm_directory_next(DIR *stream, bool drafts)
{
	struct dirent *entry;

	while ((entry = readdir(stream)))
		if (!strncmp(entry->d_name, SHM_HOME_PREFIX, sizeof(SHM_HOME_PREFIX) - 1) ||
		    (drafts && is_draft(entry->d_name)))
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
	/* If it was removed meanwhile, or replaced by another, it has no links. */
	return errno == ENOTEMPTY && shm_stat(home, "", &st) && st.stx_nlink ? SHM_NAME_TAKEN :
									       SHM_NAME_GONE;
}

enum shm_name_state shm_home_clear(int dir, const char *file, int home)
{
	if (unlinkat(home, SHM_REGION_FILE, 0) && errno != ENOENT)
		return SHM_NAME_STUCK;
	return shm_home_remove_if_empty(dir, file, home);
}

/* Makes an empty home, called @draft until it is renamed. The umask is ignored. */
static int new_home(int dir, char draft[SHM_DRAFT_LEN])
{
	char path[32];
	struct stat st;
	uint64_t number;
	int home, err;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -errno;
	snprintf(draft, SHM_DRAFT_LEN, DRAFT_PREFIX "%016" PRIx64, number);
	if (mkdirat(dir, draft, HOME_MODE))
		return -errno;
	home = shm_home_open(dir, draft);
	if (home < 0)
		return home;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", home);
	if (fstat(home, &st) || ((st.st_mode & 0777) != HOME_MODE && chmod(path, HOME_MODE))) {
		err = -errno;
		unlinkat(dir, draft, AT_REMOVEDIR);
		close(home);
		return err;
	}
	return home;
}

/*
 * Until the file is there, other processes take the home for one that a dead process
 * left, and remove it.
 */
int shm_home_make(int dir, int fd, char draft[SHM_DRAFT_LEN])
{
	int home, tries = 0, err;
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	do {
		home = new_home(dir, draft);
		if (home >= 0 && !linkat(AT_FDCWD, path, home, SHM_REGION_FILE, AT_SYMLINK_FOLLOW))
			return home;
		err = home < 0 ? home : -errno;
		if (home >= 0) {
			unlinkat(dir, draft, AT_REMOVEDIR);
			close(home);
		}
	} while (err == -ENOENT && ++tries < SHM_MAX_TRIES);
	return err;
}
