// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of alloc-contig.c, which includes this: how often a search may fail, and when it
 * reclaims memory. Some kernels run these tests before tshare_contig_init().
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>

#include "fake-zone.h"

/* A node on which @failures more tries could fail, @intervals and a half ago. */
static struct contig_node *node_of(struct kunit *test, unsigned int failures, int intervals)
{
	struct contig_node *node = kunit_kzalloc(test, sizeof(*node), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, node);
	mutex_init(&node->lock);
	mutex_init(&node->reclaim);
	node->failures = failures;
	node->refilled = jiffies - intervals * FAILURES_INTERVAL - FAILURES_INTERVAL / 2;
	return node;
}

static const struct tshare_request any = { .nr_pages = 1, .node = NUMA_NO_NODE };

/* Not an exact number: the test may be interrupted for longer than an interval. */
static void one_failure_is_allowed_per_interval(struct kunit *test)
{
	struct contig_node *node = node_of(test, 2, 5);
	unsigned long start = node->refilled;

	KUNIT_ASSERT_EQ(test, 0, contig_node_lock(&any, node));
	mutex_unlock(&node->lock);
	KUNIT_EXPECT_GE(test, node->failures, 7U);
	KUNIT_EXPECT_EQ(test, start + (node->failures - 2) * FAILURES_INTERVAL, node->refilled);
}

static void part_of_an_interval_is_not_lost(struct kunit *test)
{
	struct contig_node *node = node_of(test, 1, 0);
	unsigned long start = node->refilled;

	KUNIT_ASSERT_EQ(test, 0, contig_node_lock(&any, node));
	mutex_unlock(&node->lock);
	KUNIT_EXPECT_EQ(test, start + (node->failures - 1) * FAILURES_INTERVAL, node->refilled);
}

static void failures_add_up_to_a_burst(struct kunit *test)
{
	struct contig_node *node = node_of(test, 3, 10 * FAILURES_BURST);

	KUNIT_ASSERT_EQ(test, 0, contig_node_lock(&any, node));
	mutex_unlock(&node->lock);
	KUNIT_EXPECT_EQ(test, (unsigned int)FAILURES_BURST, node->failures);
	KUNIT_EXPECT_TRUE(test, time_after_eq(jiffies, node->refilled));
}

static void search_waits_while_none_may_fail(struct kunit *test)
{
	struct contig_node *node = node_of(test, 0, 0);
	unsigned long start = jiffies;

	KUNIT_ASSERT_EQ(test, 0, contig_node_lock(&any, node));
	mutex_unlock(&node->lock);
	KUNIT_EXPECT_GE(test, node->failures, 1U);
	KUNIT_EXPECT_TRUE(test, time_after_eq(jiffies, start + FAILURES_INTERVAL));
}

static const struct tshare_request of_64 = { .nr_pages = 64, .node = NUMA_NO_NODE };

static void room_is_made_for_the_free_pages_and_then_for_the_run(struct kunit *test)
{
	struct contig_search search = { .req = &of_64, .class = HIGHEST };
	struct zone *zone = zone_of(test);

	KUNIT_EXPECT_EQ(test, 10UL + KEPT, contig_room(&search, zone, 10));
	KUNIT_EXPECT_EQ(test, 64UL + KEPT, contig_room(&search, zone, 10));
	KUNIT_EXPECT_EQ(test, 0UL, contig_room(&search, zone, 10));
	zone_free(zone);
}

/* The zone may be short of its reserves. */
static void room_is_made_for_a_run_without_free_pages(struct kunit *test)
{
	struct contig_search search = { .req = &of_64, .class = HIGHEST };
	struct zone *zone = zone_of(test);

	KUNIT_EXPECT_EQ(test, 1UL + KEPT, contig_room(&search, zone, 0));
	zone_free(zone);
}

static void no_room_is_made_that_the_zone_can_not_have(struct kunit *test)
{
	struct contig_search search = { .req = &of_64, .class = HIGHEST };
	struct zone *zone = zone_of(test);

	atomic_long_set(&zone->managed_pages, 64 + MINIMUM + KEPT - 1);
	KUNIT_EXPECT_EQ(test, 0UL, contig_room(&search, zone, 64));
	atomic_long_set(&zone->managed_pages, 64 + MINIMUM + KEPT);
	KUNIT_EXPECT_EQ(test, 64UL + KEPT, contig_room(&search, zone, 64));
	zone_free(zone);
}

