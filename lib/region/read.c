// SPDX-License-Identifier: MIT
/* Reads files into a region with several threads, and with TSHARE_DIRECT past the page cache. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/export.h"
#include "base/fd.h"
#include "base/sized.h"
#include "base/thread.h"
#include "ctx.h"
#include "region/fill.h"
#include "region/object.h"
#include "region/region.h"

/* Bytes that a thread reads at a time: large enough for a disk, small enough to end soon. */
#define CHUNK (4ULL << 20)

/* Enough requests at a time to keep a disk busy. */
#define THREADS_DEFAULT 4
#define THREADS_MAX	64

/*
 * Offset, address and length of an O_DIRECT read are multiples of it. Disks require 512 or
 * 4,096 bytes; a disk that requires more refuses the read.
 */
#define BLOCK 4096

struct work {
	int fd;
	atomic_int direct; /* the same file by O_DIRECT, or -1 */
	bool leave_cache;  /* what is read doesn't stay in the page cache */
	uint64_t page_size;
	void *pages; /* a mapping of the file, to ask which pages are cached, or NULL */
	uint64_t file_offset;
	struct fill fill;
	uint64_t offset; /* of the place in the region */
	char *start;
	uint64_t length;
	_Atomic(uint64_t) next; /* first byte that no thread has taken */
	_Atomic(uint64_t) done;
	atomic_bool stopped;
	pthread_mutex_t lock;
	int err; /* of the first failure, under the lock */
};

static void stop(struct work *work, int err)
{
	pthread_mutex_lock(&work->lock);
	if (!work->err)
		work->err = err;
	pthread_mutex_unlock(&work->lock);
	atomic_store(&work->stopped, true);
}

/*
 * Whether the page cache has all of a piece already. A read with RWF_NOWAIT would show it, too,
 * but makes the kernel read ahead what is missing.
 */
static bool is_cached(const struct work *work, uint64_t at, size_t length)
{
	unsigned char resident[CHUNK / BLOCK + 1];
	uintptr_t first, end, i;

	if (!work->pages)
		return false;
	first = (uintptr_t)work->pages + work->file_offset % work->page_size + at;
	end = first + length;
	first &= ~(uintptr_t)(work->page_size - 1);
	if (mincore((void *)first, end - first, resident))
		return false;
	for (i = 0; first + i * work->page_size < end; i++)
		if (!(resident[i] & 1))
			return false;
	return true;
}

/* Returns 0 if O_DIRECT can't read here, and the caller has to. */
static ssize_t read_direct(struct work *work, char *to, uint64_t at, size_t length)
{
	int fd = atomic_load_explicit(&work->direct, memory_order_relaxed);
	ssize_t count;

	if (fd < 0 || length < BLOCK || (work->file_offset + at) % BLOCK || (uintptr_t)to % BLOCK)
		return 0;
	count = pread(fd, to, length / BLOCK * BLOCK, work->file_offset + at);
	if (count >= 0 || (errno != EINVAL && errno != EFAULT && errno != EOPNOTSUPP))
		return count;
	/* The disk's blocks are larger, or no device reaches this memory. */
	atomic_store_explicit(&work->direct, -1, memory_order_relaxed);
	return 0;
}

static ssize_t read_buffered(struct work *work, char *to, uint64_t at, size_t length,
			     bool leave_cache)
{
	uint64_t from = work->file_offset + at, first, end;
	ssize_t count;

	count = pread(work->fd, to, length, from);
	if (count <= 0 || !leave_cache)
		return count;
	/* The kernel drops whole pages only. */
	first = from & ~(work->page_size - 1);
	end = (from + count + work->page_size - 1) & ~(work->page_size - 1);
	posix_fadvise(work->fd, first, end - first, POSIX_FADV_DONTNEED);
	return count;
}

