// SPDX-License-Identifier: GPL-2.0-only
/* A region: pages, owner, mode, id, lifetime. */
#include <linux/build_bug.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/ctype.h>
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/xarray.h>

#include "account.h"
#include "alloc.h"
#include "counter.h"
#include "ns.h"
#include "region.h"
#include "trace.h"

atomic_long_t tshare_region_count;

/*
 * Registered regions by id; changed under tshare_lock, but for reservations. Its nodes are charged
 * to the memory cgroup: a region alone in its block of ids takes more of them than its page has.
 */
static DEFINE_XARRAY_FLAGS(regions, XA_FLAGS_ACCOUNT);

/* Flags that have the same bits in CREATE and in INFO. */
#define REGION_CREATE_FLAGS                                                                        \
	(TSHARE_REGION_PERSIST | TSHARE_REGION_USERS | TSHARE_REGION_DRAFT | TSHARE_REGION_DMA32 | \
	 TSHARE_REGION_FOREIGN)
static_assert(TSHARE_REGION_PERSIST == TSHARE_CREATE_PERSIST);
static_assert(TSHARE_REGION_USERS == TSHARE_CREATE_USERS);
static_assert(TSHARE_REGION_DRAFT == TSHARE_CREATE_DRAFT);
static_assert(TSHARE_REGION_DMA32 == TSHARE_CREATE_DMA32);
static_assert(TSHARE_REGION_FOREIGN == TSHARE_CREATE_DMABUF);

static unsigned long region_wanted_pages(const struct tshare_create *req)
{
	return req->flags & TSHARE_CREATE_DMABUF ? 0 : req->size >> PAGE_SHIFT;
}

/*
 * Pages that the region counts for. A foreign region has none, and counts as one for what the
 * module keeps of it. A list of descriptors counts if it takes more than a page.
 */
static unsigned long region_counted_pages(const struct tshare_create *req)
{
	return max(region_wanted_pages(req), 1UL) + tshare_descs_nr_pages(req->descs_size);
}

/* Gives the region a run of zeroed pages, unless it is foreign. */
static int region_alloc_memory(struct tshare_region *region, const struct tshare_create *req)
{
	struct tshare_request want = {
		.nr_pages = region_wanted_pages(req),
		.node = req->flags & TSHARE_CREATE_NODE ? req->node : NUMA_NO_NODE,
		.dma32 = req->flags & TSHARE_CREATE_DMA32,
	};
	int err;

	region->rung = "dmabuf";
	if (!want.nr_pages)
		return 0;
	err = tshare_run_alloc(&want, &region->pfn, &region->rung);
	if (err)
		return err;
	region->nr_pages = want.nr_pages;
	if (region->rung == tshare_allocator_pool.name)
		region->flags |= TSHARE_REGION_POOL;
	return 0;
}

/* U+2028 to U+202E end lines, or set the direction of what follows; U+2066 to U+2069 do, too. */
static bool controls_lines(u32 character)
{
	return (character >= 0x2028 && character <= 0x202e) ||
	       (character >= 0x2066 && character <= 0x2069);
}

/* A UTF-16 surrogate, or beyond the last character. */
static bool is_no_character(u32 character)
{
	return (character >= 0xd800 && character <= 0xdfff) || character > 0x10ffff;
}

/*
 * Bytes of the non-ASCII UTF-8 character at @text; 0 for a control character or invalid UTF-8.
 * An overlong form is invalid: a lenient reader may see a control character in it.
 */
static unsigned int character_length(const unsigned char *text)
{
	/* By the number of bytes that follow the first. U+0080 to U+009F are controls. */
	static const u32 least[] = { U32_MAX, 0xa0, 0x800, 0x10000, U32_MAX };
	unsigned int more = 0, i;
	u32 character;

	while (more < 4 && *text & (0x40 >> more))
		more++;
	character = *text & (0x3f >> more);
	for (i = 1; i <= more; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		character = character << 6 | (text[i] & 0x3f);
	}
	if (character < least[more] || is_no_character(character) || controls_lines(character))
		return 0;
	return 1 + more;
}

/**
 * tshare_name_mask() - make a name fit to be shown
 * @name: the name, in which each byte that a terminal may take for a control character is
 *        replaced
 *
 * A name may have any byte but '/'. Where text is shown, it must neither make lines of its own nor
 * control the terminal.
 */
void tshare_name_mask(char *name)
{
	while (*name) {
		unsigned int length = isascii(*name) ? !iscntrl(*name) : character_length(name);

		if (!length)
			*name = '?';
		name += length ?: 1;
	}
}

/**
 * tshare_region_alloc() - make a region, not yet registered
 * @ns: its namespace
 * @req: what the caller asks for, checked but for the descriptors; @req->size in whole
 *       pages
 * @foreign: with TSHARE_CREATE_DMABUF the dma-buf that it is to consist of, a reference
 *           that is the region's on success; else NULL, for zeroed memory
 *
 * A caller at a limit is refused before anything is allocated that counts.
 *
 * Return: a reference, or an ERR_PTR: -ENOMEM, -EDQUOT, -EINTR; or for the
 * descriptors what tshare_descs_copy_in() returns.
 */