/* A search reclaims nothing before it has been through all zones. */
static void run_that_a_zone_can_not_spare_is_noted(struct kunit *test)
{
	struct contig_search search = { .req = &of_64, .class = HIGHEST };
	struct zone *zone = zone_of(test);
	unsigned long bad;

	KUNIT_EXPECT_EQ(test, -ENOMEM, contig_try_run(&search, zone, 0, FREE, &bad));
	KUNIT_EXPECT_TRUE(test, search.refused);
	KUNIT_EXPECT_EQ(test, 0UL, search.room);
	KUNIT_EXPECT_EQ(test, 0U, search.tries);
	zone_free(zone);
}

/* A search that makes room, in a thread of its own. */
struct room_maker {
	struct contig_search search;
	struct contig_node *node;
	struct zone *zone;
	struct completion done;
	int err;
};

static int make_room(void *data)
{
	struct room_maker *maker = data;

	maker->err = contig_make_room(&maker->search, maker->node, maker->zone, FREE);
	complete(&maker->done);
	return 0;
}

/* Waits until the thread waits for a lock or has ended. */
static bool waits_or_ended(struct task_struct *thread, struct room_maker *maker)
{
	int tries;

	for (tries = 0; tries < 10000; tries++) {
		if (completion_done(&maker->done) ||
		    READ_ONCE(thread->__state) & TASK_UNINTERRUPTIBLE)
			return true;
		usleep_range(1000, 2000);
	}
	return false;
}

/* Both would count on the same page cache, and their pages are charged to nobody. */
static void one_search_of_a_node_makes_room_at_a_time(struct kunit *test)
{
	struct room_maker maker = {
		.search = { .req = &of_64, .class = HIGHEST },
		.node = node_of(test, 0, 0),
		.zone = zone_of(test),
	};
	struct task_struct *thread;

	/* The fake zone can't have that much, so nothing is reclaimed from it. */
	atomic_long_set(&maker.zone->managed_pages, 0);
	init_completion(&maker.done);
	mutex_lock(&maker.node->reclaim);
	thread = kthread_run(make_room, &maker, "tshare-kunit");
	if (!IS_ERR(thread)) {
		KUNIT_EXPECT_TRUE(test, waits_or_ended(thread, &maker));
		KUNIT_EXPECT_FALSE(test, completion_done(&maker.done));
	}
	mutex_unlock(&maker.node->reclaim);
	KUNIT_ASSERT_FALSE(test, IS_ERR(thread));
	wait_for_completion(&maker.done);
	KUNIT_EXPECT_EQ(test, -ENOMEM, maker.err);
	zone_free(maker.zone);
}

/* The second search reclaims nothing. */
static void room_that_another_search_has_made_is_looked_at(struct kunit *test)
{
	struct contig_search search = { .req = &of_64, .class = HIGHEST };
	struct zone *zone = zone_of(test);

	KUNIT_EXPECT_EQ(test, -EAGAIN, contig_make_room(&search, node_of(test, 0, 0), zone, 1));
	KUNIT_EXPECT_EQ(test, 0UL, search.room);
	zone_free(zone);
}

static struct kunit_case contig_cases[] = {
	KUNIT_CASE(one_failure_is_allowed_per_interval),
	KUNIT_CASE(part_of_an_interval_is_not_lost),
	KUNIT_CASE(failures_add_up_to_a_burst),
	KUNIT_CASE(search_waits_while_none_may_fail),
	KUNIT_CASE(room_is_made_for_the_free_pages_and_then_for_the_run),
	KUNIT_CASE(room_is_made_for_a_run_without_free_pages),
	KUNIT_CASE(no_room_is_made_that_the_zone_can_not_have),
	KUNIT_CASE(run_that_a_zone_can_not_spare_is_noted),
	KUNIT_CASE(one_search_of_a_node_makes_room_at_a_time),
	KUNIT_CASE(room_that_another_search_has_made_is_looked_at),
	{}
};

static struct kunit_suite contig_suite = {
	.name = "tshare_alloc_contig",
	.test_cases = contig_cases,
};

kunit_test_suite(contig_suite);