static ssize_t read_some(struct work *work, char *to, uint64_t at, size_t length, bool direct)
{
	ssize_t count;

	if (direct) {
		/* To the next block, from which on O_DIRECT can read. */
		if (length > BLOCK && (work->file_offset + at) % BLOCK)
			length = BLOCK - (work->file_offset + at) % BLOCK;
		count = read_direct(work, to, at, length);
		if (count)
			return count;
	}
	return read_buffered(work, to, at, length, direct);
}

/* Reads into the mapping or, if @buffer isn't NULL, into it, from which it fills the memory. */
static ssize_t read_to_place(struct work *work, const struct fill_buffer *buffer, uint64_t at,
			     size_t length, bool direct)
{
	size_t written;
	ssize_t count;

	if (buffer) {
		count = read_some(work, buffer->data, at, length < FILL_SIZE ? length : FILL_SIZE,
				  direct);
		if (count <= 0)
			return count;
		written = fill_write(&work->fill, buffer, count, work->offset + at);
		if (written)
			return written;
	}
	return read_some(work, work->start + at, at, length, direct);
}

/*
 * A disk that can't read a sector fails direct reads with ENODATA, and a file system in user space
 * may fail any read with ECANCELED. The caller would take them for the file's or progress()'s end.
 */
static int failed_read(int err)
{
	return err == ENODATA || err == ECANCELED ? -EIO : -err;
}

/* Reads a chunk in as many steps as it takes; false after a failure. */
static bool read_chunk(struct work *work, struct fill_buffer *buffer, uint64_t at, uint64_t end)
{
	const bool direct = work->leave_cache && !is_cached(work, at, end - at);
	ssize_t count;

	if (!fill_prepare(&work->fill, work->offset + at, end - at, buffer))
		buffer = NULL;
	while (at < end && !atomic_load(&work->stopped)) {
		count = read_to_place(work, buffer, at, end - at, direct);
		if (count > 0) {
			at += count;
			atomic_fetch_add(&work->done, count);
		} else if (!count) {
			stop(work, -ENODATA);
		} else if (errno != EINTR) {
			stop(work, failed_read(errno));
		}
	}
	return at >= end;
}

static bool read_next(struct work *work, struct fill_buffer *buffer)
{
	uint64_t at = atomic_fetch_add(&work->next, CHUNK), left;

	if (at >= work->length || atomic_load(&work->stopped))
		return false;
	left = work->length - at;
	return read_chunk(work, buffer, at, at + (left < CHUNK ? left : CHUNK));
}

static void *read_all(void *data)
{
	struct fill_buffer buffer = { 0 };

	while (read_next(data, &buffer))
		;
	fill_buffer_free(&buffer);
	return NULL;
}

/* Calls progress(), which may end the read. */
static void report(struct work *work, const struct tshare_read_options *options)
{
	if (options->progress && !atomic_load(&work->stopped) &&
	    options->progress(options->data, atomic_load(&work->done)))
		stop(work, -ECANCELED);
}

/* mincore() reports each page of anybody else's file as cached. */
static bool may_ask_for_pages(int fd, const char *path)
{
	struct stat file;

	return !fstat(fd, &file) && S_ISREG(file.st_mode) &&
	       (file.st_uid == geteuid() || !faccessat(AT_FDCWD, path, W_OK, AT_EACCESS));
}

/* If @length is 0, no thread reads: checks here that the descriptor is a file's. */
static void check_file(struct work *work)
{
	char none;

	if (!work->length && pread(work->fd, &none, 0, work->file_offset) < 0)
		stop(work, failed_read(errno));
}

/* Bytes of the mapping @pages. */
static size_t mapped_size(const struct work *work)
{
	return work->file_offset % work->page_size + work->length;
}

static void prepare_direct(struct work *work)
{
	uint64_t first = work->file_offset & ~(work->page_size - 1);
	char path[32];

	work->leave_cache = true;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", work->fd);
	/* Sets no flag on the caller's descriptor, which others may share. */
	atomic_init(&work->direct, fd_open(path, O_RDONLY | O_DIRECT | O_NONBLOCK));
	if (!may_ask_for_pages(work->fd, path))
		return;
	work->pages = mmap(NULL, mapped_size(work), PROT_READ, MAP_SHARED, work->fd, first);
	if (work->pages == MAP_FAILED)
		work->pages = NULL;
}

