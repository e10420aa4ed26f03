// SPDX-License-Identifier: MIT
/* tshare pool: shows and resizes the pools of the kernel module, through sysfs. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "number.h"
#include "table.h"

#define FOLDERS "/sys/class/misc/tshare/pool_node"

/* A pool, in bytes. */
struct pool {
	int32_t node;
	uint64_t size;
	uint64_t target;
	uint64_t free;
	uint64_t zeroed;
};

struct pools {
	struct pool *pools;
	size_t count;
};

static bool read_attribute(int32_t node, const char *name, uint64_t *value)
{
	char path[128];
	FILE *file;
	bool done;

	snprintf(path, sizeof(path), FOLDERS "%" PRId32 "/%s", node, name);
	file = fopen(path, "re");
	done = file && fscanf(file, "%" SCNu64, value) == 1;
	if (file)
		fclose(file);
	return done;
}

static bool read_pool(int32_t node, struct pool *pool)
{
	pool->node = node;
	return read_attribute(node, "size", &pool->size) &&
	       read_attribute(node, "target", &pool->target) &&
	       read_attribute(node, "free", &pool->free) &&
	       read_attribute(node, "zeroed", &pool->zeroed);
}

static int compare_nodes(const void *a, const void *b)
{
	const struct pool *left = a, *right = b;

	return (left->node > right->node) - (left->node < right->node);
}

/* Reads all pools. Returns EXIT_OK, or EXIT_FAILED after printing the error. */
static int read_pools(struct pools *pools)
{
	glob_t found;
	bool denied = false;
	int32_t node;
	size_t i;

	*pools = (struct pools){ 0 };
	if (glob(FOLDERS "*", 0, NULL, &found))
		return failure("%s: the kernel module has no pool, or is not loaded",
			       strerror(EOPNOTSUPP));
	pools->pools = calloc(found.gl_pathc, sizeof(*pools->pools));
	for (i = 0; pools->pools && i < found.gl_pathc; i++) {
		if (!parse_node(found.gl_pathv[i] + strlen(FOLDERS), &node))
			continue;
		if (read_pool(node, &pools->pools[pools->count]))
			pools->count++;
		else
			denied |= errno == EACCES;
	}
	globfree(&found);
	if (!pools->pools)
		return failure("out of memory");
	if (denied) {
		free(pools->pools);
		return failure("permission denied (run it as root)");
	}
	qsort(pools->pools, pools->count, sizeof(*pools->pools), compare_nodes);
	return EXIT_OK;
}

static void size_cell(struct table *table, uint64_t size, bool exact)
{
	char text[BYTES_LEN];

	format_bytes(text, size, exact);
	table_cell(table, "%s", text);
}

static int print_text(const struct pools *pools, bool exact)
{
	static const struct table_column columns[] = {
		{ "NODE", .right = true }, { "SIZE", .right = true },	{ "TARGET", .right = true },
		{ "FREE", .right = true }, { "ZEROED", .right = true },
	};
	struct table table;
	size_t i;

	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (i = 0; i < pools->count; i++) {
		const struct pool *pool = &pools->pools[i];

		table_row(&table);
		table_cell(&table, "%" PRId32, pool->node);
		size_cell(&table, pool->size, exact);
		size_cell(&table, pool->target, exact);
		size_cell(&table, pool->free, exact);
		size_cell(&table, pool->zeroed, exact);
	}
	return table_print(&table);
}

static int print_json(const struct pools *pools)
{
	size_t i;

	json_open(NULL, '[');
	for (i = 0; i < pools->count; i++) {
		const struct pool *pool = &pools->pools[i];

		json_open(NULL, '{');
		json_int("node", pool->node);
		json_uint("size", pool->size);
		json_uint("target", pool->target);
		json_uint("free", pool->free);
		json_uint("zeroed", pool->zeroed);
		json_close('}');
	}
	json_close(']');
	return EXIT_OK;
}

/* The default of --node: the only pool's node; -1 if there are several. */
static int32_t only_node(const struct pools *pools)
{
	return pools->count == 1 ? pools->pools[0].node : -1;
}

/* Writes the size. Returns 0 or a negative errno. */
static int write_size(int32_t node, uint64_t size)
{
	char path[128], text[32];
	int fd, len, err;

	snprintf(path, sizeof(path), FOLDERS "%" PRId32 "/size", node);
	len = snprintf(text, sizeof(text), "%" PRIu64 "\n", size);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = write(fd, text, len) < 0 ? -errno : 0;
	close(fd);
	return err;
}

