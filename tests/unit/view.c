// SPDX-License-Identifier: MIT
/* Views, copies, and tensors of other libraries, on whichever backend. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tshare-dlpack.h>

#include "util.h"

static const int64_t shape_2x3[] = { 2, 3 };

/* 0 to 5 as int32, in a region. */
static struct tshare_tensor *counting(void)
{
	static const int32_t values[] = { 0, 1, 2, 3, 4, 5 };
	struct tshare_tensor *tensor;

	CHECK(!tshare_tensor_create(ctx, NULL, TSHARE_INT32, 2, shape_2x3, NULL, &tensor));
	memcpy(tshare_tensor_get_data(tensor), values, sizeof(values));
	return tensor;
}

static struct tshare_spec spec_of(struct tshare_dtype dtype, int32_t ndim, const int64_t *shape,
				  const int64_t *strides)
{
	return (struct tshare_spec)SPEC(NULL, dtype, ndim, shape, strides);
}

/* Views */

TEST(view_has_the_shape_and_strides_given)
{
	struct tshare_tensor *whole = counting(), *view;
	const int64_t shape[] = { 3, 2 }, strides[] = { 1, 3 };
	struct tshare_spec spec = SPEC("turned", TSHARE_INT32, 2, shape, strides, 0);

	CHECK(!tshare_region_view(tshare_tensor_get_region(whole), &spec, 0, &view));
	tshare_tensor_unref(whole);
	CHECK(tshare_tensor_get_shape(view)[0] == 3 && tshare_tensor_get_shape(view)[1] == 2);
	CHECK(tshare_tensor_get_strides(view)[0] == 1 && tshare_tensor_get_strides(view)[1] == 3);
	CHECK(!strcmp(tshare_tensor_get_name(view), "turned"));
	CHECK(((int32_t *)tshare_tensor_get_data(view))[4] == 4);
	CHECK(tshare_region_get_tensor_count(tshare_tensor_get_region(view)) == 1);
	tshare_tensor_unref(view);
}

TEST(view_beyond_its_region_is_refused)
{
	struct tshare_tensor *whole = counting(), *view;
	struct tshare_region *region = tshare_tensor_get_region(whole);
	const int64_t shape[] = { 2 };
	struct tshare_spec spec = spec_of(TSHARE_UINT8, 1, shape, NULL);

	spec.byte_offset = tshare_region_get_size(region) - 1;
	CHECK(tshare_region_view(region, &spec, 0, &view) == -ERANGE);
	spec.byte_offset--;
	CHECK(!tshare_region_view(region, &spec, 0, &view));
	tshare_tensor_unref(view);
	tshare_tensor_unref(whole);
}

TEST(view_can_be_readonly)
{
	struct tshare_tensor *whole = counting(), *view;
	struct tshare_spec spec = spec_of(TSHARE_INT32, 2, shape_2x3, NULL);
	DLManagedTensorVersioned *managed;

	CHECK(!tshare_region_view(tshare_tensor_get_region(whole), &spec, TSHARE_READONLY, &view));
	CHECK(tshare_tensor_is_readonly(view) && !tshare_tensor_is_readonly(whole));
	CHECK(tshare_tensor_write(view, tshare_tensor_get_data(whole), NULL) == -EACCES);
	CHECK(!tshare_tensor_to_dlpack(view, &managed));
	CHECK(managed->flags == DLPACK_FLAG_BITMASK_READ_ONLY);
	managed->deleter(managed);
	tshare_tensor_unref(view);
	tshare_tensor_unref(whole);
}

TEST(view_refuses_unknown_flags)
{
	struct tshare_tensor *whole = counting(), *view;
	struct tshare_spec spec = spec_of(TSHARE_INT32, 2, shape_2x3, NULL);

	CHECK(tshare_region_view(tshare_tensor_get_region(whole), &spec, 1U << 9, &view) ==
	      -EINVAL);
	CHECK(error_says("flags"));
	CHECK(tshare_region_view(tshare_tensor_get_region(whole), NULL, 0, &view) == -EINVAL);
	CHECK(error_says("spec"));
	tshare_tensor_unref(whole);
}

