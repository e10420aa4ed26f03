// SPDX-License-Identifier: MIT
/*
 * A user is an object that has a draft open, or a region whose name lives as long as its users. It
 * holds a reader's lock (SHM_USED) through an open file description of its own. A process that
 * removes the name must hold that lock as its writer, so that no user can begin meanwhile. A
 * process that opened the file before finds the name gone once it has got its own lock.
 */
#define _GNU_SOURCE 1
#include "backend/shm/users.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/shm/dead.h"
#include "backend/shm/file.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/ofd-lock.h"
#include "base/process.h"

struct shm_user {
	LIST_ENTRY(shm_user) entry;
	int fd;	 /* has the lock; -1 after exit() has begun */
	int dir; /* of the name, or negative */
	bool owns_dir;
	bool draft;
	char name[TSHARE_NAME_LEN];
};

/* All users of the process, under its lock. */
static LIST_HEAD(, shm_user) users = LIST_HEAD_INITIALIZER(users);

static void unlink_if_unused(const struct shm_user *user)
{
	char file[SHM_HOME_NAME_LEN];

	if (user->dir < 0)
		return;
	shm_home_name(file, user->name);
	shm_name_unlink_if_dead(user->dir, file);
}

static void end_all_users(void)
{
	struct shm_user *user;

	/* Nothing is freed, as other threads use their objects until the process has ended. */
	for (user = LIST_FIRST(&users); user; user = LIST_NEXT(user, entry)) {
		close(user->fd);
		user->fd = -1;
		unlink_if_unused(user);
	}
}

static const struct process_hooks hooks = { .at_exit = end_all_users };

static int add_user(int fd, const struct shm_header *header, struct shm_user *new)
{
	_cleanup_close_ int own = shm_file_reopen(fd, O_RDONLY);
	int err;

	if (own < 0)
		return own;
	err = ofd_lock_set(own, F_RDLCK, SHM_USED);
	if (err == -EAGAIN || err == -EACCES)
		return -ESTALE;
	if (err)
		return fail(err, "region: lock: %s", strerror(-err));
	new->fd = no_cleanup(own);
	new->draft = !!(header->flags & SHM_DRAFT);
	memcpy(new->name, header->name, sizeof(new->name));
	process_join(PROCESS_SHM_USERS, &hooks);
	LIST_INSERT_HEAD(&users, new, entry);
	return 0;
}

/* fork() takes the process's lock: a child has the user in its list, or nothing of it. */
int shm_user_new(int dir, int fd, const struct shm_header *header, void **user)
{
	_cleanup_free_ struct shm_user *new = malloc(sizeof(*new));
	int err;

	if (!new)
		return fail(-ENOMEM, "region: out of memory");
	new->dir = dir;
	new->owns_dir = false;
	process_lock();
	err = add_user(fd, header, new);
	if (!err)
		*user = no_cleanup(new);
	process_unlock();
	return err;
}

void shm_user_keep_directory(void *keeping, int dir)
{
	struct shm_user *user = keeping;

	user->dir = dir;
	user->owns_dir = true;
}

/* Closes the file, which releases the lock, unless another process has the file since a fork(). */
static void end_user(struct shm_user *user)
{
	LIST_REMOVE(user, entry);
	if (user->fd >= 0)
		close(user->fd);
}

void shm_user_drop(void *ending)
{
	if (ending)
		end_user(ending);
	free(ending);
}

void shm_user_free(void *ending, bool unlink)
{
	struct shm_user *user = ending;

	if (!user)
		return;
	process_lock();
	end_user(user);
	process_unlock();
	if (unlink)
		unlink_if_unused(user);
	if (user->owns_dir)
		close(user->dir);
	free(user);
}

void shm_user_finish(struct backend_region *region, uint32_t lifetime)
{
	struct shm_user *user = region->user;

	user->draft = false;
	if (lifetime == TSHARE_LIFETIME_USERS)
		return;
	end_user(user);
	free(user);
	region->user = NULL;
}

bool shm_user_has_draft(const void *asked)
{
	const struct shm_user *user = asked;

	return user && user->draft;
}

bool shm_users_have_draft(const char *name)
{
	const struct shm_user *user;

	LIST_FOREACH(user, &users, entry)
	if (user->draft && !strcmp(user->name, name))
		break;
	return user;
}
