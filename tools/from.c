// SPDX-License-Identifier: MIT
#include "from.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "npy.h"

struct source {
	const char *path;
	int fd;
	struct npy npy;
	int64_t strides[TSHARE_NDIM_LIMIT];
};

static bool fail(const struct source *source, const char *problem)
{
	failure("%s: %s", source->path, problem);
	return false;
}

/* Reads exactly @size bytes; prints the error. */
static bool read_all(const struct source *source, void *buffer, size_t size)
{
	char *next = buffer;
	ssize_t got;

	for (; size; next += got, size -= got) {
		got = read(source->fd, next, size);
		if (!got)
			return fail(source, "the file is truncated");
		if (got < 0 && errno != EINTR)
			return fail(source, strerror(errno));
		if (got < 0)
			got = 0;
	}
	return true;
}

static bool read_header(struct source *source)
{
	unsigned char magic[NPY_MAGIC_LEN], size[NPY_SIZE_MAX] = { 0 };
	const char *problem;
	size_t bytes, length;
	char *dict;
	bool done;

	if (!read_all(source, magic, sizeof(magic)))
		return false;
	bytes = npy_check_magic(magic, &problem);
	if (!bytes)
		return fail(source, problem);
	if (!read_all(source, size, bytes))
		return false;
	length = size[0] | size[1] << 8 | size[2] << 16 | (size_t)size[3] << 24;
	if (length > NPY_DICT_MAX)
		return fail(source, "damaged header: it is too long");
	dict = malloc(length + 1);
	if (!dict)
		return fail(source, "out of memory");
	done = read_all(source, dict, length);
	if (done && !npy_parse(dict, length, &source->npy, &problem))
		done = fail(source, problem);
	free(dict);
	return done;
}

/* In Fortran order the first index is the fastest. The library finds overflows. */
static void fill_strides(struct source *source)
{
	int64_t stride = 1;
	int32_t i;

	for (i = 0; i < source->npy.ndim; i++) {
		source->strides[i] = stride;
		if (__builtin_mul_overflow(stride, source->npy.shape[i], &stride))
			stride = INT64_MAX;
	}
}

/* Counts the bytes of the elements. Prints an error on overflow, or if the file has other bytes. */
static bool check_size(const struct source *source, size_t *size)
{
	off_t place = lseek(source->fd, 0, SEEK_CUR);
	struct stat st;
	int32_t i;

	*size = source->npy.dtype.bits / 8;
	for (i = 0; i < source->npy.ndim; i++)
		if (!source->npy.shape[i])
			*size = 0;
	for (i = 0; i < source->npy.ndim; i++)
		if (__builtin_mul_overflow(*size, (size_t)source->npy.shape[i], size))
			return fail(source, "damaged header: shape is too large");
	if (place < 0 || fstat(source->fd, &st) || !S_ISREG(st.st_mode))
		return true;
	if ((uint64_t)(st.st_size - place) < *size)
		return fail(source, "the file is truncated");
	if ((uint64_t)(st.st_size - place) > *size)
		return fail(source, "the file has something behind the array");
	return true;
}

/* The library names the tensor "specs[0]"; here it is the file. */
static void fail_create(const struct source *source, int err)
{
	static const char prefix[] = "specs[0].";
	const char *text = tshare_error_get();

	if (strncmp(text, prefix, strlen(prefix)))
		failure_of_library(err);
	else
		fail(source, text + strlen(prefix));
}

static struct tshare_region *create_draft(struct source *source, struct layout *layout,
					  struct tshare_ctx *ctx)
{
	const struct tshare_spec spec = {
		.size = sizeof(spec),
		.dtype = source->npy.dtype,
		.ndim = source->npy.ndim,
		.shape = source->npy.shape,
		.strides = source->npy.fortran_order ? source->strides : NULL,
	};
	struct tshare_region *region;
	int err;

	layout->options.flags |= TSHARE_DRAFT;
	err = tshare_region_create(ctx, layout->name, layout->size, &spec, 1, &layout->options,
				   &region);
	if (!err)
		return region;
	fail_create(source, err);
	return NULL;
}

static bool fill(const struct source *source, const struct layout *layout,
		 struct tshare_region *region, size_t size)
{
	struct tshare_tensor *tensor;
	bool done;
	char extra;
	int err;

	err = tshare_region_get_tensor(region, 0, &tensor);
	if (err) {
		failure_of_library(err);
		return false;
	}
	done = read_all(source, tshare_tensor_get_data(tensor), size);
	tshare_tensor_unref(tensor);
	if (done && read(source->fd, &extra, 1) > 0)
		done = fail(source, "the file has something behind the array");
	if (!done)
		return false;
	err = tshare_region_finish(region, layout->options.flags & TSHARE_REPLACE);
	if (err)
		failure_of_library(err);
	return !err;
}

struct tshare_region *from_file(struct layout *layout, struct tshare_ctx *ctx, const char *path)
{
	struct source source = { .path = path, .fd = STDIN_FILENO };
	struct tshare_region *region = NULL;
	size_t size;

	if (strcmp(path, "-"))
		source.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (source.fd < 0) {
		failure("%s: %s", path, strerror(errno));
		return NULL;
	}
	if (read_header(&source) && check_size(&source, &size)) {
		fill_strides(&source);
		region = create_draft(&source, layout, ctx);
	}
	if (region && !fill(&source, layout, region, size))
		region = tshare_region_unref(region);
	if (strcmp(path, "-"))
		close(source.fd);
	return region;
}