/* Wrapping */

TEST(wrap_finds_the_region_of_an_address)
{
	struct tshare_tensor *whole = counting(), *part;
	int32_t *data = tshare_tensor_get_data(whole);
	const int64_t shape[] = { 3 };
	struct tshare_spec spec = spec_of(TSHARE_INT32, 1, shape, NULL);

	CHECK(!tshare_tensor_wrap(data + 3, &spec, 0, &part));
	CHECK(tshare_tensor_get_data(part) == data + 3);
	CHECK(tshare_tensor_get_region(part) == tshare_tensor_get_region(whole));
	tshare_tensor_unref(whole);
	CHECK(((int32_t *)tshare_tensor_get_data(part))[2] == 5);
	tshare_tensor_unref(part);
}

TEST(wrap_takes_negative_strides)
{
	struct tshare_tensor *whole = counting(), *back;
	int32_t *data = tshare_tensor_get_data(whole);
	const int64_t shape[] = { 6 }, strides[] = { -1 };
	struct tshare_spec spec = spec_of(TSHARE_INT32, 1, shape, strides);

	CHECK(!tshare_tensor_wrap(data + 5, &spec, 0, &back));
	CHECK(tshare_tensor_get_data(back) == data + 5);
	tshare_tensor_unref(back);
	CHECK(tshare_tensor_wrap(data + 4, &spec, 0, &back) == -ERANGE);
	tshare_tensor_unref(whole);
}

TEST(wrap_takes_an_offset_of_zero_as_the_first_byte)
{
	struct tshare_tensor *whole = counting(), *tensor;
	const int64_t shape[] = { 6 }, strides[] = { -1 };
	struct tshare_spec spec = spec_of(TSHARE_INT32, 1, shape, strides);

	CHECK(tshare_tensor_wrap(tshare_tensor_get_data(whole), &spec, 0, &tensor) == -ERANGE);
	spec.strides = NULL;
	CHECK(!tshare_tensor_wrap(tshare_tensor_get_data(whole), &spec, 0, &tensor));
	CHECK(tshare_tensor_get_byte_offset(tensor) == 0);
	tshare_tensor_unref(tensor);
	tshare_tensor_unref(whole);
}

TEST(wrap_refuses_memory_in_no_region)
{
	struct tshare_tensor *whole = counting(), *tensor;
	const struct tshare_region *region = tshare_tensor_get_region(whole);
	char *end = (char *)tshare_region_get_data(region) + tshare_region_get_size(region);
	struct tshare_spec spec = spec_of(TSHARE_UINT8, 0, NULL, NULL);
	const int64_t two[] = { 2 };
	void *data;
	char outside;

	CHECK(tshare_tensor_wrap(&outside, &spec, 0, &tensor) == -ENOENT);
	CHECK(tshare_tensor_wrap(NULL, &spec, 0, &tensor) == -ENOENT);
	CHECK(!tshare_tensor_wrap(end - 1, &spec, 0, &tensor));
	tshare_tensor_unref(tensor);
	spec = spec_of(TSHARE_UINT8, 1, two, NULL);
	CHECK(tshare_tensor_wrap(end - 1, &spec, 0, &tensor) == -ERANGE);
	data = tshare_tensor_get_data(whole);
	tshare_tensor_unref(whole);
	CHECK(tshare_tensor_wrap(data, &spec, 0, &tensor) == -ENOENT);
}

