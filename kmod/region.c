// SPDX-License-Identifier: GPL-2.0-only
/* A region: pages, owner, mode, lifetime. */
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "alloc.h"
#include "counter.h"
#include "names.h"
#include "region.h"

atomic_long_t tshare_region_count;

/**
 * tshare_region_alloc() - make a region of zeroed memory, not yet to be found
 * @ns: its namespace
 * @req: what the caller asks for, checked; @req->size in whole pages
 * @descs: the tensors, checked; the region's on success
 *
 * Return: a reference, or an ERR_PTR: -ENOMEM, -EDQUOT, -EINTR.
 */
struct tshare_region *tshare_region_alloc(struct tshare_ns *ns, const struct tshare_create *req,
					  struct tshare_desc *descs)
{
	struct tshare_request want = {
		.nr_pages = req->size >> PAGE_SHIFT,
		.node = req->node == TSHARE_NODE_ANY ? NUMA_NO_NODE : req->node,
		.dma32 = req->flags & TSHARE_CREATE_DMA32,
	};
	struct tshare_region *region;
	int err;

	region = kzalloc(sizeof(*region), GFP_KERNEL_ACCOUNT);
	if (!region)
		return ERR_PTR(-ENOMEM);
	region->charge = tshare_charge_create(
		ns, want.nr_pages + PFN_DOWN(req->desc_count * sizeof(*descs)));
	if (IS_ERR(region->charge)) {
		err = PTR_ERR(region->charge);
		goto err_free;
	}
	err = tshare_run_alloc(&want, &region->pfn);
	if (err)
		goto err_uncharge;

	kref_init(&region->ref);
	region->nr_pages = want.nr_pages;
	current_fsuid_fsgid(&region->uid, &region->gid);
	region->mode = req->mode;
	if (req->flags & TSHARE_CREATE_PERSIST)
		region->flags |= TSHARE_REGION_PERSIST;
	if (req->flags & TSHARE_CREATE_DMA32)
		region->flags |= TSHARE_REGION_DMA32;
	region->descs = descs;
	region->desc_count = req->desc_count;
	dma_resv_init(&region->resv);
	mutex_init(&region->maps_lock);
	INIT_LIST_HEAD(&region->maps);
	strscpy_pad(region->name, req->name, sizeof(region->name));
	RB_CLEAR_NODE(&region->name_node);
	INIT_LIST_HEAD(&region->name_owner);
	tshare_ns_get(ns);
	region->ns = ns;
	atomic_long_inc(&tshare_region_count);
	return region;

err_uncharge:
	tshare_charge_destroy(region->charge);
err_free:
	kfree(region);
	return ERR_PTR(err);
}

/* Called with tshare_lock held, so that nobody finds the region meanwhile; lets go of it. */
static void region_release(struct kref *ref)
{
	struct tshare_region *region = container_of(ref, struct tshare_region, ref);

	tshare_withdraw(region);
	mutex_unlock(&tshare_lock);

	tshare_charge_release(region->charge, region->pfn, region->nr_pages);
	tshare_counter_put(region);
	tshare_ns_put(region->ns);
	dma_resv_fini(&region->resv);
	mutex_destroy(&region->maps_lock);
	kvfree(region->descs);
	kfree(region);
	atomic_long_dec(&tshare_region_count);
}

/**
 * tshare_region_put() - drop a reference
 * @region: the region; with the last one it goes
 */
void tshare_region_put(struct tshare_region *region)
{
	kref_put_mutex(&region->ref, region_release, &tshare_lock);
}
