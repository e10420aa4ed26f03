// SPDX-License-Identifier: GPL-2.0-only
/* Each rule of struct tshare_desc, and how descriptors get back. */
#include <stddef.h>

#include "util.h"

#define REGION (4 * PAGE)

FIXTURE(desc)
{
	int dev;
	struct counters before;
	/* float32 [16, 64] in C order, which is all of one page. */
	struct tshare_desc good;
};

FIXTURE_SETUP(desc)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->before = count_all();
	self->good = (struct tshare_desc){
		.dtype_code = 2,
		.dtype_bits = 32,
		.dtype_lanes = 1,
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

static int create_described(int dev, __u64 size, const void *descs, __u32 count, __u32 desc_size)
{
	struct tshare_create args = create_args(size, "described");

	args.descs = (uintptr_t)descs;
	args.desc_count = count;
	args.desc_size = desc_size;
	return do_create(dev, &args);
}

/* 0 if a region of @size takes @desc. */
static int check(int dev, __u64 size, const struct tshare_desc *desc)
{
	int fd = create_described(dev, size, desc, 1, sizeof(*desc));

	if (fd < 0)
		return fd;
	unlink_name(dev, "described");
	close(fd);
	return 0;
}

/* One dimension of @n elements of @bits, @stride apart, @offset bytes into REGION. */
static int check_line(int dev, __u8 bits, __s64 n, __s64 stride, __u64 offset)
{
	struct tshare_desc desc = {
		.byte_offset = offset,
		.dtype_bits = bits,
		.dtype_lanes = 1,
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
		self->good.dtype_code = code;
		EXPECT_EQ(0, check(self->dev, REGION, &self->good));
	}
}

TEST_F(desc, type_without_bits_or_lanes_is_einval)
{
	self->good.dtype_bits = 0;
	EXPECT_EQ(-EINVAL, check(self->dev, REGION, &self->good));
	self->good.dtype_bits = 32;
	self->good.dtype_lanes = 0;
	EXPECT_EQ(-EINVAL, check(self->dev, REGION, &self->good));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(desc, lanes_count)
{
	self->good.dtype_lanes = 4;
	EXPECT_EQ(0, check(self->dev, REGION, &self->good));
	self->good.dtype_lanes = 5;
	EXPECT_EQ(-ERANGE, check(self->dev, REGION, &self->good));
}

TEST_F(desc, ndim_is_0_to_32)
{
	struct tshare_desc desc = { .dtype_bits = 8, .dtype_lanes = 1, .ndim = 32 };
	int i;

	for (i = 0; i < 32; i++)
		desc.shape[i] = 1;
	EXPECT_EQ(0, check(self->dev, REGION, &desc));
	desc.ndim = 33;
	EXPECT_EQ(-EINVAL, check(self->dev, REGION, &desc));
	desc.ndim = ~0U;
	EXPECT_EQ(-EINVAL, check(self->dev, REGION, &desc));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(desc, scalar_ends_inside)
{
	struct tshare_desc desc = { .dtype_bits = 64, .dtype_lanes = 1 };

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

TEST_F(desc, each_reserved_bit_is_einval)
{
	size_t i, bit;

	for (i = 0; i < ARRAY_SIZE(self->good.reserved); i++) {
		for (bit = 0; bit < 32; bit += 31) {
			self->good.reserved[i] = 1U << bit;
			EXPECT_EQ(-EINVAL, check(self->dev, REGION, &self->good));
			self->good.reserved[i] = 0;
		}
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

TEST_F(desc, shape_and_strides_beyond_ndim_must_be_zero)
{
	self->good.shape[2] = 1;
	EXPECT_EQ(-EINVAL, check(self->dev, REGION, &self->good));
	self->good.shape[2] = 0;
	self->good.strides[TSHARE_NDIM_MAX - 1] = 1;
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
	struct tshare_desc desc = {
		.dtype_bits = 8,
		.dtype_lanes = 1,
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
	struct tshare_desc desc = {
		.byte_offset = 100,
		.dtype_bits = 8,
		.dtype_lanes = 1,
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
	struct tshare_desc desc = {
		.dtype_bits = 8,
		.dtype_lanes = 1,
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

TEST_F(desc, names_end_and_may_be_paths)
{
	memset(self->good.name, 'n', TSHARE_NAME_LEN);
	EXPECT_EQ(-ENAMETOOLONG, check(self->dev, REGION, &self->good));
	self->good.name[TSHARE_NAME_LEN - 1] = '\0';
	EXPECT_EQ(0, check(self->dev, REGION, &self->good));
	strcpy(self->good.name, "a/b");
	EXPECT_EQ(0, check(self->dev, REGION, &self->good));
	strcpy(self->good.name, "..");
	EXPECT_EQ(0, check(self->dev, REGION, &self->good));
	self->good.name[0] = '\0';
	EXPECT_EQ(0, check(self->dev, REGION, &self->good));
}

TEST_F(desc, count_has_a_limit)
{
	const __u32 count = TSHARE_DESC_MAX;
	struct tshare_desc *descs = calloc(count + 1, sizeof(*descs));
	__u32 i;

	ASSERT_NE(NULL, descs);
	for (i = 0; i <= count; i++)
		descs[i] = self->good;
	EXPECT_EQ(-E2BIG, create_described(self->dev, REGION, descs, count + 1, sizeof(*descs)));
	EXPECT_EQ(-E2BIG, create_described(self->dev, REGION, descs, ~0U, sizeof(*descs)));
	EXPECT_SAME_COUNTERS(self->before);
	EXPECT_LE(0, create_described(self->dev, REGION, descs, count, sizeof(*descs)));
	free(descs);
}

TEST_F(desc, element_sizes_are_checked)
{
	struct {
		struct tshare_desc desc;
		char later[4096];
	} large = { .desc = self->good };

	EXPECT_EQ(-EINVAL, create_described(self->dev, REGION, &large, 1, 0));
	EXPECT_EQ(-EINVAL, create_described(self->dev, REGION, &large, 1, 671));
	EXPECT_EQ(-E2BIG, create_described(self->dev, REGION, &large, 1, 4097));
	EXPECT_EQ(-E2BIG, create_described(self->dev, REGION, &large, 1, ~0U));
	large.later[0] = 1;
	EXPECT_EQ(-E2BIG, create_described(self->dev, REGION, &large, 1, 673));
	EXPECT_SAME_COUNTERS(self->before);
	large.later[0] = 0;
	EXPECT_LE(0, create_described(self->dev, REGION, &large, 1, 4096));
}

TEST_F(desc, element_size_and_pointer_mean_nothing_without_elements)
{
	EXPECT_LE(0, create_described(self->dev, REGION, (void *)1, 0, 1));
}

TEST_F(desc, array_outside_memory_is_efault)
{
	struct tshare_desc *descs = guarded(sizeof(*descs) * 5 / 2);

	descs[0] = self->good;
	descs[1] = self->good;
	EXPECT_EQ(-EFAULT, create_described(self->dev, REGION, descs, 3, sizeof(*descs)));
	EXPECT_EQ(-EFAULT, create_described(self->dev, REGION, NULL, 1, sizeof(*descs)));
	EXPECT_EQ(-EFAULT, create_described(self->dev, REGION, (void *)~0xfffUL, 2,
					    sizeof(*descs)));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(desc, one_bad_element_in_the_middle_spoils_all)
{
	struct tshare_desc descs[5];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(descs); i++)
		descs[i] = self->good;
	descs[2].flags = 1;
	EXPECT_EQ(-EINVAL, create_described(self->dev, REGION, descs, 5, sizeof(descs[0])));
	descs[2].flags = 0;
	descs[2].byte_offset = REGION;
	EXPECT_EQ(-ERANGE, create_described(self->dev, REGION, descs, 5, sizeof(descs[0])));
	EXPECT_SAME_COUNTERS(self->before);
}

/* How a region's descriptors are read: by OPEN or by INFO. */
FIXTURE(read)
{
	int dev;
	int fd;
	struct tshare_desc descs[3];
	struct counters before;
};

FIXTURE_VARIANT(read)
{
	bool info;
};

FIXTURE_VARIANT_ADD(read, open)
{
	.info = false,
};

FIXTURE_VARIANT_ADD(read, info)
{
	.info = true,
};

FIXTURE_SETUP(read)
{
	size_t i;

	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	for (i = 0; i < ARRAY_SIZE(self->descs); i++) {
		self->descs[i] = (struct tshare_desc){
			.byte_offset = i * PAGE,
			.dtype_code = i,
			.dtype_bits = 8,
			.dtype_lanes = 2,
			.ndim = 1,
			.shape = { i + 1 },
			.strides = { 1 },
		};
		sprintf(self->descs[i].name, "tensor%zu", i);
	}
	self->fd = create_described(self->dev, REGION, self->descs, 3, sizeof(self->descs[0]));
	ASSERT_LE(0, self->fd);
	self->before = count_all();
}

FIXTURE_TEARDOWN(read)
{
	close(self->fd);
	close(self->dev);
}

/* The region's count of descriptors, of which at most @count are stored. */
static int read_descs(int dev, int fd, bool info, void *descs, __u32 count, __u32 size)
{
	struct tshare_info info_args = {
		.fd = fd,
		.descs = (uintptr_t)descs,
		.desc_count = count,
		.desc_size = size,
	};
	struct tshare_open open_args = {
		.descs = (uintptr_t)descs,
		.desc_count = count,
		.desc_size = size,
		.name = "described",
	};
	int err;

	if (info)
		return xioctl(dev, TSHARE_IOCTL_INFO, &info_args) ?: (int)info_args.desc_count;
	err = xioctl(dev, TSHARE_IOCTL_OPEN, &open_args);
	if (err)
		return err;
	close(open_args.fd);
	return open_args.desc_count;
}

TEST_F(read, gives_what_was_created)
{
	struct tshare_desc descs[3];

	ASSERT_EQ(3, read_descs(self->dev, self->fd, variant->info, descs, 3, sizeof(descs[0])));
	EXPECT_EQ(0, memcmp(descs, self->descs, sizeof(descs)));
}

TEST_F(read, stores_no_more_than_there_is_room_for)
{
	struct tshare_desc descs[3];

	memset(descs, 0xa5, sizeof(descs));
	ASSERT_EQ(3, read_descs(self->dev, self->fd, variant->info, descs, 2, sizeof(descs[0])));
	EXPECT_EQ(0, memcmp(descs, self->descs, 2 * sizeof(descs[0])));
	EXPECT_EQ(0xa5, (unsigned char)descs[2].dtype_code);
}

TEST_F(read, stores_no_more_than_there_are)
{
	struct tshare_desc descs[4];

	memset(descs, 0xa5, sizeof(descs));
	ASSERT_EQ(3, read_descs(self->dev, self->fd, variant->info, descs, 4, sizeof(descs[0])));
	EXPECT_EQ(0, memcmp(descs, self->descs, sizeof(self->descs)));
	EXPECT_EQ(0xa5, (unsigned char)descs[3].dtype_code);
}

TEST_F(read, counts_without_an_array)
{
	EXPECT_EQ(3, read_descs(self->dev, self->fd, variant->info, NULL, 0, 0));
}

TEST_F(read, zeroes_the_tail_of_larger_elements)
{
	struct {
		struct tshare_desc desc;
		__u64 later[2];
	} descs[3];
	int i;

	memset(descs, 0xa5, sizeof(descs));
	ASSERT_EQ(3, read_descs(self->dev, self->fd, variant->info, descs, 3, sizeof(descs[0])));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, memcmp(&descs[i].desc, &self->descs[i], sizeof(self->descs[i])));
		EXPECT_TRUE(zeroed(descs[i].later, sizeof(descs[i].later)));
	}
}

TEST_F(read, checks_the_size_of_elements)
{
	struct tshare_desc descs[3];

	EXPECT_EQ(-EINVAL, read_descs(self->dev, self->fd, variant->info, descs, 1, 0));
	EXPECT_EQ(-EINVAL, read_descs(self->dev, self->fd, variant->info, descs, 1, 671));
	EXPECT_EQ(-E2BIG, read_descs(self->dev, self->fd, variant->info, descs, 1, 4097));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(read, into_bad_memory_is_efault)
{
	struct tshare_desc *descs = guarded(sizeof(*descs) * 3 / 2);

	EXPECT_EQ(-EFAULT, read_descs(self->dev, self->fd, variant->info, descs, 3,
				      sizeof(*descs)));
	EXPECT_EQ(-EFAULT, read_descs(self->dev, self->fd, variant->info, NULL, 3,
				      sizeof(*descs)));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(read, into_read_only_memory_is_efault)
{
	struct tshare_desc *descs = guarded(PAGE);

	ASSERT_EQ(0, mprotect(descs, PAGE, PROT_READ));
	EXPECT_EQ(-EFAULT, read_descs(self->dev, self->fd, variant->info, descs, 3,
				      sizeof(*descs)));
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(read, does_not_see_later_changes_of_the_creators_array)
{
	struct tshare_desc descs[3], kept[3];

	memcpy(kept, self->descs, sizeof(kept));
	memset(self->descs, 0, sizeof(self->descs));
	ASSERT_EQ(3, read_descs(self->dev, self->fd, variant->info, descs, 3, sizeof(descs[0])));
	EXPECT_EQ(0, memcmp(descs, kept, sizeof(kept)));
}

TEST_HARNESS_MAIN
