/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_FORMAT_LAYOUT_H
#define TSHARE_FORMAT_LAYOUT_H

#include "tshare.h"

#include "desc.h"

struct desc_list;

/* Alignment of a tensor whose place the library chooses: good for SIMD and for GPUs. */
#define TSHARE_TENSOR_ALIGNMENT 64

/* Copies a caller's spec, with zeros for members that it lacks: 0, or -EINVAL. */
int spec_read(const struct tshare_spec *spec, struct tshare_spec *known);

/* The same with element @i of an array, in which all have the size of the first. */
int spec_read_element(const struct tshare_spec *specs, size_t i, struct tshare_spec *known);

/*
 * Describes @count tensors, chooses places that the specs leave open, and stores the
 * bytes that the tensors need together. desc_list_check() checks whether they are
 * inside a region.
 */
int layout_specs(const struct tshare_spec *specs, size_t count, struct desc_list **list,
		 uint64_t *size);

/* Room for any descriptor. */
union desc_record {
	struct tshare_desc desc;
	char bytes[TSHARE_DESC_SIZE_MAX];
};

/* Describes a tensor in a region of @region_size bytes. */
int layout_view(const struct tshare_spec *spec, uint64_t region_size, union desc_record *record);

#endif /* TSHARE_FORMAT_LAYOUT_H */
