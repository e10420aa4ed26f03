// SPDX-License-Identifier: MIT
/* DLPack on whichever backend: exports, and descriptions of other libraries' tensors. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <tshare-dlpack.h>

#include "util.h"

static const int64_t shape_2x3[] = { 2, 3 };

/* Exports @tensor, and leaves its only reference with the result. */
static DLManagedTensorVersioned *export(struct tshare_tensor *tensor)
{
	DLManagedTensorVersioned *managed;

	CHECK(!tshare_tensor_to_dlpack(tensor, &managed));
	tshare_tensor_unref(tensor);
	return managed;
}

TEST(version_is_that_of_the_header)
{
	DLManagedTensorVersioned *managed = export(new_tensor(NULL, TSHARE_INT8, 2, shape_2x3));

	CHECK(managed->version.major == DLPACK_MAJOR_VERSION);
	CHECK(managed->version.minor == DLPACK_MINOR_VERSION);
	managed->deleter(managed);
}

TEST(export_describes_the_tensor)
{
	struct tshare_tensor *tensor = new_tensor(NULL, TSHARE_FLOAT32, 2, shape_2x3);
	void *data = tshare_tensor_get_data(tensor);
	DLManagedTensorVersioned *managed = export(tensor);
	DLTensor *dl = &managed->dl_tensor;

	CHECK(dl->data == data);
	CHECK(dl->byte_offset == 0);
	CHECK(dl->device.device_type == kDLCPU && dl->device.device_id == 0);
	CHECK(dl->dtype.code == kDLFloat && dl->dtype.bits == 32 && dl->dtype.lanes == 1);
	CHECK(dl->ndim == 2);
	CHECK(dl->shape[0] == 2 && dl->shape[1] == 3);
	CHECK(dl->strides[0] == 3 && dl->strides[1] == 1);
	CHECK(managed->flags == 0);
	managed->deleter(managed);
}

TEST(an_offset_is_in_the_pointer)
{
	struct tshare_spec spec = SPEC(NULL, TSHARE_UINT8, 2, shape_2x3, NULL, 100);
	DLManagedTensorVersioned *managed;
	struct tshare_region *region;
	struct tshare_tensor *tensor;

	CHECK(!tshare_region_create(ctx, NULL, 0, &spec, 1, NULL, &region));
	CHECK(!tshare_region_get_tensor(region, 0, &tensor));
	managed = export(tensor);
	CHECK(managed->dl_tensor.data == (char *)tshare_region_get_data(region) + 100);
	CHECK(managed->dl_tensor.byte_offset == 0);
	managed->deleter(managed);
	tshare_region_unref(region);
}

TEST(strides_are_kept)
{
	const int64_t strides[] = { -3, 1 };
	struct tshare_spec spec = SPEC(NULL, TSHARE_UINT8, 2, shape_2x3, strides, 64);
	DLManagedTensorVersioned *managed;
	struct tshare_region *region;
	struct tshare_tensor *tensor;

	CHECK(!tshare_region_create(ctx, NULL, 0, &spec, 1, NULL, &region));
	CHECK(!tshare_region_get_tensor(region, 0, &tensor));
	tshare_region_unref(region);
	managed = export(tensor);
	CHECK(managed->dl_tensor.strides[0] == -3 && managed->dl_tensor.strides[1] == 1);
	managed->deleter(managed);
}

TEST(a_scalar_has_no_strides)
{
	DLManagedTensorVersioned *managed = export(new_tensor(NULL, TSHARE_FLOAT64, 0, NULL));

	CHECK(managed->dl_tensor.ndim == 0);
	CHECK(!managed->dl_tensor.strides);
	CHECK(managed->dl_tensor.data);
	managed->deleter(managed);
}

TEST(no_elements_have_no_address)
{
	const int64_t shape[] = { 3, 0 };
	DLManagedTensorVersioned *managed = export(new_tensor(NULL, TSHARE_FLOAT64, 2, shape));

	CHECK(!managed->dl_tensor.data);
	CHECK(managed->dl_tensor.strides);
	managed->deleter(managed);
}

TEST(an_export_keeps_the_memory)
{
	DLManagedTensorVersioned *managed = export(new_tensor(NULL, TSHARE_INT8, 2, shape_2x3));

	close_context();
	memset(managed->dl_tensor.data, 1, 6);
	managed->deleter(managed);
}

TEST(exports_of_a_tensor_are_independent)
{
	struct tshare_tensor *tensor = new_tensor(NULL, TSHARE_INT8, 2, shape_2x3);
	DLManagedTensorVersioned *one, *two;

	CHECK(!tshare_tensor_to_dlpack(tensor, &one));
	CHECK(!tshare_tensor_to_dlpack(tensor, &two));
	tshare_tensor_unref(tensor);
	one->dl_tensor.shape[0] = 99;
	one->deleter(one);
	CHECK(two->dl_tensor.shape[0] == 2);
	two->deleter(two);
}

static void *call_deleter(void *data)
{
	DLManagedTensorVersioned *managed = data;

	managed->deleter(managed);
	return NULL;
}

