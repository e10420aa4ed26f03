// SPDX-License-Identifier: MIT
/* usage: publisher NAME: becomes a publisher of the region, and exits. */
#include <stdio.h>

#include <tshare.h>

int main(int argc, char **argv)
{
	struct tshare_region *region;
	struct tshare_ctx *ctx;
	int err;

	if (argc != 2)
		return 2;
	err = tshare_ctx_new(NULL, &ctx);
	if (!err) {
		err = tshare_region_open(ctx, argv[1], NULL, &region);
		tshare_ctx_unref(ctx);
	}
	if (!err) {
		err = tshare_region_publish(region, NULL);
		tshare_region_unref(region);
	}
	if (err)
		fprintf(stderr, "%s\n", tshare_error_get());
	return err ? 1 : 0;
}