TEST(wrap_finds_the_right_one_of_many_regions)
{
	enum { COUNT = 200 };
	struct tshare_tensor *all[COUNT], *tensor;
	struct tshare_spec spec = spec_of(TSHARE_INT32, 2, shape_2x3, NULL);
	int i;

	for (i = 0; i < COUNT; i++)
		all[i] = counting();
	for (i = 0; i < COUNT; i += 2)
		tshare_tensor_unref(all[i]);
	for (i = 1; i < COUNT; i += 2) {
		CHECK(!tshare_tensor_wrap(tshare_tensor_get_data(all[i]), &spec, 0, &tensor));
		CHECK(tshare_tensor_get_region(tensor) == tshare_tensor_get_region(all[i]));
		tshare_tensor_unref(tensor);
		tshare_tensor_unref(all[i]);
	}
}

/*
 * GCC's address sanitizer leaves a child the locks of its own allocator as they were at fork(), so
 * that child's malloc() may wait for a thread that isn't there.
 */
#ifndef __SANITIZE_ADDRESS__

static atomic_bool enough;

static bool come_and_go(void)
{
	struct tshare_tensor *tensor;

	if (tshare_tensor_create(ctx, NULL, TSHARE_INT32, 2, shape_2x3, NULL, &tensor))
		return false;
	tshare_tensor_unref(tensor);
	return true;
}

static void *come_and_go_on(void *unused)
{
	while (!atomic_load(&enough) && come_and_go())
		;
	return unused;
}

static int come_and_go_in_child(void *unused)
{
	(void)unused;
	alarm(HANG_SECONDS);
	return !come_and_go();
}

TEST(fork_leaves_the_child_what_other_threads_were_at)
{
	int i, children = 0, forks = rounds(500), threads = 0;
	pthread_t thread[2];

	atomic_store(&enough, false);
	while (threads < 2 && !pthread_create(&thread[threads], NULL, come_and_go_on, NULL))
		threads++;
	for (i = 0; i < forks && children == i; i++)
		children += !in_child(come_and_go_in_child, NULL);
	atomic_store(&enough, true);
	for (i = 0; i < threads; i++)
		CHECK(!pthread_join(thread[i], NULL));
	CHECK(threads == 2);
	CHECK(children == forks);
}

#endif

/* Copies */

TEST(copy_is_contiguous_with_any_strides)
{
	static const struct {
		int64_t strides[2];
		int first;
		int32_t expected[6];
	} cases[] = {
		{ { 3, 1 }, 0, { 0, 1, 2, 3, 4, 5 } },	{ { 1, 2 }, 0, { 0, 2, 4, 1, 3, 5 } },
		{ { -3, 1 }, 3, { 3, 4, 5, 0, 1, 2 } }, { { -3, -1 }, 5, { 5, 4, 3, 2, 1, 0 } },
		{ { 0, 1 }, 1, { 1, 2, 3, 1, 2, 3 } },	{ { 0, 0 }, 4, { 4, 4, 4, 4, 4, 4 } },
	};
	static const int32_t values[] = { 0, 1, 2, 3, 4, 5 };
	struct tshare_tensor *copy;
	struct tshare_spec spec = { .size = sizeof(spec) };
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		spec = spec_of(TSHARE_INT32, 2, shape_2x3, cases[i].strides);
		CHECK(!tshare_tensor_copy(ctx, NULL, values + cases[i].first, &spec, NULL, &copy));
		CHECK(tshare_tensor_is_contiguous(copy));
		CHECK(!memcmp(tshare_tensor_get_data(copy), cases[i].expected,
			      sizeof(cases[i].expected)));
		tshare_tensor_unref(copy);
	}
}

TEST(copy_takes_elements_of_every_size)
{
	static const uint16_t sizes[] = { 1, 2, 3, 4, 8, 16, 24 };
	const int64_t shape[] = { 5 }, strides[] = { 2 };
	unsigned char source[10 * 24];
	struct tshare_tensor *copy;
	struct tshare_spec spec = { .size = sizeof(spec) };
	size_t i, j;

	for (i = 0; i < sizeof(source); i++)
		source[i] = i;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		spec = spec_of((struct tshare_dtype){ 1, 8, sizes[i] }, 1, shape, strides);
		CHECK(!tshare_tensor_copy(ctx, NULL, source, &spec, NULL, &copy));
		for (j = 0; j < 5; j++)
			CHECK(!memcmp((char *)tshare_tensor_get_data(copy) + j * sizes[i],
				      source + 2 * j * sizes[i], sizes[i]));
		tshare_tensor_unref(copy);
	}
}