TEST(the_deleter_may_be_called_from_any_thread)
{
	DLManagedTensorVersioned *managed = export(new_tensor(NULL, TSHARE_INT8, 2, shape_2x3));
	pthread_t thread;

	close_context();
	CHECK(!pthread_create(&thread, NULL, call_deleter, managed));
	CHECK(!pthread_join(thread, NULL));
}

/* A tensor of its own name, opened read-only. */
static struct tshare_tensor *open_readonly(const char *name)
{
	struct tshare_tensor *tensor, *reader;

	CHECK(!tshare_tensor_create(ctx, name, TSHARE_INT8, 2, shape_2x3, NULL, &tensor));
	CHECK(!tshare_tensor_open(ctx, name, &readonly_options, &reader));
	tshare_tensor_unref(tensor);
	return reader;
}

TEST(readonly_tensors_are_flagged)
{
	DLManagedTensorVersioned *managed = export(open_readonly(unique("dlpack")));

	CHECK(managed->flags == DLPACK_FLAG_BITMASK_READ_ONLY);
	managed->deleter(managed);
}

TEST(the_legacy_form_refuses_readonly_tensors)
{
	struct tshare_tensor *tensor = open_readonly(unique("legacy"));
	DLManagedTensor *managed;

	CHECK(tshare_tensor_to_dlpack_legacy(tensor, &managed) == -EACCES);
	CHECK(error_says("read-only"));
	tshare_tensor_unref(tensor);
}

TEST(the_legacy_form_describes_the_tensor)
{
	struct tshare_tensor *tensor = new_tensor(NULL, TSHARE_UINT16, 2, shape_2x3);
	void *data = tshare_tensor_get_data(tensor);
	DLManagedTensor *managed;

	CHECK(!tshare_tensor_to_dlpack_legacy(tensor, &managed));
	tshare_tensor_unref(tensor);
	CHECK(managed->dl_tensor.data == data);
	CHECK(managed->dl_tensor.ndim == 2);
	CHECK(managed->dl_tensor.shape[1] == 3 && managed->dl_tensor.strides[0] == 3);
	CHECK(managed->dl_tensor.dtype.code == kDLUInt && managed->dl_tensor.dtype.bits == 16);
	managed->deleter(managed);
}

/* Descriptions of other libraries' tensors */

static void delete_never(DLManagedTensorVersioned *managed)
{
	(void)managed;
	abort();
}

static float numbers[12];

/* Two by three of twelve floats, every second one, from the first on. */
static DLManagedTensorVersioned foreign(float *data)
{
	static int64_t shape[] = { 2, 3 }, strides[] = { 6, 2 };

	return (DLManagedTensorVersioned){
		.version = { DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION + 7 },
		.deleter = delete_never,
		.dl_tensor = {
			.data = data,
			.device = { kDLCPU, 3 },
			.ndim = 2,
			.dtype = { kDLFloat, 32, 1 },
			.shape = shape,
			.strides = strides,
		},
	};
}

/* Returns the error of tshare_dlpack_spec(), and checks that nothing was stored. */
static int spec_error(const DLManagedTensorVersioned *managed)
{
	struct tshare_spec spec = { .size = sizeof(spec), .ndim = 99 };
	const void *data = &spec;
	uint32_t flags = 99;
	int err = tshare_spec_from_dlpack(managed, &spec, &data, &flags);

	CHECK(spec.ndim == 99 && data == &spec && flags == 99);
	return err;
}

TEST(spec_has_the_arrays_of_the_dlpack_tensor)
{
	DLManagedTensorVersioned managed = foreign(numbers);
	struct tshare_spec spec = { .size = sizeof(spec) };
	const void *data;
	uint32_t flags;

	CHECK(!tshare_spec_from_dlpack(&managed, &spec, &data, &flags));
	CHECK(data == numbers);
	CHECK(!spec.name && spec.byte_offset == TSHARE_OFFSET_AUTO);
	CHECK(spec.dtype.code == kDLFloat && spec.dtype.bits == 32 && spec.dtype.lanes == 1);
	CHECK(spec.ndim == 2);
	CHECK(spec.shape == managed.dl_tensor.shape && spec.strides == managed.dl_tensor.strides);
	CHECK(!flags);
}

TEST(spec_of_a_tensor_without_strides_has_none)
{
	DLManagedTensorVersioned managed = foreign(numbers);
	struct tshare_spec spec = { .size = sizeof(spec) };
	const void *data;
	uint32_t flags;

	managed.dl_tensor.strides = NULL;
	CHECK(!tshare_spec_from_dlpack(&managed, &spec, &data, &flags));
	CHECK(!spec.strides);
}

TEST(spec_reports_readonly_and_ignores_that_it_is_a_copy)
{
	DLManagedTensorVersioned managed = foreign(numbers);
	struct tshare_spec spec = { .size = sizeof(spec) };
	const void *data;
	uint32_t flags;

	managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED;
	CHECK(!tshare_spec_from_dlpack(&managed, &spec, &data, &flags));
	CHECK(flags == TSHARE_READONLY);
}

