// SPDX-License-Identifier: GPL-2.0-only
/* Each rule of struct tshare_desc, and how descriptors get back. */
#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>
#include <time.h>

#include "harness.h"
#include "proc.h"
#include "record.h"

#define REGION (4 * PAGE)

FIXTURE(desc)
{
	int dev;
	struct counters before;
	/* float32 [16, 64] in C order, which fills one page. */
	struct tensor good;
};

FIXTURE_SETUP(desc)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->before = count_all();
	self->good = (struct tensor){
		.code = 2,
		.bits = 32,
		.lanes = 1,
		.ndim = 2,
		.shape = { 16, 64 },
		.strides = { 64, 1 },
		.name = "weights",
	};
}

FIXTURE_TEARDOWN(desc)
{
	close(self->dev);
}

static int create_described(int dev, __u64 size, const void *descs, __u32 descs_size, __u32 count)
{
	struct tshare_create args = create_args(size, "described");

	args.descs = (uintptr_t)descs;
	args.descs_size = descs_size;
	args.desc_count = count;
	return do_create(dev, &args);
}

/* 0 if a region of @size takes @count records in @descs_size bytes. */
static int check_records(int dev, __u64 size, const void *descs, __u32 descs_size, __u32 count)
{
	int fd = create_described(dev, size, descs, descs_size, count);

	if (fd < 0)
		return fd;
	unlink_name(dev, "described");
	close(fd);
	return 0;
}

/* 0 if a region of @size takes @tensor. */
static int check(int dev, __u64 size, const struct tensor *tensor)
{
	__u64 record[RECORD_MAX / 8 + 4];

	return check_records(dev, size, record, pack(tensor, record), 1);
}

/* One dimension of @n elements of @bits, @stride apart, @offset bytes into REGION. */
static int check_line(int dev, __u8 bits, __s64 n, __s64 stride, __u64 offset)
{
	struct tensor desc = {
		.byte_offset = offset,
		.bits = bits,
		.lanes = 1,
		.ndim = 1,
		.shape = { n },
		.strides = { stride },
	};

	return check(dev, REGION, &desc);
}

