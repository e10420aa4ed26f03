// SPDX-License-Identifier: MIT
/* Descriptors of a region or of a part of it. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../util.h"

#define PAGES 8

static size_t page;

/* A region of PAGES pages, the first byte of each of which is its number. */
static struct tshare_region *new_ring(void)
{
	struct tshare_region *region;
	unsigned char *data;
	int i;

	page = limits_of(ctx).page_size;
	CHECK(!tshare_region_create(ctx, NULL, PAGES * page, NULL, 0, NULL, &region));
	data = tshare_region_get_data(region);
	for (i = 0; i < PAGES; i++)
		data[i * page] = i;
	return region;
}

/* Only the module has descriptors of a part. */
static bool has_parts(void)
{
	return limits_of(ctx).dmabuf;
}

TEST(an_exported_descriptor_is_of_the_same_memory)
{
	struct tshare_region *region = new_ring(), *imported;
	int fd;

	CHECK(!tshare_region_export(region, 0, 0, 0, &fd));
	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	CHECK(fd != tshare_region_get_fd(region));
	CHECK(!tshare_region_import(ctx, fd, 0, &imported));
	CHECK(tshare_region_get_id(imported) == tshare_region_get_id(region));
	CHECK(tshare_region_get_size(imported) == PAGES * page);
	((char *)tshare_region_get_data(imported))[page] = 42;
	CHECK(((char *)tshare_region_get_data(region))[page] == 42);
	close(fd);
	tshare_region_unref(imported);
	tshare_region_unref(region);
}

TEST(a_readonly_export_of_the_whole_cannot_be_made_writable)
{
	struct tshare_region *region = new_ring(), *imported;
	char *data;
	int fd;

	CHECK(!tshare_region_export(region, 0, PAGES * page, TSHARE_READONLY, &fd));
	CHECK((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
	CHECK(!tshare_region_import(ctx, fd, 0, &imported));
	CHECK(tshare_region_is_readonly(imported));
	data = tshare_region_get_data(imported);
	CHECK(data[3 * page] == 3);
	CHECK(mprotect(data, 1, PROT_READ | PROT_WRITE) < 0 && errno == EACCES);
	close(fd);
	tshare_region_unref(imported);
	tshare_region_unref(region);
}

TEST(a_readonly_region_exports_only_readonly)
{
	struct tshare_region *region = new_ring(), *reader;
	int fd;

	CHECK(!tshare_region_import(ctx, tshare_region_get_fd(region), TSHARE_READONLY, &reader));
	CHECK(tshare_region_export(reader, 0, 0, 0, &fd) == -EACCES);
	CHECK(error_says("TSHARE_READONLY"));
	CHECK(!tshare_region_export(reader, 0, 0, TSHARE_READONLY, &fd));
	close(fd);
	tshare_region_unref(reader);
	tshare_region_unref(region);
}

TEST(a_part_is_imported_as_a_region_of_its_size)
{
	struct tshare_region *region = new_ring(), *part;
	struct tshare_region_info info = { .size = sizeof(info) };
	unsigned char *data;
	int fd, err;

	err = tshare_region_export(region, 2 * page, 3 * page, 0, &fd);
	if (!has_parts()) {
		CHECK(err == -EOPNOTSUPP && error_says("part"));
		tshare_region_unref(region);
		return;
	}
	CHECK(!err);
	CHECK(!tshare_region_import(ctx, fd, 0, &part));
	CHECK(tshare_region_get_size(part) == 3 * page);
	data = tshare_region_get_data(part);
	CHECK(data[0] == 2 && data[page] == 3 && data[2 * page] == 4);
	data[page] = 42;
	CHECK(((unsigned char *)tshare_region_get_data(region))[3 * page] == 42);
	CHECK(!tshare_region_get_info(part, &info));
	CHECK(info.region_size == PAGES * page);
	CHECK(info.offset == 2 * page);
	CHECK(info.length == 3 * page);
	close(fd);
	tshare_region_unref(part);
	tshare_region_unref(region);
}

TEST(a_part_has_no_tensors)
{
	struct tshare_spec spec = SPEC("frames", TSHARE_UINT8, 1, &(int64_t){ 1 });
	struct tshare_region *region, *part;
	int fd;

	if (!has_parts())
		return;
	page = limits_of(ctx).page_size;
	CHECK(!tshare_region_create(ctx, NULL, 2 * page, &spec, 1, NULL, &region));
	CHECK(!tshare_region_export(region, page, page, 0, &fd));
	CHECK(!tshare_region_import(ctx, fd, 0, &part));
	CHECK(tshare_region_get_tensor_count(part) == 0);
	close(fd);
	tshare_region_unref(part);
	tshare_region_unref(region);
}

TEST(a_part_of_a_part_counts_from_its_start)
{
	struct tshare_region *region = new_ring(), *part, *inner;
	int fd, other;

	if (!has_parts()) {
		tshare_region_unref(region);
		return;
	}
	CHECK(!tshare_region_export(region, 2 * page, 4 * page, 0, &fd));
	CHECK(!tshare_region_import(ctx, fd, 0, &part));
	CHECK(tshare_region_export(part, page, 4 * page, 0, &other) == -ERANGE);
	CHECK(!tshare_region_export(part, page, 2 * page, 0, &other));
	CHECK(!tshare_region_import(ctx, other, 0, &inner));
	CHECK(*(unsigned char *)tshare_region_get_data(inner) == 3);
	close(fd);
	close(other);
	tshare_region_unref(inner);
	tshare_region_unref(part);
	tshare_region_unref(region);
}

TEST(export_rejects_partial_pages)
{
	struct tshare_region *region = new_ring();
	int fd;

	CHECK(tshare_region_export(region, 1, 0, 0, &fd) == -EINVAL && error_says("offset"));
	CHECK(tshare_region_export(region, 0, 1, 0, &fd) == -EINVAL && error_says("size"));
	tshare_region_unref(region);
}

TEST(export_rejects_ranges_outside)
{
	struct tshare_region *region = new_ring();
	int fd;

	CHECK(tshare_region_export(region, PAGES * page, 0, 0, &fd) == -ERANGE);
	CHECK(tshare_region_export(region, page, PAGES * page, 0, &fd) == -ERANGE);
	CHECK(tshare_region_export(region, page, -page, 0, &fd) == -ERANGE);
	CHECK(tshare_region_export(region, -page, page, 0, &fd) == -ERANGE);
	tshare_region_unref(region);
}

TEST(export_rejects_unknown_flags)
{
	struct tshare_region *region = new_ring();
	int fd;

	CHECK(tshare_region_export(region, 0, 0, TSHARE_NODE, &fd) == -EINVAL);
	CHECK(error_says("flags"));
	tshare_region_unref(region);
}

TEST(export_leaves_nothing_open)
{
	struct tshare_region *region = new_ring();
	size_t before = open_descriptors();
	int fd;

	CHECK(!tshare_region_export(region, 0, 0, TSHARE_READONLY, &fd));
	CHECK(open_descriptors() == before + 1);
	close(fd);
	tshare_region_unref(region);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
