// SPDX-License-Identifier: MIT
/*
 * The backend that is POSIX shared memory: runs anywhere.
 *
 * A region is a file: a header, the counter, descriptors, and from a page
 * boundary on the data (from a 2 MiB boundary where that is large, so that a mount
 * with huge pages can use them). Named ones are in /dev/shm, or in
 * $TSHARE_SHM_DIR, as tshare.NAME/region; unnamed ones are sealed memfds.
 *
 * A name lives as long as its maker's session. The session holds a write lock on
 * the file's first byte (LIFE) through an open file description of its own, which
 * nothing but fork() shares, and which the kernel closes with the last process
 * that has it, however that ends. Whoever meets a name without such a lock
 * removes it. A file gets its name only when it is complete and locked, so
 * nobody ever sees one that is not.
 *
 * Each region has a directory of its own, its home, so that nobody removes a new
 * region in place of the dead one that was looked at: between the look and the
 * removal another process may have removed the dead one, and a third made a new
 * one of that name. unlinkat() through a descriptor of the dead one's home can't
 * reach the new one, which has another home, and the name goes by rmdir(), which
 * fails while a home has a region in it. The maker fills a home under another
 * name, and renames it: that takes a name which is free, or that of an empty
 * home, and no other. No lock is needed for that, which others could hold: who
 * may only read a region can lock any byte of it for reading.
 *
 * What a peer with write access does to a header can't be prevented, but it is
 * copied once, checked, and never followed beyond the file.
 */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "backend.h"
#include "desc.h"
#include "error.h"
#include "layout.h"
#include "lock.h"
#include "memory.h"
#include "ofd-lock.h"

#define DEFAULT_DIR   "/dev/shm"
#define FILE_PREFIX   "tshare."
#define FILE_NAME_LEN (sizeof(FILE_PREFIX) - 1 + TSHARE_NAME_LEN)

/* What a home is called until it gets its name, with 16 hexadecimal digits. */
#define DRAFT_PREFIX ".tshare."
#define DRAFT_LEN    (sizeof(DRAFT_PREFIX) + 16)

/* The file in a home. */
#define REGION_FILE "region"

/* Everybody may look for the file, which has a mode of its own. */
#define HOME_MODE 0755

#define SHM_MAGIC   "tshare\r\n"
#define SHM_VERSION 2

/* struct shm_header.flags */
#define SHM_PERSIST (1U << 0)

/*
 * The file's mode lets its owner read and write in any case, so that the owner
 * can lock it and remove it; what the region's mode says of the owner is in the
 * header, and kept by this library. (The owner could change a file's mode
 * anyway.)
 */
#define OWNER_ACCESS 0600

/* The least time between two sweeps of a session. */
#define SWEEP_PAUSE_NS INT64_C(1000000000)

/* Names that are looked at when one more is made. */
#define SWEEP_BATCH 64

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

enum shm_lock { LIFE = 0, COUNTER = 1 };

/* What a file begins with. */
struct shm_header {
	char magic[8];
	uint32_t version;
	uint32_t flags;
	uint64_t id; /* random */
	uint64_t size;
	uint64_t data_offset;
	uint32_t mode;
	uint32_t desc_count;
	uint32_t desc_size;
	uint32_t reserved;
	char name[TSHARE_NAME_LEN];
};

/* One pread() gets all there is to know of a region that holds one tensor, as most do. */
#define HEAD_DESCS 1

/*
 * The counter changes all the time, and says nothing of the region: it is never
 * looked at here. It has a cache line of its own.
 */
struct shm_head {
	struct shm_header header;
	_Alignas(TSHARE_COUNTER_BYTES) char counter[TSHARE_COUNTER_BYTES];
	struct tshare_desc descs[HEAD_DESCS];
};

#define COUNTER_OFFSET offsetof(struct shm_head, counter)
#define DESCS_OFFSET   offsetof(struct shm_head, descs)
#define HEAD_SIZE      (DESCS_OFFSET + HEAD_DESCS * sizeof(struct tshare_desc))

_Static_assert(DESCS_OFFSET % _Alignof(struct tshare_desc) == 0, "descriptors are aligned");

/* A name that the session holds. */
struct shm_name {
	TAILQ_ENTRY(shm_name) entry;
	int fd; /* has the LIFE lock */
	char file[FILE_NAME_LEN];
};

struct shm_session {
	LIST_ENTRY(shm_session) entry;
	int dir;
	uint32_t page_size;
	uint32_t huge_page_size;
	TAILQ_HEAD(shm_name_list, shm_name) names; /* under the process's lock */
	atomic_llong next_sweep;		   /* nanoseconds of the monotonic clock */
};

/* All of the process, under its lock. */
static LIST_HEAD(, shm_session) sessions = LIST_HEAD_INITIALIZER(sessions);

static void file_name(char file[FILE_NAME_LEN], const char *name)
{
	stpcpy(stpcpy(file, FILE_PREFIX), name);
}

/* Locks */

/*
 * Whether another open file description holds the lock for writing; a reader's own
 * doesn't count. True if in doubt.
 */
static bool is_locked(int fd, enum shm_lock lock)
{
	bool locked;

	ofd_lock_test(fd, F_RDLCK, lock, &locked);
	return locked;
}

/* Headers */

static int damaged(const char *what)
{
	return tshare_fail(-EPROTO, "shared memory is damaged: %s", what);
}

/*
 * Opens what is on the file system of the directory itself, and not behind a symbolic
 * link. Users may mount FUSE on what is theirs, and its server need never answer.
 */
