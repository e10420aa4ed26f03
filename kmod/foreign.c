// SPDX-License-Identifier: GPL-2.0-only
/*
 * Regions that consist of another driver's dma-buf: a name, a mode and tensors
 * for memory that the module neither has nor touches.
 *
 * The kernel doesn't report when the last descriptor of a foreign dma-buf is closed.
 * So the region exists as long as its name: until then it holds the dma-buf, and is
 * found by it.
 */
#include <linux/dma-buf.h>
#include <linux/err.h>
#include <linux/kref.h>
#include <linux/rbtree.h>

#include "dmabuf.h"
#include "foreign.h"
#include "ns.h"
#include "region.h"

/* Regions by the address of their dma-buf, which they hold; under tshare_lock. */
static struct rb_root foreign_regions = RB_ROOT;

/**
 * tshare_foreign_get() - the dma-buf that a region is to consist of
 * @fd: its descriptor
 * @size: the bytes that it must have, 0 for any; then those that it has
 *
 * Return: a reference, or ERR_PTR(-EBADF), (-EINVAL) if it is no dma-buf, one of
 * ours or empty, (-ERANGE) if it is smaller.
 */
struct dma_buf *tshare_foreign_get(int fd, u64 *size)
{
	struct dma_buf *dmabuf = dma_buf_get(fd);
	int err = 0;

	if (IS_ERR(dmabuf))
		return dmabuf;
	if (tshare_dmabuf_region(dmabuf) || !dmabuf->size)
		err = -EINVAL;
	else if (*size > dmabuf->size)
		err = -ERANGE;
	if (err) {
		dma_buf_put(dmabuf);
		return ERR_PTR(err);
	}
	*size = dmabuf->size;
	return dmabuf;
}

/**
 * tshare_foreign_open() - the dma-buf of a foreign region
 * @region: the region
 * @write: whether it must be writable
 *
 * Return: a reference, or ERR_PTR(-EACCES).
 */
struct dma_buf *tshare_foreign_open(const struct tshare_region *region, bool write)
{
	if (write && tshare_foreign_is_readonly(region))
		return ERR_PTR(-EACCES);
	get_dma_buf(region->foreign);
	return region->foreign;
}

/**
 * tshare_foreign_is_writable() - whether every opener of a region can write it
 * @region: any region
 *
 * A dma-buf has one file, and so one mode for all openers.
 */
bool tshare_foreign_is_writable(const struct tshare_region *region)
{
	return region->foreign && tshare_dmabuf_writable(region->foreign);
}

/**
 * tshare_foreign_is_readonly() - whether no opener can write a region
 * @region: any region
 */
bool tshare_foreign_is_readonly(const struct tshare_region *region)
{
	return region->foreign && !tshare_dmabuf_writable(region->foreign);
}

static int foreign_compare(const void *dmabuf, const struct rb_node *node)
{
	const void *other = rb_entry(node, struct tshare_region, foreign_node)->foreign;

	return dmabuf < other ? -1 : dmabuf > other;
}

static bool foreign_is_before(struct rb_node *a, const struct rb_node *b)
{
	return foreign_compare(rb_entry(a, struct tshare_region, foreign_node)->foreign, b) < 0;
}

static struct tshare_region *foreign_find(const struct dma_buf *dmabuf)
{
	struct rb_node *node = rb_find(dmabuf, &foreign_regions, foreign_compare);

	return node ? rb_entry(node, struct tshare_region, foreign_node) : NULL;
}

/**
 * tshare_foreign_check_free() - whether a region's dma-buf is no other region's
 * @region: any region; the caller holds tshare_lock
 *
 * Return: 0 or -EBUSY.
 */
int tshare_foreign_check_free(const struct tshare_region *region)
{
	lockdep_assert_held(&tshare_lock);
	return region->foreign && foreign_find(region->foreign) ? -EBUSY : 0;
}

/**
 * tshare_foreign_link() - let a region that gets its name be found by its dma-buf
 * @region: any region; the caller holds tshare_lock
 */
void tshare_foreign_link(struct tshare_region *region)
{
	lockdep_assert_held(&tshare_lock);
	if (region->foreign)
		rb_add(&region->foreign_node, &foreign_regions, foreign_is_before);
}

/**
 * tshare_foreign_unlink() - undo tshare_foreign_link()
 * @region: any region, which loses its name; the caller holds tshare_lock
 */
void tshare_foreign_unlink(struct tshare_region *region)
{
	lockdep_assert_held(&tshare_lock);
	if (region->foreign)
		rb_erase(&region->foreign_node, &foreign_regions);
}

/**
 * tshare_foreign_find() - the region that consists of a dma-buf
 * @dmabuf: any dma-buf
 *
 * Return: a reference, or NULL.
 */
struct tshare_region *tshare_foreign_find(const struct dma_buf *dmabuf)
{
	struct tshare_region *region;

	mutex_lock(&tshare_lock);
	region = foreign_find(dmabuf);
	if (region)
		kref_get(&region->ref);
	mutex_unlock(&tshare_lock);
	return region;
}
