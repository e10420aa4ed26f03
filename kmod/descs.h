/* SPDX-License-Identifier: GPL-2.0-only */
/* A region's list of tensor descriptors: copied in, kept, copied out. */
#ifndef TSHARE_DESCS_H
#define TSHARE_DESCS_H

#include <linux/types.h>

struct path;

/**
 * struct tshare_descs - a list of descriptors, immutable once it is made
 * @count: descriptors
 * @size: bytes of them all
 * @records: the descriptors, if they take up to a page; else NULL
 * @file: shared memory with larger ones; else NULL
 *
 * An empty list is all zeros.
 */
struct tshare_descs {
	u32 count;
	u32 size;
	void *records;
	struct path *file;
};

unsigned long tshare_descs_nr_pages(u32 size);
int tshare_descs_copy_in(struct tshare_descs *descs, u64 from, u32 size, u32 count,
			 u64 region_size);
int tshare_descs_copy_out(const struct tshare_descs *descs, u64 to, u32 room);
void tshare_descs_free(struct tshare_descs *descs);

#endif /* TSHARE_DESCS_H */
