// SPDX-License-Identifier: GPL-2.0-only
/*
 * The mappings that devices have of a region, and the CPU accesses beside them.
 *
 * A device may have a copy of the pages, in a bounce buffer or behind caches that it doesn't
 * snoop. Copying one over the other loses what was stored in the other, so the module copies
 * only as brackets allow: see Documentation/design/memory.rst, "CPU access". A region's
 * dma-bufs share its mappings, since a CPU access through one concerns the devices behind the
 * others.
 */
#include <linux/dma-mapping.h>
#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "maps.h"
#include "range.h"

/* The most whole chunks that the 32-bit length of a scatterlist entry can express. */
#define SEGMENT_MAX 0xFFE00000U

/*
 * The most bytes that are synced before other tasks may run. A segment may have 4 GiB, of which
 * the kernel writes back each cache line, or copies each byte, without rescheduling.
 */
#define SYNC_MAX SZ_2M

/**
 * struct tshare_map - a range of the region as mapped for a device
 * @range: the range, which the importer's dma-buf holds
 * @pfn: its first page frame number
 * @sgt: its addresses; the importer unmaps it by this pointer
 * @dev: the device
 * @dir: the direction of transfers
 * @node: in the list of the region's maps, under their lock
 */
struct tshare_map {
	const struct tshare_range *range;
	unsigned long pfn;
	struct sg_table sgt;
	struct device *dev;
	enum dma_data_direction dir;
	struct list_head node;
};

/**
 * tshare_maps_init() - no devices yet
 * @maps: the region's
 */
void tshare_maps_init(struct tshare_maps *maps)
{
	mutex_init(&maps->lock);
	INIT_LIST_HEAD(&maps->list);
	maps->writers = RB_ROOT;
	INIT_LIST_HEAD(&maps->attachments);
}

/**
 * tshare_maps_destroy() - end tshare_maps_init()
 * @maps: the region's, without devices and accesses
 */
void tshare_maps_destroy(struct tshare_maps *maps)
{
	mutex_destroy(&maps->lock);
}

/*
 * The length of the scatterlist entry at @offset of the mapping: at most @limit and the
 * device's segment size. The entry crosses no segment boundary, by physical addresses and by
 * offsets: an IOMMU maps the dma-buf to an address that is aligned for all of it.
 */
static u32 map_segment_length(const struct tshare_map *map, u64 offset, size_t limit)
{
	struct device *dev = map->dev;
	u64 max = max_t(u64, PAGE_SIZE, min_t(u64, dma_get_max_seg_size(dev), limit) & PAGE_MASK);
	u64 mask = dma_get_seg_boundary(dev) | ~PAGE_MASK;
	u64 phys = PFN_PHYS(map->pfn) + offset;
	/* Less one, because a mask of all ones (no boundary) would overflow. */
	u64 last = min(tshare_range_bytes(map->range) - offset, max) - 1;

	return min3(last, mask - (phys & mask), mask - (offset & mask)) + 1;
}

static int map_fill_sgt(struct tshare_map *map, size_t limit)
{
	u64 size = tshare_range_bytes(map->range), offset;
	unsigned int nents = 0;
	struct scatterlist *sg;
	int err, i;

	/* With the usual segments of 64 KiB, 64 GiB have a million. */
	for (offset = 0; offset < size; offset += map_segment_length(map, offset, limit)) {
		nents++;
		cond_resched();
	}
	err = sg_alloc_table(&map->sgt, nents, GFP_KERNEL);
	if (err)
		return err;
	offset = 0;
	for_each_sgtable_sg(&map->sgt, sg, i) {
		u32 len = map_segment_length(map, offset, limit);

		sg_set_page(sg, pfn_to_page(map->pfn + PFN_DOWN(offset)), len, 0);
		offset += len;
		cond_resched();
	}
	return 0;
}

static int map_segments(struct tshare_map *map, size_t limit, unsigned long attrs)
{
	int err = map_fill_sgt(map, limit);

	if (err)
		return err;
	err = dma_map_sgtable(map->dev, &map->sgt, map->dir, attrs);
	if (err)
		sg_free_table(&map->sgt);
	return err;
}

