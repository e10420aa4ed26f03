// SPDX-License-Identifier: MIT
/* Views of a tensor: one index, every step-th, other orders and shapes. */
#include <errno.h>
#include <string.h>

#include "util.h"

static const int64_t shape_2x3x4[] = { 2, 3, 4 };

/* 0 to 23 as int16. */
static struct tshare_tensor *counting(void)
{
	struct tshare_tensor *tensor;
	int16_t *data;
	int i;

	CHECK(!tshare_tensor_create(ctx, NULL, TSHARE_INT16, 3, shape_2x3x4, NULL, &tensor));
	data = tshare_tensor_get_data(tensor);
	for (i = 0; i < 24; i++)
		data[i] = i;
	return tensor;
}

/* Whether a tensor has these elements, in C order. */
static bool has(const struct tshare_tensor *tensor, size_t count, const int16_t *expected)
{
	int16_t buffer[24];

	return tshare_tensor_get_nbytes(tensor) == count * sizeof(*expected) &&
	       !tshare_tensor_read(tensor, buffer) &&
	       !memcmp(buffer, expected, count * sizeof(*expected));
}

static bool has_shape(const struct tshare_tensor *tensor, int32_t ndim, const int64_t *shape)
{
	return tshare_tensor_get_ndim(tensor) == ndim &&
	       !memcmp(tshare_tensor_get_shape(tensor), shape, ndim * sizeof(*shape));
}

#define HAS(tensor, ...)                                                  \
	has(tensor, sizeof((int16_t[]){ __VA_ARGS__ }) / sizeof(int16_t), \
	    (int16_t[]){ __VA_ARGS__ })
#define HAS_SHAPE(tensor, ...)                                                  \
	has_shape(tensor, sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), \
		  (int64_t[]){ __VA_ARGS__ })

TEST(select_drops_the_dimension)
{
	struct tshare_tensor *tensor = counting(), *view;

	CHECK(!tshare_tensor_select(tensor, 1, 2, &view));
	tshare_tensor_unref(tensor);
	CHECK(HAS_SHAPE(view, 2, 4));
	CHECK(HAS(view, 8, 9, 10, 11, 20, 21, 22, 23));
	CHECK(!strcmp(tshare_tensor_get_name(view), ""));
	tshare_tensor_unref(view);
}

TEST(select_of_the_only_dimension_is_a_scalar)
{
	struct tshare_tensor *tensor = counting(), *matrix, *row, *scalar;

	CHECK(!tshare_tensor_select(tensor, 0, 1, &matrix));
	CHECK(!tshare_tensor_select(matrix, 0, 1, &row));
	CHECK(!tshare_tensor_select(row, 0, 3, &scalar));
	CHECK(tshare_tensor_get_ndim(scalar) == 0);
	CHECK(HAS(scalar, 19));
	tshare_tensor_unref(scalar);
	tshare_tensor_unref(row);
	tshare_tensor_unref(matrix);
	tshare_tensor_unref(tensor);
}

TEST(select_rejects_missing_dimensions_and_indices)
{
	struct tshare_tensor *tensor = counting(), *view;

	CHECK(tshare_tensor_select(tensor, 3, 0, &view) == -EINVAL);
	CHECK(error_says("dim: 3"));
	CHECK(tshare_tensor_select(tensor, -1, 0, &view) == -EINVAL);
	CHECK(tshare_tensor_select(tensor, 1, 3, &view) == -ERANGE);
	CHECK(error_says("index: 3 is not 0 to 2"));
	CHECK(tshare_tensor_select(tensor, 1, -1, &view) == -ERANGE);
	tshare_tensor_unref(tensor);
}

