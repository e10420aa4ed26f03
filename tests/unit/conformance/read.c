// SPDX-License-Identifier: MIT
/* Files that are read into a region. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "../util.h"

#define MIB (1UL << 20)

/* Not of whole pages, and of several pieces for several threads. */
#define FILE_SIZE (13 * MIB + 4096 + 100)

#define REGION_SIZE (16 * MIB)

static unsigned char *content;

/* What each pread() of the process fails with, or 0. */
static atomic_int failure;

/* Stands for the C library's, in the library under test as well. */
ssize_t pread(int fd, void *buf, size_t nbytes, off_t offset)
{
	errno = atomic_load(&failure);
	/* A signal interrupts one call, and what refuses direct reads is asked once. */
	if (errno == EINTR || errno == EINVAL)
		atomic_store(&failure, 0);
	return errno ? -1 : syscall(SYS_pread64, fd, buf, nbytes, offset);
}

/* A file in this directory, which is on a disk if the tree is, with FILE_SIZE bytes of @content. */
static int new_file(void)
{
	char path[] = "read-XXXXXX";
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	CHECK(!unlink(path));
	if (!content)
		content = new_content(FILE_SIZE);
	write_all(fd, content, FILE_SIZE);
	return fd;
}

static struct tshare_region *new_memory(void)
{
	struct tshare_region *region;

	CHECK(!tshare_region_create(ctx, NULL, REGION_SIZE, NULL, 0, NULL, &region));
	return region;
}

/* How many pages of the file the page cache holds. */
static size_t cached_pages(int fd)
{
	static unsigned char resident[FILE_SIZE / 4096 + 2];
	size_t page = sysconf(_SC_PAGESIZE), pages = (FILE_SIZE + page - 1) / page, found = 0, i;
	void *data = mmap(NULL, FILE_SIZE, PROT_READ, MAP_SHARED, fd, 0);

	CHECK(data != MAP_FAILED);
	CHECK(!mincore(data, FILE_SIZE, resident));
	munmap(data, FILE_SIZE);
	for (i = 0; i < pages; i++)
		found += resident[i] & 1;
	return found;
}

