/* SPDX-License-Identifier: MIT */
#ifndef TSHARE_REFCOUNT_H
#define TSHARE_REFCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>

static inline void refcount_get(atomic_uint *refs)
{
	atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);
}

/* True for the last one, who then sees all that the others did. */
static inline bool refcount_put(atomic_uint *refs)
{
	return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}

#endif /* TSHARE_REFCOUNT_H */
