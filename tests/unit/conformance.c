// SPDX-License-Identifier: MIT
/*
 * What both backends promise: the same program runs on either, as
 * TSHARE_BACKEND says.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util.h"

#define AUTO TSHARE_OFFSET_AUTO

static const int64_t shape_4x8[] = { 4, 8 };

static struct tshare_limits limits_of(struct tshare_ctx *context)
{
	struct tshare_limits limits;

	CHECK(!tshare_ctx_limits(context, &limits));
	return limits;
}

static struct tshare_tensor *new_tensor(const char *name, struct tshare_dtype dtype, int32_t ndim,
					const int64_t *shape)
{
	struct tshare_tensor *tensor;

	CHECK(!tshare_tensor_create(ctx, name, dtype, ndim, shape, NULL, &tensor));
	return tensor;
}

static bool all_zero(const void *data, size_t size)
{
	const char *bytes = data;

	while (size--)
		if (*bytes++)
			return false;
	return true;
}

/* Contexts */

TEST(context_tells_its_backend)
{
	const char *forced = getenv("TSHARE_BACKEND");
	const char *backend = tshare_ctx_backend(ctx);

	CHECK(!strcmp(backend, "kmod") || !strcmp(backend, "shm"));
	CHECK(!forced || !strcmp(backend, forced));
}

TEST(context_rejects_an_unknown_backend)
{
	struct tshare_ctx *other;

	CHECK(tshare_ctx_new_backend("nfs", &other) == -EINVAL);
	CHECK(error_says("backend: 'nfs'"));
}

TEST(limits_are_whole_pages)
{
	struct tshare_limits limits = limits_of(ctx);

	CHECK(limits.page_size == (uint32_t)sysconf(_SC_PAGESIZE));
	CHECK(limits.huge_page_size >= limits.page_size);
	CHECK(limits.huge_page_size % limits.page_size == 0);
	CHECK(limits.region_bytes_max > 0);
	CHECK(limits.bytes_used <= limits.bytes_limit);
}

TEST(limits_tell_the_backends_apart)
{
	struct tshare_limits limits = limits_of(ctx);
	bool kmod = !strcmp(tshare_ctx_backend(ctx), "kmod");

	CHECK(limits.contiguous == kmod);
	CHECK(limits.dmabuf == kmod);
	CHECK(!!limits.abi_version == kmod);
}

TEST(unref_takes_null_and_returns_it)
{
	CHECK(!tshare_ctx_unref(NULL));
	CHECK(!tshare_region_unref(NULL));
	CHECK(!tshare_tensor_unref(NULL));
}

static void count_messages(void *data, int priority, const char *text)
{
	int *count = data;

	(void)priority;
	if (!strchr(text, '\n'))
		(*count)++;
}

TEST(messages_go_where_they_are_sent)
{
	int count = 0;

	tshare_ctx_set_log_fn(ctx, count_messages, &count);
	tshare_region_unref(new_region(NULL));
	CHECK(count == 1);
}

/* Creation */

TEST(region_is_zeroed)
{
	struct tshare_region *region;

	CHECK(!tshare_region_create(ctx, NULL, 1 << 20, NULL, 0, NULL, &region));
	CHECK(all_zero(tshare_region_data(region), 1 << 20));
	tshare_region_unref(region);
}

TEST(region_is_zeroed_when_its_memory_was_used_before)
{
	struct tshare_region *region;
	int i;

	for (i = 0; i < 4; i++) {
		CHECK(!tshare_region_create(ctx, NULL, 1 << 20, NULL, 0, NULL, &region));
		CHECK(all_zero(tshare_region_data(region), 1 << 20));
		memset(tshare_region_data(region), 0xff, 1 << 20);
		tshare_region_unref(region);
	}
}

TEST(size_is_rounded_up_to_pages)
{
	struct tshare_limits limits = limits_of(ctx);
	struct tshare_region *region;

	CHECK(!tshare_region_create(ctx, NULL, limits.page_size + 1, NULL, 0, NULL, &region));
	CHECK(tshare_region_size(region) == 2 * limits.page_size);
	tshare_region_unref(region);
}

TEST(all_bytes_can_be_written)
{
	struct tshare_region *region = new_region(NULL);

	memset(tshare_region_data(region), 0x5a, tshare_region_size(region));
	tshare_region_unref(region);
}

TEST(create_rejects_no_size_and_no_tensors)
{
	struct tshare_region *region;

	CHECK(tshare_region_create(ctx, NULL, 0, NULL, 0, NULL, &region) == -EINVAL);
	CHECK(error_says("size: 0 bytes"));
}

TEST(create_rejects_names_with_a_slash)
{
	struct tshare_region *region;

	CHECK(tshare_region_create(ctx, "a/b", 1, NULL, 0, NULL, &region) == -EINVAL);
	CHECK(error_says("name: has a '/': 'a/b'"));
}

TEST(create_rejects_names_that_are_no_names)
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
	CHECK(error_says("is taken"));
	tshare_region_unref(region);
}

TEST(create_rejects_unknown_flags)
{
	struct tshare_options options = TSHARE_OPTIONS_INIT;
	struct tshare_region *region;

	options.flags = TSHARE_READONLY;
	CHECK(tshare_region_create(ctx, NULL, 1, NULL, 0, &options, &region) == -EINVAL);
	CHECK(error_says("options.flags"));
	options.flags = 1U << 31;
	CHECK(tshare_region_create(ctx, NULL, 1, NULL, 0, &options, &region) == -EINVAL);
}

TEST(create_rejects_a_mode_beyond_0777)
{
	struct tshare_options options = TSHARE_OPTIONS_INIT;
	struct tshare_region *region;

	options.mode = 01000;
	CHECK(tshare_region_create(ctx, NULL, 1, NULL, 0, &options, &region) == -EINVAL);
	CHECK(error_says("options.mode"));
}

TEST(create_rejects_persistence_without_a_name)
{
	struct tshare_options options = TSHARE_OPTIONS_INIT;
	struct tshare_region *region;

	options.flags = TSHARE_PERSIST;
	CHECK(tshare_region_create(ctx, NULL, 1, NULL, 0, &options, &region) == -EINVAL);
	CHECK(error_says("TSHARE_PERSIST needs a name"));
}

TEST(create_rejects_options_of_another_size)
{
	struct {
		struct tshare_options known;
		uint64_t unknown;
	} options = { TSHARE_OPTIONS_INIT, 0 };
	struct tshare_region *region;

	options.known.size = sizeof(options.known) - 1;
	CHECK(tshare_region_create(ctx, NULL, 1, NULL, 0, &options.known, &region) == -EINVAL);
	options.known.size = sizeof(options);
	CHECK(!tshare_region_create(ctx, NULL, 1, NULL, 0, &options.known, &region));
	tshare_region_unref(region);
	options.unknown = 1;
	CHECK(tshare_region_create(ctx, NULL, 1, NULL, 0, &options.known, &region) == -EINVAL);
	CHECK(error_says("options"));
}

TEST(contiguous_memory_is_given_or_refused)
{
	struct tshare_options options = TSHARE_OPTIONS_INIT;
	struct tshare_region_info info;
	struct tshare_region *region;
	int err;

	options.flags = TSHARE_CONTIGUOUS;
	err = tshare_region_create(ctx, NULL, 1, NULL, 0, &options, &region);
	if (!limits_of(ctx).contiguous) {
		CHECK(err == -EOPNOTSUPP);
		CHECK(error_says("TSHARE_CONTIGUOUS"));
		return;
	}
	CHECK(!err);
	CHECK(!tshare_region_get_info(region, &info));
	CHECK(info.flags & TSHARE_CONTIGUOUS);
	CHECK(info.segments == 1);
	tshare_region_unref(region);
}

TEST(memory_below_4_gib_is_given_or_refused)
{
	struct tshare_options options = TSHARE_OPTIONS_INIT;
	struct tshare_region_info info;
	struct tshare_region *region;
	int err;

	options.flags = TSHARE_DMA32;
	err = tshare_region_create(ctx, NULL, 1, NULL, 0, &options, &region);
	if (!limits_of(ctx).contiguous) {
		CHECK(err == -EOPNOTSUPP);
		return;
	}
	CHECK(!err);
	CHECK(!tshare_region_get_info(region, &info));
	CHECK(info.flags & TSHARE_DMA32);
	CHECK(info.phys_addr < 1ULL << 32);
	tshare_region_unref(region);
}

TEST(memory_of_a_node_is_given_or_refused)
{
	struct tshare_options options = TSHARE_OPTIONS_INIT;
	struct tshare_region_info info;
	struct tshare_region *region;
	int err;

	options.node = 0;
	err = tshare_region_create(ctx, NULL, 1, NULL, 0, &options, &region);
	if (!limits_of(ctx).contiguous) {
		CHECK(err == -EOPNOTSUPP);
		return;
	}
	CHECK(!err);
	CHECK(!tshare_region_get_info(region, &info));
	CHECK(info.node == 0);
	tshare_region_unref(region);
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
		CHECK((uintptr_t)tshare_region_data(regions[i]) % limits.huge_page_size == 0);
		memset(tshare_region_data(regions[i]), 1, tshare_region_size(regions[i]));
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
	/* Each gap that one leaves is met from above and from below. */
	for (round = 0; round < 4 * N_LARGE; round++) {
		i = round * 5 % N_LARGE;
		tshare_region_unref(regions[i]);
		CHECK(!tshare_region_create(ctx, NULL, size, NULL, 0, NULL, &regions[i]));
	}
	for (i = 0; i < N_LARGE; i++)
		memset(tshare_region_data(regions[i]), i + 1, size);
	for (i = 0; i < N_LARGE; i++)
		CHECK(*(char *)tshare_region_data(regions[i]) == i + 1);
	for (i = 0; i < N_LARGE; i++)
		tshare_region_unref(regions[i]);
}

/* Layout */

TEST(one_tensor_begins_at_the_start)
{
	struct tshare_tensor *tensor = new_tensor(NULL, TSHARE_FLOAT32, 2, shape_4x8);
	struct tshare_region *region = tshare_tensor_region(tensor);

	CHECK(tshare_tensor_byte_offset(tensor) == 0);
	CHECK(tshare_tensor_data(tensor) == tshare_region_data(region));
	CHECK(tshare_tensor_nbytes(tensor) == 128);
	CHECK(tshare_tensor_ndim(tensor) == 2);
	CHECK(!memcmp(tshare_tensor_shape(tensor), shape_4x8, sizeof(shape_4x8)));
	CHECK(tshare_tensor_strides(tensor)[0] == 8 && tshare_tensor_strides(tensor)[1] == 1);
	CHECK(tshare_tensor_is_contiguous(tensor));
	CHECK(!tshare_tensor_readonly(tensor));
	CHECK(tshare_tensor_dtype(tensor).code == 2 && tshare_tensor_dtype(tensor).bits == 32);
	tshare_tensor_unref(tensor);
}

TEST(tensors_lie_behind_each_other_aligned_to_64_bytes)
{
	const int64_t odd[] = { 33 };
	struct tshare_spec specs[] = {
		{ "a", TSHARE_UINT8, 1, odd, NULL, AUTO },
		{ "b", TSHARE_FLOAT64, 1, odd, NULL, AUTO },
		{ "c", TSHARE_UINT8, 0, NULL, NULL, AUTO },
	};
	const uint64_t expected[] = { 0, 64, 384 };
	struct tshare_tensor *tensor;
	struct tshare_region *region;
	size_t i;

	CHECK(!tshare_region_create(ctx, NULL, 0, specs, 3, NULL, &region));
	CHECK(tshare_region_tensor_count(region) == 3);
	for (i = 0; i < 3; i++) {
		CHECK(!tshare_region_tensor_by_name(region, specs[i].name, &tensor));
		CHECK(tshare_tensor_byte_offset(tensor) == expected[i]);
		tshare_tensor_unref(tensor);
	}
	tshare_region_unref(region);
}

