// SPDX-License-Identifier: MIT
/*
 * Attaching to 1 MiB by its name, reading a byte of it, and closing it: a tensor of
 * tshare, shape and type included, against bare calls. On shared memory the bare
 * calls are made on the region's own file, so that both walk the same path; with the
 * module they are made on a file of POSIX shared memory. Of a region that goes with its
 * maker an open has to find out whether the maker lives, of one that persists not.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tshare.h>

#include "pair.h"

#define SIZE (1 << 20)

static struct tshare_ctx *ctx;
static const char *name;
static char path[64];
static int directory;
static volatile unsigned char sink;

static double attach_tshare(void)
{
	double start = pair_now();
	struct tshare_tensor *tensor;

	if (tshare_tensor_open(ctx, name, NULL, &tensor) < 0)
		errx(1, "%s", tshare_error_get());
	sink = *(unsigned char *)tshare_tensor_get_data(tensor);
	tshare_tensor_unref(tensor);
	return pair_now() - start;
}

static double attach_bare(void)
{
	double start = pair_now();
	struct stat st;
	unsigned char *data;
	int fd = openat(directory, path, O_RDWR | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		err(1, "%s", path);
	/* The data is the end of the region's file. */
	data = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, st.st_size - SIZE);
	if (data == MAP_FAILED)
		err(1, "mmap");
	sink = *data;
	munmap(data, SIZE);
	close(fd);
	return pair_now() - start;
}

static void make_file(void)
{
	int fd;

	fd = openat(directory, path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || posix_fallocate(fd, 0, SIZE))
		err(1, "%s", path);
	close(fd);
}

static void compare(const char *row, const char *of, uint32_t lifetime)
{
	const struct tshare_options options = { .size = sizeof(options), .lifetime = lifetime };
	bool shm = !strcmp(tshare_ctx_get_backend(ctx), "shm");
	const int64_t shape[] = { SIZE };
	struct tshare_tensor *tensor;
	char title[80];

	name = of;
	if (tshare_tensor_create(ctx, name, TSHARE_UINT8, 1, shape, &options, &tensor) < 0)
		errx(1, "%s", tshare_error_get());
	snprintf(path, sizeof(path), shm ? "tshare.%s/region" : "%s", name);
	if (!shm)
		make_file();
	snprintf(title, sizeof(title), "C: %s (%s)", row, tshare_ctx_get_backend(ctx));
	pair_run(title, "bare openat + fstat + mmap", attach_tshare, attach_bare, 5000, 1.05);
	if (!shm)
		unlinkat(directory, path, 0);
	tshare_ctx_unlink(ctx, name);
	tshare_tensor_unref(tensor);
}

int main(void)
{
	const char *dir = getenv("TSHARE_SHM_DIR");

	if (tshare_ctx_new(NULL, &ctx) < 0)
		errx(1, "%s", tshare_error_get());
	directory = open(dir ? dir : "/dev/shm", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0)
		err(1, "directory");
	compare("attach by name", "bench-attach", TSHARE_LIFETIME_MAKER);
	compare("the same, persistent", "bench-attach-kept", TSHARE_LIFETIME_PERSIST);
	close(directory);
	tshare_ctx_unref(ctx);
	return 0;
}
