// SPDX-License-Identifier: GPL-2.0-only
/* Dma-bufs over a part of a region, and read-only ones made of writable ones. */
#include <pthread.h>

#include "harness.h"
#include "proc.h"
#include "record.h"

#define SIZE (8 * MIB)

FIXTURE(export)
{
	int dev;
	int rw;
	int ro;
	bool huge;
	char *mem;
	struct counters before;
};

FIXTURE_SETUP(export)
{
	self->dev = open_device();
	ASSERT_LE(0, self->dev);
	self->huge = maps_huge_pages(self->dev);
	self->before = count_all();
	self->rw = create(self->dev, SIZE, "ring");
	ASSERT_LE(0, self->rw);
	self->ro = open_name(self->dev, "ring", 0);
	ASSERT_LE(0, self->ro);
	self->mem = map_aligned(self->rw, SIZE, RW);
	ASSERT_NE(MAP_FAILED, self->mem);
	fill(self->mem, SIZE, 1);
}

FIXTURE_TEARDOWN(export)
{
	munmap(self->mem, SIZE);
	close(self->ro);
	close(self->rw);
	close(self->dev);
}

/* Maps @size bytes at an address that is @beyond a multiple of 2 MiB. */
static void *map_beyond(int fd, size_t size, int prot, size_t offset, size_t beyond)
{
	char *area = map_aligned(fd, PAGE, PROT_READ), *mem;

	if (area == MAP_FAILED)
		return area;
	mem = mmap(NULL, size + 4 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		   -1, 0);
	munmap(area, PAGE);
	if (mem == MAP_FAILED)
		return mem;
	mem = (char *)(((uintptr_t)mem + 2 * MIB - 1) & ~(2 * MIB - 1)) + beyond;
	return mmap(mem, size, prot, MAP_SHARED | MAP_FIXED, fd, offset);
}

TEST_F(export, shows_its_pages)
{
	int fd = export_range(self->dev, self->rw, 3 * PAGE, 5 * PAGE, 0);
	char *mem = map(fd, 5 * PAGE, PROT_READ);

	ASSERT_NE(MAP_FAILED, mem);
	EXPECT_EQ(0, memcmp(mem, self->mem + 3 * PAGE, 5 * PAGE));
}

TEST_F(export, mapping_offset_counts_from_its_start)
{
	int fd = export_range(self->dev, self->rw, 3 * PAGE, 5 * PAGE, 0);
	char *mem = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 2 * PAGE);

	ASSERT_NE(MAP_FAILED, mem);
	EXPECT_EQ(0, memcmp(mem, self->mem + 5 * PAGE, 2 * PAGE));
}

TEST_F(export, mapping_beyond_its_end_is_einval)
{
	int fd = export_range(self->dev, self->rw, 3 * PAGE, 5 * PAGE, TSHARE_EXPORT_WRITE);

	ASSERT_LE(0, fd);
	EXPECT_EQ(MAP_FAILED, map(fd, 6 * PAGE, PROT_READ));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 5 * PAGE));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, -PAGE));
	EXPECT_NE(MAP_FAILED, mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 4 * PAGE));
}

TEST_F(export, mapping_can_be_moved_but_not_grown)
{
	int fd = export_range(self->dev, self->rw, 3 * PAGE, 5 * PAGE, 0);
	char *mem = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, PAGE), *moved;

	ASSERT_NE(MAP_FAILED, mem);
	EXPECT_EQ(MAP_FAILED, mremap(mem, 2 * PAGE, 8 * PAGE, MREMAP_MAYMOVE));
	moved = mremap(mem + PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, mem + 64 * MIB);
	ASSERT_NE(MAP_FAILED, moved);
	EXPECT_EQ(0, memcmp(moved, self->mem + 5 * PAGE, PAGE));
}