TEST(layout_says_where_create_would_place_tensors)
{
	const int64_t shape[] = { 3, 5 }, strides[] = { -5, 1 };
	const struct tshare_spec specs[] = {
		{ "a", TSHARE_UINT8, 2, shape, NULL, AUTO },
		{ "b", TSHARE_FLOAT32, 2, shape, strides, AUTO },
		{ "c", TSHARE_FLOAT32, 2, shape, NULL, 4096 },
		{ "d", TSHARE_UINT8, 0, NULL, NULL, AUTO },
	};
	uint64_t offsets[4], size;
	struct tshare_region *region;
	struct tshare_tensor *tensor;
	size_t i;

	CHECK(!tshare_region_layout(specs, 4, offsets, &size));
	CHECK(!tshare_region_create(ctx, NULL, 0, specs, 4, NULL, &region));
	CHECK(size <= tshare_region_size(region));
	for (i = 0; i < 4; i++) {
		CHECK(!tshare_region_tensor(region, i, &tensor));
		CHECK(tshare_tensor_byte_offset(tensor) == offsets[i]);
		tshare_tensor_unref(tensor);
	}
	CHECK(size == offsets[3] + 1);
	tshare_region_unref(region);
	CHECK(!tshare_region_layout(NULL, 0, NULL, NULL));
	CHECK(tshare_region_layout(NULL, 1, offsets, NULL) == -EINVAL);
	CHECK(tshare_region_layout(specs, 1, NULL, NULL) == -EINVAL);
	CHECK(tshare_region_layout(specs, SIZE_MAX, offsets, NULL) == -EINVAL);
}

TEST(negative_strides_get_room_before_the_first_element)
{
	const int64_t shape[] = { 5 }, strides[] = { -1 };
	struct tshare_spec specs[] = {
		{ "a", TSHARE_FLOAT32, 1, shape, strides, AUTO },
		{ "b", TSHARE_FLOAT32, 1, shape, strides, AUTO },
	};
	struct tshare_tensor *a, *b;
	struct tshare_region *region;

	CHECK(!tshare_region_create(ctx, NULL, 0, specs, 2, NULL, &region));
	CHECK(!tshare_region_tensor(region, 0, &a));
	CHECK(!tshare_region_tensor(region, 1, &b));
	CHECK(tshare_tensor_byte_offset(a) >= 16);
	CHECK(tshare_tensor_byte_offset(b) >= tshare_tensor_byte_offset(a) + 4 + 16);
	CHECK(!tshare_tensor_is_contiguous(a));
	tshare_tensor_unref(a);
	tshare_tensor_unref(b);
	tshare_region_unref(region);
}

TEST(tensors_may_be_placed_and_overlap)
{
	const int64_t shape[] = { 16 };
	struct tshare_spec specs[] = {
		{ "whole", TSHARE_UINT8, 1, shape, NULL, 100 },
		{ "part", TSHARE_UINT8, 0, NULL, NULL, 103 },
	};
	struct tshare_tensor *whole, *part;
	struct tshare_region *region;

	CHECK(!tshare_region_create(ctx, NULL, 0, specs, 2, NULL, &region));
	CHECK(!tshare_region_tensor_by_name(region, "whole", &whole));
	CHECK(!tshare_region_tensor_by_name(region, "part", &part));
	((char *)tshare_tensor_data(whole))[3] = 42;
	CHECK(*(char *)tshare_tensor_data(part) == 42);
	tshare_tensor_unref(whole);
	tshare_tensor_unref(part);
	tshare_region_unref(region);
}

TEST(a_tensor_outside_its_region_is_out_of_range)
{
	struct tshare_spec spec = { NULL, TSHARE_UINT8, 0, NULL, NULL, 0 };
	uint64_t page = limits_of(ctx).page_size;
	struct tshare_region *region;

	spec.byte_offset = page;
	CHECK(tshare_region_create(ctx, NULL, page, &spec, 1, NULL, &region) == -ERANGE);
	spec.byte_offset = UINT64_MAX - 1;
	CHECK(tshare_region_create(ctx, NULL, page, &spec, 1, NULL, &region) == -ERANGE);
	CHECK(error_says("byte_offset"));
}

TEST(a_tensor_before_its_region_is_out_of_range)
{
	const int64_t shape[] = { 5 }, strides[] = { -1 };
	struct tshare_spec spec = { NULL, TSHARE_FLOAT32, 1, shape, strides, 12 };
	struct tshare_region *region;

	CHECK(tshare_region_create(ctx, NULL, 0, &spec, 1, NULL, &region) == -ERANGE);
	CHECK(error_says("strides"));
}

TEST(errors_name_the_dimension)
{
	const int64_t shape[] = { 2, -3 };
	struct tshare_tensor *tensor;

	CHECK(tshare_tensor_create(ctx, NULL, TSHARE_UINT8, 2, shape, NULL, &tensor) == -EINVAL);
	CHECK(error_says("shape[1]: -3 is negative"));
}

TEST(errors_name_the_tensor)
{
	const int64_t shape[] = { -1 };
	struct tshare_spec specs[] = {
		{ "a", TSHARE_UINT8, 0, NULL, NULL, AUTO },
		{ "b", TSHARE_UINT8, 1, shape, NULL, AUTO },
	};
	struct tshare_region *region;

	CHECK(tshare_region_create(ctx, NULL, 0, specs, 2, NULL, &region) == -EINVAL);
	CHECK(error_says("specs[1].shape[0]: -1 is negative"));
}

TEST(shapes_that_overflow_are_rejected)
{
	const int64_t shape[] = { INT64_MAX, INT64_MAX };
	struct tshare_tensor *tensor;

	CHECK(tshare_tensor_create(ctx, NULL, TSHARE_UINT8, 2, shape, NULL, &tensor) == -EINVAL);
	CHECK(error_says("shape"));
	CHECK(tshare_tensor_create(ctx, NULL, TSHARE_FLOAT64, 1, shape, NULL, &tensor) == -EINVAL);
}

TEST(dimensions_are_0_to_32)
{
	int64_t shape[TSHARE_NDIM_LIMIT + 1];
	struct tshare_tensor *tensor;
	int i;

	for (i = 0; i <= TSHARE_NDIM_LIMIT; i++)
		shape[i] = 1;
	CHECK(tshare_tensor_create(ctx, NULL, TSHARE_UINT8, -1, shape, NULL, &tensor) == -EINVAL);
	CHECK(tshare_tensor_create(ctx, NULL, TSHARE_UINT8, 33, shape, NULL, &tensor) == -EINVAL);
	CHECK(error_says("ndim: 33"));
	tensor = new_tensor(NULL, TSHARE_UINT8, 32, shape);
	tshare_tensor_unref(tensor);
}

TEST(a_type_needs_bits_and_lanes)
{
	struct tshare_dtype dtype = { 2, 0, 1 };
	struct tshare_tensor *tensor;

	CHECK(tshare_tensor_create(ctx, NULL, dtype, 0, NULL, NULL, &tensor) == -EINVAL);
	CHECK(error_says("dtype"));
}

TEST(a_tensor_may_have_no_elements)
{
	const int64_t shape[] = { 3, 0, 2 };
	struct tshare_tensor *tensor = new_tensor(NULL, TSHARE_FLOAT32, 3, shape);

	CHECK(tshare_tensor_nbytes(tensor) == 0);
	CHECK(tshare_tensor_is_contiguous(tensor));
	CHECK(tshare_region_size(tshare_tensor_region(tensor)) == limits_of(ctx).page_size);
	tshare_tensor_unref(tensor);
}

TEST(sub_byte_elements_are_packed)
{
	const int64_t shape[] = { 3 };
	struct tshare_dtype float4 = { 17, 4, 1 };
	struct tshare_tensor *tensor = new_tensor(NULL, float4, 1, shape);

	CHECK(tshare_tensor_nbytes(tensor) == 2);
	tshare_tensor_unref(tensor);
}

TEST(tensor_names_are_unique_in_a_region)
{
	struct tshare_spec specs[] = {
		{ "w", TSHARE_UINT8, 0, NULL, NULL, AUTO },
		{ "v", TSHARE_UINT8, 0, NULL, NULL, AUTO },
		{ "w", TSHARE_UINT8, 0, NULL, NULL, AUTO },
	};
	struct tshare_region *region;

	CHECK(tshare_region_create(ctx, NULL, 0, specs, 3, NULL, &region) == -EINVAL);
	CHECK(error_says("specs[2].name: 'w' is that of specs[0] too"));
}

TEST(one_tensor_of_a_region_may_have_no_name)
{
	struct tshare_spec specs[] = {
		{ NULL, TSHARE_UINT8, 0, NULL, NULL, AUTO },
		{ "v", TSHARE_UINT8, 0, NULL, NULL, AUTO },
		{ "", TSHARE_UINT8, 0, NULL, NULL, AUTO },
	};
	struct tshare_region *region;

	CHECK(tshare_region_create(ctx, NULL, 0, specs, 3, NULL, &region) == -EINVAL);
	CHECK(!tshare_region_create(ctx, NULL, 0, specs, 2, NULL, &region));
	tshare_region_unref(region);
}

TEST(tensor_names_may_be_paths)
{
	struct tshare_spec spec = { "params/dense/kernel", TSHARE_UINT8, 0, NULL, NULL, AUTO };
	struct tshare_tensor *tensor;
	struct tshare_region *region;

	CHECK(!tshare_region_create(ctx, NULL, 0, &spec, 1, NULL, &region));
	CHECK(!tshare_region_tensor_by_name(region, spec.name, &tensor));
	CHECK(!strcmp(tshare_tensor_name(tensor), spec.name));
	tshare_tensor_unref(tensor);
	tshare_region_unref(region);
}

TEST(tensor_names_have_up_to_127_bytes)
{
	struct tshare_spec spec = { NULL, TSHARE_UINT8, 0, NULL, NULL, AUTO };
	struct tshare_region *region;
	char name[TSHARE_NAME_MAX + 2];

	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	spec.name = name;
	CHECK(tshare_region_create(ctx, NULL, 0, &spec, 1, NULL, &region) == -ENAMETOOLONG);
}

/* As many tensors as there can be, each holding its own number, in another process. */
static int check_many(void *name)
{
	struct tshare_tensor *tensor;
	struct tshare_region *region;
	struct tshare_ctx *own;
	char part[16];
	int32_t i;

	if (tshare_ctx_new(&own) || tshare_region_open(own, name, TSHARE_READONLY, &region) ||
	    tshare_region_tensor_count(region) != TSHARE_TENSOR_LIMIT)
		return 1;
	for (i = 0; i < TSHARE_TENSOR_LIMIT; i++) {
		snprintf(part, sizeof(part), "%" PRId32, i);
		if (tshare_region_tensor_by_name(region, part, &tensor) ||
		    *(int32_t *)tshare_tensor_data(tensor) != i)
			return 2;
		tshare_tensor_unref(tensor);
	}
	if (tshare_region_tensor_by_name(region, "none", &tensor) != -ENOENT ||
	    tshare_region_tensor(region, i, &tensor) != -ENOENT)
		return 3;
	tshare_region_unref(region);
	tshare_ctx_unref(own);
	return 0;
}

