/* SPDX-License-Identifier: GPL-2.0-only */
/* A fake zone, without memory, for tests of what a zone can spare. */
#ifndef TSHARE_FAKE_ZONE_H
#define TSHARE_FAKE_ZONE_H

#include <kunit/test.h>
#include <linux/mmzone.h>
#include <linux/percpu.h>

/* The callers' class, the pages that the zone keeps from it, and other numbers of pages. */
#define HIGHEST ZONE_NORMAL
#define KEPT	30
#define MINIMUM 50
#define FREE	1000
#define CMA	100
#define MANAGED 5000

static struct zone *zone_of(struct kunit *test)
{
	struct zone *zone = kunit_kzalloc(test, sizeof(*zone), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, zone);
	zone->_watermark[WMARK_MIN] = MINIMUM;
	zone->lowmem_reserve[HIGHEST] = KEPT;
	atomic_long_set(&zone->managed_pages, MANAGED);
	atomic_long_set(&zone->vm_stat[NR_FREE_PAGES], FREE);
	atomic_long_set(&zone->vm_stat[NR_FREE_CMA_PAGES], CMA);
	zone->per_cpu_pageset = alloc_percpu(struct per_cpu_pages);
	KUNIT_ASSERT_TRUE(test, zone->per_cpu_pageset);
	return zone;
}

static void zone_free(struct zone *zone)
{
	free_percpu(zone->per_cpu_pageset);
}

#endif /* TSHARE_FAKE_ZONE_H */
