// SPDX-License-Identifier: MIT
/* Names for the dma-bufs of other drivers; udmabuf's, where there are some. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../util.h"

#define SIZE (4 * 4096)

/* A dma-buf over a memfd; skips the test where the kernel has none, or shm no use for it. */
static int new_dmabuf(void)
{
	struct udmabuf_create args = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = SIZE };
	int device, fd;

	if (!limits_of(ctx).dmabuf)
		SKIP("shared memory has no dma-bufs");
	device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	if (device < 0)
		SKIP("the kernel has no udmabuf");
	args.memfd = memfd_create("foreign", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(!ftruncate(args.memfd, SIZE));
	CHECK(!fcntl(args.memfd, F_ADD_SEALS, F_SEAL_SHRINK));
	fd = ioctl(device, UDMABUF_CREATE, &args);
	CHECK(fd >= 0);
	close(args.memfd);
	close(device);
	return fd;
}

TEST(a_dma_buf_is_opened_by_its_name)
{
	struct tshare_spec spec = SPEC("frame", TSHARE_UINT8, 1, &(int64_t){ SIZE });
	const char *name = unique("camera");
	struct tshare_region *region, *other;
	struct tshare_tensor *tensor;
	int fd = new_dmabuf();
	unsigned char *data = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CHECK(data != MAP_FAILED);
	data[SIZE - 1] = 42;
	CHECK(!tshare_region_create_dmabuf(ctx, name, fd, &spec, 1, NULL, &region));
	close(fd);
	CHECK(tshare_region_get_size(region) == SIZE);
	CHECK(!tshare_region_is_readonly(region));
	CHECK(!tshare_region_open(ctx, name, 0, &other));
	CHECK(!tshare_region_find_tensor(other, "frame", &tensor));
	CHECK(((unsigned char *)tshare_tensor_get_data(tensor))[SIZE - 1] == 42);
	((unsigned char *)tshare_tensor_get_data(tensor))[0] = 43;
	CHECK(data[0] == 43);
	munmap(data, SIZE);
	tshare_tensor_unref(tensor);
	tshare_region_unref(other);
	tshare_region_unref(region);
	CHECK(!tshare_ctx_unlink(ctx, name));
}

TEST(info_reports_that_a_dma_buf_is_foreign)
{
	struct tshare_region_info info = { .size = sizeof(info) };
	const char *name = unique("camera");
	struct found found = { .name = name };
	struct tshare_region *region;
	int fd = new_dmabuf();

	CHECK(!tshare_region_create_dmabuf(ctx, name, fd, NULL, 0, NULL, &region));
	CHECK(!tshare_region_get_info(region, &info));
	CHECK(info.flags == TSHARE_FOREIGN);
	CHECK(info.region_size == SIZE && info.length == SIZE);
	CHECK(info.node == TSHARE_ANY_NODE && !info.segments);
	CHECK(!tshare_ctx_list(ctx, find_listed, &found));
	CHECK(found.count == 1 && found.info.flags == TSHARE_FOREIGN);
	close(fd);
	tshare_region_unref(region);
	CHECK(!tshare_ctx_unlink(ctx, name));
}

/* Any process that has the dma-buf can make a region of it. */
TEST(regions_of_a_dma_buf_are_told_apart)
{
	struct tshare_region_info info = { .size = sizeof(info) };
	const char *name = unique("camera"), *again = unique("again");
	struct tshare_region *first, *next;
	uint64_t generation;
	int fd = new_dmabuf();

	CHECK(!tshare_region_create_dmabuf(ctx, name, fd, NULL, 0, NULL, &first));
	CHECK(!tshare_region_create_dmabuf(ctx, again, fd, NULL, 0, NULL, &next));
	CHECK(tshare_region_get_id(first) != tshare_region_get_id(next));
	CHECK(!tshare_region_get_info(first, &info) && !strcmp(info.name, name));
	CHECK(!tshare_region_get_info(next, &info) && !strcmp(info.name, again));
	CHECK(!tshare_ctx_unlink(ctx, name));
	CHECK(tshare_region_get_info(first, &info) == -ENOENT);
	CHECK(error_says("gone with its name"));
	CHECK(tshare_region_get_generation(first, &generation) == -ENOENT);
	CHECK(!tshare_region_get_generation(next, &generation));
	close(fd);
	tshare_region_unref(next);
	tshare_region_unref(first);
	CHECK(!tshare_ctx_unlink(ctx, again));
}

