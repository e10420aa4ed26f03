// SPDX-License-Identifier: MIT
/* What a name leads to, and waiting until it leads somewhere. */
#define _GNU_SOURCE 1
#include "shm/find.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "backend.h"
#include "cleanup.h"
#include "error.h"
#include "fd.h"
#include "futex.h"
#include "shm/file.h"
#include "shm/home.h"
#include "shm/name.h"
#include "shm/session.h"
#include "shm/users.h"

/*
 * Opens the pipe of the maker of the draft that has the name: -ENOENT if there is no
 * such draft. The maker is there as long as the pipe has a reader. A pipe without a file
 * beside it is what a process left that was killed while it unlinked the draft.
 */
static int open_maker(int dir, const char *name)
{
	char file[SHM_HOME_NAME_LEN];
	_cleanup_close_ int claim = -1;
	struct statx st;
	int maker;

	shm_home_name(file, name);
	claim = shm_claim_open(dir, file);
	if (claim < 0)
		return shm_is_shortage(claim) ? claim : -ENOENT;
	maker = shm_home_open_maker(claim);
	if (maker >= 0 && !shm_home_stat_file(claim, &st)) {
		close(maker);
		maker = -ENXIO;
	}
	if (maker == -ENXIO)
		shm_name_unlink_if_dead(dir, file);
	return maker == -ENXIO || maker == -EPROTO ? -ENOENT : maker;
}

/* Whether the region of that name is a draft: -EINPROGRESS, or -ENOENT; or a shortage. */
static int find_draft(int dir, const char *name)
{
	_cleanup_close_ int maker = open_maker(dir, name);

	return maker == -ENOENT || shm_is_shortage(maker) ? maker : -EINPROGRESS;
}

/*
 * Opens the file of the region that the name leads to. That a draft can't be opened yet
 * is reported only if the name has led nowhere before and after: it may just be finished.
 */
static int open_named(int dir, const char *file, const char *name, int access)
{
	int fd, err;

	fd = shm_directory_open_file(dir, file, access);
	if (fd != -ENOENT)
		return fd;
	err = find_draft(dir, name);
	fd = shm_directory_open_file(dir, file, access);
	return fd == -ENOENT ? err : fd;
}

/* The last user may have removed the name before this one has its lock: -ESTALE. */
static int begin_use(int dir, const char *file, int fd, const struct shm_header *header,
		     void **user)
{
	_cleanup_close_ int home = -1;
	int err;

	err = shm_user_new(fd, header, user);
	if (err)
		return err;
	home = shm_home_open(dir, file);
	if (home >= 0 && shm_home_has(home, fd))
		return 0;
	shm_user_free(*user, -1);
	*user = NULL;
	return shm_is_shortage(home) ? tshare_fail_name(home, header->name) : -ESTALE;
}

/* -ESTALE if the region has neither maker nor users any more, and doesn't persist. */
static int adopt_named(int dir, const char *file, int fd, const char *name,
		       const struct backend_find *how, struct backend_region *region)
{
	void *user = NULL;
	struct shm_head head;
	size_t length;
	bool alive;
	int err;

	if (shm_file_read_life(fd, &head, &length, &alive))
		return shm_damaged("it doesn't begin like a region");
	if (!alive)
		return -ESTALE;
	err = shm_header_check_memory(&head.header, fd);
	if (err)
		return err;
	if (strncmp(head.header.name, name, sizeof(head.header.name)))
		return shm_damaged("it has another name");
	if (how->other_than && head.header.id == how->other_than)
		return tshare_fail_name(-EAGAIN, name);
	if (!shm_file_owner_may(fd, &head.header, how->readonly ? 0400 : 0600))
		return tshare_fail_name(-EACCES, name);
	if (head.header.flags & SHM_USERS)
		err = begin_use(dir, file, fd, &head.header, &user);
	if (!err)
		err = shm_file_adopt(fd, &head, length, region);
	if (err)
		shm_user_free(user, -1);
	else
		region->user = user;
	return err;
}

static int look_up(int dir, const char *file, const char *name, const struct backend_find *how,
		   struct backend_region *region)
{
	_cleanup_close_ int fd = open_named(dir, file, name, how->readonly ? O_RDONLY : O_RDWR);
	int err;

	if (fd == -EPROTO)
		return shm_damaged("its name is that of no regular file");
	if (fd == -EAGAIN)
		return shm_damaged("its owner has a lease on its file");
	if (fd < 0)
		return tshare_fail_name(fd, name);
	err = adopt_named(dir, file, fd, name, how, region);
	if (!err)
		(void)no_cleanup(fd); /* now the region's */
	return err;
}

/* A region whose name was taken over meanwhile looks like that of a dead maker. */
static int find_now(int dir, const char *name, const struct backend_find *how,
		    struct backend_region *region)
{
	char file[SHM_HOME_NAME_LEN];
	int tries = 0, err;

