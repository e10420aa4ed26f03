/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Tensor descriptors: a record's layout and validation, for the module and the library. */
#ifndef TSHARE_DESC_H
#define TSHARE_DESC_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stddef.h>
#endif

#include <linux/tshare.h>

/* The size that a record with that many dimensions and a name of that length must have. */
#define TSHARE_DESC_SIZE(ndim, name_len) \
	((sizeof(struct tshare_desc) + sizeof(__s64) * 2 * (ndim) + (name_len) + 8) / 8 * 8)

/* Bytes of the largest record. */
#define TSHARE_DESC_SIZE_MAX TSHARE_DESC_SIZE(TSHARE_NDIM_MAX, TSHARE_TENSOR_NAME_MAX)

static inline size_t tshare_desc_size(size_t ndim, size_t name_len)
{
	return TSHARE_DESC_SIZE(ndim, name_len);
}

static inline const __s64 *tshare_desc_shape(const struct tshare_desc *desc)
{
	return desc->dims;
}

static inline const __s64 *tshare_desc_strides(const struct tshare_desc *desc)
{
	return desc->dims + desc->ndim;
}

/* NUL-terminated. */
static inline const char *tshare_desc_name(const struct tshare_desc *desc)
{
	return (const char *)(tshare_desc_strides(desc) + desc->ndim);
}

/* The record after one that was checked, or the end of the buffer. */
static inline const struct tshare_desc *tshare_desc_next(const struct tshare_desc *desc)
{
	return (const struct tshare_desc *)((const char *)desc + desc->size);
}

int tshare_name_check(const char name[TSHARE_NAME_LEN], const char **why);
int tshare_desc_check(const struct tshare_desc *desc, size_t left, __u64 region_size,
		      const char **why);

#endif /* TSHARE_DESC_H */
