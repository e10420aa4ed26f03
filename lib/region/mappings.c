// SPDX-License-Identifier: MIT
/*
 * A tree of the regions mapped in this process, by address. Mappings never
 * overlap, so nodes that compare equal are the same mapping, or an address and
 * its mapping.
 */
#include "region/mappings.h"

#include <errno.h>
#include <search.h>
#include <stdint.h>

#include "base/error.h"
#include "base/process.h"
#include "base/refcount.h"
#include "region/object.h"

static void *mappings; /* under the process's lock */

static int compare(const void *a, const void *b)
{
	const struct tshare_region *left = a, *right = b;
	uintptr_t left_start = (uintptr_t)left->data, right_start = (uintptr_t)right->data;

	if (left_start + left->handle.size <= right_start)
		return -1;
	return right_start + right->handle.size <= left_start;
}

int mappings_add(struct tshare_region *region)
{
	void *node;

	process_lock();
	node = tsearch(region, &mappings, compare);
	process_unlock();
	return node ? 0 : fail(-ENOMEM, "region: out of memory");
}

void mappings_remove(struct tshare_region *region)
{
	process_lock();
	tdelete(region, &mappings, compare);
	process_unlock();
}

struct tshare_region *mappings_find(const void *address)
{
	const struct tshare_region key = { .data = (void *)address, .handle = { .size = 1 } };
	struct tshare_region *found = NULL;
	void *node;

	process_lock();
	node = tfind(&key, &mappings, compare);
	if (node)
		found = *(struct tshare_region **)node;
	if (found && atomic_load_explicit(&found->unfinished, memory_order_acquire))
		found = NULL;
	/* The thread that dropped the last reference is about to take the region out. */
	if (found && !refcount_get_unless_zero(&found->refs))
		found = NULL;
	process_unlock();
	return found;
}
