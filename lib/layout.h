/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_LAYOUT_H
#define TSHARE_LAYOUT_H

#include "tshare.h"

struct tshare_desc;

/* Where a tensor begins whose place is left to the library: good for SIMD and for GPUs. */
#define TSHARE_TENSOR_ALIGNMENT 64

/*
 * Describes @count tensors in zeroed @descs, giving places to those that have
 * none, and stores the bytes that they need together.
 */
int tshare_layout(const struct tshare_spec *specs, size_t count, struct tshare_desc *descs,
		  uint64_t *size);

/*
 * Checks descriptors against a region of @size bytes, and fails with the errno
 * that tshare_desc_check() has for them. The error text calls them @array.
 */
int tshare_layout_check(const struct tshare_desc *descs, size_t count, uint64_t size,
			const char *array);

#endif /* TSHARE_LAYOUT_H */
