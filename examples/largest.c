// SPDX-License-Identifier: MIT
/*
 * Finds the largest physically contiguous region that this machine can allocate,
 * by creating larger and larger ones.
 */
#include <err.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include <tshare.h>

#define MIB (1ULL << 20)

static bool fits(struct tshare_ctx *ctx, uint64_t size)
{
	struct tshare_options options = { .size = sizeof(options) };
	struct tshare_region *region;
	int error;

	options.flags = TSHARE_CONTIGUOUS;
	error = tshare_region_create(ctx, NULL, size, NULL, 0, &options, &region);
	if (error == -ENOMEM || error == -EDQUOT)
		return false;
	if (error)
		errx(1, "%s", tshare_error_get());
	tshare_region_unref(region);
	return true;
}

int main(void)
{
	uint64_t largest = 0, too_large = MIB;
	struct tshare_ctx *ctx;

	if (tshare_ctx_new(NULL, &ctx) < 0)
		errx(1, "%s", tshare_error_get());
	while (fits(ctx, too_large)) {
		largest = too_large;
		too_large *= 2;
	}
	/* To an eighth of it, no closer: each try reclaims and compacts memory. */
	while (too_large - largest > largest / 8 && largest) {
		uint64_t middle = (largest + too_large) / 2;

		if (fits(ctx, middle))
			largest = middle;
		else
			too_large = middle;
	}
	printf("C: the largest contiguous region it could get: %llu MiB\n",
	       (unsigned long long)(largest / MIB));
	tshare_ctx_unref(ctx);
	return largest ? 0 : 1;
}
