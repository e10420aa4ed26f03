/* SPDX-License-Identifier: MIT */
/*
 * The descriptors of a region's tensors: the records as they are in the kernel and in
 * files, where each of them begins, and an index of the names.
 */
#ifndef TSHARE_FORMAT_DESC_LIST_H
#define TSHARE_FORMAT_DESC_LIST_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "desc.h"

struct desc_index;

/* Immutable once it has been checked, except the index. */
struct desc_list {
	size_t count;
	size_t size;			    /* bytes of @records */
	char *records;			    /* at a multiple of 8 */
	_Atomic(struct desc_index *) index; /* made when it is first needed */
	uint32_t places[];		    /* of each record in @records */
};

/* A list whose records the caller fills in; NULL when out of memory. */
struct desc_list *desc_list_new(size_t count, size_t size);

/* The same with a copy of @records. */
struct desc_list *desc_list_copy(size_t count, const void *records, size_t size);

void desc_list_free(struct desc_list *list);

static inline void cleanup_desc_list(struct desc_list *const *list)
{
	desc_list_free(*list);
}

#define _cleanup_desc_list_ __attribute__((cleanup(cleanup_desc_list)))

/*
 * Checks the records against a region of @region_size bytes, and finds where each
 * begins. Fails with the errno that tshare_desc_check() has for them; the error text
 * calls the list @array.
 */
int desc_list_check(struct desc_list *list, uint64_t region_size, const char *array);

/* For a list that was checked: */

static inline const struct tshare_desc *desc_list_get(const struct desc_list *list, size_t place)
{
	return (const struct tshare_desc *)(list->records + list->places[place]);
}

/* Fails with -EINVAL if two tensors have one name. */
int desc_list_check_unique(struct desc_list *list);

/* Stores the place of the first tensor of that name: -ENOENT, -ENOMEM. */
int desc_list_find(struct desc_list *list, const char *name, size_t *place);

#endif /* TSHARE_FORMAT_DESC_LIST_H */
