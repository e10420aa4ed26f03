// SPDX-License-Identifier: MIT
/* Files that are read into memory which nobody has touched: by writes to its file. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../shm.h"

#define MIB (1UL << 20)

/* Not of whole pages, and of several pieces. */
#define FILE_SIZE (9 * MIB + 4096 + 100)

#define REGION_SIZE (12 * MIB)

static unsigned char *content;

/* What each pwrite() of the process fails with, or 0; and the most that one writes, or 0. */
static atomic_int failure;
static atomic_size_t most;
static atomic_int writes;

/* What happens before the second one, or NULL; in whatever thread that is. */
static void (*_Atomic before_second_write)(void);

/* Stands for the C library's, in the library under test as well. */
ssize_t pwrite(int fd, const void *buf, size_t nbytes, off_t offset)
{
	size_t limit = atomic_load(&most);

	void (*now)(void) = atomic_load(&before_second_write);

	if (atomic_fetch_add(&writes, 1) && now)
		now();
	errno = atomic_load(&failure);
	/* A signal interrupts one call. */
	if (errno == EINTR)
		atomic_store(&failure, 0);
	if (limit && nbytes > limit)
		nbytes = limit;
	return errno ? -1 : syscall(SYS_pwrite64, fd, buf, nbytes, offset);
}

static int new_file(void)
{
	int fd = memfd_create("content", MFD_CLOEXEC);

	CHECK(fd >= 0);
	if (!content)
		content = new_content(FILE_SIZE);
	write_all(fd, content, FILE_SIZE);
	return fd;
}

/* In small pages: huge ones have been zeroed, and a disk reads into them directly. */
static struct tshare_region *new_memory(const char *name)
{
	struct tshare_region *region;

	CHECK(!prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
	CHECK(!tshare_region_create(ctx, name, REGION_SIZE, NULL, 0, NULL, &region));
	CHECK(!prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0));
	return region;
}

/* Whether the region has the file at @offset, and nothing else. */
static bool has_content(struct tshare_region *region, size_t offset)
{
	const unsigned char *data = tshare_region_get_data(region);

	return !memcmp(data + offset, content, FILE_SIZE) && all_zero(data, offset) &&
	       all_zero(data + offset + FILE_SIZE, REGION_SIZE - offset - FILE_SIZE);
}

static void check_read(size_t offset)
{
	struct tshare_region *region = new_memory(NULL);
	int fd = new_file();

	CHECK(!tshare_region_read(region, fd, 0, offset, FILE_SIZE, NULL));
	CHECK(has_content(region, offset));
	close(fd);
	tshare_region_unref(region);
}

static size_t mapped_pages(const void *data, size_t size)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	size_t i, found = 0;
	uint64_t entry;

	CHECK(fd >= 0);
	for (i = 0; i < size / page; i++) {
		CHECK(pread(fd, &entry, sizeof(entry),
			    ((uintptr_t)data / page + i) * sizeof(entry)) == sizeof(entry));
		found += entry >> 63;
	}
	close(fd);
	return found;
}

/* A directory that is mounted with "huge=" has others, which are touched: see has_small_pages(). */
static bool has_small_pages(struct tshare_region *region)
{
	struct stat file;

	CHECK(!fstat(tshare_region_get_fd(region), &file));
	return file.st_blksize <= sysconf(_SC_PAGESIZE);
}

TEST(read_into_new_memory_touches_next_to_none_of_it)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	struct tshare_region *region = new_memory(NULL);
	int fd = new_file();

	CHECK(!tshare_region_read(region, fd, 0, 0, FILE_SIZE, NULL));
	CHECK(!has_small_pages(region) ||
	      mapped_pages(tshare_region_get_data(region), REGION_SIZE) < FILE_SIZE / page / 4);
	CHECK(has_content(region, 0));
	close(fd);
	tshare_region_unref(region);
}

TEST(read_into_used_memory_writes_the_mapping)
{
	struct tshare_region *region = new_memory(NULL);
	int fd = new_file();

	memset(tshare_region_get_data(region), 1, REGION_SIZE);
	memset(tshare_region_get_data(region), 0, REGION_SIZE);
	atomic_store(&writes, 0);
	CHECK(!tshare_region_read(region, fd, 0, 4096, FILE_SIZE, NULL));
	CHECK(!atomic_load(&writes));
	CHECK(has_content(region, 4096));
	close(fd);
	tshare_region_unref(region);
}

TEST(read_into_huge_pages_writes_the_mapping)
{
	struct tshare_region *region;
	int fd = new_file();

	if (!makes_huge_pages())
		SKIP("the kernel makes no huge pages of shared memory");
	CHECK(!tshare_region_create(ctx, NULL, REGION_SIZE, NULL, 0, NULL, &region));
	atomic_store(&writes, 0);
	CHECK(!tshare_region_read(region, fd, 0, 0, FILE_SIZE, NULL));
	CHECK(!atomic_load(&writes));
	CHECK(has_content(region, 0));
	close(fd);
	tshare_region_unref(region);
}

