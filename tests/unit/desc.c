// SPDX-License-Identifier: MIT
/* Validation of names and descriptors, code that library and kernel share. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "desc.h"
#include "tap.h"

#define PAGE 4096

/* A tensor of up to 33 dimensions, one more than a record may have. */
static struct {
	struct tshare_desc
		head; /* members as given; @size, @ndim and @name_len follow from the rest */
	uint32_t ndim;
	int64_t shape[TSHARE_NDIM_MAX + 1];
	int64_t strides[TSHARE_NDIM_MAX + 1];
	char name[TSHARE_TENSOR_NAME_MAX + 2];
} tensor;

/* The record, and behind it bytes that must not be read. */
static union {
	struct tshare_desc desc;
	char bytes[2 * TSHARE_DESC_SIZE_MAX];
} record;

/* A 4 x 8 float32 at the region's start, which tests then damage. */
static void reset(void)
{
	memset(&tensor, 0, sizeof(tensor));
	tensor.head.dtype_code = 2;
	tensor.head.dtype_bits = 32;
	tensor.head.dtype_lanes = 1;
	tensor.ndim = 2;
	tensor.shape[0] = 4;
	tensor.shape[1] = 8;
	tensor.strides[0] = 8;
	tensor.strides[1] = 1;
}

static void nothing(void)
{
}

static void pack(void)
{
	size_t dims = tensor.ndim * sizeof(int64_t), name_len = strlen(tensor.name);
	char *to = record.bytes + sizeof(tensor.head);

	memset(&record, 0, sizeof(record));
	memcpy(&record, &tensor.head, sizeof(tensor.head));
	record.desc.size = tshare_desc_size(tensor.ndim, name_len);
	record.desc.ndim = tensor.ndim;
	record.desc.name_len = name_len;
	memcpy(to, tensor.shape, dims);
	memcpy(to + dims, tensor.strides, dims);
	memcpy(to + 2 * dims, tensor.name, name_len);
}

/* Checks the record as it is, in a buffer of @left bytes. */
static int check_record(size_t left)
{
	return tshare_desc_check(&record.desc, left, PAGE, NULL);
}

static int check(uint64_t size)
{
	pack();
	return tshare_desc_check(&record.desc, record.desc.size, size, NULL);
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
	tensor.head.byte_offset = PAGE - 4 * 8 * 4;
	CHECK(!check(PAGE));
	tensor.head.byte_offset++;
	CHECK(check(PAGE) == -ERANGE);
}

TEST(negative_strides_reach_back_to_the_start_and_no_further)
{
	tensor.strides[0] = -8;
	tensor.head.byte_offset = 3 * 8 * 4;
	CHECK(!check(4 * 8 * 4));
	tensor.head.byte_offset--;
	CHECK(check(PAGE) == -ERANGE);
}

TEST(strides_of_zero_repeat_an_element)
{
	tensor.shape[0] = 1LL << 54;
	tensor.strides[0] = 0;
	CHECK(!check(8 * 4));
}

TEST(the_stride_of_a_single_index_is_never_used)
{
	tensor.shape[0] = 1;
	tensor.strides[0] = INT64_MIN;
	CHECK(!check(8 * 4));
}

TEST(sub_byte_elements_are_packed)
{
	tensor.head.dtype_bits = 4;
	tensor.ndim = 1;
	tensor.shape[0] = 2 * PAGE;
	tensor.strides[0] = 1;
	CHECK(!check(PAGE));
	tensor.shape[0]++;
	CHECK(check(PAGE) == -ERANGE);
}

TEST(six_bit_elements_end_within_a_byte)
{
	tensor.head.dtype_bits = 6;
	tensor.ndim = 1;
	tensor.shape[0] = 5;
	tensor.strides[0] = 1;
	CHECK(!check(4));
	CHECK(check(3) == -ERANGE);
}

