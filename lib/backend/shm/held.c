// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "backend/shm/held.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/shm/file.h"
#include "backend/shm/session.h"
#include "backend/shm/users.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/ofd-lock.h"
#include "base/process.h"

/* Names that each creation looks at. */
#define SWEEP_BATCH 8

void shm_name_close_maker(struct shm_name *name)
{
	if (name->maker >= 0)
		close(name->maker);
	name->maker = -1;
}

static bool is_being_made(const struct shm_name *name)
{
	return name->file >= 0;
}

void shm_name_drop(struct shm_session *session, struct shm_name *name)
{
	TAILQ_REMOVE(&session->names, name, entry);
	close(name->fd);
	if (is_being_made(name))
		close(name->file);
	if (name->home >= 0)
		close(name->home);
	shm_user_drop(name->user);
	shm_name_close_maker(name);
	free(name);
}

static int lock_life(int fd)
{
	int err = ofd_lock_set(fd, F_WRLCK, SHM_LIFE);

	return err ? fail(err, "%s: lock: %s", shm_directory(), strerror(-err)) : 0;
}

/* Opens a file without a name in the directory, and its description with the lock SHM_LIFE. */
static int open_new(const struct shm_session *session, struct shm_name *name)
{
	_cleanup_close_ int file = -1, life = -1;
	int err;

	file = fd_open_at(session->dir, ".", O_TMPFILE | O_RDWR, SHM_OWNER_ACCESS);
	if (file < 0 && shm_is_shortage(-errno))
		return fail_name(-errno, name->name);
	if (file < 0)
		return fail(-errno, "%s: %s", shm_directory(), strerror(errno));
	/* The umask may have taken the access that the second description needs. */
	if (fchmod(file, SHM_OWNER_ACCESS))
		return fail(-errno, "%s: %s", shm_directory(), strerror(errno));
	life = shm_file_reopen(file, O_RDWR);
	err = life < 0 ? life : lock_life(life);
	if (err)
		return err;
	name->file = no_cleanup(file);
	name->fd = no_cleanup(life);
	return 0;
}

/*
 * fork() takes the process's lock, so that a child has both descriptions in its session,
 * and drops them, or has neither.
 */
int shm_name_begin(struct shm_session *session, const struct backend_request *request,
		   struct shm_name **begun)
{
	_cleanup_free_ struct shm_name *name = malloc(sizeof(*name));
	int err;

	if (!name)
		return fail(-ENOMEM, "region: out of memory");
	*name = (struct shm_name){
		.home = -1,
		.maker = -1,
		.draft = request->flags & TSHARE_DRAFT,
		.lifetime = request->lifetime,
	};
	stpcpy(name->name, request->name);
	process_lock();
	err = open_new(session, name);
	if (!err)
		TAILQ_INSERT_TAIL(&session->names, name, entry);
	process_unlock();
	if (!err)
		*begun = no_cleanup(name); /* now the session's */
	return err;
}

int shm_name_complete(struct shm_session *session, struct shm_name *name, void **user)
{
	int file;

	process_lock();
	file = name->file;
	*user = name->user;
	name->file = -1;
	name->user = NULL;
	if (name->home >= 0)
		close(name->home);
	name->home = -1;
	/* The header or the users keep the name. */
	if (name->lifetime != TSHARE_LIFETIME_MAKER && !name->draft)
		shm_name_drop(session, name);
	process_unlock();
	return file;
}

/* Returns @home, which may be an error, or -ENOENT if the file isn't in it. */
static int keep_if_it_has(int home, const struct statx *file)
{
	if (home >= 0 && !shm_home_has_file(home, file)) {
		close(home);
		return -ENOENT;
	}
	return home == -EPROTO ? -ENOENT : home;
}

static int open_home_of(int dir, const struct shm_name *name, const struct statx *st, bool *claim)
{
	char file[SHM_HOME_NAME_LEN];
	int home = -ENOENT;

	shm_home_name(file, name->name);
	/* Another process may have finished the draft since a fork(). */
	if (name->draft)
		home = keep_if_it_has(shm_claim_open(dir, file), st);
	*claim = home != -ENOENT;
	return *claim ? home : keep_if_it_has(shm_home_open(dir, file), st);
}

int shm_name_open_home(const struct shm_session *session, const struct shm_name *name, bool *claim)
{
	struct statx st;

	return shm_stat(name->fd, "", &st) ? open_home_of(session->dir, name, &st, claim) : -errno;
}

void shm_claim_clear(int dir, const char *name, int claim)
{
	char file[SHM_HOME_NAME_LEN];
	_cleanup_close_ int named = -1;

	shm_home_name(file, name);
	named = shm_home_open(dir, file);
	if (named < 0)
		return;
	shm_home_clear(named, SHM_CLAIM, claim);
	shm_home_remove_if_empty(dir, file, named);
}

