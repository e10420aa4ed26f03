// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "backend/shm/dead.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/shm/file.h"
#include "backend/shm/session.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/ofd-lock.h"

/* The state of a name whose home or file can't be opened. */
static enum shm_name_state state_unread(int err)
{
	return shm_is_shortage(err) ? SHM_NAME_UNSEEN : SHM_NAME_TAKEN;
}

/*
 * Removes a home without a region's file. A pipe in it is from a process that was killed while it
 * removed a draft: a home gets its file before its pipe, so a home with a pipe and then without a
 * file never gets a file again.
 */
static enum shm_name_state remove_without_file(int dir, const char *file, int home)
{
	struct statx st;

	if (shm_stat(home, SHM_MAKER_FILE, &st) && !shm_home_stat_file(home, &st))
		unlinkat(home, SHM_MAKER_FILE, 0);
	return shm_home_remove_if_empty(dir, file, home);
}

/* Whether nothing keeps the name; false if that can't be read. Stores the header's flags. */
static bool name_is_dead(int fd, uint32_t *flags)
{
	struct shm_head head;
	size_t length;
	bool alive;

	if (shm_file_read_life(fd, &head, &length, &alive))
		return false;
	*flags = head.header.flags;
	return !alive;
}

static enum shm_name_state clear_if_there(int dir, const char *file, int home)
{
	return shm_home_is_at(dir, file, home) ? shm_home_clear(dir, file, home) : SHM_NAME_GONE;
}

/*
 * Removes the home of a region without users, unless a user has begun: see users.c. While this
 * holds the lock no process finishes a draft, so its home stays where it is.
 */
static enum shm_name_state clear_unused(int dir, const char *file, int home)
{
	_cleanup_close_ int fd = shm_home_open_file(home, O_RDWR);
	int err;

	if (fd == -ENOENT)
		return remove_without_file(dir, file, home);
	if (fd == -EACCES)
		return SHM_NAME_STUCK;
	if (fd < 0)
		return state_unread(fd);
	err = ofd_lock_set(fd, F_WRLCK, SHM_USED);
	return err ? SHM_NAME_TAKEN : clear_if_there(dir, file, home);
}

/* Removes a dead maker's region that has no name yet, whatever its lifetime. */
static enum shm_name_state unlink_unfinished_if_dead(int dir, const char *file, int home, int fd)
{
	bool locked = shm_file_is_locked(fd, SHM_LIFE);
	struct shm_head head;
	size_t length;

	if (shm_file_read_head(fd, &head, &length) || !shm_header_is_known(&head.header))
		return SHM_NAME_TAKEN;
	if (!locked)
		return clear_if_there(dir, file, home);
	/* A draft that no object has open can't be finished any more. */
	return head.header.flags & SHM_DRAFT && !shm_file_is_used(fd) ?
		       clear_unused(dir, file, home) :
		       SHM_NAME_TAKEN;
}

/* Whether the maker of a draft has ended. Works also if the draft can't be read. */
static bool maker_has_ended(int home)
{
	_cleanup_close_ int maker = shm_home_open_maker(home);

	return maker == -ENXIO;
}

/*
 * A finished region in a hidden home has lost its name to another one. Or its maker has finished
 * it elsewhere, after the home was opened here: so clear_if_there() looks where the home is once
 * more. A finished home that is at the hidden place is there for good. So is the home of a dead
 * maker, which nobody else moves.
 */
static enum shm_name_state unlink_hidden_if_dead(int dir, const char *file, int home)
{
	_cleanup_close_ int fd = shm_home_open_unfinished(home, O_RDONLY);
	struct statx st;

	/* A home that is filled meanwhile is not empty, and stays. */
	if (fd == -ENOENT && !shm_stat(home, SHM_REGION_FILE, &st))
		return remove_without_file(dir, file, home);
	if (fd == -ENOENT)
		return clear_if_there(dir, file, home);
	if (fd == -EACCES && maker_has_ended(home))
		return SHM_NAME_STUCK;
	return fd < 0 ? state_unread(fd) : unlink_unfinished_if_dead(dir, file, home, fd);
}