typedef void (*sync_fn)(struct device *dev, dma_addr_t addr, size_t size,
			enum dma_data_direction dir);

static void map_sync_piecewise(struct tshare_map *map, dma_addr_t addr, u64 size, sync_fn sync)
{
	u64 done, piece;

	for (done = 0; done < size; done += piece) {
		piece = min_t(u64, size - done, SYNC_MAX);
		sync(map->dev, addr + done, piece, map->dir);
		cond_resched();
	}
}

/*
 * Syncs the part of the region's bytes [begin, end) that @map covers, by DMA addresses: the
 * table belongs to the importer until it is unmapped, and CONFIG_DMABUF_DEBUG garbles the
 * pages in it. The direction is the mapping's, as the DMA API demands: nothing is copied to a
 * device that only writes, or from one that only reads.
 */
static void map_sync(struct tshare_map *map, u64 begin, u64 end, sync_fn sync)
{
	u64 start = tshare_range_start(map->range);
	struct scatterlist *sg;
	int i;

	for_each_sgtable_dma_sg(&map->sgt, sg, i) {
		u64 next = start + sg_dma_len(sg);
		u64 from = max(start, begin), to = min(next, end);

		if (from < to)
			map_sync_piecewise(map, sg_dma_address(sg) + (from - start), to - from,
					   sync);
		start = next;
		cond_resched();
	}
}

static const struct tshare_range *writer_range(const struct rb_node *node)
{
	return rb_entry(node, struct tshare_access, node)->range;
}

/*
 * Syncs a range for the CPU, except pages on which a bracket for writing is open: stores to
 * them would be lost. The caller holds the lock.
 */
static void map_sync_for_cpu(struct tshare_map *map, const struct tshare_maps *maps,
			     const struct tshare_range *range)
{
	u64 from = tshare_range_start(range), end = tshare_range_end(range);
	struct rb_node *node;

	for (node = rb_first(&maps->writers); node && from < end; node = rb_next(node)) {
		range = writer_range(node);
		if (from < tshare_range_start(range))
			map_sync(map, from, min(end, tshare_range_start(range)),
				 dma_sync_single_for_cpu);
		from = max(from, tshare_range_end(range));
		/* A process may have as many dma-bufs with open brackets as descriptors. */
		cond_resched();
	}
	map_sync(map, from, end, dma_sync_single_for_cpu);
}

/* Whether a bracket for writing is open on some page of a range. The caller holds the lock. */
static bool range_is_written(const struct tshare_maps *maps, const struct tshare_range *range)
{
	const struct tshare_range *written;
	struct rb_node *node;

	for (node = rb_first(&maps->writers); node; node = rb_next(node)) {
		written = writer_range(node);
		if (tshare_range_start(written) >= tshare_range_end(range))
			break;
		if (tshare_range_end(written) > tshare_range_start(range))
			return true;
		cond_resched();
	}
	return false;
}

/**
 * tshare_map_create() - map a range of a region for a device
 * @maps: the region's
 * @range: the range
 * @pfn: its first page frame number
 * @dev: the device
 * @dir: the direction of transfers
 *
 * Return: the table of its addresses, or an ERR_PTR.
 */
struct sg_table *tshare_map_create(struct tshare_maps *maps, const struct tshare_range *range,
				   unsigned long pfn, struct device *dev,
				   enum dma_data_direction dir)
{
	size_t limit = dma_max_mapping_size(dev);
	struct tshare_map *map;
	unsigned long ended;
	int err;

	map = kzalloc(sizeof(*map), GFP_KERNEL);
	if (!map)
		return ERR_PTR(-ENOMEM);
	map->range = range;
	map->pfn = pfn;
	map->dev = dev;
	map->dir = dir;
	mutex_lock(&maps->lock);
	ended = maps->ended_brackets;
	mutex_unlock(&maps->lock);
	/*
	 * Bounced memory must be mapped in pieces of at most @limit. But @limit is the
	 * device's, and this range may not be bounced. Large segments come first, since some
	 * importers take only one segment.
	 */
	err = map_segments(map, SEGMENT_MAX,
			   limit < tshare_range_bytes(range) ? DMA_ATTR_NO_WARN : 0);
	if (err == -EIO && limit < tshare_range_bytes(range))
		err = map_segments(map, limit, 0);
	if (err)
		goto err_free;