TEST(a_region_holds_up_to_16384_tensors)
{
	struct tshare_spec *specs = calloc(TSHARE_TENSOR_LIMIT + 1, sizeof(*specs));
	char(*names)[16] = calloc(TSHARE_TENSOR_LIMIT + 1, sizeof(*names));
	const char *name = unique("many");
	struct tshare_tensor *tensor;
	struct tshare_region *region;
	int32_t i;
	int err;

	CHECK(specs && names);
	for (i = 0; i <= TSHARE_TENSOR_LIMIT; i++) {
		snprintf(names[i], sizeof(names[i]), "%" PRId32, i);
		specs[i] = (struct tshare_spec){ names[i], TSHARE_INT32, 0, NULL, NULL, AUTO };
	}
	CHECK(tshare_region_create(ctx, name, 0, specs, i, NULL, &region) == -EINVAL);
	CHECK(error_says("count"));
	err = tshare_region_create(ctx, name, 0, specs, i - 1, NULL, &region);
	if (err == -EDQUOT)
		SKIP("this user may not lock so much memory");
	CHECK(!err);
	for (i = 0; i < TSHARE_TENSOR_LIMIT; i++) {
		CHECK(!tshare_region_tensor(region, i, &tensor));
		*(int32_t *)tshare_tensor_data(tensor) = i;
		tshare_tensor_unref(tensor);
	}
	CHECK(!in_child(check_many, (void *)(uintptr_t)name));
	tshare_region_unref(region);
	free(names);
	free(specs);
}

/* Opening */

TEST(what_one_writes_another_reads)
{
	const char *name = unique("shared");
	struct tshare_tensor *one = new_tensor(name, TSHARE_INT32, 2, shape_4x8), *two;

	CHECK(!tshare_tensor_open(ctx, name, 0, &two));
	CHECK(tshare_tensor_data(one) != tshare_tensor_data(two));
	*(int *)tshare_tensor_data(one) = 42;
	CHECK(*(int *)tshare_tensor_data(two) == 42);
	*(int *)tshare_tensor_data(two) = 43;
	CHECK(*(int *)tshare_tensor_data(one) == 43);
	tshare_tensor_unref(one);
	tshare_tensor_unref(two);
}

TEST(open_gives_shape_and_type)
{
	const char *name = unique("shape");
	struct tshare_tensor *one = new_tensor(name, TSHARE_BFLOAT16, 2, shape_4x8), *two;

	CHECK(!tshare_tensor_open(ctx, name, TSHARE_READONLY, &two));
	CHECK(tshare_tensor_ndim(two) == 2);
	CHECK(!memcmp(tshare_tensor_shape(two), shape_4x8, sizeof(shape_4x8)));
	CHECK(tshare_tensor_dtype(two).code == 4 && tshare_tensor_dtype(two).bits == 16 &&
	      tshare_tensor_dtype(two).lanes == 1);
	CHECK(tshare_region_id(tshare_tensor_region(one)) ==
	      tshare_region_id(tshare_tensor_region(two)));
	CHECK(!strcmp(tshare_region_name(tshare_tensor_region(two)), name));
	tshare_tensor_unref(one);
	tshare_tensor_unref(two);
}

TEST(open_rejects_what_is_not_there)
{
	struct tshare_region *region;

	CHECK(tshare_region_open(ctx, unique("absent"), 0, &region) == -ENOENT);
	CHECK(error_says("name: there is no region"));
	CHECK(tshare_region_open(ctx, "", 0, &region) == -EINVAL);
	CHECK(tshare_region_open(ctx, NULL, 0, &region) == -EINVAL);
	CHECK(tshare_region_open(ctx, "a/b", 0, &region) == -EINVAL);
}

TEST(open_rejects_unknown_flags)
{
	struct tshare_region *region;

	CHECK(tshare_region_open(ctx, "x", TSHARE_PERSIST, &region) == -EINVAL);
	CHECK(error_says("flags"));
	CHECK(tshare_region_import(ctx, 0, TSHARE_PERSIST, &region) == -EINVAL);
}

TEST(tensor_open_wants_one_tensor)
{
	const char *none = unique("none"), *two = unique("two");
	struct tshare_spec specs[] = {
		{ "a", TSHARE_UINT8, 0, NULL, NULL, AUTO },
		{ "b", TSHARE_UINT8, 0, NULL, NULL, AUTO },
	};
	struct tshare_region *first = new_region(none), *second;
	struct tshare_tensor *tensor;

	CHECK(!tshare_region_create(ctx, two, 0, specs, 2, NULL, &second));
	CHECK(tshare_tensor_open(ctx, none, 0, &tensor) == -EINVAL);
	CHECK(error_says("0 tensors"));
	CHECK(tshare_tensor_open(ctx, two, 0, &tensor) == -EINVAL);
	CHECK(error_says("2 tensors"));
	tshare_region_unref(first);
	tshare_region_unref(second);
}

TEST(readonly_memory_cannot_be_made_writable)
{
	const char *name = unique("readonly");
	struct tshare_region *region = new_region(name), *reader;
	void *data;

	CHECK(!tshare_region_open(ctx, name, TSHARE_READONLY, &reader));
	CHECK(tshare_region_readonly(reader));
	data = tshare_region_data(reader);
	CHECK(mprotect(data, tshare_region_size(reader), PROT_READ | PROT_WRITE) < 0);
	CHECK(errno == EACCES);
	CHECK(mmap(NULL, tshare_region_size(reader), PROT_WRITE, MAP_SHARED,
		   tshare_region_fd(reader), 0) == MAP_FAILED);
	CHECK(errno == EACCES);
	tshare_region_unref(region);
	tshare_region_unref(reader);
}

static int write_into(void *data)
{
	signal(SIGSEGV, SIG_DFL);
	*(volatile char *)data = 1;
	return 0;
}

TEST(a_write_to_readonly_memory_faults)
{
	const char *name = unique("fault");
	struct tshare_region *region = new_region(name), *reader;

	CHECK(!tshare_region_open(ctx, name, TSHARE_READONLY, &reader));
	CHECK(in_child(write_into, tshare_region_data(reader)) == -1);
	tshare_region_unref(region);
	tshare_region_unref(reader);
}

TEST(memory_outlives_its_name)
{
	const char *name = unique("outlives");
	struct tshare_region *region = new_region(name), *other;

	CHECK(!tshare_unlink(ctx, name));
	*(char *)tshare_region_data(region) = 1;
	CHECK(!tshare_region_import(ctx, tshare_region_fd(region), 0, &other));
	CHECK(*(char *)tshare_region_data(other) == 1);
	tshare_region_unref(region);
	tshare_region_unref(other);
}

/* Names */

TEST(a_name_outlives_its_makers_region)
{
	const char *name = unique("stays");

	tshare_region_unref(new_region(name));
	CHECK(exists(name));
}

TEST(a_name_goes_with_its_context)
{
	const char *name = unique("goes");

	tshare_region_unref(new_region(name));
	close_context();
	CHECK(!exists(name));
}

TEST(a_region_keeps_its_context_and_so_the_name)
{
	const char *name = unique("kept");
	struct tshare_region *region = new_region(name);

	close_context();
	CHECK(exists(name));
	tshare_region_unref(region);
	CHECK(!exists(name));
}

static int create_and_be_killed(void *name)
{
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (!tshare_ctx_new(&own) && !tshare_region_create(own, name, 1, NULL, 0, NULL, &region))
		kill(getpid(), SIGKILL);
	return 1;
}

TEST(a_name_goes_when_its_maker_is_killed)
{
	const char *name = unique("killed");

	CHECK(in_child(create_and_be_killed, (void *)(uintptr_t)name) == -1);
	CHECK(!exists(name));
	tshare_region_unref(new_region(name));
}

static int create_and_be_killed_later(void *name)
{
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (tshare_ctx_new(&own) || tshare_region_create(own, name, 1, NULL, 0, NULL, &region))
		return 1;
	strcpy(tshare_region_data(region), "legacy");
	if (fork())
		kill(getpid(), SIGKILL);
	/* The child of the maker is what keeps the name, until it ends. */
	usleep(300 * 1000);
	return 0;
}

TEST(after_fork_a_name_lives_until_both_are_gone)
{
	const char *name = unique("forked");
	int i;

	CHECK(in_child(create_and_be_killed_later, (void *)(uintptr_t)name) == -1);
	CHECK(exists(name));
	for (i = 0; i < 100 && exists(name); i++)
		usleep(20 * 1000);
	CHECK(!exists(name));
}

static int close_inherited_context(void *data)
{
	tshare_region_unref(data);
	close_context();
	return 0;
}

TEST(a_child_that_closes_the_context_leaves_the_name_to_its_parent)
{
	const char *name = unique("parent");
	struct tshare_region *region = new_region(name);

	CHECK(!in_child(close_inherited_context, region));
	CHECK(exists(name));
	tshare_region_unref(region);
}

static int leave_persistent(void *name)
{
	struct tshare_options options = TSHARE_OPTIONS_INIT;
	struct tshare_region *region;
	struct tshare_ctx *own;

	options.flags = TSHARE_PERSIST;
	if (tshare_ctx_new(&own) || tshare_region_create(own, name, 1, NULL, 0, &options, &region))
		return 1;
	strcpy(tshare_region_data(region), "left");
	kill(getpid(), SIGKILL);
	return 2;
}

TEST(a_persistent_name_stays_until_it_is_unlinked)
{
	const char *name = unique("persist");
	struct tshare_region_info info;
	struct tshare_region *region;

	CHECK(in_child(leave_persistent, (void *)(uintptr_t)name) == -1);
	CHECK(!tshare_region_open(ctx, name, 0, &region));
	CHECK(!strcmp(tshare_region_data(region), "left"));
	CHECK(!tshare_region_get_info(region, &info));
	CHECK(info.flags & TSHARE_PERSIST);
	tshare_region_unref(region);
	CHECK(!tshare_unlink(ctx, name));
	CHECK(!exists(name));
}

TEST(unlink_frees_the_name)
{
	const char *name = unique("unlink");
	struct tshare_region *region = new_region(name), *next;
	uint64_t id = tshare_region_id(region);

	CHECK(!tshare_unlink(ctx, name));
	CHECK(!exists(name));
	CHECK(tshare_unlink(ctx, name) == -ENOENT);
	next = new_region(name);
	CHECK(tshare_region_id(next) != id);
	tshare_region_unref(region);
	tshare_region_unref(next);
}

TEST(unlink_rejects_what_is_no_name)
{
	CHECK(tshare_unlink(ctx, NULL) == -EINVAL);
	CHECK(tshare_unlink(ctx, "") == -EINVAL);
	CHECK(tshare_unlink(ctx, "a/b") == -EINVAL);
}

TEST(a_context_does_not_take_back_a_name_that_another_made_since)
{
	const char *name = unique("reused");
	struct tshare_region *region;
	struct tshare_ctx *other;

	CHECK(!tshare_ctx_new(&other));
	tshare_region_unref(new_region(name));
	CHECK(!tshare_unlink(other, name));
	CHECK(!tshare_region_create(other, name, 1, NULL, 0, NULL, &region));
	close_context();
	CHECK(exists(name));
	tshare_region_unref(region);
	tshare_ctx_unref(other);
}

