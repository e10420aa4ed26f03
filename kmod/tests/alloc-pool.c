// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of alloc-pool.c, which includes this: how the free blocks of a pool are kept. A
 * pool here has numbers of page frames, of which nobody touches the pages.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/sizes.h>

/* Within one zone, and below 4 GiB. */
#define BASE	  PHYS_PFN(SZ_512M)
#define NR_BLOCKS 64UL
#define ROUNDS	  2000

static int pool_test_init(struct kunit *test)
{
	struct tshare_pool *pool = kunit_kzalloc(test, sizeof(*pool), GFP_KERNEL);

	if (!pool)
		return -ENOMEM;
	tshare_pool_setup(pool, 0);
	test->priv = pool;
	return 0;
}

static void pool_test_exit(struct kunit *test)
{
	struct tshare_pool *pool = test->priv;

	xa_destroy(&pool->blocks);
}

static unsigned long nth(unsigned long i)
{
	return BASE + i * TSHARE_BLOCK_PAGES;
}

/* Makes a block free that is in the pool. */
static void give_back(struct kunit *test, unsigned long pfn, bool zeroed)
{
	struct tshare_pool *pool = test->priv;
	struct tshare_block *block = pool_load(pool, pfn);

	block->zeroed = zeroed ? TSHARE_BLOCK_PAGES : 0;
	spin_lock(&pool->lock);
	pool_insert(pool, block);
	spin_unlock(&pool->lock);
}

static void add(struct kunit *test, unsigned long pfn, bool zeroed)
{
	struct tshare_block *block = kunit_kzalloc(test, sizeof(*block), GFP_KERNEL);
	struct tshare_pool *pool = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, block);
	block->pfn = pfn;
	KUNIT_ASSERT_EQ(test, 0, xa_insert(&pool->blocks, block_index(pfn), block, GFP_KERNEL));
	pool->size++;
	give_back(test, pfn, zeroed);
}

/* Adds a block for each letter: d for one that is dirty, z for a zeroed one; others are gaps. */
static void add_all(struct kunit *test, const char *letters)
{
	unsigned long i;

	for (i = 0; letters[i]; i++)
		if (letters[i] == 'z' || letters[i] == 'd')
			add(test, nth(i), letters[i] == 'z');
}

/* The extent behind another one, or the first one; NULL if there is none. */
static struct tshare_block *next_extent(struct tshare_pool *pool, struct tshare_block *extent)
{
	unsigned long index = extent ? block_index(span_end(&extent->extent)) : 0;
	struct tshare_block *block = xa_find(&pool->blocks, &index, ULONG_MAX, XA_PRESENT);

	while (block && !block->extent.nr_blocks)
		block = xa_find_after(&pool->blocks, &index, ULONG_MAX, XA_PRESENT);
	return block;
}

static unsigned long nr_extents(struct tshare_pool *pool)
{
	struct tshare_block *extent = NULL;
	unsigned long nr = 0;

	while ((extent = next_extent(pool, extent)))
		nr++;
	return nr;
}

static void expect_extent(struct kunit *test, struct tshare_block *extent)
{
	struct tshare_pool *pool = test->priv;
	unsigned long i, nr = extent->extent.nr_blocks;

	KUNIT_EXPECT_EQ(test, extent->pfn, extent->extent.pfn);
	for (i = 0; i < nr; i++) {
		struct tshare_block *block = pool_load(pool, extent->pfn + i * TSHARE_BLOCK_PAGES);

		KUNIT_ASSERT_NOT_NULL(test, block);
		KUNIT_EXPECT_EQ(test, block_is_zeroed(extent), block_is_zeroed(block));
		KUNIT_EXPECT_EQ(test, i && i < nr - 1 ? 0 : nr, block->extent.nr_blocks);
	}
}

static bool are_side_by_side(struct tshare_pool *pool, struct tshare_block *low,
			     struct tshare_block *high)
{
	return span_end(&low->extent) == high->pfn && pool_load_beside(pool, high->pfn, high->pfn);
}

/* Returns how many spans there are, which lie in the right order. */
static unsigned long expect_sorted(struct kunit *test, const struct rb_root *tree, bool low)
{
	struct rb_node *node, *last = NULL;
	unsigned long nr = 0;

	for (node = rb_first(tree); node; node = rb_next(node)) {
		KUNIT_EXPECT_EQ(test, low,
				span_is_low(rb_entry(node, struct tshare_span, size_node)));
		if (last)
			KUNIT_EXPECT_TRUE(test, span_smaller(last, node));
		last = node;
		nr++;
	}
	return nr;
}

/* The stretch from @first to the end of @last is there, behind @before; returns its node. */
static struct rb_node *expect_stretch(struct kunit *test, struct rb_node *before,
				      struct tshare_block *first, struct tshare_block *last)
{
	struct tshare_pool *pool = test->priv;
	struct rb_node *node = before ? rb_next(before) : rb_first(&pool->stretches);

	KUNIT_ASSERT_PTR_EQ(test, &first->stretch_node, node);
	KUNIT_EXPECT_EQ(test, first->pfn, first->stretch.pfn);
	KUNIT_EXPECT_EQ(test, span_end(&last->extent), span_end(&first->stretch));
	return node;
}

