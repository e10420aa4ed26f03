// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include "backend/shm/allocate.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "backend/shm/session.h"
#include "base/limited.h"
#include "base/map.h"
#include "base/process.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

/* Bytes that one call allocates: a signal may wait for it. */
#define PIECE (64ULL << 20)

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Huge pages */

/* Under the lock, as a child that another thread forks before madvise() would keep the memory. */
static void *map_for_myself(const struct shm_session *session, int fd, uint64_t offset,
			    uint64_t size)
{
	const struct content content = {
		.prot = PROT_READ,
		.flags = MAP_SHARED,
		.fd = fd,
		.offset = offset,
	};
	void *start;

	process_lock();
	start = map_aligned(size, session->huge_page_size, &content);
	if (start != MAP_FAILED)
		madvise(start, size, MADV_DONTFORK);
	process_unlock();
	return start;
}

/*
 * Where the first small page of the huge page at @offset is allocated. The kernel makes the huge
 * page on the node of that small one, and interleaves nodes by page number: multiples of 512 alone
 * would put all memory on one node. The step to the next huge page's is 512 + 11, a prime. The
 * last pages are left alone, as fill.c asks for one of them.
 */
static uint64_t first_page(const struct shm_session *session, uint64_t offset)
{
	const uint64_t pages = session->huge_page_size / session->page_size;

	return offset + offset / session->huge_page_size * 11 % (pages / 4) * session->page_size;
}

/* The kernel makes a huge page only where a small one exists. */
static int add_first_pages(const struct shm_session *session, int fd, uint64_t offset,
			   uint64_t size)
{
	const uint64_t end = offset + size;
	int err;

	for (; offset < end; offset += session->huge_page_size) {
		do
			err = limited_allocate(fd, first_page(session, offset), session->page_size);
		while (err == -EINTR);
		if (err)
			return err;
	}
	return 0;
}

/*
 * Return: whether the kernel may have more huge pages. Where nothing is mapped yet, Linux 6.1
 * fails with EINVAL after the first huge page, so the loop asks for each one. A kernel without
 * MADV_COLLAPSE fails so at once.
 */
static bool make_huge_pages(const struct shm_session *session, char *start, uint64_t size)
{
	uint64_t at;

	if (!madvise(start, size, MADV_COLLAPSE))
		return true;
	for (at = 0; errno == EINVAL && at < size; at += session->huge_page_size)
		madvise(start + at, session->huge_page_size, MADV_COLLAPSE);
	return errno != ENOMEM && errno != EBUSY;
}

static bool add_huge_pages(const struct shm_session *session, int fd, uint64_t offset,
			   uint64_t size)
{
	bool more;
	void *start;

	if (add_first_pages(session, fd, offset, size))
		return false;
	start = map_for_myself(session, fd, offset, size);
	if (start == MAP_FAILED)
		return false;
	more = make_huge_pages(session, start, size);
	unmap_aligned(start, size, session->huge_page_size);
	return more;
}

/*
 * A tmpfs that is mounted without "huge=" has small pages, but MADV_COLLAPSE makes huge ones
 * there, unless shmem_enabled is "deny". allocate_rest() adds the pages that this doesn't get.
 */
static void allocate_huge_pages(const struct shm_session *session, int fd, uint64_t offset,
				uint64_t size)
{
	const uint64_t huge = session->huge_page_size, most = larger(PIECE, huge);
	uint64_t left = size & ~(huge - 1), piece;

	if (huge == session->page_size)
		return;
	for (; left; left -= piece, offset += piece) {
		piece = smaller(left, most);
		if (!add_huge_pages(session, fd, offset, piece))
			return;
	}
}

/* Pages of any size */

/*
 * Allocates in pieces, as Linux 6.1 undoes a call that a signal interrupts. The next piece is half
 * as large, until pieces fit between the signals of a periodic timer.
 */
static int allocate_rest(const struct shm_session *session, int fd, uint64_t offset, uint64_t size)
{
	uint64_t piece = PIECE, length;
	int err;

	while (size) {
		length = smaller(size, piece);
		err = limited_allocate(fd, offset, length);
		if (err && err != -EINTR)
			return err;
		if (err) {
			piece = length / 2 & ~(uint64_t)(session->page_size - 1);
			if (!piece)
				piece = session->page_size;
			continue;
		}
		offset += length;
		size -= length;
		if (piece < PIECE)
			piece *= 2;
	}
	return 0;
}

int shm_allocate(const struct shm_session *session, int fd, uint64_t offset, uint64_t size)
{
	allocate_huge_pages(session, fd, offset, size);
	return allocate_rest(session, fd, offset, size);
}
