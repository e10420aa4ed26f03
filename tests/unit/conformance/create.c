// SPDX-License-Identifier: MIT
/* The creation of regions: sizes, names, options, and their memory. */
#include <errno.h>
#include <string.h>

#include "../util.h"

TEST(region_is_zeroed)
{
	struct tshare_region *region;

	CHECK(!tshare_region_create(ctx, NULL, 1 << 20, NULL, 0, NULL, &region));
	CHECK(all_zero(tshare_region_get_data(region), 1 << 20));
	tshare_region_unref(region);
}

TEST(region_is_zeroed_when_its_memory_was_used_before)
{
	struct tshare_region *region;
	int i;

	for (i = 0; i < 4; i++) {
		CHECK(!tshare_region_create(ctx, NULL, 1 << 20, NULL, 0, NULL, &region));
		CHECK(all_zero(tshare_region_get_data(region), 1 << 20));
		memset(tshare_region_get_data(region), 0xff, 1 << 20);
		tshare_region_unref(region);
	}
}

TEST(size_is_rounded_up_to_pages)
{
	struct tshare_limits limits = limits_of(ctx);
	struct tshare_region *region;

	CHECK(!tshare_region_create(ctx, NULL, limits.page_size + 1, NULL, 0, NULL, &region));
	CHECK(tshare_region_get_size(region) == 2 * limits.page_size);
	tshare_region_unref(region);
}

TEST(all_bytes_can_be_written)
{
	struct tshare_region *region = new_region(NULL);

	memset(tshare_region_get_data(region), 0x5a, tshare_region_get_size(region));
	tshare_region_unref(region);
}

TEST(create_rejects_no_size_and_no_tensors)
{
	struct tshare_region *region;

	CHECK(tshare_region_create(ctx, NULL, 0, NULL, 0, NULL, &region) == -EINVAL);
	CHECK(error_says("size: is 0"));
}

TEST(create_rejects_names_with_a_slash)
{
	struct tshare_region *region;

	CHECK(tshare_region_create(ctx, "a/b", 1, NULL, 0, NULL, &region) == -EINVAL);
	CHECK(error_says("name: has a '/': 'a/b'"));
}

TEST(create_rejects_invalid_names)
{
	struct tshare_region *region;

	CHECK(tshare_region_create(ctx, "", 1, NULL, 0, NULL, &region) == -EINVAL);
	CHECK(tshare_region_create(ctx, ".", 1, NULL, 0, NULL, &region) == -EINVAL);
	CHECK(tshare_region_create(ctx, "..", 1, NULL, 0, NULL, &region) == -EINVAL);
}

TEST(names_have_up_to_127_bytes)
{
	char name[TSHARE_NAME_MAX + 2];
	struct tshare_region *region;

	memset(name, 'n', sizeof(name));
	name[TSHARE_NAME_MAX + 1] = '\0';
	CHECK(tshare_region_create(ctx, name, 1, NULL, 0, NULL, &region) == -ENAMETOOLONG);
	name[TSHARE_NAME_MAX] = '\0';
	region = new_region(name);
	CHECK(exists(name));
	tshare_region_unref(region);
}

TEST(names_may_have_any_other_bytes)
{
	static const char *const stems[] = { "with space", "\n\t\x01", "\xff\xfe", "-", "tshare." };
	struct tshare_region *region;
	const char *name;
	size_t i;

	for (i = 0; i < sizeof(stems) / sizeof(stems[0]); i++) {
		name = unique(stems[i]);
		region = new_region(name);
		CHECK(exists(name));
		tshare_region_unref(region);
	}
}

TEST(create_rejects_a_name_that_is_taken)
{
	const char *name = unique("taken");
	struct tshare_region *region = new_region(name), *other;

	CHECK(tshare_region_create(ctx, name, 1, NULL, 0, NULL, &other) == -EEXIST);
	CHECK(error_says("is taken by a finished region; unlink it, or replace it"));
	tshare_region_unref(region);
}

