/* SPDX-License-Identifier: GPL-2.0-only */
/* Lookup of regions by name or id, and their list, with the caller's permissions. */
#ifndef TSHARE_LOOKUP_H
#define TSHARE_LOOKUP_H

#include <linux/tshare.h>
#include <linux/types.h>

struct tshare_file;
struct tshare_region;
struct tshare_waiter;

/* Access to a region, as in the mode's bits. */
#define TSHARE_MAY_WRITE 2
#define TSHARE_MAY_READ	 4

struct tshare_region *tshare_region_lookup(struct tshare_file *tf, struct tshare_open *req,
					   int access);
bool tshare_name_read(const struct tshare_file *tf, const char *name, struct tshare_waiter *waiter,
		      u64 *id);
int tshare_list_next(struct tshare_file *tf, bool all, u64 *cursor,
		     struct tshare_list_entry *entry);

#endif /* TSHARE_LOOKUP_H */