TEST(slice_takes_every_step_th_index)
{
	struct tshare_tensor *tensor = counting(), *view;

	CHECK(!tshare_tensor_slice(tensor, 2, 1, 4, 2, &view));
	CHECK(HAS_SHAPE(view, 2, 3, 2));
	CHECK(HAS(view, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23));
	tshare_tensor_unref(view);
	CHECK(!tshare_tensor_slice(tensor, 1, 0, 3, 1, &view));
	CHECK(HAS_SHAPE(view, 2, 3, 4));
	CHECK(tshare_tensor_is_contiguous(view));
	tshare_tensor_unref(view);
	tshare_tensor_unref(tensor);
}

TEST(slice_goes_back_with_a_negative_step)
{
	struct tshare_tensor *tensor = counting(), *row, *view;

	CHECK(!tshare_tensor_select(tensor, 0, 0, &view));
	CHECK(!tshare_tensor_select(view, 0, 0, &row));
	tshare_tensor_unref(view);
	CHECK(!tshare_tensor_slice(row, 0, 3, -1, -1, &view));
	CHECK(HAS(view, 3, 2, 1, 0));
	tshare_tensor_unref(view);
	CHECK(!tshare_tensor_slice(row, 0, 3, 0, -2, &view));
	CHECK(HAS(view, 3, 1));
	tshare_tensor_unref(view);
	CHECK(!tshare_tensor_slice(row, 0, 2, -1, INT64_MIN, &view));
	CHECK(HAS(view, 2));
	tshare_tensor_unref(view);
	CHECK(!tshare_tensor_slice(row, 0, 1, 4, INT64_MAX, &view));
	CHECK(HAS(view, 1));
	tshare_tensor_unref(view);
	tshare_tensor_unref(row);
	tshare_tensor_unref(tensor);
}

TEST(slice_without_an_index_has_no_elements)
{
	struct tshare_tensor *tensor = counting(), *view, *none;

	CHECK(!tshare_tensor_slice(tensor, 1, 2, 1, 1, &view));
	CHECK(HAS_SHAPE(view, 2, 0, 4));
	CHECK(!tshare_tensor_get_nbytes(view));
	CHECK(!tshare_tensor_slice(view, 1, 0, 0, 1, &none));
	tshare_tensor_unref(none);
	CHECK(!tshare_tensor_slice(view, 1, -1, -1, -1, &none));
	tshare_tensor_unref(none);
	tshare_tensor_unref(view);
	CHECK(!tshare_tensor_slice(tensor, 1, 3, 3, 1, &view));
	tshare_tensor_unref(view);
	CHECK(!tshare_tensor_slice(tensor, 1, 0, 2, -1, &view));
	CHECK(!tshare_tensor_get_nbytes(view));
	tshare_tensor_unref(view);
	tshare_tensor_unref(tensor);
}

TEST(slice_without_an_index_begins_where_the_tensor_does)
{
	struct tshare_tensor *tensor = counting(), *view;

	CHECK(!tshare_tensor_slice(tensor, 1, 3, 3, 1, &view));
	CHECK(tshare_tensor_get_byte_offset(view) == tshare_tensor_get_byte_offset(tensor));
	tshare_tensor_unref(view);
	CHECK(!tshare_tensor_slice(tensor, 1, 0, 2, -1, &view));
	CHECK(tshare_tensor_get_byte_offset(view) == tshare_tensor_get_byte_offset(tensor));
	tshare_tensor_unref(view);
	tshare_tensor_unref(tensor);
}

TEST(slice_with_one_index_keeps_the_stride)
{
	struct tshare_tensor *tensor = counting(), *view;

	CHECK(!tshare_tensor_slice(tensor, 1, 1, 3, 5, &view));
	CHECK(HAS_SHAPE(view, 2, 1, 4));
	CHECK(tshare_tensor_get_strides(view)[1] == 4);
	tshare_tensor_unref(view);
	CHECK(!tshare_tensor_slice(tensor, 1, 0, 3, 2, &view));
	CHECK(tshare_tensor_get_strides(view)[1] == 8);
	tshare_tensor_unref(view);
	tshare_tensor_unref(tensor);
}

