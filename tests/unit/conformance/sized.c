// SPDX-License-Identifier: MIT
/* Structs of programs that were compiled with an older or a newer header. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "../util.h"

/* A struct of a later header, with one more member. */
#define LATER(type)            \
	struct {               \
		type known;    \
		uint64_t more; \
	}

static int create_with(const struct tshare_options *options)
{
	struct tshare_region *region;
	int err = tshare_region_create(ctx, NULL, 1, NULL, 0, options, &region);

	if (!err)
		tshare_region_unref(region);
	return err;
}

TEST(options_without_a_size_are_rejected)
{
	struct tshare_options options = { .mode = 0600 };

	CHECK(create_with(&options) == -EINVAL);
	CHECK(error_says("options.size: 0 bytes"));
	options.size = sizeof(void *);
	CHECK(create_with(&options) == -EINVAL);
	options.size = SIZE_MAX;
	CHECK(create_with(&options) == -EINVAL);
}

TEST(options_of_an_older_header_are_taken)
{
	struct tshare_options options;
	struct tshare_region_info info = { .size = sizeof(info) };
	struct tshare_region *region;

	memset(&options, 0xff, sizeof(options));
	options.size = offsetof(struct tshare_options, node);
	options.flags = 0;
	options.mode = 0640;
	CHECK(!tshare_region_create(ctx, NULL, 1, NULL, 0, &options, &region));
	CHECK(!tshare_region_get_info(region, &info));
	CHECK(info.mode == 0640);
	tshare_region_unref(region);
}

TEST(options_of_a_newer_header_are_taken_if_zero)
{
	LATER(struct tshare_options) options = { { .size = sizeof(options) }, 0 };

	CHECK(!create_with(&options.known));
	options.more = 1ULL << 63;
	CHECK(create_with(&options.known) == -EINVAL);
	CHECK(error_says("options.size: nonzero bytes"));
}

static int open_with(const struct tshare_ctx_options *options)
{
	struct tshare_ctx *own;
	int err = tshare_ctx_new(options, &own);

	if (!err)
		tshare_ctx_unref(own);
	return err;
}

TEST(ctx_options_without_a_size_are_rejected)
{
	struct tshare_ctx_options options = { .size = 0 };

	CHECK(open_with(&options) == -EINVAL);
	CHECK(error_says("options.size: 0 bytes"));
}

TEST(ctx_options_of_an_older_header_are_taken)
{
	struct tshare_ctx_options options;

	memset(&options, 0xff, sizeof(options));
	options.size = offsetof(struct tshare_ctx_options, log_fn);
	options.backend = tshare_ctx_get_backend(ctx);
	CHECK(!open_with(&options));
}

TEST(ctx_options_of_a_newer_header_are_taken_if_zero)
{
	LATER(struct tshare_ctx_options) options = { { .size = sizeof(options) }, 0 };

	CHECK(!open_with(&options.known));
	options.more = 1;
	CHECK(open_with(&options.known) == -EINVAL);
	CHECK(error_says("options.size: nonzero bytes"));
}

static int find_with(const struct tshare_open_options *options)
{
	struct tshare_region *region = new_region(unique("found")), *found;
	int err = tshare_region_open(ctx, unique("found"), options, &found);

	if (!err)
		tshare_region_unref(found);
	tshare_region_unref(region);
	CHECK(!tshare_ctx_unlink(ctx, unique("found")));
	return err;
}

TEST(open_options_without_a_size_are_rejected)
{
	struct tshare_open_options options = { .size = 0 };

	CHECK(find_with(&options) == -EINVAL);
	CHECK(error_says("options.size: 0 bytes"));
	options.size = sizeof(void *);
	CHECK(find_with(&options) == -EINVAL);
}

TEST(open_options_of_an_older_header_are_taken)
{
	struct tshare_open_options options;

	memset(&options, 0xff, sizeof(options));
	options.size = offsetof(struct tshare_open_options, timeout_ns);
	options.flags = TSHARE_READONLY;
	options.reserved = 0;
	CHECK(!find_with(&options));
}

TEST(open_options_of_a_newer_header_are_taken_if_zero)
{
	LATER(struct tshare_open_options) options = { { .size = sizeof(options) }, 0 };

	CHECK(!find_with(&options.known));
	options.more = 1;
	CHECK(find_with(&options.known) == -EINVAL);
}

/* Two of three bytes each; the second one's offset in *@offset. */
static int layout_of(const struct tshare_spec *specs, uint64_t *offset)
{
	uint64_t offsets[2];
	int err = tshare_region_compute_layout(specs, 2, offsets, NULL);

	if (!err)
		*offset = offsets[1];
	return err;
}

static const int64_t shape_3[] = { 3 };

TEST(specs_without_a_size_are_rejected)
{
	struct tshare_spec specs[] = { SPEC("a", TSHARE_UINT8, 1, shape_3),
				       SPEC("b", TSHARE_UINT8, 1, shape_3) };
	struct tshare_region *region = new_region(NULL);
	struct tshare_tensor *tensor;
	uint64_t offset;

	specs[0].size = 0;
	CHECK(layout_of(specs, &offset) == -EINVAL);
	CHECK(error_says("specs[0].size: 0 bytes"));
	CHECK(tshare_region_create(ctx, NULL, 0, specs, 1, NULL, NULL) == -EINVAL);
	CHECK(error_says("specs[0].size: 0 bytes"));
	CHECK(tshare_region_view(region, specs, 0, &tensor) == -EINVAL);
	CHECK(error_says("spec.size: 0 bytes"));
	CHECK(tshare_tensor_wrap(region, specs, 0, &tensor) == -EINVAL);
	CHECK(error_says("spec.size: 0 bytes"));
	CHECK(tshare_tensor_copy(ctx, NULL, region, specs, NULL, &tensor) == -EINVAL);
	CHECK(error_says("spec.size: 0 bytes"));
	CHECK(tshare_spec_check(specs, region, NULL, 0) == -EINVAL);
	CHECK(error_says("spec.size: 0 bytes"));
	tshare_region_unref(region);
}

