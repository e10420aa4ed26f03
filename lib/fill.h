/* SPDX-License-Identifier: MIT */
/*
 * Memory that no process has touched, filled by writes to its file: write() neither zeroes a page
 * that it overwrites nor maps it, and the first touch of a mapped one does both.
 */
#ifndef TSHARE_FILL_H
#define TSHARE_FILL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tshare_region;

/* What is written at a time. Less isn't worth it, and more doesn't stay in a processor's cache. */
#define FILL_SIZE (1ULL << 20)

struct fill {
	const struct tshare_region *region;
	int own;       /* a description of its file that nobody shares, or -1 */
	atomic_int fd; /* the same, or -1 where the mapping has to be written */
};

/* What a thread writes from. */
struct fill_buffer {
	void *data; /* FILL_SIZE bytes, aligned to pages; NULL until it is needed */
	void *mapping;
};

/* For @length bytes of the region. */
void fill_init(struct fill *fill, const struct tshare_region *region, uint64_t length);
void fill_end(struct fill *fill);

/* Whether this part of the region is to be filled from the buffer, which then has its data. */
bool fill_prepare(const struct fill *fill, uint64_t offset, uint64_t length,
		  struct fill_buffer *buffer);

/* Returns how many bytes were written; 0 if the mapping has to be written. */
size_t fill_write(struct fill *fill, const struct fill_buffer *buffer, size_t length,
		  uint64_t offset);

void fill_buffer_free(struct fill_buffer *buffer);

#endif /* TSHARE_FILL_H */