static int open_here(int dir, const char *path, int flags)
{
	const struct open_how how = {
		.flags = flags | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};
	int fd;

	fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

/* The same for one component; mounts are crossed where openat2() is unknown or filtered out. */
static int open_entry(int dir, const char *entry, int flags)
{
	int fd = open_here(dir, entry, flags);

	if (fd != -ENOSYS && fd != -EPERM)
		return fd == -EXDEV ? -EPROTO : fd;
	fd = openat(dir, entry, flags | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Looks at an entry, or with "" at the file itself, without asking a server of its file system. */
static bool look_at(int dir, const char *entry, struct statx *st)
{
	return !statx(dir, entry, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		      STATX_BASIC_STATS, st);
}

static bool is_same_device(const struct statx *one, const struct statx *other)
{
	return one->stx_dev_major == other->stx_dev_major &&
	       one->stx_dev_minor == other->stx_dev_minor;
}

/* Opens the directory that has a name: -EPROTO if it is none, or one of another file system. */
static int open_home(int dir, const char *file)
{
	int fd = open_entry(dir, file, O_PATH | O_DIRECTORY);

	return fd == -ENOTDIR || fd == -ELOOP ? -EPROTO : fd;
}

/* Opens the region's file: -EPROTO if it is none, or one of another file system. */
static int open_region_file(int home, int access)
{
	int fd = open_entry(home, REGION_FILE, access | O_NONBLOCK | O_NOCTTY);

	return fd == -ELOOP || fd == -EISDIR || fd == -ENXIO || fd == -ENODEV ? -EPROTO : fd;
}

static int open_file(int dir, const char *file, int access)
{
	char path[FILE_NAME_LEN + sizeof(REGION_FILE)];
	int home, fd;

	snprintf(path, sizeof(path), "%s/" REGION_FILE, file);
	fd = open_here(dir, path, access | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0)
		return fd;
	/* These steps fail for the reason that is to be reported. */
	home = open_home(dir, file);
	if (home < 0)
		return home;
	fd = open_region_file(home, access);
	close(home);
	return fd;
}

/*
 * Reads the start of a file. Of a pipe, socket or directory that fails with an
 * errno; of a device it gives no magic.
 */
static int read_head(int fd, struct shm_head *head, size_t *length)
{
	ssize_t got;

	got = pread(fd, head, HEAD_SIZE, 0);
	if (got < 0)
		return -EINVAL;
	if ((size_t)got < DESCS_OFFSET ||
	    memcmp(head->header.magic, SHM_MAGIC, sizeof(head->header.magic)))
		return -EINVAL;
	*length = got;
	return 0;
}

/* @header is a private copy: nobody changes it between this check and its use. */
static int check_header(const struct shm_header *header, int fd)
{
	uint64_t mask = sysconf(_SC_PAGESIZE) - 1;
	off_t file_size = lseek(fd, 0, SEEK_END);
	uint64_t end;

	if (header->version != SHM_VERSION)
		return damaged("unknown version");
	if (header->flags & ~SHM_PERSIST || header->reserved)
		return damaged("unknown flags");
	if (header->mode & ~0777U)
		return damaged("mode");
	if (header->desc_count > TSHARE_DESC_MAX || header->desc_size != sizeof(struct tshare_desc))
		return damaged("number or size of descriptors");
	if (!header->size || header->size & mask)
		return damaged("size");
	if (header->data_offset & mask ||
	    header->data_offset < DESCS_OFFSET + (uint64_t)header->desc_count * header->desc_size)
		return damaged("place of the data");
	if (__builtin_add_overflow(header->data_offset, header->size, &end) || file_size < 0 ||
	    end > (uint64_t)file_size)
		return damaged("the file is too short");
	if (tshare_name_check(header->name, NULL))
		return damaged("name");
	return 0;
}

static int read_descs(int fd, const struct shm_head *head, size_t length, struct tshare_desc *descs)
{
	size_t size = head->header.desc_count * sizeof(*descs), done;
	ssize_t got;

	done = length - DESCS_OFFSET;
	if (done > size)
		done = size;
	memcpy(descs, head->descs, done);
	while (done < size) {
		got = pread(fd, (char *)descs + done, size - done, DESCS_OFFSET + done);
		if (got <= 0)
			return damaged("the file is too short");
		done += got;
	}
	return 0;
}

/*
 * Makes a region of an open file whose header was checked. The file becomes the
 * region's on success only.
 */
static int adopt_file(int fd, const struct shm_head *head, size_t length,
		      struct backend_region *region)
{
	const struct shm_header *header = &head->header;
	struct tshare_desc *descs = NULL;
	int err = 0;

	if (header->desc_count) {
		descs = malloc(header->desc_count * sizeof(*descs));
		if (!descs)
			return tshare_fail(-ENOMEM, "region: out of memory");
		err = read_descs(fd, head, length, descs);
	}
	if (!err && tshare_layout_check(descs, header->desc_count, header->size, "tensors"))
		err = tshare_fail_within(-EPROTO, "shared memory is damaged: ");
	if (err) {
		free(descs);
		return err;
	}
	region->fd = fd;
	region->id = header->id;
	region->size = header->size;
	region->map_offset = header->data_offset;
	region->descs = descs;
	region->desc_count = header->desc_count;
	memcpy(region->name, header->name, sizeof(region->name));
	return 0;
}

/*
 * Reads the head, and stores whether the name is still its maker's or persists.
 * The lock is looked at first: see link_for_good().
 */
static int read_living_head(int fd, struct shm_head *head, size_t *length, bool *alive)
{
	bool locked = is_locked(fd, LIFE);
	int err;

	err = read_head(fd, head, length);
	/* What another version means by its flags isn't known: its regions are left alone. */
	if (!err)
		*alive = locked || head->header.version != SHM_VERSION ||
			 head->header.flags & SHM_PERSIST;
	return err;
}

/* What the region's mode denies its owner, the file's can't: see OWNER_ACCESS. */
static bool owner_may(int fd, const struct shm_header *header, uint32_t access)
{
	struct stat st;

	if ((header->mode & access) == access)
		return true;
	return fstat(fd, &st) || st.st_uid != geteuid() || !st.st_uid;
}

/* Names */

enum name_state {
	NAME_GONE,   /* there is none now */
	NAME_TAKEN,  /* by a living maker, a persistent region, or what is no region of ours */
	NAME_STUCK,  /* dead, but not ours to remove */
	NAME_UNSEEN, /* there is no descriptor or no memory left to look at it with */
};

static bool is_draft(const char *file)
{
	return !strncmp(file, DRAFT_PREFIX, sizeof(DRAFT_PREFIX) - 1);
}

/* Whether the file of a home is the one behind @fd. */
static bool is_home_of(int home, int fd)
{
	struct statx here, there;

	return look_at(fd, "", &here) && look_at(home, REGION_FILE, &there) &&
	       is_same_device(&here, &there) && here.stx_ino == there.stx_ino;
}

/* Removes a name if its home is empty. What else is in there is not ours. */
static enum name_state remove_home(int dir, const char *file, int home)
{
	struct statx st;

	if (!unlinkat(dir, file, AT_REMOVEDIR))
		return NAME_GONE;
	if (errno == EPERM || errno == EACCES)
		return NAME_STUCK;
	/* If it was removed meanwhile, or replaced by another, it has no links. */
	return errno == ENOTEMPTY && look_at(home, "", &st) && st.stx_nlink ? NAME_TAKEN :
									      NAME_GONE;
}

/* Removes the region that is in a home, and then its name. */
static enum name_state clear_home(int dir, const char *file, int home)
{
	if (unlinkat(home, REGION_FILE, 0) && errno != ENOENT)
		return NAME_STUCK;
	return remove_home(dir, file, home);
}

/* Whether a region's maker is dead, and the name was not to outlive it. */
static bool is_forsaken(int fd)
{
	struct shm_head head;
	size_t length;
	bool alive;

	return !read_living_head(fd, &head, &length, &alive) && !alive;
}

static enum name_state reap_home(int dir, const char *file, int home)
{
	bool forsaken;
	int fd;

	fd = open_region_file(home, O_RDONLY);
	/* Its maker may be about to fill it, but then finds it gone and makes another. */
	if (fd == -ENOENT)
		return remove_home(dir, file, home);
	if (fd < 0)
		return NAME_TAKEN;
	forsaken = is_forsaken(fd);
	close(fd);
	return forsaken ? clear_home(dir, file, home) : NAME_TAKEN;
}

/* Removes a name whose maker is dead. */
static enum name_state reap(int dir, const char *file)
{
	enum name_state state;
	int home;

	home = open_home(dir, file);
	if (home == -EMFILE || home == -ENFILE || home == -ENOMEM)
		return NAME_UNSEEN;
	if (home < 0)
		return home == -ENOENT ? NAME_GONE : NAME_TAKEN;
	state = reap_home(dir, file, home);
	close(home);
	return state;
}

/* The directory, from its start; NULL with errno set. */
static DIR *open_stream(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	int err = errno;

	if (!stream && fd >= 0)
		close(fd);
	errno = err;
	return stream;
}

/* The next name that may be a region's or, with @drafts, a draft's; NULL at the end. */
static const char *next_file(DIR *stream, bool drafts)
{
	struct dirent *entry;

	while ((entry = readdir(stream)))
		if (!strncmp(entry->d_name, FILE_PREFIX, sizeof(FILE_PREFIX) - 1) ||
		    (drafts && is_draft(entry->d_name)))
			return entry->d_name;
	return NULL;
}

/*
 * Removes what dead makers have left, which keeps its memory until somebody asks
 * for the name, and returns how many those were.
 */
static unsigned int sweep(int dir)
{
	DIR *stream = open_stream(dir);
	unsigned int removed = 0;
	const char *file;

	if (!stream)
		return 0;
	while ((file = next_file(stream, true)))
		if (reap(dir, file) == NAME_GONE)
			removed++;
	closedir(stream);
	return removed;
}

/* Lets go of a name whose file it may still be. */
static void drop_name(struct shm_session *session, struct shm_name *name)
{
	TAILQ_REMOVE(&session->names, name, entry);
	close(name->fd);
	free(name);
}

/*
 * Ends a name together with its session, whatever a peer has made of the
 * header. After fork() another process may have the lock: then the name stays.
 */
static void end_name(struct shm_session *session, struct shm_name *name)
{
	int home = open_home(session->dir, name->file);
	int fd = home >= 0 && is_home_of(home, name->fd) ? open_region_file(home, O_RDONLY) : -1;
	char file[FILE_NAME_LEN];

	stpcpy(file, name->file);
	drop_name(session, name);
	if (fd >= 0 && !is_locked(fd, LIFE))
		clear_home(session->dir, file, home);
	if (fd >= 0)
		close(fd);
	if (home >= 0)
		close(home);
}

static void end_names(struct shm_session *session)
{
	struct shm_name *name;

	while ((name = TAILQ_FIRST(&session->names)))
		end_name(session, name);
}

/*
 * A program that ends without closing its sessions would leave its names, and
 * their memory, until another process sweeps. A child of fork() that comes here
 * leaves the names that its parent has a lock for.
 */
__attribute__((destructor)) static void end_all_names(void)
{
	struct shm_session *session;

	tshare_lock();
	for (session = LIST_FIRST(&sessions); session; session = LIST_NEXT(session, entry))
		end_names(session);
	tshare_unlock();
}

static bool is_unlinked(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && !st.st_nlink;
}

/* Whether the file has its name still. A process that may write it can give it other links. */
static bool has_name(const struct shm_session *session, const struct shm_name *name)
{
	int home = open_home(session->dir, name->file);
	bool found = home >= 0 && is_home_of(home, name->fd);

	if (home >= 0)
		close(home);
	return found;
}

/* The lock of a name that was unlinked keeps nothing but memory; this gives it back. */
static void forget_name(struct shm_session *session, const char *file)
{
	struct shm_name *name, *next;

	tshare_lock();
	for (name = TAILQ_FIRST(&session->names); name; name = next) {
		next = TAILQ_NEXT(name, entry);
		if (!strcmp(name->file, file) && !has_name(session, name))
			drop_name(session, name);
	}
	tshare_unlock();
}

/*
 * Does the same for names that others have unlinked. Looks at a few in turn,
 * so that to create many regions stays linear in their number.
 */
static void forget_some_names(struct shm_session *session)
{
	struct shm_name *name, *last;
	unsigned int i;

	tshare_lock();
	last = TAILQ_LAST(&session->names, shm_name_list);
	for (i = 0; last && i < SWEEP_BATCH; i++) {
		name = TAILQ_FIRST(&session->names);
		if (name == last)
			i = SWEEP_BATCH;
		TAILQ_REMOVE(&session->names, name, entry);
		TAILQ_INSERT_TAIL(&session->names, name, entry);
		if (is_unlinked(name->fd))
			drop_name(session, name);
	}
	tshare_unlock();
}

/* Sessions */

static const char *directory(void)
{
	const char *dir = secure_getenv("TSHARE_SHM_DIR");

	return dir && *dir ? dir : DEFAULT_DIR;
}

static uint32_t read_huge_page_size(uint32_t page_size)
{
	FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "re");
	uint32_t size = page_size;

	if (!file)
		return page_size;
	if (fscanf(file, "%" SCNu32, &size) != 1 || size < page_size)
		size = page_size;
	fclose(file);
	return size;
}

static int open_directory(void)
{
	const char *dir = directory();
	int fd;

	if (dir[0] != '/')
		return tshare_fail(-EINVAL, "TSHARE_SHM_DIR: '%s' is no absolute path", dir);
	fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	if (errno == ENOENT || errno == ENOTDIR)
		return tshare_fail(-ENODEV, "%s: no such directory", dir);
	return tshare_fail(-errno, "%s: %s", dir, strerror(errno));
}

static int shm_open_session(void **opened, uint32_t *page_size, uint32_t *huge_page_size)
{
	struct shm_session *session;
	int dir;

	dir = open_directory();
	if (dir < 0)
		return dir;
	session = calloc(1, sizeof(*session));
	if (!session) {
		close(dir);
		return tshare_fail(-ENOMEM, "ctx: out of memory");
	}
	session->dir = dir;
	session->page_size = sysconf(_SC_PAGESIZE);
	session->huge_page_size = read_huge_page_size(session->page_size);
	*page_size = session->page_size;
	*huge_page_size = session->huge_page_size;
	TAILQ_INIT(&session->names);
	tshare_lock();
	LIST_INSERT_HEAD(&sessions, session, entry);
	tshare_unlock();
	*opened = session;
	return 0;
}

static void shm_close(void *closing)
{
	struct shm_session *session = closing;

	tshare_lock();
	LIST_REMOVE(session, entry);
	tshare_unlock();
	end_names(session);
	close(session->dir);
	free(session);
}

/* Limits */

static uint64_t saturating_product(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t file_bytes(int dir, const char *file)
{
	int home = open_home(dir, file);
	struct stat st;
	bool found;

	if (home < 0)
		return 0;
	found = !fstatat(home, REGION_FILE, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode);
	close(home);
	return found ? st.st_blocks * UINT64_C(512) : 0;
}

/* Bytes of all regions' files, also of the dead. Memfds have no place to be found at. */
static uint64_t bytes_used(int dir)
{
	DIR *stream = open_stream(dir);
	uint64_t total = 0;
	const char *file;

	if (!stream)
		return 0;
	while ((file = next_file(stream, false)))
		total += file_bytes(dir, file);
	closedir(stream);
	return total;
}

/*
 * Of the memory that is available, one part in so many isn't offered: it changes by
 * the moment, and a region of the size that was offered should not be refused.
 */
#define LIMITS_MARGIN 64

static int shm_limits(void *opened, struct tshare_limits *limits)
{
	const struct shm_session *session = opened;
	uint64_t available, unused;
	struct statvfs vfs;
	const char *limit;

	if (fstatvfs(session->dir, &vfs))
		return tshare_fail(-errno, "%s: %s", directory(), strerror(errno));
	*limits = (struct tshare_limits){
		.page_size = session->page_size,
		.huge_page_size = session->huge_page_size,
		.bytes_used = bytes_used(session->dir),
	};
	available = tshare_memory_available(&limit);
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

/* Creation */

static int refuse_unsupported(const struct backend_request *request)
{
	if (request->flags & TSHARE_CONTIGUOUS)
		return tshare_fail(-EOPNOTSUPP, "options.flags: TSHARE_CONTIGUOUS is not for shm");
	if (request->flags & TSHARE_DMA32)
		return tshare_fail(-EOPNOTSUPP, "options.flags: TSHARE_DMA32 is not for shm");
	if (request->node != TSHARE_ANY_NODE)
		return tshare_fail(-EOPNOTSUPP, "options.node: shm can't choose a NUMA node");
	return 0;
}

/* Bytes that the directory has free, and in all; false if nothing limits it. */
static bool directory_room(uint64_t *unused, uint64_t *total)
{
	struct statvfs vfs;

	if (statvfs(directory(), &vfs) || !vfs.f_blocks)
		return false;
	*unused = saturating_product(vfs.f_bavail, vfs.f_frsize);
	*total = saturating_product(vfs.f_blocks, vfs.f_frsize);
	return true;
}

static int fail_no_room(const struct backend_request *request)
{
	const char *whose;
	uint64_t available = tshare_memory_available(&whose), unused, total;

	if (*request->name && directory_room(&unused, &total) && unused < available)
		return tshare_fail(-ENOMEM,
				   "size: no room for %" PRIu64 " bytes: %s has %" PRIu64
				   " MiB free of %" PRIu64 "; enlarge it, or unlink what is in it",
				   request->size, directory(), unused >> 20, total >> 20);
	if (request->size > available)
		return tshare_fail(-ENOMEM,
				   "size: no room for %" PRIu64 " bytes: %s has %" PRIu64
				   " MiB of memory and swap available",
				   request->size, whose, available >> 20);
	return tshare_fail(-ENOMEM, "size: no room for %" PRIu64 " bytes", request->size);
}

static int make_header(const struct shm_session *session, const struct backend_request *request,
		       struct shm_header *header)
{
	uint64_t alignment = session->page_size;
	uint64_t used = DESCS_OFFSET + request->desc_count * sizeof(*request->descs);

	if (request->size >= session->huge_page_size)
		alignment = session->huge_page_size;
	*header = (struct shm_header){
		.magic = SHM_MAGIC,
		.version = SHM_VERSION,
		.size = request->size,
		.data_offset = (used + alignment - 1) & ~(alignment - 1),
		.mode = request->mode,
		.desc_count = request->desc_count,
		.desc_size = sizeof(*request->descs),
	};
	memcpy(header->name, request->name, sizeof(header->name));
	/* Any number that no other region has; of 53 bits, so that all JSON readers keep it. */
	if (getrandom(&header->id, sizeof(header->id), 0) != sizeof(header->id))
		return tshare_fail(-errno, "region: getrandom: %s", strerror(errno));
	header->id = header->id >> 11 | 1;
	return 0;
}

static int write_all(int fd, const void *buffer, size_t size, off_t offset)
{
	ssize_t done;

	while (size) {
		done = pwrite(fd, buffer, size, offset);
		if (done < 0 && errno != EINTR)
			return -errno;
		if (done < 0)
			continue;
		buffer = (const char *)buffer + done;
		offset += done;
		size -= done;
	}
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
		err = write_all(fd, header, sizeof(*header), 0);
	if (!err)
		err = write_all(fd, request->descs, request->desc_count * sizeof(*request->descs),
				DESCS_OFFSET);
	if (err == -ENOSPC || err == -EFBIG || err == -ENOMEM)
		return fail_no_room(request);
	if (err)
		return tshare_fail(err, "size: %" PRIu64 " bytes: %s", request->size,
				   strerror(-err));
	return 0;
}

/* The umask has no say; execute bits mean nothing, and a memfd doesn't take them. */
static int set_mode(int fd, uint32_t mode)
{
	if (fchmod(fd, (mode & 0666) | OWNER_ACCESS))
		return tshare_fail(-errno, "options.mode: %s", strerror(errno));
	return 0;
}

/* Without /proc a file that is open can be neither named nor opened anew. */
static int fail_proc(int err, const char *what)
{
	if (err == -ENOENT && access("/proc/self/fd", F_OK))
		return tshare_fail(-ENODEV, "/proc: is not mounted, which named regions need");
	return tshare_fail(err, "%s: %s", what, strerror(-err));
}

/* Another open file description of the same file, without waiting for its owner's lease. */
static int reopen(int fd, int access)
{
	char path[32];
	int new;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	new = open(path, access | O_CLOEXEC | O_NONBLOCK);
	return new < 0 ? fail_proc(-errno, path) : new;
}

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
	int fd, err;

	fd = new_memfd();
	if (fd < 0)
		return fd;
	err = fill_file(session, fd, header, request);
	if (!err)
		err = set_mode(fd, request->mode);
	if (!err && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		err = tshare_fail(-errno, "region: sealing: %s", strerror(errno));
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

static int fail_taken(enum name_state state, const char *name)
{
	if (state == NAME_STUCK)
		return tshare_fail(-EEXIST,
				   "name: '%s' is a dead process's; only its user can remove it",
				   name);
	return tshare_fail_name(-EEXIST, name);
}

/* A home without a name, and what it is called meanwhile. The umask has no say. */
static int new_home(int dir, char draft[DRAFT_LEN])
{
	char path[32];
	struct stat st;
	uint64_t number;
	int home, err;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -errno;
	snprintf(draft, DRAFT_LEN, DRAFT_PREFIX "%016" PRIx64, number);
	if (mkdirat(dir, draft, HOME_MODE))
		return -errno;
	home = open_home(dir, draft);
	if (home < 0)
		return home;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", home);
	if (fstat(home, &st) || ((st.st_mode & 0777) != HOME_MODE && chmod(path, HOME_MODE))) {
		err = -errno;
		unlinkat(dir, draft, AT_REMOVEDIR);
		close(home);
		return err;
	}
	return home;
}

/* How often others may come in between before that is an error. */
#define MAX_TRIES 1000

/*
 * Puts an open file into a new home. Until it is there, others take the home
 * for one that a dead process left, and remove it.
 */
static int settle(int dir, int fd, char draft[DRAFT_LEN])
{
	int home, tries = 0, err;
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	do {
		home = new_home(dir, draft);
		if (home >= 0 && !linkat(AT_FDCWD, path, home, REGION_FILE, AT_SYMLINK_FOLLOW))
			return home;
		err = home < 0 ? home : -errno;
		if (home >= 0) {
			unlinkat(dir, draft, AT_REMOVEDIR);
			close(home);
		}
	} while (err == -ENOENT && ++tries < MAX_TRIES);
	return err;
}

static int rename_home(int dir, const char *draft, const char *file, const char *name)
{
	enum name_state state;
	int tries, err = 0;

	for (tries = 0; tries < MAX_TRIES; tries++) {
		if (!renameat(dir, draft, dir, file))
			return 0;
		err = -errno;
		state = reap(dir, file);
		if (state != NAME_GONE)
			return fail_taken(state, name);
	}
	return tshare_fail(err, "%s: %s", directory(), strerror(-err));
}

/* Gives a locked file without a name the one it shall have, unless that is taken. */
static int link_file(const struct shm_session *session, int fd, const char *file, const char *name)
{
	char draft[DRAFT_LEN];
	int home, err;

	home = settle(session->dir, fd, draft);
	if (home < 0)
		return fail_proc(home, directory());
	err = rename_home(session->dir, draft, file, name);
	if (err)
		clear_home(session->dir, draft, home);
	close(home);
	return err;
}

static int link_locked(const struct shm_session *session, int fd, const char *file,
		       const char *name)
{
	int err = ofd_lock_set(fd, F_WRLCK, LIFE);

	if (err)
		return tshare_fail(err, "%s: lock: %s", directory(), strerror(-err));
	return link_file(session, fd, file, name);
}

/* Names a file for as long as the session lives, whose @fd stays open for that. */
static int link_for_session(struct shm_session *session, int fd, const char *file, const char *text)
{
	struct shm_name *name;
	int err;

	name = malloc(sizeof(*name));
	if (!name)
		return tshare_fail(-ENOMEM, "region: out of memory");
	name->fd = fd;
	stpcpy(name->file, file);
	err = link_locked(session, fd, file, text);
	if (err) {
		free(name);
		return err;
	}
	tshare_lock();
	TAILQ_INSERT_TAIL(&session->names, name, entry);
	tshare_unlock();
	return 0;
}

/*
 * Names a file for good. The header says that it persists only when it has its name,
 * and the maker holds the lock until then: a draft is removed with its maker, and a
 * process that removes drafts may have opened the home before it was renamed.
 */
static int link_for_good(const struct shm_session *session, int fd, const char *file,
			 const char *name)
{
	const uint32_t flags = SHM_PERSIST;
	int err;

	err = link_locked(session, fd, file, name);
	if (err)
		return err;
	err = write_all(fd, &flags, sizeof(flags), offsetof(struct shm_header, flags));
	if (err)
		tshare_fail(err, "%s: %s", directory(), strerror(-err));
	/* Without the flag the name is a dead maker's from here on. */
	ofd_lock_set(fd, F_UNLCK, LIFE);
	return err;
}

/* Names @fd, and gives a descriptor of its file that can be handed out. */
static int publish(struct shm_session *session, int fd, const char *file,
		   const struct backend_request *request)
{
	int public, err;

	err = set_mode(fd, request->mode);
	if (err)
		return err;
	if (request->flags & TSHARE_PERSIST) {
		err = link_for_good(session, fd, file, request->name);
		return err ? err : fd;
	}
	public = reopen(fd, O_RDWR);
	if (public < 0)
		return public;
	err = link_for_session(session, fd, file, request->name);
	if (err) {
		close(public);
		return err;
	}
	return public;
}

static int create_named(struct shm_session *session, const struct backend_request *request,
			const struct shm_header *header)
{
	char file[FILE_NAME_LEN];
	enum name_state state;
	int fd, ret;

	file_name(file, request->name);
	forget_some_names(session);
	/* Not decisive, but saves the allocation where the name is taken anyway. */
	state = reap(session->dir, file);
	if (state == NAME_TAKEN || state == NAME_STUCK)
		return fail_taken(state, request->name);

	fd = openat(session->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, OWNER_ACCESS);
	if (fd < 0)
		return tshare_fail(-errno, "%s: %s", directory(), strerror(errno));
	ret = fill_file(session, fd, header, request);
	if (!ret)
		ret = publish(session, fd, file, request);
	if (ret < 0)
		close(fd);
	return ret;
}

/*
 * Refuses what would end the process with a signal, rather than with an error; and
 * what would fail after it left the others without room meanwhile.
 */
static int check_room(const struct backend_request *request, const struct shm_header *header)
{
	uint64_t unused, total;
	struct rlimit limit;
	const char *whose;

	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	    (header->data_offset > limit.rlim_cur ||
	     header->size > limit.rlim_cur - header->data_offset))
		return tshare_fail(-EFBIG,
				   "size: %" PRIu64 " bytes exceed RLIMIT_FSIZE (ulimit -f)",
				   request->size);
	if (request->size > tshare_memory_available(&whose) ||
	    (*request->name && directory_room(&unused, &total) && request->size > unused))
		return fail_no_room(request);
	return 0;
}

static int create_file(struct shm_session *session, const struct backend_request *request,
		       const struct shm_header *header)
{
	int err;

	err = check_room(request, header);
	if (err)
		return err;
	return *request->name ? create_named(session, request, header) :
				create_unnamed(session, request, header);
}

static int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
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
	sweep(session->dir);
	took = clock_ns() - begin;
	atomic_store(&session->next_sweep,
		     begin + (took < SWEEP_PAUSE_NS / 100 ? SWEEP_PAUSE_NS : 100 * took));
}

static int shm_create(void *opened, const struct backend_request *request,
		      struct backend_region *region)
{
	struct shm_session *session = opened;
	struct shm_header header;
	int fd, err;

	err = refuse_unsupported(request);
	if (err)
		return err;
	sweep_now_and_then(session);
	err = make_header(session, request, &header);
	if (err)
		return err;
	fd = create_file(session, request, &header);
	if (fd == -ENOMEM && sweep(session->dir))
		fd = create_file(session, request, &header);
	if (fd < 0)
		return fd;
	region->fd = fd;
	region->id = header.id;
	region->size = header.size;
	region->map_offset = header.data_offset;
	return 0;
}

/* Finding */

static int adopt_named(struct shm_session *session, int fd, const char *file, const char *name,
		       bool readonly, struct backend_region *region)
{
	struct shm_head head;
	size_t length;
	bool alive;
	int err;

	if (read_living_head(fd, &head, &length, &alive))
		return damaged("it doesn't begin like a region");
	if (!alive) {
		reap(session->dir, file);
		return tshare_fail_name(-ENOENT, name);
	}
	err = check_header(&head.header, fd);
	if (err)
		return err;
	if (strncmp(head.header.name, name, sizeof(head.header.name)))
		return damaged("it has another name");
	if (!owner_may(fd, &head.header, readonly ? 0400 : 0600))
		return tshare_fail_name(-EACCES, name);
	return adopt_file(fd, &head, length, region);
}

static int shm_lookup(void *opened, const char *name, bool readonly, struct backend_region *region)
{
	struct shm_session *session = opened;
	char file[FILE_NAME_LEN];
	int fd, err;

	file_name(file, name);
	fd = open_file(session->dir, file, readonly ? O_RDONLY : O_RDWR);
	if (fd == -EPROTO)
		return damaged("its name is that of no regular file");
	if (fd < 0)
		return tshare_fail_name(fd, name);
	err = adopt_named(session, fd, file, name, readonly, region);
	if (err) {
		close(fd);
		return err;
	}
	region->readonly = readonly;
	return 0;
}

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

/* Whether no process can shrink it under those who have it mapped. */
static bool is_sealed(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && seals & F_SEAL_SHRINK;
}

/* Whether @fd is of the file system that the named regions are on. */
static bool is_beside(int dir, int fd)
{
	struct statx here, there;

	return look_at(dir, "", &here) && look_at(fd, "", &there) && S_ISREG(there.stx_mode) &&
	       is_same_device(&here, &there);
}

/* Whether it is the caller's own, or the one that has the region's name. */
static bool is_known(int dir, int fd, const struct shm_header *header)
{
	char file[FILE_NAME_LEN];
	struct stat st;
	bool known;
	int home;

	if (!fstat(fd, &st) && st.st_uid == geteuid())
		return true;
	if (!*header->name || tshare_name_check(header->name, NULL))
		return false;
	file_name(file, header->name);
	home = open_home(dir, file);
	known = home >= 0 && is_home_of(home, fd);
	if (home >= 0)
		close(home);
	return known;
}

/*
 * Reads the head of a descriptor that any process may have sent. A file that its
 * sender can truncate would have the importer die of SIGBUS. That a named
 * region's owner can do so is known to those who open it.
 */
static int read_foreign_head(int dir, int fd, struct shm_head *head, size_t *length)
{
	bool beside = is_beside(dir, fd);

	if ((!beside && !is_memory(fd)) || read_head(fd, head, length))
		return -EINVAL;
	if (!is_sealed(fd) && !(beside && is_known(dir, fd, &head->header)))
		return tshare_fail(-EPROTO,
				   "fd: its sender could truncate it: it is neither sealed nor a "
				   "region's that has a name here");
	return check_header(&head->header, fd);
}

/* Replaces @fd by a read-only descriptor of its file, where that may be opened. */
static int make_readonly(int fd)
{
	int new = reopen(fd, O_RDONLY);

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
		err = adopt_file(fd, &head, length, region);
	if (err)
		return err;
	if (readonly && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
		region->fd = make_readonly(fd);
	region->readonly = (fcntl(region->fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
	return 0;
}

static int shm_import(void *opened, int fd, bool readonly, struct backend_region *region)
{
	const struct shm_session *session = opened;
	int dir = session ? session->dir : open_directory();
	int err;

	/* Without the directory there are sealed regions still. */
	err = adopt_foreign(dir, fd, readonly, region);
	if (!session && dir >= 0)
		close(dir);
	return err;
}

/* As in a directory with the sticky bit, for one that has none. */
static int check_owner(int dir, const char *file)
{
	struct statx st;

	if (!look_at(dir, file, &st))
		return -errno;
	return geteuid() && geteuid() != st.stx_uid ? -EPERM : 0;
}

static int unlink_home(int dir, const char *file, int home)
{
	int err;

	err = check_owner(home, REGION_FILE);
	if (!err && unlinkat(home, REGION_FILE, 0))
		err = -errno;
	if (!err)
		unlinkat(dir, file, AT_REMOVEDIR);
	return err;
}

/* What has the name of a region without being one. */
static int unlink_foreign(int dir, const char *file)
{
	int err;

	err = check_owner(dir, file);
	if (!err && unlinkat(dir, file, 0))
		err = -errno;
	return err;
}

static int shm_unlink_name(void *opened, const char *name)
{
	struct shm_session *session = opened;
	char file[FILE_NAME_LEN];
	int home, err;

	file_name(file, name);
	if (reap(session->dir, file) == NAME_GONE)
		return tshare_fail_name(-ENOENT, name);
	home = open_home(session->dir, file);
	if (home == -EPROTO)
		err = unlink_foreign(session->dir, file);
	else
		err = home < 0 ? home : unlink_home(session->dir, file, home);
	if (home >= 0)
		close(home);
	if (err)
		return tshare_fail_name(err, name);
	forget_name(session, file);
	return 0;
}

/*
 * The region's own description does to map the counter and to ask for locks.
 * To lock takes another, for that one may have been passed to anybody.
 */
static int shm_counter(void *opened, int fd, bool own, struct backend_counter *counter)
{
	int new;

	(void)opened;
	new = own ? reopen(fd, O_RDONLY) : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (new < 0 && !own)
		return tshare_fail(-errno, "region: %s", strerror(errno));
	if (new == -EMFILE || new == -ENFILE || new == -ENOMEM || new == -ENODEV)
		return new;
	if (new < 0)
		return tshare_fail_within(-EACCES, "region: may not be opened anew: ");
	*counter = (struct backend_counter){ new, COUNTER_OFFSET, COUNTER };
	return 0;
}

/* Telling */

/* The file's mode holds; it is shown as the region's unless they differ in what counts. */
static uint32_t shown_mode(const struct shm_header *header, mode_t file_mode)
{
	if (((header->mode & 0666) | OWNER_ACCESS) == (file_mode & 0666))
		return header->mode;
	return file_mode & 0777;
}

/* -EINVAL or -EPROTO if it is no region. */
static int describe_file(int fd, struct tshare_region_info *info)
{
	struct shm_head head;
	struct stat st;
	size_t length;
	bool alive;
	int err;

	err = read_living_head(fd, &head, &length, &alive);
	if (!err)
		err = check_header(&head.header, fd);
	if (err)
		return err;
	if (fstat(fd, &st))
		return -errno;
	*info = (struct tshare_region_info){
		.id = head.header.id,
		.size = head.header.size,
		.uid = st.st_uid,
		.gid = st.st_gid,
		.mode = shown_mode(&head.header, st.st_mode),
		.node = TSHARE_ANY_NODE,
		.flags = head.header.flags & SHM_PERSIST ? TSHARE_PERSIST : 0,
		.tensor_count = head.header.desc_count,
	};
	if (st.st_nlink && alive)
		memcpy(info->name, head.header.name, sizeof(info->name));
	return 0;
}

static int shm_info(void *opened, int fd, struct tshare_region_info *info)
{
	int err;

	(void)opened;
	err = describe_file(fd, info);
	if (err == -EINVAL)
		return damaged("it doesn't begin like a region");
	if (err)
		return err;
	if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
		info->flags |= TSHARE_READONLY;
	return 0;
}

/* Whether the file's owner, if that is who asks, has the access by the region's mode. */
static bool mode_allows(const struct tshare_region_info *info, uint32_t access)
{
	return !geteuid() || info->uid != geteuid() || info->mode & access;
}

/* Describes one file of the directory; false if it is no living region that may be read. */
static bool describe_entry(int dir, const char *file, int home, int fd,
			   struct tshare_region_info *info)
{
	char expected[FILE_NAME_LEN];

	if (describe_file(fd, info))
		return false;
	if (!info->name[0]) {
		reap_home(dir, file, home);
		return false;
	}
	file_name(expected, info->name);
	if (strcmp(expected, file) || !mode_allows(info, 0400))
		return false;
	if (faccessat(home, REGION_FILE, W_OK, AT_EACCESS) || !mode_allows(info, 0200))
		info->flags |= TSHARE_READONLY;
	return true;
}

/* Passes one name on if it is a living region's; what @fn returned, or an error. */
static int list_entry(int dir, const char *file,
		      int (*fn)(const struct tshare_region_info *info, void *data), void *data)
{
	struct tshare_region_info info;
	bool found = false;
	int home, fd;

	home = open_home(dir, file);
	fd = home < 0 ? home : open_region_file(home, O_RDONLY);
	if (fd >= 0) {
		found = describe_entry(dir, file, home, fd, &info);
		close(fd);
	}
	if (home >= 0)
		close(home);
	if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM)
		return tshare_fail(fd, "%s: %s", directory(), strerror(-fd));
	return found ? fn(&info, data) : 0;
}

static int list_directory(const struct shm_session *session, DIR *stream,
			  int (*fn)(const struct tshare_region_info *info, void *data), void *data)
{
	const char *file;
	int ret = 0;

	while (!ret && (file = next_file(stream, false)))
		ret = list_entry(session->dir, file, fn, data);
	return ret;
}

static int shm_list(void *opened, int (*fn)(const struct tshare_region_info *info, void *data),
		    void *data)
{
	const struct shm_session *session = opened;
	DIR *stream = open_stream(session->dir);
	int ret;

	if (!stream)
		return tshare_fail(-errno, "%s: %s", directory(), strerror(errno));
	ret = list_directory(session, stream, fn, data);
	closedir(stream);
	return ret;
}

const struct backend_ops tshare_backend_shm = {
	.name = "shm",
	.open = shm_open_session,
	.close = shm_close,
	.limits = shm_limits,
	.create = shm_create,
	.lookup = shm_lookup,
	.import = shm_import,
	.unlink = shm_unlink_name,
	.list = shm_list,
	.counter = shm_counter,
	.info = shm_info,
};
