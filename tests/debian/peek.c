// SPDX-License-Identifier: MIT
/*
 * For tests/debian/containers.sh: prints the text at the start of the region whose descriptor is 3,
 * after it has written that of the argument, if there is one.
 */
#include <err.h>
#include <stdio.h>
#include <string.h>

#include <tshare.h>

int main(int argc, char **argv)
{
	struct tshare_region *region;
	struct tshare_ctx *ctx;
	char *text;

	if (tshare_ctx_new(NULL, &ctx) || tshare_region_import(ctx, 3, 0, &region))
		errx(1, "%s", tshare_error_get());
	text = tshare_region_get_data(region);
	if (argc > 1)
		strcpy(text, argv[1]);
	printf("%s: %s\n", tshare_region_get_backend(region), text);
	tshare_region_unref(region);
	tshare_ctx_unref(ctx);
	return 0;
}