	mutex_lock(&maps->lock);
	list_add(&map->node, &maps->list);
	/* A bracket that has ended meanwhile did not sync its stores to this map. */
	if (maps->ended_brackets != ended)
		map_sync(map, tshare_range_start(range), tshare_range_end(range),
			 dma_sync_single_for_device);
	mutex_unlock(&maps->lock);
	return &map->sgt;

err_free:
	kfree(map);
	return ERR_PTR(err);
}

/**
 * tshare_map_destroy() - end tshare_map_create()
 * @maps: the region's
 * @sgt: the table
 *
 * Without an open bracket dma_unmap_sgtable() makes the copy. With a sync before it
 * CONFIG_DMA_API_DEBUG complains about memory that a device has mapped twice.
 */
void tshare_map_destroy(struct tshare_maps *maps, struct sg_table *sgt)
{
	struct tshare_map *map = container_of(sgt, struct tshare_map, sgt);
	unsigned long attrs = 0;

	mutex_lock(&maps->lock);
	list_del(&map->node);
	if (range_is_written(maps, map->range)) {
		map_sync_for_cpu(map, maps, map->range);
		attrs = DMA_ATTR_SKIP_CPU_SYNC;
	}
	dma_unmap_sgtable(map->dev, sgt, map->dir, attrs);
	mutex_unlock(&maps->lock);
	sg_free_table(sgt);
	kfree(map);
}

static bool writer_is_before(struct rb_node *a, const struct rb_node *b)
{
	return writer_range(a)->first < writer_range(b)->first;
}

/**
 * tshare_access_begin() - begin a CPU access to the pages of a dma-buf
 * @maps: the region's
 * @access: the dma-buf's
 * @writes: whether the access opens a bracket: it is for writing, and the dma-buf too
 *
 * Syncs the pages from devices that have mapped them through any dma-buf. A bracket for
 * writing alone needs that, too: it may store a part of the bytes, and its end copies all of
 * them to the devices.
 */
void tshare_access_begin(struct tshare_maps *maps, struct tshare_access *access, bool writes)
{
	struct tshare_map *map;

	mutex_lock(&maps->lock);
	list_for_each_entry(map, &maps->list, node)
		map_sync_for_cpu(map, maps, access->range);
	if (writes && !access->brackets++)
		rb_add(&access->node, &maps->writers, writer_is_before);
	mutex_unlock(&maps->lock);
}

/* Ends @nr brackets for writing, and syncs the stores to devices. */
static void access_end_brackets(struct tshare_maps *maps, struct tshare_access *access,
				unsigned long nr)
{
	const struct tshare_range *range = access->range;
	struct tshare_map *map;

	list_for_each_entry(map, &maps->list, node)
		map_sync(map, tshare_range_start(range), tshare_range_end(range),
			 dma_sync_single_for_device);
	maps->ended_brackets += nr;
	access->brackets -= nr;
	if (!access->brackets)
		rb_erase(&access->node, &maps->writers);
}

/**
 * tshare_access_end() - end a CPU access
 * @maps: the region's
 * @access: the dma-buf's
 * @writes: whether the access was for writing. If so and a bracket is open, that ends, and the
 *          stores are synced to devices
 */
void tshare_access_end(struct tshare_maps *maps, struct tshare_access *access, bool writes)
{
	mutex_lock(&maps->lock);
	if (writes && access->brackets)
		access_end_brackets(maps, access, 1);
	mutex_unlock(&maps->lock);
}

/**
 * tshare_access_end_all() - end the brackets that a dma-buf has left open
 * @maps: the region's
 * @access: the dma-buf's, which is being released
 */
void tshare_access_end_all(struct tshare_maps *maps, struct tshare_access *access)
{
	mutex_lock(&maps->lock);
	if (access->brackets)
		access_end_brackets(maps, access, access->brackets);
	mutex_unlock(&maps->lock);
}