TEST(lanes_multiply_the_size)
{
	tensor.head.dtype_lanes = 4;
	CHECK(!check(4 * 8 * 4 * 4));
	CHECK(check(4 * 8 * 4 * 4 - 1) == -ERANGE);
}

TEST(a_scalar_is_one_element)
{
	tensor.ndim = 0;
	CHECK(!check(4));
	CHECK(check(3) == -ERANGE);
}

TEST(a_tensor_without_elements_may_begin_at_the_end)
{
	tensor.shape[1] = 0;
	tensor.head.byte_offset = PAGE;
	CHECK(!check(PAGE));
	tensor.head.byte_offset++;
	CHECK(check(PAGE) == -ERANGE);
}

TEST(a_tensor_without_elements_may_have_any_strides)
{
	tensor.shape[0] = 0;
	tensor.shape[1] = 1LL << 57;
	tensor.strides[1] = INT64_MIN;
	CHECK(!check(PAGE));
	tensor.shape[1] = INT64_MAX;
	CHECK(check(PAGE) == -ERANGE);
}

TEST(spans_that_overflow_are_out_of_range)
{
	tensor.shape[0] = INT64_MAX;
	tensor.strides[0] = INT64_MAX;
	CHECK(check(UINT64_MAX) == -ERANGE);
	tensor.strides[0] = INT64_MIN;
	CHECK(check(UINT64_MAX) == -ERANGE);
}

TEST(sums_of_spans_that_overflow_are_out_of_range)
{
	tensor.shape[0] = 2;
	tensor.strides[0] = INT64_MAX;
	tensor.shape[1] = 2;
	tensor.strides[1] = INT64_MAX;
	CHECK(check(UINT64_MAX) == -ERANGE);
}

TEST(bits_that_overflow_are_out_of_range)
{
	tensor.shape[0] = INT64_MAX / 8;
	CHECK(check(UINT64_MAX) == -ERANGE);
}

TEST(elements_in_one_place_are_counted_all_the_same)
{
	tensor.strides[0] = 0;
	tensor.strides[1] = 0;
	tensor.shape[0] = 1LL << 29;
	tensor.shape[1] = 1LL << 28;
	CHECK(!check(4));
	tensor.shape[1] = 1LL << 29;
	CHECK(check(4) == -ERANGE);
	tensor.ndim = 3;
	CHECK(check(4) == -ERANGE);
}

TEST(a_negative_dimension_is_malformed)
{
	tensor.shape[1] = -1;
	CHECK(check(PAGE) == -EINVAL);
}

TEST(too_many_dimensions_are_malformed)
{
	tensor.ndim = TSHARE_NDIM_MAX + 1;
	CHECK(check(PAGE) == -EINVAL);
}

TEST(a_type_needs_bits_and_lanes)
{
	tensor.head.dtype_bits = 0;
	CHECK(check(PAGE) == -EINVAL);
	reset();
	tensor.head.dtype_lanes = 0;
	CHECK(check(PAGE) == -EINVAL);
}

TEST(an_unknown_flag_is_malformed)
{
	int bit;

	for (bit = 0; bit < 32; bit++) {
		tensor.head.flags = UINT32_C(1) << bit;
		CHECK(check(PAGE) == -EINVAL);
	}
}

/* Sizes of records by the formula in the header, which a peer uses. */
TEST(a_record_is_as_large_as_its_dimensions_and_its_name)
{
	CHECK(tshare_desc_size(0, 0) == 32);
	CHECK(tshare_desc_size(0, 7) == 32);
	CHECK(tshare_desc_size(0, 8) == 40);
	CHECK(tshare_desc_size(2, 60) == 120);
	CHECK(TSHARE_DESC_SIZE_MAX == 24 + 2 * 32 * 8 + 1024);
}

TEST(a_record_of_another_size_is_malformed)
{
	static const uint32_t sizes[] = { 0, 8, 24, 56, 63, 65, 72, 1 << 31, UINT32_MAX };
	size_t i;

	pack();
	CHECK(record.desc.size == 64);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		record.desc.size = sizes[i];
		CHECK(check_record(sizeof(record)) == -EINVAL);
	}
}