TEST_F(export, is_written_as_the_region)
{
	int fd = export_range(self->dev, self->rw, 3 * PAGE, 5 * PAGE, TSHARE_EXPORT_WRITE);
	char *mem = map(fd, 5 * PAGE, RW);

	ASSERT_NE(MAP_FAILED, mem);
	fill(mem, 5 * PAGE, 2);
	EXPECT_TRUE(filled(self->mem, 3 * PAGE, 1));
	EXPECT_TRUE(filled(self->mem + 3 * PAGE, 5 * PAGE, 2));
	EXPECT_EQ(pattern(1, 8 * PAGE / 8), *(__u64 *)(self->mem + 8 * PAGE));
}

TEST_F(export, size_is_found_by_seeking)
{
	int fd = export_range(self->dev, self->rw, 3 * PAGE, 5 * PAGE, 0);

	EXPECT_EQ(5 * PAGE, lseek(fd, 0, SEEK_END));
}

TEST_F(export, size_of_zero_goes_to_the_end)
{
	struct tshare_export args = { .fd = self->rw, .offset = 3 * PAGE };
	char *mem;

	ASSERT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_EXPORT, &args));
	EXPECT_EQ(SIZE - 3 * PAGE, args.size);
	mem = map(args.export_fd, SIZE - 3 * PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, mem);
	EXPECT_EQ(0, memcmp(mem, self->mem + 3 * PAGE, SIZE - 3 * PAGE));
}

/* Core mm maps a folio by its head's address: with a wrong offset other pages appear. */
TEST_F(export, which_begins_inside_a_folio_shows_its_pages_at_any_address)
{
	int fd = export_range(self->dev, self->rw, MIB, 6 * MIB, TSHARE_EXPORT_WRITE);
	static const size_t beyond[] = { 0, PAGE, MIB, 2 * MIB - PAGE };
	size_t i;

	ASSERT_LE(0, fd);
	for (i = 0; i < ARRAY_SIZE(beyond); i++) {
		char *mem = map_beyond(fd, 6 * MIB, RW, 0, beyond[i]);

		ASSERT_NE(MAP_FAILED, mem);
		EXPECT_EQ(0, memcmp(mem, self->mem + MIB, 6 * MIB)) {
			TH_LOG("%zu bytes beyond 2 MiB", beyond[i]);
		}
		munmap(mem, 6 * MIB);
	}
}

TEST_F(export, is_made_of_large_entries_where_address_and_place_are_congruent)
{
	int fd = export_range(self->dev, self->rw, MIB, 6 * MIB, TSHARE_EXPORT_WRITE);
	char *mem = map_beyond(fd, 6 * MIB, RW, 0, MIB), *part;

	ASSERT_NE(MAP_FAILED, mem);
	if (!self->huge)
		SKIP(return, "QUERY says that mappings are made of pages");
	fill(mem, 6 * MIB, 2);
	EXPECT_TRUE(filled(self->mem + MIB, 6 * MIB, 2));
	/* The range begins and ends amid a folio, and has two whole ones between. */
	EXPECT_EQ(4 * MIB, smaps(mem, "FilePmdMapped"));
	part = map_beyond(fd, 4 * MIB, RW, MIB, 0);
	ASSERT_NE(MAP_FAILED, part);
	EXPECT_EQ(0, memcmp(part, self->mem + 2 * MIB, 4 * MIB));
	EXPECT_EQ(4 * MIB, smaps(part, "FilePmdMapped"));
}

TEST_F(export, of_whole_folios_is_made_of_large_entries)
{
	int fd = export_range(self->dev, self->rw, 2 * MIB, 4 * MIB, TSHARE_EXPORT_WRITE);
	char *mem = map_aligned(fd, 4 * MIB, RW);

	ASSERT_NE(MAP_FAILED, mem);
	if (!self->huge)
		SKIP(return, "QUERY says that mappings are made of pages");
	EXPECT_EQ(0, memcmp(mem, self->mem + 2 * MIB, 4 * MIB));
	EXPECT_EQ(4 * MIB, smaps(mem, "FilePmdMapped"));
}