TEST(slice_rejects_missing_dimensions_and_indices)
{
	struct tshare_tensor *tensor = counting(), *view;

	CHECK(tshare_tensor_slice(tensor, 3, 0, 1, 1, &view) == -EINVAL);
	CHECK(tshare_tensor_slice(tensor, 0, 0, 1, 0, &view) == -EINVAL);
	CHECK(error_says("step"));
	CHECK(tshare_tensor_slice(tensor, 1, -1, 3, 1, &view) == -ERANGE);
	CHECK(error_says("start: -1 is not 0 to 3"));
	CHECK(tshare_tensor_slice(tensor, 1, 0, 4, 1, &view) == -ERANGE);
	CHECK(error_says("stop: 4"));
	CHECK(tshare_tensor_slice(tensor, 1, 3, -1, -1, &view) == -ERANGE);
	CHECK(error_says("start: 3 is not -1 to 2"));
	CHECK(tshare_tensor_slice(tensor, 1, 2, -2, -1, &view) == -ERANGE);
	tshare_tensor_unref(tensor);
}

TEST(views_are_readonly_where_the_tensor_is)
{
	struct tshare_spec spec = SPEC(NULL, TSHARE_INT16, 3, shape_2x3x4);
	struct tshare_tensor *tensor = counting(), *readonly, *view;

	CHECK(!tshare_region_view(tshare_tensor_get_region(tensor), &spec, TSHARE_READONLY,
				  &readonly));
	CHECK(!tshare_tensor_select(readonly, 0, 1, &view));
	CHECK(tshare_tensor_is_readonly(view));
	tshare_tensor_unref(view);
	CHECK(!tshare_tensor_select(tensor, 0, 1, &view));
	CHECK(!tshare_tensor_is_readonly(view));
	tshare_tensor_unref(view);
	tshare_tensor_unref(readonly);
	tshare_tensor_unref(tensor);
}

TEST(packed_elements_begin_at_a_byte)
{
	const int64_t shape[] = { 6 };
	struct tshare_tensor *tensor = new_tensor(NULL, TSHARE_DTYPE(17, 4), 1, shape), *view;

	CHECK(tshare_tensor_slice(tensor, 0, 1, 6, 1, &view) == -EINVAL);
	CHECK(error_says("within a byte"));
	CHECK(!tshare_tensor_slice(tensor, 0, 2, 6, 1, &view));
	CHECK(tshare_tensor_get_byte_offset(view) == 1);
	tshare_tensor_unref(view);
	tshare_tensor_unref(tensor);
}

TEST(permute_puts_dimensions_in_another_order)
{
	const int32_t order[] = { 2, 0, 1 };
	struct tshare_tensor *tensor = counting(), *view, *row;

	CHECK(!tshare_tensor_permute(tensor, order, &view));
	CHECK(HAS_SHAPE(view, 4, 2, 3));
	CHECK(HAS(view, 0, 4, 8, 12, 16, 20, 1, 5, 9, 13, 17, 21, 2, 6, 10, 14, 18, 22, 3, 7, 11,
		  15, 19, 23));
	tshare_tensor_unref(view);
	CHECK(!tshare_tensor_permute(tensor, NULL, &view));
	CHECK(HAS_SHAPE(view, 4, 3, 2));
	CHECK(!tshare_tensor_select(view, 0, 1, &row));
	CHECK(HAS(row, 1, 13, 5, 17, 9, 21));
	tshare_tensor_unref(row);
	tshare_tensor_unref(view);
	tshare_tensor_unref(tensor);
}

TEST(permute_rejects_invalid_orders)
{
	const int32_t twice[] = { 0, 1, 1 }, beyond[] = { 0, 1, 3 }, before[] = { 0, -1, 2 };
	struct tshare_tensor *tensor = counting(), *view;

	CHECK(tshare_tensor_permute(tensor, twice, &view) == -EINVAL);
	CHECK(error_says("dims[2]: 1 appears twice"));
	CHECK(tshare_tensor_permute(tensor, beyond, &view) == -EINVAL);
	CHECK(error_says("dims[2]: "));
	CHECK(tshare_tensor_permute(tensor, before, &view) == -EINVAL);
	tshare_tensor_unref(tensor);
}

