/* SPDX-License-Identifier: GPL-2.0-only */
/* Tensor descriptors as plain structs, and the records that the kernel takes. */
#ifndef TSHARE_KSELFTEST_RECORD_H
#define TSHARE_KSELFTEST_RECORD_H

#include "util.h"

/* Bytes of the largest record: 32 dimensions, and a name of 1,023 bytes with its NUL. */
#define RECORD_MAX (24 + 2 * 32 * 8 + 1024)

/* A tensor; there is room for more dimensions and a longer name than a record may have. */
struct tensor {
	__u64 byte_offset;
	__u8 code, bits;
	__u16 lanes;
	__u32 flags;
	__u32 ndim;
	__s64 shape[33];
	__s64 strides[33];
	char name[1025];
};

/* Writes a tensor's record to @to, and returns its size. */
static inline size_t pack(const struct tensor *tensor, void *to)
{
	size_t dims = tensor->ndim * sizeof(__s64), name_len = strlen(tensor->name);
	struct tshare_desc head = {
		.size = (sizeof(head) + 2 * dims + name_len + 8) & ~7U,
		.ndim = tensor->ndim,
		.name_len = name_len,
		.byte_offset = tensor->byte_offset,
		.dtype_code = tensor->code,
		.dtype_bits = tensor->bits,
		.dtype_lanes = tensor->lanes,
		.flags = tensor->flags,
	};
	char *dims_to = (char *)to + sizeof(head);

	memset(to, 0, head.size);
	memcpy(to, &head, sizeof(head));
	memcpy(dims_to, tensor->shape, dims);
	memcpy(dims_to + dims, tensor->strides, dims);
	memcpy(dims_to + 2 * dims, tensor->name, name_len);
	return head.size;
}

/* Records of @count scalars, named by their numbers; freed by the test's end. */
struct records {
	void *data;
	size_t size;
	__u32 count;
};

static inline struct records many_records(__u32 count)
{
	struct records records = { .data = malloc(64 * (size_t)count), .count = count };
	struct tensor tensor = { .bits = 8, .lanes = 1 };
	__u32 i;

	if (!records.data)
		abort();
	for (i = 0; i < count; i++) {
		sprintf(tensor.name, "tensor %u of so many", i);
		records.size += pack(&tensor, (char *)records.data + records.size);
	}
	return records;
}

static inline void set_records(struct tshare_create *args, const struct records *records)
{
	args->descs = (uintptr_t)records->data;
	args->descs_size = records->size;
	args->desc_count = records->count;
}

/* A region of @size bytes without a name. */
static inline int create_with_records(int dev, __u64 size, const struct records *records)
{
	struct tshare_create args = create_args(size, NULL);

	set_records(&args, records);
	return do_create(dev, &args);
}

#endif /* TSHARE_KSELFTEST_RECORD_H */
