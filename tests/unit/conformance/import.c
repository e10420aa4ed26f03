// SPDX-License-Identifier: MIT
/* File descriptors of regions: passing, import, closing. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../util.h"

static int import_received(void *data)
{
	struct steps *steps = data;
	struct tshare_tensor *tensor;
	struct tshare_region *region;
	struct tshare_ctx *own;
	int fd = receive_fd(steps->ends[1]);

	if (tshare_ctx_new(NULL, &own) || tshare_region_import(own, fd, 0, &region) ||
	    tshare_region_get_tensor(region, 0, &tensor))
		return 1;
	if (tshare_region_is_readonly(region) || *(int *)tshare_tensor_get_data(tensor) != 42)
		return 2;
	*(int *)tshare_tensor_get_data(tensor) = 43;
	tshare_tensor_unref(tensor);
	tshare_region_unref(region);
	tshare_ctx_unref(own);
	return 0;
}

TEST(a_descriptor_passes_to_another_process)
{
	struct tshare_tensor *tensor = new_tensor(NULL, TSHARE_INT32, 2, shape_4x8);
	struct steps steps;

	*(int *)tshare_tensor_get_data(tensor) = 42;
	CHECK(steps_open(&steps));
	CHECK(send_fd(steps.ends[0], tshare_region_get_fd(tshare_tensor_get_region(tensor))));
	CHECK(!in_child(import_received, &steps));
	CHECK(*(int *)tshare_tensor_get_data(tensor) == 43);
	steps_close(&steps);
	tshare_tensor_unref(tensor);
}

TEST(an_import_has_a_descriptor_of_its_own)
{
	struct tshare_region *region = new_region(NULL), *other;
	int fd = dup(tshare_region_get_fd(region));

	CHECK(fd >= 0);
	CHECK(!tshare_region_import(ctx, fd, 0, &other));
	CHECK(tshare_region_get_fd(other) != fd);
	CHECK(!close(fd));
	CHECK(fcntl(tshare_region_get_fd(other), F_GETFD) == FD_CLOEXEC);
	CHECK(tshare_region_get_id(other) == tshare_region_get_id(region));
	tshare_region_unref(region);
	tshare_region_unref(other);
}

TEST(a_readonly_descriptor_imports_readonly)
{
	const char *name = unique("import");
	struct tshare_region *region = new_region(name), *reader, *imported;

	CHECK(!tshare_region_open(ctx, name, &readonly_options, &reader));
	CHECK(!tshare_region_import(ctx, tshare_region_get_fd(reader), 0, &imported));
	CHECK(tshare_region_is_readonly(imported));
	CHECK(mprotect(tshare_region_get_data(imported), 1, PROT_WRITE) < 0 && errno == EACCES);
	tshare_region_unref(region);
	tshare_region_unref(reader);
	tshare_region_unref(imported);
}

TEST(a_readonly_import_cannot_be_made_writable)
{
	struct tshare_region *region = new_region(NULL), *imported;

	CHECK(!tshare_region_import(ctx, tshare_region_get_fd(region), TSHARE_READONLY, &imported));
	CHECK(tshare_region_is_readonly(imported));
	CHECK(mprotect(tshare_region_get_data(imported), 1, PROT_WRITE) < 0 && errno == EACCES);
	tshare_region_unref(region);
	tshare_region_unref(imported);
}

struct few {
	unsigned int left;
	uint32_t flags;
	int fd;
};

/* 0, an errno, or 1 if the import may be made writable though it is read-only. */
static int import_with_few_descriptors(void *data)
{
	const struct few *few = data;
	struct tshare_region *imported;
	int err;

	if (!leave_descriptors(few->left))
		return -1;
	err = tshare_region_import(ctx, few->fd, few->flags, &imported);
	if (err || !(few->flags & TSHARE_READONLY))
		return -err;
	return mprotect(tshare_region_get_data(imported), 1, PROT_WRITE) >= 0;
}

/* Imports it with no descriptor left, then with one, and so on until it succeeds. */
static void import_until_it_succeeds(struct few few)
{
	int err = EMFILE;

	for (; err; few.left++) {
		CHECK(few.left < 16);
		err = in_child(import_with_few_descriptors, &few);
		CHECK(!err || err == EMFILE);
	}
}

TEST(a_readonly_import_with_few_descriptors_cannot_be_made_writable)
{
	struct tshare_region *region = new_region(NULL);
	struct few few = { .flags = TSHARE_READONLY, .fd = tshare_region_get_fd(region) };

	import_until_it_succeeds(few);
	tshare_region_unref(region);
}

TEST(import_with_few_descriptors_does_not_take_a_region_for_none)
{
	struct tshare_region *region;
	struct tshare_ctx *other;
	struct few few = { 0 };

	CHECK(!ctx_new("shm", &other));
	CHECK(!tshare_region_create(other, unique("few"), 1, NULL, 0, NULL, &region));
	few.fd = tshare_region_get_fd(region);
	import_until_it_succeeds(few);
	tshare_region_unref(region);
	tshare_ctx_unref(other);
}