static int fail_read(const struct work *work)
{
	switch (work->err) {
	case 0:
		return 0;
	case -ECANCELED:
		return fail(-ECANCELED, "progress: ended the read");
	case -ENODATA:
		return fail(-ENODATA, "length: the file ends before byte %" PRIu64,
			    work->file_offset + work->length);
	case -EBADF:
		return fail(-EBADF, "fd: %d is not open for reading", work->fd);
	case -ESPIPE:
	case -EISDIR:
		return fail(work->err, "fd: %d is no file: %s", work->fd, strerror(-work->err));
	default:
		return fail(work->err, "fd: pread: %s", strerror(-work->err));
	}
}

static int check_options(const struct tshare_read_options *options,
			 struct tshare_read_options *known)
{
	int err;

	*known = (struct tshare_read_options){ 0 };
	if (options) {
		err = sized_read(options, "options.", SIZED_UPTO(struct tshare_read_options, data),
				 known, sizeof(*known));
		if (err)
			return err;
	}
	if (known->flags & ~TSHARE_DIRECT)
		return fail(-EINVAL, "options.flags: unknown flag in %#" PRIx32, known->flags);
	if (known->threads > THREADS_MAX)
		return fail(-EINVAL, "options.threads: %" PRIu32 " are more than %d",
			    known->threads, THREADS_MAX);
	if (!known->threads)
		known->threads = THREADS_DEFAULT;
	return 0;
}

static int check_place(const struct tshare_region *region, uint64_t file_offset, uint64_t offset,
		       uint64_t length)
{
	int err = region_check_on_host(region);

	if (err)
		return err;
	if (region->readonly)
		return fail(-EACCES, "region: is read-only");
	if (offset > region->handle.size)
		return fail(-ERANGE, "offset: %" PRIu64 " is beyond the region's %" PRIu64 " bytes",
			    offset, region->handle.size);
	if (length > region->handle.size - offset)
		return fail(-ERANGE,
			    "length: %" PRIu64 " bytes at %" PRIu64
			    " are not inside the region's %" PRIu64,
			    length, offset, region->handle.size);
	if (file_offset > INT64_MAX || length > INT64_MAX - file_offset)
		return fail(-EINVAL, "file_offset: %" PRIu64 " is beyond any file", file_offset);
	return 0;
}

TSHARE_EXPORT
int tshare_region_read(struct tshare_region *region, int fd, uint64_t file_offset, uint64_t offset,
		       uint64_t length, const struct tshare_read_options *options)
{
	const uint64_t chunks = (length + CHUNK - 1) / CHUNK;
	pthread_t threads[THREADS_MAX];
	struct tshare_read_options known;
	struct work work = {
		.fd = fd,
		.file_offset = file_offset,
		.offset = offset,
		.length = length,
		.page_size = region->ctx->page_size,
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	struct fill_buffer buffer = { 0 };
	unsigned int started = 0;
	int err, direct;

	no_cancellation();
	err = check_options(options, &known);
	if (!err)
		err = check_place(region, file_offset, offset, length);
	if (err)
		return err;
	atomic_init(&work.direct, -1);
	if (known.flags & TSHARE_DIRECT && length)
		prepare_direct(&work);
	direct = atomic_load_explicit(&work.direct, memory_order_relaxed);
	fill_init(&work.fill, region, length);
	work.start = (char *)region->data + offset;
	check_file(&work);
	if (known.threads > chunks)
		known.threads = chunks;
	if (known.threads > 1)
		started = threads_start(threads, known.threads - 1, read_all, &work);
	while (read_next(&work, &buffer))
		report(&work, &known);
	fill_buffer_free(&buffer);
	while (started)
		pthread_join(threads[--started], NULL);
	report(&work, &known);
	fill_end(&work.fill);
	if (direct >= 0)
		close(direct);
	if (work.pages)
		munmap(work.pages, mapped_size(&work));
	return fail_read(&work);
}