TEST(copy_of_an_empty_tensor_reads_nothing)
{
	const int64_t shape[] = { 0, 3 }, strides[] = { INT64_MAX, INT64_MIN };
	struct tshare_spec spec = spec_of(TSHARE_FLOAT64, 2, shape, strides);
	struct tshare_tensor *copy;

	CHECK(!tshare_tensor_copy(ctx, NULL, NULL, &spec, NULL, &copy));
	CHECK(!tshare_tensor_get_nbytes(copy));
	tshare_tensor_unref(copy);
	spec = spec_of(TSHARE_DTYPE(17, 4), 2, shape, NULL);
	CHECK(!tshare_tensor_copy(ctx, NULL, NULL, &spec, NULL, &copy));
	tshare_tensor_unref(copy);
}

TEST(copy_of_elements_needs_data)
{
	struct tshare_spec spec = spec_of(TSHARE_FLOAT64, 0, NULL, NULL);
	struct tshare_tensor *copy;

	CHECK(tshare_tensor_copy(ctx, NULL, NULL, &spec, NULL, &copy) == -EINVAL);
	CHECK(error_says("data"));
}

TEST(copy_of_a_scalar_is_one_element)
{
	const double pi = 3.14;
	struct tshare_spec spec = spec_of(TSHARE_FLOAT64, 0, NULL, NULL);
	struct tshare_tensor *copy;

	CHECK(!tshare_tensor_copy(ctx, NULL, &pi, &spec, NULL, &copy));
	CHECK(*(double *)tshare_tensor_get_data(copy) == pi);
	tshare_tensor_unref(copy);
}

TEST(packed_elements_are_copied_only_when_contiguous)
{
	const int64_t shape[] = { 5 }, strides[] = { 2 };
	struct tshare_spec spec = spec_of(TSHARE_DTYPE(17, 4), 1, shape, NULL);
	const unsigned char packed[] = { 0x21, 0x43, 0x05, 0, 0 };
	const char *name = unique("packed");
	struct tshare_tensor *copy;

	CHECK(!tshare_tensor_copy(ctx, NULL, packed, &spec, NULL, &copy));
	CHECK(!memcmp(tshare_tensor_get_data(copy), packed, 3));
	tshare_tensor_unref(copy);
	spec.strides = strides;
	CHECK(tshare_tensor_copy(ctx, name, packed, &spec, NULL, &copy) == -EINVAL);
	CHECK(error_says("packed"));
	CHECK(!exists(name));
}

TEST(copy_refuses_strides_that_overflow)
{
	const int64_t strides[] = { INT64_MAX, INT64_MAX / 2 };
	struct tshare_spec spec = spec_of(TSHARE_FLOAT32, 2, shape_2x3, strides);
	struct tshare_tensor *copy;
	float data[6] = { 0 };

	CHECK(tshare_tensor_copy(ctx, NULL, data, &spec, NULL, &copy) == -EINVAL);
	CHECK(error_says("counted"));
}

TEST(copy_refuses_strides_that_leave_the_address_space)
{
	const int64_t strides[] = { INT64_MIN / 16, 1 };
	struct tshare_spec spec = spec_of(TSHARE_INT8, 2, shape_2x3, strides);
	struct tshare_tensor *copy;
	char data[6] = { 0 };

	CHECK(tshare_tensor_copy(ctx, NULL, data, &spec, NULL, &copy) == -ERANGE);
	CHECK(error_says("strides"));
}

