// SPDX-License-Identifier: MIT
/*
 * The backend on POSIX shared memory: it needs no module.
 *
 * A region is a file: a header, the counter, the descriptors, and from a page boundary on
 * the data (if large, from a 2 MiB boundary, so that it consists of huge pages). A named
 * region is tshare.NAME/region in /dev/shm or $TSHARE_SHM_DIR, an unnamed one a sealed memfd.
 *
 * A name lives as long as its maker's session. The session holds a write lock on the file's
 * first byte (SHM_LIFE) through an open file description of its own. Only fork() shares the
 * description, and the kernel closes it when the last process that has it ends, in whatever
 * way. A process that meets a name without this lock removes it, unless the region persists.
 * With TSHARE_LIFETIME_USERS each user holds a lock instead: see users.c.
 *
 * Each region has a directory of its own, its home. It prevents a race: between a process's
 * look at a dead region and the removal, a second process may remove the region, and a third
 * create a new one of that name. unlinkat() through a descriptor of the dead region's home
 * can't reach the new region, which has another home. The name goes by rmdir(), which fails
 * while the home has a region in it. This takes no lock, which others could hold: a process
 * that may only read a region can lock any byte of it for reading.
 *
 * The only entry that another user can create first, and so deny to a process, is the home
 * of a free name: first come, first served. Other entries are in a home, which only its owner
 * may write, or have a random number, which nobody knows before. A maker fills a home
 * under such a number, and renames it to the name if that is free. If the name leads to a
 * region already, or if a draft reserves the name, the maker takes the claim to the name: a
 * directory inside the name's home, with a file that the maker has locked.
 *
 *	path                files          state
 *	.tshare.<number>    new            a maker's home: the file is locked and complete
 *	                    next/new       a draft's maker is about to take a claim
 *	                    region         has lost its name to another region
 *	tshare.NAME         region or new  the region that the name leads to
 *	tshare.NAME/next    draft, maker   a draft has the claim; it gets its memory here, and
 *	                                   stays until it is finished
 *	                    new            a maker is about to exchange the home, or a draft's
 *	                                   file has just got here
 *
 * rename() moves a home or a claim only to a free place, or over an empty directory. So one
 * maker at a time has the claim. The claim is a directory that isn't empty, so no process can
 * remove the home around it. Only the maker with the claim exchanges that home, in one step,
 * with its own. So an opener finds the old region or the new one, never none. The old region's
 * home is then at .tshare.<number>, where the new maker or the next process that sweeps
 * removes it. A draft of a free name makes a home without a region for its claim.
 *
 * The region's file is called "draft" once a draft's claim is in its place, "new" while the
 * maker gives the region its name, and "region" from then on. The header has the rest. So
 *
 * - to unlink a draft is to unlink "draft". This fails once its maker has begun to finish it,
 *   and the maker's rename to "new" fails once the draft was unlinked. A claim that is still
 *   moving has no "draft", so its maker, who may have to take it back, finds it;
 * - a claim is removed once its file's maker holds no lock: the maker is dead, or has given
 *   the region its name by another link to the file;
 * - a home that the name doesn't lead to is removed if it has "new" and its maker holds no
 *   lock, or if it has "region", which has lost its name. A slow process may open a home that
 *   is moved and finished before the process sees "region". So it checks again that the home
 *   is where it was: a finished region's home gets to such a place only by an exchange, and
 *   for good;
 * - a maker may be killed between any two steps. Only its maker's lock keeps a home that the
 *   name doesn't lead to, whatever the lifetime in its header. Once the name leads to the
 *   home, that lifetime applies. So a persistent region persists from the step in which it
 *   takes its name, and the region that it replaces is never lost in vain.
 *
 * A session records what it creates from the start, and takes each lock, the pipe and the memory
 * under the process's lock. A child of fork() lacks the thread that creates a region, but
 * finds all that it has inherited of it, and closes it.
 *
 * A draft that no object has open can't be finished any more, and is removed: see users.c.
 *
 * The claim of a draft also has a pipe, "maker", whose read end the maker has open. Any
 * process, even one that may not read the region, opens the pipe for writing to find out
 * whether the maker lives: ENXIO if not. Only the maker may open it for reading. The pipe's
 * mode shows processes that have it open whether the draft was finished.
 *
 * A peer with write access may write anything to a header. So a header is copied once, checked,
 * and never followed beyond the file.
 *
 * What lives where:
 *
 * - shm/file.c: the file, its header and descriptors
 * - shm/home.c: the directory of all names, and the homes in it
 * - shm/dead.c: which names are dead, and their removal
 * - shm/held.c: the names that a session holds
 * - shm/users.c: users of drafts, and of regions with TSHARE_LIFETIME_USERS
 * - shm/link.c: how a region gets its name, drafts
 * - shm/find.c: what a name leads to, and waiting for that
 * - shm/watch.c: the thread that wakes waiters
 * - shm/allocate.c: the memory of new regions
 * - shm/create.c, shm/limits.c, shm/import.c: the operations that are more than a few lines
 * - here: sessions, and the other operations
 */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/shm/create.h"