struct race {
	const char *name;
	struct steps steps;
};

static int race_for_name(void *data)
{
	struct tshare_region *region;
	struct race *race = data;
	struct tshare_ctx *own;
	int err;

	if (tshare_ctx_new(&own) || !await_byte(race->steps.ends[0]))
		return 2;
	err = tshare_region_create(own, race->name, 1, NULL, 0, NULL, &region);
	/* Whoever has won keeps the name until all are through. */
	if (!send_byte(race->steps.ends[0]) || !await_byte(race->steps.ends[0]))
		return 2;
	return err == -EEXIST ? 1 : err ? 2 : 0;
}

#define RACERS 8

TEST(of_racing_creators_exactly_one_wins)
{
	struct race races[RACERS];
	int winners, round, i, status;
	const char *name;
	pid_t pids[RACERS];

	for (round = 0; round < 10; round++) {
		name = unique("race");
		/* What a dead maker left must not let two in. */
		CHECK(in_child(create_and_be_killed, (void *)(uintptr_t)name) == -1);
		for (i = 0; i < RACERS; i++) {
			races[i].name = name;
			CHECK(steps_open(&races[i].steps));
			pids[i] = fork();
			if (!pids[i])
				_exit(race_for_name(&races[i]));
		}
		for (i = 0; i < RACERS; i++)
			CHECK(send_byte(races[i].steps.ends[1]));
		for (i = 0; i < RACERS; i++)
			CHECK(await_byte(races[i].steps.ends[1]));
		for (i = 0; i < RACERS; i++)
			CHECK(send_byte(races[i].steps.ends[1]));
		for (winners = 0, i = 0; i < RACERS; i++) {
			CHECK(waitpid(pids[i], &status, 0) == pids[i]);
			CHECK(WIFEXITED(status) && WEXITSTATUS(status) < 2);
			winners += !WEXITSTATUS(status);
			steps_close(&races[i].steps);
		}
		CHECK(winners == 1);
	}
}

struct found {
	const char *name;
	struct tshare_region_info info;
	int count;
};

static int find(const struct tshare_region_info *info, void *data)
{
	struct found *found = data;

	if (strcmp(info->name, found->name))
		return 0;
	found->info = *info;
	found->count++;
	return 0;
}

TEST(list_tells_of_named_regions)
{
	struct found found = { .name = unique("listed") };
	struct tshare_tensor *tensor = new_tensor(found.name, TSHARE_UINT8, 2, shape_4x8);
	struct tshare_region *unnamed = new_region(NULL);

	CHECK(!tshare_list(ctx, find, &found));
	CHECK(found.count == 1);
	CHECK(found.info.id == tshare_region_id(tshare_tensor_region(tensor)));
	CHECK(found.info.size == tshare_region_size(tshare_tensor_region(tensor)));
	CHECK(found.info.uid == geteuid() && found.info.gid == getegid());
	CHECK(found.info.mode == 0600);
	CHECK(found.info.tensor_count == 1);
	CHECK(!(found.info.flags & (TSHARE_PERSIST | TSHARE_READONLY)));
	found = (struct found){ .name = "" };
	CHECK(!tshare_list(ctx, find, &found));
	CHECK(!found.count);
	tshare_tensor_unref(tensor);
	tshare_region_unref(unnamed);
}

static int stop(const struct tshare_region_info *info, void *data)
{
	(void)info;
	++*(int *)data;
	return 77;
}

TEST(list_stops_when_it_is_told_to)
{
	struct tshare_region *a = new_region(unique("stop-a")), *b = new_region(unique("stop-b"));
	int calls = 0;

	CHECK(tshare_list(ctx, stop, &calls) == 77);
	CHECK(calls == 1);
	tshare_region_unref(a);
	tshare_region_unref(b);
}

TEST(list_tells_of_more_than_one_batch)
{
	struct found found = { .name = unique("batch") };
	struct tshare_region *regions[200];
	char name[32];
	int i;

	for (i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "test-%d-batch-%d", getpid(), i);
		regions[i] = new_region(name);
	}
	for (i = 0; i < 200; i += 33) {
		snprintf(name, sizeof(name), "test-%d-batch-%d", getpid(), i);
		found = (struct found){ .name = name };
		CHECK(!tshare_list(ctx, find, &found));
		CHECK(found.count == 1);
	}
	for (i = 0; i < 200; i++)
		tshare_region_unref(regions[i]);
}

/* Information */

TEST(info_tells_what_was_asked_for)
{
	const char *name = unique("info");
	struct tshare_region *region = new_region_mode(name, 0640);
	struct tshare_region_info info;

	CHECK(!tshare_region_get_info(region, &info));
	CHECK(info.id == tshare_region_id(region));
	CHECK(info.size == tshare_region_size(region));
	CHECK(info.uid == geteuid() && info.gid == getegid());
	CHECK(info.mode == 0640);
	CHECK(info.tensor_count == 0);
	CHECK(!strcmp(info.name, name));
	CHECK(!(info.flags & TSHARE_READONLY));
	tshare_region_unref(region);
}

TEST(info_knows_when_the_name_is_gone)
{
	const char *name = unique("gone");
	struct tshare_region *region = new_region(name);
	struct tshare_region_info info;

	CHECK(!tshare_unlink(ctx, name));
	CHECK(!tshare_region_get_info(region, &info));
	CHECK(!strcmp(info.name, ""));
	CHECK(!strcmp(tshare_region_name(region), name));
	tshare_region_unref(region);
}

TEST(info_tells_who_may_only_read)
{
	const char *name = unique("reader");
	struct tshare_region *region = new_region(name), *reader;
	struct tshare_region_info info;

	CHECK(!tshare_region_open(ctx, name, TSHARE_READONLY, &reader));
	CHECK(!tshare_region_get_info(reader, &info));
	CHECK(info.flags & TSHARE_READONLY);
	tshare_region_unref(region);
	tshare_region_unref(reader);
}

TEST(the_umask_has_no_say)
{
	struct tshare_options options = TSHARE_OPTIONS_INIT;
	mode_t before = umask(0777);
	struct tshare_region_info info;
	struct tshare_region *region;
	int err;

	options.mode = 0666;
	err = tshare_region_create(ctx, unique("umask"), 1, NULL, 0, &options, &region);
	umask(before);
	CHECK(!err);
	CHECK(!tshare_region_get_info(region, &info));
	CHECK(info.mode == 0666);
	tshare_region_unref(region);
}

/* Permissions between users */

struct access {
	const char *name;
	unsigned int uid;
	bool readonly;
	int err; /* what is expected */
};

static int try_open(void *data)
{
	const struct access *access = data;
	struct tshare_region *region;
	struct tshare_ctx *own;
	int err;

	/* The device may be for its group: open it before giving up what root may. */
	if (tshare_ctx_new(&own) || !become(access->uid))
		return 2;
	err = tshare_region_open(own, access->name, access->readonly ? TSHARE_READONLY : 0,
				 &region);
	return err == access->err ? 0 : 1;
}

/* What a user gets of a region of root's, or of the first user's if @own. */
static bool access_is(const char *name, unsigned int uid, bool readonly, int err)
{
	struct access access = { name, uid, readonly, err };

	return !in_child(try_open, &access);
}

static void need_root(void)
{
	if (geteuid())
		SKIP("needs root, to be two users");
}

TEST(others_are_denied_what_the_mode_denies)
{
	const char *name = unique("private");
	struct tshare_region *region;

	need_root();
	region = new_region_mode(name, 0600);
	CHECK(access_is(name, USER_ONE, true, -EACCES));
	CHECK(access_is(name, USER_ONE, false, -EACCES));
	tshare_region_unref(region);
}

TEST(others_are_given_what_the_mode_gives)
{
	const char *readable = unique("readable"), *writable = unique("writable");
	struct tshare_region *one, *two;

	need_root();
	one = new_region_mode(readable, 0604);
	two = new_region_mode(writable, 0606);
	CHECK(access_is(readable, USER_ONE, true, 0));
	CHECK(access_is(readable, USER_ONE, false, -EACCES));
	CHECK(access_is(writable, USER_ONE, true, 0));
	CHECK(access_is(writable, USER_ONE, false, 0));
	tshare_region_unref(one);
	tshare_region_unref(two);
}

struct owned {
	const char *name;
	uint32_t mode;
	struct steps steps;
};

/* Makes a region as USER_ONE, and keeps it until told to go. */
static int own_region(void *data)
{
	struct tshare_options options = TSHARE_OPTIONS_INIT;
	struct owned *owned = data;
	struct tshare_region *region;
	struct tshare_ctx *own;

	options.mode = owned->mode;
	if (tshare_ctx_new(&own) || !become(USER_ONE) ||
	    tshare_region_create(own, owned->name, 1, NULL, 0, &options, &region))
		return 1;
	send_byte(owned->steps.ends[0]);
	await_byte(owned->steps.ends[0]);
	tshare_region_unref(region);
	tshare_ctx_unref(own);
	return 0;
}

static pid_t start_owner(struct owned *owned)
{
	pid_t pid;

	CHECK(steps_open(&owned->steps));
	pid = fork();
	if (!pid) {
		close(owned->steps.ends[1]);
		_exit(own_region(owned));
	}
	close(owned->steps.ends[0]);
	CHECK(await_byte(owned->steps.ends[1]));
	return pid;
}

static void stop_owner(struct owned *owned, pid_t pid)
{
	CHECK(send_byte(owned->steps.ends[1]));
	CHECK(waitpid(pid, NULL, 0) == pid);
	close(owned->steps.ends[1]);
}

TEST(an_owner_is_held_to_the_mode_too)
{
	struct owned owned = { unique("owned"), 0466, { { 0 } } };
	pid_t pid;

	need_root();
	pid = start_owner(&owned);
	CHECK(access_is(owned.name, USER_ONE, true, 0));
	CHECK(access_is(owned.name, USER_ONE, false, -EACCES));
	CHECK(access_is(owned.name, USER_TWO, false, 0));
	stop_owner(&owned, pid);
	CHECK(!exists(owned.name));
}

TEST(a_name_without_any_permission_goes_with_its_maker)
{
	struct owned owned = { unique("closed"), 0, { { 0 } } };
	pid_t pid;

	need_root();
	pid = start_owner(&owned);
	CHECK(access_is(owned.name, USER_ONE, true, -EACCES));
	CHECK(exists(owned.name));
	stop_owner(&owned, pid);
	CHECK(!exists(owned.name));
}

TEST(root_may_open_what_others_have_closed)
{
	struct owned owned = { unique("root"), 0600, { { 0 } } };
	struct tshare_region *region;
	struct tshare_region_info info;
	pid_t pid;

	need_root();
	pid = start_owner(&owned);
	CHECK(!tshare_region_open(ctx, owned.name, 0, &region));
	CHECK(!tshare_region_get_info(region, &info));
	CHECK(info.uid == USER_ONE && info.gid == USER_ONE);
	tshare_region_unref(region);
	stop_owner(&owned, pid);
}

static int try_unlink(void *data)
{
	const struct access *access = data;
	struct tshare_ctx *own;

	if (tshare_ctx_new(&own) || !become(access->uid))
		return 2;
	return tshare_unlink(own, access->name) == access->err ? 0 : 1;
}

