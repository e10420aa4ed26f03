// SPDX-License-Identifier: MIT
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm.h"

char directory[] = "/dev/shm/tshare-test-XXXXXX";

const char *home_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/tshare.%s", directory, name);
	return path;
}

const char *path_of(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/region", home_of(name));
	return path;
}

const char *next_of(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/next", home_of(name));
	return path;
}

const char *hidden_home(void)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/.tshare.0123456789abcdef", directory);
	return path;
}

bool exists_at(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

bool has_home(const char *name)
{
	return exists_at(home_of(name));
}

bool has_file(const char *name)
{
	return exists_at(path_of(name));
}

struct tshare_region *new_victim(const char *name)
{
	static const int64_t shape[] = { 4, 8 };
	struct tshare_spec spec = SPEC("t", TSHARE_UINT8, 2, shape, NULL, 0);
	struct tshare_region *region;

	CHECK(!tshare_region_create(ctx, name, 0, &spec, 1, NULL, &region));
	return region;
}

void write_at(const char *name, off_t offset, const void *bytes, size_t size)
{
	int fd = open(path_of(name), O_WRONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK(pwrite(fd, bytes, size, offset) == (ssize_t)size);
	close(fd);
}

/* A page that is there shows it: Linux 6.1 makes a huge one, and calls that an error. */
bool makes_huge_pages(void)
{
	const size_t huge = limits_of(ctx).huge_page_size, page = sysconf(_SC_PAGESIZE);
	int fd = memfd_create("probe", MFD_CLOEXEC);
	struct stat file;
	char *start;

	CHECK(fd >= 0 && !ftruncate(fd, huge) && !posix_fallocate(fd, 0, page));
	start = mmap(NULL, 2 * huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(start != MAP_FAILED);
	CHECK(mmap(start + (-(uintptr_t)start & (huge - 1)), huge, PROT_READ,
		   MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
	syscall(SYS_madvise, start + (-(uintptr_t)start & (huge - 1)), huge, MADV_COLLAPSE);
	munmap(start, 2 * huge);
	CHECK(!fstat(fd, &file));
	close(fd);
	return (uint64_t)file.st_blocks * 512 >= huge;
}

int ignore(const struct tshare_region_info *info, void *data)
{
	(void)info;
	(void)data;
	return 0;
}

int mount_silent_fuse(const char *path)
{
	static const char format[] = "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other";
	int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[96];

	snprintf(options, sizeof(options), format, device);
	if (device < 0 || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -1;
	return mount("fuse", path, "fuse", 0, options) ? -1 : device;
}

int shm_main(void)
{
	int status;

	if (!mkdtemp(directory) || setenv("TSHARE_SHM_DIR", directory, 1) ||
	    setenv("TSHARE_BACKEND", "shm", 1))
		return 1;
	status = tap_main(open_context, close_context);
	if (rmdir(directory)) {
		printf("# %s: %s\n", directory, strerror(errno));
		status = 1;
	}
	return status;
}
