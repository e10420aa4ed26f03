/* SPDX-License-Identifier: MIT */
/*
 * Fills memory, which no process has touched, by writes to its file. write() neither zeroes nor
 * maps a page that it overwrites; the first touch of a mapped page does both.
 */
#ifndef TSHARE_REGION_FILL_H
#define TSHARE_REGION_FILL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tshare_region;

/* Bytes of a write. Fewer aren't worth one, and more don't stay in a processor's cache. */
#define FILL_SIZE (1ULL << 20)

struct fill {
	const struct tshare_region *region;
	int own;       /* a description of its file that nobody shares, or -1 */
	atomic_int fd; /* @own, or -1 if the mapping has to be written */
};

/* The buffer of a thread. */
struct fill_buffer {
	void *data; /* FILL_SIZE bytes, aligned to pages; NULL until it is needed */
	void *mapping;
};

/* For @length bytes of the region. */
void fill_init(struct fill *fill, const struct tshare_region *region, uint64_t length);
void fill_end(struct fill *fill);

/* Whether to fill this part of the region from @buffer, which then is allocated. */
bool fill_prepare(const struct fill *fill, uint64_t offset, uint64_t length,
		  struct fill_buffer *buffer);

/* Returns how many bytes were written; 0 if the mapping has to be written. */
size_t fill_write(struct fill *fill, const struct fill_buffer *buffer, size_t length,
		  uint64_t offset);

void fill_buffer_free(struct fill_buffer *buffer);

#endif /* TSHARE_REGION_FILL_H */
