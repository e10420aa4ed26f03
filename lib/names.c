// SPDX-License-Identifier: MIT
/* Names of regions, and of the tensors in one. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "desc.h"
#include "error.h"
#include "names.h"
#include "tshare.h"

int tshare_name_copy(char copy[TSHARE_NAME_LEN], const char *name)
{
	const char *why;
	size_t length;
	int err;

	if (!name)
		return tshare_fail(-EINVAL, "name: is NULL");
	if (!*name)
		return tshare_fail(-EINVAL, "name: is empty");
	length = strnlen(name, TSHARE_NAME_LEN);
	if (length == TSHARE_NAME_LEN)
		return tshare_fail(-ENAMETOOLONG, "name: longer than %d bytes", TSHARE_NAME_MAX);
	memset(copy, 0, TSHARE_NAME_LEN);
	memcpy(copy, name, length);
	err = tshare_name_check(copy, &why);
	if (err)
		return tshare_fail(err, "%s: '%s'", why, name);
	return 0;
}

/* By name, and of equal ones the earlier first. */
static int compare_places(const void *a, const void *b, void *descs_)
{
	const struct tshare_desc *descs = descs_;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	int order;

	order = strcmp(descs[left].name, descs[right].name);
	return order ? order : (left > right) - (left < right);
}

uint32_t *tshare_index_new(const struct tshare_desc *descs, size_t count)
{
	uint32_t *index;
	size_t i;

	index = malloc((count ? count : 1) * sizeof(*index));
	if (!index)
		return NULL;
	for (i = 0; i < count; i++)
		index[i] = i;
	qsort_r(index, count, sizeof(*index), compare_places, (void *)descs);
	return index;
}

int tshare_index_check_unique(const uint32_t *index, const struct tshare_desc *descs, size_t count)
{
	size_t i;

	for (i = 1; i < count; i++)
		if (!strcmp(descs[index[i - 1]].name, descs[index[i]].name))
			return tshare_fail(-EINVAL, "specs[%u].name: '%s' is that of specs[%u] too",
					   index[i], descs[index[i]].name, index[i - 1]);
	return 0;
}

size_t tshare_index_find(const uint32_t *index, const struct tshare_desc *descs, size_t count,
			 const char *name)
{
	size_t low = 0, high = count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (strcmp(descs[index[middle]].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == count || strcmp(descs[index[low]].name, name))
		return count;
	return index[low];
}
