// SPDX-License-Identifier: MIT
/* A region's list of tensors: names, limits, and lists of any length. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../util.h"

/* Tensors of various shapes and names, too many to be read with an open. */
#define COUNT 1000

static char names[COUNT][TSHARE_TENSOR_NAME_MAX + 1];
static int64_t shapes[COUNT][TSHARE_NDIM_LIMIT];
static int64_t strides[COUNT][TSHARE_NDIM_LIMIT];
static struct tshare_spec specs[COUNT];

/* The first has the longest name, the second none. */
static void make_specs(void)
{
	int32_t ndim, j;
	size_t i;

	for (i = 0; i < COUNT; i++) {
		memset(names[i], 'n', sizeof(names[i]) - 1);
		if (i)
			snprintf(names[i], sizeof(names[i]), "%zu/%0*zu", i, (int)(i % 200), i);
		ndim = i % (TSHARE_NDIM_LIMIT + 1);
		for (j = 0; j < ndim; j++) {
			shapes[i][j] = j ? 1 : 2 + i % 5;
			strides[i][j] = i % 3 ? 1 : -1;
		}
		specs[i] = (struct tshare_spec)SPEC(names[i], TSHARE_INT16, ndim, shapes[i],
						    strides[i]);
	}
	specs[1].name = NULL;
	names[1][0] = '\0';
}

static struct tshare_region *new_list(const char *name, size_t count)
{
	struct tshare_region *region;

	make_specs();
	CHECK(!tshare_region_create(ctx, name, 0, specs, count, NULL, &region));
	return region;
}

/* Whether @tensor is that of specs[@i]. */
static bool is_spec(const struct tshare_tensor *tensor, size_t i)
{
	int32_t ndim = tshare_tensor_get_ndim(tensor);
	size_t bytes = ndim * sizeof(int64_t);

	return ndim == specs[i].ndim && tshare_tensor_get_dtype(tensor).bits == 16 &&
	       !strcmp(tshare_tensor_get_name(tensor), names[i]) &&
	       !memcmp(tshare_tensor_get_shape(tensor), shapes[i], bytes) &&
	       !memcmp(tshare_tensor_get_strides(tensor), strides[i], bytes);
}

static bool has_specs(struct tshare_region *region, size_t count)
{
	struct tshare_tensor *tensor;
	const char *name;
	bool same = true;
	size_t i;

	if (tshare_region_get_tensor_count(region) != count)
		return false;
	for (i = 0; same && i < count; i++) {
		if (tshare_region_get_tensor(region, i, &tensor))
			return false;
		same = is_spec(tensor, i);
		tshare_tensor_unref(tensor);
		if (tshare_region_find_tensor(region, names[i], &tensor))
			return false;
		same &= is_spec(tensor, i);
		tshare_tensor_unref(tensor);
		same &= !tshare_region_get_tensor_name(region, i, &name) && !strcmp(name, names[i]);
	}
	return same;
}

TEST(lists_of_any_length_are_what_they_were_created_as)
{
	static const size_t counts[] = { 1, 2, 15, 16, 17, 18, 30, 64, 65, COUNT };
	const char *name = unique("lists");
	struct tshare_region *region, *opened;
	size_t i;

	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		region = new_list(name, counts[i]);
		CHECK(has_specs(region, counts[i]));
		CHECK(!tshare_region_open(ctx, name, &readonly_options, &opened));
		CHECK(has_specs(opened, counts[i]));
		tshare_region_unref(opened);
		CHECK(!tshare_ctx_unlink(ctx, name));
		tshare_region_unref(region);
	}
}

TEST(an_imported_region_has_its_list)
{
	struct tshare_region *region = new_list(NULL, COUNT), *imported;

	CHECK(!tshare_region_import(ctx, tshare_region_get_fd(region), 0, &imported));
	tshare_region_unref(region);
	CHECK(has_specs(imported, COUNT));
	tshare_region_unref(imported);
}

TEST(a_list_is_there_after_its_name_is_gone)
{
	const char *name = unique("gone");
	struct tshare_region *region = new_list(name, COUNT), *opened;

	CHECK(!tshare_region_open(ctx, name, NULL, &opened));
	CHECK(!tshare_ctx_unlink(ctx, name));
	tshare_region_unref(region);
	CHECK(has_specs(opened, COUNT));
	tshare_region_unref(opened);
}

TEST(a_tensor_keeps_its_name)
{
	struct tshare_region *region = new_list(NULL, COUNT);
	struct tshare_tensor *tensor;

	CHECK(!tshare_region_get_tensor(region, 0, &tensor));
	tshare_region_unref(region);
	CHECK(is_spec(tensor, 0));
	tshare_tensor_unref(tensor);
}

