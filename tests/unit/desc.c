// SPDX-License-Identifier: MIT
/* Validation of names and descriptors, which library and kernel share. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "desc.h"
#include "tap.h"

#define PAGE 4096

static struct tshare_desc desc;

/* A 4 x 8 float32 at the region's start, which tests then spoil. */
static void reset(void)
{
	memset(&desc, 0, sizeof(desc));
	desc.dtype_code = 2;
	desc.dtype_bits = 32;
	desc.dtype_lanes = 1;
	desc.ndim = 2;
	desc.shape[0] = 4;
	desc.shape[1] = 8;
	desc.strides[0] = 8;
	desc.strides[1] = 1;
}

static void nothing(void)
{
}

static int check(uint64_t size)
{
	return tshare_desc_check(&desc, size, NULL);
}

TEST(a_tensor_may_fill_its_region)
{
	CHECK(!check(4 * 8 * 4));
}

TEST(a_tensor_may_not_exceed_its_region)
{
	CHECK(check(4 * 8 * 4 - 1) == -ERANGE);
}

TEST(an_offset_counts)
{
	desc.byte_offset = PAGE - 4 * 8 * 4;
	CHECK(!check(PAGE));
	desc.byte_offset++;
	CHECK(check(PAGE) == -ERANGE);
}

TEST(negative_strides_reach_back_to_the_start_and_no_further)
{
	desc.strides[0] = -8;
	desc.byte_offset = 3 * 8 * 4;
	CHECK(!check(4 * 8 * 4));
	desc.byte_offset--;
	CHECK(check(PAGE) == -ERANGE);
}

TEST(strides_of_zero_repeat_an_element)
{
	desc.shape[0] = 1LL << 54;
	desc.strides[0] = 0;
	CHECK(!check(8 * 4));
}

TEST(the_stride_of_a_single_index_is_never_used)
{
	desc.shape[0] = 1;
	desc.strides[0] = INT64_MIN;
	CHECK(!check(8 * 4));
}

TEST(sub_byte_elements_are_packed)
{
	desc.dtype_bits = 4;
	desc.ndim = 1;
	desc.shape[0] = 2 * PAGE;
	desc.strides[0] = 1;
	desc.shape[1] = desc.strides[1] = 0;
	CHECK(!check(PAGE));
	desc.shape[0]++;
	CHECK(check(PAGE) == -ERANGE);
}

TEST(six_bit_elements_end_within_a_byte)
{
	desc.dtype_bits = 6;
	desc.ndim = 1;
	desc.shape[0] = 5;
	desc.strides[0] = 1;
	desc.shape[1] = desc.strides[1] = 0;
	CHECK(!check(4));
	CHECK(check(3) == -ERANGE);
}

TEST(lanes_multiply_the_size)
{
	desc.dtype_lanes = 4;
	CHECK(!check(4 * 8 * 4 * 4));
	CHECK(check(4 * 8 * 4 * 4 - 1) == -ERANGE);
}

TEST(a_scalar_is_one_element)
{
	desc.ndim = 0;
	memset(desc.shape, 0, sizeof(desc.shape));
	memset(desc.strides, 0, sizeof(desc.strides));
	CHECK(!check(4));
	CHECK(check(3) == -ERANGE);
}

TEST(a_tensor_without_elements_may_begin_at_the_end)
{
	desc.shape[1] = 0;
	desc.byte_offset = PAGE;
	CHECK(!check(PAGE));
	desc.byte_offset++;
	CHECK(check(PAGE) == -ERANGE);
}

TEST(a_tensor_without_elements_may_have_any_strides)
{
	desc.shape[0] = 0;
	desc.shape[1] = 1LL << 57;
	desc.strides[1] = INT64_MIN;
	CHECK(!check(PAGE));
	desc.shape[1] = INT64_MAX;
	CHECK(check(PAGE) == -ERANGE);
}

