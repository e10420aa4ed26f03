// SPDX-License-Identifier: MIT
/*
 * Attaching to 1 MiB by its name, reading a byte of it, and letting go: a
 * tensor of tshare, shape and type included, against bare shm_open() + mmap().
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tshare.h>

#include "pair.h"

#define NAME "bench-attach"
#define SIZE (1 << 20)

static struct tshare_ctx *ctx;
static volatile unsigned char sink;

static double attach_tshare(void)
{
	double start = pair_now();
	struct tshare_tensor *tensor;

	if (tshare_tensor_open(ctx, NAME, 0, &tensor) < 0)
		errx(1, "%s", tshare_error_get());
	sink = *(unsigned char *)tshare_tensor_get_data(tensor);
	tshare_tensor_unref(tensor);
	return pair_now() - start;
}

static double attach_shm(void)
{
	double start = pair_now();
	struct stat st;
	unsigned char *data;
	int fd = shm_open("/" NAME, O_RDWR, 0);

	if (fd < 0 || fstat(fd, &st) < 0)
		err(1, "shm_open");
	data = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED)
		err(1, "mmap");
	sink = *data;
	munmap(data, st.st_size);
	close(fd);
	return pair_now() - start;
}

int main(void)
{
	const int64_t shape[] = { SIZE };
	struct tshare_tensor *tensor;
	char row[64];
	int fd;

	if (tshare_ctx_new(NULL, &ctx) < 0 ||
	    tshare_tensor_create(ctx, NAME, TSHARE_UINT8, 1, shape, NULL, &tensor) < 0)
		errx(1, "%s", tshare_error_get());
	fd = shm_open("/" NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || posix_fallocate(fd, 0, SIZE))
		err(1, "shm_open");

	snprintf(row, sizeof(row), "C: attach by name (%s)", tshare_ctx_get_backend(ctx));
	pair_run(row, "shm_open + mmap", attach_tshare, attach_shm, 5000, 1.1);

	shm_unlink("/" NAME);
	tshare_tensor_unref(tensor);
	tshare_ctx_unref(ctx);
	return 0;
}
