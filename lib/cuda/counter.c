// SPDX-License-Identifier: MIT
#include <errno.h>

#include "base/error.h"
#include "base/export.h"
#include "base/sized.h"
#include "ctx.h"
#include "cuda/driver.h"
#include "cuda/options.h"
#include "cuda/registered.h"
#include "cuda/registration.h"
#include "generation/counter.h"
#include "region/object.h"

/* The counter's page, the only one of its file that is mapped. */
static char *page_of(const struct tshare_region *region, const struct counter *counter)
{
	return (char *)((uintptr_t)counter & ~(uintptr_t)(region->ctx->page_size - 1));
}

static void cuda_counter_release(struct tshare_region *region)
{
	struct registered *memory = &region->registration.counter;

	/* In a child of fork() it is the parent's. */
	if (memory->made && !cuda_is_forked())
		registered_drop(memory, page_of(region, atomic_load(&region->generation.counter)),
				region->ctx->page_size);
}

/* In a scope: registers the page if it isn't registered, and finds its device address. */
static int import_page(struct registered *memory, char *page, uint64_t size,
		       struct cuda_scope *scope, struct tshare_cuda_info *info)
{
	bool valid = registered_is_valid(memory, page);
	int result = 0;

	if (!valid)
		result = registered_make(memory, page, size, false, scope);
	if (!result)
		result = cuda_get_address(page, size, &info->address);
	if (result && !valid)
		registered_drop(memory, page, size);
	/* A new registration keeps the context that the scope has created. */
	info->context_created = scope->created && !valid;
	return result;
}

static int import_counter(struct tshare_region *region, const struct counter *counter,
			  struct tshare_cuda_info *info)
{
	char *page = page_of(region, counter);
	struct cuda_scope scope;
	int result;

	result = cuda_enter(&scope, info->device);
	if (result)
		return cuda_fail(result, "CUDA: the device's context");
	region->release[REGION_CUDA_COUNTER] = cuda_counter_release;
	result = import_page(&region->registration.counter, page, region->ctx->page_size, &scope,
			     info);
	cuda_leave(&scope);
	if (result)
		return cuda_fail(result, "region: CUDA can't register its counter");
	info->address += (const char *)counter - page;
	return 0;
}

TSHARE_EXPORT
int tshare_cuda_import_counter(struct tshare_region *region,
			       const struct tshare_cuda_options *options,
			       struct tshare_cuda_info *info)
{
	struct tshare_cuda_info found = { .path = TSHARE_CUDA_REGISTERED };
	struct tshare_cuda_options known;
	struct counter *counter;
	int err;

	if (region->readonly)
		return fail(-EACCES, "region: is read-only, and so is its counter");
	err = sized_check(info, "info.", SIZED_UPTO(struct tshare_cuda_info, readonly));
	if (!err)
		err = cuda_options_read_device(options, &known);
	if (!err)
		err = cuda_options_choose_device(&known, &found.device);
	if (err)
		return err;
	counter = counter_get(region, &err);
	if (!counter)
		return err;
	found.driver_version = cuda_driver_version();
	registration_lock(region);
	err = import_counter(region, counter, &found);
	registration_unlock(region);
	if (!err)
		sized_fill(info, &found, sizeof(found));
	return err;
}