TEST(import_rejects_other_descriptors)
{
	struct tshare_region *region;
	int pipe_ends[2];
	int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);

	CHECK(tshare_region_import(ctx, fd, 0, &region) == -EINVAL);
	CHECK(error_says("fd: "));
	close(fd);
	fd = memfd_create("empty", MFD_CLOEXEC);
	CHECK(tshare_region_import(ctx, fd, 0, &region) == -EINVAL);
	close(fd);
	CHECK(!pipe2(pipe_ends, O_CLOEXEC));
	CHECK(tshare_region_import(ctx, pipe_ends[0], 0, &region) == -EINVAL);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
}

/* Exit status of a child that may not make a namespace. */
enum { NO_NAMESPACE = 77 };

/* Where /dev/tshare is another driver's: /dev/null stands for it. */
static int import_beside_another_driver(void *fd)
{
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (ctx_new("shm", &own))
		return 1;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", "/dev", "tmpfs", 0, NULL) ||
	    mknod("/dev/tshare", S_IFCHR | 0666, makedev(1, 3)))
		return NO_NAMESPACE;
	if (tshare_region_import(own, *(int *)fd, 0, &region) != -EINVAL)
		return 2;
	return error_says("is not a region's") ? 0 : 3;
}

TEST(import_asks_no_other_driver_for_a_region)
{
	int pipe_ends[2], status;

	CHECK(!pipe(pipe_ends));
	status = in_child(import_beside_another_driver, &pipe_ends[0]);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
	if (status == NO_NAMESPACE)
		SKIP("may not make namespaces");
	CHECK(!status);
}

/* As a user without access to the device. */
static int import_without_permission(void *descriptor)
{
	struct tshare_region *region;
	struct tshare_ctx *own;

	if (!become(USER_ONE) || ctx_new("shm", &own))
		return 1;
	if (tshare_region_import(own, *(int *)descriptor, 0, &region) != -EACCES)
		return 2;
	return error_says("fd: is a dma-buf") && error_says("join group tshare") ? 0 : 3;
}

TEST(a_region_of_the_module_names_what_an_importer_lacks)
{
	struct tshare_region *region;
	int fd;

	if (!limits_of(ctx).dmabuf)
		return;
	if (geteuid())
		SKIP("needs root, to be two users");
	region = new_region(unique("lacks"));
	fd = tshare_region_get_fd(region);
	CHECK(!in_child(import_without_permission, &fd));
	tshare_region_unref(region);
}

TEST(import_rejects_a_descriptor_that_is_not_open)
{
	struct tshare_region *region;

	CHECK(tshare_region_import(ctx, -1, 0, &region) == -EBADF);
	CHECK(tshare_region_import(ctx, 100000, 0, &region) == -EBADF);
}

TEST(descriptors_are_closed_on_exec)
{
	struct tshare_region *region = new_region(unique("cloexec"));

	CHECK(fcntl(tshare_region_get_fd(region), F_GETFD) == FD_CLOEXEC);
	tshare_region_unref(region);
}

TEST(a_region_of_the_other_backend_can_be_imported)
{
	const char *other_backend = limits_of(ctx).dmabuf ? "shm" : "kmod";
	struct tshare_region *region, *imported;
	struct tshare_region_info info = { .size = sizeof(info) };
	struct tshare_ctx *other;

	if (ctx_new(other_backend, &other))
		SKIP("the other backend is not available");
	CHECK(!tshare_region_create(other, NULL, 1, NULL, 0, NULL, &region));
	strcpy(tshare_region_get_data(region), "across");
	CHECK(!tshare_region_import(ctx, tshare_region_get_fd(region), 0, &imported));
	CHECK(!strcmp(tshare_region_get_backend(imported), other_backend));
	CHECK(!strcmp(tshare_region_get_data(imported), "across"));
	CHECK(!tshare_region_get_info(imported, &info));
	CHECK(info.id == tshare_region_get_id(region));
	tshare_region_unref(region);
	tshare_region_unref(imported);
	tshare_ctx_unref(other);
}

TEST(nothing_is_left_open)
{
	const char *name = unique("leak");
	size_t before = open_descriptors();
	struct tshare_region *region, *other;
	int i;

	for (i = 0; i < 10; i++) {
		region = new_region(name);
		CHECK(!tshare_region_open(ctx, name, NULL, &other));
		tshare_region_unref(other);
		CHECK(tshare_region_create(ctx, name, 1, NULL, 0, NULL, &other) == -EEXIST);
		CHECK(!tshare_ctx_unlink(ctx, name));
		tshare_region_unref(region);
	}
	CHECK(open_descriptors() == before);
}

TEST(tensors_leave_nothing_open)
{
	size_t before = open_descriptors();
	struct tshare_tensor *tensor;
	int i;

	for (i = 0; i < 10; i++) {
		tensor = new_tensor(NULL, TSHARE_UINT8, 2, shape_4x8);
		CHECK(open_descriptors() > before);
		tshare_tensor_unref(tensor);
	}
	CHECK(open_descriptors() == before);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