TEST(copy_refuses_packed_shapes_that_overflow)
{
	const int64_t shape[] = { 2, INT64_MAX, INT64_MAX }, strides[] = { 0, 0, 1 };
	struct tshare_spec spec = spec_of(TSHARE_DTYPE(17, 4), 3, shape, strides);
	const unsigned char packed[] = { 0x21 };
	struct tshare_tensor *copy;

	CHECK(tshare_tensor_copy(ctx, NULL, packed, &spec, NULL, &copy) == -EINVAL);
	CHECK(error_says("counted"));
}

TEST(write_refuses_strides_that_overflow)
{
	const int64_t strides[] = { INT64_MAX, INT64_MAX / 2 };
	struct tshare_tensor *whole = counting();
	int32_t data[6] = { 0 };

	CHECK(tshare_tensor_write(whole, data, strides) == -EINVAL);
	CHECK(tshare_tensor_write(whole, NULL, NULL) == -EINVAL);
	CHECK(((int32_t *)tshare_tensor_get_data(whole))[5] == 5);
	tshare_tensor_unref(whole);
}

TEST(a_spec_is_checked_against_its_memory)
{
	const int64_t back[] = { -3, 1 }, huge[] = { 1LL << 40, 1LL << 40 }, none[] = { 0, 3 };
	struct tshare_spec spec = spec_of(TSHARE_INT16, 2, shape_2x3, NULL);
	int16_t all[8] = { 0 }, *data = all + 1;
	const size_t size = 6 * sizeof(*data);

	CHECK(!tshare_spec_check(&spec, data, NULL, 0));
	CHECK(!tshare_spec_check(&spec, data, data, size));
	CHECK(tshare_spec_check(&spec, data, data, size - 1) == -ERANGE);
	CHECK(tshare_spec_check(&spec, data + 1, data, size) == -ERANGE);
	CHECK(tshare_spec_check(&spec, data - 1, data, size) == -ERANGE);
	CHECK(tshare_spec_check(&spec, NULL, NULL, 0) == -EINVAL);
	spec.strides = back;
	CHECK(!tshare_spec_check(&spec, data + 3, data, size));
	CHECK(tshare_spec_check(&spec, data + 2, data, size) == -ERANGE);
	spec.shape = none;
	CHECK(!tshare_spec_check(&spec, NULL, NULL, 0));
	spec.shape = huge;
	spec.strides = none;
	CHECK(tshare_spec_check(&spec, data, NULL, 0) == -EINVAL);
	CHECK(tshare_spec_check(NULL, data, NULL, 0) == -EINVAL);
}

TEST(copy_has_its_name_and_options)
{
	struct tshare_options options = { .size = sizeof(options) };
	struct tshare_spec spec = spec_of(TSHARE_FLOAT64, 0, NULL, NULL);
	const char *name = unique("copy");
	struct tshare_region_info info = { .size = sizeof(info) };
	struct tshare_tensor *copy;
	const double pi = 3.14;

	options.mode = 0640;
	CHECK(!tshare_tensor_copy(ctx, name, &pi, &spec, &options, &copy));
	CHECK(!tshare_region_get_info(tshare_tensor_get_region(copy), &info));
	CHECK(!strcmp(info.name, name) && info.mode == 0640);
	CHECK(tshare_tensor_copy(ctx, name, &pi, &spec, &options, &copy) == -EEXIST);
	CHECK(tshare_tensor_copy(ctx, name, &pi, NULL, &options, &copy) == -EINVAL);
	tshare_tensor_unref(copy);
}

TEST(read_gives_c_order)
{
	struct tshare_tensor *whole = counting(), *view;
	const int64_t shape[] = { 3, 2 }, strides[] = { 1, 3 };
	struct tshare_spec spec = spec_of(TSHARE_INT32, 2, shape, strides);
	static const int32_t expected[] = { 0, 3, 1, 4, 2, 5 };
	int32_t buffer[6];

	CHECK(!tshare_region_view(tshare_tensor_get_region(whole), &spec, 0, &view));
	CHECK(!tshare_tensor_read(view, buffer));
	CHECK(!memcmp(buffer, expected, sizeof(buffer)));
	tshare_tensor_unref(view);
	tshare_tensor_unref(whole);
}

