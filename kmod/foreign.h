/* SPDX-License-Identifier: GPL-2.0-only */
/* Regions that consist of another driver's dma-buf. */
#ifndef TSHARE_FOREIGN_H
#define TSHARE_FOREIGN_H

#include <linux/types.h>

struct dma_buf;
struct tshare_region;

bool tshare_dmabuf_writable(const struct dma_buf *dmabuf);
struct dma_buf *tshare_foreign_open(const struct tshare_region *region, bool write);
bool tshare_foreign_is_writable(const struct tshare_region *region);
bool tshare_foreign_is_readonly(const struct tshare_region *region);

#endif /* TSHARE_FOREIGN_H */
