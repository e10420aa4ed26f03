// SPDX-License-Identifier: MIT
/* Finding the region that a name leads to, and waiting until the name leads elsewhere. */
#define _GNU_SOURCE 1
#include "backend/shm/find.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/shm/dead.h"
#include "backend/shm/file.h"
#include "backend/shm/home.h"
#include "backend/shm/session.h"
#include "backend/shm/users.h"
#include "backend/shm/watch.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"

/*
 * Opens the pipe of the maker of the draft that has the name: -ENOENT if there is no such draft.
 * The maker lives as long as the pipe has a reader. A process that was killed while it unlinked a
 * draft leaves a pipe without a file beside it.
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

/*
 * Opens the file of the region that the name leads to. Reports a draft (-EINPROGRESS) only if the
 * name led nowhere before and after the look at it: the draft may just be finished. Then @maker is
 * its pipe, or the error of opening that.
 */
static int open_named(int dir, const char *file, const char *name, int access, int *maker)
{
	_cleanup_close_ int pipe = -1;
	int fd;

	fd = shm_directory_open_file(dir, file, access);
	if (fd != -ENOENT)
		return fd;
	pipe = open_maker(dir, name);
	fd = shm_directory_open_file(dir, file, access);
	if (fd != -ENOENT || pipe == -ENOENT)
		return fd;
	if (shm_is_shortage(pipe))
		return pipe;
	*maker = no_cleanup(pipe);
	return -EINPROGRESS;
}

/* -ESTALE if the last user has removed the name before this one has its lock. */
static int begin_use(int dir, const char *file, int fd, const struct shm_header *header,
		     void **user)
{
	_cleanup_close_ int home = -1;
	int err;

	err = shm_user_new(dir, fd, header, user);
	if (err)
		return err;
	home = shm_home_open(dir, file);
	if (home >= 0 && shm_home_has(home, fd))
		return 0;
	shm_user_free(*user, false);
	*user = NULL;
	return shm_is_shortage(home) ? fail_name(home, header->name) : -ESTALE;
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
		return fail_name(-EAGAIN, name);
	if (!shm_file_owner_may(fd, &head.header, how->readonly ? 0400 : 0600))
		return fail_name(-EACCES, name);
	if (head.header.flags & SHM_USERS)
		err = begin_use(dir, file, fd, &head.header, &user);
	if (!err)
		err = shm_file_adopt(fd, &head, length, region);
	if (err)
		shm_user_free(user, false);
	else
		region->user = user;
	return err;
}

/* Reports why open_named() could not open the file of the region @name. */
static int fail_open(int err, const char *name)
{
	if (err == -EPROTO)
		return shm_damaged("its name is that of no regular file");
	if (err == -EAGAIN)
		return shm_damaged("its owner has a lease on its file");
	return fail_name(err, name);
}

static int look_up(int dir, const char *file, const char *name, const struct backend_find *how,
		   struct backend_region *region, int *maker)
{
	_cleanup_close_ int fd =
		open_named(dir, file, name, how->readonly ? O_RDONLY : O_RDWR, maker);
	int err;

	if (fd < 0)
		return fail_open(fd, name);
	err = adopt_named(dir, file, fd, name, how, region);
	if (!err)
		(void)no_cleanup(fd); /* now the region's */
	return err;
}

/*
 * Tries again on -ESTALE: a region that lost its name meanwhile looks like a dead maker's. Stores
 * the @maker of open_named() with -EINPROGRESS, else -ENOENT.
 */
static int find_now(int dir, const char *name, const struct backend_find *how,
		    struct backend_region *region, int *maker)
{
	char file[SHM_HOME_NAME_LEN];
	int tries = 0, err;

	*maker = -ENOENT;
	shm_home_name(file, name);
	do {
		err = look_up(dir, file, name, how, region, maker);
		if (err != -ESTALE)
			break;
		if (shm_name_unlink_if_dead(dir, file) == SHM_NAME_STUCK)
			tries = SHM_MAX_TRIES;
	} while (++tries < SHM_MAX_TRIES);
	return err == -ESTALE ? fail_name(-ENOENT, name) : err;
}

/* Waiting */

/*
 * Adds the draft that was seen now, if any, to the watch. Returns whether the draft that was
 * watched before has ended without being finished.
 */
static bool draft_was_lost(struct shm_watch *watch, int err, int maker)
{
	int before = watch->maker;
	bool lost;

	/* With -EAGAIN the old region still has the name: a lost successor doesn't matter. */
	lost = err != -EAGAIN && before >= 0 && !(maker >= 0 && shm_is_same_file(before, maker)) &&
	       !shm_maker_has_finished(before);
	shm_watch_maker(watch, maker);
	return lost;
}

static int64_t deadline_of(int64_t timeout_ns)
{
	int64_t now = clock_ns();

	return timeout_ns > 0 && timeout_ns < INT64_MAX - now ? now + timeout_ns : INT64_MAX;
}

/* Sleeps until @deadline or @due, when a look is due, or until @check_at, and checks then. */
static int sleep_and_check(struct shm_watch *watch, uint32_t changes,
			   const struct backend_find *how, int64_t deadline, int64_t due,
			   int64_t *check_at)
{
	int64_t until = *check_at < due ? *check_at : due;
	int err;

	err = shm_watch_sleep(watch, changes, until < deadline ? until : deadline);
	if (err == -ETIMEDOUT && until < deadline)
		err = 0;
	if (!how->check || (err ? err != -EINTR : clock_ns() < *check_at))
		return err;
	*check_at = deadline_of(how->check_ns);
	return how->check(how->data) ? -ECANCELED : 0;
}