/* What the trees, the list and the numbers say of the free blocks is the same. */
static void expect_consistent(struct kunit *test)
{
	struct tshare_pool *pool = test->priv;
	unsigned long free = 0, zeroed = 0, nr = 0, nr_dirty = 0, nr_listed = 0, nr_stretches = 0;
	struct tshare_block *extent = NULL, *last = NULL, *first = NULL;
	struct rb_node *stretch = NULL;
	int i;

	while ((extent = next_extent(pool, extent))) {
		expect_extent(test, extent);
		if (!last || !are_side_by_side(pool, last, extent)) {
			if (last)
				stretch = expect_stretch(test, stretch, first, last);
			first = extent;
			nr_stretches++;
		} else {
			KUNIT_EXPECT_NE(test, block_is_zeroed(last), block_is_zeroed(extent));
		}
		nr++;
		free += extent->extent.nr_blocks;
		zeroed += block_is_zeroed(extent) ? extent->extent.nr_blocks : 0;
		nr_dirty += !block_is_zeroed(extent);
		last = extent;
	}
	if (last)
		stretch = expect_stretch(test, stretch, first, last);
	KUNIT_EXPECT_PTR_EQ(test, stretch, rb_last(&pool->stretches));
	for (i = 0; i < 2; i++) {
		nr_dirty -= expect_sorted(test, &pool->extents[false][i], i);
		nr -= expect_sorted(test, &pool->extents[true][i], i);
		nr_stretches -= expect_sorted(test, &pool->stretch_sizes[i], i);
	}
	list_for_each_entry(extent, &pool->dirty, dirty_node) {
		KUNIT_EXPECT_FALSE(test, block_is_zeroed(extent));
		nr_listed++;
	}
	KUNIT_EXPECT_EQ(test, free, pool->free);
	KUNIT_EXPECT_EQ(test, zeroed, pool->zeroed);
	KUNIT_EXPECT_EQ(test, nr_listed, nr);
	KUNIT_EXPECT_EQ(test, 0UL, nr_dirty);
	KUNIT_EXPECT_EQ(test, 0UL, nr_stretches);
}