/* Removes a dead maker's claim in a home, and counts it. */
static enum shm_name_state unlink_claim_if_dead(int named, unsigned int *removed)
{
	_cleanup_close_ int claim = shm_home_open(named, SHM_CLAIM);
	enum shm_name_state state;

	if (claim == -ENOENT)
		return SHM_NAME_GONE;
	state = claim < 0 ? state_unread(claim) : unlink_hidden_if_dead(named, SHM_CLAIM, claim);
	*removed += state == SHM_NAME_GONE;
	return state;
}

/* Removes a dead region's home, but not a claim in it. */
static enum shm_name_state unlink_home_if_dead(int dir, const char *file, int home)
{
	_cleanup_close_ int fd = -1;
	uint32_t flags;

	if (shm_home_is_hidden(file))
		return unlink_hidden_if_dead(dir, file, home);
	fd = shm_home_open_file(home, O_RDONLY);
	/* The maker may be about to fill the home; it then finds that removed and makes another. */
	if (fd == -ENOENT)
		return remove_without_file(dir, file, home);
	if (fd < 0)
		return state_unread(fd);
	if (!name_is_dead(fd, &flags))
		return SHM_NAME_TAKEN;
	return flags & SHM_USERS ? clear_unused(dir, file, home) : shm_home_clear(dir, file, home);
}

static enum shm_name_state unlink_both_if_dead(int dir, const char *file, int home,
					       unsigned int *removed)
{
	enum shm_name_state state, claim = SHM_NAME_GONE;
	struct statx st;

	/* A claim has no claim, whatever its owner makes in it. */
	if (strcmp(file, SHM_CLAIM))
		claim = unlink_claim_if_dead(home, removed);
	state = unlink_home_if_dead(dir, file, home);
	*removed += state == SHM_NAME_GONE;
	/* Without a region, a home is taken by its claim. */
	return state != SHM_NAME_GONE && claim != SHM_NAME_GONE && !shm_home_stat_file(home, &st) ?
		       claim :
		       state;
}

enum shm_name_state shm_home_unlink_if_dead(int dir, const char *file, int home)
{
	unsigned int removed = 0;

	return unlink_both_if_dead(dir, file, home, &removed);
}

enum shm_name_state shm_name_unlink_if_dead(int dir, const char *file)
{
	_cleanup_close_ int home = shm_home_open(dir, file);

	if (home == -ENOENT)
		return SHM_NAME_GONE;
	return home < 0 ? state_unread(home) : shm_home_unlink_if_dead(dir, file, home);
}

static void sweep_home(int dir, const char *file, unsigned int *removed)
{
	_cleanup_close_ int home = shm_home_open(dir, file);

	if (home >= 0)
		unlink_both_if_dead(dir, file, home, removed);
}

unsigned int shm_names_sweep(int dir)
{
	_cleanup_closedir_ DIR *stream = shm_directory_stream(dir);
	unsigned int removed = 0;
	const char *file;

	if (!stream)
		return 0;
	while ((file = shm_directory_next(stream, true)))
		sweep_home(dir, file, &removed);
	return removed;
}

int64_t shm_sweep_if_due(struct shm_session *session, int64_t since, int64_t pause)
{
	int64_t begin = clock_ns(), last = atomic_load(&session->swept_at), took;

	took = atomic_load(&session->sweep_took) * (100 * pause / SHM_SWEEP_PAUSE_NS);
	if (since < last)
		since = last;
	if (since && begin < since + (took < pause ? pause : took))
		return since + (took < pause ? pause : took);
	if (!atomic_flag_test_and_set(&session->sweeping)) {
		shm_names_sweep(session->dir);
		atomic_store(&session->sweep_took, clock_ns() - begin);
		atomic_store(&session->swept_at, begin);
		atomic_flag_clear(&session->sweeping);
	}
	return begin + pause;
}

int shm_check_owner(int dir, const char *entry)
{
	struct statx st;

	if (!shm_stat(dir, entry, &st))
		return -errno;
	if (geteuid() && geteuid() != st.stx_uid)
		return -EPERM;
	/*
	 * Root of a user namespace may be a stranger to the owner, and all accounts without an id
	 * there share one.
	 */
	return !*entry && faccessat(dir, ".", W_OK, AT_EACCESS) && errno == EACCES ? -EPERM : 0;
}
