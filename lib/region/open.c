// SPDX-License-Identifier: MIT
/* Regions that are there: opened by name, or imported as a descriptor. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/export.h"
#include "base/fd.h"
#include "base/sized.h"
#include "base/thread.h"
#include "ctx.h"
#include "format/region-name.h"
#include "region/descs.h"
#include "region/object.h"
#include "region/place.h"
#include "region/region.h"

/* Maps a region that a backend has found, and stores it. */
static int finish_open(struct tshare_region *new, uint32_t flags, struct tshare_region **region)
{
	int err;

	new->readonly = new->handle.readonly || (flags & TSHARE_READONLY);
	err = region_adopt_descs(new);
	if (!err)
		err = region_map(new);
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
	if (known.check_ns < 0)
		return fail(-EINVAL, "options.check_ns: is negative");
	how->readonly = known.flags & TSHARE_READONLY;
	how->timeout_ns = known.timeout_ns;
	how->check = known.check;
	how->check_ns = known.check ? known.check_ns : 0;
	how->data = known.data;
	/* The name never leads to another backend's region. */
	if (known.other_than && known.other_than->backend == ctx->backend)
		how->other_than = known.other_than->handle.id;
	return 0;
}

int region_open(struct tshare_ctx *ctx, const char *name, const struct tshare_open_options *options,
		uint64_t other_than, struct tshare_region **region)
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
	if (other_than)
		how.other_than = other_than;
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

TSHARE_EXPORT
int tshare_region_open(struct tshare_ctx *ctx, const char *name,
		       const struct tshare_open_options *options, struct tshare_region **region)
{
	return region_open(ctx, name, options, 0, region);
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

	err = region_check_flags(flags);
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
