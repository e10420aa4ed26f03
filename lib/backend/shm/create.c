// SPDX-License-Identifier: MIT
/* New regions: their memory, their file, and its name or seals. */
#define _GNU_SOURCE 1
#include "backend/shm/create.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "backend/backend.h"
#include "backend/shm/allocate.h"
#include "backend/shm/dead.h"
#include "backend/shm/file.h"
#include "backend/shm/held.h"
#include "backend/shm/home.h"
#include "backend/shm/limits.h"
#include "backend/shm/link.h"
#include "backend/shm/session.h"
#include "backend/shm/users.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/limited.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

static int refuse_unsupported(const struct backend_request *request)
{
	if (request->dmabuf)
		return fail(-EOPNOTSUPP, "fd: dma-bufs are not supported on shm; load the "
					 "module tshare");
	if (request->flags & TSHARE_CONTIGUOUS)
		return fail(-EOPNOTSUPP, "options.flags: TSHARE_CONTIGUOUS is not "
					 "supported on shm; load the module tshare");
	if (request->flags & TSHARE_DMA32)
		return fail(-EOPNOTSUPP, "options.flags: TSHARE_DMA32 is not "
					 "supported on shm; load the module tshare");
	if (request->flags & TSHARE_NODE)
		return fail(-EOPNOTSUPP, "options.node: is not supported on shm; load the "
					 "module tshare");
	return 0;
}

static int fail_file(int dir, int err, const struct shm_header *header,
		     const struct backend_request *request)
{
	/* The limit may have been lowered since the check. */
	if (err == -EFBIG && shm_check_limit(header))
		return err;
	if (err == -ENOSPC || err == -EFBIG || err == -ENOMEM)
		return shm_fail_no_room(dir, request);
	return fail(err, "size: %" PRIu64 " bytes: %s", request->size, strerror(-err));
}

/* The umask is ignored. */
static int set_mode(int fd, uint32_t mode)
{
	if (fchmod(fd, mode | SHM_OWNER_ACCESS))
		return fail(-errno, "options.mode: %s", strerror(errno));
	return 0;
}

static bool is_draft(const struct backend_request *request)
{
	return request->flags & TSHARE_DRAFT;
}

/* Whether a sweep for a step that found no room has removed regions of dead makers. */
static bool has_made_room(const struct shm_session *session, int err)
{
	return err == -ENOMEM && shm_names_sweep(session->dir);
}

static int try_to_write_file(const struct shm_session *session, int fd,
			     const struct shm_header *header, const struct backend_request *request)
{
	int err;

	/* For a draft's memory, try_to_add_memory() checks. */
	err = shm_check_room(session->dir, request, is_draft(request) ? 0 : request->size,
			     request->descs_size);
	if (err)
		return err;
	err = limited_truncate(fd, header->data_offset + header->size);
	/* The size exceeds what a file can have. */
	if (err == -EINVAL)
		err = -EFBIG;
	if (!err)
		err = shm_file_write(fd, header, request->descs);
	return err ? fail_file(session->dir, err, header, request) : set_mode(fd, request->mode);
}

/* Writes all of a region but its memory, which a draft gets only after it is visible. */
static int write_file(const struct shm_session *session, int fd, const struct shm_header *header,
		      const struct backend_request *request)
{
	int err = try_to_write_file(session, fd, header, request);

	return has_made_room(session, err) ? try_to_write_file(session, fd, header, request) : err;
}

static int try_to_add_memory(const struct shm_session *session, int fd,
			     const struct shm_header *header, const struct backend_request *request)
{
	int err;

	err = is_draft(request) ? shm_check_room(session->dir, request, request->size, 0) : 0;
	if (err)
		return err;
	err = shm_allocate(session, fd, header->data_offset, header->size);
	return err ? fail_file(session->dir, err, header, request) : 0;
}

