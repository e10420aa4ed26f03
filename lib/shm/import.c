// SPDX-License-Identifier: MIT
/* Descriptors that another process sent: which of them are regions, and safe to map. */
#define _GNU_SOURCE 1
#include "shm/import.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "backend.h"
#include "cleanup.h"
#include "error.h"
#include "shm/file.h"
#include "shm/home.h"
#include "shm/session.h"
#include "shm/users.h"

/*
 * Whether it is a regular file in memory. Only those have seals: not the devices and
 * pipes that are on a tmpfs, and reading them may wait; nor what FUSE has, whose server
 * need not answer fstatfs() either. Seals without tmpfs are those of huge pages.
 */
static bool is_memory(int fd)
{
	struct statfs fs;

	return fcntl(fd, F_GET_SEALS) >= 0 && !fstatfs(fd, &fs) && fs.f_type == TMPFS_MAGIC;
}

/* Whether no process can shrink it under those that have it mapped. */
static bool is_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && seals & F_SEAL_SHRINK;
}

/* Whether @fd is of the file system that the named regions are on. */
static bool is_beside(int dir, int fd)
{
	struct statx here, there;

	return shm_stat(dir, "", &here) && shm_stat(fd, "", &there) && S_ISREG(there.stx_mode) &&
	       shm_is_same_device(&here, &there);
}

static bool is_in_home(int dir, const char *file, int fd)
{
	_cleanup_close_ int home = shm_home_open(dir, file);

	return home >= 0 && shm_home_has(home, fd);
}

/* Whether it is the caller's own, or the one that has the region's name. */
static bool is_known(int dir, int fd, const struct shm_header *header)
{
	char file[SHM_HOME_NAME_LEN];
	struct stat st;

	if (!fstat(fd, &st) && st.st_uid == geteuid())
		return true;
	if (!*header->name || tshare_name_check(header->name, NULL))
		return false;
	shm_home_name(file, header->name);
	if (is_in_home(dir, file, fd))
		return true;
	shm_next_name(file, header->name);
	return is_in_home(dir, file, fd);
}

/*
 * Reads the head of a descriptor that any process may have sent. A file that its
 * sender can truncate would let it end the importer with SIGBUS. The owner of a named
 * region can do so too, which those that open it accept.
 */
static int read_foreign_head(int dir, int fd, struct shm_head *head, size_t *length)
{
	bool beside = is_beside(dir, fd);

	if ((!beside && !is_memory(fd)) || shm_file_read_head(fd, head, length))
		return -EINVAL;
	if (!is_sealed(fd) && !(beside && is_known(dir, fd, &head->header)))
		return tshare_fail(-EPROTO,
				   "fd: is neither sealed nor the file of a named region, so its "
				   "sender could truncate it");
	return shm_header_check(&head->header, fd);
}

/* Replaces @fd by a read-only descriptor of its file, where that may be opened. */
static int make_readonly(int fd)
{
	int new = shm_file_reopen(fd, O_RDONLY);

	if (new < 0)
		return fd;
	close(fd);
	return new;
}

static int adopt_foreign(int dir, int fd, bool readonly, struct backend_region *region)
{
	struct shm_head head;
	size_t length;
	int err;

	err = read_foreign_head(dir, fd, &head, &length);
	if (!err)
		err = shm_file_adopt(fd, &head, length, region);
	if (err)
		return err;
	/* A process that may not open the file itself is none that keeps the name. */
	if (head.header.flags & (SHM_USERS | SHM_DRAFT) &&
	    shm_user_new(fd, &head.header, &region->user))
		tshare_error_clear();
	if (readonly && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
		region->fd = make_readonly(fd);
	region->readonly = (fcntl(region->fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
	return 0;
}

int shm_import(void *opened, int fd, bool readonly, struct backend_region *region)
{
	const struct shm_session *session = opened;
	_cleanup_close_ int own = session ? -1 : shm_directory_open();

	/* Without the directory there are sealed regions still. */
	return adopt_foreign(session ? session->dir : own, fd, readonly, region);
}