TEST_F(export, of_other_than_whole_pages_is_einval)
{
	EXPECT_EQ(-EINVAL, export_range(self->dev, self->rw, 1, PAGE, 0));
	EXPECT_EQ(-EINVAL, export_range(self->dev, self->rw, PAGE - 1, PAGE, 0));
	EXPECT_EQ(-EINVAL, export_range(self->dev, self->rw, PAGE, 1, 0));
	EXPECT_EQ(-EINVAL, export_range(self->dev, self->rw, PAGE, 2 * PAGE - 1, 0));
	EXPECT_EQ(-EINVAL, export_range(self->dev, self->rw, 512, 0, 0));
}

TEST_F(export, outside_of_the_dma_buf_is_erange)
{
	const __u64 top = -PAGE;
	const struct {
		__u64 offset, size;
	} outside[] = {
		{ 0, SIZE + PAGE }, { PAGE, SIZE }, { SIZE, 0 }, { SIZE, PAGE },
		{ SIZE + PAGE, 0 }, { SIZE - PAGE, 2 * PAGE }, { top, PAGE }, { top, 0 },
		{ 0, top }, { PAGE, top }, { top, 2 * PAGE }, { 1ULL << 63, 1ULL << 63 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(outside); i++) {
		EXPECT_EQ(-ERANGE, export_range(self->dev, self->rw, outside[i].offset,
						outside[i].size, 0)) {
			TH_LOG("%llu bytes from %llu", outside[i].size, outside[i].offset);
		}
	}
}

TEST_F(export, of_a_range_counts_from_its_start)
{
	int range = export_range(self->dev, self->rw, 3 * PAGE, 5 * PAGE, TSHARE_EXPORT_WRITE);
	int fd = export_range(self->dev, range, 2 * PAGE, 2 * PAGE, TSHARE_EXPORT_WRITE);
	struct tshare_info info;
	char *mem;

	ASSERT_LE(0, fd);
	mem = map(fd, 2 * PAGE, RW);
	ASSERT_NE(MAP_FAILED, mem);
	EXPECT_EQ(0, memcmp(mem, self->mem + 5 * PAGE, 2 * PAGE));
	ASSERT_EQ(0, get_info(self->dev, fd, &info));
	EXPECT_EQ(5 * PAGE, info.offset);
	EXPECT_EQ(2 * PAGE, info.length);
}

TEST_F(export, of_a_range_stays_inside)
{
	int range = export_range(self->dev, self->rw, 3 * PAGE, 5 * PAGE, TSHARE_EXPORT_WRITE);
	struct tshare_export args = { .fd = range, .offset = 2 * PAGE };

	ASSERT_LE(0, range);
	EXPECT_EQ(-ERANGE, export_range(self->dev, range, 0, 6 * PAGE, 0));
	EXPECT_EQ(-ERANGE, export_range(self->dev, range, 5 * PAGE, PAGE, 0));
	EXPECT_EQ(-ERANGE, export_range(self->dev, range, -3 * PAGE, PAGE, 0));
	ASSERT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_EXPORT, &args));
	EXPECT_EQ(3 * PAGE, args.size);
}

TEST_F(export, without_write_is_read_only)
{
	int fd = export_range(self->dev, self->rw, 0, 0, 0);
	struct tshare_info info;
	char *mem;

	ASSERT_LE(0, fd);
	EXPECT_EQ(O_RDONLY, fcntl(fd, F_GETFL) & O_ACCMODE);
	EXPECT_EQ(MAP_FAILED, map(fd, SIZE, RW));
	EXPECT_EQ(EACCES, errno);
	mem = map(fd, SIZE, PROT_READ);
	ASSERT_NE(MAP_FAILED, mem);
	EXPECT_TRUE(filled(mem, SIZE, 1));
	EXPECT_EQ(-1, mprotect(mem, PAGE, RW));
	EXPECT_EQ(EACCES, errno);
	ASSERT_EQ(0, get_info(self->dev, fd, &info));
	EXPECT_EQ(0, info.region_flags & TSHARE_REGION_WRITABLE);
}