struct tshare_region *tshare_region_alloc(struct tshare_ns *ns, const struct tshare_create *req,
					  struct dma_buf *foreign)
{
	struct tshare_region *region;
	int err;

	region = kzalloc(sizeof(*region), GFP_KERNEL_ACCOUNT);
	if (!region)
		return ERR_PTR(-ENOMEM);
	region->charge = tshare_charge_create(ns, region_counted_pages(req));
	if (IS_ERR(region->charge)) {
		err = PTR_ERR(region->charge);
		goto err_free;
	}
	err = tshare_descs_copy_in(&region->descs, req->descs, req->descs_size, req->desc_count,
				   req->size);
	if (err)
		goto err_free_memory;
	err = region_alloc_memory(region, req);
	if (err)
		goto err_free_descs;
	region->id = tshare_ns_new_id(ns);
	err = xa_reserve(&regions, region->id, GFP_KERNEL);
	if (err)
		goto err_free_descs;

	kref_init(&region->ref);
	region->foreign = foreign;
	region->creator = task_tgid_nr(current);
	region->creator_started = current->group_leader->start_time;
	current_fsuid_fsgid(&region->uid, &region->gid);
	region->mode = req->mode;
	region->flags |= req->flags & REGION_CREATE_FLAGS;
	tshare_ranges_init(&region->ranges, region->nr_pages);
	tshare_maps_init(&region->maps);
	strscpy_pad(region->name, req->name, sizeof(region->name));
	RB_CLEAR_NODE(&region->name_node);
	INIT_LIST_HEAD(&region->name_owner);
	tshare_ns_get(ns);
	region->ns = ns;
	atomic_long_inc(&tshare_region_count);
	return region;

err_free_descs:
	tshare_descs_free(&region->descs);
err_free_memory:
	tshare_charge_release(region->charge, region->pfn, region->nr_pages);
err_free:
	kfree(region);
	return ERR_PTR(err);
}

/**
 * tshare_region_add_id() - let a region be found by its id
 * @region: the region; the caller holds tshare_lock
 */
void tshare_region_add_id(struct tshare_region *region)
{
	lockdep_assert_held(&tshare_lock);
	/* The place is reserved: this needs no memory. */
	xa_store(&regions, region->id, region, 0);
}

/**
 * tshare_region_find() - the region with an id
 * @id: the id
 *
 * Return: a reference, or NULL.
 */
struct tshare_region *tshare_region_find(u64 id)
{
	struct tshare_region *region;

	mutex_lock(&tshare_lock);
	region = xa_load(&regions, id);
	if (region)
		kref_get(&region->ref);
	mutex_unlock(&tshare_lock);
	return region;
}

/**
 * tshare_region_find_visible() - the region with an id, if a caller may see it
 * @ns: the caller's namespace
 * @id: the id
 *
 * The machine's administrator can look up ids of other namespaces, so that a persistent
 * name in a namespace without processes can be unlinked.
 *
 * Return: a reference, or NULL.
 */
struct tshare_region *tshare_region_find_visible(const struct tshare_ns *ns, u64 id)
{
	struct tshare_region *region = tshare_region_find(id);

	/* ENOENT is no refusal, and so nothing to audit. */
	if (region && region->ns != ns && !ns_capable_noaudit(&init_user_ns, CAP_SYS_ADMIN)) {
		tshare_region_put(region);
		return NULL;
	}
	return region;
}

/**
 * tshare_region_next() - the region with the least id above another one
 * @cursor: the id, which advances
 *
 * Return: a reference, or NULL.
 */
struct tshare_region *tshare_region_next(u64 *cursor)
{
	unsigned long id = *cursor;
	struct tshare_region *region;

	mutex_lock(&tshare_lock);
	region = xa_find_after(&regions, &id, ULONG_MAX, XA_PRESENT);
	if (region)
		kref_get(&region->ref);
	mutex_unlock(&tshare_lock);
	*cursor = id;
	return region;
}

/* Called with tshare_lock held, so that the region isn't found meanwhile; unlocks it. */
static void region_release(struct kref *ref)
{
	struct tshare_region *region = container_of(ref, struct tshare_region, ref);

	xa_erase(&regions, region->id);
	mutex_unlock(&tshare_lock);

	trace_tshare_release(region);
	if (region->foreign)
		dma_buf_put(region->foreign);
	tshare_descs_free(&region->descs);
	tshare_charge_release(region->charge, region->pfn, region->nr_pages);
	tshare_counter_put(region->counter);
	tshare_ns_put(region->ns);
	tshare_ranges_destroy(&region->ranges);
	tshare_maps_destroy(&region->maps);
	kfree(region);
	atomic_long_dec(&tshare_region_count);
}

/**
 * tshare_region_put() - drop a reference
 * @region: the region, which is freed with the last one
 */
void tshare_region_put(struct tshare_region *region)
{
	kref_put_mutex(&region->ref, region_release, &tshare_lock);
}
