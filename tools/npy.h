/* SPDX-License-Identifier: MIT */
/* The header of a .npy file, NumPy's format 1.0 to 3.0: a magic, a length, a Python dict. */
#ifndef TSHARE_CLI_NPY_H
#define TSHARE_CLI_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tshare.h>

/* Bytes before the dict's length, and of the longest length. */
#define NPY_MAGIC_LEN 8
#define NPY_SIZE_MAX  4

/* A dict of TSHARE_NDIM_LIMIT dimensions is far shorter, and one of TSHARE_STREAM_FIELDS files. */
#define NPY_DICT_MAX 32768

struct npy {
	struct tshare_dtype dtype;
	bool fortran_order;
	int32_t ndim;
	int64_t shape[TSHARE_NDIM_LIMIT];
};

/*
 * Checks the start of a file. Returns the bytes of the dict's length, 2 or 4; or 0 after storing
 * the problem.
 */
size_t npy_check_magic(const unsigned char magic[NPY_MAGIC_LEN], const char **problem);

/* Parses a dict; false after storing the problem. */
bool npy_parse(const char *dict, size_t length, struct npy *npy, const char **problem);

/*
 * Writes a header of version 1.0, padded to a multiple of 64 bytes. Returns its length, or 0 if
 * NumPy has no such type.
 */
#define NPY_HEADER_MAX 1024
size_t npy_format(char header[NPY_HEADER_MAX], const struct npy *npy);

/* Writes the type as a dict has it, "'<f4'"; false if NumPy has no such type. */
#define NPY_DESCR_LEN 8
bool npy_describe(struct tshare_dtype dtype, char descr[NPY_DESCR_LEN]);

/*
 * The same for a file to which rows are added, of any type: the header is as long for any
 * @npy->shape[0]. @header has NPY_HEADER_MAX bytes and those of @descr.
 */
#define NPY_ROWS_LEN 20
size_t npy_format_growing(char *header, const char *descr, const struct npy *npy);

#endif /* TSHARE_CLI_NPY_H */
