// SPDX-License-Identifier: MIT
#include "cuda/memory-record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define RECORD_NAME "tshare.cuda"
#define MAGIC	    "tscuda01"

static const int64_t record_shape[1] = { sizeof(struct memory_record) };

const struct tshare_spec memory_record_spec = {
	.size = sizeof(memory_record_spec),
	.name = RECORD_NAME,
	.dtype = TSHARE_DTYPE_INIT(1, 8),
	.ndim = 1,
	.shape = record_shape,
	.byte_offset = TSHARE_OFFSET_START,
};

bool memory_record_is_in(struct tshare_region *region)
{
	const char *name;

	return !tshare_region_get_tensor_name(region, 0, &name) && !strcmp(name, RECORD_NAME);
}

void memory_record_write(struct tshare_region *region, struct memory_record *record)
{
	memcpy(record->magic, MAGIC, sizeof(record->magic));
	memcpy(tshare_region_get_data(region), record, sizeof(*record));
}

struct tshare_spec memory_record_tensor(const struct memory_record *record)
{
	return (struct tshare_spec){
		.size = sizeof(struct tshare_spec),
		.dtype = record->dtype,
		.ndim = record->ndim,
		.shape = record->shape,
		.byte_offset = TSHARE_OFFSET_START,
	};
}

_Static_assert(sizeof(struct memory_record) <= 4096, "each region has at least a page");

/* Peers that may write to the region may change the record at any time. */
int memory_record_read(struct tshare_region *region, struct memory_record *record)
{
	struct tshare_spec spec;
	int err;

	if (!memory_record_is_in(region))
		return fail(-ENOENT, "region: describes no memory of a device");
	memcpy(record, tshare_region_get_data(region), sizeof(*record));
	if (memcmp(record->magic, MAGIC, sizeof(record->magic)))
		return fail(-EPROTO, "region: describes a device's memory in a way that this "
				     "library doesn't know; use the same version of tshare in all "
				     "its processes");
	spec = memory_record_tensor(record);
	/* Any address but NULL: the memory isn't read. */
	err = tshare_spec_check(&spec, record, record, record->bytes);
	if (err)
		return fail(-EPROTO, "region: its description of a device's memory is damaged");
	return 0;
}

const char *uuid_print(const uint8_t uuid[CUDA_UUID_BYTES], char text[UUID_TEXT])
{
	int i, at = snprintf(text, UUID_TEXT, "GPU-");

	for (i = 0; i < CUDA_UUID_BYTES; i++)
		at += snprintf(text + at, UUID_TEXT - at, "%s%02x",
			       i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	return text;
}