TEST(only_its_owner_may_unlink_a_name)
{
	struct owned owned = { unique("unlinked"), 0666, { { 0 } } };
	struct access access = { owned.name, USER_TWO, false, -EPERM };
	pid_t pid;

	need_root();
	pid = start_owner(&owned);
	CHECK(!in_child(try_unlink, &access));
	CHECK(exists(owned.name));
	access = (struct access){ owned.name, USER_ONE, false, 0 };
	CHECK(!in_child(try_unlink, &access));
	CHECK(!exists(owned.name));
	stop_owner(&owned, pid);
}

TEST(root_may_unlink_any_name)
{
	struct owned owned = { unique("unlinked"), 0600, { { 0 } } };
	pid_t pid;

	need_root();
	pid = start_owner(&owned);
	CHECK(!tshare_unlink(ctx, owned.name));
	CHECK(!exists(owned.name));
	stop_owner(&owned, pid);
}

static int list_as_user(void *data)
{
	struct found found = { .name = data };
	struct tshare_ctx *own;

	if (tshare_ctx_new(&own) || !become(USER_TWO) || tshare_list(own, find, &found))
		return 2;
	if (found.count && !(found.info.flags & TSHARE_READONLY))
		return 3;
	return found.count;
}

TEST(list_leaves_out_what_may_not_be_read)
{
	struct owned closed = { unique("closed"), 0600, { { 0 } } };
	struct owned open = { unique("open"), 0644, { { 0 } } };
	pid_t pids[2];

	need_root();
	pids[0] = start_owner(&closed);
	pids[1] = start_owner(&open);
	CHECK(in_child(list_as_user, (void *)(uintptr_t)closed.name) == 0);
	CHECK(in_child(list_as_user, (void *)(uintptr_t)open.name) == 1);
	stop_owner(&closed, pids[0]);
	stop_owner(&open, pids[1]);
}

/* Descriptors */

static int import_received(void *data)
{
	struct steps *steps = data;
	struct tshare_tensor *tensor;
	struct tshare_region *region;
	struct tshare_ctx *own;
	int fd = receive_fd(steps->ends[1]);

	if (tshare_ctx_new(&own) || tshare_region_import(own, fd, 0, &region) ||
	    tshare_region_tensor(region, 0, &tensor))
		return 1;
	if (tshare_region_readonly(region) || *(int *)tshare_tensor_data(tensor) != 42)
		return 2;
	*(int *)tshare_tensor_data(tensor) = 43;
	tshare_tensor_unref(tensor);
	tshare_region_unref(region);
	tshare_ctx_unref(own);
	return 0;
}

TEST(a_descriptor_passes_to_another_process)
{
	struct tshare_tensor *tensor = new_tensor(NULL, TSHARE_INT32, 2, shape_4x8);
	struct steps steps;

	*(int *)tshare_tensor_data(tensor) = 42;
	CHECK(steps_open(&steps));
	CHECK(send_fd(steps.ends[0], tshare_region_fd(tshare_tensor_region(tensor))));
	CHECK(!in_child(import_received, &steps));
	CHECK(*(int *)tshare_tensor_data(tensor) == 43);
	steps_close(&steps);
	tshare_tensor_unref(tensor);
}

TEST(an_import_has_a_descriptor_of_its_own)
{
	struct tshare_region *region = new_region(NULL), *other;
	int fd = dup(tshare_region_fd(region));

	CHECK(fd >= 0);
	CHECK(!tshare_region_import(ctx, fd, 0, &other));
	CHECK(tshare_region_fd(other) != fd);
	CHECK(!close(fd));
	CHECK(fcntl(tshare_region_fd(other), F_GETFD) == FD_CLOEXEC);
	CHECK(tshare_region_id(other) == tshare_region_id(region));
	tshare_region_unref(region);
	tshare_region_unref(other);
}

TEST(a_readonly_descriptor_imports_readonly)
{
	const char *name = unique("import");
	struct tshare_region *region = new_region(name), *reader, *imported;

	CHECK(!tshare_region_open(ctx, name, TSHARE_READONLY, &reader));
	CHECK(!tshare_region_import(ctx, tshare_region_fd(reader), 0, &imported));
	CHECK(tshare_region_readonly(imported));
	CHECK(mprotect(tshare_region_data(imported), 1, PROT_WRITE) < 0 && errno == EACCES);
	tshare_region_unref(region);
	tshare_region_unref(reader);
	tshare_region_unref(imported);
}

TEST(a_readonly_import_cannot_be_made_writable)
{
	struct tshare_region *region = new_region(NULL), *imported;

	CHECK(!tshare_region_import(ctx, tshare_region_fd(region), TSHARE_READONLY, &imported));
	CHECK(tshare_region_readonly(imported));
	CHECK(mprotect(tshare_region_data(imported), 1, PROT_WRITE) < 0 && errno == EACCES);
	tshare_region_unref(region);
	tshare_region_unref(imported);
}

TEST(import_rejects_what_is_no_region)
{
	struct tshare_region *region;
	int pipe_ends[2];
	int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);

	CHECK(tshare_region_import(ctx, fd, 0, &region) == -EINVAL);
	CHECK(error_says("fd: "));
	close(fd);
	fd = memfd_create("empty", MFD_CLOEXEC);
	CHECK(tshare_region_import(ctx, fd, 0, &region) == -EINVAL);
	close(fd);
	CHECK(!pipe2(pipe_ends, O_CLOEXEC));
	CHECK(tshare_region_import(ctx, pipe_ends[0], 0, &region) == -EINVAL);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
}

TEST(import_rejects_a_descriptor_that_is_not_open)
{
	struct tshare_region *region;

	CHECK(tshare_region_import(ctx, -1, 0, &region) == -EBADF);
	CHECK(tshare_region_import(ctx, 100000, 0, &region) == -EBADF);
}

TEST(descriptors_are_closed_on_exec)
{
	struct tshare_region *region = new_region(unique("cloexec"));

	CHECK(fcntl(tshare_region_fd(region), F_GETFD) == FD_CLOEXEC);
	tshare_region_unref(region);
}

TEST(a_region_of_the_other_backend_can_be_imported)
{
	const char *other_backend = limits_of(ctx).dmabuf ? "shm" : "kmod";
	struct tshare_region *region, *imported;
	struct tshare_region_info info;
	struct tshare_ctx *other;

	if (tshare_ctx_new_backend(other_backend, &other))
		SKIP("the other backend is not there");
	CHECK(!tshare_region_create(other, NULL, 1, NULL, 0, NULL, &region));
	strcpy(tshare_region_data(region), "across");
	CHECK(!tshare_region_import(ctx, tshare_region_fd(region), 0, &imported));
	CHECK(!strcmp(tshare_region_backend(imported), other_backend));
	CHECK(!strcmp(tshare_region_data(imported), "across"));
	CHECK(!tshare_region_get_info(imported, &info));
	CHECK(info.id == tshare_region_id(region));
	tshare_region_unref(region);
	tshare_region_unref(imported);
	tshare_ctx_unref(other);
}

static size_t open_descriptors(void)
{
	size_t count = 0;
	int fd;

	for (fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

TEST(nothing_is_left_open)
{
	const char *name = unique("leak");
	size_t before = open_descriptors();
	struct tshare_region *region, *other;
	int i;

	for (i = 0; i < 10; i++) {
		region = new_region(name);
		CHECK(!tshare_region_open(ctx, name, 0, &other));
		tshare_region_unref(other);
		CHECK(tshare_region_create(ctx, name, 1, NULL, 0, NULL, &other) == -EEXIST);
		CHECK(!tshare_unlink(ctx, name));
		tshare_region_unref(region);
	}
	CHECK(open_descriptors() == before);
}

TEST(tensors_leave_nothing_open)
{
	size_t before = open_descriptors();
	struct tshare_tensor *tensor;
	int i;

	for (i = 0; i < 10; i++) {
		tensor = new_tensor(NULL, TSHARE_UINT8, 2, shape_4x8);
		CHECK(open_descriptors() > before);
		tshare_tensor_unref(tensor);
	}
	CHECK(open_descriptors() == before);
}

/* Generations */

static uint64_t generation_of(struct tshare_region *region)
{
	uint64_t generation;

	CHECK(!tshare_region_generation(region, &generation));
	return generation;
}

static void publish(struct tshare_region *region)
{
	CHECK(!tshare_region_publish(region, NULL));
}

/* What a wait gives, in nanoseconds and without a generation; 0 if it is @expected. */
static int wait_beyond(struct tshare_region *region, uint64_t seen, int64_t timeout_ns,
		       uint64_t expected)
{
	uint64_t generation = UINT64_MAX;
	int err;

	err = tshare_region_wait(region, seen, timeout_ns, 0, &generation);
	if (err)
		return generation == UINT64_MAX ? err : -EBADMSG;
	return generation == expected ? 0 : -EBADMSG;
}

#define MS INT64_C(1000000)

/* Long enough for anything, and short enough to tell that it never came. */
#define LONG (20000 * MS)

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * (1000 * MS) + now.tv_nsec;
}

/* Another object of the same region, as another process would have one. */
static struct tshare_region *another(struct tshare_region *region, uint32_t flags)
{
	struct tshare_region *other;

	CHECK(!tshare_region_import(ctx, tshare_region_fd(region), flags, &other));
	return other;
}

TEST(a_generation_is_0_at_first)
{
	struct tshare_region *region = new_region(NULL);

	CHECK(generation_of(region) == 0);
	tshare_region_unref(region);
}

TEST(publishes_are_counted)
{
	struct tshare_region *region = new_region(NULL);
	uint64_t generation, i;

	for (i = 1; i <= 10; i++) {
		CHECK(!tshare_region_publish(region, &generation));
		CHECK(generation == i);
		CHECK(generation_of(region) == i);
	}
	publish(region);
	CHECK(generation_of(region) == 11);
	tshare_region_unref(region);
}

TEST(each_region_has_a_generation_of_its_own)
{
	struct tshare_region *one = new_region(NULL), *two = new_region(NULL);

	publish(one);
	CHECK(generation_of(one) == 1);
	CHECK(generation_of(two) == 0);
	publish(two);
	publish(two);
	CHECK(generation_of(one) == 1);
	CHECK(generation_of(two) == 2);
	tshare_region_unref(one);
	tshare_region_unref(two);
}

TEST(a_generation_is_the_same_for_all_who_have_the_region)
{
	const char *name = unique("generation");
	struct tshare_region *region = new_region(name), *opened, *imported, *reader;

	publish(region);
	CHECK(!tshare_region_open(ctx, name, 0, &opened));
	imported = another(region, 0);
	reader = another(region, TSHARE_READONLY);
	publish(opened);
	publish(imported);
	CHECK(generation_of(region) == 3);
	CHECK(generation_of(opened) == 3);
	CHECK(generation_of(imported) == 3);
	CHECK(generation_of(reader) == 3);
	tshare_region_unref(region);
	tshare_region_unref(opened);
	tshare_region_unref(imported);
	CHECK(generation_of(reader) == 3);
	tshare_region_unref(reader);
}

TEST(a_generation_is_no_part_of_the_memory)
{
	struct tshare_region *region = new_region(NULL);

	publish(region);
	CHECK(all_zero(tshare_region_data(region), tshare_region_size(region)));
	memset(tshare_region_data(region), 0xff, tshare_region_size(region));
	CHECK(generation_of(region) == 1);
	tshare_region_unref(region);
}

TEST(a_wait_returns_at_once_when_it_is_behind)
{
	struct tshare_region *region = new_region(NULL);
	uint64_t i;

	for (i = 0; i < 5; i++)
		publish(region);
	for (i = 0; i < 5; i++) {
		CHECK(!wait_beyond(region, i, 0, 5));
		CHECK(!wait_beyond(region, i, -1, 5));
		CHECK(!wait_beyond(region, i, LONG, 5));
	}
	tshare_region_unref(region);
}

TEST(a_wait_times_out)
{
	struct tshare_region *region = new_region(NULL);
	int64_t start = now_ns(), took;

	CHECK(wait_beyond(region, 0, 250 * MS, 0) == -ETIMEDOUT);
	took = now_ns() - start;
	CHECK(error_says("timeout"));
	CHECK(took >= 250 * MS);
	CHECK(took < LONG);
	tshare_region_unref(region);
}

TEST(a_wait_without_time_only_looks)
{
	struct tshare_region *region = new_region(NULL);
	int64_t start = now_ns();
	int i;

	for (i = 0; i < 10; i++)
		CHECK(wait_beyond(region, 0, 0, 0) == -ETIMEDOUT);
	CHECK(now_ns() - start < 10 * 100 * MS);
	tshare_region_unref(region);
}

TEST(a_wait_that_spins_times_out_too)
{
	struct tshare_region *region = new_region(NULL);
	int64_t start = now_ns(), took;
	uint64_t generation;

	CHECK(tshare_region_wait(region, 0, 50 * MS, LONG, &generation) == -ETIMEDOUT);
	took = now_ns() - start;
	CHECK(took >= 50 * MS);
	CHECK(took < LONG);
	tshare_region_unref(region);
}

TEST(a_wait_takes_no_processor)
{
	struct tshare_region *region = new_region(NULL);
	clock_t start = clock();

	CHECK(wait_beyond(region, 0, 1000 * MS, 0) == -ETIMEDOUT);
	CHECK(clock() - start < CLOCKS_PER_SEC / 4);
	tshare_region_unref(region);
}

TEST(who_may_only_read_can_wait_and_not_publish)
{
	const char *name = unique("reader");
	struct tshare_region *region = new_region(name), *reader, *imported;
	uint64_t generation = 7;

	CHECK(!tshare_region_open(ctx, name, TSHARE_READONLY, &reader));
	imported = another(region, TSHARE_READONLY);
	CHECK(tshare_region_publish(reader, &generation) == -EACCES);
	CHECK(error_says("read-only"));
	CHECK(tshare_region_publish(imported, &generation) == -EACCES);
	CHECK(generation == 7);
	CHECK(wait_beyond(reader, 0, 50 * MS, 0) == -ETIMEDOUT);
	publish(region);
	CHECK(!wait_beyond(reader, 0, LONG, 1));
	CHECK(!wait_beyond(imported, 0, LONG, 1));
	CHECK(wait_beyond(reader, 1, 250 * MS, 0) == -ETIMEDOUT);
	tshare_region_unref(region);
	tshare_region_unref(reader);
	tshare_region_unref(imported);
}

TEST(waiting_and_publishing_leave_nothing_open)
{
	struct tshare_region *region = new_region(NULL), *other;
	size_t before = open_descriptors();
	int i;

	for (i = 0; i < 10; i++) {
		other = another(region, i % 2 ? TSHARE_READONLY : 0);
		CHECK(wait_beyond(other, UINT64_MAX, 1 * MS, 0) == (i ? -EOWNERDEAD : -ETIMEDOUT));
		if (!(i % 2))
			publish(other);
		CHECK(wait_beyond(other, UINT64_MAX, 1 * MS, 0) == (i ? -EOWNERDEAD : -ETIMEDOUT));
		tshare_region_unref(other);
	}
	CHECK(open_descriptors() == before);
	tshare_region_unref(region);
}

/* What a child process does with a region, in step with the test or not. */
struct partner {
	struct tshare_region *region;
	const char *name; /* opened by it if not NULL */
	uint32_t flags;
	uint64_t seen;
	uint64_t rounds;
	int64_t delay_ns;
	struct steps steps;
};

static struct tshare_region *open_as_partner(const struct partner *partner)
{
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (!partner->name)
		return partner->region;
	if (tshare_ctx_new(&own) || tshare_region_open(own, partner->name, partner->flags, &region))
		_exit(9);
	tshare_ctx_unref(own);
	return region;
}

static void sleep_ns(int64_t ns)
{
	const struct timespec pause = { ns / (1000 * MS), ns % (1000 * MS) };

	nanosleep(&pause, NULL);
}

static pid_t start(int (*fn)(struct partner *partner), struct partner *partner)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		_exit(fn(partner));
	return pid;
}