TEST_F(desc, good_one_is_taken)
{
	EXPECT_EQ(0, check(self->dev, REGION, &self->good));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(desc, type_codes_are_not_interpreted)
{
	int code;

	for (code = 0; code < 256; code++) {
		self->good.code = code;
		EXPECT_EQ(0, check(self->dev, REGION, &self->good));
	}
}

TEST_F(desc, type_without_bits_or_lanes_is_einval)
{
	self->good.bits = 0;
	EXPECT_EQ(-EINVAL, check(self->dev, REGION, &self->good));
	self->good.bits = 32;
	self->good.lanes = 0;
	EXPECT_EQ(-EINVAL, check(self->dev, REGION, &self->good));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(desc, lanes_count)
{
	self->good.lanes = 4;
	EXPECT_EQ(0, check(self->dev, REGION, &self->good));
	self->good.lanes = 5;
	EXPECT_EQ(-ERANGE, check(self->dev, REGION, &self->good));
}

TEST_F(desc, ndim_is_0_to_32)
{
	struct tensor desc = { .bits = 8, .lanes = 1, .ndim = 32 };
	int i;

	for (i = 0; i < 32; i++)
		desc.shape[i] = 1;
	EXPECT_EQ(0, check(self->dev, REGION, &desc));
	desc.ndim = 33;
	EXPECT_EQ(-EINVAL, check(self->dev, REGION, &desc));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(desc, scalar_ends_inside)
{
	struct tensor desc = { .bits = 64, .lanes = 1 };

	EXPECT_EQ(0, check(self->dev, REGION, &desc));
	desc.byte_offset = REGION - 8;
	EXPECT_EQ(0, check(self->dev, REGION, &desc));
	desc.byte_offset = REGION - 7;
	EXPECT_EQ(-ERANGE, check(self->dev, REGION, &desc));
	desc.byte_offset = REGION;
	EXPECT_EQ(-ERANGE, check(self->dev, REGION, &desc));
}

TEST_F(desc, each_unknown_flag_is_einval)
{
	int bit;

	for (bit = 0; bit < 32; bit++) {
		self->good.flags = 1U << bit;
		EXPECT_EQ(-EINVAL, check(self->dev, REGION, &self->good));
	}
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(desc, negative_dimension_is_einval)
{
	self->good.shape[1] = -1;
	EXPECT_EQ(-EINVAL, check(self->dev, REGION, &self->good));
	self->good.shape[1] = INT64_MIN;
	EXPECT_EQ(-EINVAL, check(self->dev, REGION, &self->good));
	self->good.shape[0] = 0;
	EXPECT_EQ(-EINVAL, check(self->dev, REGION, &self->good));
}

TEST_F(desc, last_byte_may_be_the_regions_last)
{
	EXPECT_EQ(0, check_line(self->dev, 8, REGION, 1, 0));
	EXPECT_EQ(-ERANGE, check_line(self->dev, 8, REGION + 1, 1, 0));
	EXPECT_EQ(-ERANGE, check_line(self->dev, 8, REGION, 1, 1));
	EXPECT_EQ(0, check_line(self->dev, 16, REGION / 2, 1, 0));
	EXPECT_EQ(-ERANGE, check_line(self->dev, 16, REGION / 2, 1, 1));
}

TEST_F(desc, range_is_the_regions_size_as_rounded)
{
	struct tensor desc = {
		.bits = 8,
		.lanes = 1,
		.ndim = 1,
		.shape = { PAGE },
		.strides = { 1 },
	};

	EXPECT_EQ(0, check(self->dev, 1, &desc));
	desc.shape[0]++;
	EXPECT_EQ(-ERANGE, check(self->dev, 1, &desc));
}

TEST_F(desc, strides_count)
{
	EXPECT_EQ(0, check_line(self->dev, 8, 2, REGION - 1, 0));
	EXPECT_EQ(-ERANGE, check_line(self->dev, 8, 2, REGION, 0));
	EXPECT_EQ(0, check_line(self->dev, 8, 1, INT64_MAX, 0));
	EXPECT_EQ(0, check_line(self->dev, 8, 1000000, 0, 0));
}

TEST_F(desc, negative_strides_count)
{
	EXPECT_EQ(0, check_line(self->dev, 8, REGION, -1, REGION - 1));
	EXPECT_EQ(-ERANGE, check_line(self->dev, 8, REGION, -1, REGION - 2));
	EXPECT_EQ(-ERANGE, check_line(self->dev, 8, 2, -1, 0));
	EXPECT_EQ(0, check_line(self->dev, 8, 1, -1, 0));
	EXPECT_EQ(-ERANGE, check_line(self->dev, 8, 2, INT64_MIN, REGION - 1));
}

TEST_F(desc, mixed_strides_count_each_its_way)
{
	struct tensor desc = {
		.byte_offset = 100,
		.bits = 8,
		.lanes = 1,
		.ndim = 2,
		.shape = { 101, REGION - 100 },
		.strides = { -1, 1 },
	};

	EXPECT_EQ(0, check(self->dev, REGION, &desc));
	desc.shape[0]++;
	EXPECT_EQ(-ERANGE, check(self->dev, REGION, &desc));
	desc.shape[0]--;
	desc.shape[1]++;
	EXPECT_EQ(-ERANGE, check(self->dev, REGION, &desc));
}

TEST_F(desc, elements_below_a_byte_are_packed)
{
	EXPECT_EQ(0, check_line(self->dev, 4, 2 * REGION, 1, 0));
	EXPECT_EQ(-ERANGE, check_line(self->dev, 4, 2 * REGION + 1, 1, 0));
	EXPECT_EQ(0, check_line(self->dev, 1, 8 * REGION, 1, 0));
	EXPECT_EQ(-ERANGE, check_line(self->dev, 1, 8 * REGION + 1, 1, 0));
	EXPECT_EQ(0, check_line(self->dev, 1, 8, -1, 1));
	EXPECT_EQ(0, check_line(self->dev, 1, 9, -1, 1));
	EXPECT_EQ(-ERANGE, check_line(self->dev, 1, 10, -1, 1));
	EXPECT_EQ(0, check_line(self->dev, 6, 8 * REGION / 6, 1, 0));
	EXPECT_EQ(-ERANGE, check_line(self->dev, 6, 8 * REGION / 6 + 1, 1, 0));
}

TEST_F(desc, empty_tensor_may_be_at_the_very_end)
{
	EXPECT_EQ(0, check_line(self->dev, 64, 0, 1, REGION));
	EXPECT_EQ(-ERANGE, check_line(self->dev, 64, 0, 1, REGION + 1));
	EXPECT_EQ(-ERANGE, check_line(self->dev, 64, 0, 1, ~0ULL));
	self->good.shape[0] = 0;
	self->good.shape[1] = 1LL << 40;
	self->good.strides[1] = INT64_MAX;
	EXPECT_EQ(0, check(self->dev, REGION, &self->good));
	self->good.shape[1] = INT64_MAX;
	EXPECT_EQ(-ERANGE, check(self->dev, REGION, &self->good));
}

TEST_F(desc, overflows_are_erange)
{
	struct tensor desc = {
		.bits = 8,
		.lanes = 1,
		.ndim = 2,
		.shape = { 1LL << 32, 1LL << 32 },
		.strides = { 1LL << 32, 1 },
	};

	EXPECT_EQ(-ERANGE, check(self->dev, REGION, &desc));
	EXPECT_EQ(-ERANGE, check_line(self->dev, 8, INT64_MAX, 1, 0));
	EXPECT_EQ(-ERANGE, check_line(self->dev, 255, INT64_MAX, INT64_MAX, 0));
	EXPECT_EQ(-ERANGE, check_line(self->dev, 255, INT64_MAX, INT64_MIN, 0));
	EXPECT_EQ(-ERANGE, check_line(self->dev, 8, 1LL << 60, 1, 0));
	EXPECT_EQ(-ERANGE, check_line(self->dev, 8, 2, 1LL << 61, 0));
	EXPECT_EQ(-ERANGE, check_line(self->dev, 8, 1, 1, ~0ULL));
	EXPECT_EQ(-ERANGE, check_line(self->dev, 8, 1, 1, 1ULL << 61));
	EXPECT_EQ(-ERANGE, check_line(self->dev, 8, INT64_MAX, 0, 0));
	EXPECT_EQ(0, check_line(self->dev, 8, 1LL << 59, 0, 0));
	desc.strides[0] = INT64_MAX;
	desc.strides[1] = INT64_MIN;
	desc.shape[0] = 2;
	desc.shape[1] = 2;
	EXPECT_EQ(-ERANGE, check(self->dev, REGION, &desc));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(desc, names_may_be_paths_or_no_text)
{
	static const char *const names[] = { "", "a/b", "..", "/", "\xff\xfe" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		strcpy(self->good.name, names[i]);
		EXPECT_EQ(0, check(self->dev, REGION, &self->good));
	}
}

TEST_F(desc, name_of_1024_bytes_is_enametoolong)
{
	memset(self->good.name, 'n', 1023);
	EXPECT_EQ(0, check(self->dev, REGION, &self->good));
	self->good.name[1023] = 'n';
	EXPECT_EQ(-ENAMETOOLONG, check(self->dev, REGION, &self->good));
	EXPECT_SAME_COUNTERS(self->before);
}

/* The record of @good; each test changes one member. */
FIXTURE(record)
{
	int dev;
	struct counters before;
	size_t size;
	char *name;
	union {
		struct tshare_desc desc;
		char bytes[RECORD_MAX + 64];
	} u;
};

FIXTURE_SETUP(record)
{
	const struct tensor good = {
		.bits = 8,
		.lanes = 1,
		.ndim = 1,
		.shape = { 5 },
		.strides = { 1 },
		.name = "abc",
	};

	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->before = count_all();
	memset(&self->u, 0, sizeof(self->u));
	self->size = pack(&good, &self->u);
	self->name = self->u.bytes + 24 + 2 * 8;
	ASSERT_EQ(48, self->size);
}

FIXTURE_TEARDOWN(record)
{
	close(self->dev);
}

#define CHECK_RECORD(size) check_records(self->dev, REGION, &self->u, (size), 1)

TEST_F(record, good_one_is_taken)
{
	EXPECT_EQ(0, CHECK_RECORD(self->size));
}

TEST_F(record, another_size_is_einval)
{
	static const __u32 sizes[] = { 0, 8, 24, 40, 47, 49, 56, 1U << 31, ~0U };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		self->u.desc.size = sizes[i];
		EXPECT_EQ(-EINVAL, CHECK_RECORD(self->size));
		EXPECT_EQ(-EINVAL, CHECK_RECORD(sizeof(self->u)));
	}
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(record, other_numbers_of_dimensions_are_einval)
{
	static const __u16 ndims[] = { 0, 2, 3, 32, 33, 0x8001, 0xffff };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ndims); i++) {
		self->u.desc.ndim = ndims[i];
		EXPECT_EQ(-EINVAL, CHECK_RECORD(self->size));
	}
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(record, another_length_of_the_name_is_einval)
{
	static const __u16 lengths[] = { 0, 1, 2, 4, 7, 8, 1023 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		self->u.desc.name_len = lengths[i];
		EXPECT_EQ(-EINVAL, CHECK_RECORD(self->size));
	}
	self->u.desc.name_len = 0xffff;
	EXPECT_EQ(-ENAMETOOLONG, CHECK_RECORD(self->size));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(record, name_with_a_nul_in_it_is_einval)
{
	int i;

	for (i = 0; i < 3; i++) {
		self->name[i] = '\0';
		EXPECT_EQ(-EINVAL, CHECK_RECORD(self->size));
		self->name[i] = 'x';
	}
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(record, name_not_followed_by_zeros_is_einval)
{
	int i;

	for (i = 3; i < 8; i++) {
		self->name[i] = 'x';
		EXPECT_EQ(-EINVAL, CHECK_RECORD(self->size));
		self->name[i] = '\0';
	}
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(record, buffer_that_ends_within_it_is_einval)
{
	size_t size;

	for (size = 0; size < self->size; size++)
		EXPECT_EQ(-EINVAL, CHECK_RECORD(size));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(record, bytes_behind_the_last_one_are_einval)
{
	EXPECT_EQ(-EINVAL, CHECK_RECORD(self->size + 1));
	EXPECT_EQ(-EINVAL, CHECK_RECORD(self->size + 8));
	EXPECT_EQ(-EINVAL, CHECK_RECORD(2 * self->size));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(record, other_counts_than_there_are_records_are_einval)
{
	memcpy(self->u.bytes + self->size, &self->u, self->size);
	EXPECT_EQ(0, check_records(self->dev, REGION, &self->u, 2 * self->size, 2));
	EXPECT_EQ(-EINVAL, check_records(self->dev, REGION, &self->u, 2 * self->size, 0));
	EXPECT_EQ(-EINVAL, check_records(self->dev, REGION, &self->u, 2 * self->size, 1));
	EXPECT_EQ(-EINVAL, check_records(self->dev, REGION, &self->u, 2 * self->size, 3));
	EXPECT_EQ(-EINVAL, check_records(self->dev, REGION, NULL, 0, 1));
	EXPECT_SAME_COUNTERS(self->before);
}

/* Lists longer than the part that the kernel checks at a time. */
FIXTURE(list)
{
	int dev;
	struct counters before;
	struct records records;
};

FIXTURE_SETUP(list)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->before = count_all();
	self->records = many_records(3000);
	ASSERT_LT(20 * PAGE, self->records.size);
}

FIXTURE_TEARDOWN(list)
{
	free(self->records.data);
	close(self->dev);
}

/* Whether OPEN and INFO return the list that the region was created with. */
static bool returns(int dev, int fd, const struct records *records)
{
	char *descs = malloc(records->size);
	struct tshare_info info = {
		.fd = fd,
		.descs = (uintptr_t)descs,
		.descs_size = records->size,
	};
	bool same = !xioctl(dev, TSHARE_IOCTL_INFO, &info) &&
		    info.descs_size == records->size && info.desc_count == records->count &&
		    !memcmp(descs, records->data, records->size);

	free(descs);
	return same;
}

TEST_F(list, of_any_length_is_given_back)
{
	__u32 count;
	int fd;

	/* Around a page, and around several: records straddle the pages' bounds. */
	for (count = 1; count < 300; count++) {
		struct records records = many_records(count);

		fd = create_described(self->dev, REGION, records.data, records.size, count);
		ASSERT_LE(0, fd);
		EXPECT_TRUE(returns(self->dev, fd, &records)) {
			TH_LOG("%u records", count);
		}
		close(fd);
		unlink_name(self->dev, "described");
		free(records.data);
	}
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(list, of_the_largest_records_is_given_back)
{
	struct tensor tensor = { .bits = 8, .lanes = 1, .ndim = 32 };
	struct records records = { .count = 100 };
	int i, fd;

	for (i = 0; i < 32; i++)
		tensor.shape[i] = 1;
	memset(tensor.name, 'n', 1023);
	records.data = malloc(100 * RECORD_MAX);
	for (i = 0; i < 100; i++)
		records.size += pack(&tensor, (char *)records.data + records.size);
	EXPECT_EQ(100 * RECORD_MAX, records.size);
	fd = create_described(self->dev, REGION, records.data, records.size, records.count);
	ASSERT_LE(0, fd);
	EXPECT_TRUE(returns(self->dev, fd, &records));
	free(records.data);
}

TEST_F(list, has_at_most_1048576_descriptors)
{
	struct records records = many_records(1048577);
	size_t size = records.size;
	int fd;

	EXPECT_EQ(-E2BIG, create_described(self->dev, REGION, records.data, size, records.count));
	EXPECT_EQ(-E2BIG, create_described(self->dev, REGION, records.data, size, ~0U));
	EXPECT_SAME_COUNTERS(self->before);
	records.count--;
	/* A name such as "tensor 1048576 of so many" makes a record of 56 bytes. */
	records.size -= 56;
	fd = create_described(self->dev, REGION, records.data, records.size, records.count);
	ASSERT_LE(0, fd);
	EXPECT_TRUE(returns(self->dev, fd, &records));
	free(records.data);
}

TEST_F(list, has_at_most_256_mib)
{
	struct tensor tensor = { .bits = 8, .lanes = 1 };
	struct records records = { .data = malloc(256 * MIB + 64) };
	char *data = records.data;

	ASSERT_NE(NULL, data);
	/* 262,144 records of 1 KiB. */
	memset(tensor.name, 'n', 999);
	while (records.size < 256 * MIB) {
		records.size += pack(&tensor, data + records.size);
		records.count++;
	}
	ASSERT_EQ(256 * MIB, records.size);
	EXPECT_EQ(0, check_records(self->dev, PAGE, data, records.size, records.count));
	memcpy(data + records.size, data, 24);
	EXPECT_EQ(-E2BIG, create_described(self->dev, PAGE, data, records.size + 8, 1));
	EXPECT_EQ(-E2BIG, create_described(self->dev, PAGE, data, ~0U, 1));
	EXPECT_SAME_COUNTERS(self->before);
	free(data);
}

TEST_F(list, outside_memory_is_efault)
{
	void *descs = guarded(self->records.size - 100);

	memcpy(descs, self->records.data, self->records.size - 100);
	EXPECT_EQ(-EFAULT, create_described(self->dev, REGION, descs, self->records.size,
					    self->records.count));
	EXPECT_EQ(-EFAULT, create_described(self->dev, REGION, NULL, 56, 1));
	EXPECT_EQ(-EFAULT, create_described(self->dev, REGION, (void *)~0xfffUL, 2 * PAGE, 100));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(list, of_no_bytes_needs_no_pointer)
{
	EXPECT_LE(0, create_described(self->dev, REGION, (void *)1, 0, 0));
}

/* A malformed record in the first page, across two pages, in the last. */
TEST_F(list, with_one_bad_record_is_refused)
{
	static const unsigned int places[] = { 0, 1, 84, 85, 86, 1500, 2998, 2999 };
	struct tshare_desc *desc;
	unsigned int i, place;
	char *at;

	for (i = 0; i < ARRAY_SIZE(places); i++) {
		at = self->records.data;
		for (place = 0; place < places[i]; place++)
			at += ((struct tshare_desc *)at)->size;
		desc = (struct tshare_desc *)at;
		desc->flags = 1;
		EXPECT_EQ(-EINVAL, check_records(self->dev, REGION, self->records.data,
						 self->records.size, self->records.count));
		desc->flags = 0;
		desc->byte_offset = REGION;
		EXPECT_EQ(-ERANGE, check_records(self->dev, REGION, self->records.data,
						 self->records.size, self->records.count));
		desc->byte_offset = 0;
	}
	EXPECT_SAME_COUNTERS(self->before);
	EXPECT_EQ(0, check_records(self->dev, REGION, self->records.data, self->records.size,
				   self->records.count));
}

TEST_F(list, with_another_count_than_records_is_refused)
{
	EXPECT_EQ(-EINVAL, check_records(self->dev, REGION, self->records.data,
					 self->records.size, self->records.count - 1));
	EXPECT_EQ(-EINVAL, check_records(self->dev, REGION, self->records.data,
					 self->records.size, self->records.count + 1));
	EXPECT_EQ(-EINVAL, check_records(self->dev, REGION, self->records.data,
					 self->records.size - 8, self->records.count));
	EXPECT_SAME_COUNTERS(self->before);
}

/* RLIMIT_FSIZE does not apply to files that the kernel writes for itself. */
TEST_F(list, is_kept_with_any_limit_of_file_sizes)
{
	struct rlimit none = { 0, 0 };
	int fd;

	ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &none));
	fd = create_described(self->dev, REGION, self->records.data, self->records.size,
			      self->records.count);
	ASSERT_LE(0, fd);
	EXPECT_TRUE(returns(self->dev, fd, &self->records));
}

TEST_F(list, is_shared_memory_that_goes_with_the_region)
{
	struct records records = many_records(131072);
	long before = shared_memory(), size = records.size;
	int fd = create_described(self->dev, REGION, records.data, records.size, records.count);

	ASSERT_LE(0, fd);
	EXPECT_LT(before + size / 2, shared_memory());
	unlink_name(self->dev, "described");
	close(fd);
	EXPECT_GT(before + size / 2, shared_memory());
	free(records.data);
}

/* How a region's descriptors are read: by OPEN or by INFO. */
FIXTURE(read)
{
	int dev;
	int fd;
	struct records records;
	struct counters before;
};

FIXTURE_VARIANT(read)
{
	bool info;
	/* A short list is kept in one allocation, a long one in pages. */
	__u32 count;
};

FIXTURE_VARIANT_ADD(read, open)
{
	.info = false,
	.count = 3,
};

FIXTURE_VARIANT_ADD(read, info)
{
	.info = true,
	.count = 3,
};

FIXTURE_VARIANT_ADD(read, open_many)
{
	.info = false,
	.count = 3000,
};

FIXTURE_VARIANT_ADD(read, info_many)
{
	.info = true,
	.count = 3000,
};

FIXTURE_SETUP(read)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->records = many_records(variant->count);
	self->fd = create_described(self->dev, REGION, self->records.data, self->records.size,
				    self->records.count);
	ASSERT_LE(0, self->fd);
	self->before = count_all();
}

FIXTURE_TEARDOWN(read)
{
	close(self->fd);
	close(self->dev);
}

/* Reads a region's descriptors into @room bytes: 0 and their @size and @count, or an error. */
static int read_descs(int dev, int fd, bool info, void *descs, __u32 room, __u32 *size,
		      __u32 *count)
{
	struct tshare_info info_args = {
		.fd = fd,
		.descs = (uintptr_t)descs,
		.descs_size = room,
		.desc_count = ~0U,
	};
	struct tshare_open open_args = {
		.descs = (uintptr_t)descs,
		.descs_size = room,
		.desc_count = ~0U,
		.name = "described",
	};
	int err;

	if (info) {
		err = xioctl(dev, TSHARE_IOCTL_INFO, &info_args);
		*size = info_args.descs_size;
		*count = info_args.desc_count;
		return err;
	}
	err = xioctl(dev, TSHARE_IOCTL_OPEN, &open_args);
	if (err)
		return err;
	close(open_args.fd);
	*size = open_args.descs_size;
	*count = open_args.desc_count;
	return 0;
}

#define READ(descs, room) \
	read_descs(self->dev, self->fd, variant->info, (descs), (room), &size, &count)

TEST_F(read, gives_what_was_created)
{
	char *descs = guarded(self->records.size);
	__u32 size, count;

	ASSERT_EQ(0, READ(descs, self->records.size));
	EXPECT_EQ(self->records.size, size);
	EXPECT_EQ(variant->count, count);
	EXPECT_EQ(0, memcmp(descs, self->records.data, size));
}

TEST_F(read, stores_nothing_where_not_all_fit)
{
	char *descs = calloc(1, self->records.size);
	__u32 size, count;

	ASSERT_EQ(0, READ(descs, self->records.size - 1));
	EXPECT_EQ(self->records.size, size);
	EXPECT_EQ(variant->count, count);
	EXPECT_TRUE(zeroed(descs, self->records.size));
	free(descs);
}

TEST_F(read, stores_no_more_than_there_are)
{
	char *descs = malloc(self->records.size + 64);
	__u32 size, count;
	int i;

	memset(descs, 0xa5, self->records.size + 64);
	ASSERT_EQ(0, READ(descs, self->records.size + 64));
	EXPECT_EQ(self->records.size, size);
	EXPECT_EQ(0, memcmp(descs, self->records.data, size));
	for (i = 0; i < 64; i++)
		EXPECT_EQ(0xa5, (unsigned char)descs[size + i]);
	free(descs);
}

TEST_F(read, measures_without_a_buffer)
{
	__u32 size, count;

	ASSERT_EQ(0, READ(NULL, 0));
	EXPECT_EQ(self->records.size, size);
	EXPECT_EQ(variant->count, count);
	ASSERT_EQ(0, READ((void *)1, self->records.size - 1));
	EXPECT_EQ(self->records.size, size);
}

TEST_F(read, into_bad_memory_is_efault)
{
	char *descs = guarded(self->records.size - 8);
	__u32 size, count;

	EXPECT_EQ(-EFAULT, READ(descs, self->records.size));
	EXPECT_EQ(-EFAULT, READ(NULL, self->records.size));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(read, into_read_only_memory_is_efault)
{
	char *descs = guarded(self->records.size);
	__u32 size, count;

	ASSERT_EQ(0, mprotect((void *)((uintptr_t)descs & ~(PAGE - 1)), self->records.size,
			      PROT_READ));
	EXPECT_EQ(-EFAULT, READ(descs, self->records.size));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(read, does_not_see_later_changes_of_the_creators_buffer)
{
	char *descs = malloc(self->records.size), *kept = malloc(self->records.size);
	__u32 size, count;

	memcpy(kept, self->records.data, self->records.size);
	memset(self->records.data, 0, self->records.size);
	ASSERT_EQ(0, READ(descs, self->records.size));
	EXPECT_EQ(0, memcmp(descs, kept, size));
	free(descs);
	free(kept);
}

/* A process that copies descriptors all the time, until it is killed. */
static int copy_for_ever(void *arg)
{
	const struct records *records = arg;
	int dev = open_device(), fd;

	for (;;) {
		fd = create_described(dev, REGION, records->data, records->size, records->count);
		if (fd < 0 || !returns(dev, fd, records))
			return 1;
		close(fd);
		unlink_name(dev, "described");
	}
}

TEST(killed_while_it_copies_leaves_nothing_behind)
{
	struct records records = many_records(100000);
	struct counters before = count_all();
	int status, i;
	pid_t pid;

	for (i = 0; i < 20; i++) {
		struct timespec pause = { .tv_nsec = 1000000 + i * 1700000 };

		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid)
			_exit(copy_for_ever(&records));
		nanosleep(&pause, NULL);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status));
		EXPECT_TRUE(counters_return_to(before));
	}
	free(records.data);
}

TEST_HARNESS_MAIN
