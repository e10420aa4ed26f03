// SPDX-License-Identifier: MIT
/*
 * Opening a region of many tensors by its name, against one that holds one: alone, as
 * a process does that wants its memory, and with a tensor that is found by its name,
 * for which the list is read, checked and indexed.
 */
#include <stdio.h>
#include <stdlib.h>

#include <tshare.h>

#include "pair.h"

/* As many as a model of today indexes, with names like its own. */
#define MODEL 96085
#define NAME  "model.layers.%zu.mlp.experts.%zu.down_proj.weight_scale_%06zu"

static struct tshare_ctx *ctx;
static const char *many;

static struct tshare_region *open_region(const char *name)
{
	struct tshare_region *region;

	if (tshare_region_open(ctx, name, NULL, &region) < 0)
		errx(1, "%s", tshare_error_get());
	return region;
}

static double open_alone(const char *name)
{
	double start = pair_now(), end;
	struct tshare_region *region = open_region(name);

	end = pair_now();
	tshare_region_unref(region);
	return end - start;
}

static double find_tensor(const char *name)
{
	double start = pair_now(), end;
	struct tshare_region *region = open_region(name);
	struct tshare_tensor *tensor;

	if (tshare_region_find_tensor(region, "the last one", &tensor) < 0)
		errx(1, "%s", tshare_error_get());
	end = pair_now();
	tshare_tensor_unref(tensor);
	tshare_region_unref(region);
	return end - start;
}

static double open_many(void)
{
	return open_alone(many);
}

static double open_one(void)
{
	return open_alone("bench-list-1");
}

static double find_in_many(void)
{
	return find_tensor(many);
}

static double find_in_one(void)
{
	return find_tensor("bench-list-1");
}

/* A region of tensors of two and three dimensions; its name is "bench-list-COUNT". */
static struct tshare_region *new_list(size_t count)
{
	static const int64_t shape[] = { 2, 4, 2 };
	struct tshare_spec *specs = calloc(count, sizeof(*specs));
	char(*names)[80] = calloc(count, sizeof(*names)), name[32];
	struct tshare_region *region;
	size_t i;

	if (!specs || !names)
		err(1, "calloc");
	for (i = 0; i < count; i++) {
		snprintf(names[i], sizeof(names[i]), NAME, i / 1500, i % 256, i);
		specs[i].size = sizeof(specs[i]);
		specs[i].name = i == count - 1 ? "the last one" : names[i];
		specs[i].dtype = TSHARE_BFLOAT16;
		specs[i].ndim = 2 + i % 2;
		specs[i].shape = shape;
	}
	snprintf(name, sizeof(name), "bench-list-%zu", count);
	if (tshare_region_create(ctx, name, 0, specs, count, NULL, &region) < 0)
		errx(1, "%s", tshare_error_get());
	free(names);
	free(specs);
	return region;
}

static void compare(size_t count, int rounds, double aim)
{
	struct tshare_region *region = new_list(count);
	const char *backend = tshare_ctx_get_backend(ctx);
	char row[64];

	many = tshare_region_get_name(region);
	snprintf(row, sizeof(row), "C: open %zu tensors (%s)", count, backend);
	pair_run(row, "a region of one", open_many, open_one, rounds, aim);
	snprintf(row, sizeof(row), "C: and find one by its name (%s)", backend);
	pair_run(row, "a region of one", find_in_many, find_in_one, rounds, 0);
	tshare_region_unref(region);
}

int main(void)
{
	struct tshare_region *one;

	if (tshare_ctx_new(NULL, &ctx) < 0)
		errx(1, "%s", tshare_error_get());
	one = new_list(1);
	compare(1000, 1000, 2.0);
	compare(MODEL, 50, 0);
	compare(TSHARE_TENSOR_LIMIT, 10, 0);
	tshare_region_unref(one);
	tshare_ctx_unref(ctx);
	return 0;
}
