/* SPDX-License-Identifier: GPL-2.0-only */
/* The dma-bufs over a region. */
#ifndef TSHARE_DMABUF_H
#define TSHARE_DMABUF_H

#include <linux/atomic.h>
#include <linux/types.h>

struct dma_buf;
struct tshare_region;

struct dma_buf *tshare_dmabuf_export(struct tshare_region *region, bool writable);
struct tshare_region *tshare_dmabuf_region(const struct dma_buf *dmabuf);
bool tshare_dmabuf_writable(const struct dma_buf *dmabuf);

/* The dma-bufs there are, shown in sysfs. */
extern atomic_long_t tshare_export_count;

#endif /* TSHARE_DMABUF_H */
