// SPDX-License-Identifier: MIT
#include "backend/kmod/describe.h"

#include <errno.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/kmod/device.h"
#include "base/error.h"

/* Regions asked for in one ioctl when listing. */
#define LIST_BATCH 64

/* The module's own memory is always contiguous. */
static uint32_t api_flags(uint32_t region_flags)
{
	uint32_t flags = region_flags & TSHARE_REGION_FOREIGN ? TSHARE_FOREIGN : TSHARE_CONTIGUOUS;

	if (region_flags & TSHARE_REGION_DMA32)
		flags |= TSHARE_DMA32;
	if (region_flags & TSHARE_REGION_POOL)
		flags |= TSHARE_POOL;
	if (region_flags & TSHARE_REGION_DRAFT)
		flags |= TSHARE_DRAFT;
	if (!(region_flags & TSHARE_REGION_WRITABLE))
		flags |= TSHARE_READONLY;
	return flags;
}

static uint32_t api_lifetime(uint32_t region_flags)
{
	if (region_flags & TSHARE_REGION_PERSIST)
		return TSHARE_LIFETIME_PERSIST;
	return region_flags & TSHARE_REGION_USERS ? TSHARE_LIFETIME_USERS : TSHARE_LIFETIME_MAKER;
}

static int report_entry(const struct tshare_list_entry *entry,
			int (*fn)(const struct tshare_region_info *info, void *data), void *data)
{
	struct tshare_region_info info = {
		.size = sizeof(info),
		.id = entry->id,
		.region_size = entry->size,
		.uid = entry->uid,
		.gid = entry->gid,
		.mode = entry->mode,
		.node = entry->node,
		.flags = api_flags(entry->region_flags),
		.lifetime = api_lifetime(entry->region_flags),
		.segments = !(entry->region_flags & TSHARE_REGION_FOREIGN),
		.length = entry->size,
		.tensor_count = entry->desc_count,
	};

	memcpy(info.name, entry->name, sizeof(info.name));
	return fn(&info, data);
}

static int list_regions(void *session, uint32_t flags,
			int (*fn)(const struct tshare_region_info *info, void *data), void *data)
{
	struct tshare_list_entry entries[LIST_BATCH];
	struct tshare_list request = { .entry_size = sizeof(entries[0]), .flags = flags };
	uint32_t i;
	int ret;

	request.entries = (uintptr_t)entries;
	do {
		request.count = LIST_BATCH;
		ret = kmod_ioctl(kmod_session_fd(session), TSHARE_IOCTL_LIST, &request);
		if (ret == -EPERM)
			return fail(ret, "regions of all IPC namespaces are listed for the "
					 "machine's administrator only (CAP_SYS_ADMIN)");
		if (ret)
			return fail(ret, DEVICE ": list: %s", strerror(-ret));
		for (i = 0; i < request.count; i++) {
			if (entries[i].name[0])
				ret = report_entry(&entries[i], fn, data);
			if (ret)
				return ret;
		}
	} while (request.count == LIST_BATCH);
	return 0;
}

int kmod_list(void *session, int (*fn)(const struct tshare_region_info *info, void *data),
	      void *data)
{
	return list_regions(session, 0, fn, data);
}

int kmod_list_all(void *session, int (*fn)(const struct tshare_region_info *info, void *data),
		  void *data)
{
	return list_regions(session, TSHARE_LIST_ALL, fn, data);
}

int kmod_info(void *session, const struct backend_region *region, struct tshare_region_info *info)
{
	struct tshare_info answer = { .fd = region->fd, .id = region->id };
	int err = kmod_ask_info(session, &answer);

	if (err)
		return err;
	*info = (struct tshare_region_info){
		.size = sizeof(*info),
		.id = answer.id,
		.region_size = answer.size,
		.uid = answer.uid,
		.gid = answer.gid,
		.mode = answer.mode,
		.node = answer.node,
		.flags = api_flags(answer.region_flags),
		.lifetime = api_lifetime(answer.region_flags),
		.segments = !(answer.region_flags & TSHARE_REGION_FOREIGN),
		.phys_addr = answer.phys_addr,
		.offset = answer.offset,
		.length = answer.length,
		.tensor_count = answer.desc_count,
	};
	memcpy(info->name, answer.name, sizeof(info->name));
	return 0;
}
