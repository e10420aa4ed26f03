// SPDX-License-Identifier: MIT
/*
 * How a CUDA device reaches a region's memory. There are three paths. Whether a path works
 * depends on the device, the driver and the kernel, so an import tries it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/export.h"
#include "base/sized.h"
#include "cuda/driver.h"
#include "cuda/options.h"
#include "cuda/registration.h"
#include "region/object.h"
#include "region/region.h"

/* The published driver keeps the size of an imported dma-buf in 32 bits. */
#define DMABUF_LIMIT (1ULL << 32)

struct cuda_import {
	SLIST_ENTRY(cuda_import) entry;
	struct tshare_cuda_info info;
	bool searched; /* TSHARE_CUDA_ANY has led to it */

	uint64_t memory_id; /* of the dma-buf, or of the region's registration */

	/* Of a dma-buf: */
	struct cuda_dmabuf dmabuf;
	bool retained; /* the device's primary context */
};

/*
 * The paths. Each is tried in a scope of the device, and returns 0, the driver's result, or
 * a negative errno if it didn't ask the driver.
 */

static int try_dmabuf(struct tshare_region *region, struct cuda_import *import,
		      struct cuda_scope *scope)
{
	const struct backend_region *handle = &region->handle;
	int result;

	if (!region->backend->has_dmabufs)
		return -EOPNOTSUPP;
	/* The driver maps every dma-buf for writing. */
	if (region->readonly)
		return -EACCES;
	if (handle->size >= DMABUF_LIMIT - handle->map_offset)
		return -EFBIG;
	result = cuda_import_dmabuf(handle->fd, handle->map_offset, handle->size, &import->dmabuf);
	if (result)
		return result;
	import->info.address = import->dmabuf.address;
	import->info.context_created = scope->created;
	import->memory_id = cuda_memory_id(import->dmabuf.address);
	import->retained = cuda_keep_context(scope);
	return 0;
}

static int try_registered(struct tshare_region *region, struct cuda_import *import,
			  struct cuda_scope *scope)
{
	struct registration *registration = &region->registration;
	bool was_registered = registration_is_valid(region), created;
	int result;

	result = registration_make(region, scope->device, &created);
	if (!result)
		result = cuda_get_address(region->data, region->handle.size, &import->info.address);
	if (result) {
		registration_drop(region);
		return result;
	}
	/* A new registration keeps the context that the scope has created. */
	import->info.context_created = scope->created && !was_registered;
	import->memory_id = registration->memory.id;
	registration->imported = true;
	return 0;
}

static int try_pageable(struct tshare_region *region, struct cuda_import *import,
			struct cuda_scope *scope)
{
	if (!cuda_reads_pageable_memory(scope->device))
		return -EOPNOTSUPP;
	import->info.address = (uintptr_t)region->data;
	return 0;
}

static const struct {
	const char *name;
	int (*try)(struct tshare_region *region, struct cuda_import *import,
		   struct cuda_scope *scope);
} paths[TSHARE_CUDA_PATHS] = {
	[TSHARE_CUDA_DMABUF] = { "dma-buf", try_dmabuf },
	[TSHARE_CUDA_REGISTERED] = { "registered", try_registered },
	[TSHARE_CUDA_PAGEABLE] = { "pageable", try_pageable },
};

_Static_assert(TSHARE_CUDA_PATHS <= TSHARE_CUDA_PATH_LIMIT, "each has a result");

/* Failures */

static const char *reason_for(uint32_t path, int result)
{
	if (result > 0)
		return cuda_result_name(result);
	switch (result) {
	case -EACCES:
		return "CUDA imports no read-only dma-buf";
	case -EFBIG:
		return path == TSHARE_CUDA_DMABUF ? "CUDA imports less than 4 GiB" :
						    "the pieces have no contiguous addresses";
	default:
		return path == TSHARE_CUDA_DMABUF ? "shared memory has none" :
		       path == TSHARE_CUDA_REGISTERED ?
						    "the device can't register read-only memory" :
						    "the device can't read pageable memory";
	}
}

/* The errno of the failure that the caller can do most about. */
static int errno_for(const int32_t results[TSHARE_CUDA_PATH_LIMIT])
{
	static const int by_rank[] = { -EOPNOTSUPP, -EIO, -ENOMEM, -EBUSY };
	size_t rank, worst = 0;
	uint32_t path;
	int err;

	for (path = TSHARE_CUDA_DMABUF; path < TSHARE_CUDA_PATHS; path++) {
		err = results[path] > 0 ? cuda_errno(results[path]) : 0;
		/* Drivers differ in how they refuse what they don't support. */
		if (path == TSHARE_CUDA_DMABUF && err == -EIO)
			err = -EOPNOTSUPP;
		for (rank = worst + 1; rank < sizeof(by_rank) / sizeof(by_rank[0]); rank++)
			if (by_rank[rank] == err)
				worst = rank;
	}
	return by_rank[worst];
}

