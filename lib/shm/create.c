// SPDX-License-Identifier: MIT
/* New regions: their memory, their file, and its name or seals. */
#define _GNU_SOURCE 1
#include "shm/create.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend.h"
#include "cleanup.h"
#include "error.h"
#include "futex.h"
#include "shm/file.h"
#include "shm/home.h"
#include "shm/limits.h"
#include "shm/link.h"
#include "shm/name.h"
#include "shm/session.h"
#include "shm/users.h"

/* The least time between two sweeps of a session. */
#define SWEEP_PAUSE_NS NSEC_PER_SEC

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

static int refuse_unsupported(const struct backend_request *request)
{
	if (request->dmabuf)
		return tshare_fail(-EOPNOTSUPP, "fd: dma-bufs are not supported on shm; load the "
						"module tshare");
	if (request->flags & TSHARE_CONTIGUOUS)
		return tshare_fail(-EOPNOTSUPP, "options.flags: TSHARE_CONTIGUOUS is not "
						"supported on shm; load the module tshare");
	if (request->flags & TSHARE_DMA32)
		return tshare_fail(-EOPNOTSUPP, "options.flags: TSHARE_DMA32 is not "
						"supported on shm; load the module tshare");
	if (request->flags & TSHARE_NODE)
		return tshare_fail(-EOPNOTSUPP, "options.node: is not supported on shm; load the "
						"module tshare");
	return 0;
}

/*
 * Allocates the pages now, since a write into a mapping could only fail with
 * SIGBUS. In pieces, as Linux 6.1 undoes what a signal interrupts: the next one is
 * half as large, so that under a periodic signal they come to fit in between.
 */
static int allocate(const struct shm_session *session, int fd, uint64_t offset, uint64_t size)
{
	const uint64_t most = 64 << 20;
	uint64_t piece = most, length;
	int err;

	while (size) {
		length = size < piece ? size : piece;
		err = posix_fallocate(fd, offset, length);
		if (err && err != EINTR)
			return -err;
		if (err) {
			piece = length / 2 & ~(uint64_t)(session->page_size - 1);
			if (!piece)
				piece = session->page_size;
			continue;
		}
		offset += length;
		size -= length;
		if (piece < most)
			piece *= 2;
	}
	return 0;
}

static int fill_file(const struct shm_session *session, int fd, const struct shm_header *header,
		     const struct backend_request *request)
{
	int err;

	err = allocate(session, fd, header->data_offset, header->size);
	if (!err)
		err = shm_file_write(fd, header, request->descs);
	if (err == -ENOSPC || err == -EFBIG || err == -ENOMEM)
		return shm_fail_no_room(request);
	if (err)
		return tshare_fail(err, "size: %" PRIu64 " bytes: %s", request->size,
				   strerror(-err));
	return 0;
}

/* The umask is ignored. Execute bits mean nothing, and a memfd refuses them. */
static int set_mode(int fd, uint32_t mode)
{
	if (fchmod(fd, (mode & 0666) | SHM_OWNER_ACCESS))
		return tshare_fail(-errno, "options.mode: %s", strerror(errno));
	return 0;
}

/* Unnamed regions */

static int new_memfd(void)
{
	int fd;

	fd = memfd_create("tshare", MFD_CLOEXEC | MFD_NOEXEC_SEAL | MFD_ALLOW_SEALING);
	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
		fd = memfd_create("tshare", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd < 0 ? tshare_fail(-errno, "region: memfd: %s", strerror(errno)) : fd;
}

static int create_unnamed(const struct shm_session *session, const struct backend_request *request,
			  const struct shm_header *header)
{
	_cleanup_close_ int fd = new_memfd();
	int err;

	if (fd < 0)
		return fd;
	err = fill_file(session, fd, header, request);
	if (!err)
		err = set_mode(fd, request->mode);
	if (!err && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		err = tshare_fail(-errno, "region: sealing: %s", strerror(errno));
	return err ? err : no_cleanup(fd);
}

/* Named regions */

/* Not decisive, but saves the allocation where the name is taken anyway. */
static int check_free(int dir, const char *name)
{
	char files[2][SHM_HOME_NAME_LEN];
	enum shm_name_state state;
	size_t i;

	shm_home_name(files[0], name);
	shm_next_name(files[1], name);
	for (i = 0; i < 2; i++) {
		state = shm_name_unlink_if_dead(dir, files[i]);
		if (state == SHM_NAME_TAKEN || state == SHM_NAME_STUCK)
			return shm_fail_taken(dir, files[i], state, name);
	}
	return 0;
}

static int create_named(struct shm_session *session, const struct backend_request *request,
			const struct shm_header *header, void **user)
{
	_cleanup_close_ int fd = -1;
	int ret;

	shm_names_drop_some_unlinked(session);
	if (!(request->flags & TSHARE_REPLACE)) {
		ret = check_free(session->dir, request->name);
		if (ret)
			return ret;
	}

	fd = openat(session->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, SHM_OWNER_ACCESS);
	if (fd < 0)
		return tshare_fail(-errno, "%s: %s", shm_directory(), strerror(errno));
	ret = fill_file(session, fd, header, request);
	if (!ret)
		ret = set_mode(fd, request->mode);
	if (!ret && header->flags & (SHM_USERS | SHM_DRAFT))
		ret = shm_user_new(fd, header, user);
	if (!ret)
		ret = shm_link(session, fd, request);
	if (!ret)
		return no_cleanup(fd);
	shm_user_free(*user, -1);
	*user = NULL;
	return ret;
}

/* Either */

static int create_file(struct shm_session *session, const struct backend_request *request,
		       const struct shm_header *header, void **user)
{
	int err;

	err = shm_check_room(request, header);
	if (err)
		return err;
	return *request->name ? create_named(session, request, header, user) :
				create_unnamed(session, request, header);
}

/*
 * Sweeps with the first region that is created, and with later ones as long as
 * that takes a hundredth of the time.
 */
static void sweep_now_and_then(struct shm_session *session)
{
	long long begin = clock_ns(), next = atomic_load(&session->next_sweep), took;

	if (begin < next || !atomic_compare_exchange_strong(&session->next_sweep, &next, LLONG_MAX))
		return;
	shm_names_sweep(session->dir);
	took = clock_ns() - begin;
	atomic_store(&session->next_sweep,
		     begin + (took < SWEEP_PAUSE_NS / 100 ? SWEEP_PAUSE_NS : 100 * took));
}

int shm_create(void *opened, const struct backend_request *request, struct backend_region *region)
{
	struct shm_session *session = opened;
	void *user = NULL;
	struct shm_header header;
	int fd, err;

	err = refuse_unsupported(request);
	if (err)
		return err;
	sweep_now_and_then(session);
	err = shm_header_make(session, request, &header);
	if (err)
		return err;
	fd = create_file(session, request, &header, &user);
	if (fd == -ENOMEM && shm_names_sweep(session->dir))
		fd = create_file(session, request, &header, &user);
	if (fd < 0)
		return fd;
	region->fd = fd;
	region->user = user;
	region->id = header.id;
	region->map_offset = header.data_offset;
	return 0;
}
