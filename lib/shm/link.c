// SPDX-License-Identifier: MIT
/* How a new region gets its name, at once or when a draft is finished: see backend-shm.c. */
#define _GNU_SOURCE 1
#include "shm/link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend.h"
#include "cleanup.h"
#include "error.h"
#include "lock.h"
#include "ofd-lock.h"
#include "shm/file.h"
#include "shm/session.h"
#include "shm/users.h"

/* The longest pause between two looks whether another maker is done, in microseconds. */
#define LONGEST_PAUSE 1000

int shm_fail_taken(int dir, const char *file, enum shm_name_state state, const char *name)
{
	_cleanup_close_ int home = shm_home_open(dir, file);
	struct statx st;

	if (state == SHM_NAME_STUCK)
		return tshare_fail(-EEXIST,
				   "name: '%s' is a dead process's; only its user can remove it",
				   name);
	/* What the home could be opened with just now is too little for what is in it. */
	if (state == SHM_NAME_UNSEEN)
		return tshare_fail_name(home < 0 ? home : -EMFILE, name);
	if (home == -EPROTO || (home >= 0 && !shm_home_stat_file(home, &st)))
		return tshare_fail(
			-EEXIST, "name: '%s' is taken by %s/%s, which is no region's; remove that",
			name, shm_directory(), file);
	return tshare_fail_taken(name, home >= 0 && shm_stat(home, SHM_DRAFT_FILE, &st));
}

static int fail_directory(int err)
{
	return tshare_fail(err, "%s: %s", shm_directory(), strerror(-err));
}

/* Claims */

/*
 * Whether the claim is another maker's, who gives it up in a moment: neither a draft's nor
 * something that is no region's.
 */
static bool claim_passes(int dir, const char *next)
{
	_cleanup_close_ int home = shm_home_open(dir, next);
	struct statx st;

	if (home < 0)
		return home == -ENOENT;
	if (shm_home_stat_file(home, &st))
		return !shm_stat(home, SHM_DRAFT_FILE, &st);
	return shm_home_unlink_if_dead(dir, next, home) == SHM_NAME_GONE;
}

/*
 * Renames a new home to that of the next region which gets the name. A region that is to
 * replace another one waits for those that do so at the same time, as all of them can.
 */
static int claim_name(int dir, const char *file, const struct backend_request *request)
{
	char next[SHM_HOME_NAME_LEN];
	enum shm_name_state state;
	unsigned int pause = 1;
	int tries, err = 0;

	shm_next_name(next, request->name);
	for (tries = 0; tries < SHM_MAX_TRIES; tries++) {
		if (!renameat(dir, file, dir, next))
			return 0;
		err = -errno;
		state = shm_name_unlink_if_dead(dir, next);
		if (state == SHM_NAME_GONE)
			continue;
		if (!(request->flags & TSHARE_REPLACE) || state != SHM_NAME_TAKEN ||
		    !claim_passes(dir, next))
			return shm_fail_taken(dir, next, state, request->name);
		usleep(pause);
		pause = pause < LONGEST_PAUSE ? 2 * pause : LONGEST_PAUSE;
	}
	return err == -ENOTEMPTY || err == -EEXIST ?
		       shm_fail_taken(dir, next, SHM_NAME_TAKEN, request->name) :
		       fail_directory(err);
}

/* Moving */

/* Puts the home @next in the place of that of a living region, which @old is then. */
static int exchange_homes(int dir, const char *next, const char *file, const char *name, int *old)
{
	_cleanup_close_ int home = shm_home_open(dir, file);
	enum shm_name_state state;
	struct statx st;
	int err;

	if (home == -ENOENT)
		return home;
	if (home < 0)
		return shm_fail_taken(dir, file, SHM_NAME_TAKEN, name);
	if (!shm_home_stat_file(home, &st)) {
		/* It is just being removed, or isn't a region's, which is left alone. */
		state = shm_home_unlink_if_dead(dir, file, home);
		return state == SHM_NAME_GONE ? -ENOENT : shm_fail_taken(dir, file, state, name);
	}
	err = shm_check_owner(home, "");
	if (!err && renameat2(dir, next, dir, file, RENAME_EXCHANGE))
		err = -errno;
	if (err == -ENOENT)
		return err;
	if (err)
		return tshare_fail_name(err == -EACCES ? -EPERM : err, name);
	*old = no_cleanup(home);
	return 0;
}