static int fail_import(const struct tshare_cuda_info *info)
{
	char text[384] = "";
	uint32_t path;
	size_t length;

	for (path = TSHARE_CUDA_DMABUF; path < TSHARE_CUDA_PATHS; path++) {
		length = strlen(text);
		if (info->results[path])
			snprintf(text + length, sizeof(text) - length, "%s%s: %s",
				 length ? "; " : "", paths[path].name,
				 reason_for(path, info->results[path]));
	}
	return fail(errno_for(info->results), "region: CUDA device %" PRId32 " can't reach it: %s",
		    info->device, text);
}

/* Imports */

/* A reset of the device, or the end of the caller's context, ends an import. */
static bool is_valid(const struct tshare_region *region, const struct cuda_import *import)
{
	switch (import->info.path) {
	case TSHARE_CUDA_DMABUF:
		return cuda_memory_is(import->info.address, import->memory_id);
	case TSHARE_CUDA_REGISTERED:
		return registration_is_valid(region) &&
		       region->registration.memory.id == import->memory_id;
	default:
		return true;
	}
}

static void undo(const struct tshare_region *region, const struct cuda_import *import)
{
	struct cuda_scope scope;

	if (import->info.path != TSHARE_CUDA_DMABUF || !is_valid(region, import))
		return;
	if (!cuda_enter_to_undo(&scope, import->info.device)) {
		cuda_release_dmabuf(&import->dmabuf);
		cuda_leave(&scope);
	}
	if (import->retained)
		cuda_release(import->info.device);
}

/* Before the region is unmapped. */
static void cuda_imports_release(struct tshare_region *region)
{
	struct cuda_import *import;

	while ((import = SLIST_FIRST(&region->registration.imports))) {
		SLIST_REMOVE_HEAD(&region->registration.imports, entry);
		/* In a child of fork() it is the parent's. */
		if (!cuda_is_forked())
			undo(region, import);
		free(import);
	}
	region->registration.imported = false;
}

static struct cuda_import *find_import(struct tshare_region *region, uint32_t path, int device)
{
	struct cuda_import *import;

	SLIST_FOREACH(import, &region->registration.imports, entry)
	if (import->info.device == device &&
	    (path == TSHARE_CUDA_ANY ? import->searched : import->info.path == path))
		return import;
	return NULL;
}

static int search(struct tshare_region *region, struct cuda_import *import, uint32_t wanted,
		  struct cuda_scope *scope)
{
	struct tshare_cuda_info *info = &import->info;
	uint32_t path;

	for (path = TSHARE_CUDA_DMABUF; path < TSHARE_CUDA_PATHS; path++) {
		if (wanted != TSHARE_CUDA_ANY && wanted != path)
			continue;
		info->results[path] = paths[path].try(region, import, scope);
		if (!info->results[path]) {
			info->path = path;
			return 0;
		}
	}
	return fail_import(info);
}

static int make_import(struct tshare_region *region, uint32_t path, int device, bool searched,
		       struct tshare_cuda_info *info)
{
	_cleanup_free_ struct cuda_import *new = calloc(1, sizeof(*new));
	struct cuda_scope scope;
	int err;

	if (!new)
		return fail(-ENOMEM, "region: out of memory");
	new->searched = searched;
	new->info.device = device;
	new->info.driver_version = cuda_driver_version();
	new->info.readonly = region->readonly;
	err = cuda_enter(&scope, device);
	if (err)
		return cuda_fail(err, "CUDA: the device's context");
	err = search(region, new, path, &scope);
	cuda_leave(&scope);
	if (err)
		return err;
	region->release[REGION_CUDA_IMPORTS] = cuda_imports_release;
	SLIST_INSERT_HEAD(&region->registration.imports, new, entry);
	*info = new->info;
	(void)no_cleanup(new); /* now the region's */
	return 0;
}

/* With the region's registration locked. */
static int import_region(struct tshare_region *region, uint32_t path, int device,
			 struct tshare_cuda_info *info)
{
	const bool searched = path == TSHARE_CUDA_ANY;
	struct cuda_import *import;

	/* A pinned region is registered already: another path would only cost more. */
	if (searched && region->registration.pins)
		path = TSHARE_CUDA_REGISTERED;
	import = find_import(region, path, device);
	if (import && is_valid(region, import)) {
		*info = import->info;
		info->context_created = false;
		return 0;
	}
	if (import) {
		SLIST_REMOVE(&region->registration.imports, import, cuda_import, entry);
		free(import);
	}
	return make_import(region, path, device, searched, info);
}

TSHARE_EXPORT
int tshare_cuda_import(struct tshare_region *region, const struct tshare_cuda_options *options,
		       struct tshare_cuda_info *info)
{
	struct tshare_cuda_options known;
	struct tshare_cuda_info found;
	int device, err;

	err = sized_check(info, "info.", SIZED_UPTO(struct tshare_cuda_info, readonly));
	if (!err && region)
		err = region_check_on_host(region);
	if (!err)
		err = cuda_options_read(options, &known);
	if (!err)
		err = cuda_options_choose_device(&known, &device);
	if (err)
		return err;
	if (region) {
		registration_lock(region);
		err = import_region(region, known.path, device, &found);
		registration_unlock(region);
	} else {
		found = (struct tshare_cuda_info){
			.device = device,
			.driver_version = cuda_driver_version(),
		};
	}
	if (!err)
		sized_fill(info, &found, sizeof(found));
	return err;
}
