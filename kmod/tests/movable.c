// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit tests of movable.c, which includes this: which pages a search takes for movable. Some
 * kernels run these tests before tshare_fence_init().
 */
#include <kunit/test.h>
#include <linux/file.h>
#include <linux/preempt.h>
#include <linux/shmem_fs.h>

#include "../alloc.h"

/* More pages than a CPU's list on their way to the LRU holds. */
#define FILE_PAGES 64

/* A page of a file, on the LRU, that only the page cache has a reference to. */
static struct page *file_page(struct kunit *test, struct file **file)
{
	struct page *page, *first = NULL;
	int i;

	*file = tshare_shmem_file_setup("tshare-kunit", FILE_PAGES * PAGE_SIZE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(*file));
	migrate_disable();
	for (i = 0; i < FILE_PAGES; i++) {
		page = shmem_read_mapping_page((*file)->f_mapping, i);
		if (IS_ERR(page))
			break;
		put_page(page);
		first = first ?: page;
	}
	migrate_enable();
	KUNIT_ASSERT_EQ(test, FILE_PAGES, i);
	return first;
}

static unsigned long usable(struct page *page, bool lenient)
{
	unsigned long free = 0, nr;

	down_read(&fence);
	nr = tshare_movable_pages(page_zone(page), page_to_pfn(page), 1, lenient, &free);
	up_read(&fence);
	return nr + free;
}

static void reference_too_many_is_a_pin_but_for_a_lenient_search(struct kunit *test)
{
	struct file *file;
	struct page *page = file_page(test, &file);
	int count = page_count(page);

	KUNIT_EXPECT_EQ(test, 1UL, usable(page, false));
	get_page(page);
	KUNIT_EXPECT_EQ(test, 0UL, usable(page, false));
	KUNIT_EXPECT_EQ(test, 1UL, usable(page, true));
	get_page(page);
	KUNIT_EXPECT_EQ(test, 0UL, usable(page, true));
	put_page(page);
	put_page(page);
	KUNIT_EXPECT_EQ(test, count, page_count(page));
	fput(file);
}

static void memory_that_goes_offline_is_left_alone(struct kunit *test)
{
	struct file *file;
	struct page *page = file_page(test, &file);

	down_write(&fence);
	fence_start = page_to_pfn(page);
	fence_end = fence_start + 1;
	up_write(&fence);
	KUNIT_EXPECT_EQ(test, 0UL, usable(page, false));
	KUNIT_EXPECT_EQ(test, 0UL, usable(page, true));
	down_write(&fence);
	fence_end = fence_start;
	up_write(&fence);
	KUNIT_EXPECT_EQ(test, 1UL, usable(page, false));
	fput(file);
}

static void memory_of_the_kernel_is_in_the_way(struct kunit *test)
{
	struct page *page = alloc_page(GFP_KERNEL);
	void *object = kunit_kzalloc(test, SZ_64, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_ASSERT_NOT_NULL(test, object);
	KUNIT_EXPECT_EQ(test, 0UL, usable(page, false));
	KUNIT_EXPECT_EQ(test, 0UL, usable(page, true));
	KUNIT_EXPECT_EQ(test, 0UL, usable(virt_to_page(object), true));
	__free_page(page);
}

/* A reference of the search's own would make it look pinned. */
static void memory_of_regions_is_in_the_way(struct kunit *test)
{
	const struct tshare_request req = {
		.nr_pages = TSHARE_CHUNK_PAGES,
		.node = NUMA_NO_NODE,
	};
	unsigned long pfn;

	KUNIT_ASSERT_EQ(test, 0, tshare_allocator_buddy.alloc(&req, &pfn));
	KUNIT_EXPECT_EQ(test, 0UL, usable(pfn_to_page(pfn), true));
	tshare_run_free(pfn, req.nr_pages);
}

static struct kunit_case movable_cases[] = {
	KUNIT_CASE(reference_too_many_is_a_pin_but_for_a_lenient_search),
	KUNIT_CASE(memory_that_goes_offline_is_left_alone),
	KUNIT_CASE(memory_of_the_kernel_is_in_the_way),
	KUNIT_CASE(memory_of_regions_is_in_the_way),
	{}
};

static struct kunit_suite movable_suite = {
	.name = "tshare_movable",
	.test_cases = movable_cases,
};

kunit_test_suite(movable_suite);
