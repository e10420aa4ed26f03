// SPDX-License-Identifier: MIT
/* New regions, laid out and mapped before they get their names. */
#define _GNU_SOURCE 1
#include "region/create.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <syslog.h>
#include <unistd.h>

#include "base/error.h"
#include "base/export.h"
#include "base/sized.h"
#include "ctx.h"
#include "format/desc-list.h"
#include "format/layout.h"
#include "format/region-name.h"
#include "region/mappings.h"
#include "region/object.h"
#include "region/place.h"
#include "region/region.h"

#define CREATE_FLAGS \
	(TSHARE_DRAFT | TSHARE_REPLACE | TSHARE_DMA32 | TSHARE_CONTIGUOUS | TSHARE_NODE)
#define DEFAULT_MODE 0600

int options_read(const struct tshare_options *options, struct tshare_options *known)
{
	int err = 0;

	*known = (struct tshare_options){ 0 };
	if (options)
		err = sized_read(options, "options.", SIZED_UPTO(struct tshare_options, mode),
				 known, sizeof(*known));
	known->size = sizeof(*known);
	return err;
}

static int check_options(const struct tshare_options *options, bool named,
			 struct backend_request *request)
{
	struct tshare_options known;
	int err;

	err = options_read(options, &known);
	if (err)
		return err;
	if (known.flags & ~CREATE_FLAGS)
		return fail(-EINVAL, "options.flags: unknown flag in %#" PRIx32, known.flags);
	if ((known.mode & ~0666U) && known.mode != TSHARE_MODE_NONE)
		return fail(-EINVAL, "options.mode: %#" PRIo32 " has bits beyond 0666", known.mode);
	if (known.node && !(known.flags & TSHARE_NODE))
		return fail(-EINVAL,
			    "options.node: %" PRId32 " is ignored without TSHARE_NODE; "
			    "set the flag, or 0",
			    known.node);
	if (known.node < 0)
		return fail(-EINVAL, "options.node: %" PRId32 " is negative", known.node);
	if (known.lifetime > TSHARE_LIFETIME_PERSIST)
		return fail(-EINVAL, "options.lifetime: %" PRIu32 " is unknown", known.lifetime);
	if (known.lifetime != TSHARE_LIFETIME_MAKER && !named)
		return fail(-EINVAL, "options.lifetime: only a name can outlive its maker, "
				     "and the region has none");
	if (known.flags & (TSHARE_DRAFT | TSHARE_REPLACE) && !named)
		return fail(-EINVAL, "options.flags: %s needs a name",
			    known.flags & TSHARE_DRAFT ? "TSHARE_DRAFT" : "TSHARE_REPLACE");
	request->flags = known.flags;
	request->lifetime = known.lifetime;
	if (known.mode != TSHARE_MODE_NONE)
		request->mode = known.mode ? known.mode : DEFAULT_MODE;
	request->node = known.node;
	return 0;
}

/* Rounds @wanted bytes, or those that the tensors @needed, up to whole pages. */
static int choose_size(const struct tshare_ctx *ctx, uint64_t wanted, uint64_t needed,
		       size_t tensors, uint64_t *size)
{
	uint64_t mask = ctx->page_size - 1;

	if (!wanted && !tensors)
		return fail(-EINVAL, "size: is 0, and there are no tensors; give either");
	if (!wanted)
		wanted = needed ? needed : 1;
	if (wanted > UINT64_MAX - mask)
		return fail(-ENOMEM, "size: no room for %" PRIu64 " bytes", wanted);
	*size = (wanted + mask) & ~mask;
	return 0;
}

/* Lays the tensors out in @size bytes, or in as many as they need if that is 0. */
static int describe_tensors(struct tshare_region *region, const struct tshare_spec *specs,
			    size_t count, uint64_t size, bool exact)
{
	struct backend_region *handle = &region->handle;
	struct desc_list *list = NULL;
	uint64_t needed = 0;
	int err = 0;

	if (count > TSHARE_TENSOR_LIMIT)
		return fail(-EINVAL, "count: %zu tensors are more than %d", count,
			    TSHARE_TENSOR_LIMIT);
	if (count && !specs)
		return fail(-EINVAL, "specs: is NULL");
	if (count) {
		err = layout_specs(specs, count, &list, &needed);
		if (err)
			return err;
		atomic_store_explicit(&region->descs, list, memory_order_relaxed);
		handle->desc_count = count;
	}
	if (exact)
		handle->size = size;
	else
		err = choose_size(region->ctx, size, needed, count, &handle->size);
	if (!err && list)
		err = desc_list_check(list, handle->size, "specs");
	if (!err && list)
		err = desc_list_check_unique(list);
	return err;
}

TSHARE_EXPORT
int tshare_region_compute_layout(const struct tshare_spec *specs, size_t count, uint64_t *offsets,
				 uint64_t *size)
{
	_cleanup_desc_list_ struct desc_list *list = NULL;
	uint64_t needed;
	size_t i;
	int err;

	if (count > TSHARE_TENSOR_LIMIT)
		return fail(-EINVAL, "count: %zu tensors are more than %d", count,
			    TSHARE_TENSOR_LIMIT);
	if (count && (!specs || !offsets))
		return fail(-EINVAL, "%s: is NULL", specs ? "offsets" : "specs");
	err = layout_specs(specs, count, &list, &needed);
	if (err)
		return err;
	for (i = 0; i < count; i++)
		offsets[i] = desc_list_get(list, i)->byte_offset;
	if (size)
		*size = needed;
	return 0;
}