/* The exit status of a child, or -1 if it was killed. */
static int end_of(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		CHECK(errno == EINTR);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int publish_later(struct partner *partner)
{
	struct tshare_region *region = open_as_partner(partner);

	sleep_ns(partner->delay_ns);
	strcpy(tshare_region_data(region), "published");
	return tshare_region_publish(region, NULL) ? 1 : 0;
}

TEST(a_publish_wakes_another_process)
{
	const char *name = unique("wakes");
	struct tshare_region *region = new_region(name);
	struct partner partner = { .name = name, .delay_ns = 150 * MS };
	pid_t pid = start(publish_later, &partner);

	CHECK(!wait_beyond(region, 0, LONG, 1));
	CHECK(!strcmp(tshare_region_data(region), "published"));
	CHECK(!end_of(pid));
	tshare_region_unref(region);
}

TEST(a_publish_wakes_who_waits_for_ever)
{
	const char *name = unique("wakes");
	struct tshare_region *region = new_region(name), *reader;
	struct partner partner = { .name = name, .delay_ns = 50 * MS };
	pid_t pid;

	CHECK(!tshare_region_open(ctx, name, TSHARE_READONLY, &reader));
	pid = start(publish_later, &partner);
	CHECK(!wait_beyond(reader, 0, -1, 1));
	CHECK(!end_of(pid));
	tshare_region_unref(region);
	tshare_region_unref(reader);
}

TEST(a_publish_ends_a_spin)
{
	const char *name = unique("spins");
	struct tshare_region *region = new_region(name);
	struct partner partner = { .name = name, .delay_ns = 20 * MS };
	pid_t pid = start(publish_later, &partner);
	uint64_t generation;

	CHECK(!tshare_region_wait(region, 0, LONG, LONG, &generation));
	CHECK(generation == 1);
	CHECK(!end_of(pid));
	tshare_region_unref(region);
}

/* Says before each wait that it begins, and behind it, elsewhere, that it is over. */
static int wait_in_rounds(struct partner *partner, int woken)
{
	struct tshare_region *region = open_as_partner(partner);
	uint64_t seen;

	for (seen = 0; seen < partner->rounds; seen++)
		if (!send_byte(partner->steps.ends[0]) ||
		    wait_beyond(region, seen, LONG, seen + 1) || !send_byte(woken))
			return 1;
	return 0;
}

static void await_bytes(int end, int count)
{
	while (count--)
		CHECK(await_byte(end));
}

/*
 * Who isn't woken looks by itself at the end of a slice, 100 ms after the wait
 * began. That it was mostly quicker shows that all were woken.
 */
TEST(a_publish_wakes_all_who_wait)
{
	enum { WAITERS = 6, ROUNDS = 20 };
	const char *name = unique("all");
	struct tshare_region *region = new_region(name);
	struct partner partner = { .name = name, .rounds = ROUNDS };
	int round, quick = 0, i;
	struct steps woken;
	pid_t pids[WAITERS];
	int64_t begin;

	CHECK(steps_open(&partner.steps));
	CHECK(steps_open(&woken));
	for (i = 0; i < WAITERS; i++) {
		partner.flags = i % 2 ? TSHARE_READONLY : 0;
		pids[i] = fork();
		if (!pids[i])
			_exit(wait_in_rounds(&partner, woken.ends[0]));
	}
	for (round = 0; round < ROUNDS; round++) {
		await_bytes(partner.steps.ends[1], WAITERS);
		sleep_ns(20 * MS);
		begin = now_ns();
		publish(region);
		await_bytes(woken.ends[1], WAITERS);
		quick += now_ns() - begin < 50 * MS;
	}
	CHECK(quick > ROUNDS / 2);
	for (i = 0; i < WAITERS; i++)
		CHECK(!end_of(pids[i]));
	steps_close(&partner.steps);
	steps_close(&woken);
	tshare_region_unref(region);
}

TEST(an_unnamed_region_passes_its_generation_on)
{
	struct tshare_region *region = new_region(NULL);
	struct partner partner = { .region = another(region, 0), .delay_ns = 50 * MS };
	pid_t pid = start(publish_later, &partner);

	CHECK(!wait_beyond(region, 0, LONG, 1));
	CHECK(!end_of(pid));
	tshare_region_unref(partner.region);
	tshare_region_unref(region);
}

static int publish_received(void *data)
{
	struct steps *steps = data;
	struct tshare_region *region;
	struct tshare_ctx *own;
	int fd = receive_fd(steps->ends[1]);

	if (tshare_ctx_new(&own) || tshare_region_import(own, fd, 0, &region))
		return 1;
	return tshare_region_publish(region, NULL) ? 2 : 0;
}

TEST(who_was_passed_a_descriptor_can_publish)
{
	struct tshare_region *region = new_region(NULL);
	struct steps steps;

	CHECK(steps_open(&steps));
	CHECK(send_fd(steps.ends[0], tshare_region_fd(region)));
	CHECK(!in_child(publish_received, &steps));
	CHECK(!wait_beyond(region, 0, LONG, 1));
	steps_close(&steps);
	tshare_region_unref(region);
}

/* Publishes, says so, and goes on until it is told to go. */
static int publish_and_stay(struct partner *partner)
{
	struct tshare_region *region = open_as_partner(partner);

	if (tshare_region_publish(region, NULL))
		return 1;
	send_byte(partner->steps.ends[0]);
	await_byte(partner->steps.ends[0]);
	tshare_region_unref(region);
	send_byte(partner->steps.ends[0]);
	await_byte(partner->steps.ends[0]);
	return 0;
}

static pid_t start_publisher(struct partner *partner)
{
	pid_t pid;

	CHECK(steps_open(&partner->steps));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		close(partner->steps.ends[1]);
		_exit(publish_and_stay(partner));
	}
	close(partner->steps.ends[0]);
	CHECK(await_byte(partner->steps.ends[1]));
	return pid;
}

static void kill_and_reap(pid_t pid)
{
	CHECK(!kill(pid, SIGKILL));
	CHECK(end_of(pid) == -1);
}

TEST(a_publisher_that_was_killed_is_noticed_at_once)
{
	const char *name = unique("dead");
	struct tshare_region *region = new_region(name);
	struct partner partner = { .name = name };
	int64_t quickest = INT64_MAX, begin;
	int i;

	kill_and_reap(start_publisher(&partner));
	/* Without a sleep, that is, which would be of 100 ms. */
	for (i = 0; i < 10; i++) {
		begin = now_ns();
		CHECK(wait_beyond(region, 1, -1, 0) == -EOWNERDEAD);
		if (now_ns() - begin < quickest)
			quickest = now_ns() - begin;
	}
	CHECK(quickest < 50 * MS);
	CHECK(error_says("publishers have exited"));
	close(partner.steps.ends[1]);
	tshare_region_unref(region);
}

static int kill_later(struct partner *partner)
{
	sleep_ns(partner->delay_ns);
	return kill((pid_t)partner->seen, SIGKILL) ? 1 : 0;
}