/*
 * Moves the home of a claim to where the name leads. Nobody else puts a home there
 * as long as the claim is held, so what is found there is either exchanged or gone.
 */
static int move_home(int dir, const char *next, const char *name, bool replace, int *old)
{
	char file[SHM_HOME_NAME_LEN];
	enum shm_name_state state;
	int tries, err = 0;

	shm_home_name(file, name);
	for (tries = 0; tries < SHM_MAX_TRIES; tries++) {
		state = shm_name_unlink_if_dead(dir, file);
		if (state == SHM_NAME_GONE) {
			if (!renameat(dir, next, dir, file))
				return 0;
			err = -errno;
			continue;
		}
		if (state != SHM_NAME_TAKEN || !replace)
			return shm_fail_taken(dir, file, state, name);
		err = exchange_homes(dir, next, file, name, old);
		if (err != -ENOENT)
			return err;
	}
	return fail_directory(err);
}

/*
 * Gives a new region its name: 0, or an error after which it has its claim still. The
 * order of the steps keeps the name with the maker until the last one.
 */
static int give_name(int dir, int home, int fd, const char *name, uint32_t lifetime, bool replace)
{
	_cleanup_close_ int old = -1;
	char next[SHM_HOME_NAME_LEN];
	int err;

	shm_next_name(next, name);
	err = move_home(dir, next, name, replace, &old);
	if (err)
		return err;
	/* Fails if the name was unlinked meanwhile, which is as if it were unlinked later. */
	renameat(home, SHM_NEW_FILE, home, SHM_REGION_FILE);
	if (old >= 0)
		shm_home_clear(dir, next, old);
	/* The header or the users have kept the name since it leads to the region. */
	if (lifetime != TSHARE_LIFETIME_MAKER)
		ofd_lock_set(fd, F_UNLCK, SHM_LIFE);
	return 0;
}

/* New regions */

/* Makes a home for the file, with a claim to its name; @maker is a draft's pipe. */
static int make_home(int dir, int fd, const struct backend_request *request, int *maker)
{
	bool draft = request->flags & TSHARE_DRAFT;
	char file[SHM_NEW_HOME_LEN];
	_cleanup_close_ int home = -1;
	int err = 0;

	home = shm_home_make(dir, fd, draft ? SHM_DRAFT_FILE : SHM_NEW_FILE, file);
	if (home < 0)
		return shm_fail_proc(home, shm_directory());
	if (draft) {
		/* No child may have the pipe without its session knowing of it. */
		tshare_lock();
		*maker = shm_home_make_maker(home);
		tshare_unlock();
	}
	if (draft && *maker < 0)
		err = fail_directory(*maker);
	if (!err)
		err = claim_name(dir, file, request);
	if (err)
		shm_home_clear(dir, file, home);
	return err ? err : no_cleanup(home);
}

/* Whether the name leads to a region that may not be replaced: for drafts, and before a step. */
static int check_place(int dir, const char *name, bool replace)
{
	char file[SHM_HOME_NAME_LEN];
	_cleanup_close_ int home = -1;
	enum shm_name_state state;
	int err;

	shm_home_name(file, name);
	state = shm_name_unlink_if_dead(dir, file);
	if (state == SHM_NAME_GONE)
		return 0;
	if (!replace || state != SHM_NAME_TAKEN)
		return shm_fail_taken(dir, file, state, name);
	home = shm_home_open(dir, file);
	err = home < 0 ? home : shm_check_owner(home, "");
	return err == -EPERM ? tshare_fail_name(err, name) : 0;
}

int shm_link(const struct shm_session *session, struct shm_name *name,
	     const struct backend_request *request)
{
	_cleanup_close_ int home = make_home(session->dir, name->fd, request, &name->maker);
	char next[SHM_HOME_NAME_LEN];
	int err;

	if (home < 0)
		return home;
	err = give_name(session->dir, home, name->fd, request->name, request->lifetime,
			request->flags & TSHARE_REPLACE);
	if (err) {
		shm_next_name(next, request->name);
		shm_home_clear(session->dir, next, home);
	}
	return err;
}

