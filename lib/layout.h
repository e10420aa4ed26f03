/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_LAYOUT_H
#define TSHARE_LAYOUT_H

#include "tshare.h"

#include "desc.h"

struct desc_list;

/* Where a tensor begins whose place is left to the library: good for SIMD and for GPUs. */
#define TSHARE_TENSOR_ALIGNMENT 64

/* Copies a caller's spec, with zeros for members that it lacks: 0, or -EINVAL. */
int spec_read(const struct tshare_spec *spec, struct tshare_spec *known);

/*
 * Describes @count tensors, giving places to those that have none, and stores the
 * bytes that they need together. Whether they are inside a region is still to be
 * checked, by desc_list_check().
 */
int tshare_layout(const struct tshare_spec *specs, size_t count, struct desc_list **list,
		  uint64_t *size);

/* Any one descriptor. */
union desc_record {
	struct tshare_desc desc;
	char bytes[TSHARE_DESC_SIZE_MAX];
};

/* Describes a tensor in a region of @region_size bytes. */
int tshare_layout_view(const struct tshare_spec *spec, uint64_t region_size,
		       union desc_record *record);

#endif /* TSHARE_LAYOUT_H */
