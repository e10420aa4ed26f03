// SPDX-License-Identifier: MIT
/* The file of a region: its header and descriptors, and their validation. */
#define _GNU_SOURCE 1
#include "backend/shm/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/shm/home.h"
#include "backend/shm/session.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/limited.h"
#include "base/ofd-lock.h"
#include "format/desc-list.h"

#define SHM_MAGIC   "tshare\r\n"
#define SHM_VERSION 4

/* The unit of st_blocks. */
#define STAT_BLOCK 512

int shm_damaged(const char *what)
{
	return fail(-EPROTO, "shared memory is damaged: %s", what);
}

bool shm_file_is_locked(int fd, enum shm_lock lock)
{
	bool locked;

	ofd_lock_test(fd, F_RDLCK, lock, &locked);
	return locked;
}

bool shm_file_is_used(int fd)
{
	bool used;

	ofd_lock_test(fd, F_WRLCK, SHM_USED, &used);
	return used;
}

/* Reading */

int shm_file_read_head(int fd, struct shm_head *head, size_t *length)
{
	ssize_t got;

	got = pread(fd, head, sizeof(*head), 0);
	if (got < 0)
		return -EINVAL;
	if ((size_t)got < SHM_DESCS_OFFSET ||
	    memcmp(head->header.magic, SHM_MAGIC, sizeof(head->header.magic)))
		return -EINVAL;
	*length = got;
	return 0;
}

static int check_header(const struct shm_header *header, const struct stat *file)
{
	uint64_t mask = sysconf(_SC_PAGESIZE) - 1;
	uint64_t end;

	if (header->version != SHM_VERSION)
		return shm_damaged("unknown version");
	if (header->flags & ~(SHM_PERSIST | SHM_DRAFT | SHM_USERS) || header->reserved)
		return shm_damaged("unknown flags");
	if (header->mode & ~0666U)
		return shm_damaged("mode");
	if (header->desc_count > TSHARE_DESC_MAX || header->descs_size > TSHARE_DESCS_SIZE_MAX ||
	    !header->desc_count != !header->descs_size)
		return shm_damaged("number or size of descriptors");
	if (!header->size || header->size & mask)
		return shm_damaged("size");
	if (header->data_offset & mask ||
	    header->data_offset < SHM_DESCS_OFFSET + (uint64_t)header->descs_size)
		return shm_damaged("place of the data");
	if (__builtin_add_overflow(header->data_offset, header->size, &end) ||
	    end > (uint64_t)file->st_size)
		return shm_damaged("the file is too short");
	if (tshare_name_check(header->name, NULL))
		return shm_damaged("name");
	return 0;
}

static int stat_file(int fd, struct stat *file)
{
	return fstat(fd, file) ? shm_damaged("its file can't be looked at") : 0;
}

int shm_header_check(const struct shm_header *header, int fd)
{
	struct stat file;
	int err = stat_file(fd, &file);

	return err ? err : check_header(header, &file);
}

/* Other file systems may store zeros in fewer blocks than their size. */
static bool is_on_tmpfs(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == TMPFS_MAGIC;
}

int shm_header_check_memory(const struct shm_header *header, int fd)
{
	struct stat file;
	int err = stat_file(fd, &file);

	if (!err)
		err = check_header(header, &file);
	if (err)
		return err;
	/* A tmpfs counts whole pages, for the head and for the data. */
	if ((uint64_t)file.st_blocks * STAT_BLOCK <
		    header->size + SHM_DESCS_OFFSET + header->descs_size &&
	    is_on_tmpfs(fd))
		return shm_damaged("the file has less memory than the region");
	return 0;
}