TEST(specs_of_an_array_have_one_size)
{
	struct tshare_spec specs[] = { SPEC("a", TSHARE_UINT8, 1, shape_3),
				       SPEC("b", TSHARE_UINT8, 1, shape_3) };
	uint64_t offset;

	specs[1].size--;
	CHECK(layout_of(specs, &offset) == -EINVAL);
	CHECK(error_says("specs[1].size: "));
}

/* The first members of a spec, up to its shape. */
struct early_spec {
	size_t size;
	const char *name;
	struct tshare_dtype dtype;
	int32_t ndim;
	const int64_t *shape;
};

TEST(specs_of_an_older_header_are_taken)
{
	const struct early_spec specs[] = {
		{ sizeof(specs[0]), "a", TSHARE_UINT8, 1, shape_3 },
		{ sizeof(specs[0]), "b", TSHARE_UINT8, 1, shape_3 },
	};
	uint64_t offset;

	CHECK(!layout_of((const void *)specs, &offset));
	CHECK(offset == 64);
}

TEST(specs_of_a_newer_header_are_taken_if_zero)
{
	struct {
		struct tshare_spec known;
		uint64_t more;
	} specs[] = {
		{ SPEC("a", TSHARE_UINT8, 1, shape_3), 0 },
		{ SPEC("b", TSHARE_UINT8, 1, shape_3), 0 },
	};
	uint64_t offset;

	specs[0].known.size = specs[1].known.size = sizeof(specs[0]);
	CHECK(!layout_of(&specs[0].known, &offset));
	CHECK(offset == 64);
	specs[1].more = 1;
	CHECK(layout_of(&specs[0].known, &offset) == -EINVAL);
	CHECK(error_says("specs[1].size: nonzero bytes"));
}

TEST(limits_without_a_size_are_rejected)
{
	struct tshare_limits limits = { .size = 0 };

	CHECK(tshare_ctx_get_limits(ctx, &limits) == -EINVAL);
	CHECK(error_says("limits.size: 0 bytes"));
}

TEST(limits_of_an_older_header_are_filled_as_far_as_they_go)
{
	struct tshare_limits limits;

	memset(&limits, 0xff, sizeof(limits));
	limits.size = offsetof(struct tshare_limits, contiguous);
	CHECK(!tshare_ctx_get_limits(ctx, &limits));
	CHECK(limits.size == offsetof(struct tshare_limits, contiguous));
	CHECK(limits.page_size == limits_of(ctx).page_size);
	CHECK(*(unsigned char *)&limits.contiguous == 0xff);
}

TEST(limits_of_a_newer_header_are_zero_where_unknown)
{
	LATER(struct tshare_limits) limits = { { .size = sizeof(limits) }, 1 };

	CHECK(!tshare_ctx_get_limits(ctx, &limits.known));
	CHECK(limits.known.size == sizeof(limits));
	CHECK(limits.known.page_size == limits_of(ctx).page_size);
	CHECK(limits.more == 0);
}

TEST(infos_without_a_size_are_rejected)
{
	struct tshare_region_info info = { .size = 0 };
	struct tshare_region *region = new_region(NULL);

	CHECK(tshare_region_get_info(region, &info) == -EINVAL);
	CHECK(error_says("info.size: 0 bytes"));
	tshare_region_unref(region);
}

TEST(infos_of_an_older_header_are_filled_as_far_as_they_go)
{
	struct tshare_region *region = new_region(NULL);
	struct tshare_region_info info;

	memset(&info, 0xff, sizeof(info));
	info.size = offsetof(struct tshare_region_info, name);
	CHECK(!tshare_region_get_info(region, &info));
	CHECK(info.id == tshare_region_get_id(region));
	CHECK((unsigned char)info.name[0] == 0xff);
	tshare_region_unref(region);
}

TEST(infos_of_a_newer_header_are_zero_where_unknown)
{
	LATER(struct tshare_region_info) info = { { .size = sizeof(info) }, 1 };
	struct tshare_region *region = new_region(NULL);

	CHECK(!tshare_region_get_info(region, &info.known));
	CHECK(info.known.size == sizeof(info));
	CHECK(info.known.id == tshare_region_get_id(region));
	CHECK(info.more == 0);
	tshare_region_unref(region);
}

TEST(list_sets_the_size_of_each_info)
{
	struct found found = { .name = unique("sized") };
	struct tshare_region *region = new_region(found.name);

	CHECK(!tshare_ctx_list(ctx, find_listed, &found));
	CHECK(found.count == 1);
	CHECK(found.info.size == sizeof(found.info));
	tshare_region_unref(region);
}

/* What is reserved may come to mean something. */
TEST(reserved_members_must_be_zero)
{
	const struct tshare_cuda_options cuda = { .size = sizeof(cuda), .reserved = 1 };
	const struct tshare_open_options open = { .size = sizeof(open), .reserved = 1 };
	struct tshare_region *region = new_region(NULL), *other;

	CHECK(tshare_region_open(ctx, "any", &open, &other) == -EINVAL);
	CHECK(error_says("options.reserved"));
	CHECK(tshare_region_pin(region, &cuda, NULL) == -EINVAL);
	CHECK(error_says("options.reserved"));
	tshare_region_unref(region);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