TEST(a_dma_buf_alone_is_no_region)
{
	const char *name = unique("camera");
	struct tshare_region *region, *other;
	int fd = new_dmabuf();

	CHECK(!tshare_region_create_dmabuf(ctx, name, fd, NULL, 0, NULL, &region));
	CHECK(tshare_region_import(ctx, fd, 0, &other) == -EOPNOTSUPP);
	CHECK(error_says("another driver"));
	close(fd);
	tshare_region_unref(region);
	CHECK(!tshare_ctx_unlink(ctx, name));
}

TEST(a_dma_bufs_name_does_not_end_with_its_users)
{
	struct tshare_options options = {
		.size = sizeof(options),
		.lifetime = TSHARE_LIFETIME_USERS,
	};
	struct tshare_region *region;
	int fd = new_dmabuf();

	CHECK(tshare_region_create_dmabuf(ctx, unique("camera"), fd, NULL, 0, &options, &region) ==
	      -EOPNOTSUPP);
	CHECK(error_says("options.lifetime"));
	close(fd);
}

TEST(tensors_beyond_a_dma_buf_are_erange)
{
	struct tshare_spec spec = SPEC("frame", TSHARE_UINT8, 1, &(int64_t){ SIZE + 1 });
	struct tshare_region *region;
	int fd = new_dmabuf();

	CHECK(tshare_region_create_dmabuf(ctx, unique("camera"), fd, &spec, 1, NULL, &region) ==
	      -ERANGE);
	close(fd);
}

TEST(a_dma_buf_of_another_driver_has_no_parts)
{
	const char *name = unique("camera");
	struct tshare_region *region;
	int fd = new_dmabuf(), part;

	CHECK(!tshare_region_create_dmabuf(ctx, name, fd, NULL, 0, NULL, &region));
	CHECK(tshare_region_export(region, 0, 4096, 0, &part) == -EOPNOTSUPP);
	CHECK(error_says("another driver"));
	close(fd);
	tshare_region_unref(region);
	CHECK(!tshare_ctx_unlink(ctx, name));
}

TEST(create_dmabuf_rejects_other_descriptors)
{
	int memfd = memfd_create("foreign", MFD_CLOEXEC), pipe_ends[2];
	const char *name = unique("camera");
	struct tshare_region *own = new_region(NULL), *region;

	CHECK(!ftruncate(memfd, SIZE));
	CHECK(!pipe(pipe_ends));
	CHECK(tshare_region_create_dmabuf(ctx, name, -1, NULL, 0, NULL, &region) == -EBADF);
	CHECK(tshare_region_create_dmabuf(ctx, name, pipe_ends[0], NULL, 0, NULL, &region) ==
	      -EINVAL);
	CHECK(tshare_region_create_dmabuf(ctx, NULL, memfd, NULL, 0, NULL, &region) == -EINVAL);
	CHECK(error_says("name: "));
	if (limits_of(ctx).dmabuf) {
		CHECK(tshare_region_create_dmabuf(ctx, name, memfd, NULL, 0, NULL, &region) ==
		      -EINVAL);
		CHECK(error_says("fd: "));
		CHECK(tshare_region_create_dmabuf(ctx, name, tshare_region_get_fd(own), NULL, 0,
						  NULL, &region) == -EINVAL);
	}
	close(memfd);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
	tshare_region_unref(own);
}

TEST(create_dmabuf_on_shared_memory_is_eopnotsupp)
{
	struct tshare_region *region;
	int memfd;

	if (limits_of(ctx).dmabuf)
		SKIP("the module has dma-bufs");
	memfd = memfd_create("foreign", MFD_CLOEXEC);
	CHECK(!ftruncate(memfd, SIZE));
	CHECK(tshare_region_create_dmabuf(ctx, unique("camera"), memfd, NULL, 0, NULL, &region) ==
	      -EOPNOTSUPP);
	CHECK(error_says("module tshare"));
	close(memfd);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