TEST(spans_that_overflow_are_out_of_range)
{
	desc.shape[0] = INT64_MAX;
	desc.strides[0] = INT64_MAX;
	CHECK(check(UINT64_MAX) == -ERANGE);
	desc.strides[0] = INT64_MIN;
	CHECK(check(UINT64_MAX) == -ERANGE);
}

TEST(sums_of_spans_that_overflow_are_out_of_range)
{
	desc.shape[0] = 2;
	desc.strides[0] = INT64_MAX;
	desc.shape[1] = 2;
	desc.strides[1] = INT64_MAX;
	CHECK(check(UINT64_MAX) == -ERANGE);
}

TEST(bits_that_overflow_are_out_of_range)
{
	desc.shape[0] = INT64_MAX / 8;
	CHECK(check(UINT64_MAX) == -ERANGE);
}

TEST(elements_in_one_place_are_counted_all_the_same)
{
	desc.strides[0] = 0;
	desc.strides[1] = 0;
	desc.shape[0] = 1LL << 29;
	desc.shape[1] = 1LL << 28;
	CHECK(!check(4));
	desc.shape[1] = 1LL << 29;
	CHECK(check(4) == -ERANGE);
	desc.ndim = 3;
	CHECK(check(4) == -ERANGE);
}

TEST(a_negative_dimension_is_malformed)
{
	desc.shape[1] = -1;
	CHECK(check(PAGE) == -EINVAL);
}

TEST(too_many_dimensions_are_malformed)
{
	desc.ndim = TSHARE_NDIM_MAX + 1;
	CHECK(check(PAGE) == -EINVAL);
}

TEST(dimensions_beyond_ndim_must_be_zero)
{
	desc.shape[2] = 1;
	CHECK(check(PAGE) == -EINVAL);
	reset();
	desc.strides[TSHARE_NDIM_MAX - 1] = 1;
	CHECK(check(PAGE) == -EINVAL);
}

TEST(a_type_needs_bits_and_lanes)
{
	desc.dtype_bits = 0;
	CHECK(check(PAGE) == -EINVAL);
	reset();
	desc.dtype_lanes = 0;
	CHECK(check(PAGE) == -EINVAL);
}

TEST(flags_and_reserved_members_must_be_zero)
{
	size_t i;

	desc.flags = 1;
	CHECK(check(PAGE) == -EINVAL);
	for (i = 0; i < sizeof(desc.reserved) / sizeof(desc.reserved[0]); i++) {
		reset();
		desc.reserved[i] = 1;
		CHECK(check(PAGE) == -EINVAL);
	}
}

TEST(a_name_must_end)
{
	memset(desc.name, 'a', sizeof(desc.name));
	CHECK(check(PAGE) == -ENAMETOOLONG);
	desc.name[sizeof(desc.name) - 1] = '\0';
	CHECK(!check(PAGE));
}

TEST(a_region_s_name_has_no_slash)
{
	const char name[TSHARE_NAME_LEN] = "a/b";

	CHECK(tshare_name_check(name, NULL) == -EINVAL);
}

TEST(a_tensor_s_name_may_be_a_path)
{
	static const char *const names[] = { "params/dense/kernel", "/", "a/", ".", "..", "\xff" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		strcpy(desc.name, names[i]);
		CHECK(!check(PAGE));
	}
}

TEST(a_name_is_neither_dot_nor_dot_dot)
{
	char name[TSHARE_NAME_LEN] = ".";

	CHECK(tshare_name_check(name, NULL) == -EINVAL);
	strcpy(name, "..");
	CHECK(tshare_name_check(name, NULL) == -EINVAL);
	strcpy(name, "...");
	CHECK(!tshare_name_check(name, NULL));
}

TEST(what_is_wrong_is_named)
{
	const char *why = "";

	desc.shape[1] = -1;
	CHECK(tshare_desc_check(&desc, PAGE, &why) == -EINVAL);
	CHECK(strstr(why, "shape"));
}

int main(void)
{
	return tap_main(reset, nothing);
}
