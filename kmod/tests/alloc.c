// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of alloc.c, which includes this: which folios of a pinned run are withheld. Some
 * kernels run these before the module's initialisation, when only the page allocator is asked.
 */
#include <kunit/test.h>

#define FEW_PAGES 3UL

static unsigned long run_of(struct kunit *test, unsigned long nr_pages)
{
	const struct tshare_request req = { .nr_pages = nr_pages, .node = NUMA_NO_NODE };
	unsigned long pfn;

	KUNIT_ASSERT_EQ(test, 0, tshare_allocator_buddy.alloc(&req, &pfn));
	return pfn;
}

static void nothing_is_withheld_without_pins(struct kunit *test)
{
	LIST_HEAD(pinned);

	KUNIT_EXPECT_EQ(test, 0UL, tshare_run_release(run_of(test, FEW_PAGES), FEW_PAGES, &pinned));
	KUNIT_EXPECT_TRUE(test, list_empty(&pinned));
}

static void expect_withheld(struct kunit *test, unsigned long nr_pages, unsigned long pinned_page)
{
	unsigned long pfn = run_of(test, nr_pages);
	struct page *page = pfn_to_page(pfn + pinned_page);
	unsigned long nr = folio_nr_pages(page_folio(page));
	LIST_HEAD(pinned);

	get_page(page);
	get_page(page);
	KUNIT_EXPECT_EQ(test, nr, tshare_run_release(pfn, nr_pages, &pinned));
	KUNIT_EXPECT_EQ(test, 0UL, tshare_pinned_free(&pinned));
	put_page(page);
	KUNIT_EXPECT_EQ(test, 0UL, tshare_pinned_free(&pinned));
	KUNIT_EXPECT_FALSE(test, list_empty(&pinned));
	put_page(page);
	KUNIT_EXPECT_EQ(test, nr, tshare_pinned_free(&pinned));
	KUNIT_EXPECT_TRUE(test, list_empty(&pinned));
}

static void pinned_folio_is_withheld_until_its_last_pin_goes(struct kunit *test)
{
	expect_withheld(test, TSHARE_CHUNK_PAGES, 0);
	expect_withheld(test, TSHARE_CHUNK_PAGES, TSHARE_CHUNK_PAGES / 2);
	expect_withheld(test, TSHARE_CHUNK_PAGES, TSHARE_CHUNK_PAGES - 1);
	expect_withheld(test, FEW_PAGES, 0);
	expect_withheld(test, FEW_PAGES, FEW_PAGES - 1);
}

static void folios_are_withheld_one_by_one(struct kunit *test)
{
	unsigned long large = run_of(test, TSHARE_CHUNK_PAGES), small = run_of(test, 1);
	struct page *first = pfn_to_page(large), *last = pfn_to_page(small);
	LIST_HEAD(pinned);

	get_page(first);
	get_page(last);
	KUNIT_EXPECT_EQ(test, TSHARE_CHUNK_PAGES,
			tshare_run_release(large, TSHARE_CHUNK_PAGES, &pinned));
	KUNIT_EXPECT_EQ(test, 1UL, tshare_run_release(small, 1, &pinned));
	put_page(last);
	KUNIT_EXPECT_EQ(test, 1UL, tshare_pinned_free(&pinned));
	KUNIT_EXPECT_TRUE(test, list_is_singular(&pinned));
	put_page(first);
	KUNIT_EXPECT_EQ(test, TSHARE_CHUNK_PAGES, tshare_pinned_free(&pinned));
}

/* As when the module is unloaded: the last pin frees the folio. */
static void abandoned_folio_is_its_last_users(struct kunit *test)
{
	unsigned long pfn = run_of(test, 1);
	struct page *page = pfn_to_page(pfn);
	LIST_HEAD(pinned);

	get_page(page);
	tshare_run_release(pfn, 1, &pinned);
	tshare_pinned_abandon(&pinned);
	KUNIT_EXPECT_TRUE(test, list_empty(&pinned));
	KUNIT_EXPECT_EQ(test, 1, page_count(page));
	put_page(page);
}

static struct kunit_case alloc_cases[] = {
	KUNIT_CASE(nothing_is_withheld_without_pins),
	KUNIT_CASE(pinned_folio_is_withheld_until_its_last_pin_goes),
	KUNIT_CASE(folios_are_withheld_one_by_one),
	KUNIT_CASE(abandoned_folio_is_its_last_users),
	{}
};

static struct kunit_suite alloc_suite = {
	.name = "tshare_alloc",
	.test_cases = alloc_cases,
};

kunit_test_suite(alloc_suite);