/* @waiter waits for a publisher of the region @name that is killed meanwhile. */
static void check_death_is_noticed(struct tshare_region *waiter, const char *name)
{
	struct partner partner = { .name = name }, killer = { .delay_ns = 250 * MS };
	uint64_t seen;
	pid_t pids[2];
	int64_t begin;

	pids[0] = start_publisher(&partner);
	seen = generation_of(waiter);
	killer.seen = pids[0];
	begin = now_ns();
	pids[1] = start(kill_later, &killer);
	CHECK(wait_beyond(waiter, seen, -1, 0) == -EOWNERDEAD);
	CHECK(now_ns() - begin >= 200 * MS);
	CHECK(now_ns() - begin < 5000 * MS);
	CHECK(!end_of(pids[1]));
	CHECK(end_of(pids[0]) == -1);
	close(partner.steps.ends[1]);
}

TEST(a_publisher_that_is_killed_is_noticed_during_the_wait)
{
	const char *name = unique("dies");
	struct tshare_region *region = new_region(name);

	check_death_is_noticed(region, name);
	tshare_region_unref(region);
}

TEST(a_reader_notices_a_dead_publisher)
{
	const char *name = unique("dies");
	struct tshare_region *region = new_region(name), *reader;

	CHECK(!tshare_region_open(ctx, name, TSHARE_READONLY, &reader));
	check_death_is_noticed(reader, name);
	tshare_region_unref(reader);
	tshare_region_unref(region);
}

TEST(a_publisher_does_not_wait_for_itself)
{
	const char *name = unique("alone");
	struct tshare_region *region = new_region(name);

	publish(region);
	check_death_is_noticed(region, name);
	publish(region);
	CHECK(wait_beyond(region, generation_of(region), -1, 0) == -EOWNERDEAD);
	tshare_region_unref(region);
}

TEST(before_another_publisher_has_come_a_wait_goes_on)
{
	struct tshare_region *region = new_region(NULL);

	CHECK(wait_beyond(region, 0, 250 * MS, 0) == -ETIMEDOUT);
	publish(region);
	CHECK(wait_beyond(region, 1, 250 * MS, 0) == -ETIMEDOUT);
	tshare_region_unref(region);
}

TEST(a_publisher_in_the_same_process_is_another_one)
{
	struct tshare_region *region = new_region(NULL), *other = another(region, 0);

	publish(other);
	publish(region);
	CHECK(wait_beyond(region, 2, 250 * MS, 0) == -ETIMEDOUT);
	tshare_region_unref(other);
	CHECK(wait_beyond(region, 2, 250 * MS, 0) == -EOWNERDEAD);
	tshare_region_unref(region);
}

TEST(one_publisher_of_two_is_enough)
{
	const char *name = unique("two");
	struct tshare_region *region = new_region(name);
	struct partner one = { .name = name }, two = { .name = name };
	pid_t pids[2];

	pids[0] = start_publisher(&one);
	pids[1] = start_publisher(&two);
	kill_and_reap(pids[0]);
	CHECK(wait_beyond(region, 2, 250 * MS, 0) == -ETIMEDOUT);
	kill_and_reap(pids[1]);
	CHECK(wait_beyond(region, 2, LONG, 0) == -EOWNERDEAD);
	close(one.steps.ends[1]);
	close(two.steps.ends[1]);
	tshare_region_unref(region);
}

TEST(a_publisher_that_lets_go_is_no_longer_one)
{
	const char *name = unique("orderly");
	struct tshare_region *region = new_region(name);
	struct partner partner = { .name = name };
	pid_t pid = start_publisher(&partner);

	CHECK(wait_beyond(region, 1, 250 * MS, 0) == -ETIMEDOUT);
	CHECK(send_byte(partner.steps.ends[1]));
	CHECK(await_byte(partner.steps.ends[1]));
	CHECK(wait_beyond(region, 1, LONG, 0) == -EOWNERDEAD);
	CHECK(send_byte(partner.steps.ends[1]));
	CHECK(!end_of(pid));
	close(partner.steps.ends[1]);
	tshare_region_unref(region);
}

TEST(a_publisher_that_exits_is_no_longer_one)
{
	const char *name = unique("exits");
	struct tshare_region *region = new_region(name);
	struct partner partner = { .name = name };

	CHECK(!end_of(start(publish_later, &partner)));
	CHECK(wait_beyond(region, 1, LONG, 0) == -EOWNERDEAD);
	tshare_region_unref(region);
}

static int publish_twice_and_end(struct partner *partner)
{
	struct tshare_region *region = partner->region;

	if (tshare_region_publish(region, NULL) || !send_byte(partner->steps.ends[0]))
		return 1;
	sleep_ns(partner->delay_ns);
	return tshare_region_publish(region, NULL) ? 2 : 0;
}

/* Its last word comes just when its death could be noticed, and is what counts. */
TEST(what_the_dead_have_published_is_not_lost)
{
	struct partner partner;
	pid_t pid;
	int i;

	for (i = 0; i < 20; i++) {
		partner = (struct partner){ .region = new_region(NULL), .delay_ns = (90 + i) * MS };
		CHECK(steps_open(&partner.steps));
		pid = start(publish_twice_and_end, &partner);
		CHECK(await_byte(partner.steps.ends[1]));
		CHECK(!wait_beyond(partner.region, 1, LONG, 2));
		CHECK(!end_of(pid));
		CHECK(!wait_beyond(partner.region, 1, LONG, 2));
		steps_close(&partner.steps);
		tshare_region_unref(partner.region);
	}
}

TEST(a_new_publisher_takes_the_place_of_a_dead_one)
{
	const char *name = unique("heir");
	struct tshare_region *region = new_region(name);
	struct partner one = { .name = name }, two = { .name = name };
	pid_t pid;

	kill_and_reap(start_publisher(&one));
	CHECK(wait_beyond(region, 1, LONG, 0) == -EOWNERDEAD);
	pid = start_publisher(&two);
	CHECK(!wait_beyond(region, 1, LONG, 2));
	CHECK(wait_beyond(region, 2, 250 * MS, 0) == -ETIMEDOUT);
	kill_and_reap(pid);
	close(one.steps.ends[1]);
	close(two.steps.ends[1]);
	tshare_region_unref(region);
}

/* Publishes, leaves a child that has the region too, and ends. */
static int publish_and_fork(struct partner *partner)
{
	struct tshare_region *region = open_as_partner(partner);

	if (tshare_region_publish(region, NULL))
		return 1;
	if (!fork()) {
		send_byte(partner->steps.ends[0]);
		await_byte(partner->steps.ends[0]);
		if (!tshare_region_publish(region, NULL))
			send_byte(partner->steps.ends[0]);
		await_byte(partner->steps.ends[0]);
		_exit(0);
	}
	return 0;
}

TEST(after_fork_the_child_is_no_publisher_until_it_publishes)
{
	const char *name = unique("fork");
	struct tshare_region *region = new_region(name);
	struct partner partner = { .name = name };
	pid_t pid;

	CHECK(steps_open(&partner.steps));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		close(partner.steps.ends[1]);
		_exit(publish_and_fork(&partner));
	}
	close(partner.steps.ends[0]);
	CHECK(await_byte(partner.steps.ends[1]));
	CHECK(!end_of(pid));
	CHECK(wait_beyond(region, 1, LONG, 0) == -EOWNERDEAD);
	CHECK(send_byte(partner.steps.ends[1]));
	CHECK(await_byte(partner.steps.ends[1]));
	CHECK(wait_beyond(region, 2, 250 * MS, 0) == -ETIMEDOUT);
	close(partner.steps.ends[1]);
	CHECK(wait_beyond(region, 2, LONG, 0) == -EOWNERDEAD);
	tshare_region_unref(region);
}

static int end_at_once(struct partner *partner)
{
	tshare_region_unref(partner->region);
	return 0;
}

TEST(after_fork_the_parent_stays_a_publisher)
{
	struct tshare_region *region = new_region(NULL);
	struct tshare_region *reader = another(region, TSHARE_READONLY);
	struct partner partner = { .region = region };

	publish(region);
	CHECK(!end_of(start(end_at_once, &partner)));
	CHECK(wait_beyond(reader, 1, 250 * MS, 0) == -ETIMEDOUT);
	tshare_region_unref(region);
	CHECK(wait_beyond(reader, 1, LONG, 0) == -EOWNERDEAD);
	tshare_region_unref(reader);
}

static int wait_for_parent(struct partner *partner)
{
	/* The parent is alive, and a publisher to this process. */
	if (wait_beyond(partner->region, 1, 250 * MS, 0) != -ETIMEDOUT)
		return 1;
	send_byte(partner->steps.ends[0]);
	return wait_beyond(partner->region, 1, LONG, 2) ? 2 : 0;
}

TEST(after_fork_the_child_can_wait_for_its_parent)
{
	struct tshare_region *region = new_region(NULL);
	struct partner partner = { .region = region };
	pid_t pid;

	publish(region);
	CHECK(steps_open(&partner.steps));
	pid = start(wait_for_parent, &partner);
	CHECK(await_byte(partner.steps.ends[1]));
	publish(region);
	CHECK(!end_of(pid));
	steps_close(&partner.steps);
	tshare_region_unref(region);
}

static void note_signal(int signal)
{
	(void)signal;
}

static int send_signals(struct partner *partner)
{
	int i;

	for (i = 0; i < 10; i++) {
		sleep_ns(20 * MS);
		if (kill(getppid(), (int)partner->seen) || kill(getppid(), SIGCONT))
			return 1;
	}
	return 0;
}

static int wait_under_signals(int signal, int64_t timeout_ns)
{
	struct tshare_region *region = new_region(NULL);
	struct partner partner = { .seen = signal };
	pid_t pid;
	int err;

	pid = start(send_signals, &partner);
	err = wait_beyond(region, 0, timeout_ns, 0);
	CHECK(!end_of(pid));
	tshare_region_unref(region);
	return err;
}

TEST(a_signal_handler_ends_a_wait)
{
	struct sigaction action = { .sa_handler = note_signal }, before;

	CHECK(!sigaction(SIGUSR1, &action, &before));
	CHECK(wait_under_signals(SIGUSR1, -1) == -EINTR);
	action.sa_flags = SA_RESTART;
	CHECK(!sigaction(SIGUSR1, &action, NULL));
	CHECK(wait_under_signals(SIGUSR1, LONG) == -EINTR);
	CHECK(!sigaction(SIGUSR1, &before, NULL));
}

TEST(to_be_stopped_and_continued_does_not_end_a_wait)
{
	CHECK(wait_under_signals(SIGSTOP, 300 * MS) == -ETIMEDOUT);
}

struct crowd {
	struct tshare_region *region;
	pthread_barrier_t *together;
	int times;
};

static void *publish_together(void *data)
{
	struct crowd *crowd = data;
	int i;

	pthread_barrier_wait(crowd->together);
	for (i = 0; i < crowd->times; i++)
		if (tshare_region_publish(crowd->region, NULL))
			return data;
	return NULL;
}

