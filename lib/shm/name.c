// SPDX-License-Identifier: MIT
/*
 * Names: how long each lives, how it is removed when its maker is dead, and those that
 * a session holds.
 */
#define _GNU_SOURCE 1
#include "shm/name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "error.h"
#include "lock.h"
#include "ofd-lock.h"
#include "shm/file.h"
#include "shm/session.h"

/* Names that are looked at when one more is made. */
#define SWEEP_BATCH 64

/* A name that the session holds. */
struct shm_name {
	TAILQ_ENTRY(shm_name) entry;
	int fd; /* has the SHM_LIFE lock */
	char file[SHM_HOME_NAME_LEN];
};

/* Names of the dead */

/* Whether the maker has exited and the region doesn't persist; false if that can't be read. */
static bool name_is_dead(int fd)
{
	struct shm_head head;
	size_t length;
	bool alive;

	return !shm_file_read_life(fd, &head, &length, &alive) && !alive;
}

enum shm_name_state shm_home_unlink_if_dead(int dir, const char *file, int home)
{
	_cleanup_close_ int fd = -1;

	fd = shm_home_open_file(home, O_RDONLY);
	/* Its maker may be about to fill it; it then finds the home removed and makes another. */
	if (fd == -ENOENT)
		return shm_home_remove_if_empty(dir, file, home);
	if (fd < 0)
		return SHM_NAME_TAKEN;
	return name_is_dead(fd) ? shm_home_clear(dir, file, home) : SHM_NAME_TAKEN;
}

enum shm_name_state shm_name_unlink_if_dead(int dir, const char *file)
{
	_cleanup_close_ int home = shm_home_open(dir, file);

	if (home == -EMFILE || home == -ENFILE || home == -ENOMEM)
		return SHM_NAME_UNSEEN;
	if (home < 0)
		return home == -ENOENT ? SHM_NAME_GONE : SHM_NAME_TAKEN;
	return shm_home_unlink_if_dead(dir, file, home);
}

unsigned int shm_names_sweep(int dir)
{
	_cleanup_closedir_ DIR *stream = shm_directory_stream(dir);
	unsigned int removed = 0;
	const char *file;

	if (!stream)
		return 0;
	while ((file = shm_directory_next(stream, true)))
		if (shm_name_unlink_if_dead(dir, file) == SHM_NAME_GONE)
			removed++;
	return removed;
}

/* Names of a session */

/* Closes the file, which releases the lock, and leaves the name where it is. */
static void drop_name(struct shm_session *session, struct shm_name *name)
{
	TAILQ_REMOVE(&session->names, name, entry);
	close(name->fd);
	free(name);
}

/*
 * Removes a name at the end of its session, whatever a peer has written to the
 * header. After fork() another process may hold the lock: then the name stays.
 */
static void end_name(struct shm_session *session, struct shm_name *name)
{
	_cleanup_close_ int home = shm_home_open(session->dir, name->file);
	_cleanup_close_ int fd = -1;
	char file[SHM_HOME_NAME_LEN];

	if (home >= 0 && shm_home_has(home, name->fd))
		fd = shm_home_open_file(home, O_RDONLY);
	stpcpy(file, name->file);
	drop_name(session, name);
	if (fd >= 0 && !shm_file_is_locked(fd, SHM_LIFE))
		shm_home_clear(session->dir, file, home);
}

void shm_names_end(struct shm_session *session)
{
	struct shm_name *name;

	while ((name = TAILQ_FIRST(&session->names)))
		end_name(session, name);
}

static bool is_unlinked(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && !st.st_nlink;
}

/* Whether the file has its name still. A process that may write it can give it other links. */
static bool has_name(const struct shm_session *session, const struct shm_name *name)
{
	_cleanup_close_ int home = shm_home_open(session->dir, name->file);

	return home >= 0 && shm_home_has(home, name->fd);
}