int shm_claim(const struct shm_session *session, struct shm_name *name,
	      const struct backend_request *request)
{
	int home = make_home(session->dir, name->fd, request, &name->maker);

	if (home < 0)
		return home;
	tshare_lock();
	name->home = home;
	tshare_unlock();
	return check_place(session->dir, request->name, request->flags & TSHARE_REPLACE);
}

/* Drafts */

static bool is_same_file(int one, int other)
{
	struct statx here, there;

	return shm_stat(one, "", &here) && shm_stat(other, "", &there) &&
	       shm_is_same_device(&here, &there) && here.stx_ino == there.stx_ino;
}

static struct shm_name *find_draft(struct shm_session *session, int fd)
{
	struct shm_name *name;

	TAILQ_FOREACH(name, &session->names, entry)
	if (name->draft && is_same_file(name->fd, fd))
		break;
	return name;
}

static int fail_no_draft(void)
{
	return tshare_fail(-EINVAL, "region: is not a draft");
}

static int fail_lost(void)
{
	return tshare_fail(-ENOENT, "region: the draft's name was removed");
}

/* Why the session can't finish a region that isn't one of its drafts. */
static int refuse_to_finish(int fd)
{
	struct shm_head head;
	struct stat st;
	size_t length;
	int err;

	err = shm_file_read_head(fd, &head, &length);
	if (err || fstat(fd, &st) || !(head.header.flags & SHM_DRAFT))
		return fail_no_draft();
	if (!st.st_nlink)
		return fail_lost();
	return tshare_fail(-EPERM, "region: the draft was made in another context");
}

/* After the draft has its name, and nobody waits for its maker any more. */
static void end_draft(struct shm_session *session, int home, struct shm_name *name)
{
	unlinkat(home, SHM_MAKER_FILE, 0);
	shm_name_close_maker(name);
	name->draft = false;
	if (name->lifetime != TSHARE_LIFETIME_MAKER)
		shm_name_drop(session, name);
}

/* Renames the file of a draft in its home; @home may be the error that opening it had. */
static int begin_finish(int home)
{
	if (home < 0)
		return home;
	return renameat(home, SHM_DRAFT_FILE, home, SHM_NEW_FILE) ? -errno : 0;
}

/*
 * As "new" the draft is out of reach for those that unlink drafts by name, and in a finish
 * that fails also for those that may. So what can be refused is refused before: nobody else
 * puts a home where the name leads as long as the draft has the claim.
 */
static int finish_draft(struct shm_session *session, struct shm_name *name,
			struct backend_region *region, bool replace)
{
	char next[SHM_HOME_NAME_LEN];
	_cleanup_close_ int home = shm_name_open_home(session, name, next);
	int err;

	/* Only a user keeps others from removing the draft: see clear_unused(). */
	if (!region->user)
		return tshare_fail(-EPERM, "region: its file could not be opened anew when it was "
					   "imported, so it can't be finished; import it again");
	if (home >= 0 && !shm_home_is_hidden(next)) {
		end_draft(session, home, name);
		return fail_no_draft(); /* after a fork() it is finished by another process */
	}
	err = home < 0 ? 0 : check_place(session->dir, name->name, replace);
	if (err)
		return err;
	err = begin_finish(home);
	if (err == -ENOENT) {
		shm_name_drop(session, name);
		return fail_lost();
	}
	if (err)
		return tshare_fail_name(err, name->name);
	err = shm_file_write_flags(name->fd, shm_header_flags(name->lifetime, false));
	if (err)
		tshare_fail(err, "region: its file can't be written: %s%s", strerror(-err),
			    err == -EFBIG ? " (see RLIMIT_FSIZE, ulimit -f)" : "");
	else
		err = give_name(session->dir, home, name->fd, name->name, name->lifetime, replace);
	if (err) {
		shm_file_write_flags(name->fd, shm_header_flags(name->lifetime, true));
		renameat(home, SHM_NEW_FILE, home, SHM_DRAFT_FILE);
	} else {
		shm_user_finish(region, name->lifetime);
		end_draft(session, home, name);
	}
	return err;
}

int shm_finish(void *opened, struct backend_region *region, bool replace)
{
	struct shm_session *session = opened;
	struct shm_name *name;
	int err;

	tshare_lock();
	name = session ? find_draft(session, region->fd) : NULL;
	err = name ? finish_draft(session, name, region, replace) : refuse_to_finish(region->fd);
	tshare_unlock();
	return err;
}
