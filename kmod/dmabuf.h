/* SPDX-License-Identifier: GPL-2.0-only */
/* The dma-bufs over a region. */
#ifndef TSHARE_DMABUF_H
#define TSHARE_DMABUF_H

#include <linux/atomic.h>
#include <linux/types.h>

struct dma_buf;
struct tshare_region;

struct dma_buf *tshare_dmabuf_export(struct tshare_region *region, bool writable);
struct dma_buf *tshare_dmabuf_export_part(struct dma_buf *dmabuf, u64 offset, u64 size,
					  bool writable);
struct tshare_region *tshare_dmabuf_region(const struct dma_buf *dmabuf);
u64 tshare_dmabuf_offset(const struct dma_buf *dmabuf);

/* The number of dma-bufs, shown in sysfs. */
extern atomic_long_t tshare_export_count;

#endif /* TSHARE_DMABUF_H */