TEST(missing_tensors_are_enoent)
{
	static const size_t counts[] = { 2, COUNT };
	struct tshare_tensor *tensor;
	struct tshare_region *region;
	char longer[TSHARE_TENSOR_NAME_MAX + 2];
	const char *name;
	size_t i;

	memset(longer, 'n', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	for (i = 0; i < 2; i++) {
		region = new_list(NULL, counts[i]);
		CHECK(tshare_region_get_tensor(region, counts[i], &tensor) == -ENOENT);
		CHECK(tshare_region_get_tensor(region, SIZE_MAX, &tensor) == -ENOENT);
		CHECK(tshare_region_get_tensor_name(region, counts[i], &name) == -ENOENT);
		CHECK(tshare_region_find_tensor(region, "none", &tensor) == -ENOENT);
		CHECK(error_says("none"));
		CHECK(tshare_region_find_tensor(region, longer, &tensor) == -ENOENT);
		tshare_region_unref(region);
	}
}

TEST(a_region_without_tensors_has_none)
{
	struct tshare_region *region = new_region(NULL);
	struct tshare_tensor *tensor;
	const char *name;

	CHECK(tshare_region_get_tensor_count(region) == 0);
	CHECK(tshare_region_get_tensor(region, 0, &tensor) == -ENOENT);
	CHECK(tshare_region_get_tensor_name(region, 0, &name) == -ENOENT);
	CHECK(tshare_region_find_tensor(region, "", &tensor) == -ENOENT);
	tshare_region_unref(region);
}

TEST(names_may_be_paths_or_no_text)
{
	static const char *const any[] = { "params/dense/kernel", "..", "/", "\xff\xfe", "\n" };
	struct tshare_spec spec = SPEC(NULL, TSHARE_UINT8, 0);
	struct tshare_tensor *tensor;
	struct tshare_region *region;
	size_t i;

	for (i = 0; i < sizeof(any) / sizeof(any[0]); i++) {
		spec.name = any[i];
		CHECK(!tshare_region_create(ctx, NULL, 0, &spec, 1, NULL, &region));
		CHECK(!tshare_region_find_tensor(region, any[i], &tensor));
		CHECK(!strcmp(tshare_tensor_get_name(tensor), any[i]));
		tshare_tensor_unref(tensor);
		tshare_region_unref(region);
	}
}

TEST(names_have_up_to_1023_bytes)
{
	char longest[TSHARE_TENSOR_NAME_MAX + 2];
	struct tshare_spec spec = SPEC(longest, TSHARE_UINT8, 0);
	struct tshare_tensor *tensor;
	struct tshare_region *region;

	memset(longest, 'n', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	CHECK(tshare_region_create(ctx, NULL, 0, &spec, 1, NULL, &region) == -ENAMETOOLONG);
	CHECK(error_says("1023"));
	longest[TSHARE_TENSOR_NAME_MAX] = '\0';
	CHECK(!tshare_region_create(ctx, NULL, 0, &spec, 1, NULL, &region));
	CHECK(!tshare_region_view(region, &spec, 0, &tensor));
	CHECK(!strcmp(tshare_tensor_get_name(tensor), longest));
	tshare_tensor_unref(tensor);
	tshare_region_unref(region);
}

/* At any place, also where different names collide in the index. */
TEST(two_tensors_of_one_name_among_many_are_einval)
{
	static const size_t places[][2] = { { 0, 999 }, { 1, 2 }, { 500, 501 }, { 998, 999 } };
	struct tshare_region *region;
	char text[64];
	size_t i;

	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		make_specs();
		specs[places[i][1]].name = specs[places[i][0]].name;
		CHECK(tshare_region_create(ctx, NULL, 0, specs, COUNT, NULL, &region) == -EINVAL);
		snprintf(text, sizeof(text), "specs[%zu].name", places[i][1]);
		CHECK(error_says(text));
	}
}

TEST(two_tensors_of_one_name_among_few_are_einval)
{
	struct tshare_region *region;
	size_t i, j;

	for (i = 0; i < 4; i++)
		for (j = i + 1; j < 4; j++) {
			make_specs();
			specs[j].name = specs[i].name;
			CHECK(tshare_region_create(ctx, NULL, 0, specs, 4, NULL, &region) ==
			      -EINVAL);
		}
}

TEST(a_list_of_more_than_256_mib_is_einval)
{
	const size_t count = TSHARE_TENSOR_LIMIT;
	struct tshare_spec *many = calloc(count, sizeof(*many));
	struct tshare_region *region;
	size_t i;

	CHECK(many);
	make_specs();
	/* 1,048 bytes each. */
	for (i = 0; i < count; i++)
		many[i] = (struct tshare_spec)SPEC(names[0], TSHARE_UINT8, 0);
	CHECK(tshare_region_create(ctx, NULL, 0, many, count, NULL, &region) == -EINVAL);
	CHECK(error_says("256 MiB"));
	free(many);
}

struct first {
	struct tshare_region *region;
	pthread_barrier_t *together;
};

static void *ask_first(void *data)
{
	struct first *first = data;

	pthread_barrier_wait(first->together);
	return has_specs(first->region, COUNT) ? NULL : data;
}

TEST(threads_may_be_the_first_to_ask_at_the_same_time)
{
	struct tshare_region *region = new_list(NULL, COUNT);
	pthread_barrier_t together;
	struct first first = { NULL, &together };
	pthread_t threads[8];
	void *failed;
	int i, round;

	CHECK(!pthread_barrier_init(&together, NULL, 8));
	for (round = 0; round < 10; round++) {
		CHECK(!tshare_region_import(ctx, tshare_region_get_fd(region), 0, &first.region));
		for (i = 0; i < 8; i++)
			CHECK(!pthread_create(&threads[i], NULL, ask_first, &first));
		for (i = 0; i < 8; i++) {
			CHECK(!pthread_join(threads[i], &failed));
			CHECK(!failed);
		}
		tshare_region_unref(first.region);
	}
	pthread_barrier_destroy(&together);
	tshare_region_unref(region);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