/* Whether another process has the lock since a fork(); true if in doubt. */
static bool is_held_elsewhere(int dir, const struct shm_name *name)
{
	char file[SHM_HOME_NAME_LEN];
	_cleanup_close_ int claim = -1, fd = -ENOENT;

	shm_home_name(file, name->name);
	if (name->draft)
		claim = shm_claim_open(dir, file);
	if (claim >= 0)
		fd = shm_home_open_file(claim, O_RDONLY);
	if (fd == -ENOENT)
		fd = shm_directory_open_file(dir, file, O_RDONLY);
	return fd < 0 || shm_file_is_locked(fd, SHM_LIFE);
}

/* A name that is dropped before it is removed: no other descriptors may be left for the removal. */
struct ended {
	struct shm_name name;
	struct statx file;
	bool known;
};

/* With the process's lock held. */
static void drop_before_end(struct shm_session *session, struct shm_name *name, struct ended *ended)
{
	ended->name = *name;
	ended->known = shm_stat(name->fd, "", &ended->file);
	shm_name_drop(session, name);
}

/*
 * Removes a name at the end of its session, whatever a peer has written to the
 * header. After fork() another process may hold the lock: then the name stays.
 */
static void end_name(int dir, const struct ended *ended)
{
	const struct shm_name *name = &ended->name;
	char file[SHM_HOME_NAME_LEN];
	_cleanup_close_ int home = -1;
	bool claim;

	if (!ended->known || is_held_elsewhere(dir, name))
		return;
	home = open_home_of(dir, name, &ended->file, &claim);
	if (home < 0)
		return;
	shm_home_name(file, name->name);
	/* Without a claim: maybe a draft that an ended process has finished since a fork(). */
	if (claim)
		shm_claim_clear(dir, name->name, home);
	else if (name->lifetime == TSHARE_LIFETIME_MAKER)
		shm_home_clear(dir, file, home);
}

void shm_name_abandon(struct shm_session *session, struct shm_name *name)
{
	if (name->home >= 0)
		shm_claim_clear(session->dir, name->name, name->home);
	process_lock();
	shm_name_drop(session, name);
	process_unlock();
}

/* Removing a large region takes long, so other threads may take the lock meanwhile. */
void shm_names_close(struct shm_session *session)
{
	struct shm_name *name;
	struct ended ended;

	process_lock();
	session->ends = true;
	while ((name = TAILQ_FIRST(&session->names))) {
		drop_before_end(session, name, &ended);
		process_unlock();
		end_name(session->dir, &ended);
		process_lock();
	}
	process_unlock();
}

void shm_names_exit(struct shm_session *session)
{
	struct shm_name *name, *next;
	struct ended ended;

	for (name = TAILQ_FIRST(&session->names); name; name = next) {
		next = TAILQ_NEXT(name, entry);
		/* The thread that makes it still uses it. A draft is removed with its user. */
		if (is_being_made(name))
			continue;
		drop_before_end(session, name, &ended);
		end_name(session->dir, &ended);
	}
}

/*
 * Whether the file has lost its name, whatever other links a process with write access has made.
 * False if there are no descriptors to find out.
 */
static bool is_unlinked(const struct shm_session *session, const struct shm_name *name)
{
	bool claim;
	_cleanup_close_ int home = shm_name_open_home(session, name, &claim);

	return home == -ENOENT;
}

void shm_name_drop_if_unlinked(struct shm_session *session, const char *name)
{
	struct shm_name *held, *next;

	process_lock();
	for (held = TAILQ_FIRST(&session->names); held; held = next) {
		next = TAILQ_NEXT(held, entry);
		if (!is_being_made(held) && !strcmp(held->name, name) && is_unlinked(session, held))
			shm_name_drop(session, held);
	}
	process_unlock();
}

void shm_name_leave_draft(struct shm_session *session, const char *name)
{
	struct shm_name *held;

	TAILQ_FOREACH(held, &session->names, entry)
	if (!is_being_made(held) && !strcmp(held->name, name))
		shm_name_close_maker(held);
}

void shm_names_drop_in_child(struct shm_session *session)
{
	struct shm_name *held, *next;

	for (held = TAILQ_FIRST(&session->names); held; held = next) {
		next = TAILQ_NEXT(held, entry);
		if (session->ends || is_being_made(held))
			shm_name_drop(session, held);
	}
}

void shm_names_drop_some_unlinked(struct shm_session *session)
{
	struct shm_name *name, *last;
	unsigned int i;

	process_lock();
	last = TAILQ_LAST(&session->names, shm_name_list);
	for (i = 0; last && i < SWEEP_BATCH; i++) {
		name = TAILQ_FIRST(&session->names);
		if (name == last)
			i = SWEEP_BATCH;
		TAILQ_REMOVE(&session->names, name, entry);
		TAILQ_INSERT_TAIL(&session->names, name, entry);
		if (!is_being_made(name) && is_unlinked(session, name))
			shm_name_drop(session, name);
	}
	process_unlock();
}

void shm_release(void *opened, struct backend_region *region)
{
	struct shm_session *session = opened;
	bool draft = shm_user_has_draft(region->user);

	shm_user_free(region->user, true);
	if (!session || !draft)
		return;
	shm_name_drop_if_unlinked(session, region->name);
	/* In one step: another thread may be making the next draft of that name. */
	process_lock();
	if (!shm_users_have_draft(region->name))
		shm_name_leave_draft(session, region->name);
	process_unlock();
}
