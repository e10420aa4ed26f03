// SPDX-License-Identifier: MIT
#include "from.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "npy-file.h"

struct source {
	struct npy_file file;
	int64_t strides[TSHARE_NDIM_LIMIT];
};

/* In Fortran order the first index is the fastest. The library finds overflows. */
static void fill_strides(struct source *source)
{
	int64_t stride = 1;
	int32_t i;

	for (i = 0; i < source->file.npy.ndim; i++) {
		source->strides[i] = stride;
		if (__builtin_mul_overflow(stride, source->file.npy.shape[i], &stride))
			stride = INT64_MAX;
	}
}

/* Counts the bytes of the elements. Prints an error on overflow, or if the file has other bytes. */
static bool check_size(const struct npy_file *file, size_t *size)
{
	off_t place = lseek(file->fd, 0, SEEK_CUR);
	struct stat st;

	if (!npy_file_count(file, size))
		return false;
	if (place < 0 || fstat(file->fd, &st) || !S_ISREG(st.st_mode))
		return true;
	if ((uint64_t)(st.st_size - place) < *size)
		return npy_file_fail(file, "the file is truncated");
	if ((uint64_t)(st.st_size - place) > *size)
		return npy_file_fail(file, "the file has something behind the array");
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
		npy_file_fail(&source->file, text + strlen(prefix));
}

static struct tshare_region *create_draft(struct source *source, struct layout *layout,
					  struct tshare_ctx *ctx)
{
	const struct tshare_spec spec = {
		.size = sizeof(spec),
		.dtype = source->file.npy.dtype,
		.ndim = source->file.npy.ndim,
		.shape = source->file.npy.shape,
		.strides = source->file.npy.fortran_order ? source->strides : NULL,
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
	done = npy_file_read(&source->file, tshare_tensor_get_data(tensor), size);
	tshare_tensor_unref(tensor);
	if (done && read(source->file.fd, &extra, 1) > 0)
		done = npy_file_fail(&source->file, "the file has something behind the array");
	if (!done)
		return false;
	err = tshare_region_finish(region, layout->options.flags & TSHARE_REPLACE);
	if (err)
		failure_of_library(err);
	return !err;
}

struct tshare_region *from_file(struct layout *layout, struct tshare_ctx *ctx, const char *path)
{
	struct source source = { .file = { .path = path, .fd = STDIN_FILENO } };
	struct tshare_region *region = NULL;
	size_t size;

	if (strcmp(path, "-"))
		source.file.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (source.file.fd < 0) {
		failure("%s: %s", path, strerror(errno));
		return NULL;
	}
	if (npy_file_read_header(&source.file) && check_size(&source.file, &size)) {
		fill_strides(&source);
		region = create_draft(&source, layout, ctx);
	}
	if (region && !fill(&source, layout, region, size))
		region = tshare_region_unref(region);
	if (strcmp(path, "-"))
		close(source.file.fd);
	return region;
}