void shm_name_drop_if_unlinked(struct shm_session *session, const char *file)
{
	struct shm_name *name, *next;

	tshare_lock();
	for (name = TAILQ_FIRST(&session->names); name; name = next) {
		next = TAILQ_NEXT(name, entry);
		if (!strcmp(name->file, file) && !has_name(session, name))
			drop_name(session, name);
	}
	tshare_unlock();
}

void shm_names_drop_some_unlinked(struct shm_session *session)
{
	struct shm_name *name, *last;
	unsigned int i;

	tshare_lock();
	last = TAILQ_LAST(&session->names, shm_name_list);
	for (i = 0; last && i < SWEEP_BATCH; i++) {
		name = TAILQ_FIRST(&session->names);
		if (name == last)
			i = SWEEP_BATCH;
		TAILQ_REMOVE(&session->names, name, entry);
		TAILQ_INSERT_TAIL(&session->names, name, entry);
		if (is_unlinked(name->fd))
			drop_name(session, name);
	}
	tshare_unlock();
}

/* Linking */

int shm_name_fail_taken(enum shm_name_state state, const char *name)
{
	if (state == SHM_NAME_STUCK)
		return tshare_fail(-EEXIST,
				   "name: '%s' is a dead process's; only its user can remove it",
				   name);
	return tshare_fail_name(-EEXIST, name);
}

static int rename_home(int dir, const char *draft, const char *file, const char *name)
{
	enum shm_name_state state;
	int tries, err = 0;

	for (tries = 0; tries < SHM_MAX_TRIES; tries++) {
		if (!renameat(dir, draft, dir, file))
			return 0;
		err = -errno;
		state = shm_name_unlink_if_dead(dir, file);
		if (state != SHM_NAME_GONE)
			return shm_name_fail_taken(state, name);
	}
	return tshare_fail(err, "%s: %s", shm_directory(), strerror(-err));
}

/* Links a locked file under @file, unless that is taken. */
static int link_file(const struct shm_session *session, int fd, const char *file, const char *name)
{
	char draft[SHM_DRAFT_LEN];
	_cleanup_close_ int home = shm_home_make(session->dir, fd, draft);
	int err;

	if (home < 0)
		return shm_fail_proc(home, shm_directory());
	err = rename_home(session->dir, draft, file, name);
	if (err)
		shm_home_clear(session->dir, draft, home);
	return err;
}

static int link_locked(const struct shm_session *session, int fd, const char *file,
		       const char *name)
{
	int err = ofd_lock_set(fd, F_WRLCK, SHM_LIFE);

	if (err)
		return tshare_fail(err, "%s: lock: %s", shm_directory(), strerror(-err));
	return link_file(session, fd, file, name);
}

int shm_name_link_for_session(struct shm_session *session, int fd, const char *file,
			      const char *text)
{
	_cleanup_free_ struct shm_name *name = malloc(sizeof(*name));
	int err;

	if (!name)
		return tshare_fail(-ENOMEM, "region: out of memory");
	name->fd = fd;
	stpcpy(name->file, file);
	err = link_locked(session, fd, file, text);
	if (err)
		return err;
	tshare_lock();
	TAILQ_INSERT_TAIL(&session->names, name, entry);
	tshare_unlock();
	(void)no_cleanup(name); /* now the session's */
	return 0;
}

/*
 * The header says that it persists only when it has its name, and the maker holds
 * the lock until then: a draft is removed with its maker, and a process that removes
 * drafts may have opened the home before it was renamed.
 */
int shm_name_link_for_good(const struct shm_session *session, int fd, const char *file,
			   const char *name)
{
	int err;

	err = link_locked(session, fd, file, name);
	if (err)
		return err;
	err = shm_file_write_flags(fd, SHM_PERSIST);
	if (err)
		tshare_fail(err, "%s: %s", shm_directory(), strerror(-err));
	/* Without the flag the name is a dead maker's from here on. */
	ofd_lock_set(fd, F_UNLCK, SHM_LIFE);
	return err;
}