TEST(write_goes_by_the_tensor_s_own_strides)
{
	struct tshare_tensor *whole = counting(), *view;
	const int64_t shape[] = { 3, 2 }, strides[] = { 1, 3 };
	struct tshare_spec spec = spec_of(TSHARE_INT32, 2, shape, strides);
	static const int32_t values[] = { 10, 13, 11, 14, 12, 15 };
	int32_t *data = tshare_tensor_get_data(whole);
	int i;

	CHECK(!tshare_region_view(tshare_tensor_get_region(whole), &spec, 0, &view));
	CHECK(!tshare_tensor_write(view, values, NULL));
	for (i = 0; i < 6; i++)
		CHECK(data[i] == 10 + i);
	tshare_tensor_unref(view);
	tshare_tensor_unref(whole);
}

/* DLPack from elsewhere */

static int deleted;

static void count_deletion(DLManagedTensorVersioned *managed)
{
	(void)managed;
	deleted++;
}

/* Two by three, every second of twelve. */
static DLManagedTensorVersioned foreign(float *data, int64_t *shape, int64_t *strides)
{
	shape[0] = 2;
	shape[1] = 3;
	strides[0] = 6;
	strides[1] = 2;
	return (DLManagedTensorVersioned){
		.version = { DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION + 7 },
		.deleter = count_deletion,
		.dl_tensor = {
			.data = data,
			.device = { kDLCPU, 0 },
			.ndim = 2,
			.dtype = { kDLFloat, 32, 1 },
			.shape = shape,
			.strides = strides,
			.byte_offset = sizeof(float),
		},
	};
}

TEST(from_dlpack_copies_a_foreign_tensor)
{
	float data[12] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
	static const float expected[] = { 1, 3, 5, 7, 9, 11 };
	int64_t shape[2], strides[2];
	DLManagedTensorVersioned managed = foreign(data, shape, strides);
	struct tshare_tensor *tensor;

	deleted = 0;
	CHECK(!tshare_tensor_from_dlpack(ctx, NULL, &managed, NULL, &tensor));
	CHECK(!memcmp(tshare_tensor_get_data(tensor), expected, sizeof(expected)));
	CHECK(!deleted);
	tshare_tensor_unref(tensor);
}

TEST(from_dlpack_of_a_foreign_tensor_leaves_no_error)
{
	float data[12] = { 0 };
	int64_t shape[2], strides[2];
	DLManagedTensorVersioned managed = foreign(data, shape, strides);
	struct tshare_tensor *tensor;

	CHECK(!tshare_tensor_from_dlpack(ctx, NULL, &managed, NULL, &tensor));
	CHECK(!*tshare_error_get());
	tshare_tensor_unref(tensor);
}

TEST(from_dlpack_wraps_memory_in_a_region)
{
	struct tshare_tensor *whole = counting(), *tensor;
	DLManagedTensorVersioned *managed;
	void *data = tshare_tensor_get_data(whole);
	const char *name = unique("copied");

	CHECK(!tshare_tensor_to_dlpack(whole, &managed));
	tshare_tensor_unref(whole);
	CHECK(!tshare_tensor_from_dlpack(ctx, name, managed, NULL, &tensor));
	CHECK(tshare_tensor_get_data(tensor) != data);
	tshare_tensor_unref(tensor);
	CHECK(!tshare_tensor_from_dlpack(ctx, NULL, managed, NULL, &tensor));
	managed->deleter(managed);
	CHECK(tshare_tensor_get_data(tensor) == data);
	CHECK(((int32_t *)data)[5] == 5);
	tshare_tensor_unref(tensor);
}