TEST(threads_may_publish_to_one_region_at_the_same_time)
{
	enum { THREADS = 4, ROUNDS = 50, TIMES = 50 };
	pthread_barrier_t together;
	struct crowd crowd = { .together = &together, .times = TIMES };
	pthread_t threads[THREADS];
	size_t before = open_descriptors();
	void *failed;
	int round, i;

	CHECK(!pthread_barrier_init(&together, NULL, THREADS));
	for (round = 0; round < ROUNDS; round++) {
		crowd.region = new_region(NULL);
		for (i = 0; i < THREADS; i++)
			CHECK(!pthread_create(&threads[i], NULL, publish_together, &crowd));
		for (i = 0; i < THREADS; i++) {
			CHECK(!pthread_join(threads[i], &failed));
			CHECK(!failed);
		}
		CHECK(generation_of(crowd.region) == THREADS * TIMES);
		tshare_region_unref(crowd.region);
	}
	CHECK(open_descriptors() == before);
	pthread_barrier_destroy(&together);
}

static void *wait_together(void *data)
{
	struct crowd *crowd = data;
	uint64_t seen = 0;

	pthread_barrier_wait(crowd->together);
	while (seen < (uint64_t)crowd->times)
		if (tshare_region_wait(crowd->region, seen, LONG, 0, &seen))
			return data;
	return NULL;
}

TEST(threads_may_wait_with_one_region_at_the_same_time)
{
	enum { THREADS = 4, TIMES = 200 };
	struct tshare_region *region = new_region(NULL);
	pthread_barrier_t together;
	struct crowd crowd = { another(region, TSHARE_READONLY), &together, TIMES };
	pthread_t threads[THREADS];
	void *failed;
	int i;

	CHECK(!pthread_barrier_init(&together, NULL, THREADS + 1));
	for (i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, wait_together, &crowd));
	pthread_barrier_wait(&together);
	for (i = 0; i < TIMES; i++)
		publish(region);
	for (i = 0; i < THREADS; i++) {
		CHECK(!pthread_join(threads[i], &failed));
		CHECK(!failed);
	}
	pthread_barrier_destroy(&together);
	tshare_region_unref(crowd.region);
	tshare_region_unref(region);
}

TEST(a_thread_may_fork_while_another_publishes_for_the_first_time)
{
	pthread_barrier_t together;
	struct crowd crowd = { .together = &together, .times = 1 };
	struct partner partner = { 0 };
	pthread_t thread;
	void *failed;
	pid_t pid;
	int i;

	CHECK(!pthread_barrier_init(&together, NULL, 2));
	for (i = 0; i < 100; i++) {
		crowd.region = new_region(NULL);
		partner.region = crowd.region;
		CHECK(!pthread_create(&thread, NULL, publish_together, &crowd));
		pthread_barrier_wait(&together);
		pid = start(publish_later, &partner);
		CHECK(!pthread_join(thread, &failed));
		CHECK(!failed);
		CHECK(!end_of(pid));
		CHECK(generation_of(crowd.region) == 2);
		tshare_region_unref(crowd.region);
	}
	pthread_barrier_destroy(&together);
}

/* Answers each odd generation with an even one. */
static int answer(struct partner *partner)
{
	struct tshare_region *region = open_as_partner(partner);
	uint64_t round, seen = 0;

	for (round = 0; round < partner->rounds; round++) {
		if (tshare_region_wait(region, seen, LONG, 0, &seen) || seen != 2 * round + 1)
			return 1;
		if (*(uint64_t *)tshare_region_data(region) != round)
			return 2;
		*(uint64_t *)tshare_region_data(region) = ~round;
		if (tshare_region_publish(region, &seen) || seen != 2 * round + 2)
			return 3;
	}
	return 0;
}

TEST(no_wake_up_is_lost)
{
	const char *name = unique("pingpong");
	struct tshare_region *region = new_region(name);
	struct partner partner = { .name = name, .rounds = 20000 };
	volatile uint64_t *shared = tshare_region_data(region);
	pid_t pid = start(answer, &partner);
	uint64_t round, seen;

	for (round = 0; round < partner.rounds; round++) {
		*shared = round;
		CHECK(!tshare_region_publish(region, &seen));
		CHECK(!wait_beyond(region, seen, LONG, seen + 1));
		CHECK(*shared == ~round);
	}
	CHECK(!end_of(pid));
	tshare_region_unref(region);
}

/* Lifetime and threads */

TEST(a_tensor_keeps_its_region_and_context)
{
	struct tshare_tensor *tensor = new_tensor(NULL, TSHARE_UINT8, 2, shape_4x8);

	close_context();
	memset(tshare_tensor_data(tensor), 1, tshare_tensor_nbytes(tensor));
	CHECK(tshare_tensor_unref(tshare_tensor_ref(tensor)) == NULL);
	memset(tshare_tensor_data(tensor), 2, tshare_tensor_nbytes(tensor));
	tshare_tensor_unref(tensor);
}

static void *attach_repeatedly(void *name)
{
	struct tshare_tensor *tensor;
	int i;

	for (i = 0; i < 200; i++) {
		if (tshare_tensor_open(ctx, name, 0, &tensor))
			return name;
		++*(volatile char *)tshare_tensor_data(tensor);
		tshare_tensor_unref(tensor);
	}
	return NULL;
}

TEST(threads_may_share_a_context)
{
	const int64_t shape[] = { 3 << 20 };
	const char *name = unique("threads");
	struct tshare_tensor *tensor = new_tensor(name, TSHARE_UINT8, 1, shape);
	pthread_t threads[4];
	void *failed;
	int i;

	for (i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, attach_repeatedly,
				      (void *)(uintptr_t)name));
	for (i = 0; i < 4; i++) {
		CHECK(!pthread_join(threads[i], &failed));
		CHECK(!failed);
	}
	tshare_tensor_unref(tensor);
}

static void *fail_in_thread(void *failed)
{
	struct tshare_region *region;

	tshare_region_open(ctx, "no/such", 0, &region);
	*(bool *)failed = !strstr(tshare_last_error(), "no/such");
	return NULL;
}

TEST(each_thread_has_an_error_of_its_own)
{
	struct tshare_region *region;
	bool failed = true;
	pthread_t thread;

	tshare_region_open(ctx, "here/", 0, &region);
	CHECK(!pthread_create(&thread, NULL, fail_in_thread, &failed));
	CHECK(!pthread_join(thread, NULL));
	CHECK(!failed);
	CHECK(error_says("here/"));
}

/* Log functions */

static struct {
	struct steps steps;
	atomic_bool left;
} logging;

/* Says that it runs, and waits to be told that it may end. */
static void linger(void *data, int priority, const char *text)
{
	(void)data;
	(void)priority;
	(void)text;
	send_byte(logging.steps.ends[1]);
	await_byte(logging.steps.ends[1]);
	usleep(100000);
	atomic_store(&logging.left, true);
}

static void *create_and_log(void *unused)
{
	tshare_region_unref(new_region(NULL));
	return unused;
}

static pthread_t start_lingering(void)
{
	pthread_t thread;

	atomic_store(&logging.left, false);
	CHECK(steps_open(&logging.steps));
	tshare_ctx_set_log_fn(ctx, linger, NULL);
	CHECK(!pthread_create(&thread, NULL, create_and_log, NULL));
	CHECK(await_byte(logging.steps.ends[0]));
	return thread;
}

TEST(no_thread_is_in_a_log_function_that_was_replaced)
{
	pthread_t thread = start_lingering();
	bool left;

	CHECK(send_byte(logging.steps.ends[0]));
	tshare_ctx_set_log_fn(ctx, NULL, NULL);
	left = atomic_load(&logging.left);
	CHECK(!pthread_join(thread, NULL));
	steps_close(&logging.steps);
	CHECK(left);
}

static int replace_log_fn(void *unused)
{
	(void)unused;
	alarm(20);
	tshare_ctx_set_log_fn(ctx, NULL, NULL);
	return 0;
}

TEST(a_child_waits_for_no_log_function_of_its_parents)
{
	pthread_t thread = start_lingering();
	int status = in_child(replace_log_fn, NULL);

	CHECK(send_byte(logging.steps.ends[0]));
	CHECK(!pthread_join(thread, NULL));
	tshare_ctx_set_log_fn(ctx, NULL, NULL);
	steps_close(&logging.steps);
	CHECK(!status);
}

static void replace_itself(void *data, int priority, const char *text)
{
	(void)priority;
	(void)text;
	*(int *)data += 1;
	tshare_ctx_set_log_fn(ctx, NULL, NULL);
}

TEST(a_log_function_can_replace_itself)
{
	int count = 0;

	tshare_ctx_set_log_fn(ctx, replace_itself, &count);
	tshare_region_unref(new_region(NULL));
	tshare_region_unref(new_region(NULL));
	CHECK(count == 1);
}

static void keep_message(void *data, int priority, const char *text)
{
	(void)priority;
	snprintf(data, 256, "%s", text);
}

TEST(messages_cannot_control_a_terminal)
{
	char name[TSHARE_NAME_MAX + 1], message[256] = "";

	snprintf(name, sizeof(name), "%s\x1b[\x9b[\xc2\x9b[\xc3\xa4", unique("odd"));
	CHECK(tshare_unlink(ctx, name) == -ENOENT);
	CHECK(error_says("-odd?[?[??[\xc3\xa4'"));
	tshare_ctx_set_log_fn(ctx, keep_message, message);
	tshare_region_unref(new_region(name));
	tshare_ctx_set_log_fn(ctx, NULL, NULL);
	CHECK(strstr(message, "-odd?[?[??[\xc3\xa4'"));
}

/* Backends */

TEST(a_name_that_is_not_there_is_missed_on_a_backend)
{
	char where[32];

	snprintf(where, sizeof(where), "' on %s", tshare_ctx_backend(ctx));
	CHECK(!exists(unique("missing")));
	CHECK(error_says(where));
	CHECK(tshare_unlink(ctx, unique("missing")) == -ENOENT);
	CHECK(error_says(where));
}

/* As one who may not open the device, with standard error in @data. */
static int open_without_permission(void *data)
{
	struct tshare_ctx *own;

	if (!become(USER_ONE) || unsetenv("TSHARE_BACKEND") || dup2(*(int *)data, 2) < 0)
		return 1;
	if (tshare_ctx_new(&own) || strcmp(tshare_ctx_backend(own), "shm"))
		return 2;
	tshare_ctx_unref(own);
	return tshare_ctx_new(&own);
}

TEST(a_module_that_may_not_be_used_is_warned_of_once)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC), status;
	char said[512] = "";

	if (geteuid() || access("/dev/tshare", F_OK))
		SKIP("needs root, and the module");
	status = in_child(open_without_permission, &fd);
	CHECK(!status);
	CHECK(pread(fd, said, sizeof(said) - 1, 0) > 0);
	close(fd);
	CHECK(strstr(said, "kmod is not used: /dev/tshare: permission denied; join group tshare"));
	CHECK(!strchr(strchr(said, '\n') + 1, '\n'));
}

/* Cancellation */

static void *publish_cancelled(void *region)
{
	pthread_cancel(pthread_self());
	tshare_region_publish(region, NULL);
	return NULL;
}

static int publish_after_a_cancelled_thread(void *unused)
{
	struct tshare_region *region, *other;
	pthread_t thread;

	(void)unused;
	alarm(20);
	return tshare_region_create(ctx, NULL, 1, NULL, 0, NULL, &region) ||
	       pthread_create(&thread, NULL, publish_cancelled, region) ||
	       pthread_join(thread, NULL) || tshare_region_publish(region, NULL) ||
	       tshare_region_create(ctx, NULL, 1, NULL, 0, NULL, &other);
}

TEST(a_thread_cancelled_in_publish_holds_up_no_other)
{
	CHECK(!in_child(publish_after_a_cancelled_thread, NULL));
}

int main(void)
{
	return tap_main(open_context, close_context);
}
