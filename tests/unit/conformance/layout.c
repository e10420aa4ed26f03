// SPDX-License-Identifier: MIT
/* The layout of a region's tensors, and the limits on tensors. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../partner.h"

TEST(one_tensor_begins_at_the_start)
{
	struct tshare_tensor *tensor = new_tensor(NULL, TSHARE_FLOAT32, 2, shape_4x8);
	struct tshare_region *region = tshare_tensor_get_region(tensor);

	CHECK(tshare_tensor_get_byte_offset(tensor) == 0);
	CHECK(tshare_tensor_get_data(tensor) == tshare_region_get_data(region));
	CHECK(tshare_tensor_get_nbytes(tensor) == 128);
	CHECK(tshare_tensor_get_ndim(tensor) == 2);
	CHECK(!memcmp(tshare_tensor_get_shape(tensor), shape_4x8, sizeof(shape_4x8)));
	CHECK(tshare_tensor_get_strides(tensor)[0] == 8 &&
	      tshare_tensor_get_strides(tensor)[1] == 1);
	CHECK(tshare_tensor_is_contiguous(tensor));
	CHECK(!tshare_tensor_is_readonly(tensor));
	CHECK(tshare_tensor_get_dtype(tensor).code == 2 &&
	      tshare_tensor_get_dtype(tensor).bits == 32);
	tshare_tensor_unref(tensor);
}

TEST(tensors_lie_behind_each_other_aligned_to_64_bytes)
{
	const int64_t odd[] = { 33 };
	struct tshare_spec specs[] = {
		SPEC("a", TSHARE_UINT8, 1, odd),
		SPEC("b", TSHARE_FLOAT64, 1, odd),
		SPEC("c", TSHARE_UINT8, 0),
	};
	const uint64_t expected[] = { 0, 64, 384 };
	struct tshare_tensor *tensor;
	struct tshare_region *region;
	size_t i;

	CHECK(!tshare_region_create(ctx, NULL, 0, specs, 3, NULL, &region));
	CHECK(tshare_region_get_tensor_count(region) == 3);
	for (i = 0; i < 3; i++) {
		CHECK(!tshare_region_find_tensor(region, specs[i].name, &tensor));
		CHECK(tshare_tensor_get_byte_offset(tensor) == expected[i]);
		tshare_tensor_unref(tensor);
	}
	tshare_region_unref(region);
}

TEST(layout_reports_where_create_would_place_tensors)
{
	const int64_t shape[] = { 3, 5 }, strides[] = { -5, 1 };
	const struct tshare_spec specs[] = {
		SPEC("a", TSHARE_UINT8, 2, shape),
		SPEC("b", TSHARE_FLOAT32, 2, shape, strides),
		SPEC("c", TSHARE_FLOAT32, 2, shape, NULL, 4096),
		SPEC("d", TSHARE_UINT8, 0),
	};
	uint64_t offsets[4], size;
	struct tshare_region *region;
	struct tshare_tensor *tensor;
	size_t i;

	CHECK(!tshare_region_compute_layout(specs, 4, offsets, &size));
	CHECK(!tshare_region_create(ctx, NULL, 0, specs, 4, NULL, &region));
	CHECK(size <= tshare_region_get_size(region));
	for (i = 0; i < 4; i++) {
		CHECK(!tshare_region_get_tensor(region, i, &tensor));
		CHECK(tshare_tensor_get_byte_offset(tensor) == offsets[i]);
		tshare_tensor_unref(tensor);
	}
	CHECK(size == offsets[3] + 1);
	tshare_region_unref(region);
	CHECK(!tshare_region_compute_layout(NULL, 0, NULL, NULL));
	CHECK(tshare_region_compute_layout(NULL, 1, offsets, NULL) == -EINVAL);
	CHECK(tshare_region_compute_layout(specs, 1, NULL, NULL) == -EINVAL);
	CHECK(tshare_region_compute_layout(specs, SIZE_MAX, offsets, NULL) == -EINVAL);
}

TEST(specs_of_zeros_lie_behind_each_other)
{
	const int64_t shape[] = { 3 };
	struct tshare_spec specs[] = {
		SPEC("a", TSHARE_UINT8, 1, shape),
		SPEC("b", TSHARE_UINT8, 1, shape),
	};
	uint64_t offsets[2];

	CHECK(!tshare_region_compute_layout(specs, 2, offsets, NULL));
	CHECK(offsets[0] == 0 && offsets[1] == 64);
}

TEST(a_tensor_can_be_placed_at_the_very_start)
{
	const int64_t shape[] = { 3 }, back[] = { -1 };
	struct tshare_spec specs[] = {
		SPEC("a", TSHARE_UINT8, 1, shape),
		SPEC("b", TSHARE_UINT8, 1, shape, NULL, TSHARE_OFFSET_START),
	};
	struct tshare_region *region;
	uint64_t offsets[2];

	CHECK(!tshare_region_compute_layout(specs, 2, offsets, NULL));
	CHECK(offsets[0] == 0 && offsets[1] == 0);
	specs[1].strides = back;
	CHECK(tshare_region_create(ctx, NULL, 0, specs, 2, NULL, &region) == -ERANGE);
	CHECK(error_says("specs[1].strides"));
}

TEST(negative_strides_get_room_before_the_first_element)
{
	const int64_t shape[] = { 5 }, strides[] = { -1 };
	struct tshare_spec specs[] = {
		SPEC("a", TSHARE_FLOAT32, 1, shape, strides),
		SPEC("b", TSHARE_FLOAT32, 1, shape, strides),
	};
	struct tshare_tensor *a, *b;
	struct tshare_region *region;

	CHECK(!tshare_region_create(ctx, NULL, 0, specs, 2, NULL, &region));
	CHECK(!tshare_region_get_tensor(region, 0, &a));
	CHECK(!tshare_region_get_tensor(region, 1, &b));
	CHECK(tshare_tensor_get_byte_offset(a) >= 16);
	CHECK(tshare_tensor_get_byte_offset(b) >= tshare_tensor_get_byte_offset(a) + 4 + 16);
	CHECK(!tshare_tensor_is_contiguous(a));
	tshare_tensor_unref(a);
	tshare_tensor_unref(b);
	tshare_region_unref(region);
}

TEST(tensors_may_be_placed_and_overlap)
{
	const int64_t shape[] = { 16 };
	struct tshare_spec specs[] = {
		SPEC("whole", TSHARE_UINT8, 1, shape, NULL, 100),
		SPEC("part", TSHARE_UINT8, 0, NULL, NULL, 103),
	};
	struct tshare_tensor *whole, *part;
	struct tshare_region *region;

	CHECK(!tshare_region_create(ctx, NULL, 0, specs, 2, NULL, &region));
	CHECK(!tshare_region_find_tensor(region, "whole", &whole));
	CHECK(!tshare_region_find_tensor(region, "part", &part));
	((char *)tshare_tensor_get_data(whole))[3] = 42;
	CHECK(*(char *)tshare_tensor_get_data(part) == 42);
	tshare_tensor_unref(whole);
	tshare_tensor_unref(part);
	tshare_region_unref(region);
}

TEST(a_tensor_outside_its_region_is_out_of_range)
{
	struct tshare_spec spec = SPEC(NULL, TSHARE_UINT8, 0, NULL, NULL, 0);
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
	struct tshare_spec spec = SPEC(NULL, TSHARE_FLOAT32, 1, shape, strides, 12);
	struct tshare_region *region;

	CHECK(tshare_region_create(ctx, NULL, 0, &spec, 1, NULL, &region) == -ERANGE);
	CHECK(error_says("strides"));
}

TEST(errors_name_the_dimension)
{
	const int64_t shape[] = { 2, -3 };
	struct tshare_tensor *tensor;

	CHECK(tshare_tensor_create(ctx, NULL, TSHARE_UINT8, 2, shape, NULL, &tensor) == -EINVAL);
	CHECK(!strcmp(tshare_error_get(), "shape[1]: -3 is negative"));
}

TEST(errors_name_the_tensor)
{
	const int64_t shape[] = { -1 };
	struct tshare_spec specs[] = {
		SPEC("a", TSHARE_UINT8, 0),
		SPEC("b", TSHARE_UINT8, 1, shape),
	};
	uint64_t page = limits_of(ctx).page_size;
	struct tshare_region *region;

	CHECK(tshare_region_create(ctx, NULL, 0, specs, 2, NULL, &region) == -EINVAL);
	CHECK(error_says("specs[1].shape[0]: -1 is negative"));
	CHECK(tshare_region_create(ctx, NULL, 0, specs + 1, 1, NULL, &region) == -EINVAL);
	CHECK(error_says("specs[0].shape[0]: -1 is negative"));
	specs[1].byte_offset = page;
	specs[1].ndim = 0;
	CHECK(tshare_region_create(ctx, NULL, page, specs + 1, 1, NULL, &region) == -ERANGE);
	CHECK(error_says("specs[0].shape, strides: "));
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

	CHECK(tshare_tensor_get_nbytes(tensor) == 0);
	CHECK(tshare_tensor_is_contiguous(tensor));
	CHECK(tshare_region_get_size(tshare_tensor_get_region(tensor)) == limits_of(ctx).page_size);
	tshare_tensor_unref(tensor);
}

TEST(sub_byte_elements_are_packed)
{
	const int64_t shape[] = { 3 };
	struct tshare_dtype float4 = { 17, 4, 1 };
	struct tshare_tensor *tensor = new_tensor(NULL, float4, 1, shape);

	CHECK(tshare_tensor_get_nbytes(tensor) == 2);
	tshare_tensor_unref(tensor);
}

TEST(tensor_names_are_unique_in_a_region)
{
	struct tshare_spec specs[] = {
		SPEC("w", TSHARE_UINT8, 0),
		SPEC("v", TSHARE_UINT8, 0),
		SPEC("w", TSHARE_UINT8, 0),
	};
	struct tshare_region *region;

	CHECK(tshare_region_create(ctx, NULL, 0, specs, 3, NULL, &region) == -EINVAL);
	CHECK(error_says("specs[2].name: 'w' is that of specs[0] too"));
}

TEST(one_tensor_of_a_region_may_have_no_name)
{
	struct tshare_spec specs[] = {
		SPEC(NULL, TSHARE_UINT8, 0),
		SPEC("v", TSHARE_UINT8, 0),
		SPEC("", TSHARE_UINT8, 0),
	};
	struct tshare_region *region;

	CHECK(tshare_region_create(ctx, NULL, 0, specs, 3, NULL, &region) == -EINVAL);
	CHECK(!tshare_region_create(ctx, NULL, 0, specs, 2, NULL, &region));
	tshare_region_unref(region);
}

/* To look at each of a million takes long in a guest. */
#define STEP 61