TEST(create_rejects_unknown_flags)
{
	struct tshare_options options = { .size = sizeof(options) };
	struct tshare_region *region;

	options.flags = TSHARE_READONLY;
	CHECK(tshare_region_create(ctx, NULL, 1, NULL, 0, &options, &region) == -EINVAL);
	CHECK(error_says("options.flags"));
	options.flags = 1U << 31;
	CHECK(tshare_region_create(ctx, NULL, 1, NULL, 0, &options, &region) == -EINVAL);
}

/* Memory is never executable: a bit to execute is taken for a mistake. */
TEST(create_rejects_a_mode_beyond_0666)
{
	struct tshare_options options = { .size = sizeof(options) };
	struct tshare_region *region;
	uint32_t bit;

	for (bit = 1; bit; bit <<= 1) {
		options.mode = bit;
		if (bit & 0666)
			continue;
		CHECK(tshare_region_create(ctx, NULL, 1, NULL, 0, &options, &region) == -EINVAL);
		CHECK(error_says("options.mode"));
	}
}

TEST(options_of_zeros_mean_the_defaults)
{
	struct tshare_options options = { .size = sizeof(options) };
	struct tshare_region_info info = { .size = sizeof(info) };
	struct tshare_region *region;

	CHECK(!tshare_region_create(ctx, NULL, 1, NULL, 0, &options, &region));
	CHECK(!tshare_region_get_info(region, &info));
	CHECK(info.mode == 0600);
	CHECK(!(info.flags & TSHARE_DMA32));
	CHECK(info.lifetime == TSHARE_LIFETIME_MAKER);
	tshare_region_unref(region);
}

TEST(a_mode_without_permissions_has_a_value_of_its_own)
{
	struct tshare_options options = { .size = sizeof(options), .mode = TSHARE_MODE_NONE };
	struct tshare_region_info info = { .size = sizeof(info) };
	struct tshare_region *region;

	CHECK(!tshare_region_create(ctx, NULL, 1, NULL, 0, &options, &region));
	CHECK(!tshare_region_get_info(region, &info));
	CHECK(info.mode == 0);
	tshare_region_unref(region);
}

TEST(create_rejects_a_node_without_its_flag)
{
	struct tshare_options options = { .size = sizeof(options), .node = 1 };
	struct tshare_region *region;

	CHECK(tshare_region_create(ctx, NULL, 1, NULL, 0, &options, &region) == -EINVAL);
	CHECK(error_says("options.node: 1"));
	CHECK(error_says("TSHARE_NODE"));
	options.node = -1;
	CHECK(tshare_region_create(ctx, NULL, 1, NULL, 0, &options, &region) == -EINVAL);
}

TEST(create_rejects_a_negative_node)
{
	struct tshare_options options = { .size = sizeof(options), .node = -1 };
	struct tshare_region *region;

	options.flags = TSHARE_NODE;
	CHECK(tshare_region_create(ctx, NULL, 1, NULL, 0, &options, &region) == -EINVAL);
	CHECK(error_says("options.node: -1 is negative"));
}

TEST(create_rejects_unknown_lifetimes)
{
	struct tshare_options options = { .size = sizeof(options), .lifetime = 3 };
	struct tshare_region *region;

	CHECK(tshare_region_create(ctx, "x", 1, NULL, 0, &options, &region) == -EINVAL);
	CHECK(error_says("options.lifetime: 3"));
}

TEST(create_rejects_persistence_without_a_name)
{
	struct tshare_options options = { .size = sizeof(options) };
	struct tshare_region *region;

	options.lifetime = TSHARE_LIFETIME_PERSIST;
	CHECK(tshare_region_create(ctx, NULL, 1, NULL, 0, &options, &region) == -EINVAL);
	CHECK(error_says("options.lifetime: "));
}

