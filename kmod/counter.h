/* SPDX-License-Identifier: GPL-2.0-only */
/* A region's counter, a page of shared memory beside the region's own. */
#ifndef TSHARE_COUNTER_H
#define TSHARE_COUNTER_H

#include <linux/types.h>

struct file;
struct path;

struct file *tshare_counter_open(struct path **counter, bool writable);
void tshare_counter_put(struct path *counter);

#endif /* TSHARE_COUNTER_H */
