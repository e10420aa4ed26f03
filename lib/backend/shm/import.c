// SPDX-License-Identifier: MIT
/* Descriptors that another process sent: which of them are regions, and safe to map. */
#define _GNU_SOURCE 1
#include "backend/shm/import.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/shm/file.h"
#include "backend/shm/home.h"
#include "backend/shm/session.h"
#include "backend/shm/users.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"

/*
 * Whether it is a regular file in memory. Only such files have seals. Devices and pipes on a tmpfs
 * have none, and reading them may wait. A file on FUSE has none, and its server may never answer
 * fstatfs(). Files of huge pages have seals, but are not on tmpfs.
 */
static bool is_memory(int fd)
{
	struct statfs fs;

	return fcntl(fd, F_GET_SEALS) >= 0 && !fstatfs(fd, &fs) && fs.f_type == TMPFS_MAGIC;
}

/* Whether no process can shrink the file under a process that has it mapped. */
static bool is_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && seals & F_SEAL_SHRINK;
}

/* Whether @fd is a regular file on the file system of the named regions. */
static bool is_beside(int dir, int fd)
{
	struct statx here, there;

	return shm_stat(dir, "", &here) && shm_stat(fd, "", &there) && S_ISREG(there.stx_mode) &&
	       shm_is_same_device(&here, &there);
}

/* 0 if the file is in the home @opened, -ENOENT if not; or a shortage. Closes @opened. */
static int find_in_home(int opened, int fd)
{
	_cleanup_close_ int home = opened;

	if (shm_is_shortage(home))
		return home;
	return home >= 0 && shm_home_has(home, fd) ? 0 : -ENOENT;
}

/*
 * Whether several accounts may have this id in the process's user namespace: those without an id
 * there get the overflow id, which is read once, as it stays the same on a running machine.
 */
static bool is_shared_id(uid_t uid)
{
	static atomic_uint shared; /* 0 until it is known */
	unsigned int id = atomic_load_explicit(&shared, memory_order_relaxed);
	_cleanup_fclose_ FILE *file = id ? NULL : fd_fopen("/proc/sys/kernel/overflowuid");

	if (!id && (!file || fscanf(file, "%u", &id) != 1))
		return true;
	atomic_store_explicit(&shared, id, memory_order_relaxed);
	return uid == id;
}

/*
 * 0 if the file is the caller's own, -ENOENT if not; or a shortage. Only the owner, or a process
 * that may act as the owner, can open it with O_NOATIME. That open takes as long as the rest of an
 * import, so it is skipped where the id is answer enough.
 */
static int find_own(int fd)
{
	struct stat st;
	int own;

	if (fstat(fd, &st) || st.st_uid != geteuid())
		return -ENOENT;
	if (!is_shared_id(st.st_uid))
		return 0;
	own = shm_file_reopen(fd, O_RDONLY | O_NOATIME);
	if (shm_is_shortage(own))
		return own;
	if (own < 0) {
		error_clear();
		return -ENOENT;
	}
	close(own);
	return 0;
}

/* As find_own(), and 0 also for the file that has the region's name. */
static int find_known(int dir, int fd, const struct shm_header *header)
{
	char file[SHM_HOME_NAME_LEN];
	int err = find_own(fd);

	if (err != -ENOENT)
		return err;
	if (!*header->name || tshare_name_check(header->name, NULL))
		return -ENOENT;
	shm_home_name(file, header->name);
	err = find_in_home(shm_home_open(dir, file), fd);
	return err == -ENOENT ? find_in_home(shm_claim_open(dir, file), fd) : err;
}

static int fail_shortage(int err)
{
	return fail(err, "fd: to import it takes more descriptors: %s", strerror(-err));
}

/*
 * Reads the head of a descriptor that any process may have sent. A sender that can truncate the
 * file could end the importer with SIGBUS. The owner of a named region could, too, and its openers
 * accept that.
 */
static int read_foreign_head(int dir, int fd, struct shm_head *head, size_t *length)
{
	bool beside = is_beside(dir, fd);
	int err = 0;

	if ((!beside && !is_memory(fd)) || shm_file_read_head(fd, head, length))
		return -EINVAL;
	if (!is_sealed(fd))
		err = beside ? find_known(dir, fd, &head->header) : -ENOENT;
	if (shm_is_shortage(err))
		return fail_shortage(err);
	if (err)
		return fail(-EPROTO, "fd: is neither sealed nor the file of a named region, so its "
				     "sender could truncate it");
	return shm_header_check_memory(&head->header, fd);
}

/* Reopens the file for reading alone, if @readonly and if the file may be opened; else -ENOENT. */
static int open_reader(int fd, bool readonly)
{
	int reader;

	if (!readonly || (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
		return -ENOENT;
	reader = shm_file_reopen(fd, O_RDONLY);
	if (reader >= 0)
		return reader;
	if (shm_is_shortage(reader))
		return fail_shortage(reader);
	error_clear();
	return -ENOENT;
}

/* A process that may not open the file itself becomes no user, and doesn't keep the name. */
static int begin_use(int dir, int fd, const struct shm_header *header, void **user)
{
	int err;

	if (!(header->flags & (SHM_USERS | SHM_DRAFT)))
		return 0;
	err = shm_user_new(dir, fd, header, user);
	if (shm_is_shortage(err))
		return fail_shortage(err);
	if (err)
		error_clear();
	return 0;
}

static int adopt_foreign(int dir, int fd, bool readonly, struct backend_region *region)
{
	_cleanup_close_ int reader = -1;
	struct shm_head head;
	void *user = NULL;
	size_t length;
	int err;

	err = read_foreign_head(dir, fd, &head, &length);
	if (err)
		return err;
	reader = open_reader(fd, readonly);
	if (shm_is_shortage(reader))
		return reader;
	err = begin_use(dir, fd, &head.header, &user);
	if (!err)
		err = shm_file_adopt(fd, &head, length, region);
	if (err) {
		shm_user_free(user, true);
		return err;
	}
	region->user = user;
	if (reader >= 0) {
		close(fd);
		region->fd = no_cleanup(reader);
	}
	region->readonly = (fcntl(region->fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
	return 0;
}

/* Sealed regions can be imported without the directory. */
static int import_without_directory(int dir, int fd, bool readonly, struct backend_region *region)
{
	int err = adopt_foreign(dir, fd, readonly, region);

	return shm_is_shortage(dir) && (err == -EINVAL || err == -EPROTO) ? fail_shortage(dir) :
									    err;
}

int shm_import(void *opened, int fd, bool readonly, struct backend_region *region)
{
	const struct shm_session *session = opened;
	_cleanup_close_ int own = session ? -1 : shm_directory_open();
	int err;

	if (session)
		return adopt_foreign(session->dir, fd, readonly, region);
	err = import_without_directory(own, fd, readonly, region);
	if (!err && region->user && own >= 0)
		shm_user_keep_directory(region->user, no_cleanup(own));
	return err;
}