/* Describes new memory with that flag, or returns false where it was refused. */
static bool describe_new(uint32_t flag, const char *refused, struct tshare_region_info *info)
{
	const struct tshare_options options = { .size = sizeof(options), .flags = flag };
	struct tshare_region *region;
	int err;

	info->size = sizeof(*info);
	err = tshare_region_create(ctx, NULL, 1, NULL, 0, &options, &region);
	if (!limits_of(ctx).contiguous) {
		CHECK(err == -EOPNOTSUPP);
		CHECK(error_says(refused));
		return false;
	}
	CHECK(!err);
	CHECK(!tshare_region_get_info(region, info));
	tshare_region_unref(region);
	return true;
}

TEST(contiguous_memory_is_allocated_or_refused)
{
	struct tshare_region_info info;

	if (!describe_new(TSHARE_CONTIGUOUS, "options.flags: TSHARE_CONTIGUOUS", &info))
		return;
	CHECK(info.flags & TSHARE_CONTIGUOUS);
	CHECK(info.segments == 1);
}

TEST(memory_below_4_gib_is_allocated_or_refused)
{
	struct tshare_region_info info;

	if (!describe_new(TSHARE_DMA32, "options.flags: TSHARE_DMA32", &info))
		return;
	CHECK(info.flags & TSHARE_DMA32);
	CHECK(info.phys_addr < 1ULL << 32);
}

TEST(memory_of_a_node_is_allocated_or_refused)
{
	struct tshare_region_info info;

	if (describe_new(TSHARE_NODE, "options.node", &info))
		CHECK(info.node == 0);
}

TEST(create_rejects_what_no_machine_has)
{
	struct tshare_region *region;
	int err;

	err = tshare_region_create(ctx, NULL, UINT64_MAX, NULL, 0, NULL, &region);
	CHECK(err == -ENOMEM);
	err = tshare_region_create(ctx, NULL, 1ULL << 62, NULL, 0, NULL, &region);
	CHECK(err == -ENOMEM || err == -EDQUOT);
	err = tshare_region_create(ctx, unique("large"), 1ULL << 45, NULL, 0, NULL, &region);
	CHECK(err == -ENOMEM || err == -EDQUOT);
	CHECK(error_says("size"));
	CHECK(!exists(unique("large")));
}

/* Few, since 8 MiB of locked memory are all that users have by default. */
#define N_LARGE 3

TEST(large_regions_are_aligned_to_huge_pages)
{
	struct tshare_limits limits = limits_of(ctx);
	struct tshare_region *regions[N_LARGE];
	size_t i;

	for (i = 0; i < N_LARGE; i++) {
		CHECK(!tshare_region_create(ctx, NULL, limits.huge_page_size + i * limits.page_size,
					    NULL, 0, NULL, &regions[i]));
		CHECK((uintptr_t)tshare_region_get_data(regions[i]) % limits.huge_page_size == 0);
		memset(tshare_region_get_data(regions[i]), 1, tshare_region_get_size(regions[i]));
	}
	for (i = 0; i < N_LARGE; i++)
		tshare_region_unref(regions[i]);
}

TEST(regions_do_not_overlap_each_other)
{
	uint64_t size = limits_of(ctx).huge_page_size + 1;
	struct tshare_region *regions[N_LARGE];
	int i, round;

	for (i = 0; i < N_LARGE; i++)
		CHECK(!tshare_region_create(ctx, NULL, size, NULL, 0, NULL, &regions[i]));
	/* Gaps are filled from above and from below. */
	for (round = 0; round < 4 * N_LARGE; round++) {
		i = round * 5 % N_LARGE;
		tshare_region_unref(regions[i]);
		CHECK(!tshare_region_create(ctx, NULL, size, NULL, 0, NULL, &regions[i]));
	}
	for (i = 0; i < N_LARGE; i++)
		memset(tshare_region_get_data(regions[i]), i + 1, size);
	for (i = 0; i < N_LARGE; i++)
		CHECK(*(char *)tshare_region_get_data(regions[i]) == i + 1);
	for (i = 0; i < N_LARGE; i++)
		tshare_region_unref(regions[i]);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
