// SPDX-License-Identifier: MIT
/*
 * Reading 256 MiB of a file on a disk into a region: by O_DIRECT, for which the disk
 * writes into the region itself, against reads through the page cache.
 *
 *	storage FILE
 *
 * FILE is created, and removed at the end.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <tshare.h>

#include "pair.h"

#define SIZE   (256UL << 20)
#define CHUNK  (8UL << 20)
#define ROUNDS 10

static int direct, buffered;
static char *region_data, *private;

/* Reads all of the file. */
static void read_file(int fd, char *data)
{
	for (size_t at = 0; at < SIZE; at += CHUNK)
		if (pread(fd, data + at, CHUNK, at) != CHUNK)
			err(1, "pread");
}

static void drop_cache(void)
{
	int error = posix_fadvise(buffered, 0, 0, POSIX_FADV_DONTNEED);

	if (error)
		errx(1, "posix_fadvise: %s", strerror(error));
}

static double read_directly(void)
{
	double start = pair_now();

	read_file(direct, region_data);
	return pair_now() - start;
}

static double read_cached(void)
{
	double start = pair_now();

	read_file(buffered, region_data);
	return pair_now() - start;
}

static double read_uncached(void)
{
	drop_cache();
	return read_cached();
}

/* What a program does that has a file's bytes and wants them shared. */
static double read_and_copy(void)
{
	double start;

	drop_cache();
	start = pair_now();
	for (size_t at = 0; at < SIZE; at += CHUNK) {
		if (pread(buffered, private, CHUNK, at) != CHUNK)
			err(1, "pread");
		memcpy(region_data + at, private, CHUNK);
	}
	return pair_now() - start;
}

/* Words of their own in each page, so that a wrong one is seen. */
static void make_file(const char *path)
{
	buffered = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (buffered < 0)
		err(1, "%s", path);
	for (size_t at = 0; at < SIZE; at += CHUNK) {
		for (size_t i = 0; i < CHUNK; i += sizeof(uint64_t))
			*(uint64_t *)(private + i) = at + i;
		if (pwrite(buffered, private, CHUNK, at) != CHUNK)
			err(1, "%s", path);
	}
	if (fsync(buffered))
		err(1, "%s", path);
	direct = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (direct < 0)
		err(1, "%s: O_DIRECT", path);
}

static void check_region(void)
{
	for (size_t i = 0; i < SIZE; i += sizeof(uint64_t))
		if (*(uint64_t *)(region_data + i) != i)
			errx(1, "the region has other bytes than the file");
	memset(region_data, 0, SIZE);
}

static void run(const char *other, double (*theirs)(void))
{
	pair_run("C: 256 MiB of a file by O_DIRECT", other, read_directly, theirs, ROUNDS, 0);
}

int main(int argc, char **argv)
{
	struct tshare_region *region;
	struct tshare_ctx *ctx;

	if (argc != 2)
		errx(2, "usage: storage FILE");
	if (tshare_ctx_new(NULL, &ctx) < 0 ||
	    tshare_region_create(ctx, NULL, SIZE, NULL, 0, NULL, &region) < 0)
		errx(1, "%s", tshare_error_get());
	region_data = tshare_region_get_data(region);
	private = malloc(CHUNK);
	if (!private)
		err(1, "malloc");
	make_file(argv[1]);

	read_directly();
	check_region();
	run("read(), then a copy", read_and_copy);
	run("read(), into the region", read_uncached);
	run("read(), all in the page cache", read_cached);
	check_region();
	unlink(argv[1]);
	tshare_region_unref(region);
	tshare_ctx_unref(ctx);
	return 0;
}
