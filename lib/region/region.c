// SPDX-License-Identifier: MIT
/* Regions: memory of a backend, mapped into the process. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <syslog.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/export.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/refcount.h"
#include "base/sized.h"
#include "base/thread.h"
#include "ctx.h"
#include "cuda/counter.h"
#include "format/desc-list.h"
#include "format/layout.h"
#include "format/region-name.h"
#include "log.h"
#include "region/mappings.h"
#include "region/region.h"

#define CREATE_FLAGS \
	(TSHARE_DRAFT | TSHARE_REPLACE | TSHARE_DMA32 | TSHARE_CONTIGUOUS | TSHARE_NODE)
#define DEFAULT_MODE 0600

/* Mapping */

static struct content content_of(const struct tshare_region *region)
{
	return (struct content){
		.prot = region->readonly ? PROT_READ : PROT_READ | PROT_WRITE,
		.flags = MAP_SHARED,
		.fd = region->handle.fd,
		.offset = region->handle.map_offset,
	};
}

static int fail_map(const struct tshare_region *region)
{
	return fail(-errno, "size: mmap of %" PRIu64 " bytes: %s", region->handle.size,
		    strerror(errno));
}

/*
 * Maps a region, aligned if it is large enough for huge pages: the kernel aligns
 * neither dma-bufs nor shared memory.
 */
static int place_region(struct tshare_region *region, const struct content *content)
{
	const size_t alignment = region->ctx->huge_page_size;
	const uint64_t size = region->handle.size;
	void *data;

	if (size > SIZE_MAX / 2)
		return fail(-ENOMEM, "size: no room for %" PRIu64 " bytes", size);
	if (alignment > region->ctx->page_size && size >= alignment)
		data = map_aligned(size, alignment, content);
	else
		data = map_content(NULL, size, content, 0);
	if (data == MAP_FAILED)
		return fail_map(region);
	region->data = data;
	return mappings_add(region);
}

static int map_region(struct tshare_region *region)
{
	const struct content content = content_of(region);

	return place_region(region, &content);
}

static void unmap_region(struct tshare_region *region)
{
	if (!region->data)
		return;
	mappings_remove(region);
	unmap_aligned(region->data, region->handle.size, region->ctx->huge_page_size);
}

/* Lifetime */

static struct tshare_region *region_new(struct tshare_ctx *ctx)
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
	generation_init(region);
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

	if (!region || !refcount_put(&region->refs))
		return NULL;
	cuda_counter_release(region);
	generation_release(region);
	cuda_imports_release(region);
	registration_release(region);
	unmap_region(region);
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

