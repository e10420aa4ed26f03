// SPDX-License-Identifier: MIT
/* tshare show: one region and its tensors. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "report.h"
#include "table.h"
#include "values.h"

/* The most elements that are printed of a tensor. */
#define N_VALUES 8

/* Bytes of a tensor's name that a table shows, so that one doesn't widen it for all. */
#define NAME_SHOWN 64

/* The name of a type, or DLPack's three numbers if it has none. */
static void name_type(struct tshare_dtype dtype, char name[TSHARE_DTYPE_NAME_LEN])
{
	if (tshare_dtype_get_name(dtype, name))
		snprintf(name, TSHARE_DTYPE_NAME_LEN, "(%u, %u, %u)", dtype.code, dtype.bits,
			 dtype.lanes);
}

static void json_dims(const char *key, const int64_t *dims, int32_t ndim)
{
	int32_t i;

	json_open(key, '[');
	for (i = 0; i < ndim; i++)
		json_int(NULL, dims[i]);
	json_close(']');
}

static void tensor_json(const struct tshare_tensor *tensor, struct table *unused)
{
	int32_t ndim = tshare_tensor_get_ndim(tensor);
	char dtype[TSHARE_DTYPE_NAME_LEN];

	(void)unused;
	name_type(tshare_tensor_get_dtype(tensor), dtype);
	json_open(NULL, '{');
	json_string("name", tshare_tensor_get_name(tensor));
	json_string("dtype", dtype);
	json_dims("shape", tshare_tensor_get_shape(tensor), ndim);
	json_dims("strides", tshare_tensor_get_strides(tensor), ndim);
	json_uint("byte_offset", tshare_tensor_get_byte_offset(tensor));
	json_uint("nbytes", tshare_tensor_get_nbytes(tensor));
	json_bool("contiguous", tshare_tensor_is_contiguous(tensor));
	json_close('}');
}

