// SPDX-License-Identifier: MIT
/*
 * Huge pages, which the kernel makes when it is asked to. This program has a madvise() of its own,
 * which the library calls in place of the C library's.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../shm.h"

#define MIB (1UL << 20)

/* In pieces of 64 MiB it is allocated in three. */
#define SIZE (130 * MIB)

/* How often huge pages were asked for, with what error the first request ends, or 0. */
static int requests, first_error;

/* Whether each one ends behind the first huge page, as on Linux 6.1. */
static bool ends_early;

/* What happens before the next one, or NULL. */
static void (*before_request)(void);

/* Asks again while a page is in use, as for a moment on a busy machine. */
static int collapse(void *start, size_t length)
{
	int tries = 1000, err;

	do
		err = syscall(SYS_madvise, start, length, MADV_COLLAPSE);
	while (err && errno == EAGAIN && --tries && !usleep(1000));
	return err;
}

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): theirs are reserved */
int madvise(void *start, size_t length, int advice)
{
	void (*now)(void) = before_request;

	if (advice != MADV_COLLAPSE)
		return syscall(SYS_madvise, start, length, advice);
	before_request = NULL;
	if (now)
		now();
	if (!requests++ && first_error) {
		errno = first_error;
		return -1;
	}
	if (!ends_early)
		return collapse(start, length);
	collapse(start, limits_of(ctx).huge_page_size);
	errno = EINVAL;
	return -1;
}

/* Of how many pages that were allocated alone the number has each remainder, by the divisor. */
static unsigned int remainders[5][5];

int posix_fallocate(int fd, off_t offset, off_t length)
{
	const uint64_t number = offset / sysconf(_SC_PAGESIZE);
	unsigned int divisor;

	for (divisor = 2; length == sysconf(_SC_PAGESIZE) && divisor < 5; divisor++)
		remainders[divisor][number % divisor]++;
	return syscall(SYS_fallocate, fd, 0, offset, length) ? errno : 0;
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

static struct tshare_region *create(const char *name, uint64_t size)
{
	struct tshare_region *region;

	CHECK(!tshare_region_create(ctx, name, size, NULL, 0, NULL, &region));
	return region;
}

/* Bytes of a mapping, all of whose pages are touched here, that lie in huge pages. */
static unsigned long huge_bytes(void *start, size_t size)
{
	volatile char *bytes = start;
	unsigned long found, end, total = 0;
	char line[512];
	bool inside = false;
	FILE *smaps;
	size_t i;

	for (i = 0; i < size; i += sysconf(_SC_PAGESIZE))
		bytes[i] = 1;
	smaps = fopen("/proc/self/smaps", "re");
	CHECK(smaps);
	while (fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &found, &end) == 2)
			inside = found == (uintptr_t)start;
		else if (inside && sscanf(line, "ShmemPmdMapped: %lu kB", &found) == 1)
			total = found * 1024;
	}
	fclose(smaps);
	return total;
}

static unsigned long huge_bytes_of(struct tshare_region *region)
{
	return huge_bytes(tshare_region_get_data(region), tshare_region_get_size(region));
}

static bool has_all_pages(struct tshare_region *region)
{
	struct stat file;

	return !fstat(tshare_region_get_fd(region), &file) &&
	       (uint64_t)file.st_blocks * 512 >= tshare_region_get_size(region);
}

static void need_huge_pages(void)
{
	if (!makes_huge_pages())
		SKIP("the kernel makes no huge pages of shared memory");
}

TEST(a_region_consists_of_huge_pages_where_it_has_room_for_them)
{
	const uint64_t huge = limits_of(ctx).huge_page_size;
	struct tshare_region *region;
	int named;

	need_huge_pages();
	for (named = 0; named < 2; named++) {
		region = create(named ? "huge" : NULL, 3 * huge + 4096);
		CHECK(has_all_pages(region));
		CHECK(huge_bytes_of(region) == 3 * huge);
		tshare_region_unref(region);
	}
}

TEST(another_process_maps_huge_pages_too)
{
	const uint64_t huge = limits_of(ctx).huge_page_size;
	struct tshare_region *region, *other;
	struct tshare_ctx *mine;

	need_huge_pages();
	region = create("shared", 2 * huge);
	CHECK(!tshare_ctx_new(NULL, &mine));
	CHECK(!tshare_region_open(mine, "shared", NULL, &other));
	CHECK(huge_bytes_of(other) == 2 * huge);
	tshare_region_unref(other);
	tshare_ctx_unref(mine);
	tshare_region_unref(region);
}

