// SPDX-License-Identifier: MIT
/*
 * kmod/desc.c: what it accepts of a list of records is read as the module and the library
 * read it, and each verdict is compared with the reference.
 */
#include <errno.h>

#include "desc.h"
#include "input.h"
#include "reference.h"

/* So large a region's bits can be counted, and what fits into it overflows nowhere. */
#define SIZE_MASK ((1ULL << 59) - 1)

static bool is_record(const struct tshare_desc *desc, size_t left)
{
	size_t head, total, i;
	const char *text;

	if (left < sizeof(*desc) || desc->ndim > 32 || desc->name_len > 1023 || desc->flags)
		return false;
	/* The dimensions, the strides, the name with its NUL, and zeros up to a multiple of 8. */
	head = sizeof(*desc) + 16 * (size_t)desc->ndim;
	total = (head + desc->name_len + 1 + 7) & ~(size_t)7;
	if (desc->size != total || total > left)
		return false;
	text = (const char *)desc;
	for (i = head; i < head + desc->name_len; i++)
		if (!text[i])
			return false;
	for (; i < total; i++)
		if (text[i])
			return false;
	return true;
}

static bool is_tensor(const struct tshare_desc *desc, uint64_t region_size)
{
	const uint32_t bits = (uint32_t)desc->dtype_bits * desc->dtype_lanes;
	const wide start = (wide)desc->byte_offset * 8;
	const int64_t *shape = (const int64_t *)desc->dims;
	struct reach reach;
	uint32_t i;

	for (i = 0; i < desc->ndim; i++)
		if (shape[i] < 0)
			return false;
	if (!bits || desc->byte_offset > region_size)
		return false;
	reach = reach_of(bits, desc->ndim, shape, shape + desc->ndim);
	if (!reach.countable)
		return false;
	return reach.empty ||
	       (start + reach.low >= 0 && start + reach.high <= (wide)region_size * 8);
}

/* Corrects what seldom fits together by chance. */
static void mend(struct tshare_desc *desc, size_t left)
{
	size_t size;

	if (left < sizeof(*desc))
		return;
	desc->ndim %= 5;
	desc->name_len %= 9;
	desc->flags = 0;
	size = TSHARE_DESC_SIZE(desc->ndim, desc->name_len);
	if (size > left)
		return;
	desc->size = size;
	memset((char *)desc + size - 8 - desc->name_len % 8, 'n', 8 + desc->name_len % 8);
	memset((char *)tshare_desc_name(desc), 'n', desc->name_len);
	memset((char *)tshare_desc_name(desc) + desc->name_len, 0,
	       (char *)desc + size - tshare_desc_name(desc) - desc->name_len);
}

/* The bytes that just hold the first record's tensor, or one more or less. */
static uint64_t fitting_size(const struct tshare_desc *desc, size_t left, int delta)
{
	struct reach reach;
	wide bytes;

	if (!is_record(desc, left) || !is_tensor(desc, SIZE_MASK))
		return 0;
	reach = reach_of((uint32_t)desc->dtype_bits * desc->dtype_lanes, desc->ndim,
			 (const int64_t *)desc->dims, (const int64_t *)desc->dims + desc->ndim);
	bytes = desc->byte_offset + (reach.empty ? 0 : (reach.high + 7) / 8) + delta;
	return bytes < 0 ? 0 : (uint64_t)bytes & SIZE_MASK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };
	uint8_t mended = take_byte(&input), fitting = take_byte(&input);
	uint64_t region_size = (uint64_t)take_number(&input) & SIZE_MASK;
	size_t left = input.left, i;
	const struct tshare_desc *desc;
	const char *why;
	void *records;
	int err;

	/* Just as large, so that a look behind its end is noticed. */
	records = malloc(left);
	if (!records)
		return 0;
	take_bytes(&input, records, left);
	for (desc = records, i = 0; left; desc = tshare_desc_next(desc), i++) {
		if (mended >> (i % 8) & 1)
			mend((struct tshare_desc *)desc, left);
		if (!i && fitting % 2)
			region_size = fitting_size(desc, left, fitting / 2 % 3 - 1);
		why = NULL;
		err = tshare_desc_check(desc, left, region_size, &why);
		REQUIRE(!err == (is_record(desc, left) && is_tensor(desc, region_size)));
		REQUIRE(!err == !why);
		REQUIRE(!err || err == -EINVAL || err == -ERANGE || err == -ENAMETOOLONG);
		if (err)
			break;
		REQUIRE(strlen(tshare_desc_name(desc)) == desc->name_len);
		left -= desc->size;
	}
	free(records);
	return 0;
}
