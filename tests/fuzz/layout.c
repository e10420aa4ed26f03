// SPDX-License-Identifier: MIT
/*
 * tshare_region_compute_layout(): all tensors lie in the size that it computes, those that it
 * places lie behind those before, and tshare_spec_check() agrees with it.
 */
#include <errno.h>

#include "input.h"
#include "reference.h"
#include "tshare.h"

#define MAX_TENSORS 6
#define MAX_NDIM    5
#define ALIGNMENT   64

struct tensor {
	struct tshare_spec spec;
	int64_t shape[MAX_NDIM];
	int64_t strides[MAX_NDIM];
	char name[16];
};

static void take_tensor(struct input *input, struct tensor *tensor)
{
	uint8_t choice = take_byte(input), dtype[4];
	int32_t i;

	take_bytes(input, dtype, sizeof(dtype));
	take_bytes(input, tensor->name, sizeof(tensor->name) - 1);
	tensor->name[sizeof(tensor->name) - 1] = '\0';
	tensor->spec = (struct tshare_spec){
		.size = sizeof(tensor->spec),
		.name = choice & 1 ? tensor->name : NULL,
		.dtype = { dtype[0], dtype[1], (uint16_t)(choice & 2 ? dtype[2] : 1) },
		.ndim = dtype[3] % (MAX_NDIM + 1),
		.shape = tensor->shape,
		.strides = choice & 4 ? tensor->strides : NULL,
		.byte_offset = choice & 8 ? (uint64_t)take_number(input) : TSHARE_OFFSET_AUTO,
	};
	for (i = 0; i < MAX_NDIM; i++) {
		tensor->shape[i] = take_number(input);
		tensor->strides[i] = take_number(input);
	}
}

static uint64_t offset_of(const struct tshare_spec *spec, uint64_t computed)
{
	if (spec->byte_offset == TSHARE_OFFSET_START)
		return 0;
	return spec->byte_offset == TSHARE_OFFSET_AUTO ? computed : spec->byte_offset;
}

static void check_tensor(const struct tshare_spec *spec, uint64_t offset, uint64_t size,
			 wide *behind)
{
	const uint32_t bits = (uint32_t)spec->dtype.bits * spec->dtype.lanes;
	const struct reach reach = reach_of(bits, spec->ndim, spec->shape, spec->strides);
	const wide start = (wide)offset * 8;
	uint64_t needed;
	char *memory;

	REQUIRE(offset == offset_of(spec, offset));
	if (spec->byte_offset == TSHARE_OFFSET_AUTO) {
		REQUIRE(offset % ALIGNMENT == 0);
		REQUIRE(reach.empty || start + reach.low >= *behind);
	}
	*behind = start + (reach.empty ? 0 : reach.high);
	if (reach.empty)
		return;
	/* Offsets that the caller gives are checked with the region's size, which may be larger. */
	REQUIRE(start + reach.high <= (wide)size * 8);
	if (!reach.countable || start + reach.low < 0 || size > 1ULL << 46)
		return;
	/* Nothing reads there. */
	memory = (char *)4096 + (start + reach.low) / 8;
	needed = (start + reach.high + 7) / 8 - (start + reach.low) / 8;
	REQUIRE(!tshare_spec_check(spec, (char *)4096 + offset, memory, needed));
	REQUIRE(tshare_spec_check(spec, (char *)4096 + offset, memory, needed - 1) == -ERANGE);
	REQUIRE(tshare_spec_check(spec, (char *)4096 + offset, memory + 1, needed) == -ERANGE);
}

/* Whether there is nothing wrong with it, and it reaches nowhere near the largest offset. */
static bool is_harmless(const struct tshare_spec *spec)
{
	const uint32_t bits = (uint32_t)spec->dtype.bits * spec->dtype.lanes;
	const wide most = (wide)1 << 48;
	struct reach reach;
	int32_t i;

	for (i = 0; i < spec->ndim; i++)
		if (spec->shape[i] < 0)
			return false;
	if (!bits || (spec->byte_offset > most && spec->byte_offset != TSHARE_OFFSET_START))
		return false;
	reach = reach_of(bits, spec->ndim, spec->shape, spec->strides);
	return reach.countable && reach.high <= most && reach.low >= -most;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };
	size_t count = take_byte(&input) % (MAX_TENSORS + 1), i;
	struct tshare_spec specs[MAX_TENSORS];
	struct tensor tensors[MAX_TENSORS];
	uint64_t offsets[MAX_TENSORS], bytes;
	bool harmless = true;
	wide behind = 0;
	int err;

	for (i = 0; i < count; i++) {
		take_tensor(&input, &tensors[i]);
		specs[i] = tensors[i].spec;
		harmless &= is_harmless(&specs[i]);
	}
	err = tshare_region_compute_layout(specs, count, offsets, &bytes);
	if (err) {
		REQUIRE(!harmless && err < 0 && *tshare_error_get());
		return 0;
	}
	for (i = 0; i < count; i++)
		check_tensor(&specs[i], offsets[i], bytes, &behind);
	return 0;
}