/* A draft keeps its claim meanwhile: without it, waiters would take the draft for lost. */
static int add_memory(const struct shm_session *session, int fd, const struct shm_header *header,
		      const struct backend_request *request)
{
	int err = try_to_add_memory(session, fd, header, request);

	return has_made_room(session, err) ? try_to_add_memory(session, fd, header, request) : err;
}

/* Unnamed regions */

static int try_memfd(unsigned int flags)
{
	return fd_move_up(memfd_create("tshare", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags));
}

static int new_memfd(void)
{
	int fd;

	fd = try_memfd(MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
		fd = try_memfd(0);
	return fd < 0 ? fail(-errno, "region: memfd: %s", strerror(errno)) : fd;
}

static int create_unnamed(const struct shm_session *session, const struct backend_request *request,
			  const struct shm_header *header)
{
	_cleanup_close_ int fd = new_memfd();
	int err;

	if (fd < 0)
		return fd;
	err = write_file(session, fd, header, request);
	if (!err)
		err = add_memory(session, fd, header, request);
	if (!err && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		err = fail(-errno, "region: sealing: %s", strerror(errno));
	return err ? err : no_cleanup(fd);
}

/* Named regions */

/* Not decisive, but saves the allocation if the name is taken. */
static int check_free(int dir, const char *name)
{
	char file[SHM_HOME_NAME_LEN];
	enum shm_name_state state;

	shm_home_name(file, name);
	state = shm_name_unlink_if_dead(dir, file);
	if (state == SHM_NAME_TAKEN || state == SHM_NAME_STUCK)
		return shm_fail_taken(dir, file, state, name);
	return 0;
}

/*
 * A draft takes its claim before its memory. Of makers that start together, one allocates, and the
 * others find the name taken, however little room is left.
 */
static int make_named(const struct shm_session *session, struct shm_name *name,
		      const struct backend_request *request, const struct shm_header *header)
{
	int err;

	err = write_file(session, name->file, header, request);
	if (!err && header->flags & (SHM_USERS | SHM_DRAFT))
		err = shm_user_new(session->dir, name->file, header, &name->user);
	if (!err && is_draft(request))
		err = shm_claim(session, name, request);
	if (!err)
		err = add_memory(session, name->file, header, request);
	if (!err && !is_draft(request))
		err = shm_link(session, name, request);
	return err;
}

static int try_to_create_named(struct shm_session *session, const struct backend_request *request,
			       const struct shm_header *header, void **user)
{
	struct shm_name *name;
	int err;

	shm_names_drop_some_unlinked(session);
	if (!(request->flags & TSHARE_REPLACE)) {
		err = check_free(session->dir, request->name);
		if (err)
			return err;
	}
	err = shm_name_begin(session, request, &name);
	if (err)
		return err;
	err = make_named(session, name, request, header);
	if (!err)
		return shm_name_complete(session, name, user);
	shm_name_abandon(session, name);
	return err;
}

static int create_named(struct shm_session *session, const struct backend_request *request,
			const struct shm_header *header, void **user)
{
	int err = try_to_create_named(session, request, header, user);

	if (err == -ENOSPC && shm_names_sweep(session->dir))
		err = try_to_create_named(session, request, header, user);
	return err == -ENOSPC ? shm_fail_no_file() : err;
}

/* Either */

static int create_file(struct shm_session *session, const struct backend_request *request,
		       const struct shm_header *header, void **user)
{
	int err;

	err = shm_check_limit(header);
	if (err)
		return err;
	return *request->name ? create_named(session, request, header, user) :
				create_unnamed(session, request, header);
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
	shm_sweep_if_due(session, 0, SHM_SWEEP_PAUSE_NS);
	err = shm_header_make(session, request, &header);
	if (err)
		return err;
	fd = create_file(session, request, &header, &user);
	if (fd < 0)
		return fd;
	region->fd = fd;
	region->user = user;
	region->id = header.id;
	region->map_offset = header.data_offset;
	return 0;
}
