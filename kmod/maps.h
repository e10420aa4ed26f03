/* SPDX-License-Identifier: GPL-2.0-only */
/* The devices that use a region, and the CPU accesses beside them. */
#ifndef TSHARE_MAPS_H
#define TSHARE_MAPS_H

#include <linux/dma-direction.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/types.h>

struct device;
struct sg_table;
struct tshare_range;

/**
 * struct tshare_maps - the devices of a region
 * @lock: protects what follows; no other lock of the module is taken under it
 * @list: devices' mappings, made through any of the region's dma-bufs
 * @writers: dma-bufs with an open bracket for writing, by the first page of their range
 * @ended_brackets: how many such brackets have ended
 * @attachments: the devices that are attached to any of the region's dma-bufs
 */
struct tshare_maps {
	struct mutex lock; /* protects what follows */
	struct list_head list;
	struct rb_root writers;
	unsigned long ended_brackets;
	struct list_head attachments;
};

/**
 * struct tshare_attachment - a device that is attached to a dma-buf
 * @dev: the device
 * @node: in the attachments of the region's maps, under their lock
 */
struct tshare_attachment {
	struct device *dev;
	struct list_head node;
};

/**
 * struct tshare_access - the CPU accesses through one dma-buf
 * @range: the pages of the dma-buf
 * @brackets: open brackets: CPU accesses for writing that have begun and not ended; under the
 *            lock of the region's maps
 * @node: in the writers of these maps while @brackets isn't 0, likewise
 */
struct tshare_access {
	const struct tshare_range *range;
	unsigned long brackets;
	struct rb_node node;
};

void tshare_maps_init(struct tshare_maps *maps);
void tshare_maps_destroy(struct tshare_maps *maps);

struct sg_table *tshare_map_create(struct tshare_maps *maps, const struct tshare_range *range,
				   unsigned long pfn, struct device *dev,
				   enum dma_data_direction dir);
void tshare_map_destroy(struct tshare_maps *maps, struct sg_table *sgt);

void tshare_access_begin(struct tshare_maps *maps, struct tshare_access *access, bool writes);
void tshare_access_end(struct tshare_maps *maps, struct tshare_access *access, bool writes);
void tshare_access_end_all(struct tshare_maps *maps, struct tshare_access *access);

#endif /* TSHARE_MAPS_H */
