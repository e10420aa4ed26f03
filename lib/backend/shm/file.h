/* SPDX-License-Identifier: MIT */
/*
 * The format of a region's file: a header, the counter, descriptors (packed as in
 * the kernel's ABI, see struct tshare_desc), and from a page boundary on the data.
 */
#ifndef TSHARE_BACKEND_SHM_FILE_H
#define TSHARE_BACKEND_SHM_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "backend/backend.h"
#include "desc.h"

struct shm_session;

/* struct shm_header.flags */
#define SHM_PERSIST (1U << 0)
#define SHM_DRAFT   (1U << 1) /* not finished */
#define SHM_USERS   (1U << 2) /* the name stays while a process has the region open */

/*
 * The file's mode lets its owner read and write in any case, so that the owner
 * can lock it and remove it. The region's mode for the owner is in the header, and
 * this library enforces it. (The owner could change a file's mode anyway.)
 */
#define SHM_OWNER_ACCESS 0600

/*
 * Bytes of the file that are locked: by the maker of its name, publishers, users and, from
 * TSHARE_COUNTER_SEATS on, a stream's consumers.
 */
enum shm_lock { SHM_LIFE = 0, SHM_COUNTER = 1, SHM_USED = 2 };

/* The beginning of a file. */
struct shm_header {
	char magic[8];
	uint32_t version;
	uint32_t flags;
	uint64_t id; /* random */
	uint64_t size;
	uint64_t data_offset;
	uint32_t mode;
	uint32_t desc_count;
	uint32_t descs_size; /* bytes of all descriptors */
	uint32_t reserved;
	char name[TSHARE_NAME_LEN];
};

/*
 * Bytes that one pread() reads: all of a region with few tensors, but for its data. A larger head
 * would cost each open more copying.
 */
#define SHM_HEAD_SIZE 1024

/* Where the descriptors begin. */
#define SHM_DESCS_OFFSET 256

/*
 * The counter changes all the time and isn't part of the description, so nothing here
 * reads it. It has a cache line of its own.
 */
struct shm_head {
	struct shm_header header;
	_Alignas(TSHARE_COUNTER_BYTES) char counter[TSHARE_COUNTER_BYTES];
	_Alignas(struct tshare_desc) char descs[SHM_HEAD_SIZE - SHM_DESCS_OFFSET];
};

_Static_assert(sizeof(struct shm_head) == SHM_HEAD_SIZE, "a head is what is read at once");
_Static_assert(offsetof(struct shm_head, descs) == SHM_DESCS_OFFSET, "descriptors are aligned");

#define SHM_COUNTER_OFFSET offsetof(struct shm_head, counter)

/* Fails with -EPROTO. */
int shm_damaged(const char *what);

/*
 * Whether another open file description holds the lock for writing; a reader's lock
 * doesn't count. True if in doubt.
 */
bool shm_file_is_locked(int fd, enum shm_lock lock);

/* Whether an object in any process is a user of the region, see users.c; true if in doubt. */
bool shm_file_is_used(int fd);

/*
 * Reads the start of a file; -EINVAL if it lacks the magic, or if pread() can't read it: a pipe,
 * socket or directory.
 */
int shm_file_read_head(int fd, struct shm_head *head, size_t *length);

/* As shm_file_read_head(), and stores whether the name has a maker or users, or persists. */
int shm_file_read_life(int fd, struct shm_head *head, size_t *length, bool *alive);

/*
 * Checks a header that was read from @fd, or fails with -EPROTO. It is a private
 * copy, so it can't change between this check and its use.
 */
int shm_header_check(const struct shm_header *header, int fd);

/*
 * As shm_header_check(), and checks that the file has all of the region's memory. A reader would
 * allocate missing pages, and be charged for them.
 */
int shm_header_check_memory(const struct shm_header *header, int fd);

/*
 * Makes a region of an open file whose header was checked. The file becomes the
 * region's on success only.
 */
int shm_file_adopt(int fd, const struct shm_head *head, size_t length,
		   struct backend_region *region);

/* Reads the descriptors of a region into @descs, which has @region->descs_size bytes. */
int shm_file_read_descs(const struct backend_region *region, void *descs);

/* False if the region's mode denies its owner, the caller, @access: the file's mode can't. */
bool shm_file_owner_may(int fd, const struct shm_header *header, uint32_t access);

/* Describes the region of a file; -EINVAL or -EPROTO if it is none. */
int shm_file_describe(int fd, struct tshare_region_info *info);

/* Whether the header is of this version. The flags of another version are unknown. */
bool shm_header_is_known(const struct shm_header *header);

/* The flags of a region that doesn't have its name yet. */
uint32_t shm_header_flags(uint32_t lifetime, bool draft);

/* The header of a region that is to be made. */
int shm_header_make(const struct shm_session *session, const struct backend_request *request,
		    struct shm_header *header);

/* Write to a new file. Return: 0 or -errno, without an error text. */
int shm_file_write(int fd, const struct shm_header *header, const void *descs);
int shm_file_write_flags(int fd, uint32_t flags);

/* Opens another description of the same file, without waiting for its owner's lease. */
int shm_file_reopen(int fd, int access);

/* Fails with @err, or with -ENODEV if /proc is missing. */
int shm_fail_proc(int err, const char *what);

#endif /* TSHARE_BACKEND_SHM_FILE_H */