TEST_F(export, for_writing_of_a_read_only_one_is_eacces)
{
	int range = export_range(self->dev, self->rw, PAGE, PAGE, 0);

	ASSERT_LE(0, range);
	EXPECT_EQ(-EACCES, export_range(self->dev, self->ro, 0, 0, TSHARE_EXPORT_WRITE));
	EXPECT_EQ(-EACCES, export_range(self->dev, self->ro, PAGE, PAGE, TSHARE_EXPORT_WRITE));
	EXPECT_EQ(-EACCES, export_range(self->dev, range, 0, 0, TSHARE_EXPORT_WRITE));
	EXPECT_LE(0, export_range(self->dev, self->ro, PAGE, PAGE, 0));
}

TEST_F(export, needs_no_permission_but_the_descriptors)
{
	int fd;

	ASSERT_TRUE(act_as_user(USER_A));
	fd = export_range(self->dev, self->rw, PAGE, PAGE, TSHARE_EXPORT_WRITE);
	EXPECT_LE(0, fd);
	EXPECT_EQ(-EACCES, open_name(self->dev, "ring", 0));
	ASSERT_TRUE(act_as_root());
}

TEST_F(export, of_other_descriptors_is_refused)
{
	int memfd = memfd_create("tshare", 0), pipes[2];

	ASSERT_LE(0, memfd);
	ASSERT_EQ(0, pipe(pipes));
	EXPECT_EQ(-EBADF, export_range(self->dev, -1, 0, 0, 0));
	EXPECT_EQ(-EBADF, export_range(self->dev, 1000000, 0, 0, 0));
	EXPECT_EQ(-EINVAL, export_range(self->dev, self->dev, 0, 0, 0));
	EXPECT_EQ(-EINVAL, export_range(self->dev, memfd, 0, 0, 0));
	EXPECT_EQ(-EINVAL, export_range(self->dev, pipes[0], 0, 0, 0));
}

TEST_F(export, is_closed_by_exec_unless_asked)
{
	int closed = export_range(self->dev, self->rw, 0, PAGE, 0);
	int kept = export_range(self->dev, self->rw, 0, PAGE, TSHARE_EXPORT_NO_CLOEXEC);

	EXPECT_EQ(FD_CLOEXEC, fcntl(closed, F_GETFD));
	EXPECT_EQ(0, fcntl(kept, F_GETFD));
}

TEST_F(export, info_reports_the_range)
{
	int fd = export_range(self->dev, self->rw, 3 * PAGE, 5 * PAGE, TSHARE_EXPORT_WRITE);
	struct tshare_info info;

	ASSERT_EQ(0, get_info(self->dev, fd, &info));
	EXPECT_EQ(3 * PAGE, info.offset);
	EXPECT_EQ(5 * PAGE, info.length);
	EXPECT_EQ(SIZE, info.size);
	EXPECT_EQ(id_of(self->dev, self->rw), info.id);
	EXPECT_EQ(TSHARE_REGION_WRITABLE, info.region_flags & TSHARE_REGION_WRITABLE);
	EXPECT_STREQ("ring", info.name);
	ASSERT_EQ(0, get_info(self->dev, self->ro, &info));
	EXPECT_EQ(0, info.offset);
	EXPECT_EQ(SIZE, info.length);
}

TEST_F(export, physical_address_is_the_regions)
{
	int fd = export_range(self->dev, self->rw, 3 * PAGE, 5 * PAGE, 0);
	struct tshare_info whole, part;

	ASSERT_EQ(0, get_info(self->dev, self->rw, &whole));
	ASSERT_EQ(0, get_info(self->dev, fd, &part));
	EXPECT_EQ(whole.phys_addr, part.phys_addr);
}

