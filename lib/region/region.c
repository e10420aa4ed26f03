// SPDX-License-Identifier: MIT
/* Regions: memory of a backend, mapped into the process. */
#include "region/region.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/export.h"
#include "base/refcount.h"
#include "base/sized.h"
#include "ctx.h"
#include "format/desc-list.h"
#include "region/object.h"
#include "region/place.h"

/* Lifetime */

struct tshare_region *region_new(struct tshare_ctx *ctx)
{
	struct tshare_region *region;

	/* Not calloc(): the GNU C library's doesn't reuse what the thread has just freed. */
	region = malloc(sizeof(*region));
	if (!region) {
		fail(-ENOMEM, "region: out of memory");
		return NULL;
	}
	*region = (struct tshare_region){ 0 };
	atomic_init(&region->refs, 1);
	region->ctx = tshare_ctx_ref(ctx);
	region->backend = ctx->backend;
	region->handle.fd = -1;
	atomic_init(&region->generation.ask_fd, -1);
	atomic_init(&region->generation.lock_fd, -1);
	atomic_init(&region->generation.alive_at, NEVER_NS);
	region->generation.waiter.region = region;
	return region;
}

TSHARE_EXPORT
struct tshare_region *tshare_region_ref(struct tshare_region *region)
{
	refcount_get(&region->refs);
	return region;
}

TSHARE_EXPORT
struct tshare_region *tshare_region_unref(struct tshare_region *region)
{
	keep_errno();
	int part;

	if (!region || !refcount_put(&region->refs))
		return NULL;
	for (part = 0; part < REGION_PARTS; part++)
		if (region->release[part])
			region->release[part](region);
	region_unmap(region);
	if (region->handle.fd >= 0)
		close(region->handle.fd);
	if (region->backend->release)
		region->backend->release(ctx_session(region->ctx, region->backend),
					 &region->handle);
	ctx_sweep(region->ctx, false);
	desc_list_free(region->handle.descs);
	desc_list_free(atomic_load_explicit(&region->descs, memory_order_relaxed));
	tshare_ctx_unref(region->ctx);
	free(region);
	return NULL;
}

int region_check_on_host(const struct tshare_region *region)
{
	if (!region_is_on_device(region))
		return 0;
	return fail(-EOPNOTSUPP, "region: its memory is on a device; use the region of "
				 "tshare_cuda_memory_get_region()");
}

/* Names */

TSHARE_EXPORT
int tshare_region_finish(struct tshare_region *region, uint32_t flags)
{
	const struct backend_finish draft = {
		.region = &region->handle,
		.replace = region->replaces || flags & TSHARE_REPLACE,
	};
	void *session = ctx_session(region->ctx, region->backend);
	int err = region_check_on_host(region);

	if (err)
		return err;
	if (flags & ~TSHARE_REPLACE)
		return fail(-EINVAL, "flags: unknown flag in %#" PRIx32, flags);
	return region->backend->finish(session, &draft, 1);
}

int region_finish_both(struct tshare_region *first, struct tshare_region *second)
{
	const struct backend_finish drafts[] = {
		{ &first->handle, first->replaces },
		{ &second->handle, second->replaces },
	};

	return first->backend->finish(ctx_session(first->ctx, first->backend), drafts, 2);
}

TSHARE_EXPORT
int tshare_region_unlink(struct tshare_region *region)
{
	const struct backend_region *handle = &region->handle;
	void *session = ctx_session(region->ctx, region->backend);
	int err;

	if (!*handle->name)
		return fail(-ENOENT, "region: has no name");
	err = region->backend->unlink_region(session, handle->fd, handle->id, handle->name);
	if (err == -ENOENT)
		return fail(err, "region: has lost its name '%s'", handle->name);
	return err ? fail_name(err, handle->name) : 0;
}

/* Queries */

TSHARE_EXPORT
int tshare_region_get_fd(const struct tshare_region *region)
{
	return region->handle.fd;
}

TSHARE_EXPORT
void *tshare_region_get_data(const struct tshare_region *region)
{
	return region->data;
}

TSHARE_EXPORT
uint64_t tshare_region_get_size(const struct tshare_region *region)
{
	return region->handle.size;
}

TSHARE_EXPORT
const char *tshare_region_get_name(const struct tshare_region *region)
{
	return region->handle.name;
}

TSHARE_EXPORT
uint64_t tshare_region_get_id(const struct tshare_region *region)
{
	return region->handle.id;
}

TSHARE_EXPORT
bool tshare_region_is_readonly(const struct tshare_region *region)
{
	return region->readonly;
}

TSHARE_EXPORT
const char *tshare_region_get_backend(const struct tshare_region *region)
{
	return region->backend->name;
}

TSHARE_EXPORT
size_t tshare_region_get_tensor_count(const struct tshare_region *region)
{
	return region->handle.desc_count;
}

int region_check_flags(uint32_t flags)
{
	if (flags & ~TSHARE_READONLY)
		return fail(-EINVAL, "flags: unknown flag in %#" PRIx32, flags);
	return 0;
}

static int check_range(const struct tshare_region *region, uint64_t offset, uint64_t *size)
{
	const uint64_t mask = region->ctx->page_size - 1, whole = region->handle.size;

	if (offset & mask || *size & mask)
		return fail(-EINVAL, "%s: %" PRIu64 " bytes are not whole pages of %" PRIu32,
			    offset & mask ? "offset" : "size", offset & mask ? offset : *size,
			    region->ctx->page_size);
	if (offset >= whole)
		return fail(-ERANGE, "offset: %" PRIu64 " is beyond the region's %" PRIu64, offset,
			    whole);
	if (!*size)
		*size = whole - offset;
	if (*size > whole - offset)
		return fail(-ERANGE,
			    "size: %" PRIu64 " bytes from %" PRIu64
			    " on exceed the region's %" PRIu64,
			    *size, offset, whole);
	return 0;
}

TSHARE_EXPORT
int tshare_region_export(const struct tshare_region *region, uint64_t offset, uint64_t size,
			 uint32_t flags, int *fd)
{
	bool readonly = flags & TSHARE_READONLY;
	int err;

	err = region_check_on_host(region);
	if (!err)
		err = region_check_flags(flags);
	if (!err)
		err = check_range(region, offset, &size);
	if (err)
		return err;
	if (region->readonly && !readonly)
		return fail(-EACCES, "flags: the region is read-only; set TSHARE_READONLY");
	return region->backend->export(ctx_session(region->ctx, region->backend), &region->handle,
				       offset, size, readonly, fd);
}

TSHARE_EXPORT
int tshare_region_get_info(struct tshare_region *region, struct tshare_region_info *info)
{
	void *session = ctx_session(region->ctx, region->backend);
	struct tshare_region_info known;
	int err;

	err = sized_check(info, "info.", SIZED_UPTO(struct tshare_region_info, tensor_count));
	if (!err)
		err = region_check_on_host(region);
	if (!err)
		err = region->backend->info(session, &region->handle, &known);
	if (!err)
		sized_fill(info, &known, sizeof(known));
	return err;
}