static void dims_cell(struct table *table, const int64_t *dims, int32_t ndim)
{
	char text[TSHARE_NDIM_LIMIT * sizeof("-9223372036854775808, ") + 1] = "";
	size_t length = 0;
	int32_t i;

	for (i = 0; i < ndim; i++)
		length += snprintf(text + length, sizeof(text) - length, "%s%" PRId64,
				   i ? ", " : "", dims[i]);
	table_cell(table, "(%s)", text);
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

/* Whether a byte of UTF-8 belongs to the character before. */
static bool is_continuation(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Where names differ is at their ends: long ones are shortened in the middle. */
static void name_cell(struct table *table, const char *name)
{
	size_t length = strlen(name), head = NAME_SHOWN / 2, tail = length - NAME_SHOWN / 2;

	if (length <= NAME_SHOWN) {
		table_cell(table, "%s", name);
		return;
	}
	while (head && is_continuation(name[head]))
		head--;
	while (is_continuation(name[tail]))
		tail++;
	table_cell(table, "%.*s...%s", (int)head, name, name + tail);
}

static void tensor_row(const struct tshare_tensor *tensor, struct table *table)
{
	int32_t ndim = tshare_tensor_get_ndim(tensor);
	char dtype[TSHARE_DTYPE_NAME_LEN];

	name_type(tshare_tensor_get_dtype(tensor), dtype);
	table_row(table);
	name_cell(table, tshare_tensor_get_name(tensor));
	table_cell(table, "%s", dtype);
	dims_cell(table, tshare_tensor_get_shape(tensor), ndim);
	if (tshare_tensor_is_contiguous(tensor))
		table_cell(table, "%s", "");
	else
		dims_cell(table, tshare_tensor_get_strides(tensor), ndim);
	table_cell(table, "%" PRIu64, tshare_tensor_get_byte_offset(tensor));
	table_cell(table, "%" PRIu64, tshare_tensor_get_nbytes(tensor));
	values_cell(table, tensor);
}

static void region_json(struct tshare_region *region, const struct tshare_region_info *info)
{
	report_region_json(info);
	json_string("backend", tshare_region_get_backend(region));
	if (info->segments)
		json_uint("segments", info->segments);
	else
		json_null("segments");
	if (info->phys_addr)
		json_uint("phys_addr", info->phys_addr);
	else
		json_null("phys_addr");
}

static int region_text(struct tshare_region *region, const struct tshare_region_info *info)
{
	char flags[REPORT_FLAGS_LEN], user[REPORT_USER_LEN];
	struct table facts;

	report_flags(info, flags);
	report_user(info->uid, user);
	facts_init(&facts);
	facts_add(&facts, "region", "%s", tshare_region_get_name(region));
	facts_add(&facts, "backend", "%s", tshare_region_get_backend(region));
	facts_add(&facts, "id", "%" PRIu64, info->id);
	facts_add(&facts, "size", "%" PRIu64 " bytes", info->region_size);
	facts_add(&facts, "owner", "%s", user);
	facts_add(&facts, "mode", "%04o", info->mode);
	facts_add(&facts, "flags", "%s", flags);
	if (info->node != TSHARE_ANY_NODE)
		facts_add(&facts, "node", "%" PRId32, info->node);
	if (info->segments)
		facts_add(&facts, "segments", "%" PRIu32, info->segments);
	if (info->phys_addr)
		facts_add(&facts, "address", "%#" PRIx64, info->phys_addr);
	return table_print(&facts);
}

static int each_tensor(struct tshare_region *region,
		       void (*fn)(const struct tshare_tensor *tensor, struct table *table),
		       struct table *table)
{
	struct tshare_tensor *tensor;
	size_t i;

	for (i = 0; i < tshare_region_get_tensor_count(region); i++) {
		if (tshare_region_get_tensor(region, i, &tensor))
			return failure("%s", tshare_error_get());
		fn(tensor, table);
		tshare_tensor_unref(tensor);
	}
	return EXIT_OK;
}

static int tensors_text(struct tshare_region *region)
{
	static const struct table_column columns[] = {
		{ "TENSOR" },
		{ "TYPE" },
		{ "SHAPE" },
		{ "STRIDES" },
		{ "OFFSET", .right = true },
		{ "BYTES", .right = true },
		{ "VALUES", .shorten = true },
	};
	struct table table;
	int status;

	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	status = each_tensor(region, tensor_row, &table);
	if (status)
		table_release(&table);
	else
		status = table_print(&table);
	return status;
}

static int show_text(struct tshare_region *region, const struct tshare_region_info *info)
{
	int status = region_text(region, info);

	if (status || !tshare_region_get_tensor_count(region))
		return status;
	putchar('\n');
	return tensors_text(region);
}

static int show_json(struct tshare_region *region, const struct tshare_region_info *info)
{
	int status;

	json_open(NULL, '{');
	region_json(region, info);
	json_open("tensors", '[');
	status = each_tensor(region, tensor_json, NULL);
	json_close(']');
	json_close('}');
	return status;
}

static int show_region(struct tshare_region *region, bool json)
{
	struct tshare_region_info info = { .size = sizeof(info) };

	if (tshare_region_get_info(region, &info))
		return failure("%s", tshare_error_get());
	return json ? show_json(region, &info) : show_text(region, &info);
}

/* Opened for writing if possible, since info() reports the access of this opening. */
static int open_region(struct tshare_ctx *ctx, const char *name, struct tshare_region **region)
{
	const struct tshare_open_options readonly = {
		.size = sizeof(readonly),
		.flags = TSHARE_READONLY,
	};
	int err;

	err = tshare_region_open(ctx, name, NULL, region);
	return err == -EACCES ? tshare_region_open(ctx, name, &readonly, region) : err;
}

static int run(const struct verb *verb, int argc, char **argv)
{
	struct tshare_region *region;
	struct tshare_ctx *ctx;
	int err, status;
	bool json;

	if (!parse_reporting(verb, argc, argv, &json, &status))
		return status;
	if (argc - optind != 1)
		return usage_error(verb, "needs one NAME");
	ctx = open_session();
	if (!ctx)
		return EXIT_FAILED;
	err = open_region(ctx, argv[optind], &region);
	tshare_ctx_unref(ctx);
	if (err)
		return failure("%s", tshare_error_get());
	status = show_region(region, json);
	tshare_region_unref(region);
	return status;
}

const struct verb verb_show = {
	.name = "show",
	.arguments = "[--json] NAME",
	.summary = "show a region, its tensors and their first values",
	.options = "      --json             print a JSON object, without values\n",
	.run = run,
};
