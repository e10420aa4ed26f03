// SPDX-License-Identifier: MIT
#include "npy-file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

bool npy_file_fail(const struct npy_file *file, const char *problem)
{
	failure("%s: %s", file->path, problem);
	return false;
}

bool npy_file_read(const struct npy_file *file, void *buffer, size_t size)
{
	char *next = buffer;
	ssize_t got;

	for (; size; next += got, size -= got) {
		got = read(file->fd, next, size);
		if (!got)
			return npy_file_fail(file, "the file is truncated");
		if (got < 0 && errno != EINTR)
			return npy_file_fail(file, strerror(errno));
		if (got < 0)
			got = 0;
	}
	return true;
}

char *npy_file_read_dict(const struct npy_file *file, size_t *length)
{
	unsigned char magic[NPY_MAGIC_LEN], size[NPY_SIZE_MAX] = { 0 };
	const char *problem;
	size_t bytes;
	char *dict;

	if (!npy_file_read(file, magic, sizeof(magic)))
		return NULL;
	bytes = npy_check_magic(magic, &problem);
	if (!bytes) {
		npy_file_fail(file, problem);
		return NULL;
	}
	if (!npy_file_read(file, size, bytes))
		return NULL;
	*length = size[0] | size[1] << 8 | size[2] << 16 | (size_t)size[3] << 24;
	if (*length > NPY_DICT_MAX) {
		npy_file_fail(file, "damaged header: it is too long");
		return NULL;
	}
	dict = malloc(*length + 1);
	if (!dict) {
		npy_file_fail(file, "out of memory");
		return NULL;
	}
	if (npy_file_read(file, dict, *length))
		return dict;
	free(dict);
	return NULL;
}

bool npy_file_read_header(struct npy_file *file)
{
	const char *problem;
	bool parsed;
	size_t length;
	char *dict = npy_file_read_dict(file, &length);

	if (!dict)
		return false;
	parsed = npy_parse(dict, length, &file->npy, &problem);
	free(dict);
	return parsed || npy_file_fail(file, problem);
}

bool npy_file_count(const struct npy_file *file, size_t *size)
{
	int32_t i;

	*size = file->npy.dtype.bits / 8;
	for (i = 0; i < file->npy.ndim; i++)
		if (!file->npy.shape[i])
			*size = 0;
	for (i = 0; i < file->npy.ndim; i++)
		if (__builtin_mul_overflow(*size, (size_t)file->npy.shape[i], size))
			return npy_file_fail(file, "damaged header: shape is too large");
	return true;
}
