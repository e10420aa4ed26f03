// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of alloc-pool.c, which includes this: which free blocks of a pool are lent. No
 * test but the last touches the pool's pages.
 */
#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/sizes.h>

/* Across 4 GiB, whether or not there is memory. */
#define NR_BLOCKS 64UL
#define NR_LOW	  32UL
#define BASE	  (PHYS_PFN(SZ_4G) - NR_LOW * TSHARE_BLOCK_PAGES)
#define ROUNDS	  2000

static int pool_test_init(struct kunit *test)
{
	test->priv = tshare_pool_new(0, BASE / TSHARE_BLOCK_PAGES, NR_BLOCKS);
	return test->priv ? 0 : -ENOMEM;
}

static void pool_test_exit(struct kunit *test)
{
	tshare_pool_free(test->priv);
}

static unsigned long nth(unsigned long i)
{
	return BASE + i * TSHARE_BLOCK_PAGES;
}

/* Makes a block free. */
static void give_back(struct tshare_pool *pool, unsigned long i, bool zeroed)
{
	spin_lock(&pool->lock);
	__set_bit(i, pool->free);
	__assign_bit(i, pool->dirty, !zeroed);
	spin_unlock(&pool->lock);
}

/* Adds a block for each letter: d for a dirty one, z for a zeroed one. Others are gaps. */
static void add_all(struct tshare_pool *pool, const char *letters)
{
	unsigned long i;

	for (i = 0; letters[i]; i++)
		if (letters[i] == 'z' || letters[i] == 'd')
			give_back(pool, i, letters[i] == 'z');
}

/* Takes blocks as regions do: zeroed ones first. */
static unsigned long cut(struct tshare_pool *pool, unsigned long nr, bool dma32)
{
	return pool_cut(pool, nr * TSHARE_BLOCK_PAGES, dma32, true) ?:
		       pool_cut(pool, nr * TSHARE_BLOCK_PAGES, dma32, false);
}

