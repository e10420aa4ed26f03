// SPDX-License-Identifier: MIT
/* tshare show: one region and its tensors. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "details.h"
#include "json.h"
#include "number.h"
#include "processes.h"
#include "report.h"
#include "shape.h"
#include "table.h"
#include "values.h"

/* The most elements that are printed of a tensor. */
#define N_VALUES 8

/* Columns for a tensor's name, so that one long name doesn't widen the table. */
#define NAME_SHOWN 64

struct request {
	bool json;
	bool exact; /* sizes are bytes */
};

static void tensor_json(const struct tshare_tensor *tensor, struct table *unused, bool exact)
{
	int32_t ndim = tshare_tensor_get_ndim(tensor);
	char dtype[TSHARE_DTYPE_NAME_LEN];

	(void)unused;
	(void)exact;
	shape_name_type(tshare_tensor_get_dtype(tensor), dtype);
	json_open(NULL, '{');
	json_string("name", tshare_tensor_get_name(tensor));
	json_string("dtype", dtype);
	shape_json("shape", tshare_tensor_get_shape(tensor), ndim);
	shape_json("strides", tshare_tensor_get_strides(tensor), ndim);
	json_uint("byte_offset", tshare_tensor_get_byte_offset(tensor));
	json_uint("nbytes", tshare_tensor_get_nbytes(tensor));
	json_bool("contiguous", tshare_tensor_is_contiguous(tensor));
	json_close('}');
}

static void values_cell(struct table *table, const struct tshare_tensor *tensor)
{
	char *text = NULL;
	size_t size;
	FILE *stream;

	stream = open_memstream(&text, &size);
	if (!stream) {
		table->err = -ENOMEM;
		return;
	}
	print_values(stream, tensor, N_VALUES);
	if (fclose(stream))
		table->err = -ENOMEM;
	else
		table_cell(table, "%s", text);
	free(text);
}

static void tensor_row(const struct tshare_tensor *tensor, struct table *table, bool exact)
{
	int32_t ndim = tshare_tensor_get_ndim(tensor);
	char dtype[TSHARE_DTYPE_NAME_LEN], size[BYTES_LEN];

	shape_name_type(tshare_tensor_get_dtype(tensor), dtype);
	table_row(table);
	table_short_cell(table, tshare_tensor_get_name(tensor), NAME_SHOWN);
	table_cell(table, "%s", dtype);
	shape_cell(table, tshare_tensor_get_shape(tensor), ndim);
	if (tshare_tensor_is_contiguous(tensor))
		table_cell(table, "%s", "");
	else
		shape_cell(table, tshare_tensor_get_strides(tensor), ndim);
	table_cell(table, "%" PRIu64, tshare_tensor_get_byte_offset(tensor));
	format_bytes(size, tshare_tensor_get_nbytes(tensor), exact);
	table_cell(table, "%s", size);
	values_cell(table, tensor);
}

static void region_json(struct tshare_region *region, const struct details *details)
{
	const struct tshare_region_info *info = &details->info;

	report_region_json(info);
	json_string("backend", tshare_region_get_backend(region));
	json_bool("describes_gpu_memory", tshare_cuda_memory_is(region));
	if (info->segments)
		json_uint("segments", info->segments);
	else
		json_null("segments");
	if (info->phys_addr)
		json_uint("phys_addr", info->phys_addr);
	else
		json_null("phys_addr");
	details_json(details);
}

/* Adds what /proc and debugfs show. */
static void add_details(struct table *facts, const struct details *details)
{
	char age[DETAILS_TEXT_LEN], maker[DETAILS_TEXT_LEN];
	size_t i;

	details_age(details, age);
	details_maker(details, maker);
	facts_add(facts, "age", "%s", age);
	facts_add(facts, "rung", "%s", details_rung(details));
	facts_add(facts, "maker", "%s", maker);
	facts_add(facts, "users", "%zu", details->user_count);
	for (i = 0; i < details->user_count; i++)
		facts_add(facts, "  user", "%d %s", details->users[i].pid,
			  details->users[i].command);
}

