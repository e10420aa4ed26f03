/* SPDX-License-Identifier: GPL-2.0-only */
/* A region's counter, a page of shared memory beside the region's own. */
#ifndef TSHARE_COUNTER_H
#define TSHARE_COUNTER_H

#include <linux/types.h>

struct file;
struct tshare_region;

struct file *tshare_counter_open(struct tshare_region *region, bool writable);
void tshare_counter_put(struct tshare_region *region);

#endif /* TSHARE_COUNTER_H */
