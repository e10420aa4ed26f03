/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Tensor descriptors: where a record's parts are, and their validation, for kernel and library. */
#ifndef TSHARE_DESC_H
#define TSHARE_DESC_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stddef.h>
#endif

#include <linux/tshare.h>

/* Bytes of a record of that many dimensions and such a name, which is what its size must be. */
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

/* What follows a record that was checked: the next one, or the end of the buffer. */
static inline const struct tshare_desc *tshare_desc_next(const struct tshare_desc *desc)
{
	return (const struct tshare_desc *)((const char *)desc + desc->size);
}

int tshare_name_check(const char name[TSHARE_NAME_LEN], const char **why);
int tshare_desc_check(const struct tshare_desc *desc, size_t left, __u64 region_size,
		      const char **why);

#endif /* TSHARE_DESC_H */