static int fail_no_dmabuf(int fd)
{
	return fail(-EINVAL, "fd: %d is not another driver's dma-buf", fd);
}

/* Maps the dma-buf of a new region or, for memory that is still to be made, the room for it. */
static int place_new(struct tshare_region *region, const int *dmabuf)
{
	struct content content;
	int err;

	if (!dmabuf)
		return region_place(region, &content_none);
	region->readonly = (fcntl(*dmabuf, F_GETFL) & O_ACCMODE) == O_RDONLY;
	content = region_content(region);
	content.fd = *dmabuf;
	err = region_place(region, &content);
	/* Each dma-buf implements mmap(), if only to refuse it. */
	return err == -ENODEV ? fail_no_dmabuf(*dmabuf) : err;
}

/*
 * Maps the new memory over the room for it: see map_aligned() for what a failure leaves.
 * After mlockall(MCL_FUTURE) the room counts as locked memory, and the region counts beside
 * it until it has replaced the room. If the limit is too low for both, unlocks the room.
 */
static int map_new(struct tshare_region *region)
{
	const struct content content = region_content(region);
	const uint64_t size = region->handle.size;
	void *data;
	int err;

	data = map_content(region->data, size, &content, MAP_FIXED);
	if (data == MAP_FAILED && errno == EAGAIN && !munlock(region->data, size))
		data = map_content(region->data, size, &content, MAP_FIXED);
	if (data != MAP_FAILED)
		return 0;
	err = region_fail_map(region);
	mappings_remove(region);
	region->data = NULL;
	return err;
}

/*
 * Reserves what a mapping needs before the region gets its name: if the mapping failed
 * later, another region might have lost the name in vain.
 */
static int create_region(struct tshare_region *region, struct backend_request *request)
{
	struct backend_region *handle = &region->handle;
	const struct desc_list *list = atomic_load_explicit(&region->descs, memory_order_relaxed);
	struct tshare_ctx *ctx = region->ctx;
	int err;

	request->name = handle->name;
	request->size = handle->size;
	if (list) {
		request->descs = list->records;
		request->descs_size = list->size;
		request->desc_count = list->count;
	}
	atomic_store_explicit(&region->unfinished, true, memory_order_relaxed);
	err = place_new(region, request->dmabuf);
	if (!err)
		err = region->backend->create(ctx->session, request, handle);
	if (err)
		return err;
	if (!request->dmabuf)
		err = map_new(region);
	if (err && *handle->name)
		region->backend->unlink_region(ctx->session, handle->fd, handle->id, handle->name);
	atomic_store_explicit(&region->unfinished, err, memory_order_release);
	return err;
}

static int create(struct tshare_ctx *ctx, const char *name, uint64_t size, const int *dmabuf,
		  const struct tshare_spec *specs, size_t count,
		  const struct tshare_options *options, struct tshare_region **region)
{
	struct backend_request request = { .dmabuf = dmabuf };
	struct tshare_region *new;
	int err;

	err = check_options(options, name, &request);
	if (err)
		return err;
	new = region_new(ctx);
	if (!new)
		return -ENOMEM;
	err = name ? region_name_copy(new->handle.name, name) : 0;
	if (!err)
		err = describe_tensors(new, specs, count, size, dmabuf);
	new->replaces = !!(request.flags & TSHARE_REPLACE);
	if (!err)
		err = create_region(new, &request);
	if (err) {
		tshare_region_unref(new);
		return err;
	}
	log_message(&ctx->log, LOG_DEBUG, "%s: created '%s', %" PRIu64 " bytes", ctx->backend->name,
		    new->handle.name, new->handle.size);
	*region = new;
	return 0;
}

TSHARE_EXPORT
int tshare_region_create(struct tshare_ctx *ctx, const char *name, uint64_t size,
			 const struct tshare_spec *specs, size_t count,
			 const struct tshare_options *options, struct tshare_region **region)
{
	return create(ctx, name, size, NULL, specs, count, options, region);
}

TSHARE_EXPORT
int tshare_region_create_dmabuf(struct tshare_ctx *ctx, const char *name, int fd,
				const struct tshare_spec *specs, size_t count,
				const struct tshare_options *options, struct tshare_region **region)
{
	off_t size = lseek(fd, 0, SEEK_END);

	if (!name)
		return fail(-EINVAL, "name: is NULL; a region of a dma-buf needs a name");
	if (size < 0 && errno == EBADF)
		return fail(-EBADF, "fd: %d is not open", fd);
	/* A dma-buf has at least one byte, and lseek() returns how many. */
	if (size <= 0)
		return fail_no_dmabuf(fd);
	return create(ctx, name, size, &fd, specs, count, options, region);
}