TEST(read_into_new_memory_begins_and_ends_inside_pages)
{
	check_read(12345);
}

TEST(read_into_a_file_that_may_not_be_written_brings_all)
{
	struct tshare_region *region = new_memory(NULL);
	int fd = new_file();

	atomic_store(&failure, EPERM);
	CHECK(!tshare_region_read(region, fd, 0, 1, FILE_SIZE, NULL));
	atomic_store(&failure, 0);
	CHECK(has_content(region, 1));
	close(fd);
	tshare_region_unref(region);
}

TEST(read_goes_on_after_a_short_or_interrupted_write)
{
	struct tshare_region *region = new_memory(NULL);
	int fd = new_file();

	atomic_store(&most, 100001);
	atomic_store(&failure, EINTR);
	CHECK(!tshare_region_read(region, fd, 0, 4096, FILE_SIZE, NULL));
	CHECK(!atomic_load(&failure));
	atomic_store(&most, 0);
	CHECK(has_content(region, 4096));
	close(fd);
	tshare_region_unref(region);
}

static void lower_the_limit(void)
{
	/* Inside of what is written at a time. */
	const struct rlimit limit = { (5 << 20) + 1000, (5 << 20) + 1000 };

	setrlimit(RLIMIT_FSIZE, &limit);
}

static int read_with_a_limit(void *region)
{
	/* The library's own threads would block the signal. */
	const struct tshare_read_options alone = { .size = sizeof(alone), .threads = 1 };
	int fd = new_file();

	/* A parent in Python may have ignored it. */
	signal(SIGXFSZ, SIG_DFL);
	if (!atomic_load(&before_second_write))
		lower_the_limit();
	return tshare_region_read(region, fd, 0, 0, FILE_SIZE, &alone) || !has_content(region, 0);
}

TEST(read_beyond_the_limit_of_files_is_no_signal)
{
	struct tshare_region *region = new_memory(NULL);

	CHECK(!in_child(read_with_a_limit, region));
	tshare_region_unref(region);
}

TEST(read_beyond_a_limit_of_files_that_is_lowered_is_no_signal)
{
	struct tshare_region *region = new_memory(NULL);

	atomic_store(&writes, 0);
	atomic_store(&before_second_write, lower_the_limit);
	CHECK(!in_child(read_with_a_limit, region));
	atomic_store(&before_second_write, NULL);
	tshare_region_unref(region);
}

static int read_with_the_signal_pending(void *region)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGXFSZ);
	if (sigprocmask(SIG_BLOCK, &signals, NULL) || raise(SIGXFSZ) || read_with_a_limit(region))
		return 1;
	return sigpending(&signals) || !sigismember(&signals, SIGXFSZ);
}

TEST(read_beyond_the_limit_of_files_leaves_a_signal_that_was_pending)
{
	struct tshare_region *region = new_memory(NULL);

	CHECK(!in_child(read_with_the_signal_pending, region));
	tshare_region_unref(region);
}

TEST(read_by_a_descriptor_that_appends_is_in_its_place)
{
	struct tshare_region *region = new_memory("appended"), *imported;
	int fd = new_file(), appending = open(path_of("appended"), O_RDWR | O_APPEND | O_CLOEXEC);
	struct stat before, after;

	CHECK(appending >= 0 && !fstat(appending, &before));
	CHECK(!tshare_region_import(ctx, appending, 0, &imported));
	CHECK(!tshare_region_read(imported, fd, 0, 0, FILE_SIZE, NULL));
	CHECK(!fstat(appending, &after));
	CHECK(after.st_size == before.st_size);
	CHECK(has_content(region, 0));
	close(appending);
	close(fd);
	tshare_region_unref(imported);
	tshare_region_unref(region);
}

static struct tshare_region *target;

static void append_from_now_on(void)
{
	int fd = tshare_region_get_fd(target);

	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_APPEND);
}

TEST(read_by_a_descriptor_that_begins_to_append_is_in_its_place)
{
	struct tshare_region *region = new_memory("appending");
	struct stat before, after;
	int fd = new_file();

	target = region;
	atomic_store(&writes, 0);
	atomic_store(&before_second_write, append_from_now_on);
	CHECK(!fstat(tshare_region_get_fd(region), &before));
	CHECK(!tshare_region_read(region, fd, 0, 0, FILE_SIZE, NULL));
	atomic_store(&before_second_write, NULL);
	CHECK(!fstat(tshare_region_get_fd(region), &after));
	CHECK(after.st_size == before.st_size);
	CHECK(has_content(region, 0));
	close(fd);
	tshare_region_unref(region);
}

int main(void)
{
	return shm_main();
}