TEST(a_record_ends_inside_its_buffer)
{
	size_t left;

	pack();
	for (left = 0; left < 64; left++)
		CHECK(check_record(left) == -EINVAL);
	CHECK(!check_record(64));
}

TEST(the_next_record_is_behind_one)
{
	pack();
	CHECK((const char *)tshare_desc_next(&record.desc) == record.bytes + 64);
}

/* No member of a record is read before the buffer's end is checked. */
TEST(a_record_without_an_end_is_not_followed)
{
	pack();
	record.desc.ndim = UINT16_MAX;
	CHECK(check_record(64) == -EINVAL);
	pack();
	record.desc.name_len = UINT16_MAX;
	CHECK(check_record(64) == -ENAMETOOLONG);
	pack();
	record.desc.ndim = TSHARE_NDIM_MAX;
	record.desc.name_len = TSHARE_TENSOR_NAME_MAX;
	record.desc.size = TSHARE_DESC_SIZE_MAX;
	CHECK(check_record(64) == -EINVAL);
}

/* Memory of exactly that size, whose end a sanitizer checks. */
static int check_exactly(const void *bytes, size_t size)
{
	struct tshare_desc *copy = malloc(size);
	int err;

	CHECK(copy || !size);
	if (size)
		memcpy(copy, bytes, size);
	err = tshare_desc_check(copy, size, PAGE, NULL);
	if (!err)
		err = (size_t)((char *)tshare_desc_next(copy) - (char *)copy) > size;
	free(copy);
	return err;
}

/* Deterministic noise: no record makes the code read beyond its buffer. */
TEST(random_records_are_read_no_further_than_their_buffer)
{
	uint64_t noise = 88172645463325252ULL;
	size_t size;
	int i, j;

	for (i = 0; i < 200000; i++) {
		reset();
		tensor.ndim = i % 5;
		memset(tensor.name, 'n', i % 30);
		pack();
		size = record.desc.size;
		for (j = 0; j < i % 4; j++) {
			noise ^= noise << 13;
			noise ^= noise >> 7;
			noise ^= noise << 17;
			record.bytes[noise % size] = noise >> 32;
		}
		if (i % 7 == 0)
			size -= noise % (size + 1);
		CHECK(check_exactly(&record, size) <= 0);
	}
}

TEST(a_name_has_up_to_1023_bytes)
{
	memset(tensor.name, 'a', TSHARE_TENSOR_NAME_MAX);
	CHECK(!check(PAGE));
	CHECK(!strcmp(tshare_desc_name(&record.desc), tensor.name));
	tensor.name[TSHARE_TENSOR_NAME_MAX] = 'a';
	CHECK(check(PAGE) == -ENAMETOOLONG);
}

TEST(a_name_has_no_nul_in_it)
{
	size_t i;

	strcpy(tensor.name, "abc");
	for (i = 0; i < 3; i++) {
		pack();
		((char *)tshare_desc_name(&record.desc))[i] = '\0';
		CHECK(check_record(sizeof(record)) == -EINVAL);
	}
}

TEST(a_name_is_followed_by_zeros)
{
	size_t i;

	strcpy(tensor.name, "abc");
	for (i = 3; i < 8; i++) {
		pack();
		((char *)tshare_desc_name(&record.desc))[i] = 'd';
		CHECK(check_record(sizeof(record)) == -EINVAL);
	}
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
		strcpy(tensor.name, names[i]);
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

TEST(errors_name_what_is_wrong)
{
	const char *why = "";

	tensor.shape[1] = -1;
	pack();
	CHECK(tshare_desc_check(&record.desc, record.desc.size, PAGE, &why) == -EINVAL);
	CHECK(strstr(why, "shape"));
}

int main(void)
{
	return tap_main(reset, nothing);
}
