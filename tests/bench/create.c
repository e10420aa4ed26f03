// SPDX-License-Identifier: MIT
/*
 * Creating a region of zeroed memory, from the module's pool and by its search, against
 * a memfd whose pages have been allocated: in both a program then finds its memory there.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tshare.h>

#include "pair.h"

#define POOL "/sys/class/misc/tshare/pool_node0/"

static struct tshare_ctx *ctx;
static uint64_t size, pool_size;

static uint64_t read_number(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned long long value;

	if (!file || fscanf(file, "%llu", &value) != 1)
		err(1, "%s", path);
	fclose(file);
	return value;
}

static void resize_pool(uint64_t bytes)
{
	FILE *file = fopen(POOL "size", "we");

	if (!file || fprintf(file, "%llu\n", (unsigned long long)bytes) < 0 || fclose(file))
		err(1, POOL "size");
	pool_size = bytes;
}

static double create_region(void)
{
	struct tshare_region *region;
	double start, elapsed;

	/* What the last round has used. */
	while (read_number(POOL "zeroed") < pool_size)
		usleep(1000);
	start = pair_now();
	if (tshare_region_create(ctx, NULL, size, NULL, 0, NULL, &region) < 0)
		errx(1, "%s", tshare_error_get());
	elapsed = pair_now() - start;
	tshare_region_unref(region);
	return elapsed;
}

static double create_memfd(void)
{
	double start = pair_now(), elapsed;
	int fd = memfd_create("bench", MFD_CLOEXEC);
	void *data;

	if (fd < 0 || ftruncate(fd, size) < 0)
		err(1, "memfd_create");
	data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (data == MAP_FAILED)
		err(1, "mmap");
	elapsed = pair_now() - start;
	munmap(data, size);
	close(fd);
	return elapsed;
}

/* What an export of a region takes, which needs no memory. That region isn't of the pool. */
static double export_region(void)
{
	static struct tshare_region *region;
	double start, elapsed;
	int fd;

	if (!region && tshare_region_create(ctx, NULL, 2 << 20, NULL, 0, NULL, &region) < 0)
		errx(1, "%s", tshare_error_get());
	start = pair_now();
	if (tshare_region_export(region, 0, 0, 0, &fd) < 0)
		errx(1, "%s", tshare_error_get());
	elapsed = pair_now() - start;
	close(fd);
	return elapsed;
}

static void compare(const char *name, const char *from, double aim)
{
	char row[64];

	snprintf(row, sizeof(row), "C: create %s, %s", name, from);
	pair_run(row, "memfd", create_region, create_memfd, size > 512 << 20 ? 3 : 10, aim);
}

int main(void)
{
	if (tshare_ctx_new(NULL, &ctx) < 0)
		errx(1, "%s", tshare_error_get());
	if (strcmp(tshare_ctx_get_backend(ctx), "kmod"))
		errx(1, "needs the kernel module");

	resize_pool(1 << 30);
	size = 256 << 20;
	compare("256 MiB", "from the pool", 0.02);
	pair_run("C: create 256 MiB from the pool", "export", create_region, export_region, 20, 0);
	size = 1 << 30;
	compare("1 GiB", "from the pool", 0.02);

	resize_pool(0);
	size = 4096;
	compare("4 KiB", "without a pool", 0);
	size = 2 << 20;
	compare("2 MiB", "without a pool", 0);
	size = 256 << 20;
	compare("256 MiB", "without a pool", 0);
	size = 1 << 30;
	compare("1 GiB", "without a pool", 0);
	tshare_ctx_unref(ctx);
	return 0;
}
