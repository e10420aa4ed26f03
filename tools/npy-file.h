/* SPDX-License-Identifier: MIT */
/* An open .npy file that is read. Each function prints its error. */
#ifndef TSHARE_CLI_NPY_FILE_H
#define TSHARE_CLI_NPY_FILE_H

#include "npy.h"

struct npy_file {
	const char *path;
	int fd;
	struct npy npy;
};

/* Prints the problem, and returns false. */
bool npy_file_fail(const struct npy_file *file, const char *problem);

/* Reads exactly @size bytes. */
bool npy_file_read(const struct npy_file *file, void *buffer, size_t size);

/* Reads up to the elements, and returns the dict, which is to be freed; NULL if that fails. */
char *npy_file_read_dict(const struct npy_file *file, size_t *length);

/* The same, and parses the dict. */
bool npy_file_read_header(struct npy_file *file);

/* Counts the bytes of the elements; false if there are too many. */
bool npy_file_count(const struct npy_file *file, size_t *size);

#endif /* TSHARE_CLI_NPY_FILE_H */
