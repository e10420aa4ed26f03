// SPDX-License-Identifier: MIT
/* tshare wait: sleeps until a region is published. */
#include <inttypes.h>

#include "cli.h"
#include "number.h"

struct request {
	uint64_t generation;
	bool has_generation; /* false: waits for the next one */
	int64_t timeout_ns;
};

static int wait_for_generation(struct tshare_region *region, void *data)
{
	const struct request *request = data;
	uint64_t generation;
	int err;

	err = tshare_region_get_generation(region, &generation);
	if (!err && (!request->has_generation || generation < request->generation)) {
		uint64_t seen = request->has_generation ? request->generation - 1 : generation;

		err = tshare_region_wait(region, seen, request->timeout_ns, 0, &generation);
	}
	if (err)
		return failure_of_library(err);
	printf("%" PRIu64 "\n", generation);
	return EXIT_OK;
}

static const struct option options[] = {
	{ "generation", required_argument, NULL, 'g' },
	{ "timeout", required_argument, NULL, 't' },
	{ 0 },
};

static int take(const struct verb *verb, int option, void *data)
{
	struct request *request = data;
	char *end;

	if (option == 't') {
		if (!parse_seconds(optarg, &request->timeout_ns))
			return usage_error(verb, "--timeout: '%s' is not a number of seconds",
					   optarg);
		return EXIT_OK;
	}
	if (!parse_number(optarg, 10, &request->generation, &end) || *end)
		return usage_error(verb, "--generation: '%s' is not a generation", optarg);
	request->has_generation = true;
	return EXIT_OK;
}

static int run(const struct verb *verb, int argc, char **argv)
{
	struct request request = { .timeout_ns = -1 };
	int status;

	if (!parse_options(verb, argc, argv, &request, &status))
		return status;
	if (argc - optind != 1)
		return usage_error(verb, "needs one NAME");
	return use_region(argv[optind], open_readonly, wait_for_generation, &request);
}

const struct verb verb_wait = {
	.name = "wait",
	.arguments = "[OPTION...] NAME",
	.summary = "sleep until a region is published, and print its generation",
	.help = "  -g, --generation N     until this one is reached (default: the next one)\n"
		"  -t, --timeout SECONDS  fail after that time (default: wait for ever)\n",
	.options = options,
	.take = take,
	.run = run,
};