static void blocks_side_by_side_are_one_run(struct kunit *test)
{
	static const u8 orders[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
					{ 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
	struct tshare_pool *pool = test->priv;
	int i, j;

	add_all(pool, "zzz");
	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		KUNIT_EXPECT_EQ(test, 3UL, tshare_pool_count_free(pool, true));
		KUNIT_EXPECT_EQ(test, nth(0), cut(pool, 3, false));
		KUNIT_EXPECT_EQ(test, 0UL, tshare_pool_count_free(pool, false));
		for (j = 0; j < 3; j++)
			give_back(pool, orders[i][j], true);
	}
}

static void dirty_blocks_are_free_and_not_zeroed(struct kunit *test)
{
	add_all(test->priv, "zzddz");
	KUNIT_EXPECT_EQ(test, 5UL, tshare_pool_count_free(test->priv, false));
	KUNIT_EXPECT_EQ(test, 3UL, tshare_pool_count_free(test->priv, true));
}

static void no_run_crosses_a_gap(struct kunit *test)
{
	add_all(test->priv, "zz-dd");
	KUNIT_EXPECT_EQ(test, 0UL, cut(test->priv, 3, false));
}

static void no_run_for_32_bits_crosses_4_gib(struct kunit *test)
{
	struct tshare_pool *pool = test->priv;
	int i;

	for (i = NR_LOW - 3; i < NR_LOW + 2; i++)
		give_back(pool, i, true);
	KUNIT_EXPECT_EQ(test, 0UL, cut(pool, 4, true));
	KUNIT_EXPECT_EQ(test, nth(NR_LOW - 2), cut(pool, 2, true));
	KUNIT_EXPECT_EQ(test, nth(NR_LOW - 3), cut(pool, 1, true));
	KUNIT_EXPECT_EQ(test, 0UL, cut(pool, 1, true));
	KUNIT_EXPECT_EQ(test, nth(NR_LOW), cut(pool, 2, false));
}

static void smallest_zeroed_run_that_suffices_is_cut_at_its_end(struct kunit *test)
{
	struct tshare_pool *pool = test->priv;

	add_all(pool, "zzzz-zzz-zzz-zz-dd");
	KUNIT_EXPECT_EQ(test, nth(13), cut(pool, 2, false));
	/* Of two equal runs the higher. */
	KUNIT_EXPECT_EQ(test, nth(10), cut(pool, 2, false));
	KUNIT_EXPECT_EQ(test, nth(9), cut(pool, 1, false));
	KUNIT_EXPECT_EQ(test, nth(0), cut(pool, 4, false));
}

static void dirty_memory_is_taken_where_zeroed_does_not_suffice(struct kunit *test)
{
	struct tshare_pool *pool = test->priv;

	add_all(pool, "ddzzdd-dddd-z");
	KUNIT_EXPECT_EQ(test, nth(7), cut(pool, 4, false));
	KUNIT_EXPECT_EQ(test, nth(1), cut(pool, 5, false));
	KUNIT_EXPECT_EQ(test, nth(12), cut(pool, 1, false));
	KUNIT_EXPECT_EQ(test, nth(0), cut(pool, 1, false));
	KUNIT_EXPECT_EQ(test, 0UL, cut(pool, 1, false));
}

static void smallest_run_that_suffices_is_cut_at_its_end(struct kunit *test)
{
	struct tshare_pool *pool = test->priv;

	add_all(pool, "zdzdzd-dzdz-zdzd-dzd");
	KUNIT_EXPECT_EQ(test, nth(12), cut(pool, 4, false));
	KUNIT_EXPECT_EQ(test, nth(17), cut(pool, 3, false));
	KUNIT_EXPECT_EQ(test, nth(8), cut(pool, 3, false));
	KUNIT_EXPECT_EQ(test, nth(1), cut(pool, 5, false));
	KUNIT_EXPECT_EQ(test, nth(0), cut(pool, 1, false));
	KUNIT_EXPECT_EQ(test, nth(7), cut(pool, 1, false));
	KUNIT_EXPECT_EQ(test, 0UL, tshare_pool_count_free(pool, false));
}

/* How many blocks from @at on are free, or zeroed. */
static unsigned long run(const char *state, unsigned long at, unsigned long end, bool zeroed)
{
	unsigned long nr = 0;

	for (; at < end && (state[at] == 'z' || (!zeroed && state[at] == 'd')); at++)
		nr++;
	return nr;
}

/* The length of the longest run. */
static unsigned long longest(const char *state, unsigned long end, bool zeroed)
{
	unsigned long i, most = 0;

	for (i = 0; i < end; i++)
		most = max(most, run(state, i, end, zeroed));
	return most;
}

/* Lends and takes back at random, and compares with a model of each block's state. */
static void every_run_that_exists_is_found(struct kunit *test)
{
	struct tshare_pool *pool = test->priv;
	char *state = kunit_kzalloc(test, NR_BLOCKS, GFP_KERNEL);
	unsigned long i, at, nr, end, pfn;
	struct rnd_state random;
	int round;

	KUNIT_ASSERT_NOT_NULL(test, state);
	prandom_seed_state(&random, 1);
	memset(state, '-', NR_BLOCKS);
	for (round = 0; round < ROUNDS; round++) {
		at = prandom_u32_state(&random) % NR_BLOCKS;
		if (state[at] == '-') {
			state[at] = prandom_u32_state(&random) % 2 ? 'z' : 'd';
			give_back(pool, at, state[at] == 'z');
			continue;
		}
		nr = prandom_u32_state(&random) % 6 + 1;
		end = prandom_u32_state(&random) % 2 ? NR_LOW : NR_BLOCKS;
		pfn = cut(pool, nr, end == NR_LOW);
		KUNIT_ASSERT_EQ(test, longest(state, end, false) >= nr, pfn != 0);
		if (!pfn)
			continue;
		at = (pfn - BASE) / TSHARE_BLOCK_PAGES;
		KUNIT_ASSERT_GE(test, run(state, at, end, longest(state, end, true) >= nr), nr);
		memset(state + at, '-', nr);
		for (i = 0, nr = 0; i < NR_BLOCKS; i++)
			nr += state[i] != '-';
		KUNIT_ASSERT_EQ(test, nr, tshare_pool_count_free(pool, false));
	}
}

static bool is_zero(struct page *page)
{
	return !memchr_inv(page_address(page), 0, PAGE_SIZE);
}

/* A block is lent and comes back while the worker is in the middle of it. */
static void block_that_comes_back_is_zeroed_from_its_beginning(struct kunit *test)
{
	struct page *pages = alloc_pages(GFP_KERNEL, ilog2(TSHARE_BLOCK_PAGES));
	struct tshare_pool *pool;
	unsigned long i;

	KUNIT_ASSERT_NOT_NULL(test, pages);
	pool = tshare_pool_new(0, page_to_pfn(pages) / TSHARE_BLOCK_PAGES, 1);
	KUNIT_ASSERT_NOT_NULL(test, pool);
	give_back(pool, 0, false);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_TRUE(test, tshare_pool_zero_page(pool));
	KUNIT_EXPECT_EQ(test, page_to_pfn(pages), cut(pool, 1, false));
	KUNIT_EXPECT_FALSE(test, tshare_pool_zero_page(pool));
	memset(page_address(pages), 0xa5, TSHARE_BLOCK_BYTES);
	give_back(pool, 0, false);
	for (i = 0; i < TSHARE_BLOCK_PAGES; i++)
		KUNIT_EXPECT_TRUE(test, tshare_pool_zero_page(pool));
	KUNIT_EXPECT_FALSE(test, tshare_pool_zero_page(pool));
	KUNIT_EXPECT_EQ(test, 1UL, tshare_pool_count_free(pool, true));
	for (i = 0; i < TSHARE_BLOCK_PAGES; i++)
		KUNIT_EXPECT_TRUE(test, is_zero(pages + i));
	tshare_pool_free(pool);
	__free_pages(pages, ilog2(TSHARE_BLOCK_PAGES));
}

static struct kunit_case pool_cases[] = {
	KUNIT_CASE(blocks_side_by_side_are_one_run),
	KUNIT_CASE(dirty_blocks_are_free_and_not_zeroed),
	KUNIT_CASE(no_run_crosses_a_gap),
	KUNIT_CASE(no_run_for_32_bits_crosses_4_gib),
	KUNIT_CASE(smallest_zeroed_run_that_suffices_is_cut_at_its_end),
	KUNIT_CASE(dirty_memory_is_taken_where_zeroed_does_not_suffice),
	KUNIT_CASE(smallest_run_that_suffices_is_cut_at_its_end),
	KUNIT_CASE(every_run_that_exists_is_found),
	KUNIT_CASE(block_that_comes_back_is_zeroed_from_its_beginning),
	{}
};

static struct kunit_suite pool_suite = {
	.name = "tshare_alloc_pool",
	.init = pool_test_init,
	.exit = pool_test_exit,
	.test_cases = pool_cases,
};

kunit_test_suite(pool_suite);
