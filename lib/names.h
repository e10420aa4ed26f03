/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_NAMES_H
#define TSHARE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include <linux/tshare.h>

/*
 * Copies a region's name, padded with zeros, if it is one: -EINVAL or
 * -ENAMETOOLONG otherwise.
 */
int tshare_name_copy(char copy[TSHARE_NAME_LEN], const char *name);

/*
 * Tensors of a region by name: the places of @descs in the order of their names,
 * to be freed by the caller. NULL when out of memory.
 */
uint32_t *tshare_index_new(const struct tshare_desc *descs, size_t count);

/* Refuses two tensors of one name with -EINVAL. */
int tshare_index_check_unique(const uint32_t *index, const struct tshare_desc *descs, size_t count);

/* Place of the first tensor of that name in @descs, or @count. */
size_t tshare_index_find(const uint32_t *index, const struct tshare_desc *descs, size_t count,
			 const char *name);

#endif /* TSHARE_NAMES_H */