static int reshape(struct tshare_tensor *tensor, int32_t ndim, int64_t a, int64_t b, int64_t c,
		   struct tshare_tensor **view)
{
	const int64_t shape[] = { a, b, c };

	return tshare_tensor_reshape(tensor, ndim, shape, view);
}

TEST(reshape_of_a_contiguous_tensor_is_contiguous)
{
	struct tshare_tensor *tensor = counting(), *view;

	CHECK(!reshape(tensor, 3, 4, 1, 6, &view));
	CHECK(HAS_SHAPE(view, 4, 1, 6));
	CHECK(tshare_tensor_is_contiguous(view));
	tshare_tensor_unref(view);
	CHECK(!reshape(tensor, 1, 24, 0, 0, &view));
	CHECK(tshare_tensor_is_contiguous(view));
	tshare_tensor_unref(view);
	tshare_tensor_unref(tensor);
}

TEST(reshape_of_a_scalar_adds_and_drops_dimensions_of_one)
{
	struct tshare_tensor *scalar = new_tensor(NULL, TSHARE_INT16, 0, NULL), *view, *back;

	CHECK(!reshape(scalar, 3, 1, 1, 1, &view));
	CHECK(HAS_SHAPE(view, 1, 1, 1));
	CHECK(!tshare_tensor_reshape(view, 0, NULL, &back));
	CHECK(tshare_tensor_get_ndim(back) == 0);
	tshare_tensor_unref(back);
	tshare_tensor_unref(view);
	tshare_tensor_unref(scalar);
}

TEST(reshape_splits_dimensions_that_have_gaps)
{
	struct tshare_tensor *tensor = counting(), *flat, *even, *view;

	CHECK(!reshape(tensor, 1, 24, 0, 0, &flat));
	CHECK(!tshare_tensor_slice(flat, 0, 22, -1, -2, &even));
	CHECK(!reshape(even, 2, 3, 4, 0, &view));
	CHECK(HAS(view, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0));
	tshare_tensor_unref(view);
	tshare_tensor_unref(even);
	tshare_tensor_unref(flat);
	tshare_tensor_unref(tensor);
}

TEST(reshape_that_needs_a_copy_is_refused)
{
	struct tshare_tensor *tensor = counting(), *turned, *view;

	CHECK(!tshare_tensor_permute(tensor, NULL, &turned));
	CHECK(reshape(turned, 1, 24, 0, 0, &view) == -EINVAL);
	CHECK(error_says("shape: needs a copy"));
	CHECK(!reshape(turned, 3, 4, 3, 2, &view));
	tshare_tensor_unref(view);
	tshare_tensor_unref(turned);
	CHECK(!tshare_tensor_slice(tensor, 2, 0, 3, 1, &turned));
	CHECK(reshape(turned, 2, 2, 9, 0, &view) == -EINVAL);
	CHECK(!reshape(turned, 2, 6, 3, 0, &view));
	tshare_tensor_unref(view);
	tshare_tensor_unref(turned);
	tshare_tensor_unref(tensor);
}

TEST(reshape_rejects_invalid_shapes)
{
	struct tshare_tensor *tensor = counting(), *view;

	CHECK(reshape(tensor, 2, 5, 5, 0, &view) == -EINVAL);
	CHECK(error_says("shape: has 25 elements, the tensor 24"));
	CHECK(reshape(tensor, 2, -4, -6, 0, &view) == -EINVAL);
	CHECK(error_says("shape[0]: -4 is negative"));
	CHECK(reshape(tensor, 3, 1LL << 62, 1LL << 62, 24, &view) == -EINVAL);
	CHECK(reshape(tensor, 3, 24, 0, 1, &view) == -EINVAL);
	CHECK(tshare_tensor_reshape(tensor, 33, shape_2x3x4, &view) == -EINVAL);
	CHECK(tshare_tensor_reshape(tensor, -1, shape_2x3x4, &view) == -EINVAL);
	CHECK(tshare_tensor_reshape(tensor, 1, NULL, &view) == -EINVAL);
	tshare_tensor_unref(tensor);
}