static void blocks_side_by_side_are_one_extent(struct kunit *test)
{
	static const u8 orders[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
					{ 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
	struct tshare_pool *pool = test->priv;
	int i, j;

	add_all(test, "zzz");
	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		KUNIT_EXPECT_EQ(test, 1UL, nr_extents(pool));
		KUNIT_EXPECT_EQ(test, nth(0), pool_cut(pool, 3, false));
		KUNIT_EXPECT_EQ(test, 0UL, nr_extents(pool));
		for (j = 0; j < 3; j++)
			give_back(test, nth(orders[i][j]), true);
		expect_consistent(test);
	}
}

static void dirty_blocks_are_extents_of_their_own(struct kunit *test)
{
	add_all(test, "zzddz");
	KUNIT_EXPECT_EQ(test, 3UL, nr_extents(test->priv));
	expect_consistent(test);
}

static void no_run_crosses_a_gap(struct kunit *test)
{
	add_all(test, "zz-dd");
	KUNIT_EXPECT_EQ(test, 0UL, pool_cut(test->priv, 3, false));
	expect_consistent(test);
}

/* Frames there need no memory: the pages are not looked at. */
static void no_run_crosses_4_gib(struct kunit *test)
{
	struct tshare_pool *pool = test->priv;
	unsigned long border = PHYS_PFN(SZ_4G);

	add(test, border, true);
	add(test, border - TSHARE_BLOCK_PAGES, true);
	KUNIT_EXPECT_EQ(test, 2UL, nr_extents(pool));
	KUNIT_EXPECT_EQ(test, 0UL, pool_cut(pool, 2, false));
	KUNIT_EXPECT_EQ(test, border - TSHARE_BLOCK_PAGES, pool_cut(pool, 1, true));
	KUNIT_EXPECT_EQ(test, 0UL, pool_cut(pool, 1, true));
	KUNIT_EXPECT_EQ(test, border, pool_cut(pool, 1, false));
}

static void no_run_crosses_a_zones_border(struct kunit *test)
{
	struct zone *zone = &NODE_DATA(0)->node_zones[ZONE_MOVABLE];
	unsigned long border = zone->zone_start_pfn;

	if (!populated_zone(zone))
		kunit_skip(test, "node 0 has no ZONE_MOVABLE: boot with movablecore=256M");
	add(test, border - TSHARE_BLOCK_PAGES, true);
	add(test, border, true);
	KUNIT_EXPECT_EQ(test, 2UL, nr_extents(test->priv));
	KUNIT_EXPECT_EQ(test, 0UL, pool_cut(test->priv, 2, false));
	expect_consistent(test);
}

static void smallest_zeroed_extent_that_suffices_is_cut_at_its_end(struct kunit *test)
{
	struct tshare_pool *pool = test->priv;

	add_all(test, "zzzz-zzz-zzz-zz-dd");
	KUNIT_EXPECT_EQ(test, nth(13), pool_cut(pool, 2, false));
	/* Of two equal ones the higher. */
	KUNIT_EXPECT_EQ(test, nth(10), pool_cut(pool, 2, false));
	KUNIT_EXPECT_EQ(test, nth(9), pool_cut(pool, 1, false));
	KUNIT_EXPECT_EQ(test, nth(0), pool_cut(pool, 4, false));
	expect_consistent(test);
}

static void dirty_memory_is_taken_where_zeroed_does_not_suffice(struct kunit *test)
{
	struct tshare_pool *pool = test->priv;

	add_all(test, "ddzzdd-dddd-z");
	KUNIT_EXPECT_EQ(test, nth(7), pool_cut(pool, 4, false));
	KUNIT_EXPECT_EQ(test, nth(1), pool_cut(pool, 5, false));
	KUNIT_EXPECT_EQ(test, nth(12), pool_cut(pool, 1, false));
	KUNIT_EXPECT_EQ(test, nth(0), pool_cut(pool, 1, false));
	KUNIT_EXPECT_EQ(test, 0UL, pool_cut(pool, 1, false));
	expect_consistent(test);
}

static void smallest_stretch_that_suffices_is_cut_at_its_end(struct kunit *test)
{
	struct tshare_pool *pool = test->priv;

	add_all(test, "zdzdzd-dzdz-zdzd-dzd");
	KUNIT_EXPECT_EQ(test, nth(12), pool_cut(pool, 4, false));
	KUNIT_EXPECT_EQ(test, nth(17), pool_cut(pool, 3, false));
	KUNIT_EXPECT_EQ(test, nth(8), pool_cut(pool, 3, false));
	expect_consistent(test);
	KUNIT_EXPECT_EQ(test, nth(1), pool_cut(pool, 5, false));
	KUNIT_EXPECT_EQ(test, nth(0), pool_cut(pool, 1, false));
	KUNIT_EXPECT_EQ(test, nth(7), pool_cut(pool, 1, false));
	KUNIT_EXPECT_EQ(test, 0UL, pool->free);
	expect_consistent(test);
}

/* How many blocks from @at on are free, or zeroed. */
static unsigned long stretch(const char *state, unsigned long at, bool zeroed)
{
	unsigned long nr = 0;

	for (; at < NR_BLOCKS && (state[at] == 'z' || (!zeroed && state[at] == 'd')); at++)
		nr++;
	return nr;
}

/* The longest stretch. */
static unsigned long longest(const char *state, bool zeroed)
{
	unsigned long i, most = 0;

	for (i = 0; i < NR_BLOCKS; i++)
		most = max(most, stretch(state, i, zeroed));
	return most;
}

/* Lends and takes back at random, beside a model that knows each block's state. */
static void every_run_that_exists_is_found(struct kunit *test)
{
	struct tshare_pool *pool = test->priv;
	char *state = kunit_kzalloc(test, NR_BLOCKS, GFP_KERNEL);
	struct rnd_state random;
	unsigned long i, at, nr, pfn;
	int round;

	KUNIT_ASSERT_NOT_NULL(test, state);
	prandom_seed_state(&random, 1);
	for (i = 0; i < NR_BLOCKS; i++) {
		add(test, nth(i), true);
		state[i] = 'z';
	}
	for (round = 0; round < ROUNDS; round++) {
		at = prandom_u32_state(&random) % NR_BLOCKS;
		if (state[at] == '-') {
			state[at] = prandom_u32_state(&random) % 2 ? 'z' : 'd';
			give_back(test, nth(at), state[at] == 'z');
		} else {
			nr = prandom_u32_state(&random) % 6 + 1;
			pfn = pool_cut(pool, nr, prandom_u32_state(&random) % 2);
			KUNIT_ASSERT_EQ(test, longest(state, false) >= nr, pfn != 0);
			if (!pfn)
				continue;
			at = (pfn - BASE) / TSHARE_BLOCK_PAGES;
			KUNIT_ASSERT_GE(test, stretch(state, at, longest(state, true) >= nr), nr);
			memset(state + at, '-', nr);
		}
		expect_consistent(test);
		cond_resched();
	}
}

static struct kunit_case pool_cases[] = {
	KUNIT_CASE(blocks_side_by_side_are_one_extent),
	KUNIT_CASE(dirty_blocks_are_extents_of_their_own),
	KUNIT_CASE(no_run_crosses_a_gap),
	KUNIT_CASE(no_run_crosses_4_gib),
	KUNIT_CASE(no_run_crosses_a_zones_border),
	KUNIT_CASE(smallest_zeroed_extent_that_suffices_is_cut_at_its_end),
	KUNIT_CASE(dirty_memory_is_taken_where_zeroed_does_not_suffice),
	KUNIT_CASE(smallest_stretch_that_suffices_is_cut_at_its_end),
	KUNIT_CASE(every_run_that_exists_is_found),
	{}
};

static struct kunit_suite pool_suite = {
	.name = "tshare_alloc_pool",
	.init = pool_test_init,
	.exit = pool_test_exit,
	.test_cases = pool_cases,
};

kunit_test_suite(pool_suite);
