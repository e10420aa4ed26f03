// SPDX-License-Identifier: MIT
/* Opening a context and a region for the verbs. */
#include <errno.h>

#include "cli.h"
#include "nearest.h"

struct tshare_ctx *open_session(void)
{
	struct tshare_ctx *ctx;
	int err = tshare_ctx_new(NULL, &ctx);

	if (!err)
		return ctx;
	failure_of_library(err);
	return NULL;
}

static int note_name(const struct tshare_region_info *info, void *nearest)
{
	nearest_try(nearest, info->name);
	return 0;
}

int failure_of_name(struct tshare_ctx *ctx, const char *name, int err)
{
	int status = failure_of_library(err);
	struct nearest nearest;

	if (err != -ENOENT)
		return status;
	nearest_init(&nearest, name);
	tshare_ctx_list(ctx, note_name, &nearest);
	nearest_suggest(&nearest, "");
	return EXIT_MISSING;
}

int open_readonly(struct tshare_ctx *ctx, const char *name, struct tshare_region **region)
{
	const struct tshare_open_options options = {
		.size = sizeof(options),
		.flags = TSHARE_READONLY,
	};

	return tshare_region_open(ctx, name, &options, region);
}

int use_region(const char *name,
	       int (*open)(struct tshare_ctx *ctx, const char *name, struct tshare_region **region),
	       int (*use)(struct tshare_region *region, void *request), void *request)
{
	struct tshare_region *region;
	struct tshare_ctx *ctx;
	int err, status;

	ctx = open_session();
	if (!ctx)
		return EXIT_FAILED;
	err = open(ctx, name, &region);
	if (err) {
		status = failure_of_name(ctx, name, err);
	} else {
		status = use(region, request);
		tshare_region_unref(region);
	}
	tshare_ctx_unref(ctx);
	return status;
}
