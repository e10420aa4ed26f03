/* SPDX-License-Identifier: MIT */
/*
 * The record of a device's memory: all that another process needs to open it. A region holds it as
 * its only tensor, of bytes.
 */
#ifndef TSHARE_CUDA_MEMORY_RECORD_H
#define TSHARE_CUDA_MEMORY_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/driver.h"
#include "tshare.h"

struct tshare_region;

struct memory_record {
	char magic[8];
	uint64_t bytes; /* of the memory */
	uint8_t uuid[CUDA_UUID_BYTES];
	uint8_t handle[CUDA_HANDLE_BYTES];
	struct tshare_dtype dtype;
	int32_t ndim;
	int64_t shape[TSHARE_NDIM_LIMIT];
};

/* The region's tensor that holds a record. */
extern const struct tshare_spec memory_record_spec;

/* Whether the region holds a record, also one that this library doesn't know. */
bool memory_record_is_in(struct tshare_region *region);

void memory_record_write(struct tshare_region *region, struct memory_record *record);

/* Copies the record, and checks it: -EPROTO for a damaged one. */
int memory_record_read(struct tshare_region *region, struct memory_record *record);

/* The tensor that the record describes, C-contiguous. */
struct tshare_spec memory_record_tensor(const struct memory_record *record);

/* Room for "GPU-", the number in groups, and the end. */
#define UUID_TEXT 41
const char *uuid_print(const uint8_t uuid[CUDA_UUID_BYTES], char text[UUID_TEXT]);

#endif /* TSHARE_CUDA_MEMORY_RECORD_H */
