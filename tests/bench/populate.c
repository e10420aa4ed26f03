// SPDX-License-Identifier: MIT
/*
 * Creating 256 MiB of zeroed shared memory and touching every page of it:
 * a region of tshare against a memfd.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include <tshare.h>

#include "pair.h"

#define SIZE (256UL << 20)
#define PAGE 4096

static struct tshare_ctx *ctx;
static volatile unsigned char sink;

static void touch(unsigned char *data)
{
	for (size_t i = 0; i < SIZE; i += PAGE)
		data[i] = 1;
	sink = data[SIZE - PAGE];
}

static double populate_tshare(void)
{
	double start = pair_now(), elapsed;
	struct tshare_region *region;

	if (tshare_region_create(ctx, NULL, SIZE, NULL, 0, NULL, &region) < 0)
		errx(1, "%s", tshare_error_get());
	touch(tshare_region_get_data(region));
	elapsed = pair_now() - start;
	tshare_region_unref(region);
	return elapsed;
}

static double populate_memfd(void)
{
	double start = pair_now(), elapsed;
	unsigned char *data;
	int fd = memfd_create("bench", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, SIZE) < 0)
		err(1, "memfd_create");
	data = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED)
		err(1, "mmap");
	touch(data);
	elapsed = pair_now() - start;
	munmap(data, SIZE);
	close(fd);
	return elapsed;
}

int main(void)
{
	char row[64];

	if (tshare_ctx_new(NULL, &ctx) < 0)
		errx(1, "%s", tshare_error_get());
	snprintf(row, sizeof(row), "C: create + fault in 256 MiB (%s)",
		 tshare_ctx_get_backend(ctx));
	pair_run(row, "memfd", populate_tshare, populate_memfd, 10, 0.3);
	tshare_ctx_unref(ctx);
	return 0;
}
