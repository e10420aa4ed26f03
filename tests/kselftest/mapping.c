// SPDX-License-Identifier: GPL-2.0-only
/* Large page table entries, operations on mappings, and get_user_pages(). */
#include <sys/personality.h>
#include <sys/uio.h>

#include "harness.h"
#include "proc.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define SIZE (8 * MIB)

FIXTURE(mapping)
{
	int dev;
	int fd;
	bool huge;
	char *mem;
};

FIXTURE_SETUP(mapping)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->huge = maps_huge_pages(self->dev);
	self->fd = create(self->dev, SIZE, NULL);
	ASSERT_LE(0, self->fd);
	self->mem = map_aligned(self->fd, SIZE, RW);
	ASSERT_NE(MAP_FAILED, self->mem);
	fill(self->mem, SIZE, 1);
}

FIXTURE_TEARDOWN(mapping)
{
	munmap(self->mem, SIZE);
	close(self->fd);
	close(self->dev);
}

static long status(const char *field)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	long kib = -1;

	while (file && kib < 0 && fgets(line, sizeof(line), file))
		if (!strncmp(line, field, strlen(field)))
			sscanf(line + strlen(field), ": %ld", &kib);
	if (file)
		fclose(file);
	return kib < 0 ? -1 : kib * 1024;
}

TEST_F(mapping, aligned_is_made_of_large_entries)
{
	const size_t size = 64 * MIB;
	int fd = create(self->dev, size, NULL);
	char *mem = map_aligned(fd, size, RW);

	ASSERT_NE(MAP_FAILED, mem);
	if (!self->huge)
		SKIP(return, "QUERY says that mappings are made of pages");
	fill(mem, size, 1);
	EXPECT_EQ(size, smaps(mem, "FilePmdMapped"));
	EXPECT_EQ(size, smaps(mem, "Rss"));
}

TEST_F(mapping, read_only_is_made_of_large_entries)
{
	int fd = open_id(self->dev, id_of(self->dev, self->fd), 0);
	char *mem = map_aligned(fd, SIZE, PROT_READ);

	ASSERT_NE(MAP_FAILED, mem);
	if (!self->huge)
		SKIP(return, "QUERY says that mappings are made of pages");
	EXPECT_TRUE(filled(mem, SIZE, 1));
	EXPECT_EQ(SIZE, smaps(mem, "FilePmdMapped"));
}

TEST_F(mapping, single_folio_is_a_large_entry)
{
	int fd = create(self->dev, 2 * MIB, NULL);
	char *mem = map_aligned(fd, 2 * MIB, RW);

	ASSERT_NE(MAP_FAILED, mem);
	if (!self->huge)
		SKIP(return, "QUERY says that mappings are made of pages");
	*mem = 1;
	EXPECT_EQ(2 * MIB, smaps(mem, "FilePmdMapped"));
}

TEST_F(mapping, tail_is_made_of_pages)
{
	int fd = create(self->dev, 4 * MIB + 3 * PAGE, NULL);
	char *mem = map_aligned(fd, 4 * MIB + 3 * PAGE, RW);

	ASSERT_NE(MAP_FAILED, mem);
	fill(mem, 4 * MIB + 3 * PAGE, 2);
	EXPECT_EQ(self->huge ? 4 * MIB : 0, smaps(mem, "FilePmdMapped"));
	EXPECT_EQ(4 * MIB + 3 * PAGE, smaps(mem, "Rss"));
	EXPECT_TRUE(filled(mem, 4 * MIB + 3 * PAGE, 2));
}

TEST_F(mapping, counts_as_resident_file_memory)
{
	long before = status("RssFile"), after;
	char *mem = map_aligned(self->fd, SIZE, RW);

	ASSERT_NE(MAP_FAILED, mem);
	EXPECT_TRUE(filled(mem, SIZE, 1));
	after = status("RssFile");
	EXPECT_LE(before + (long)SIZE, after);
	munmap(mem, SIZE);
	/* Pages of the program's own file may come and go. */
	EXPECT_GE(before + (long)MIB, status("RssFile"));
	EXPECT_EQ(0, status("RssShmem"));
}

