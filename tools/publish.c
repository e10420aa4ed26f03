// SPDX-License-Identifier: MIT
/*
 * tshare publish: adds one to a region's generation, and wakes its waiters. The command doesn't
 * become a publisher, so its end doesn't end any wait.
 */
#include <inttypes.h>

#include "cli.h"

static int open_writable(struct tshare_ctx *ctx, const char *name, struct tshare_region **region)
{
	return tshare_region_open(ctx, name, NULL, region);
}

static int publish(struct tshare_region *region, void *unused)
{
	uint64_t generation;
	int err;

	(void)unused;
	err = tshare_region_publish_once(region, &generation);
	if (err)
		return failure_of_library(err);
	printf("%" PRIu64 "\n", generation);
	return EXIT_OK;
}

static int run(const struct verb *verb, int argc, char **argv)
{
	int status;

	if (!parse_options(verb, argc, argv, NULL, &status))
		return status;
	if (argc - optind != 1)
		return usage_error(verb, "needs one NAME");
	return use_region(argv[optind], open_writable, publish, NULL);
}

const struct verb verb_publish = {
	.name = "publish",
	.arguments = "NAME",
	.summary = "add one to a region's generation, print it, wake the waiters",
	.help = "",
	.run = run,
};