/* Creation */

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
		return place_region(region, &content_none);
	region->readonly = (fcntl(*dmabuf, F_GETFL) & O_ACCMODE) == O_RDONLY;
	content = content_of(region);
	content.fd = *dmabuf;
	err = place_region(region, &content);
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
	const struct content content = content_of(region);
	const uint64_t size = region->handle.size;
	void *data;
	int err;

	data = map_content(region->data, size, &content, MAP_FIXED);
	if (data == MAP_FAILED && errno == EAGAIN && !munlock(region->data, size))
		data = map_content(region->data, size, &content, MAP_FIXED);
	if (data != MAP_FAILED)
		return 0;
	err = fail_map(region);
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
	err = place_new(region, request->dmabuf);
	if (!err)
		err = region->backend->create(ctx->session, request, handle);
	if (err || request->dmabuf)
		return err;
	err = map_new(region);
	if (err && *handle->name)
		region->backend->unlink_region(ctx->session, handle->fd, handle->id, handle->name);
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
	log_message(ctx, LOG_DEBUG, "%s: created '%s', %" PRIu64 " bytes", ctx->backend->name,
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

/* Names */

TSHARE_EXPORT
int tshare_region_finish(struct tshare_region *region, uint32_t flags)
{
	void *session = ctx_session(region->ctx, region->backend);

	if (flags & ~TSHARE_REPLACE)
		return fail(-EINVAL, "flags: unknown flag in %#" PRIx32, flags);
	return region->backend->finish(session, &region->handle,
				       region->replaces || flags & TSHARE_REPLACE);
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

/* Finding */

static int check_open_flags(uint32_t flags)
{
	if (flags & ~TSHARE_READONLY)
		return fail(-EINVAL, "flags: unknown flag in %#" PRIx32, flags);
	return 0;
}

static int check_descs(struct desc_list *list, const struct tshare_region *region)
{
	int err = desc_list_check(list, region->handle.size, "tensors");

	return err ? fail_within(-EPROTO, "region: damaged descriptors: ") : 0;
}

/* Takes over the descriptors that the backend has read already, if any. */
static int adopt_descs(struct tshare_region *region)
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

/* Maps a region that a backend has found, and stores it. */
static int finish_open(struct tshare_region *new, uint32_t flags, struct tshare_region **region)
{
	int err;

	new->readonly = new->handle.readonly || (flags & TSHARE_READONLY);
	err = adopt_descs(new);
	if (!err)
		err = map_region(new);
	if (err) {
		tshare_region_unref(new);
		return err;
	}
	*region = new;
	return 0;
}

static int read_open_options(const struct tshare_ctx *ctx,
			     const struct tshare_open_options *options, struct backend_find *how)
{
	struct tshare_open_options known = { 0 };
	int err;

	if (options) {
		err = sized_read(options, "options.", SIZED_UPTO(struct tshare_open_options, flags),
				 &known, sizeof(known));
		if (err)
			return err;
	}
	if (known.flags & ~TSHARE_READONLY)
		return fail(-EINVAL, "options.flags: unknown flag in %#" PRIx32, known.flags);
	if (known.reserved)
		return fail(-EINVAL, "options.reserved: is not 0");
	how->readonly = known.flags & TSHARE_READONLY;
	how->timeout_ns = known.timeout_ns;
	/* The name never leads to another backend's region. */
	if (known.other_than && known.other_than->backend == ctx->backend)
		how->other_than = known.other_than->handle.id;
	return 0;
}

TSHARE_EXPORT
int tshare_region_open(struct tshare_ctx *ctx, const char *name,
		       const struct tshare_open_options *options, struct tshare_region **region)
{
	struct backend_find how = { 0 };
	char checked[TSHARE_NAME_LEN];
	struct tshare_region *new;
	int err;

	no_cancellation();
	err = read_open_options(ctx, options, &how);
	if (!err)
		err = region_name_copy(checked, name);
	if (err)
		return err;
	new = region_new(ctx);
	if (!new)
		return -ENOMEM;
	ctx_sweep(ctx, false);
	err = ctx->backend->lookup(ctx->session, checked, &how, &new->handle);
	ctx_fail_name(ctx, err, checked);
	if (err) {
		tshare_region_unref(new);
		return err;
	}
	return finish_open(new, how.readonly ? TSHARE_READONLY : 0, region);
}

/* Asks the context's backend first, then the others. */
static int import_anywhere(struct tshare_region *region, int fd, bool readonly)
{
	const struct backend_ops *own = region->ctx->backend;
	size_t i;
	int err;

	err = own->import(region->ctx->session, fd, readonly, &region->handle);
	for (i = 0; err == -EINVAL && backends[i]; i++) {
		if (backends[i] == own)
			continue;
		region->backend = backends[i];
		err = region->backend->import(NULL, fd, readonly, &region->handle);
	}
	return err;
}

/* Another thread may close or replace @fd, so it is duplicated once and then left alone. */
static int import_duplicate(struct tshare_region *region, int fd, bool readonly)
{
	_cleanup_close_ int own = fd_duplicate(fd);
	int err;

	if (own < 0)
		return fail(-errno, "fd: %d: %s", fd, strerror(errno));
	err = import_anywhere(region, own, readonly);
	if (!err)
		(void)no_cleanup(own); /* now the region's */
	return err == -EINVAL ? fail(err, "fd: %d is not a region's", fd) : err;
}

TSHARE_EXPORT
int tshare_region_import(struct tshare_ctx *ctx, int fd, uint32_t flags,
			 struct tshare_region **region)
{
	struct tshare_region *new;
	int err;

	err = check_open_flags(flags);
	if (err)
		return err;
	new = region_new(ctx);
	if (!new)
		return -ENOMEM;
	err = import_duplicate(new, fd, flags & TSHARE_READONLY);
	if (err) {
		tshare_region_unref(new);
		return err;
	}
	return finish_open(new, flags, region);
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

	err = check_open_flags(flags);
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
		err = region->backend->info(session, &region->handle, &known);
	if (!err)
		sized_fill(info, &known, sizeof(known));
	return err;
}
