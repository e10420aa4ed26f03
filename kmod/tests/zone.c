// SPDX-License-Identifier: GPL-2.0-only
/* KUnit tests of zone.c, which includes this: what a zone spares, and how memory is reclaimed. */
#include "fake-zone.h"

static void zone_spares_what_is_above_its_reserves(struct kunit *test)
{
	const unsigned long most = FREE - CMA - MINIMUM - KEPT;
	struct zone *zone = zone_of(test);

	KUNIT_EXPECT_TRUE(test, tshare_zone_can_spare(zone, HIGHEST, most));
	KUNIT_EXPECT_FALSE(test, tshare_zone_can_spare(zone, HIGHEST, most + 1));
	KUNIT_EXPECT_TRUE(test, tshare_zone_can_spare(zone, HIGHEST - 1, most + KEPT));
	zone_free(zone);
}

/* A try drains the lists. */
static void pages_in_the_lists_of_cpus_are_free(struct kunit *test)
{
	const unsigned long most = FREE - CMA - MINIMUM - KEPT;
	struct zone *zone = zone_of(test);
	int cpu;

	for_each_online_cpu(cpu)
		per_cpu_ptr(zone->per_cpu_pageset, cpu)->count = 7;
	KUNIT_EXPECT_TRUE(test, tshare_zone_can_spare(zone, HIGHEST, most + 7 * num_online_cpus()));
	KUNIT_EXPECT_FALSE(test,
			   tshare_zone_can_spare(zone, HIGHEST, most + 7 * num_online_cpus() + 1));
	zone_free(zone);
}

static void set_cache(struct zone *zone, unsigned long active, unsigned long inactive)
{
	atomic_long_set(&zone->vm_stat[NR_ZONE_ACTIVE_FILE], active);
	atomic_long_set(&zone->vm_stat[NR_ZONE_INACTIVE_FILE], inactive);
}

static void low_watermark_or_half_of_the_cache_is_in_use(struct kunit *test)
{
	struct zone *zone = zone_of(test);

	zone->_watermark[WMARK_LOW] = 60;
	set_cache(zone, 100, 200);
	KUNIT_EXPECT_TRUE(test, zone_has_cache(zone, 240));
	KUNIT_EXPECT_FALSE(test, zone_has_cache(zone, 241));
	set_cache(zone, 20, 30);
	KUNIT_EXPECT_TRUE(test, zone_has_cache(zone, 25));
	KUNIT_EXPECT_FALSE(test, zone_has_cache(zone, 26));
	zone_free(zone);
}

/* Otherwise programs lose their own pages, until the OOM killer kills one. */
static void reclaim_goes_on_only_where_the_cache_suffices(struct kunit *test)
{
	struct page *page = alloc_page(GFP_KERNEL);
	struct zone *zone;
	gfp_t little, much;

	KUNIT_ASSERT_NOT_NULL(test, page);
	zone = page_zone(page);
	__free_page(page);
	little = zone_reclaim_gfp(zone, 0);
	much = zone_reclaim_gfp(zone, ULONG_MAX);
	KUNIT_EXPECT_TRUE(test, little & __GFP_RETRY_MAYFAIL);
	KUNIT_EXPECT_FALSE(test, little & __GFP_NORETRY);
	KUNIT_EXPECT_FALSE(test, much & __GFP_RETRY_MAYFAIL);
	KUNIT_EXPECT_TRUE(test, much & __GFP_NORETRY);
}

static void memory_is_reclaimed_in_the_zone_itself(struct kunit *test)
{
	struct page *page = alloc_page(GFP_KERNEL);
	struct pglist_data *node;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, page);
	node = page_zone(page)->zone_pgdat;
	__free_page(page);
	for (i = 0; i <= ZONE_NORMAL; i++) {
		gfp_t gfp = zone_reclaim_gfp(&node->node_zones[i], 0);

		KUNIT_EXPECT_EQ(test, i, (int)gfp_zone(gfp));
	}
}

static struct kunit_case zone_cases[] = { KUNIT_CASE(zone_spares_what_is_above_its_reserves),
					  KUNIT_CASE(pages_in_the_lists_of_cpus_are_free),
					  KUNIT_CASE(low_watermark_or_half_of_the_cache_is_in_use),
					  KUNIT_CASE(reclaim_goes_on_only_where_the_cache_suffices),
					  KUNIT_CASE(memory_is_reclaimed_in_the_zone_itself),
					  {} };

static struct kunit_suite zone_suite = {
	.name = "tshare_zone",
	.test_cases = zone_cases,
};

kunit_test_suite(zone_suite);
