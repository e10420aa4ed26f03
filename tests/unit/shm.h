/* SPDX-License-Identifier: MIT */
/*
 * Helpers for tests of the backend on POSIX shared memory: of files, which any
 * process that may write to them can damage. Each program runs in a directory of
 * its own, where it knows each file.
 */
#ifndef TSHARE_TESTS_SHM_H
#define TSHARE_TESTS_SHM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

/*
 * The format, written down a second time: a change of it that isn't meant makes
 * these tests fail.
 */
struct header {
	char magic[8];
	uint32_t version;
	uint32_t flags;
	uint64_t id;
	uint64_t size;
	uint64_t data_offset;
	uint32_t mode;
	uint32_t desc_count;
	uint32_t descs_size;
	uint32_t reserved;
	char name[128];
	uint64_t unused;
	uint64_t counter[8];
};

/* The record of new_victim()'s tensor, which is the only one. */
struct descriptor {
	uint32_t size;
	uint16_t ndim;
	uint16_t name_len;
	uint64_t byte_offset;
	uint8_t dtype[4];
	uint32_t flags;
	int64_t shape[2];
	int64_t strides[2];
	char name[8];
};

#define HEADER(member) offsetof(struct header, member)
#define DESC(member)   (sizeof(struct header) + offsetof(struct descriptor, member))

/* TSHARE_SHM_DIR. */
extern char directory[sizeof("/dev/shm/tshare-test-XXXXXX")];

/* The directory of a region; valid until the next call. */
const char *home_of(const char *name);

/* The file of a region; valid until the next call. */
const char *path_of(const char *name);

/* The claim to a name, which a draft has; valid until the next call. */
const char *next_of(const char *name);

/* The home of a maker, before its region has the name or after it has lost it. */
const char *hidden_home(void);

bool exists_at(const char *path);
bool has_home(const char *name);
bool has_file(const char *name);

/* A named region of a page with one tensor, 4 x 8 uint8, whose maker lives. */
struct tshare_region *new_victim(const char *name);

/* Overwrites bytes of a region's file. */
void write_at(const char *name, off_t offset, const void *bytes, size_t size);

/*
 * Whether the kernel makes huge pages of a file in memory when it is asked to: Linux does so from 6.1
 * on, unless shmem_enabled is "deny".
 */
bool makes_huge_pages(void);

/* For tshare_ctx_list(). */
int ignore(const struct tshare_region_info *info, void *data);

/* Exit status of a child in which mount_silent_fuse() failed. */
enum { NO_FUSE = 77 };

/*
 * Mounts a FUSE whose server never answers, in a mount namespace of the process's
 * own; -1 where that is not possible, or what the server would read from.
 */
int mount_silent_fuse(const char *path);

/* Makes the directory, runs the tests, removes it; returns main()'s exit status. */
int shm_main(void);

#endif /* TSHARE_TESTS_SHM_H */