#include "backend/shm/dead.h"
#include "backend/shm/file.h"
#include "backend/shm/find.h"
#include "backend/shm/held.h"
#include "backend/shm/home.h"
#include "backend/shm/import.h"
#include "backend/shm/limits.h"
#include "backend/shm/link.h"
#include "backend/shm/session.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/process.h"

/* The process's sessions, under its lock. */
static LIST_HEAD(, shm_session) sessions = LIST_HEAD_INITIALIZER(sessions);

/* Sessions */

static uint32_t read_huge_page_size(uint32_t page_size)
{
	_cleanup_fclose_ FILE *file =
		fd_fopen("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
	uint32_t size = page_size;

	if (!file)
		return page_size;
	if (fscanf(file, "%" SCNu32, &size) != 1 || size < page_size)
		size = page_size;
	return size;
}

/*
 * A program that exits without closing its sessions would leave its names, and
 * their memory, until another process sweeps. A child of fork() leaves the names
 * that its parent has locked.
 */
static void end_all_names(void)
{
	struct shm_session *session;

	for (session = LIST_FIRST(&sessions); session; session = LIST_NEXT(session, entry))
		shm_names_exit(session);
}

/* The child lacks threads that created regions or closed a session, and drops their state. */
static void after_fork_in_child(void)
{
	struct shm_session *session;

	for (session = LIST_FIRST(&sessions); session; session = LIST_NEXT(session, entry)) {
		atomic_flag_clear(&session->sweeping);
		shm_names_drop_in_child(session);
		if (!session->ends || session->dir < 0)
			continue;
		close(session->dir);
		session->dir = -1;
	}
}

static const struct process_hooks hooks = { after_fork_in_child, end_all_names };

static int shm_open_session(void **opened, uint32_t *page_size, uint32_t *huge_page_size)
{
	_cleanup_close_ int dir = shm_directory_open();
	struct shm_session *session;

	if (dir < 0)
		return dir;
	session = calloc(1, sizeof(*session));
	if (!session)
		return fail(-ENOMEM, "ctx: out of memory");
	session->dir = no_cleanup(dir);
	session->page_size = sysconf(_SC_PAGESIZE);
	session->huge_page_size = read_huge_page_size(session->page_size);
	*page_size = session->page_size;
	*huge_page_size = session->huge_page_size;
	session->opened_at = clock_ns();
	atomic_flag_clear(&session->sweeping);
	TAILQ_INIT(&session->names);
	process_lock();
	process_join(PROCESS_SHM_SESSIONS, &hooks);
	LIST_INSERT_HEAD(&sessions, session, entry);
	process_unlock();
	*opened = session;
	return 0;
}

/* A directory that is mounted at two places is one. */
static int shm_name_space(void *opened, char *text)
{
	const struct shm_session *session = opened;
	struct statx st;

	if (!shm_stat(session->dir, "", &st))
		return fail(-errno, "%s: %s", shm_directory(), strerror(errno));
	snprintf(text, BACKEND_NAME_SPACE_LEN, "%x:%x:%ju", st.stx_dev_major, st.stx_dev_minor,
		 (uintmax_t)st.stx_ino);
	return 0;
}

/* A session that only opens and waits delays its first sweep, which others may do. */
static int64_t shm_sweep(void *opened, bool now)
{
	struct shm_session *session = opened;

	return now ? shm_sweep_if_due(session, 0, SHM_SWEEP_PAUSE_NS) :
		     shm_sweep_if_due(session, session->opened_at, SHM_LOOK_PAUSE_NS);
}

static void shm_close(void *closing)
{
	struct shm_session *session = closing;

	shm_names_close(session);
	process_lock();
	LIST_REMOVE(session, entry);
	close(session->dir);
	process_unlock();
	free(session);
}

/* Unlinking */

/* Removes the region's file from the home or claim called @file, and then the directory. */
static int unlink_home(int dir, const char *file, int home)
{
	static const char *const in_place[] = { SHM_NEW_FILE, SHM_REGION_FILE };
	static const char *const draft[] = { SHM_DRAFT_FILE };
	bool claim = shm_home_is_hidden(file);
	const char *const *entries = claim ? draft : in_place;
	size_t count = claim ? 1 : 2, i;
	int err;

	err = shm_check_owner(home, "");
	if (err)
		return err;
	err = -ENOENT;
	for (i = 0; i < count && err == -ENOENT; i++)
		err = unlinkat(home, entries[i], 0) ? -errno : 0;
	if (err)
		return err;
	unlinkat(home, SHM_MAKER_FILE, 0);
	if (unlinkat(dir, file, AT_REMOVEDIR))
		shm_home_report(dir, file);
	return 0;
}

/* Removes an entry that has a region's name, but isn't one. */
static int unlink_foreign(int dir, const char *file)
{
	int err;

	err = shm_check_owner(dir, file);
	if (!err && unlinkat(dir, file, 0))
		err = -errno;
	return err;
}

/* Tries once: -ESTALE if the home has lost the name meanwhile. */
static int try_to_unlink_at(int dir, const char *file, int fd)
{
	_cleanup_close_ int home = -1;
	int err;

	if (shm_name_unlink_if_dead(dir, file) == SHM_NAME_GONE)
		return -ENOENT;
	home = shm_home_open(dir, file);
	if (fd >= 0 && (home == -EPROTO || (home >= 0 && !shm_home_has(home, fd))))
		return -ENOENT;
	if (home == -EPROTO)
		return unlink_foreign(dir, file);
	if (home < 0)
		return home;
	err = unlink_home(dir, file, home);
	return err == -ENOENT && !shm_home_is_at(dir, file, home) ? -ESTALE : err;
}

/* Removes the region in the home called @file; only that behind @fd, if @fd isn't negative. */
static int unlink_at(int dir, const char *file, int fd)
{
	int tries = 0, err;

	do
		err = try_to_unlink_at(dir, file, fd);
	while (err == -ESTALE && ++tries < SHM_MAX_TRIES);
	return err == -ESTALE ? -ENOENT : err;
}

/* As unlink_at(), for the draft that has the claim. */
static int unlink_draft(int dir, const char *file, int fd)
{
	_cleanup_close_ int named = shm_home_open(dir, file);
	_cleanup_close_ int claim = named < 0 ? named : shm_home_open(named, SHM_CLAIM);
	int err;

	if (claim < 0)
		return claim == -EPROTO ? -ENOENT : claim;
	if (fd >= 0 && !shm_home_has(claim, fd))
		return -ENOENT;
	err = unlink_home(named, SHM_CLAIM, claim);
	if (!err)
		shm_home_remove_if_empty(dir, file, named);
	return err;
}

/* Removes the name's region, or else its draft, which may just have been finished. */
static int unlink_name(int dir, const char *name, int fd)
{
	char file[SHM_HOME_NAME_LEN];
	int err;

	shm_home_name(file, name);
	err = unlink_at(dir, file, fd);
	if (err == -ENOENT)
		err = unlink_draft(dir, file, fd);
	return err == -ENOENT ? unlink_at(dir, file, fd) : err;
}

static int shm_unlink_name(void *opened, const char *name)
{
	struct shm_session *session = opened;
	int err;

	err = unlink_name(session->dir, name, -1);
	if (err)
		return fail_name(err, name);
	shm_name_drop_if_unlinked(session, name);
	return 0;
}

static int shm_unlink_region(void *opened, int fd, uint64_t id, const char *name)
{
	struct shm_session *session = opened;
	_cleanup_close_ int own = session ? -1 : shm_directory_open();
	int dir = session ? session->dir : own, err;

	(void)id;
	if (dir < 0)
		return dir;
	err = unlink_name(dir, name, fd);
	if (err)
		return err;
	if (session)
		shm_name_drop_if_unlinked(session, name);
	return 0;
}

/* Describing */

/*
 * The region's own description is enough to map the counter and to test locks. To lock
 * takes a new one, as any process may share the region's.
 */
static int shm_counter(void *opened, const struct backend_region *region, enum counter_use use,
		       struct backend_counter *counter)
{
	int new;

	(void)opened;
	if (use == COUNTER_TO_MAP)
		new = fd_duplicate(region->fd);
	else
		new = shm_file_reopen(region->fd, use == COUNTER_TO_READ_LOCK ? O_RDONLY : O_RDWR);
	if (new < 0 && use == COUNTER_TO_MAP)
		return fail(-errno, "region: %s", strerror(errno));
	if (shm_is_shortage(new) || new == -ENODEV)
		return new;
	if (new < 0)
		return fail_within(-EACCES, "region: may not be opened anew: ");
	*counter = (struct backend_counter){ new, SHM_COUNTER_OFFSET, SHM_COUNTER };
	return 0;
}

/* The kernel can't confine a descriptor to a part of a file. */
static int shm_export(void *opened, const struct backend_region *region, uint64_t offset,
		      uint64_t size, bool readonly, int *fd)
{
	int new;

	(void)opened;
	if (offset || size != region->size)
		return fail(-EOPNOTSUPP, "offset, size: a part of a region has no descriptor "
					 "on shared memory; load the module tshare");
	new = readonly && !region->readonly ? shm_file_reopen(region->fd, O_RDONLY) :
					      fd_duplicate(region->fd);
	if (new == -1)
		return fail(-errno, "region: %s", strerror(errno));
	if (new < 0)
		return new;
	*fd = new;
	return 0;
}

static int shm_info(void *opened, const struct backend_region *region,
		    struct tshare_region_info *info)
{
	int err;

	(void)opened;
	err = shm_file_describe(region->fd, info);
	if (err == -EINVAL)
		return shm_damaged("it doesn't begin like a region");
	if (err)
		return err;
	if ((fcntl(region->fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
		info->flags |= TSHARE_READONLY;
	return 0;
}

/* False if the caller is the owner, not root, and the region's mode denies the access. */
static bool mode_allows(const struct tshare_region_info *info, uint32_t access)
{
	return !geteuid() || info->uid != geteuid() || (info->mode & access) == access;
}

/* The home that is being listed, and the function that gets its regions. */
struct listing {
	int dir;
	const char *file;
	int (*fn)(const struct tshare_region_info *info, void *data);
	void *data;
};

/*
 * Whether the region's name is that of its home. The caller has opened the file, so it may read the
 * region; or owns it, and can unlink it even if the mode lets nobody read.
 */
static bool is_listed(const struct listing *listing, int fd, struct tshare_region_info *info)
{
	char expected[SHM_HOME_NAME_LEN], path[32];

	shm_home_name(expected, info->name);
	if (strcmp(expected, listing->file))
		return false;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) || !mode_allows(info, 0600))
		info->flags |= TSHARE_READONLY;
	return true;
}

/* Passes a home's region, or a claim's draft, to fn(). Returns fn()'s result or an error. */
static int list_file(const struct listing *listing, int home, bool draft)
{
	_cleanup_close_ int fd = shm_home_open_file(home, O_RDONLY);
	struct tshare_region_info info;

	if (shm_is_shortage(fd))
		return fail(fd, "%s: %s", shm_directory(), strerror(-fd));
	if (fd < 0 || shm_file_describe(fd, &info))
		return 0;
	if (!info.name[0] && !draft)
		shm_home_unlink_if_dead(listing->dir, listing->file, home);
	if (!info.name[0] || !(info.flags & TSHARE_DRAFT) == draft)
		return 0;
	return is_listed(listing, fd, &info) ? listing->fn(&info, listing->data) : 0;
}

static int list_claim(const struct listing *listing, int named)
{
	_cleanup_close_ int claim = shm_home_open(named, SHM_CLAIM);

	if (claim < 0)
		return 0;
	/* A draft may have lost its last user, which its header doesn't show. */
	if (shm_home_unlink_if_dead(named, SHM_CLAIM, claim) != SHM_NAME_GONE)
		return list_file(listing, claim, true);
	shm_home_remove_if_empty(listing->dir, listing->file, named);
	return 0;
}

/* Lists the name's region, and a draft of that name. */
static int list_home(const struct listing *listing)
{
	_cleanup_close_ int home = shm_home_open(listing->dir, listing->file);
	int ret;

	if (shm_is_shortage(home))
		return fail(home, "%s: %s", shm_directory(), strerror(-home));
	if (home < 0)
		return 0;
	if (shm_home_is_hidden(listing->file)) {
		shm_home_unlink_if_dead(listing->dir, listing->file, home);
		return 0;
	}
	ret = list_file(listing, home, false);
	return ret ? ret : list_claim(listing, home);
}

static int list_directory(const struct shm_session *session, DIR *stream,
			  int (*fn)(const struct tshare_region_info *info, void *data), void *data)
{
	struct listing listing = { .dir = session->dir, .fn = fn, .data = data };
	int ret = 0;

	while (!ret && (listing.file = shm_directory_next(stream, true)))
		ret = list_home(&listing);
	return ret;
}

static int shm_list(void *opened, int (*fn)(const struct tshare_region_info *info, void *data),
		    void *data)
{
	const struct shm_session *session = opened;
	_cleanup_closedir_ DIR *stream = shm_directory_stream(session->dir);

	if (!stream)
		return fail(-errno, "%s: %s", shm_directory(), strerror(errno));
	return list_directory(session, stream, fn, data);
}

static int shm_read_descs(void *opened, const struct backend_region *region, void *descs)
{
	(void)opened;
	return shm_file_read_descs(region, descs);
}

const struct backend_ops backend_shm = {
	.name = "shm",
	.open = shm_open_session,
	.close = shm_close,
	.name_space = shm_name_space,
	.sweep = shm_sweep,
	.limits = shm_limits,
	.create = shm_create,
	.lookup = shm_lookup,
	.watch = shm_watch,
	.unwatch = shm_unwatch,
	.watch_look = shm_watch_look,
	.import = shm_import,
	.read_descs = shm_read_descs,
	.release = shm_release,
	.finish = shm_finish,
	.unlink = shm_unlink_name,
	.unlink_region = shm_unlink_region,
	.list = shm_list,
	.counter = shm_counter,
	.export = shm_export,
	.info = shm_info,
};