static int region_text(struct tshare_region *region, const struct details *details, bool exact)
{
	const struct tshare_region_info *info = &details->info;
	char flags[REPORT_FLAGS_LEN], user[REPORT_USER_LEN];
	struct table facts;

	report_flags(info, flags);
	report_user(info->uid, user);
	facts_init(&facts);
	facts_add(&facts, "region", "%s", tshare_region_get_name(region));
	facts_add(&facts, "backend", "%s", tshare_region_get_backend(region));
	facts_add(&facts, "id", "%" PRIu64, info->id);
	facts_add_bytes(&facts, "size", info->region_size, exact);
	if (tshare_cuda_memory_is(region))
		facts_add(&facts, "describes", "%s", "a tensor in a GPU's own memory");
	facts_add(&facts, "owner", "%s", user);
	facts_add(&facts, "mode", "%04o", info->mode);
	facts_add(&facts, "flags", "%s", flags);
	if (info->node != TSHARE_ANY_NODE)
		facts_add(&facts, "node", "%" PRId32, info->node);
	if (info->segments)
		facts_add(&facts, "segments", "%" PRIu32, info->segments);
	if (info->phys_addr)
		facts_add(&facts, "address", "%#" PRIx64, info->phys_addr);
	facts_add(&facts, "generation", "%" PRIu64 "%s", details->generation,
		  details->publishers == PUBLISHERS_DEAD ? ", all publishers have exited" : "");
	add_details(&facts, details);
	return table_print(&facts);
}

static int each_tensor(struct tshare_region *region,
		       void (*fn)(const struct tshare_tensor *tensor, struct table *table,
				  bool exact),
		       struct table *table, bool exact)
{
	struct tshare_tensor *tensor;
	size_t i;
	int err;

	for (i = 0; i < tshare_region_get_tensor_count(region); i++) {
		err = tshare_region_get_tensor(region, i, &tensor);
		if (err)
			return failure_of_library(err);
		fn(tensor, table, exact);
		tshare_tensor_unref(tensor);
	}
	return EXIT_OK;
}

static int tensors_text(struct tshare_region *region, bool exact)
{
	static const struct table_column columns[] = {
		{ "TENSOR" },
		{ "TYPE" },
		{ "SHAPE" },
		{ "STRIDES" },
		{ "OFFSET", .right = true },
		{ "SIZE", .right = true },
		{ "VALUES", .shorten = true },
	};
	struct table table;
	int status;

	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	status = each_tensor(region, tensor_row, &table, exact);
	if (status)
		table_release(&table);
	else
		status = table_print(&table);
	return status;
}

static int show_text(struct tshare_region *region, const struct details *details, bool exact)
{
	int status = region_text(region, details, exact);

	if (status || !tshare_region_get_tensor_count(region))
		return status;
	putchar('\n');
	return tensors_text(region, exact);
}

static int show_json(struct tshare_region *region, const struct details *details)
{
	int status;

	json_open(NULL, '{');
	region_json(region, details);
	json_open("tensors", '[');
	status = each_tensor(region, tensor_json, NULL, true);
	json_close(']');
	json_close('}');
	return status;
}

static int show_region(struct tshare_region *region, void *data)
{
	const struct request *request = data;
	struct tshare_region_info info = { .size = sizeof(info) };
	struct details_list list = { 0 };
	int status;

	status = tshare_region_get_info(region, &info);
	if (status)
		return failure_of_library(status);
	status = details_add(&info, &list);
	if (!status) {
		details_read(list.regions, region);
		processes_find(&list);
		if (request->json)
			status = show_json(region, list.regions);
		else
			status = show_text(region, list.regions, request->exact);
	}
	details_release(&list);
	return status;
}

/* Opens for writing if possible, since info() reports the access of this opening. */
static int open_region(struct tshare_ctx *ctx, const char *name, struct tshare_region **region)
{
	int err;

	err = tshare_region_open(ctx, name, NULL, region);
	return err == -EACCES ? open_readonly(ctx, name, region) : err;
}

static const struct option options[] = {
	{ "json", no_argument, NULL, 'j' },
	{ "bytes", no_argument, NULL, 'b' },
	{ 0 },
};

static int take(const struct verb *verb, int option, void *data)
{
	struct request *request = data;

	(void)verb;
	*(option == 'j' ? &request->json : &request->exact) = true;
	return EXIT_OK;
}

static int run(const struct verb *verb, int argc, char **argv)
{
	struct request request = { 0 };
	int status;

	if (!parse_options(verb, argc, argv, &request, &status))
		return status;
	if (argc - optind != 1)
		return usage_error(verb, "needs one NAME");
	return use_region(argv[optind], open_region, show_region, &request);
}

const struct verb verb_show = {
	.name = "show",
	.arguments = "[OPTION...] NAME",
	.summary = "show a region, its tensors and their first values",
	.help = REPORTING_HELP(
		"object, without values") "  -b, --bytes            print sizes in bytes\n",
	.options = options,
	.take = take,
	.run = run,
};