TEST_F(export, of_a_part_has_no_descriptors)
{
	struct tshare_create args = create_args(2 * PAGE, NULL);
	struct records records = many_records(1);
	char found[64];
	struct tshare_info info = { .descs = (uintptr_t)found, .descs_size = sizeof(found) };
	int whole;

	args.descs = (uintptr_t)records.data;
	args.descs_size = records.size;
	args.desc_count = 1;
	whole = do_create(self->dev, &args);
	ASSERT_LE(0, whole);

	info.fd = export_range(self->dev, whole, 0, PAGE, 0);
	memset(found, 0xa5, sizeof(found));
	ASSERT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_INFO, &info));
	EXPECT_EQ(0, info.desc_count);
	EXPECT_EQ(0, info.descs_size);
	EXPECT_EQ((char)0xa5, found[0]);

	info.fd = export_range(self->dev, whole, 0, 0, 0);
	info.descs_size = sizeof(found);
	ASSERT_EQ(0, xioctl(self->dev, TSHARE_IOCTL_INFO, &info));
	EXPECT_EQ(1, info.desc_count);
	ASSERT_EQ(records.size, info.descs_size);
	EXPECT_EQ(0, memcmp(records.data, found, records.size));
}

TEST_F(export, keeps_the_region)
{
	int fd = export_range(self->dev, self->rw, 3 * PAGE, 5 * PAGE, 0);
	char *mem = map(fd, 5 * PAGE, PROT_READ);

	ASSERT_NE(MAP_FAILED, mem);
	munmap(self->mem, SIZE);
	ASSERT_EQ(0, unlink_name(self->dev, "ring"));
	close(self->rw);
	close(self->ro);
	close(fd);
	EXPECT_EQ(self->before.regions + 1, read_number(SYSFS "regions"));
	EXPECT_EQ(pattern(1, 3 * PAGE / 8), *(__u64 *)mem);
	munmap(mem, 5 * PAGE);
	EXPECT_SAME_COUNTERS(self->before);
}

TEST_F(export, counter_is_the_regions)
{
	int fd = export_range(self->dev, self->rw, 3 * PAGE, 5 * PAGE, 0);

	EXPECT_NE(0, counter_inode(self->dev, fd));
	EXPECT_EQ(counter_inode(self->dev, self->rw), counter_inode(self->dev, fd));
}

TEST_F(export, of_every_page_shows_that_page)
{
	int fds[200];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		/* From both ends, so that a new range has others before and behind it. */
		size_t page = i % 2 ? SIZE / PAGE - i : i;

		fds[i] = export_range(self->dev, self->rw, page * PAGE, PAGE, 0);
		ASSERT_LE(0, fds[i]);
	}
	for (i = 0; i < ARRAY_SIZE(fds); i++) {
		size_t page = i % 2 ? SIZE / PAGE - i : i;
		char *mem = map(fds[i], PAGE, PROT_READ);

		ASSERT_NE(MAP_FAILED, mem);
		EXPECT_EQ(0, memcmp(mem, self->mem + page * PAGE, PAGE));
		munmap(mem, PAGE);
		close(fds[i]);
	}
}

struct worker {
	pthread_t thread;
	int dev;
	int fd;
	size_t id;
	bool failed;
};

/* Two threads share each range, and both neighbouring ranges overlap it. */
static void *export_and_close(void *arg)
{
	struct worker *worker = arg;
	const size_t times = rounds(2000);
	size_t round;

	for (round = 0; round < times && !worker->failed; round++) {
		size_t page = (worker->id / 2 + round) % 4;
		int fd = export_range(worker->dev, worker->fd, page * PAGE, 2 * PAGE, 0);

		worker->failed = fd < 0 || close(fd);
	}
	return NULL;
}

TEST_F(export, of_the_same_range_can_be_made_and_closed_at_once)
{
	struct counters before = count_all();
	struct worker workers[4];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(workers); i++) {
		workers[i] = (struct worker){ .dev = self->dev, .fd = self->rw, .id = i };
		ASSERT_EQ(0, pthread_create(&workers[i].thread, NULL, export_and_close,
					    &workers[i]));
	}
	for (i = 0; i < ARRAY_SIZE(workers); i++) {
		ASSERT_EQ(0, pthread_join(workers[i].thread, NULL));
		EXPECT_FALSE(workers[i].failed);
	}
	EXPECT_SAME_COUNTERS(before);
}

TEST_HARNESS_MAIN