TEST(spec_has_the_offset_in_the_address)
{
	DLManagedTensorVersioned managed = foreign(numbers);
	struct tshare_spec spec = { .size = sizeof(spec) };
	const void *data;
	uint32_t flags;

	managed.dl_tensor.byte_offset = sizeof(float);
	CHECK(!tshare_spec_from_dlpack(&managed, &spec, &data, &flags));
	CHECK(data == numbers + 1);
	CHECK(spec.byte_offset == TSHARE_OFFSET_AUTO);
}

TEST(spec_ignores_the_offset_when_data_is_null)
{
	DLManagedTensorVersioned managed = foreign(NULL);
	int64_t shape[] = { 2, 0 };
	struct tshare_spec spec = { .size = sizeof(spec) };
	const void *data;
	uint32_t flags;

	managed.dl_tensor.byte_offset = (uintptr_t)numbers;
	CHECK(spec_error(&managed) == -EINVAL);
	CHECK(error_says("data"));
	managed.dl_tensor.shape = shape;
	CHECK(!tshare_spec_from_dlpack(&managed, &spec, &data, &flags));
	CHECK(!data);
}

TEST(spec_takes_memory_that_the_cpu_shares_with_a_gpu)
{
	DLManagedTensorVersioned managed = foreign(numbers);
	struct tshare_spec spec = { .size = sizeof(spec) };
	const void *data;
	uint32_t flags;

	managed.dl_tensor.device.device_type = kDLCUDAHost;
	CHECK(!tshare_spec_from_dlpack(&managed, &spec, &data, &flags));
	managed.dl_tensor.device.device_type = kDLCUDAManaged;
	CHECK(!tshare_spec_from_dlpack(&managed, &spec, &data, &flags));
}

TEST(spec_refuses_memory_of_a_gpu)
{
	DLManagedTensorVersioned managed = foreign(numbers);

	managed.dl_tensor.device.device_type = kDLCUDA;
	CHECK(spec_error(&managed) == -EOPNOTSUPP);
	CHECK(error_says("managed: is on device (2, 3)"));
}

/* No other member of such a struct may be read; this one has none. */
TEST(spec_refuses_another_major_version)
{
	DLManagedTensorVersioned managed = { .version = { DLPACK_MAJOR_VERSION + 1, 0 } };

	CHECK(spec_error(&managed) == -EPROTO);
	CHECK(error_says("managed: DLPack version 2"));
}

TEST(spec_refuses_padded_elements)
{
	DLManagedTensorVersioned managed = foreign(numbers);

	managed.flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
	CHECK(spec_error(&managed) == -EOPNOTSUPP);
	CHECK(error_says("padded"));
}

TEST(spec_refuses_an_offset_that_overflows)
{
	DLManagedTensorVersioned managed = foreign(numbers);

	managed.dl_tensor.byte_offset = UINT64_MAX;
	CHECK(spec_error(&managed) == -ERANGE);
	CHECK(error_says("byte_offset"));
}

TEST(spec_refuses_dimensions_without_a_shape)
{
	DLManagedTensorVersioned managed = foreign(numbers);

	managed.dl_tensor.shape = NULL;
	CHECK(spec_error(&managed) == -EINVAL);
	CHECK(error_says("shape"));
}

TEST(spec_refuses_too_many_dimensions)
{
	DLManagedTensorVersioned managed = foreign(numbers);

	managed.dl_tensor.ndim = TSHARE_NDIM_LIMIT + 1;
	CHECK(spec_error(&managed) == -EINVAL);
	managed.dl_tensor.ndim = -1;
	CHECK(spec_error(&managed) == -EINVAL);
	CHECK(error_says("ndim"));
}

TEST(spec_refuses_elements_without_bits)
{
	DLManagedTensorVersioned managed = foreign(numbers);

	managed.dl_tensor.dtype.lanes = 0;
	CHECK(spec_error(&managed) == -EINVAL);
	CHECK(error_says("dtype"));
}

TEST(spec_refuses_strides_that_overflow)
{
	DLManagedTensorVersioned managed = foreign(numbers);
	int64_t strides[] = { INT64_MAX, INT64_MAX / 2 };

	managed.dl_tensor.strides = strides;
	CHECK(spec_error(&managed) == -EINVAL);
	CHECK(error_says("counted"));
}

TEST(spec_of_the_legacy_form_is_checked_alike)
{
	DLManagedTensorVersioned managed = foreign(numbers);
	DLManagedTensor legacy = { .dl_tensor = managed.dl_tensor };
	struct tshare_spec spec = { .size = sizeof(spec) };
	const void *data;

	legacy.dl_tensor.byte_offset = sizeof(float);
	CHECK(!tshare_spec_from_dlpack_legacy(&legacy, &spec, &data));
	CHECK(data == numbers + 1 && spec.shape == legacy.dl_tensor.shape);
	legacy.dl_tensor.device.device_type = kDLCUDA;
	CHECK(tshare_spec_from_dlpack_legacy(&legacy, &spec, &data) == -EOPNOTSUPP);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
