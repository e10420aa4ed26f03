// SPDX-License-Identifier: MIT
/* How much room there is for regions, and the refusal where there is too little. */
#define _GNU_SOURCE 1
#include "backend/shm/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/shm/file.h"
#include "backend/shm/home.h"
#include "backend/shm/session.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/memory-left.h"

/*
 * This fraction of the available memory isn't offered. The amount changes by the moment, and a
 * region of the offered size should not be refused.
 */
#define LIMITS_MARGIN 64

static uint64_t saturating_product(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static int add_file_bytes(int dir, const char *file, uint64_t *total)
{
	_cleanup_close_ int home = shm_home_open(dir, file);
	_cleanup_close_ int claim = home < 0 ? home : shm_home_open(home, SHM_CLAIM);
	struct statx st;

	if (shm_is_shortage(claim))
		return claim;
	if (home >= 0 && shm_home_stat_file(home, &st) && S_ISREG(st.stx_mode))
		*total += st.stx_blocks * UINT64_C(512);
	/* The file of another claim than a draft's is in its maker's home, too. */
	if (claim >= 0 && shm_stat(claim, SHM_DRAFT_FILE, &st) && S_ISREG(st.stx_mode))
		*total += st.stx_blocks * UINT64_C(512);
	return 0;
}

/*
 * Adds up the bytes of all named regions' files, also of dead ones. Memfds can't be found, and a
 * file that can't be looked at counts as empty.
 */
static int add_bytes_used(int dir, uint64_t *total)
{
	_cleanup_closedir_ DIR *stream = shm_directory_stream(dir);
	const char *file;
	int err = 0;

	if (!stream)
		return shm_is_shortage(-errno) ? -errno : 0;
	while (!err && (file = shm_directory_next(stream, true)))
		err = add_file_bytes(dir, file, total);
	return err;
}

int shm_limits(void *opened, struct tshare_limits *limits)
{
	const struct shm_session *session = opened;
	uint64_t available, unused, used = 0;
	struct statvfs vfs;
	const char *limit;
	int err;

	if (fstatvfs(session->dir, &vfs))
		return fail(-errno, "%s: %s", shm_directory(), strerror(errno));
	err = add_bytes_used(session->dir, &used);
	if (!err)
		err = memory_available(&available, &limit);
	if (err)
		return fail(err, "limits: %s", strerror(-err));
	*limits = (struct tshare_limits){
		.page_size = session->page_size,
		.huge_page_size = session->huge_page_size,
		.bytes_used = used,
	};
	available -= available / LIMITS_MARGIN;
	if (!vfs.f_blocks) { /* a tmpfs without limit */
		limits->bytes_limit = UINT64_MAX;
		limits->region_bytes_max = available;
		return 0;
	}
	limits->bytes_limit = saturating_product(vfs.f_blocks, vfs.f_frsize);
	unused = saturating_product(vfs.f_bavail, vfs.f_frsize);
	unused -= unused < session->page_size ? unused : session->page_size; /* the header */
	limits->region_bytes_max = unused < available ? unused : available;
	return 0;
}

/* Bytes that the directory has free, and in all; false if nothing limits it. */
static bool directory_room(int dir, uint64_t *unused, uint64_t *total)
{
	struct statvfs vfs;

	if (fstatvfs(dir, &vfs) || !vfs.f_blocks)
		return false;
	*unused = saturating_product(vfs.f_bavail, vfs.f_frsize);
	*total = saturating_product(vfs.f_blocks, vfs.f_frsize);
	return true;
}

/* Bytes that both take, give or take a page or two. */
static uint64_t needed_bytes(uint64_t size, uint64_t descs_size)
{
	uint64_t sum;

	return __builtin_add_overflow(size, descs_size, &sum) ? UINT64_MAX : sum;
}

int shm_fail_no_room(int dir, const struct backend_request *request)
{
	uint64_t needed = needed_bytes(request->size, request->descs_size);
	uint64_t available, unused, total;
	const char *whose;

	/* Only for the text: the call fails whatever this finds. */
	memory_available(&available, &whose);
	if (*request->name && directory_room(dir, &unused, &total) && unused < available)
		return fail(-ENOMEM,
			    "size: no room for %" PRIu64 " bytes: %s has %" PRIu64
			    " MiB free of %" PRIu64 "; enlarge it, or unlink what is in it",
			    needed, shm_directory(), unused >> 20, total >> 20);
	if (needed > available)
		return fail(-ENOMEM,
			    "size: no room for %" PRIu64 " bytes: %s has %" PRIu64
			    " MiB of memory and swap available",
			    needed, whose, available >> 20);
	return fail(-ENOMEM, "size: no room for %" PRIu64 " bytes", needed);
}

int shm_fail_no_file(void)
{
	return fail(-ENOMEM,
		    "region: %s has no room for another file (see df -i); enlarge it, or unlink "
		    "what is in it",
		    shm_directory());
}

int shm_check_limit(const struct shm_header *header)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	    (header->data_offset > limit.rlim_cur ||
	     header->size > limit.rlim_cur - header->data_offset))
		return fail(-EFBIG, "size: %" PRIu64 " bytes exceed RLIMIT_FSIZE (ulimit -f)",
			    header->size);
	return 0;
}

int shm_check_room(int dir, const struct backend_request *request, uint64_t size,
		   uint64_t descs_size)
{
	uint64_t needed = needed_bytes(size, descs_size), available, unused, total;
	const char *whose;
	int err;

	err = memory_available(&available, &whose);
	if (err)
		return fail(err, "size: whether there is room is unknown: %s", strerror(-err));
	if (needed > available ||
	    (*request->name && directory_room(dir, &unused, &total) && needed > unused))
		return shm_fail_no_room(dir, request);
	return 0;
}
