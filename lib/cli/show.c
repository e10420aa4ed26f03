// SPDX-License-Identifier: MIT
/* tshare show: all that can be known of one region. */
#include <errno.h>
#include <inttypes.h>

#include "json.h"
#include "report.h"
#include "values.h"

/* Elements of a tensor that are printed. */
#define N_VALUES 8

/* The name of a type, or its numbers where it has none. */
static void name_type(struct tshare_dtype dtype, char name[TSHARE_DTYPE_NAME_LEN])
{
	if (tshare_dtype_name(dtype, name))
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

static void tensor_json(const struct tshare_tensor *tensor)
{
	int32_t ndim = tshare_tensor_ndim(tensor);
	char dtype[TSHARE_DTYPE_NAME_LEN];

	name_type(tshare_tensor_dtype(tensor), dtype);
	json_open(NULL, '{');
	json_string("name", tshare_tensor_name(tensor));
	json_string("dtype", dtype);
	json_dims("shape", tshare_tensor_shape(tensor), ndim);
	json_dims("strides", tshare_tensor_strides(tensor), ndim);
	json_uint("byte_offset", tshare_tensor_byte_offset(tensor));
	json_uint("nbytes", tshare_tensor_nbytes(tensor));
	json_bool("contiguous", tshare_tensor_is_contiguous(tensor));
	json_close('}');
}

static void print_dims(const char *label, const int64_t *dims, int32_t ndim)
{
	int32_t i;

	printf("  %s (", label);
	for (i = 0; i < ndim; i++)
		printf("%s%" PRId64, i ? ", " : "", dims[i]);
	putchar(')');
}

static void tensor_text(const struct tshare_tensor *tensor)
{
	int32_t ndim = tshare_tensor_ndim(tensor);
	char dtype[TSHARE_DTYPE_NAME_LEN];

	name_type(tshare_tensor_dtype(tensor), dtype);
	fputs("tensor     '", stdout);
	print_name(tshare_tensor_name(tensor));
	printf("'  %s", dtype);
	print_dims("shape", tshare_tensor_shape(tensor), ndim);
	if (!tshare_tensor_is_contiguous(tensor))
		print_dims("strides", tshare_tensor_strides(tensor), ndim);
	printf("  at %" PRIu64 "  %" PRIu64 " bytes\n          ", tshare_tensor_byte_offset(tensor),
	       tshare_tensor_nbytes(tensor));
	print_values(tensor, N_VALUES);
	putchar('\n');
}

static void region_json(struct tshare_region *region, const struct tshare_region_info *info)
{
	report_region_json(info);
	json_string("backend", tshare_region_backend(region));
	if (info->segments)
		json_uint("segments", info->segments);
	else
		json_null("segments");
	if (info->phys_addr)
		json_uint("phys_addr", info->phys_addr);
	else
		json_null("phys_addr");
}

static void region_text(struct tshare_region *region, const struct tshare_region_info *info)
{
	char flags[REPORT_FLAGS_LEN], user[REPORT_USER_LEN];

	report_flags(info->flags, flags);
	report_user(info->uid, user);
	fputs("region     '", stdout);
	print_name(tshare_region_name(region));
	printf("'\nbackend    %s\nid         %" PRIu64 "\nsize       %" PRIu64
	       " bytes\nowner      %s\nmode       %04o\nflags      %s\n",
	       tshare_region_backend(region), info->id, info->size, user, info->mode, flags);
	if (info->node != TSHARE_ANY_NODE)
		printf("node       %" PRId32 "\n", info->node);
	if (info->segments)
		printf("segments   %" PRIu32 "\n", info->segments);
	if (info->phys_addr)
		printf("address    %#" PRIx64 "\n", info->phys_addr);
}

static int each_tensor(struct tshare_region *region, void (*fn)(const struct tshare_tensor *tensor))
{
	struct tshare_tensor *tensor;
	size_t i;

	for (i = 0; i < tshare_region_tensor_count(region); i++) {
		if (tshare_region_tensor(region, i, &tensor))
			return failure("%s", tshare_last_error());
		fn(tensor);
		tshare_tensor_unref(tensor);
	}
	return EXIT_OK;
}

static int show_region(struct tshare_region *region, bool json)
{
	struct tshare_region_info info;
	int status;

	if (tshare_region_get_info(region, &info))
		return failure("%s", tshare_last_error());
	if (!json) {
		region_text(region, &info);
		return each_tensor(region, tensor_text);
	}
	json_open(NULL, '{');
	region_json(region, &info);
	json_open("tensors", '[');
	status = each_tensor(region, tensor_json);
	json_close(']');
	json_close('}');
	return status;
}

/* Nothing is written, but the access that was given is what is reported. */
static int open_region(struct tshare_ctx *ctx, const char *name, struct tshare_region **region)
{
	int err;

	err = tshare_region_open(ctx, name, 0, region);
	return err == -EACCES ? tshare_region_open(ctx, name, TSHARE_READONLY, region) : err;
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
		return usage_error(verb, "one NAME");
	ctx = open_session();
	if (!ctx)
		return EXIT_FAILED;
	err = open_region(ctx, argv[optind], &region);
	tshare_ctx_unref(ctx);
	if (err)
		return failure("%s", tshare_last_error());
	status = show_region(region, json);
	tshare_region_unref(region);
	return status;
}

const struct verb verb_show = {
	.name = "show",
	.arguments = "[--json] NAME",
	.summary = "show a region, its tensors and their first values",
	.options = "      --json             as a JSON object, without values\n",
	.run = run,
};