TEST(a_region_below_a_huge_page_asks_for_none)
{
	struct tshare_region *region;

	requests = 0;
	region = create(NULL, limits_of(ctx).huge_page_size - 4096);
	CHECK(!requests);
	CHECK(has_all_pages(region));
	tshare_region_unref(region);
}

TEST(memory_is_zero_whatever_pages_it_has)
{
	struct tshare_region *region = create(NULL, SIZE);

	memset(tshare_region_get_data(region), 0xff, SIZE);
	tshare_region_unref(region);
	region = create(NULL, SIZE);
	CHECK(all_zero(tshare_region_get_data(region), SIZE));
	tshare_region_unref(region);
}

/* "force" and a directory that is mounted so make huge pages unasked, and st_blksize shows it. */
static void need_small_pages(void)
{
	struct tshare_region *region = create(NULL, 1);
	struct stat file;

	CHECK(!fstat(tshare_region_get_fd(region), &file));
	tshare_region_unref(region);
	if (file.st_blksize > sysconf(_SC_PAGESIZE))
		SKIP("the kernel makes huge pages of all shared memory");
}

static int create_without_huge_pages(void *unused)
{
	struct tshare_region *region;

	(void)unused;
	if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0))
		return 1;
	region = create(NULL, SIZE);
	return !has_all_pages(region) || huge_bytes_of(region);
}

TEST(a_process_that_has_huge_pages_disabled_gets_small_ones)
{
	need_small_pages();
	CHECK(!in_child(create_without_huge_pages, NULL));
}

/* The pages of a region for which the first request fails, and how many there were. */
static unsigned long create_after(int error)
{
	struct tshare_region *region;
	unsigned long found;

	requests = 0;
	first_error = error;
	region = create(NULL, SIZE);
	first_error = 0;
	CHECK(has_all_pages(region));
	found = huge_bytes_of(region);
	tshare_region_unref(region);
	return found;
}

TEST(small_pages_take_the_place_of_huge_ones_that_there_is_no_memory_for)
{
	need_small_pages();
	CHECK(!create_after(ENOMEM));
	CHECK(requests == 1);
	CHECK(!create_after(EBUSY));
	CHECK(requests == 1);
}

TEST(a_piece_that_is_in_use_leaves_the_others_their_huge_pages)
{
	need_huge_pages();
	need_small_pages();
	CHECK(create_after(EAGAIN) == SIZE - 64 * MIB);
}

TEST(a_kernel_that_ends_behind_the_first_one_is_asked_for_each)
{
	struct tshare_region *region;

	need_huge_pages();
	ends_early = true;
	region = create(NULL, SIZE);
	ends_early = false;
	CHECK(huge_bytes_of(region) == SIZE);
	tshare_region_unref(region);
}

/* The kernel interleaves nodes by the numbers of pages, and a huge page is on the first one's. */
TEST(first_pages_are_spread_over_interleaved_nodes)
{
	const uint64_t count = 64;
	unsigned int divisor, remainder;
	struct tshare_region *region;

	need_huge_pages();
	memset(remainders, 0, sizeof(remainders));
	region = create(NULL, count * limits_of(ctx).huge_page_size);
	for (divisor = 2; divisor < 5; divisor++)
		for (remainder = 0; remainder < divisor; remainder++)
			CHECK(remainders[divisor][remainder] >= count / divisor / 2);
	tshare_region_unref(region);
}

static pid_t child;

/* The child finds no mapping of the memory that its parent is making. */
static void fork_and_look(void)
{
	char line[512];
	FILE *maps;

	child = fork();
	if (child)
		return;
	maps = fopen("/proc/self/maps", "re");
	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "/memfd:tshare"))
			_exit(1);
	_exit(maps ? 0 : 2);
}

TEST(a_child_that_was_forked_meanwhile_has_no_mapping_of_the_memory)
{
	struct tshare_region *region;
	int status;

	child = -1;
	before_request = fork_and_look;
	region = create(NULL, SIZE);
	before_request = NULL;
	CHECK(child > 0);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(!status);
	tshare_region_unref(region);
}

int main(void)
{
	return shm_main();
}