TEST_F(mapping, misaligned_shows_the_same)
{
	char *area = mmap(NULL, SIZE + 4 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *mem = (char *)(((uintptr_t)area + 2 * MIB) & ~(2 * MIB - 1)) + 5 * PAGE;

	mem = mmap(mem, SIZE, RW, MAP_SHARED | MAP_FIXED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, mem);
	EXPECT_TRUE(filled(mem, SIZE, 1));
	EXPECT_EQ(0, smaps(mem, "FilePmdMapped"));
	fill(mem, SIZE, 2);
	EXPECT_TRUE(filled(self->mem, SIZE, 2));
}

TEST_F(mapping, hole_leaves_the_rest)
{
	ASSERT_EQ(0, munmap(self->mem + 3 * MIB, PAGE));
	EXPECT_TRUE(filled(self->mem, 3 * MIB, 1));
	EXPECT_EQ(0, memcmp(self->mem + 3 * MIB + PAGE,
			    (char *)map(self->fd, SIZE, PROT_READ) + 3 * MIB + PAGE,
			    5 * MIB - PAGE));
	EXPECT_EQ(pattern(1, (3 * MIB + PAGE) / 8), *(__u64 *)(self->mem + 3 * MIB + PAGE));
}

TEST_F(mapping, one_page_can_be_protected_and_freed_again)
{
	char *page = self->mem + 3 * MIB;

	ASSERT_EQ(0, mprotect(page, PAGE, PROT_READ));
	EXPECT_TRUE(filled(self->mem, SIZE, 1));
	ASSERT_EQ(0, mprotect(page, PAGE, PROT_NONE));
	EXPECT_TRUE(filled(self->mem, 3 * MIB, 1));
	ASSERT_EQ(0, mprotect(page, PAGE, RW));
	EXPECT_TRUE(filled(self->mem, SIZE, 1));
	fill(self->mem, SIZE, 2);
	EXPECT_TRUE(filled(map(self->fd, SIZE, PROT_READ), SIZE, 2));
}

TEST_F(mapping, all_can_be_protected_and_freed_again)
{
	ASSERT_EQ(0, mprotect(self->mem, SIZE, PROT_READ));
	EXPECT_TRUE(filled(self->mem, SIZE, 1));
	ASSERT_EQ(0, mprotect(self->mem, SIZE, RW));
	fill(self->mem, SIZE, 2);
	EXPECT_TRUE(filled(self->mem, SIZE, 2));
}

static int store_in_second_page(void *arg)
{
	((volatile char *)arg)[PAGE] = 1;
	return 0;
}

TEST_F(mapping, store_to_a_protected_page_is_sigsegv)
{
	ASSERT_EQ(0, mprotect(self->mem + PAGE, PAGE, PROT_READ));
	EXPECT_EQ(-SIGSEGV, in_child(store_in_second_page, self->mem));
	ASSERT_EQ(0, mprotect(self->mem + PAGE, PAGE, RW));
	EXPECT_EQ(0, in_child(store_in_second_page, self->mem));
}

TEST_F(mapping, executable_is_eperm)
{
	int ro = open_id(self->dev, id_of(self->dev, self->fd), 0);

	ASSERT_LE(0, ro);
	EXPECT_EQ(MAP_FAILED, map(self->fd, SIZE, RW | PROT_EXEC));
	EXPECT_EQ(EPERM, errno);
	EXPECT_EQ(MAP_FAILED, map(ro, SIZE, PROT_READ | PROT_EXEC));
	EXPECT_EQ(EPERM, errno);
	EXPECT_EQ(MAP_FAILED, map(ro, SIZE, PROT_EXEC));
	EXPECT_EQ(EPERM, errno);
}

TEST_F(mapping, mprotect_to_executable_is_eacces)
{
	EXPECT_EQ(-1, mprotect(self->mem, SIZE, PROT_READ | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(-1, mprotect(self->mem + PAGE, PAGE, PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
}

static int run(void *code)
{
	((void (*)(void))code)();
	return 0;
}

/* As `setarch -X` sets it: mmap() for reading then implies execution. */
TEST_F(mapping, of_programs_that_may_execute_what_they_read_is_not_executable)
{
	unsigned char *mem;
	int before;

	before = personality(0xffffffff);
	ASSERT_LE(0, before);
	ASSERT_LE(0, personality(before | READ_IMPLIES_EXEC));
	mem = map(self->fd, SIZE, RW);
	ASSERT_NE(MAP_FAILED, mem);
	mem[0] = 0xc3; /* ret */
	EXPECT_EQ(-SIGSEGV, in_child(run, mem));
	EXPECT_EQ(0, mprotect(mem, SIZE, PROT_READ));
	EXPECT_EQ(-SIGSEGV, in_child(run, mem));
}

TEST_F(mapping, advice_never_changes_the_content)
{
	static const int advice[] = {
		MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DONTNEED,
		MADV_FREE, MADV_REMOVE, MADV_DONTFORK, MADV_DOFORK, MADV_MERGEABLE,
		MADV_UNMERGEABLE, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_DONTDUMP, MADV_DODUMP,
		MADV_WIPEONFORK, MADV_KEEPONFORK, MADV_COLD, MADV_PAGEOUT, MADV_POPULATE_READ,
		MADV_POPULATE_WRITE, MADV_COLLAPSE,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(advice); i++) {
		madvise(self->mem, SIZE, advice[i]);
		EXPECT_TRUE(filled(self->mem, SIZE, 1)) {
			TH_LOG("advice %d", advice[i]);
		}
		/* A part of a large entry, and of two. */
		madvise(self->mem + PAGE, PAGE, advice[i]);
		madvise(self->mem + 2 * MIB - PAGE, 2 * PAGE, advice[i]);
		EXPECT_TRUE(filled(self->mem, SIZE, 1)) {
			TH_LOG("advice %d for a part", advice[i]);
		}
	}
}

TEST_F(mapping, can_be_populated_ahead)
{
	char *mem = mmap(NULL, SIZE, RW, MAP_SHARED | MAP_POPULATE, self->fd, 0);

	ASSERT_NE(MAP_FAILED, mem);
	EXPECT_EQ(SIZE, smaps(mem, "Rss"));
	EXPECT_TRUE(filled(mem, SIZE, 1));
}

TEST_F(mapping, can_be_locked)
{
	EXPECT_EQ(0, mlock(self->mem, SIZE));
	EXPECT_EQ(0, munlock(self->mem + PAGE, PAGE));
	EXPECT_EQ(0, mlockall(MCL_CURRENT | MCL_FUTURE));
	EXPECT_TRUE(filled(self->mem, SIZE, 1));
	EXPECT_NE(MAP_FAILED, map(self->fd, SIZE, RW));
	EXPECT_EQ(0, munlockall());
}

TEST_F(mapping, soft_dirty_bits_can_be_cleared)
{
	ASSERT_TRUE(write_file("/proc/self/clear_refs", "4"));
	fill(self->mem, SIZE, 2);
	ASSERT_TRUE(write_file("/proc/self/clear_refs", "1"));
	EXPECT_TRUE(filled(self->mem, SIZE, 2));
}

TEST_F(mapping, survives_compaction_and_dropped_caches)
{
	ASSERT_TRUE(write_file("/proc/sys/vm/compact_memory", "1"));
	ASSERT_TRUE(write_file("/proc/sys/vm/drop_caches", "3"));
	EXPECT_TRUE(filled(self->mem, SIZE, 1));
}

static int refill(void *mem)
{
	if (!filled(mem, SIZE, 1))
		return 1;
	fill(mem, SIZE, 2);
	return munmap((char *)mem + PAGE, PAGE);
}

TEST_F(mapping, forked_child_may_split_it_for_itself)
{
	EXPECT_EQ(0, in_child(refill, self->mem));
	EXPECT_TRUE(filled(self->mem, SIZE, 2));
}

/* get_user_pages(), through two of its callers */

static int open_scratch(const char *name, int flags)
{
	const char *scratch = getenv("TSHARE_SCRATCH");
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", scratch ?: "", name);
	return scratch ? open(path, O_RDWR | O_CREAT | flags, 0600) : -1;
}

TEST_F(mapping, direct_io_writes_from_it_and_reads_into_it)
{
	int direct = open_scratch("direct", O_DIRECT), buffered;
	char *copy;

	if (direct < 0)
		SKIP(return, "no TSHARE_SCRATCH with O_DIRECT: %s", strerror(errno));
	ASSERT_EQ(SIZE, pwrite(direct, self->mem, SIZE, 0));
	buffered = open_scratch("direct", 0);
	copy = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, buffered, 0);
	ASSERT_NE(MAP_FAILED, copy);
	EXPECT_TRUE(filled(copy, SIZE, 1));
	munmap(copy, SIZE);

	memset(self->mem, 0, SIZE);
	ASSERT_EQ(SIZE, pread(direct, self->mem, SIZE, 0));
	EXPECT_TRUE(filled(self->mem, SIZE, 1));
	/* At a page in the middle of a large entry. */
	memset(self->mem, 0, SIZE);
	ASSERT_EQ(PAGE, pread(direct, self->mem + 3 * MIB + PAGE, PAGE, 0));
	EXPECT_TRUE(filled(self->mem + 3 * MIB + PAGE, PAGE, 1));
	EXPECT_EQ(0, self->mem[3 * MIB + 2 * PAGE]);
}

TEST_F(mapping, direct_io_into_a_read_only_one_is_efault)
{
	int direct = open_scratch("direct", O_DIRECT);
	int fd = open_id(self->dev, id_of(self->dev, self->fd), 0);
	char *mem = map_aligned(fd, SIZE, PROT_READ);

	if (direct < 0)
		SKIP(return, "no TSHARE_SCRATCH with O_DIRECT: %s", strerror(errno));
	ASSERT_NE(MAP_FAILED, mem);
	ASSERT_EQ(SIZE, pwrite(direct, mem, SIZE, 0));
	EXPECT_EQ(-1, pread(direct, mem, SIZE, 0));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_TRUE(filled(self->mem, SIZE, 1));
}

TEST_F(mapping, other_processes_may_copy_from_and_to_it)
{
	char *copy = malloc(SIZE);
	struct iovec local = { .iov_base = copy, .iov_len = SIZE };
	struct iovec remote = { .iov_base = self->mem, .iov_len = SIZE };

	ASSERT_NE(NULL, copy);
	ASSERT_EQ(SIZE, process_vm_readv(getpid(), &local, 1, &remote, 1, 0));
	EXPECT_TRUE(filled(copy, SIZE, 1));
	fill(copy, SIZE, 2);
	ASSERT_EQ(SIZE, process_vm_writev(getpid(), &local, 1, &remote, 1, 0));
	EXPECT_TRUE(filled(self->mem, SIZE, 2));
	free(copy);
}

TEST_F(mapping, proc_mem_reads_and_writes_it)
{
	int mem = open("/proc/self/mem", O_RDWR);
	__u64 word = 42;

	ASSERT_LE(0, mem);
	EXPECT_EQ(sizeof(word), pwrite(mem, &word, sizeof(word), (off_t)self->mem + MIB));
	EXPECT_EQ(42, *(volatile __u64 *)(self->mem + MIB));
}

TEST_F(mapping, is_not_in_core_dumps)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	unsigned long start, end;
	bool here = false, found = false;
	char line[512];

	ASSERT_NE(NULL, file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			here = start == (unsigned long)self->mem;
		else if (here && !strncmp(line, "VmFlags:", 8))
			found = strstr(line, " dd") && strstr(line, " de") &&
				!strstr(line, " mm") && !strstr(line, " pf");
	}
	fclose(file);
	EXPECT_TRUE(found);
}

TEST_HARNESS_MAIN