/*
 * Looks after each change. @maker is the pipe of the draft that the first look has found. If a
 * draft that was seen ends without being finished, the wait fails, even if the next draft has the
 * name already.
 */
static int wait_and_find(struct shm_session *session, const char *name,
			 const struct backend_find *how, int maker, struct backend_region *region)
{
	int64_t deadline = deadline_of(how->timeout_ns), check_at = deadline_of(how->check_ns), due;
	struct shm_watch watch;
	uint32_t changes;
	int err;

	shm_watch_begin(&watch, name, -1);
	shm_watch_maker(&watch, maker);
	do {
		changes = shm_watch_prepare(&watch, session->dir);
		err = find_now(session->dir, name, how, region, &maker);
		if (err != -ENOENT && err != -EINPROGRESS && err != -EAGAIN)
			break;
		due = shm_sweep_if_due(session, session->opened_at, SHM_LOOK_PAUSE_NS);
		if (draft_was_lost(&watch, err, maker))
			err = -ENOENT;
		else
			err = sleep_and_check(&watch, changes, how, deadline, due, &check_at);
		if (err)
			fail_name(err, name);
	} while (!err);
	shm_watch_end(&watch);
	return err;
}

int shm_lookup(void *opened, const char *name, const struct backend_find *how,
	       struct backend_region *region)
{
	struct shm_session *session = opened;
	int maker, err;

	err = find_now(session->dir, name, how, region, &maker);
	if (how->timeout_ns && (err == -ENOENT || err == -EINPROGRESS || err == -EAGAIN))
		err = wait_and_find(session, name, how, maker, region);
	else if (maker >= 0)
		close(maker);
	if (!err)
		region->readonly = how->readonly;
	return err;
}

/* Watching */

/* A look is due so often: the region of a killed maker keeps its name until a process looks. */
#define TICK_NS NSEC_PER_SEC

/* The same, where changes aren't reported. */
#define UNWOKEN_TICK_NS (NSEC_PER_SEC / 10)

/* A watcher sleeps on @event, and on @timer where it has to poll. */
struct name_watch {
	struct shm_session *session;
	struct shm_watch watch;
	int event;
	int timer;
	bool ticks; /* whether @timer runs */
	char name[TSHARE_NAME_LEN];
};

/* @mortal: whether the name is of a region that ends with its maker or its users. */
static void set_timer(struct name_watch *watch, bool mortal)
{
	bool woken = shm_watch_is_woken(&watch->watch);
	int64_t tick = !woken ? UNWOKEN_TICK_NS : mortal ? TICK_NS : 0;
	struct itimerspec time = { .it_interval = { tick / NSEC_PER_SEC, tick % NSEC_PER_SEC } };

	time.it_value = time.it_interval;
	if (watch->ticks || tick)
		timerfd_settime(watch->timer, 0, &time, NULL);
	watch->ticks = tick;
}

/* The id of the region that the name leads to, or 0. */
static int find_id(const struct name_watch *watch, uint64_t *id, bool *mortal)
{
	_cleanup_close_ int fd =
		shm_directory_open_file(watch->session->dir, watch->watch.file, O_RDONLY);
	struct shm_head head;
	size_t length;
	bool alive;

	*id = 0;
	*mortal = false;
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return fail_open(fd, watch->name);
	if (shm_file_read_life(fd, &head, &length, &alive))
		return shm_damaged("it doesn't begin like a region");
	if (!alive) {
		shm_name_unlink_if_dead(watch->session->dir, watch->watch.file);
		return 0;
	}
	*id = head.header.id;
	*mortal = !(head.header.flags & SHM_PERSIST);
	return 0;
}

int shm_watch_look(void *data, uint64_t *id)
{
	struct name_watch *watch = data;
	bool mortal;
	uint64_t ignored;
	int err;

	/* A timerfd is read like an eventfd. */
	eventfd_read(watch->event, &ignored);
	eventfd_read(watch->timer, &ignored);
	shm_watch_prepare(&watch->watch, watch->session->dir);
	err = find_id(watch, id, &mortal);
	set_timer(watch, mortal);
	return err;
}

void shm_unwatch(void *data)
{
	struct name_watch *watch = data;

	shm_watch_end(&watch->watch);
	if (watch->event >= 0)
		close(watch->event);
	if (watch->timer >= 0)
		close(watch->timer);
	free(watch);
}

static int add_to(int epoll, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return fd < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int shm_watch(void *opened, const char *name, int epoll, void **watch)
{
	struct name_watch *new = calloc(1, sizeof(*new));
	int err;

	if (!new)
		return fail(-ENOMEM, "watcher: out of memory");
	new->session = opened;
	memcpy(new->name, name, sizeof(new->name));
	new->timer = -1;
	new->event = fd_move_up(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
	err = add_to(epoll, new->event);
	if (!err) {
		new->timer =
			fd_move_up(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
		err = add_to(epoll, new->timer);
	}
	shm_watch_begin(&new->watch, name, new->event);
	if (!err) {
		*watch = new;
		return 0;
	}
	shm_unwatch(new);
	return fail_name(err, name);
}