static int fail_set(int err, int32_t node, uint64_t size)
{
	struct pool pool;

	switch (err) {
	case -ENOENT:
		return failure("node %" PRId32 " has no pool (see 'tshare pool')", node);
	case -EACCES:
	case -EPERM:
		return failure("permission denied (run it as root)");
	case -EDQUOT:
		return failure("%" PRIu64 " bytes are more than all regions together may have "
			       "(see 'tshare info', and the module's parameter max_mib)",
			       size);
	case -ENOMEM:
	case -EINTR:
		if (read_pool(node, &pool))
			return failure("node %" PRId32 " got %" PRIu64 " of %" PRIu64 " bytes: %s",
				       node, pool.size, size,
				       err == -EINTR ? "interrupted" : "no more contiguous memory");
		/* fall through */
	default:
		return failure("node %" PRId32 ": %s", node, strerror(-err));
	}
}

static int set(int32_t node, uint64_t size, bool exact)
{
	char has[BYTES_LEN], goes[BYTES_LEN];
	struct pool pool;
	int err = write_size(node, size);

	if (err)
		return fail_set(err, node, size);
	if (!read_pool(node, &pool))
		return failure("node %" PRId32 ": %s", node, strerror(errno));
	format_bytes(has, pool.size, exact);
	printf("node %" PRId32 ": %s", node, has);
	if (pool.size > pool.target) {
		format_bytes(goes, pool.size - pool.target, exact);
		printf(", of which %s go when their regions do", goes);
	}
	printf("\n");
	return EXIT_OK;
}

/* Whether regions come from the module; prints an error if not. */
static bool have_module(void)
{
	struct tshare_ctx *ctx = open_session();
	bool kmod;

	if (!ctx)
		return false;
	kmod = !strcmp(tshare_ctx_get_backend(ctx), "kmod");
	tshare_ctx_unref(ctx);
	if (!kmod)
		failure("%s: shared memory has no pool, only the kernel module has",
			strerror(EOPNOTSUPP));
	return kmod;
}

struct request {
	bool json;
	bool exact;   /* sizes are bytes */
	int32_t node; /* -1: not given, see only_node() */
};

static int show(const struct request *request)
{
	struct pools pools;
	int status;

	if (!have_module())
		return EXIT_FAILED;
	status = read_pools(&pools);
	if (status)
		return status;
	status = request->json ? print_json(&pools) : print_text(&pools, request->exact);
	free(pools.pools);
	return status;
}

static int change(const struct verb *verb, const struct request *request, const char *text)
{
	int32_t node = request->node;
	struct pools pools;
	uint64_t size;
	int status;

	if (!parse_bytes(text, &size))
		return usage_error(verb, "'%s' is not a number of bytes (K, M, G or T may follow)",
				   text);
	if (!have_module())
		return EXIT_FAILED;
	if (node < 0) {
		status = read_pools(&pools);
		if (status)
			return status;
		node = only_node(&pools);
		free(pools.pools);
		if (node < 0)
			return failure("the machine has several NUMA nodes: --node is needed");
	}
	return set(node, size, request->exact);
}

enum { OPTION_NODE = OPTION_LONG };

static const struct option options[] = {
	{ "json", no_argument, NULL, 'j' },
	{ "bytes", no_argument, NULL, 'b' },
	{ "node", required_argument, NULL, OPTION_NODE },
	{ 0 },
};

static int take(const struct verb *verb, int option, void *data)
{
	struct request *request = data;

	if (option == 'j')
		request->json = true;
	else if (option == 'b')
		request->exact = true;
	else if (!parse_node(optarg, &request->node))
		return usage_error(verb, "--node: '%s' is not the number of a NUMA node", optarg);
	return EXIT_OK;
}

static int run(const struct verb *verb, int argc, char **argv)
{
	struct request request = { .node = -1 };
	int status;

	if (!parse_options(verb, argc, argv, &request, &status))
		return status;
	argv += optind;
	if (!argv[0])
		return request.node < 0 ? show(&request) : usage_error(verb, "--node is for 'set'");
	if (strcmp(argv[0], "set"))
		return usage_error(verb, "unexpected argument '%s'", argv[0]);
	if (request.json)
		return usage_error(verb, "--json is not for 'set'");
	if (!argv[1])
		return usage_error(verb, "needs a SIZE");
	if (argv[2])
		return usage_error(verb, "unexpected argument '%s'", argv[2]);
	return change(verb, &request, argv[1]);
}

const struct verb verb_pool = {
	.name = "pool",
	.arguments = "[-bj] | set SIZE [-b] [--node N]",
	.summary = "show or set how much contiguous memory is kept for regions",
	.options = options,
	.take = take,
	.help = REPORTING_HELP(
		"array") "  -b, --bytes            print sizes in bytes\n"
			 "      --node N           NUMA node; needed if the machine has several\n",
	.run = run,
};
