/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_BASE_REFCOUNT_H
#define TSHARE_BASE_REFCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>

static inline void refcount_get(atomic_uint *refs)
{
	atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);
}

/* False if the last one has gone already. */
static inline bool refcount_get_unless_zero(atomic_uint *refs)
{
	unsigned int count = atomic_load_explicit(refs, memory_order_relaxed);

	while (count &&
	       !atomic_compare_exchange_weak_explicit(refs, &count, count + 1, memory_order_relaxed,
						      memory_order_relaxed))
		;
	return count;
}

/* False for the last one, which stays. */
static inline bool refcount_put_unless_last(atomic_uint *refs)
{
	unsigned int count = atomic_load_explicit(refs, memory_order_relaxed);

	while (count > 1 &&
	       !atomic_compare_exchange_weak_explicit(refs, &count, count - 1, memory_order_release,
						      memory_order_relaxed))
		;
	return count > 1;
}

/* True for the last reference; its holder then sees all writes of the others. */
static inline bool refcount_put(atomic_uint *refs)
{
	return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}

#endif /* TSHARE_BASE_REFCOUNT_H */
