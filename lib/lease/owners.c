// SPDX-License-Identifier: MIT
#include "lease/owners.h"

#include <errno.h>

#include "base/error.h"
#include "base/process.h"
#include "base/refcount.h"
#include "lease/seat.h"
#include "region/object.h"

static int find(struct tshare_region *region, const void *data, struct tensor_owner **owner)
{
	uint64_t offset = (const char *)data - (const char *)tshare_region_get_data(region);
	struct owners *owners;
	int err;

	process_lock();
	owners = region->frames.owners;
	if (owners && !refcount_get_unless_zero(owners->refs))
		owners = NULL;
	process_unlock();
	if (!owners)
		return fail(-ENOENT, "data: is in a stream or pool that has ended");
	if (seats_is_child(owners->seats)) {
		err = fail(-ENOENT, "data: is in the stream or pool of this process's parent");
	} else {
		pthread_mutex_lock(owners->lock);
		err = owners->find(owners, offset, owner);
		pthread_mutex_unlock(owners->lock);
	}
	owners->unref(owners);
	return err;
}

static void set(struct tshare_region *region, struct owners *owners)
{
	process_lock();
	region->frames.find = find;
	region->frames.owners = owners;
	process_unlock();
}

void owners_begin(struct tshare_region *region, struct owners *owners)
{
	set(region, owners);
}

void owners_end(struct tshare_region *region)
{
	if (region)
		set(region, NULL);
}