int shm_file_read_descs(const struct backend_region *region, void *descs)
{
	size_t done = 0;
	ssize_t got;

	while (done < region->descs_size) {
		got = pread(region->fd, (char *)descs + done, region->descs_size - done,
			    SHM_DESCS_OFFSET + done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return shm_damaged("the file is too short");
		done += got;
	}
	return 0;
}

int shm_file_adopt(int fd, const struct shm_head *head, size_t length,
		   struct backend_region *region)
{
	const struct shm_header *header = &head->header;

	region->descs = NULL;
	if (header->desc_count && header->descs_size <= length - SHM_DESCS_OFFSET) {
		region->descs = desc_list_copy(header->desc_count, head->descs, header->descs_size);
		if (!region->descs)
			return fail(-ENOMEM, "region: out of memory");
	}
	region->fd = fd;
	region->id = header->id;
	region->size = header->size;
	region->map_offset = header->data_offset;
	region->descs_size = header->descs_size;
	region->desc_count = header->desc_count;
	memcpy(region->name, header->name, sizeof(region->name));
	return 0;
}

/* Whether a region of this version is finished, and has the given lifetime. */
static bool is_finished_with(const struct shm_header *header, uint32_t lifetime)
{
	return header->version == SHM_VERSION && !(header->flags & SHM_DRAFT) &&
	       header->flags & lifetime;
}

/*
 * A maker writes the header before it releases the lock. A header that was read before the lock
 * was found free may therefore be stale, and is read again.
 */
int shm_file_read_life(int fd, struct shm_head *head, size_t *length, bool *alive)
{
	const struct shm_header *header = &head->header;
	int err;

	err = shm_file_read_head(fd, head, length);
	if (err)
		return err;
	*alive = is_finished_with(header, SHM_PERSIST) || shm_file_is_locked(fd, SHM_LIFE);
	if (*alive)
		return 0;
	err = shm_file_read_head(fd, head, length);
	if (err)
		return err;
	/* The flags of another version are unknown: its regions are left alone. */
	*alive = header->version != SHM_VERSION || is_finished_with(header, SHM_PERSIST) ||
		 (is_finished_with(header, SHM_USERS) && shm_file_is_used(fd));
	return 0;
}

bool shm_header_is_known(const struct shm_header *header)
{
	return header->version == SHM_VERSION;
}

bool shm_file_owner_may(int fd, const struct shm_header *header, uint32_t access)
{
	struct stat st;

	if ((header->mode & access) == access)
		return true;
	return fstat(fd, &st) || st.st_uid != geteuid() || !st.st_uid;
}

/* The file's mode is in force. The header's is shown if both agree but for the owner's bits. */
static uint32_t shown_mode(const struct shm_header *header, mode_t file_mode)
{
	if ((header->mode | SHM_OWNER_ACCESS) == (file_mode & 0666))
		return header->mode;
	return file_mode & 0666;
}

static uint32_t lifetime_of(const struct shm_header *header)
{
	if (header->flags & SHM_PERSIST)
		return TSHARE_LIFETIME_PERSIST;
	return header->flags & SHM_USERS ? TSHARE_LIFETIME_USERS : TSHARE_LIFETIME_MAKER;
}

int shm_file_describe(int fd, struct tshare_region_info *info)
{
	struct shm_head head;
	struct stat st;
	size_t length;
	bool alive;
	int err;

	err = shm_file_read_life(fd, &head, &length, &alive);
	if (!err)
		err = shm_header_check(&head.header, fd);
	if (err)
		return err;
	if (fstat(fd, &st))
		return -errno;
	*info = (struct tshare_region_info){
		.size = sizeof(*info),
		.id = head.header.id,
		.region_size = head.header.size,
		.length = head.header.size,
		.uid = st.st_uid,
		.gid = st.st_gid,
		.mode = shown_mode(&head.header, st.st_mode),
		.node = TSHARE_ANY_NODE,
		.lifetime = lifetime_of(&head.header),
		.flags = head.header.flags & SHM_DRAFT ? TSHARE_DRAFT : 0,
		.tensor_count = head.header.desc_count,
	};
	if (st.st_nlink && alive)
		memcpy(info->name, head.header.name, sizeof(info->name));
	return 0;
}

/* Writing */

uint32_t shm_header_flags(uint32_t lifetime, bool draft)
{
	uint32_t flags = draft ? SHM_DRAFT : 0;

	if (lifetime == TSHARE_LIFETIME_PERSIST)
		flags |= SHM_PERSIST;
	if (lifetime == TSHARE_LIFETIME_USERS)
		flags |= SHM_USERS;
	return flags;
}

int shm_header_make(const struct shm_session *session, const struct backend_request *request,
		    struct shm_header *header)
{
	uint64_t alignment = session->page_size;
	uint64_t used = SHM_DESCS_OFFSET + request->descs_size;

	if (request->size >= session->huge_page_size)
		alignment = session->huge_page_size;
	*header = (struct shm_header){
		.magic = SHM_MAGIC,
		.version = SHM_VERSION,
		.size = request->size,
		.data_offset = (used + alignment - 1) & ~(alignment - 1),
		.flags = shm_header_flags(request->lifetime, request->flags & TSHARE_DRAFT),
		.mode = request->mode,
		.desc_count = request->desc_count,
		.descs_size = request->descs_size,
	};
	memcpy(header->name, request->name, sizeof(header->name));
	/* A random number of 53 bits, which all JSON readers keep exactly. */
	if (getrandom(&header->id, sizeof(header->id), 0) != sizeof(header->id))
		return fail(-errno, "region: getrandom: %s", strerror(errno));
	header->id = header->id >> 11 | 1;
	return 0;
}

int shm_file_write(int fd, const struct shm_header *header, const void *descs)
{
	int err;

	err = limited_write_all(fd, header, sizeof(*header), 0);
	if (err)
		return err;
	return limited_write_all(fd, descs, header->descs_size, SHM_DESCS_OFFSET);
}

int shm_file_write_flags(int fd, uint32_t flags)
{
	return limited_write_all(fd, &flags, sizeof(flags), offsetof(struct shm_header, flags));
}

/* Opening again */

/* Without /proc an open file can neither be linked nor reopened. */
int shm_fail_proc(int err, const char *what)
{
	if (err == -ENOENT && access("/proc/self/fd", F_OK))
		return fail(-ENODEV, "/proc: is not mounted; named regions need it");
	if (shm_is_shortage(err))
		return fail(err, "region: %s", strerror(-err));
	return fail(err, "%s: %s", what, strerror(-err));
}

int shm_file_reopen(int fd, int access)
{
	char path[32];
	int new;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	new = fd_open(path, access | O_NONBLOCK);
	return new < 0 ? shm_fail_proc(-errno, path) : new;
}