static void empty_cache(int fd)
{
	CHECK(!fsync(fd));
	CHECK(!posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
}

/* Reads [file_offset, +length) to @offset, and checks that it is there and nothing else. */
static void check_part(const struct tshare_read_options *options, uint64_t file_offset,
		       uint64_t offset, uint64_t length)
{
	struct tshare_region *region = new_memory();
	unsigned char *data = tshare_region_get_data(region);
	int fd = new_file();

	empty_cache(fd);
	CHECK(!tshare_region_read(region, fd, file_offset, offset, length, options));
	CHECK(!memcmp(data + offset, content + file_offset, length));
	CHECK(all_zero(data, offset));
	CHECK(all_zero(data + offset + length, REGION_SIZE - offset - length));
	close(fd);
	tshare_region_unref(region);
}

static const struct tshare_read_options direct = {
	.size = sizeof(direct),
	.flags = TSHARE_DIRECT,
};

TEST(read_brings_a_whole_file)
{
	check_part(NULL, 0, 0, FILE_SIZE);
}

TEST(read_brings_a_part_to_any_place)
{
	check_part(NULL, 4097, 3, 9 * MIB + 1);
}

TEST(direct_read_brings_a_whole_file)
{
	check_part(&direct, 0, 2 * MIB, FILE_SIZE);
}

TEST(direct_read_brings_a_part_that_begins_and_ends_inside_blocks)
{
	check_part(&direct, 4096 + 7, 8192 + 7, 9 * MIB);
}

TEST(direct_read_brings_a_part_that_lies_in_one_block)
{
	check_part(&direct, 5000, 904, 100);
}

TEST(direct_read_brings_what_can_not_be_read_directly)
{
	check_part(&direct, 4096, 1, 9 * MIB);
}

TEST(read_takes_any_number_of_threads)
{
	struct tshare_read_options options = { .size = sizeof(options) };

	for (options.threads = 0; options.threads <= 64; options.threads += 16)
		check_part(&options, 0, 0, FILE_SIZE);
	options.threads = 1;
	check_part(&options, 0, 0, FILE_SIZE);
}

TEST(read_of_nothing_writes_nothing)
{
	check_part(NULL, FILE_SIZE, REGION_SIZE, 0);
}

/* Not where the file system keeps files in nothing but the page cache. */
static void need_disk(int fd)
{
	empty_cache(fd);
	if (cached_pages(fd))
		SKIP("the file system keeps all files in memory");
}

TEST(direct_read_leaves_the_page_cache_as_it_is)
{
	struct tshare_region *region = new_memory();
	int fd = new_file();

	need_disk(fd);
	CHECK(!tshare_region_read(region, fd, 0, 0, FILE_SIZE, &direct));
	CHECK(!cached_pages(fd));
	CHECK(!tshare_region_read(region, fd, 0, 0, FILE_SIZE, NULL));
	CHECK(cached_pages(fd) > FILE_SIZE / 4096 / 2);
	close(fd);
	tshare_region_unref(region);
}

TEST(direct_read_leaves_in_the_page_cache_what_is_there)
{
	struct tshare_region *region = new_memory();
	int fd = new_file();
	size_t cached;

	CHECK(!fsync(fd));
	CHECK(!tshare_region_read(region, fd, 0, 0, FILE_SIZE, NULL));
	cached = cached_pages(fd);
	CHECK(cached > FILE_SIZE / 4096 / 2);
	CHECK(!tshare_region_read(region, fd, 0, 0, FILE_SIZE, &direct));
	CHECK(!memcmp(tshare_region_get_data(region), content, FILE_SIZE));
	CHECK(cached_pages(fd) == cached);
	close(fd);
	tshare_region_unref(region);
}

/* The first page of a piece, which is there, says nothing of the others. */
TEST(direct_read_of_a_piece_that_is_partly_cached_caches_no_more)
{
	struct tshare_region *region = new_memory();
	int fd = new_file();
	size_t cached;
	char byte;

	need_disk(fd);
	CHECK(!posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM));
	CHECK(pread(fd, &byte, 1, 0) == 1);
	cached = cached_pages(fd);
	CHECK(cached && cached < 64);
	CHECK(!tshare_region_read(region, fd, 0, 0, FILE_SIZE, &direct));
	CHECK(cached_pages(fd) <= cached);
	close(fd);
	tshare_region_unref(region);
}

TEST(direct_read_of_a_part_leaves_nothing_of_its_ends_in_the_page_cache)
{
	struct tshare_region *region = new_memory();
	int fd = new_file();

	need_disk(fd);
	CHECK(!tshare_region_read(region, fd, 5 * MIB + 100, 100, 4 * MIB, &direct));
	CHECK(!cached_pages(fd));
	close(fd);
	tshare_region_unref(region);
}

TEST(read_neither_uses_nor_moves_the_file_s_position)
{
	struct tshare_region *region = new_memory();
	int fd = new_file();

	CHECK(lseek(fd, 77, SEEK_SET) == 77);
	CHECK(!tshare_region_read(region, fd, 0, 0, FILE_SIZE, &direct));
	CHECK(lseek(fd, 0, SEEK_CUR) == 77);
	CHECK(!(fcntl(fd, F_GETFL) & O_DIRECT));
	CHECK(!memcmp(tshare_region_get_data(region), content, FILE_SIZE));
	close(fd);
	tshare_region_unref(region);
}

TEST(read_leaves_no_descriptor)
{
	struct tshare_region *region = new_memory();
	int fd = new_file();
	size_t before = open_descriptors();

	CHECK(!tshare_region_read(region, fd, 0, 0, FILE_SIZE, &direct));
	CHECK(open_descriptors() == before);
	close(fd);
	tshare_region_unref(region);
}

