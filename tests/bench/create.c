// SPDX-License-Identifier: MIT
/*
 * Creating a region of zeroed memory, from the module's pool and by its search, against
 * a memfd whose pages have been allocated, of shared memory and of huge pages that were
 * reserved before: in all a program then finds its memory there. And the same with a touch of
 * every page, for which the memfd's pages are allocated one by one.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tshare.h>

#include "pair.h"

#define HUGE_PAGES "/proc/sys/vm/nr_hugepages"
#define POOL	   "/sys/class/misc/tshare/pool_node0/"

static struct tshare_ctx *ctx;
static uint64_t size, pool_size;
static bool touching;

static uint64_t read_number(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned long long value;

	if (!file || fscanf(file, "%llu", &value) != 1)
		err(1, "%s", path);
	fclose(file);
	return value;
}

static void write_number(const char *path, uint64_t value)
{
	FILE *file = fopen(path, "we");

	if (!file || fprintf(file, "%llu\n", (unsigned long long)value) < 0 || fclose(file))
		err(1, "%s", path);
}

static void resize_pool(uint64_t bytes)
{
	write_number(POOL "size", bytes);
	pool_size = bytes;
}

static void touch(volatile unsigned char *data)
{
	for (size_t i = 0; touching && i < size; i += 4096)
		data[i] = 1;
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
	touch(tshare_region_get_data(region));
	elapsed = pair_now() - start;
	tshare_region_unref(region);
	return elapsed;
}

static double create_memfd_of(unsigned int flags)
{
	double start = pair_now(), elapsed;
	int fd = memfd_create("bench", MFD_CLOEXEC | flags);
	void *data;

	if (fd < 0 || ftruncate(fd, size) < 0)
		err(1, "memfd_create");
	data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | (touching ? 0 : MAP_POPULATE),
		    fd, 0);
	if (data == MAP_FAILED)
		err(1, "mmap");
	touch(data);
	elapsed = pair_now() - start;
	munmap(data, size);
	close(fd);
	return elapsed;
}

static double create_memfd(void)
{
	return create_memfd_of(0);
}

static double create_hugetlbfs(void)
{
	return create_memfd_of(MFD_HUGETLB);
}

/* The time of an export of a region, which needs no memory. The region isn't of the pool. */
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

static void reserve_huge_pages(uint64_t count)
{
	write_number(HUGE_PAGES, count);
	if (read_number(HUGE_PAGES) != count)
		errx(1, HUGE_PAGES ": no memory");
}

static void compare(const char *name, const char *from, uint64_t bytes, double aim, double huge_aim)
{
	int rounds = bytes > 512 << 20 ? 7 : 10;
	char row[64];

	size = bytes;
	snprintf(row, sizeof(row), "C: create%s %s, %s", touching ? " + fault in" : "", name, from);
	pair_run(row, "memfd", create_region, create_memfd, rounds, aim);
	if (size < 2 << 20)
		return;
	reserve_huge_pages(size >> 21);
	pair_run(row, "hugetlbfs", create_region, create_hugetlbfs, rounds, huge_aim);
	reserve_huge_pages(0);
}

int main(void)
{
	if (tshare_ctx_new(NULL, &ctx) < 0)
		errx(1, "%s", tshare_error_get());
	if (strcmp(tshare_ctx_get_backend(ctx), "kmod"))
		errx(1, "needs the kernel module");

	resize_pool(1 << 30);
	compare("2 MiB", "from the pool", 2 << 20, 0, 0);
	compare("256 MiB", "from the pool", 256 << 20, 0.02, 0);
	pair_run("C: create 256 MiB from the pool", "export", create_region, export_region, 20, 0);
	compare("1 GiB", "from the pool", 1 << 30, 0.02, 0);
	touching = true;
	compare("1 GiB", "from the pool", 1 << 30, 0.05, 1.0);
	touching = false;

	resize_pool(0);
	compare("4 KiB", "without a pool", 4096, 0, 0);
	compare("2 MiB", "without a pool", 2 << 20, 0, 0);
	compare("256 MiB", "without a pool", 256 << 20, 0, 0);
	compare("1 GiB", "without a pool", 1 << 30, 0, 0);
	touching = true;
	compare("1 GiB", "without a pool", 1 << 30, 0.3, 1.0);
	tshare_ctx_unref(ctx);
	return 0;
}