/* The maximum number of tensors, each with its own number as value, in another process. */
static int check_many(void *name)
{
	struct tshare_tensor *tensor;
	struct tshare_region *region;
	struct tshare_ctx *own;
	char part[16];
	int32_t i;

	if (tshare_ctx_new(NULL, &own) ||
	    tshare_region_open(own, name, &readonly_options, &region) ||
	    tshare_region_get_tensor_count(region) != TSHARE_TENSOR_LIMIT)
		return 1;
	for (i = 0; i < TSHARE_TENSOR_LIMIT; i += STEP) {
		snprintf(part, sizeof(part), "%" PRId32, i);
		if (tshare_region_find_tensor(region, part, &tensor) ||
		    *(int32_t *)tshare_tensor_get_data(tensor) != i)
			return 2;
		tshare_tensor_unref(tensor);
	}
	if (tshare_region_find_tensor(region, "none", &tensor) != -ENOENT ||
	    tshare_region_get_tensor(region, TSHARE_TENSOR_LIMIT, &tensor) != -ENOENT)
		return 3;
	tshare_region_unref(region);
	tshare_ctx_unref(own);
	return 0;
}

TEST(a_region_holds_up_to_1048576_tensors)
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
		specs[i] = (struct tshare_spec)SPEC(names[i], TSHARE_INT32, 0);
	}
	CHECK(tshare_region_create(ctx, name, 0, specs, i, NULL, &region) == -EINVAL);
	CHECK(error_says("count"));
	err = tshare_region_create(ctx, name, 0, specs, i - 1, NULL, &region);
	if (err == -EDQUOT)
		SKIP("this user may not lock so much memory");
	CHECK(!err);
	for (i = 0; i < TSHARE_TENSOR_LIMIT; i += STEP) {
		CHECK(!tshare_region_get_tensor(region, i, &tensor));
		*(int32_t *)tshare_tensor_get_data(tensor) = i;
		tshare_tensor_unref(tensor);
	}
	CHECK(!in_child(check_many, (void *)(uintptr_t)name));
	tshare_region_unref(region);
	free(names);
	free(specs);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