TEST(read_that_the_disk_does_not_do_directly_leaves_no_descriptor)
{
	struct tshare_read_options options = direct;
	struct tshare_region *region = new_memory();
	int fd = new_file();
	size_t before = open_descriptors();

	need_disk(fd);
	options.threads = 1;
	atomic_store(&failure, EINVAL);
	CHECK(!tshare_region_read(region, fd, 0, 0, FILE_SIZE, &options));
	CHECK(!atomic_load(&failure));
	CHECK(!memcmp(tshare_region_get_data(region), content, FILE_SIZE));
	CHECK(open_descriptors() == before);
	close(fd);
	tshare_region_unref(region);
}

static size_t count_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	size_t count = 0;
	int byte;

	CHECK(maps);
	while ((byte = getc(maps)) != EOF)
		count += byte == '\n';
	fclose(maps);
	return count;
}

/* From the second one on: threads keep their stacks. */
TEST(read_leaves_no_mapping)
{
	struct tshare_region *region = new_memory();
	int fd = new_file(), i;
	size_t before;

	CHECK(!tshare_region_read(region, fd, 0, 0, FILE_SIZE, &direct));
	before = count_mappings();
	for (i = 0; i < 10; i++)
		CHECK(!tshare_region_read(region, fd, 0, 0, FILE_SIZE, &direct));
	CHECK(count_mappings() < before + 10);
	close(fd);
	tshare_region_unref(region);
}

TEST(read_of_a_shorter_file_is_enodata)
{
	struct tshare_region *region = new_memory();
	int fd = new_file();

	CHECK(tshare_region_read(region, fd, 0, 0, FILE_SIZE + 1, NULL) == -ENODATA);
	CHECK(error_says("length: the file ends before byte"));
	CHECK(tshare_region_read(region, fd, 0, 0, FILE_SIZE + 1, &direct) == -ENODATA);
	CHECK(tshare_region_read(region, fd, REGION_SIZE, 0, 1, NULL) == -ENODATA);
	close(fd);
	tshare_region_unref(region);
}

TEST(read_outside_of_the_region_is_erange)
{
	struct tshare_region *region = new_memory();
	int fd = new_file();

	CHECK(tshare_region_read(region, fd, 0, REGION_SIZE + 1, 0, NULL) == -ERANGE);
	CHECK(error_says("offset: "));
	CHECK(tshare_region_read(region, fd, 0, REGION_SIZE, 1, NULL) == -ERANGE);
	CHECK(error_says("length: "));
	CHECK(tshare_region_read(region, fd, 0, 4096, UINT64_MAX - 4000, NULL) == -ERANGE);
	CHECK(tshare_region_read(region, fd, UINT64_MAX, 0, 2, NULL) == -EINVAL);
	CHECK(error_says("file_offset: "));
	close(fd);
	tshare_region_unref(region);
}

TEST(read_into_a_readonly_region_is_eacces)
{
	const char *name = unique("read");
	struct tshare_region *region = new_region(name), *readonly;
	int fd = new_file();

	CHECK(!tshare_region_open(ctx, name, &readonly_options, &readonly));
	CHECK(tshare_region_read(readonly, fd, 0, 0, 1, NULL) == -EACCES);
	CHECK(error_says("region: is read-only"));
	close(fd);
	tshare_region_unref(readonly);
	tshare_region_unref(region);
}

TEST(read_of_what_is_no_file_names_the_descriptor)
{
	struct tshare_region *region = new_memory();
	int ends[2], folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK(!pipe2(ends, O_CLOEXEC) && folder >= 0);
	CHECK(tshare_region_read(region, -1, 0, 0, 1, NULL) == -EBADF);
	CHECK(error_says("fd: -1 is not open for reading"));
	CHECK(tshare_region_read(region, ends[1], 0, 0, 1, &direct) < 0);
	CHECK(error_says("fd: "));
	CHECK(tshare_region_read(region, ends[0], 0, 0, 1, NULL) == -ESPIPE);
	CHECK(tshare_region_read(region, folder, 0, 0, 1, &direct) == -EISDIR);
	CHECK(error_says("fd: "));
	/* Not even nothing can be read of it. */
	CHECK(tshare_region_read(region, -1, 0, 0, 0, NULL) == -EBADF);
	CHECK(tshare_region_read(region, ends[0], 0, 0, 0, &direct) == -ESPIPE);
	CHECK(tshare_region_read(region, folder, 0, 0, 0, NULL) == -EISDIR);
	CHECK(error_says("fd: "));
	close(ends[0]);
	close(ends[1]);
	close(folder);
	tshare_region_unref(region);
}

