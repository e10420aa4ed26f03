/* SPDX-License-Identifier: GPL-2.0-only */
/* Pages that a search for memory counts on, and the fence around those that go offline. */
#ifndef TSHARE_MOVABLE_H
#define TSHARE_MOVABLE_H

#include <linux/types.h>

struct zone;

int tshare_fence_lock(void);
void tshare_fence_unlock(void);
bool tshare_fence_covers(unsigned long pfn, unsigned long nr);
unsigned long tshare_movable_pages(struct zone *zone, unsigned long pfn, unsigned long max,
				   bool lenient, unsigned long *free);

int tshare_fence_init(void);
void tshare_fence_exit(void);

#endif /* TSHARE_MOVABLE_H */