TEST(reshape_of_no_elements_has_none)
{
	const int64_t none[] = { 0, 3 };
	struct tshare_tensor *tensor = new_tensor(NULL, TSHARE_INT16, 2, none), *view;

	CHECK(!reshape(tensor, 3, 7, 0, 2, &view));
	CHECK(HAS_SHAPE(view, 7, 0, 2));
	tshare_tensor_unref(view);
	CHECK(reshape(tensor, 3, 1LL << 62, 0, 1LL << 62, &view) == -EINVAL);
	tshare_tensor_unref(tensor);
}

static uint64_t noise;

static int64_t any_below(int64_t limit)
{
	noise ^= noise << 13;
	noise ^= noise >> 7;
	noise ^= noise << 17;
	return (noise >> 16) % limit;
}

/* One of the views that can be made of a tensor, in whose place it comes. */
static struct tshare_tensor *vary(struct tshare_tensor *tensor)
{
	int32_t ndim = tshare_tensor_get_ndim(tensor), dim = ndim ? any_below(ndim) : 0;
	struct tshare_tensor *view = NULL;
	int64_t length;

	if (!ndim)
		return tensor;
	length = tshare_tensor_get_shape(tensor)[dim];
	switch (any_below(4)) {
	case 0:
		CHECK(!tshare_tensor_permute(tensor, NULL, &view));
		break;
	case 1:
		CHECK(!tshare_tensor_slice(tensor, dim, length - 1, -1, -1, &view));
		break;
	case 2:
		CHECK(!tshare_tensor_slice(tensor, dim, any_below(length), length, 1 + any_below(2),
					   &view));
		break;
	default:
		CHECK(!tshare_tensor_select(tensor, dim, any_below(length), &view));
	}
	tshare_tensor_unref(tensor);
	return view;
}

/* Element @place in C order. */
static int16_t element(const struct tshare_tensor *tensor, int64_t place)
{
	const int64_t *shape = tshare_tensor_get_shape(tensor);
	const int16_t *at = tshare_tensor_get_data(tensor);
	int32_t i;

	for (i = tshare_tensor_get_ndim(tensor); i-- > 0; place /= shape[i])
		at += place % shape[i] * tshare_tensor_get_strides(tensor)[i];
	return *at;
}

/* Whether strides give a tensor of one dimension: its elements are at equal distances. */
static bool is_even(const struct tshare_tensor *tensor, int64_t count)
{
	int64_t i;

	for (i = 2; i < count; i++)
		if (element(tensor, i) - element(tensor, i - 1) !=
		    element(tensor, 1) - element(tensor, 0))
			return false;
	return true;
}

TEST(reshape_of_any_view_to_one_dimension_works_where_strides_can_express_it)
{
	struct tshare_tensor *tensor, *flat;
	int64_t count, i;
	int round, err;

	noise = 88172645463325252ULL;
	for (round = 0; round < 2000; round++) {
		tensor = counting();
		for (i = any_below(5); i; i--)
			tensor = vary(tensor);
		count = tshare_tensor_get_nbytes(tensor) / sizeof(int16_t);
		err = tshare_tensor_reshape(tensor, 1, &count, &flat);
		CHECK(err == (is_even(tensor, count) ? 0 : -EINVAL));
		for (i = 0; !err && i < count; i++)
			CHECK(element(flat, i) == element(tensor, i));
		if (!err)
			tshare_tensor_unref(flat);
		tshare_tensor_unref(tensor);
	}
}

int main(void)
{
	return tap_main(open_context, close_context);
}