/* To open it once more, for O_DIRECT, would wait for somebody who writes. */
TEST(direct_read_of_a_fifo_does_not_wait)
{
	struct tshare_region *region = new_memory();
	int fd;

	CHECK(!mkfifo("read-fifo", 0600));
	fd = open("read-fifo", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	CHECK(fd >= 0 && !unlink("read-fifo"));
	CHECK(tshare_region_read(region, fd, 0, 0, 1, &direct) == -ESPIPE);
	close(fd);
	tshare_region_unref(region);
}

TEST(read_beyond_any_file_is_einval)
{
	struct tshare_region *region = new_memory();
	int fd = new_file();

	CHECK(tshare_region_read(region, fd, 1ULL << 63, 0, 1, NULL) == -EINVAL);
	CHECK(error_says("file_offset: 9223372036854775808 is beyond any file"));
	CHECK(tshare_region_read(region, fd, INT64_MAX - 10, 0, 11, NULL) == -EINVAL);
	CHECK(error_says("file_offset: 9223372036854775797 is beyond any file"));
	CHECK(tshare_region_read(region, fd, INT64_MAX - 10, 0, 10, NULL) == -ENODATA);
	close(fd);
	tshare_region_unref(region);
}

/* What /proc/self/mem returns where nothing is mapped stands for a disk that fails. */
TEST(read_that_the_system_fails_ends_with_its_errno)
{
	struct tshare_region *region = new_memory();
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	char *memory = mmap(NULL, 16 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(fd >= 0 && memory != MAP_FAILED);
	munmap(memory + 8 * MIB, 8 * MIB);
	CHECK(!tshare_region_read(region, fd, (uintptr_t)memory, 0, 8 * MIB, NULL));
	CHECK(!munmap(memory, 8 * MIB));
	CHECK(tshare_region_read(region, fd, (uintptr_t)memory, 0, 16 * MIB, NULL) == -EIO);
	CHECK(error_says("fd: pread: Input/output error"));
	close(fd);
	tshare_region_unref(region);
}

TEST(read_that_the_disk_fails_is_no_end_of_the_file)
{
	struct tshare_region *region = new_memory();
	int fd = new_file();

	atomic_store(&failure, ENODATA);
	CHECK(tshare_region_read(region, fd, 0, 0, FILE_SIZE, &direct) == -EIO);
	CHECK(error_says("fd: pread: Input/output error"));
	atomic_store(&failure, 0);
	close(fd);
	tshare_region_unref(region);
}

TEST(read_goes_on_after_an_interrupted_call)
{
	struct tshare_region *region = new_memory();
	int fd = new_file();

	atomic_store(&failure, EINTR);
	CHECK(!tshare_region_read(region, fd, 0, 0, FILE_SIZE, NULL));
	CHECK(!atomic_load(&failure));
	CHECK(!memcmp(tshare_region_get_data(region), content, FILE_SIZE));
	close(fd);
	tshare_region_unref(region);
}

TEST(read_that_the_system_cancels_was_not_ended_by_progress)
{
	struct tshare_region *region = new_memory();
	int fd = new_file();

	atomic_store(&failure, ECANCELED);
	CHECK(tshare_region_read(region, fd, 0, 0, FILE_SIZE, NULL) == -EIO);
	CHECK(error_says("fd: pread: Input/output error"));
	atomic_store(&failure, 0);
	close(fd);
	tshare_region_unref(region);
}

TEST(read_rejects_unknown_options)
{
	struct tshare_read_options options = { .size = sizeof(options), .flags = 1U << 31 };
	struct tshare_region *region = new_memory();
	int fd = new_file();

	CHECK(tshare_region_read(region, fd, 0, 0, 1, &options) == -EINVAL);
	CHECK(error_says("options.flags: unknown flag"));
	options.flags = 0;
	options.threads = 65;
	CHECK(tshare_region_read(region, fd, 0, 0, 1, &options) == -EINVAL);
	CHECK(error_says("options.threads: 65 are more than 64"));
	options.threads = 0;
	options.size = 0;
	CHECK(tshare_region_read(region, fd, 0, 0, 1, &options) == -EINVAL);
	CHECK(error_says("options.size"));
	close(fd);
	tshare_region_unref(region);
}

struct reports {
	pthread_t thread;
	uint64_t last;
	int count;
	int end_after;
	bool wrong;
};

static int note(void *data, uint64_t done)
{
	struct reports *reports = data;

	reports->wrong |= done < reports->last || !pthread_equal(reports->thread, pthread_self());
	reports->last = done;
	return ++reports->count == reports->end_after;
}

TEST(progress_is_reported_in_the_caller_s_thread)
{
	struct reports reports = { .thread = pthread_self() };
	struct tshare_read_options options = {
		.size = sizeof(options),
		.progress = note,
		.data = &reports,
	};

	check_part(&options, 0, 0, FILE_SIZE);
	CHECK(!reports.wrong && reports.count > 0);
	CHECK(reports.last == FILE_SIZE);
}

TEST(progress_can_end_the_read)
{
	struct reports reports = { .thread = pthread_self(), .end_after = 1 };
	struct tshare_read_options options = {
		.size = sizeof(options),
		.threads = 1,
		.progress = note,
		.data = &reports,
	};
	struct tshare_region *region = new_memory();
	int fd = new_file();

	CHECK(tshare_region_read(region, fd, 0, 0, FILE_SIZE, &options) == -ECANCELED);
	CHECK(error_says("progress: "));
	CHECK(reports.count == 1 && reports.last < FILE_SIZE);
	close(fd);
	tshare_region_unref(region);
}

static atomic_int handled;

static void count_signal(int number)
{
	(void)number;
	atomic_fetch_add(&handled, 1);
}

TEST(read_goes_on_after_a_signal)
{
	struct itimerval timer = { .it_interval.tv_usec = 200, .it_value.tv_usec = 200 };
	struct sigaction action = { .sa_handler = count_signal }; /* no SA_RESTART */

	atomic_store(&handled, 0);
	CHECK(!sigaction(SIGALRM, &action, NULL));
	CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
	while (atomic_load(&handled) < 20)
		check_part(&direct, 0, 0, FILE_SIZE);
	timer = (struct itimerval){ 0 };
	CHECK(!setitimer(ITIMER_REAL, &timer, NULL));
}

struct cancelled {
	struct tshare_region *region;
	int fd;
	bool done;
};

static void *read_and_be_cancelled(void *data)
{
	struct cancelled *cancelled = data;

	pthread_cancel(pthread_self());
	cancelled->done =
		!tshare_region_read(cancelled->region, cancelled->fd, 0, 0, FILE_SIZE, NULL);
	pthread_testcancel();
	return NULL;
}

TEST(read_is_no_cancellation_point)
{
	struct cancelled cancelled = { .region = new_memory(), .fd = new_file() };
	pthread_t thread;
	void *result;

	CHECK(!pthread_create(&thread, NULL, read_and_be_cancelled, &cancelled));
	CHECK(!pthread_join(thread, &result));
	CHECK(cancelled.done && result == PTHREAD_CANCELED);
	CHECK(!memcmp(tshare_region_get_data(cancelled.region), content, FILE_SIZE));
	close(cancelled.fd);
	tshare_region_unref(cancelled.region);
}

int main(void)
{
	return tap_main(open_context, close_context);
}
