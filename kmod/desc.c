// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Validation of names and tensor descriptors.
 *
 * Compiled into the module and into the library: all descriptors are checked
 * here, whether they come from an ioctl or from a peer's shared memory. Nothing
 * in this file allocates, sleeps or trusts its input.
 */
#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/string.h>
#include <linux/types.h>
#else
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#endif

#include "desc.h"

static int desc_reject(const char **why, const char *text, int err)
{
	if (why)
		*why = text;
	return err;
}

/**
 * tshare_name_check() - may a region have this name?
 * @name: TSHARE_NAME_LEN bytes
 * @why: where to store what is wrong, a static string; or NULL
 *
 * An empty name means no name, and is accepted.
 *
 * Return: 0, -ENAMETOOLONG without a terminating NUL, -EINVAL with a '/' or
 * for "." and "..".
 */
int tshare_name_check(const char name[TSHARE_NAME_LEN], const char **why)
{
	if (!memchr(name, '\0', TSHARE_NAME_LEN))
		return desc_reject(why, "name: longer than 127 bytes", -ENAMETOOLONG);
	if (strchr(name, '/'))
		return desc_reject(why, "name: has a '/'", -EINVAL);
	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return desc_reject(why, "name: is \".\" or \"..\"", -EINVAL);
	return 0;
}

/*
 * Widens [*first, *last], the lowest and highest element relative to element
 * [0, 0, ...], by one dimension of @n > 0 elements. False on overflow.
 */
static bool desc_extend(__s64 *first, __s64 *last, __s64 n, __s64 stride)
{
	__s64 span;

	if (__builtin_mul_overflow(n - 1, stride, &span))
		return false;
	return !__builtin_add_overflow(span < 0 ? *first : *last, span, span < 0 ? first : last);
}

/* Whether the memory from @byte up to @end is all zeros. */
static bool desc_all_zero(const char *byte, const char *end)
{
	while (byte < end)
		if (*byte++)
			return false;
	return true;
}

/* Checks that the record lies inside @left bytes and has a valid name. */
static int desc_check_record(const struct tshare_desc *desc, size_t left, const char **why)
{
	const char *name;

	if (left < sizeof(*desc))
		return desc_reject(why, "size: the list ends within a descriptor", -EINVAL);
	if (desc->ndim > TSHARE_NDIM_MAX)
		return desc_reject(why, "ndim: more than 32 dimensions", -EINVAL);
	if (desc->name_len > TSHARE_TENSOR_NAME_MAX)
		return desc_reject(why, "name: longer than 1023 bytes", -ENAMETOOLONG);
	if (desc->flags)
		return desc_reject(why, "flags: unknown", -EINVAL);
	if (desc->size != tshare_desc_size(desc->ndim, desc->name_len))
		return desc_reject(why, "size: not that of its dimensions and name", -EINVAL);
	if (desc->size > left)
		return desc_reject(why, "size: the list ends within a descriptor", -EINVAL);
	name = tshare_desc_name(desc);
	if (memchr(name, '\0', desc->name_len))
		return desc_reject(why, "name: has a NUL in it", -EINVAL);
	if (!desc_all_zero(name + desc->name_len, (const char *)desc + desc->size))
		return desc_reject(why, "name: not followed by zeros", -EINVAL);
	return 0;
}

/*
 * Strides of zero let any number of elements lie in a region. But a copy of the tensor must be
 * able to count them, as well as those of an empty tensor's other dimensions.
 */
static bool desc_countable(const struct tshare_desc *desc, __u64 element_bits)
{
	const __s64 *shape = tshare_desc_shape(desc);
	__s64 total = element_bits;
	__u32 i;

	for (i = 0; i < desc->ndim; i++)
		if (shape[i] && __builtin_mul_overflow(total, shape[i], &total))
			return false;
	return true;
}

/**
 * tshare_desc_check() - does this record describe a tensor in its region?
 * @desc: the record, at an address that is a multiple of 8
 * @left: bytes from @desc to the end of the buffer that it is in
 * @region_size: bytes of the region
 * @why: where to store what is wrong, a static string that names the member;
 *       or NULL
 *
 * The caller may use all members of an accepted record, and tshare_desc_next().
 *
 * Return: 0, -ENAMETOOLONG or -EINVAL for a malformed record, -ERANGE for a
 * tensor that is not wholly inside the region.
 */
int tshare_desc_check(const struct tshare_desc *desc, size_t left, __u64 region_size,
		      const char **why)
{
	__s64 first = 0, last = 0, start_bits, low, high, end;
	const __s64 *shape, *strides;
	__u64 element_bits;
	bool empty = false;
	int err;
	__u32 i;

	err = desc_check_record(desc, left, why);
	if (err)
		return err;
	element_bits = (__u64)desc->dtype_bits * desc->dtype_lanes;
	if (!element_bits)
		return desc_reject(why, "dtype: has no bits or no lanes", -EINVAL);
	shape = tshare_desc_shape(desc);
	strides = tshare_desc_strides(desc);
	for (i = 0; i < desc->ndim; i++) {
		if (shape[i] < 0)
			return desc_reject(why, "shape: has a negative dimension", -EINVAL);
		empty |= !shape[i];
	}

	if (!desc_countable(desc, element_bits))
		return desc_reject(why, "shape: more elements than can be counted", -ERANGE);
	if (desc->byte_offset > region_size)
		return desc_reject(why, "byte_offset: beyond the region", -ERANGE);
	if (empty)
		return 0;
	for (i = 0; i < desc->ndim; i++)
		if (!desc_extend(&first, &last, shape[i], strides[i]))
			return desc_reject(why, "shape, strides: overflow", -ERANGE);

	/* In bits, so that packed sub-byte elements are checked to the last bit. */
	if (__builtin_mul_overflow(desc->byte_offset, 8, &start_bits) ||
	    __builtin_mul_overflow(region_size, 8, &end) ||
	    __builtin_mul_overflow(first, element_bits, &low) ||
	    __builtin_add_overflow(low, start_bits, &low) ||
	    __builtin_add_overflow(last, 1, &last) ||
	    __builtin_mul_overflow(last, element_bits, &high) ||
	    __builtin_add_overflow(high, start_bits, &high))
		return desc_reject(why, "shape, strides: overflow", -ERANGE);
	if (low < 0)
		return desc_reject(why, "strides: reach before the region", -ERANGE);
	if (high > end)
		return desc_reject(why, "shape, strides: reach beyond the region", -ERANGE);
	return 0;
}