	shm_home_name(file, name);
	do {
		err = look_up(dir, file, name, how, region);
		if (err != -ESTALE)
			break;
		if (shm_name_unlink_if_dead(dir, file) == SHM_NAME_STUCK)
			tries = SHM_MAX_TRIES;
	} while (++tries < SHM_MAX_TRIES);
	return err == -ESTALE ? tshare_fail_name(-ENOENT, name) : err;
}

/* Waiting */

/* Renames bring and take homes; other programs may make and remove what is there. */
#define WATCHED (IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE)

static int fail_watch(int err)
{
	const char *limit = "";

	if (err == -EMFILE)
		limit = " (see RLIMIT_NOFILE and fs.inotify.max_user_instances)";
	else if (err == -ENOSPC)
		limit = " (see fs.inotify.max_user_watches)";
	return tshare_fail(err, "%s: inotify: %s%s", shm_directory(), strerror(-err), limit);
}

static int watch_directory(int dir)
{
	_cleanup_close_ int watch = fd_move_up(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
	char path[32];

	if (watch < 0)
		return fail_watch(-errno);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	if (inotify_add_watch(watch, path, WATCHED | IN_ONLYDIR) < 0)
		return errno == ENOENT ? shm_fail_proc(-errno, path) : fail_watch(-errno);
	return no_cleanup(watch);
}

/* Takes all events, and returns whether one is about the home of the name, or may have been. */
static bool has_changed(int watch, const char *name)
{
	_Alignas(struct inotify_event) char buffer[4096];
	const struct inotify_event *event;
	char file[SHM_HOME_NAME_LEN];
	bool changed = false;
	ssize_t size, i;

	shm_home_name(file, name);
	while ((size = read(watch, buffer, sizeof(buffer))) > 0) {
		for (i = 0; i < size; i += sizeof(*event) + event->len) {
			event = (const void *)(buffer + i);
			changed |= !event->len || !strcmp(event->name, file);
		}
	}
	return changed;
}

/* Sleeps until a look may give something else. @maker is a draft's pipe, or negative. */
static int sleep_until_changed(int watch, int maker, const char *name, int64_t deadline)
{
	/* The maker is gone, or has finished the draft, when the pipe has no reader. */
	struct pollfd fds[] = { { .fd = watch, .events = POLLIN }, { .fd = maker } };
	struct timespec left;
	int64_t ns;
	int ready;

	do {
		ns = deadline - clock_ns();
		if (ns <= 0)
			return -ETIMEDOUT;
		left.tv_sec = ns / NSEC_PER_SEC;
		left.tv_nsec = ns % NSEC_PER_SEC;
		ready = ppoll(fds, 2, deadline == INT64_MAX ? NULL : &left, NULL);
		if (ready < 0)
			return -errno;
	} while (!fds[1].revents && !(fds[0].revents && has_changed(watch, name)));
	return 0;
}

/*
 * Looks again and again, after each change of the directory. The watch is there before
 * the first look, so no change is missed. Once a draft was seen, also before the call, it is
 * waited for: if the name is gone after that, its maker has ended before it was finished.
 */
static int wait_and_find(int dir, const char *name, const struct backend_find *how, bool draft,
			 struct backend_region *region)
{
	_cleanup_close_ int watch = watch_directory(dir);
	int64_t now = clock_ns(), deadline = INT64_MAX;
	int maker, err;

	if (watch < 0)
		return watch;
	if (how->timeout_ns > 0 && how->timeout_ns < INT64_MAX - now)
		deadline = now + how->timeout_ns;
	for (;;) {
		err = find_now(dir, name, how, region);
		if (err == -ENOENT ? draft : err != -EINPROGRESS && err != -EAGAIN)
			return err;
		maker = -1;
		if (err == -EINPROGRESS) {
			draft = true;
			maker = open_maker(dir, name);
			if (maker == -ENOENT)
				continue;
			/* Without the pipe it would sleep on after the maker's end. */
			if (shm_is_shortage(maker))
				return tshare_fail_name(maker, name);
		}
		err = sleep_until_changed(watch, maker, name, deadline);
		if (maker >= 0)
			close(maker);
		if (err)
			return tshare_fail_name(err, name);
	}
}

int shm_lookup(void *opened, const char *name, const struct backend_find *how,
	       struct backend_region *region)
{
	struct shm_session *session = opened;
	int err;

	err = find_now(session->dir, name, how, region);
	if (how->timeout_ns && (err == -ENOENT || err == -EINPROGRESS || err == -EAGAIN))
		err = wait_and_find(session->dir, name, how, err == -EINPROGRESS, region);
	if (!err)
		region->readonly = how->readonly;
	return err;
}