TEST(from_dlpack_keeps_the_readonly_flag_of_what_it_wraps)
{
	struct tshare_tensor *whole = counting(), *tensor;
	DLManagedTensorVersioned *managed;

	CHECK(!tshare_tensor_to_dlpack(whole, &managed));
	managed->flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
	CHECK(!tshare_tensor_from_dlpack(ctx, NULL, managed, NULL, &tensor));
	CHECK(tshare_tensor_is_readonly(tensor));
	managed->deleter(managed);
	tshare_tensor_unref(tensor);
	tshare_tensor_unref(whole);
}

TEST(from_dlpack_refuses_another_major_version)
{
	DLManagedTensorVersioned managed = { .version = { DLPACK_MAJOR_VERSION + 1, 0 } };
	struct tshare_tensor *tensor;

	CHECK(tshare_tensor_from_dlpack(ctx, NULL, &managed, NULL, &tensor) == -EPROTO);
	CHECK(error_says("version"));
}

TEST(from_dlpack_refuses_memory_of_a_gpu)
{
	float data[12];
	int64_t shape[2], strides[2];
	DLManagedTensorVersioned managed = foreign(data, shape, strides);
	struct tshare_tensor *tensor;

	managed.dl_tensor.device.device_type = kDLCUDA;
	CHECK(tshare_tensor_from_dlpack(ctx, NULL, &managed, NULL, &tensor) == -EOPNOTSUPP);
	CHECK(error_says("CPU"));
}

TEST(from_dlpack_refuses_elements_without_memory)
{
	int64_t shape[2], strides[2];
	DLManagedTensorVersioned managed = foreign(NULL, shape, strides);
	struct tshare_tensor *tensor;

	CHECK(tshare_tensor_from_dlpack(ctx, NULL, &managed, NULL, &tensor) == -EINVAL);
	CHECK(error_says("data"));
}

TEST(from_dlpack_refuses_padded_elements)
{
	float data[12];
	int64_t shape[2], strides[2];
	DLManagedTensorVersioned managed = foreign(data, shape, strides);
	struct tshare_tensor *tensor;

	managed.flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
	CHECK(tshare_tensor_from_dlpack(ctx, NULL, &managed, NULL, &tensor) == -EOPNOTSUPP);
}

TEST(from_dlpack_refuses_strides_that_overflow)
{
	float data[12];
	int64_t shape[2], strides[2];
	DLManagedTensorVersioned managed = foreign(data, shape, strides);
	struct tshare_tensor *tensor;

	strides[0] = INT64_MAX;
	strides[1] = INT64_MAX / 2;
	CHECK(tshare_tensor_from_dlpack(ctx, NULL, &managed, NULL, &tensor) == -EINVAL);
	CHECK(error_says("counted"));
}

TEST(from_dlpack_refuses_an_offset_that_overflows)
{
	float data[12];
	int64_t shape[2], strides[2];
	DLManagedTensorVersioned managed = foreign(data, shape, strides);
	struct tshare_tensor *tensor;

	managed.dl_tensor.byte_offset = UINT64_MAX;
	CHECK(tshare_tensor_from_dlpack(ctx, NULL, &managed, NULL, &tensor) == -ERANGE);
	CHECK(error_says("byte_offset"));
}

TEST(from_dlpack_takes_null_strides_as_contiguous)
{
	float data[12] = { 0, 1, 2, 3, 4, 5, 6 };
	int64_t shape[2], strides[2];
	DLManagedTensorVersioned managed = foreign(data, shape, strides);
	DLManagedTensor legacy = { .dl_tensor = managed.dl_tensor };
	struct tshare_tensor *tensor;

	legacy.dl_tensor.strides = NULL;
	CHECK(!tshare_tensor_from_dlpack_legacy(ctx, NULL, &legacy, NULL, &tensor));
	CHECK(!memcmp(tshare_tensor_get_data(tensor), data + 1, 6 * sizeof(float)));
	tshare_tensor_unref(tensor);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
