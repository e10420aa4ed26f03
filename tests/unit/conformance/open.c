// SPDX-License-Identifier: MIT
/* Opening by name: the same memory, with the access requested. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "../util.h"

TEST(what_one_writes_another_reads)
{
	const char *name = unique("shared");
	struct tshare_tensor *one = new_tensor(name, TSHARE_INT32, 2, shape_4x8), *two;

	CHECK(!tshare_tensor_open(ctx, name, NULL, &two));
	CHECK(tshare_tensor_get_data(one) != tshare_tensor_get_data(two));
	*(int *)tshare_tensor_get_data(one) = 42;
	CHECK(*(int *)tshare_tensor_get_data(two) == 42);
	*(int *)tshare_tensor_get_data(two) = 43;
	CHECK(*(int *)tshare_tensor_get_data(one) == 43);
	tshare_tensor_unref(one);
	tshare_tensor_unref(two);
}

TEST(open_gives_shape_and_type)
{
	const char *name = unique("shape");
	struct tshare_tensor *one = new_tensor(name, TSHARE_BFLOAT16, 2, shape_4x8), *two;

	CHECK(!tshare_tensor_open(ctx, name, &readonly_options, &two));
	CHECK(tshare_tensor_get_ndim(two) == 2);
	CHECK(!memcmp(tshare_tensor_get_shape(two), shape_4x8, sizeof(shape_4x8)));
	CHECK(tshare_tensor_get_dtype(two).code == 4 && tshare_tensor_get_dtype(two).bits == 16 &&
	      tshare_tensor_get_dtype(two).lanes == 1);
	CHECK(tshare_region_get_id(tshare_tensor_get_region(one)) ==
	      tshare_region_get_id(tshare_tensor_get_region(two)));
	CHECK(!strcmp(tshare_region_get_name(tshare_tensor_get_region(two)), name));
	tshare_tensor_unref(one);
	tshare_tensor_unref(two);
}

TEST(open_rejects_missing_names)
{
	struct tshare_region *region;

	CHECK(tshare_region_open(ctx, unique("absent"), NULL, &region) == -ENOENT);
	CHECK(error_says("name: there is no region"));
	CHECK(tshare_region_open(ctx, "", NULL, &region) == -EINVAL);
	CHECK(tshare_region_open(ctx, NULL, NULL, &region) == -EINVAL);
	CHECK(tshare_region_open(ctx, "a/b", NULL, &region) == -EINVAL);
}

TEST(open_rejects_unknown_flags)
{
	struct tshare_open_options options = { .size = sizeof(options), .flags = TSHARE_DMA32 };
	struct tshare_region *region;

	CHECK(tshare_region_open(ctx, "x", &options, &region) == -EINVAL);
	CHECK(error_says("options.flags: "));
	CHECK(tshare_region_import(ctx, 0, TSHARE_DMA32, &region) == -EINVAL);
}

TEST(tensor_open_wants_one_tensor)
{
	const char *none = unique("none"), *two = unique("two");
	struct tshare_spec specs[] = {
		SPEC("a", TSHARE_UINT8, 0),
		SPEC("b", TSHARE_UINT8, 0),
	};
	struct tshare_region *first = new_region(none), *second;
	struct tshare_tensor *tensor;

	CHECK(!tshare_region_create(ctx, two, 0, specs, 2, NULL, &second));
	CHECK(tshare_tensor_open(ctx, none, NULL, &tensor) == -EINVAL);
	CHECK(error_says("0 tensors"));
	CHECK(tshare_tensor_open(ctx, two, NULL, &tensor) == -EINVAL);
	CHECK(error_says("2 tensors"));
	tshare_region_unref(first);
	tshare_region_unref(second);
}

TEST(readonly_memory_cannot_be_made_writable)
{
	const char *name = unique("readonly");
	struct tshare_region *region = new_region(name), *reader;
	void *data;

	CHECK(!tshare_region_open(ctx, name, &readonly_options, &reader));
	CHECK(tshare_region_is_readonly(reader));
	data = tshare_region_get_data(reader);
	CHECK(mprotect(data, tshare_region_get_size(reader), PROT_READ | PROT_WRITE) < 0);
	CHECK(errno == EACCES);
	CHECK(mmap(NULL, tshare_region_get_size(reader), PROT_WRITE, MAP_SHARED,
		   tshare_region_get_fd(reader), 0) == MAP_FAILED);
	CHECK(errno == EACCES);
	tshare_region_unref(region);
	tshare_region_unref(reader);
}

static int write_into(void *data)
{
	signal(SIGSEGV, SIG_DFL);
	*(volatile char *)data = 1;
	return 0;
}

TEST(a_write_to_readonly_memory_faults)
{
	const char *name = unique("fault");
	struct tshare_region *region = new_region(name), *reader;

	CHECK(!tshare_region_open(ctx, name, &readonly_options, &reader));
	CHECK(in_child(write_into, tshare_region_get_data(reader)) == -1);
	tshare_region_unref(region);
	tshare_region_unref(reader);
}

TEST(memory_outlives_its_name)
{
	const char *name = unique("outlives");
	struct tshare_region *region = new_region(name), *other;

	CHECK(!tshare_ctx_unlink(ctx, name));
	*(char *)tshare_region_get_data(region) = 1;
	CHECK(!tshare_region_import(ctx, tshare_region_get_fd(region), 0, &other));
	CHECK(*(char *)tshare_region_get_data(other) == 1);
	tshare_region_unref(region);
	tshare_region_unref(other);
}

TEST(a_tensor_keeps_its_region_and_context)
{
	struct tshare_tensor *tensor = new_tensor(NULL, TSHARE_UINT8, 2, shape_4x8);

	close_context();
	memset(tshare_tensor_get_data(tensor), 1, tshare_tensor_get_nbytes(tensor));
	CHECK(tshare_tensor_unref(tshare_tensor_ref(tensor)) == NULL);
	memset(tshare_tensor_get_data(tensor), 2, tshare_tensor_get_nbytes(tensor));
	tshare_tensor_unref(tensor);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
