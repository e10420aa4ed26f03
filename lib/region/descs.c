// SPDX-License-Identifier: MIT
#include "region/descs.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "ctx.h"
#include "format/desc-list.h"
#include "region/object.h"

static int check_descs(struct desc_list *list, const struct tshare_region *region)
{
	int err = desc_list_check(list, region->handle.size, "tensors");

	return err ? fail_within(-EPROTO, "region: damaged descriptors: ") : 0;
}

int region_adopt_descs(struct tshare_region *region)
{
	struct desc_list *list = region->handle.descs;
	int err;

	if (!list)
		return 0;
	err = check_descs(list, region);
	if (err)
		return err;
	region->handle.descs = NULL;
	atomic_store_explicit(&region->descs, list, memory_order_relaxed);
	return 0;
}

static int read_descs(struct tshare_region *region, struct desc_list **result)
{
	const struct backend_region *handle = &region->handle;
	_cleanup_desc_list_ struct desc_list *list =
		desc_list_new(handle->desc_count, handle->descs_size);
	int err;

	if (!list)
		return fail(-ENOMEM, "region: out of memory");
	err = region->backend->read_descs(ctx_session(region->ctx, region->backend), handle,
					  list->records);
	if (!err)
		err = check_descs(list, region);
	if (!err)
		*result = no_cleanup(list);
	return err;
}

int region_descs(struct tshare_region *region, struct desc_list **result)
{
	struct desc_list *list, *other = NULL;
	int err;

	list = atomic_load_explicit(&region->descs, memory_order_acquire);
	if (!list) {
		err = read_descs(region, &list);
		if (err)
			return err;
		if (!atomic_compare_exchange_strong(&region->descs, &other, list)) {
			desc_list_free(list);
			list = other;
		}
	}
	*result = list;
	return 0;
}
