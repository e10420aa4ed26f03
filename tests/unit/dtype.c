// SPDX-License-Identifier: MIT
#include <errno.h>
#include <string.h>

#include "util.h"

static void nothing(void)
{
}

static bool is(const char *name, uint8_t code, uint8_t bits, uint16_t lanes)
{
	struct tshare_dtype dtype;

	return !tshare_dtype_parse(name, &dtype) && dtype.code == code && dtype.bits == bits &&
	       dtype.lanes == lanes;
}

TEST(names_have_the_numbers_of_dlpack)
{
	CHECK(is("bool", 6, 8, 1));
	CHECK(is("int8", 0, 8, 1));
	CHECK(is("uint64", 1, 64, 1));
	CHECK(is("float16", 2, 16, 1));
	CHECK(is("bfloat16", 4, 16, 1));
	CHECK(is("complex64", 5, 64, 1));
	CHECK(is("complex128", 5, 128, 1));
	CHECK(is("float8_e3m4", 7, 8, 1));
	CHECK(is("float8_e4m3", 8, 8, 1));
	CHECK(is("float8_e4m3b11fnuz", 9, 8, 1));
	CHECK(is("float8_e4m3fn", 10, 8, 1));
	CHECK(is("float8_e4m3fnuz", 11, 8, 1));
	CHECK(is("float8_e5m2", 12, 8, 1));
	CHECK(is("float8_e5m2fnuz", 13, 8, 1));
	CHECK(is("float8_e8m0fnu", 14, 8, 1));
	CHECK(is("float6_e2m3fn", 15, 6, 1));
	CHECK(is("float6_e3m2fn", 16, 6, 1));
	CHECK(is("float4_e2m1fn", 17, 4, 1));
}

TEST(lanes_follow_an_x)
{
	CHECK(is("float32x4", 2, 32, 4));
	CHECK(is("float4_e2m1fnx2", 17, 4, 2));
	CHECK(is("complex64x65535", 5, 64, 65535));
}

TEST(unknown_names_are_rejected)
{
	static const char *const wrong[] = {
		"",
		"int",
		"int9",
		"INT8",
		"int8 ",
		" int8",
		"float",
		"float32x",
		"float32x0",
		"float32x1",
		"float32x02",
		"float32x-2",
		"float32x65536",
		"float32x4x4",
		"float32x99999999999999999999",
		"float8_e4m3f",
	};
	struct tshare_dtype dtype;
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(tshare_dtype_parse(wrong[i], &dtype) == -EINVAL);
	CHECK(tshare_dtype_parse(NULL, &dtype) == -EINVAL);
}

TEST(errors_name_the_argument)
{
	struct tshare_dtype dtype;

	tshare_dtype_parse("flaot32", &dtype);
	CHECK(error_says("dtype: 'flaot32'"));
}

TEST(each_type_with_a_name_can_be_parsed_from_it)
{
	char name[TSHARE_DTYPE_NAME_LEN];
	struct tshare_dtype dtype, parsed;
	int code, bits, named = 0;

	for (code = 0; code < 256; code++) {
		for (bits = 0; bits < 256; bits++) {
			dtype = (struct tshare_dtype){ code, bits, 1 + code % 3 };
			if (tshare_dtype_get_name(dtype, name))
				continue;
			named++;
			CHECK(!tshare_dtype_parse(name, &parsed));
			CHECK(!memcmp(&parsed, &dtype, sizeof(dtype)));
		}
	}
	CHECK(named >= 26);
}

TEST(a_type_without_lanes_has_no_name)
{
	char name[TSHARE_DTYPE_NAME_LEN];

	CHECK(tshare_dtype_get_name((struct tshare_dtype){ 2, 32, 0 }, name) == -EINVAL);
}

TEST(itemsize_counts_all_lanes)
{
	CHECK(tshare_dtype_get_itemsize(TSHARE_UINT8) == 1);
	CHECK(tshare_dtype_get_itemsize(TSHARE_COMPLEX128) == 16);
	CHECK(tshare_dtype_get_itemsize((struct tshare_dtype){ 2, 32, 3 }) == 12);
	CHECK(tshare_dtype_get_itemsize((struct tshare_dtype){ 17, 4, 2 }) == 1);
	CHECK(tshare_dtype_get_itemsize((struct tshare_dtype){ 1, 128, 65535 }) == 16 * 65535);
}

TEST(itemsize_of_packed_elements_is_0)
{
	CHECK(tshare_dtype_get_itemsize((struct tshare_dtype){ 17, 4, 1 }) == 0);
	CHECK(tshare_dtype_get_itemsize((struct tshare_dtype){ 1, 1, 7 }) == 0);
}

int main(void)
{
	return tap_main(nothing, nothing);
}
